"""A judge on the bench: its stored verdicts on development and validation, and its agreement with people after edits.

All figures come from a table with the worth of each answer, so an edit costs no call and reads no file. The test
examples are left out: they may be looked at only once, and the run did that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.pass_fail import CELLS, pass_labels
from ..evaluation.scoring import TabledScores, Targets, human_targets, question_worth, scores_of_worth
from ..labelling.next_output import verdicts_of_run
from ..memory.journal import read_events
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..prompts.checklist import Checklist
from ..prompts.errors import InputError
from ..prompts.examples import Example, documents
from ..prompts.rows import column
from ..prompts.verdicts import Verdict, VerdictColumns, read_verdicts
from ..stats.closed_forms import (
    Influenced,
    figure_with_interval,
    influence_difference,
    kappa_influences,
    spearman_influences,
)
from ..stats.correlation import statistic_dict
from ..stats.differences import Difference, difference_dict
from ..stats.pass_fail import HALF, passes, rate
from ..stats.resampling import Resampling
from .asked_questions import NO_EXAMPLES, AskedQuestion, asked_of, asked_questions, asked_verdicts
from .judge_edits import JudgeEdit

Split = Literal["development", "validation"]
SPLITS: tuple[Split, ...] = ("development", "validation")
Cells = NDArray[np.float64]
MOST_LISTED = 200
"""Most named outputs among those that change sides; the others are counted."""


@dataclass(frozen=True)
class JudgeState:
    """A judge's scores and passes on one split."""

    scores: Cells
    """Scores on the dimensions that people rated, NaN where a verdict is missing; shape (examples,)."""
    decided: Cells
    """Scores that are compared with the threshold; shape (examples,)."""
    threshold: float

    @cached_property
    def passed(self) -> Cells:
        """1 where an output passes, 0 where it fails, NaN where there is no score; shape (examples,)."""
        return np.where(np.isnan(self.decided), np.nan, passes(np.nan_to_num(self.decided), self.threshold))


@dataclass(frozen=True)
class BenchPart:
    """One split: its examples, the worth of every answer, and people's scores of the examples."""

    examples: Sequence[Example]
    verdicts: VerdictColumns
    worth: Cells
    """P(the good answer) of each question by the kept judge, NaN without a verdict; shape (examples, questions)."""
    dimensions: tuple[str, ...]
    """Dimensions that people rated; empty if there are none."""
    wanted: Cells
    """People's scores in [0, 1], NaN without a score; shape (examples,)."""
    labels: Cells | None
    """1 where people passed an output, 0 where they failed it, else NaN; None if people gave scores, not labels."""
    groups: Sequence[str] | None
    reason: str | None = None
    """Why there are no scores by people; None if there are some."""
    targets: Targets | None = None
    """People's scores by dimension; None if there are no verdicts, or if the scores cannot be read (see ``reason``)."""
    asked_worth: Cells | None = None
    """Worth of the answers to the questions that a person worded; shape (examples, asked)."""

    @cached_property
    def all_worth(self) -> Cells:
        """Worth of all answers, first to the judge's own questions, then to those that a person worded."""
        return self.worth if self.asked_worth is None else np.hstack([self.worth, self.asked_worth])

    @cached_property
    def of_people(self) -> Cells:
        """People's labels, or their scores if there are no labels."""
        return self.wanted if self.labels is None else self.labels


