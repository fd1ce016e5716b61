"""The examples of a run, or of a labelled file, for the page Examples: filters, rows, and one example in full.

Raters are blind to each other. The answers that another rater gives on this page are shown, and counted by a filter,
only after one's own label of the output. A judge's verdicts on test examples are never shown, because the run took the
only look at them. Verdicts on validation are shown once a look at validation was counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..evaluation.kept_judge import KeptJudge
from ..labelling.desk import Desk, shown_texts
from ..labelling.label_session import LabelSession, RaterName
from ..labelling.labels_file import Entry, texts_of
from ..labelling.local_server import PageMessage
from ..labelling.next_output import JudgeOpinion, Opinions
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.human_feedback import one_line
from ..prompts.text import shorten
from ..prompts.verdicts import Verdict, VerdictColumns
from ..stats.pass_fail import HALF
from .judge_bench import Cells, JudgeBench, Split

Mask = NDArray[np.bool_]
UNSURE = 0.1
"""Largest distance from the threshold at which a score counts as unsure."""
MOST_ROWS = 100
"""Most rows of the list that are sent at once."""
MOST_CHARS = 110
"""Most characters of an output in the list."""
BLIND = "The judge's verdicts and other people's labels are shown once you have labelled this output."
SHUT = {
    "test": "This is a test example, so the judge's verdicts stay shut. The run looked at them once, to say what its judge is "
    "worth; a judge that is changed by what they show would only look better.",
    "validation": "This is a validation example, so the judge's verdicts are shut. To open those of all validation examples is "
    "one look, which is counted: a judge that you change after it has been shaped on validation.",
}
"""Why verdicts on a split are not shown."""


@dataclass(frozen=True)
class JudgeColumns:
    """One judge's scores and answers; NaN where there are none, or where they are not shown."""

    judge: KeptJudge
    shown: frozenset[Split]
    """Splits whose verdicts may be seen."""
    threshold: float
    scores: Cells
    """Shape (examples,)."""
    passed: Cells
    """1 where the output passes, 0 where not; shape (examples,)."""
    people: Cells
    """1 where people pass an output in the run's data, 0 where they fail it; shape (examples,)."""
    p_good: Cells
    """P(the good answer), as it enters the scores; shape (examples, questions)."""
    answers: Cells
    """1 for yes, 0 for no; shape (examples, questions)."""
    parts: Sequence[VerdictColumns]
    """Verdicts by split."""
    part_of: NDArray[np.int8]
    """Place in ``parts`` of each example's verdicts, -1 for an example without verdicts; shape (examples,)."""
    row_of: NDArray[np.int32]
    """Place of each verdict in its part, -1 without a verdict; shape (examples, questions)."""

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Column of each question, by its id."""
        return {each.id: place for place, each in enumerate(self.judge.checklist.questions)}

    def verdict(self, example: int, question: str) -> Verdict | None:
        """Return the verdict on the example at a place; None if there is none."""
        row = self.row_of[example, self.places[question]] if question in self.places else -1
        return None if row < 0 else self.parts[self.part_of[example]][int(row)]

    @cached_property
    def opinions(self) -> Opinions:
        """The judge's opinions for labelling, which orders the outputs by them."""
        good = np.array([each.good == "yes" for each in self.judge.checklist.questions])
        answers = np.where(good, self.answers, 1.0 - self.answers)
        one = JudgeOpinion(self.judge.asked, self.scores, self.threshold, answers, self.p_good)
        return Opinions(self.judge.checklist, (one,))

    @cached_property
    def distance(self) -> Cells:
        """Distance of each score from the threshold, infinity without a score; shape (examples,)."""
        return np.nan_to_num(np.abs(self.scores - self.threshold), nan=np.inf)

    def changed_since(self, before: JudgeColumns) -> NDArray[np.bool_]:
        """Mark the examples that pass by only one of this and an earlier judge, or that have another answer to a
        question that both ask. A missing score or answer never counts as a change. Shape (examples,)."""
        changed = _apart(self.passed, before.passed)
        for name, place in self.places.items():
            if name in before.places:
                changed |= _apart(self.answers[:, place], before.answers[:, before.places[name]])
        return changed


