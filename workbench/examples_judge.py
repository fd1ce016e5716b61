"""A judge's verdicts for the page Examples: a row an example, a column a question.

Test examples have none here: their one look was the run's. Validation has some once a look at it was counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..evaluation.kept_judge import KeptJudge
from ..labelling.labels_file import texts_of
from ..labelling.next_output import JudgeOpinion, Opinions
from ..prompts.examples import Example
from ..prompts.verdicts import Verdict, VerdictColumns
from ..stats.pass_fail import HALF
from .judge_bench import Cells, JudgeBench, Split

UNSURE = 0.1
"""A score that is no further than this from the threshold is an unsure one."""


@dataclass(frozen=True)
class JudgeColumns:
    """One judge's scores and answers; NaN where there are none, or they are shut."""

    judge: KeptJudge
    shown: frozenset[Split]
    """Splits whose verdicts may be seen."""
    threshold: float
    scores: Cells
    """Shape (examples,)."""
    passed: Cells
    """1 where the output passes, 0 where not; shape (examples,)."""
    people: Cells
    """1 where people pass an output, 0 where they fail it, by the run's data; shape (examples,)."""
    p_good: Cells
    """P(the good answer) as the scores take it; shape (examples, questions)."""
    answers: Cells
    """1 for yes, 0 for no; shape (examples, questions)."""
    parts: Sequence[VerdictColumns]
    """Verdicts by split."""
    part_of: NDArray[np.int8]
    """Place among ``parts`` of each example's verdicts; -1 where it has none."""
    row_of: NDArray[np.int32]
    """Place of each verdict in its part, -1 where there is none; shape (examples, questions)."""

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Column of each question, by its id."""
        return {each.id: place for place, each in enumerate(self.judge.checklist.questions)}

    def verdict(self, example: int, question: str) -> Verdict | None:
        """The verdict on the example at a place; None where there is none."""
        row = self.row_of[example, self.places[question]] if question in self.places else -1
        return None if row < 0 else self.parts[self.part_of[example]][int(row)]

    @cached_property
    def opinions(self) -> Opinions:
        """The judge as labelling takes it, to choose what is asked first."""
        good = np.array([each.good == "yes" for each in self.judge.checklist.questions])
        answers = np.where(good, self.answers, 1.0 - self.answers)
        one = JudgeOpinion(self.judge.asked, self.scores, self.threshold, answers, self.p_good)
        return Opinions(self.judge.checklist, (one,))

    @cached_property
    def distance(self) -> Cells:
        """How far each score is from the threshold, infinity where there is none."""
        return np.nan_to_num(np.abs(self.scores - self.threshold), nan=np.inf)

    def says_yes(self, question: str) -> NDArray[np.bool_]:
        """Whether the answer to a question is yes; shape (examples,)."""
        yes: NDArray[np.bool_] = self.answers[:, self.places[question]] == 1
        return yes

    def changed_since(self, before: JudgeColumns) -> NDArray[np.bool_]:
        """Whether an example is on another side than by an earlier judge, or has another answer to a question that both
        ask. False where either of them said nothing."""
        changed = _differ(self.passed, before.passed)
        for name, place in self.places.items():
            if name in before.places:
                changed |= _differ(self.answers[:, place], before.answers[:, before.places[name]])
        return changed


def judge_columns(bench: JudgeBench, examples: Sequence[Example], shown: frozenset[Split]) -> JudgeColumns:
    """Columns for these examples, in their order, of the splits that are shown. A verdict of other texts than an
    example's is none of it."""
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
        here, rows = np.array(same, dtype=np.intp).reshape(-1, 2).T
        state = bench.kept[split]
        scores[here], passed[here], p_good[here] = state.decided[rows], state.passed[rows], part.worth[rows]
        people[here] = np.where(part.of_people[rows] == HALF, np.nan, part.of_people[rows] > HALF)
        people[here] = np.where(np.isnan(part.of_people[rows]), np.nan, people[here])
        part_of[here] = number
        verdicts = part.verdicts
        example = verdicts.places("example", [each.id for each in examples])
        question = verdicts.places("question", [each.id for each in judge.checklist.questions])
        mine = (example >= 0) & (question >= 0) & (verdicts.numbers("replicate") == 0)
        mine[mine] = part_of[example[mine]] == number
        said = verdicts.numbers("answer")[mine]
        answers[example[mine], question[mine]] = np.where(said < 0, np.nan, said)
        row_of[example[mine], question[mine]] = np.flatnonzero(mine)
    verdicts_of = [each.verdicts for each in bench.parts.values()]
    return JudgeColumns(
        judge, shown, bench.threshold, scores, passed, people, p_good, answers, verdicts_of, part_of, row_of
    )


def _differ(one: Cells, other: Cells) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one != other) & ~np.isnan(one) & ~np.isnan(other)
    return found