class JudgeBench:
    """A judge with its examples, by split."""

    def __init__(
        self,
        judge: KeptJudge,
        parts: Mapping[Split, BenchPart],
        run: Path | None = None,
        asked: Sequence[AskedQuestion] = (),
    ) -> None:
        """``run`` is the directory of the judge's run, if there is one. ``asked`` are questions that a person worded.
        They are off until somebody turns them on; the worth of their answers is ``asked_worth`` of the parts."""
        self.judge, self.parts, self.run, self.asked = judge, parts, run, asked
        self.all = (*judge.checklist.questions, *(each.question for each in asked))
        self.places = {each.id: place for place, each in enumerate(self.all)}
        self.threshold = HALF if judge.threshold is None else judge.threshold
        self.start = JudgeEdit.of(judge, judge.threshold, [each.question for each in asked])
        self.kept = {name: self.state(judge, name) for name in parts}

    def state(self, judge: KeptJudge, split: Split) -> JudgeState:
        """Compute the scores and passes of the judge, or of an edited copy."""
        table = self.table(judge, split)
        scores = table.on(self.parts[split].dimensions or ("overall",))
        threshold = HALF if judge.threshold is None else judge.threshold
        return JudgeState(scores, table.on(judge.threshold_of), threshold)

    def table(self, judge: KeptJudge, split: Split) -> TabledScores:
        """Compute the scores of the judge, or of an edited copy, overall and by dimension."""
        part, before = self.parts[split], self.all
        columns = [self.places[each.id] for each in judge.checklist.questions]
        worth = part.all_worth[:, columns]
        # The columns hold P(the good answer) before the edit, and an edit may turn a question round.
        turned = [
            each.good != before[place].good for each, place in zip(judge.checklist.questions, columns, strict=True)
        ]
        worth[:, turned] = 1.0 - worth[:, turned]
        return scores_of_worth(part.examples, judge.checklist, worth)

    def figures(self, split: Split, changed: KeptJudge | None = None) -> dict[str, Any]:
        """Return the agreement with people on one split, as JSON for the page; for a changed judge, with the difference
        to the kept judge."""
        part, before = self.parts[split], self.kept[split]
        if part.reason is not None:
            return {"n": 0, "examples": len(part.examples), "reason": part.reason}
        if unasked := self.unasked(changed, split):
            names = ", ".join(f"'{each}'" for each in unasked)
            said = (
                f"{names} was not asked on {split} yet." if len(unasked) == 1 else f"{names} were not asked there yet."
            )
            return {"n": 0, "examples": len(part.examples), "reason": said, "unasked": unasked}
        after = before if changed is None else self.state(changed, split)
        known = self.known(part, before, after)
        row: dict[str, Any] = {"n": int(known.sum()), "examples": len(part.examples)}
        row["now"] = self._agreement(part, after, known)
        if changed is not None:
            row["before"] = self._agreement(part, before, known)
            row["difference"] = {
                name: difference_dict(each) for name, each in self.differences(part, before, after, known).items()
            }
            row["moved"] = _moved(part, before, after)
        return row

    def unasked(self, changed: KeptJudge | None, split: Split) -> list[str]:
        """Return the ids of questions, of the judge or the changed judge, that the model never answered on a split."""
        worth, checklists = self.parts[split].all_worth, [each.checklist for each in (self.judge, changed) if each]
        ids = dict.fromkeys(each.id for checklist in checklists for each in checklist.questions if each.weight > 0)
        return [] if not len(worth) else [each for each in ids if np.isnan(worth[:, self.places[each]]).all()]

    def known(self, part: BenchPart, before: JudgeState, after: JudgeState) -> NDArray[np.bool_]:
        """Mark the examples that people and both judges scored, so that the difference is paired; shape (examples,)."""
        columns = [part.of_people, *(each for state in (before, after) for each in (state.scores, state.decided))]
        every: NDArray[np.bool_] = np.logical_and.reduce(~np.isnan(np.vstack(columns)))
        return every

    def differences(
        self, part: BenchPart, before: JudgeState, after: JudgeState, known: NDArray[np.bool_]
    ) -> dict[str, Difference]:
        """Return the paired differences of Spearman's correlation and, if people gave labels, of kappa."""
        groups, found = _groups(part, known), {}
        pairs = zip(_influenced(part, before, known).items(), _influenced(part, after, known).values(), strict=True)
        for (name, old), new in pairs:
            found[name] = influence_difference(old, new, groups)
        return found

    def _agreement(self, part: BenchPart, state: JudgeState, known: NDArray[np.bool_]) -> dict[str, Any]:
        groups = _groups(part, known)
        found = {name: figure_with_interval(each, groups) for name, each in _influenced(part, state, known).items()}
        row: dict[str, Any] = {name: statistic_dict(each) for name, each in found.items()}
        if part.labels is None:
            return row
        passed, wanted, sampling = state.passed[known], part.labels[known], Resampling(groups)
        for name, side, what in (("true_positive_rate", 1.0, "passed"), ("true_negative_rate", 0.0, "failed")):
            mask = wanted == side
            hits = rate(list((passed == wanted)[mask].astype(float)), sampling.only(mask))
            none = f"people {what} none of the examples"
            row[name] = statistic_dict(hits if hits.n else replace(hits, reason=none))
        cells = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0))
        counts = [int(np.sum((passed == judge) & (wanted == people))) for judge, people in cells]
        return row | {"confusion": dict(zip(CELLS, counts, strict=True))}

    def questions(self) -> list[dict[str, Any]]:
        """Return the table of the checklist: each question with its agreement with people and its worth on
        development. Agreement is Spearman's correlation of P(the good answer) with people's scores. Worth is how much
        the judge's agreement falls without the question, a paired difference."""
        rows, asked = [], {entry.question.id: entry for entry in self.asked}
        for place, entry in enumerate(self.all):
            origin = asked[entry.id].origin if entry.id in asked else self.judge.origins.get(entry.id)
            rows.append(
                {
                    "id": entry.id,
                    "text": entry.text,
                    "dimension": entry.dimension,
                    "good": entry.good,
                    "weight": entry.weight,
                    "kind": "check" if entry in self.judge.checklist.checks else "question",
                    "from": "start" if origin is None else origin.origin,
                    "sources": [] if origin is None else [*origin.sources],
                    "comments": [] if origin is None else [*origin.comments],
                    **self._of_question(place),
                }
            )
        return rows

    def _of_question(self, place: int) -> dict[str, Any]:
        part = self.parts.get("development")
        if part is None or part.reason is not None:
            return {"agreement": None, "worth": None}
        worth = part.all_worth[:, place]
        known = ~(np.isnan(worth) | np.isnan(part.wanted))
        found = figure_with_interval(spearman_influences(worth[known], part.wanted[known]), _groups(part, known))
        return {"agreement": statistic_dict(found), "worth": self._worth(part, place)}

    def _worth(self, part: BenchPart, place: int) -> dict[str, Any] | None:
        questions, before = self.judge.checklist.questions, self.kept["development"]
        if place >= len(questions):  # a person worded the question: its worth is what the judge would gain
            more = self.judge.checklist.model_copy(update={"questions": [*questions, self.all[place]]})
            reduced_state, before = before, self.state(replace(self.judge, checklist=more), "development")
        else:
            left = self.judge.checklist.of([each for each in questions if each is not questions[place]])
            if left is None:
                return difference_dict(Difference(None, 0, reason="there is no score without it"))
            reduced_state = self.state(replace(self.judge, checklist=left), "development")
        known = ~(np.isnan(before.scores) | np.isnan(reduced_state.scores) | np.isnan(part.wanted))
        if not np.any(~np.isnan(reduced_state.scores)):
            return difference_dict(Difference(None, 0, reason="a rated dimension has no score without it"))
        lost, had = (spearman_influences(each.scores[known], part.wanted[known]) for each in (reduced_state, before))
        return difference_dict(influence_difference(lost, had, _groups(part, known)))