def judge_columns(bench: JudgeBench, examples: Sequence[Example], shown: frozenset[Split]) -> JudgeColumns:
    """Return the columns for these examples, in their order; only the ``shown`` splits have values. If an example's
    texts differ from those that were judged, its verdicts are not used."""
    judge, size = bench.judge, (len(examples), len(bench.judge.checklist.questions))
    places = {each.id: place for place, each in enumerate(examples)}
    scores, passed, people = (np.full(size[0], np.nan) for _ in range(3))
    answers, p_good = np.full(size, np.nan), np.full(size, np.nan)
    part_of, row_of = np.full(size[0], -1, np.int8), np.full(size, -1, np.int32)
    for number, (split, part) in enumerate(bench.parts.items()):
        if split not in shown:
            continue
        pairs = [(places[each.id], row) for row, each in enumerate(part.examples) if each.id in places]
        same = [pair for pair in pairs if texts_of(examples[pair[0]]) == texts_of(part.examples[pair[1]])]
        indices, rows = np.array(same, dtype=np.intp).reshape(-1, 2).T
        state = bench.kept[split]
        scores[indices], passed[indices], p_good[indices] = state.decided[rows], state.passed[rows], part.worth[rows]
        people[indices] = np.where(part.of_people[rows] == HALF, np.nan, part.of_people[rows] > HALF)
        people[indices] = np.where(np.isnan(part.of_people[rows]), np.nan, people[indices])
        part_of[indices] = number
        verdicts = part.verdicts
        example = verdicts.places("example", [each.id for each in examples])
        question = verdicts.places("question", [each.id for each in judge.checklist.questions])
        mask = (example >= 0) & (question >= 0) & (verdicts.numbers("replicate") == 0)
        mask[mask] = part_of[example[mask]] == number
        said = verdicts.numbers("answer")[mask]
        answers[example[mask], question[mask]] = np.where(said < 0, np.nan, said)
        row_of[example[mask], question[mask]] = np.flatnonzero(mask)
    verdicts_of = [each.verdicts for each in bench.parts.values()]
    return JudgeColumns(
        judge, shown, bench.threshold, scores, passed, people, p_good, answers, verdicts_of, part_of, row_of
    )


def _apart(one: Cells, other: Cells) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one != other) & ~np.isnan(one) & ~np.isnan(other)
    return found


class AskedExamples(PageMessage):
    """A request of the page, as in its address: the judge, the filters and the example."""

    run: str = ""
    file: str = ""
    split: str = ""
    disagree: bool = False
    """Filter: the judge and people disagree."""
    raters: bool = False
    """Filter: raters disagree."""
    unsure: bool = False
    """Filter: the judge is unsure."""
    yes: str = ""
    """Filter: the answer to the question with this id is yes."""
    since: str = ""
    """Filter: the verdict of this earlier judge, as RUN/FILE, is another."""
    id: str = ""
    """Id of the example that is shown."""
    start: int = Field(0, ge=0)
    """First row of the list, if no example is shown."""
    rater: RaterName | None = None
    blind: bool = False
    """Whether verdicts and people's labels are wanted only for outputs that this rater has labelled."""


