"""What judges said already of the outputs that are to be labelled; nothing is bought."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import KeptJudge
from ..evaluation.scoring import score_examples, score_on
from ..evaluation.verdict_table import SaidGood
from ..memory.run_directory import JUDGE_FILE
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.errors import InputError, did_you_mean, like_named
from ..prompts.examples import Example
from ..prompts.verdicts import Verdict, read_verdicts
from ..stats.pass_fail import HALF, passes

logger = logging.getLogger(__name__)

Cells = NDArray[np.float64]
_JUDGE_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class JudgeOpinion:
    """One judge's, example by example."""

    name: str
    scores: Cells
    """In [0, 1], NaN where verdicts are missing; shape (examples,)."""
    threshold: float
    """The score from which on an output passes."""
    answers: Cells
    """1 where the answer to a question speaks for the output, 0 where against it, NaN where there is none; shape
    (examples, questions)."""
    p_good: Cells
    """P(the answer that speaks for the output); same shape."""

    @property
    def passed(self) -> Cells:
        """1 where the output passes, 0 where not, NaN where there is no score."""
        return np.where(np.isnan(self.scores), np.nan, passes(np.nan_to_num(self.scores), self.threshold))


@dataclass(frozen=True)
class Opinions:
    """Those of all judges; the first is the judge whose agreement is shown."""

    checklist: Checklist
    judges: tuple[JudgeOpinion, ...]

    @property
    def disagreement(self) -> Cells | None:
        """How far judges are apart on each output, in [0, 1]; None for a single judge.

        Half for different verdicts, half for the distance of their scores; 0 where fewer than two have a score.
        """
        if len(self.judges) < 2:
            return None
        passed, scores = (np.vstack([getattr(each, name) for each in self.judges]) for name in ("passed", "scores"))
        both = (~np.isnan(scores)).sum(axis=0) > 1
        apart = np.zeros(scores.shape[1])
        apart[both] = (np.nanmax(passed[:, both], axis=0) - np.nanmin(passed[:, both], axis=0)) / 2
        apart[both] += (np.nanmax(scores[:, both], axis=0) - np.nanmin(scores[:, both], axis=0)) / 2
        return apart

    @property
    def doubt(self) -> Cells:
        """How unsure the judge is of each output, in [0, 1].

        Half for how near its score is to the threshold, half for how near to one half the P(yes) of the questions are that
        it answered; 0 where it has no score.
        """
        judge = self.judges[0]
        reach = max(judge.threshold, 1 - judge.threshold)
        near = 1 - np.abs(judge.scores - judge.threshold) / reach
        open_questions = 4 * judge.p_good * (1 - judge.p_good)
        answered = np.maximum(1, (~np.isnan(open_questions)).sum(axis=1))
        doubt: Cells = np.nan_to_num((near + np.nansum(open_questions, axis=1) / answered) / 2)
        return doubt