def _influenced(part: BenchPart, state: JudgeState, known: NDArray[np.bool_]) -> dict[str, Influenced]:
    found = {"spearman": spearman_influences(state.scores[known], part.wanted[known])}
    if part.labels is not None:
        found = {"kappa": kappa_influences(state.passed[known], part.labels[known]), **found}
    return found


def _groups(part: BenchPart, known: NDArray[np.bool_]) -> list[str] | None:
    if part.groups is None:
        return None
    return [group for group, kept in zip(part.groups, known.tolist(), strict=True) if kept]


def _moved(part: BenchPart, before: JudgeState, after: JudgeState) -> dict[str, Any]:
    """Return the outputs that pass by only one of the two judges, those that people scored first."""
    moved = np.flatnonzero((before.passed != after.passed) & ~np.isnan(before.passed) & ~np.isnan(after.passed))
    people = np.isnan(part.of_people[moved])
    listed = moved[np.argsort(people, kind="stable")][:MOST_LISTED]
    ids = column(part.examples, "id")
    names = list(ids)
    rows = [
        {
            "id": names[place],
            "before": round(float(before.decided[place]), 4),
            "after": round(float(after.decided[place]), 4),
            "passes": bool(after.passed[place]),
            "people": None if np.isnan(part.of_people[place]) else round(float(part.of_people[place]), 4),
        }
        for place in listed.tolist()
    ]
    return {"count": len(moved), "listed": rows}