@dataclass
class ExamplesTable:
    """Examples with the session in which they are labelled."""

    examples: Sequence[Example]
    splits: Mapping[str, str] = field(default_factory=dict)
    """Split of each example, by id; empty if nothing was split."""
    session: LabelSession | None = None
    why_shut: str | None = None
    """Why nothing can be labelled, if there is no session."""
    blind: bool = False
    """Whether verdicts and people's labels are never shown before a rater's own label."""

    def __post_init__(self) -> None:
        self.places = {each.id: place for place, each in enumerate(self.examples)}
        self._texts = [shorten(one_line(each.output or ""), MOST_CHARS) for each in self.examples]
        self._given = [_by_rater(each) for each in self.examples]
        self._raters_differ = np.array([_differ([human for _, human in each]) for each in self._given], dtype=np.bool_)
        self._split = np.array([self.splits.get(each.id, "") for each in self.examples])

    def listed(self, asked: AskedExamples, judge: JudgeColumns | None, before: JudgeColumns | None) -> dict[str, Any]:
        """Return the rows that pass the filters, around the shown example, and the number of examples by filter."""
        with self._held():
            desk = self._desk(asked)
            people, entries = self._people(desk, judge), {} if desk is None else desk.entries(blind=True)
            own_ids = set() if desk is None else desk.labelled_by(desk.rater)
        masks = self._masks(asked, judge, before, people, entries)
        in_split = np.ones(len(self.examples), bool) if not asked.split else self._split == asked.split
        wanted = np.logical_and.reduce([in_split, *(mask for name, mask in masks.items() if getattr(asked, name))])
        order = np.flatnonzero(wanted)
        if asked.unsure and judge is not None:
            order = order[np.argsort(judge.distance[order], kind="stable")]
        found = np.flatnonzero(order == self.places.get(asked.id, -1))
        place = int(found[0]) if len(found) else None
        start = (asked.start if place is None else place) // MOST_ROWS * MOST_ROWS
        rows = [
            {
                "id": self.examples[each].id,
                "text": self._texts[each],
                "passes": None if judge is None else _said(judge.passed[each]),
                "people": _said(people[each]),
                "mine": self.examples[each].id in own_ids,
            }
            for each in order[start : start + MOST_ROWS].tolist()
        ]
        return {
            "total": len(order),
            "examples": len(self.examples),
            "counts": {name: int((mask & in_split).sum()) for name, mask in masks.items()},
            "splits": {name: int((self._split == name).sum()) for name in dict.fromkeys(self.splits.values())},
            "start": start,
            "place": place,
            "previous": self._id(order, place - 1) if place else None,
            "next": self._id(order, 0 if place is None else place + 1),
            "rows": rows,
        }

    def one(self, asked: AskedExamples, judge: JudgeColumns | None, before: JudgeColumns | None) -> dict[str, Any]:
        """Return one example: its texts, each question's verdict, and what people said. InputError if there is no such
        example."""
        if (place := self.places.get(asked.id)) is None:
            raise InputError(f"There is no example '{asked.id}' with an output here.")
        example = self.examples[place]
        with self._held():
            desk = self._desk(asked)
            item = shown_texts(example) if desk is None else desk.shown(example)
            entries = [] if desk is None else desk.entries().get(example.id, [])
        has_mine = desk is not None and any(each.rater == desk.rater for each in entries)
        record = {"item": item, "split": self.splits.get(example.id), "hidden": 0 if has_mine else len(entries)}
        if (self.blind or asked.blind) and not has_mine:
            return record | {"shut": BLIND, "judge": None, "verdicts": [], "people": [], "comments": []}
        learned = {} if judge is None else _learned(judge)
        other_entries = [each for each in entries if has_mine and desk is not None and each.rater != desk.rater]
        comments = [(each.text, each.rater) for each in example.comment]
        comments += [(each.comment, each.rater) for each in other_entries if each.comment]
        people = [*self._given[place], *((each.rater, dict(each.human)) for each in other_entries)]
        return record | {
            "shut": self._shut(example.id, judge),
            "judge": None if judge is None else _sides(judge, before, place),
            "verdicts": [] if judge is None else _verdicts(judge, before, place),
            "people": [{"rater": name, "human": human} for name, human in people],
            "comments": [
                {"text": text, "rater": rater, "questions": learned.get(one_line(text), [])} for text, rater in comments
            ],
        }

    def _shut(self, example: str, judge: JudgeColumns | None) -> str | None:
        """Say why the verdicts on an example are not shown; None if they are shown."""
        split = self.splits.get(example)
        if judge is None or split in judge.shown:
            return None
        return SHUT.get(split or "", "The run's journal does not say which split this example is in.")

    def _held(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.session is None else self.session.lock

    def _id(self, order: NDArray[np.intp], place: int) -> str | None:
        return self.examples[int(order[place])].id if 0 <= place < len(order) else None

    def _desk(self, asked: AskedExamples) -> Desk | None:
        return None if self.session is None else self.session.seat(asked.rater)

    def _people(self, desk: Desk | None, judge: JudgeColumns | None) -> Cells:
        """Return 1 where people pass an output and 0 where they fail it. NaN where they say neither, or where this
        rater may not see their labels yet."""
        if desk is not None:
            return np.array([np.nan if each is None else each for each in desk.people(blind=True)], dtype=np.float64)
        return np.full(len(self.examples), np.nan) if judge is None else judge.people

    def _masks(
        self,
        asked: AskedExamples,
        judge: JudgeColumns | None,
        before: JudgeColumns | None,
        people: Cells,
        entries: Mapping[str, Sequence[Entry]],
    ) -> dict[str, Mask]:
        """Return a mask for each filter: whether each example passes it."""
        masks = {"raters": self._raters_differ.copy()}
        for name, theirs in entries.items():
            place = self.places[name]
            given = [human for _, human in self._given[place]]
            masks["raters"][place] = _differ([*given, *(dict(each.human) for each in theirs)])
        if judge is not None:
            known = ~np.isnan(people) & ~np.isnan(judge.passed)
            masks |= {"disagree": known & (people != judge.passed), "unsure": judge.distance <= UNSURE + 1e-9}
            if asked.yes in judge.places:
                masks["yes"] = judge.answers[:, judge.places[asked.yes]] == 1
            if before is not None:
                masks["since"] = judge.changed_since(before)
        return masks


def _by_rater(example: Example) -> list[tuple[str, dict[str, Any]]]:
    """Return each rater's answers in the data, with the rater's name, or the rater's place if there is no name."""
    places = max(map(len, example.human.values()), default=0)
    names = [*(name or f"rater {place}" for place, name in enumerate(example.raters, 1))]
    names = names or (["people"] if places == 1 else [f"rater {place}" for place in range(1, places + 1)])
    return [
        (
            name,
            {
                each: said[place]
                for each, said in example.human.items()
                if len(said) > place and said[place] is not None
            },
        )
        for place, name in enumerate(names)
    ]


def _differ(given: Sequence[Mapping[str, Any]]) -> bool:
    """Whether two raters gave different labels, or different answers to a question."""
    names = {name for each in given for name in each}
    return any(len({float(each[name]) for each in given if name in each}) > 1 for name in names)


def _learned(judge: JudgeColumns) -> dict[str, list[str]]:
    """Map each comment to the ids of the judge's questions that were made from it."""
    found: dict[str, list[str]] = {}
    for name, origin in judge.judge.origins.items():
        for text in origin.comments:
            found.setdefault(one_line(text), []).append(name)
    return found


def _sides(judge: JudgeColumns, before: JudgeColumns | None, place: int) -> dict[str, Any] | None:
    if np.isnan(judge.scores[place]):
        return None
    now = {"score": float(judge.scores[place]), "threshold": judge.threshold, "passes": _said(judge.passed[place])}
    return now | {"before": None if before is None else _sides(before, None, place)}


def _verdicts(judge: JudgeColumns, before: JudgeColumns | None, place: int) -> list[dict[str, Any]]:
    """Return every question with its verdict; nothing for an example whose verdicts are not shown."""
    rows = []
    for question in judge.judge.checklist.questions if judge.part_of[place] >= 0 else ():
        verdict = judge.verdict(place, question.id)
        previous = None if before is None else before.verdict(place, question.id)
        rows.append(
            {
                "id": question.id,
                "text": question.text,
                "good": question.good,
                "says": None if verdict is None else verdict.explanation,
                "error": None if verdict is None else verdict.error,
                **_answer(verdict),
                "before": None if previous is None else _answer(previous),
            }
        )
    return rows


def _answer(verdict: Verdict | None) -> dict[str, Any]:
    return {"answer": verdict and verdict.answer, "p_yes": verdict and verdict.p_yes}


def _said(value: float) -> bool | None:
    return None if np.isnan(value) else bool(value)