def load_opinions(
    given: Sequence[str | Path | KeptJudge],
    checklist: str | Path | Checklist | None,
    examples: Sequence[Example],
    dimension: str,
) -> tuple[Checklist | None, Opinions | None]:
    """The checklist, and what judges said of these examples; None where there is none.

    Args:
        given: Directories of runs, ``judge.yaml`` files, and files of verdicts. Of a judge the verdicts that its run kept
            are taken, and those in the files that are by its model and prompt. Others in the files are of further judges.
        checklist: What verdicts answer; needed where no judge brings one.
        examples: That are to be labelled.
        dimension: What is labelled; ``overall`` is the score over all questions.

    Raises:
        InputError: A file is wrong or missing, or no verdict in it is about one of the examples and questions.
    """
    kept: list[KeptJudge] = []
    verdicts: list[Verdict] = []
    files: list[Path] = []
    for each in given:
        if isinstance(each, KeptJudge) or Path(each).is_dir() or Path(each).suffix in _JUDGE_SUFFIXES:
            judge = load_judge(each)
            kept.append(judge)
            if not isinstance(each, KeptJudge):
                verdicts += _of_run(Path(each), judge)
        elif not Path(each).is_file():
            raise InputError(
                f"{each}: there is no such judge; a run's directory, a {JUDGE_FILE} or a file of verdicts is needed."
                f"{like_named(each)}"
            )
        else:
            files.append(Path(each))
    asked = load_checklist(checklist) if checklist is not None else kept[0].checklist if kept else None
    if asked is None:
        if files:
            raise InputError(f"{files[0]}: a checklist is needed, which says what these verdicts answer (--checklist).")
        return None, None
    if dimension not in ("overall", *asked.dimensions):
        hint = did_you_mean(dimension, asked.dimensions)
        raise InputError(f"The checklist asks about no dimension '{dimension}'.{hint}")
    ids, questions = {each.id for each in examples}, {each.id for each in asked.questions}
    for file in files:
        read = (each for each in read_verdicts(file) if each.asked is None)
        found = [each for each in read if each.example in ids and each.question in questions]
        if not found:
            raise InputError(
                f"{file}: no verdict in it is about an output of the data and a question of the checklist."
            )
        verdicts += found
    by_judge: dict[tuple[str, str], dict[tuple[str, str, int], Verdict]] = {}
    for verdict in verdicts:  # a file's verdict takes the place of the run's
        if verdict.example in ids and verdict.question in questions:
            mine = by_judge.setdefault((verdict.model, verdict.prompt), {})
            mine[verdict.example, verdict.question, verdict.replicate] = verdict
    known = {(judge.model, judge.prompt.hash): judge for judge in reversed(kept)}
    order = sorted(by_judge, key=lambda name: name not in known)
    opinions = [
        _opinion(name, known.get(name), list(by_judge[name].values()), asked, examples, dimension) for name in order
    ]
    for judge in kept:
        if (judge.model, judge.prompt.hash) not in by_judge:
            logger.warning(
                "The judge %s has said nothing of these outputs yet. Let it: askance evaluate DATA --judge RUN -o "
                "verdicts.jsonl, and give the file as a second --judge.",
                judge.model,
            )
    scored: list[JudgeOpinion] = []
    for opinion in opinions:
        if not np.isnan(opinion.scores).all():
            scored.append(opinion)
        else:
            logger.warning(
                "The judge %s has left a question open on every output, so it has no score and decides nothing here; let it answer "
                "all: askance evaluate DATA, without --stop-within and --pass-mark.",
                opinion.name,
            )
    return asked, Opinions(asked, tuple(scored)) if scored else None


def _of_run(path: Path, judge: KeptJudge) -> list[Verdict]:
    """The verdicts of the judge that a run kept: those of its last version, read by the judge's calibration."""
    files = sorted((path if path.is_dir() else path.parent).glob("verdicts/[0-9]*-*.jsonl"))
    last = [each for each in files if each.name.split("-")[0] == files[-1].name.split("-")[0]]
    found = [
        verdict
        for file in last
        for verdict in read_verdicts(file)
        if (verdict.model, verdict.prompt) == (judge.model, judge.prompt.hash)
    ]
    return found if judge.calibration is None else judge.calibration.apply(found)


def _opinion(
    name: tuple[str, str],
    judge: KeptJudge | None,
    verdicts: Sequence[Verdict],
    checklist: Checklist,
    examples: Sequence[Example],
    dimension: str,
) -> JudgeOpinion:
    soft = judge is None or judge.settings.get("scores") != "hard"
    scores = score_examples(examples, checklist, verdicts, soft=soft)
    of: tuple[str, ...] = (dimension,)
    threshold = HALF
    if judge is not None and judge.threshold is not None and dimension in ("overall", *judge.threshold_of):
        threshold, of = judge.threshold, judge.threshold_of if dimension == "overall" else of
    said = SaidGood.of(checklist, verdicts, examples)
    values = [score_on(each, of) for each in scores]
    return JudgeOpinion(
        name[0],
        np.array(values, dtype=np.float64),
        threshold,
        *(
            np.array([column[question.id] for question in checklist.questions], dtype=np.float64).T
            for column in (said.answers, said.p_good)
        ),
    )