def bench_part(
    judge: KeptJudge, examples: Sequence[Example], verdicts: VerdictColumns, asked: Sequence[AskedQuestion] = ()
) -> BenchPart:
    """Make the part of one split. Verdicts on other examples are ignored. ``asked`` is as in :class:`JudgeBench`."""
    ids = list(column(examples, "id"))
    part_verdicts = verdicts.only(verdicts.places("example", ids) >= 0)
    soft = judge.settings.get("scores") != "hard"
    worth = question_worth(examples, judge.checklist, part_verdicts, soft=soft)
    asked_worth = None
    if asked:
        asked_worth = question_worth(
            examples, Checklist(questions=tuple(each.question for each in asked)), part_verdicts, soft=soft
        )
    nothing, groups = np.full(len(examples), np.nan), documents(examples)
    if not part_verdicts:
        why = "The run kept no verdicts on these examples. Runs of an older askance kept none of validation."
        return BenchPart(examples, part_verdicts, worth, (), nothing, None, groups, why)
    try:
        targets = human_targets(examples, judge.checklist, judge.settings.get("human_scale"))
    except InputError as error:
        return BenchPart(examples, part_verdicts, worth, (), nothing, None, groups, str(error))
    labels = pass_labels(examples, targets)
    wanted = np.array([targets.overall(each) for each in ids], dtype=np.float64)
    passed = None if labels is None else np.array(labels.of(ids), dtype=np.float64)
    return BenchPart(
        *(examples, part_verdicts, worth, targets.dimensions, wanted, passed, groups, targets.without_scale()),
        targets=targets,
        asked_worth=asked_worth,
    )


def load_bench(run: Path, file: str | None = None, people: Mapping[str, Example] | None = None) -> JudgeBench:
    """Load the bench of a finished run's judge, or of the judge in a ``file`` of its directory. A judge without a run
    has no examples. ``people`` are examples with further labels, by id; they replace the run's examples. Raises
    InputError if there is no such judge, the run is not finished, or a file is damaged."""
    judge = load_judge(run if file in (None, JUDGE_FILE) else run / str(file))
    if not RunDirectory(run).config_file.is_file():
        nothing = np.zeros((0, len(judge.checklist.questions)))
        empty = BenchPart([], VerdictColumns(), nothing, (), np.zeros(0), None, None, NO_EXAMPLES)
        return JudgeBench(judge, dict.fromkeys(SPLITS, empty), run)
    return _bench_of(run, judge, verdicts_of_run(run, judge), people)


def load_start(run: Path) -> JudgeBench:
    """Load the bench of a run's starting judge: its prompt and checklist, without threshold and calibration. Raises
    InputError if the run kept no checklist or no verdicts of that judge."""
    judge, directory = load_judge(run), RunDirectory(run)
    _, checklist, _ = directory.read_inputs()
    files = sorted((run / "verdicts").glob("000-*.jsonl"))
    if checklist is None or not files:
        raise InputError(f"{run}: the run kept no verdicts of the judge that it began with.")
    start = replace(
        judge,
        prompt=directory.read_start(),
        checklist=checklist,
        calibration=None,
        threshold=None,
        threshold_of=("overall",),
        steps=None,
        figures=None,
        decision=None,
        origins={},
    )
    said = [each for file in files for each in read_verdicts(file) if each.model in (None, judge.model)]
    return _bench_of(run, start, said, None)


def _bench_of(run: Path, judge: KeptJudge, said: Sequence[Verdict], people: Mapping[str, Example] | None) -> JudgeBench:
    examples, _, _ = RunDirectory(run).read_inputs()
    by_id = {each.id: each for each in examples} | dict(people or {})
    splits = [each for each in read_events(run / "journal.jsonl") if each["event"] == "split"]
    if not splits:
        raise InputError(f"{run}: its journal does not say which examples are development and which validation.")
    asked = asked_of(judge, asked_questions(run))
    verdicts = VerdictColumns.of([*said, *asked_verdicts(run, judge)])
    parts = {name: bench_part(judge, [by_id[each] for each in splits[-1][name]], verdicts, asked) for name in SPLITS}
    return JudgeBench(judge, parts, run, asked)
