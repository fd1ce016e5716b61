"""Does the new judge do as well as the old one? Agreement in [0, 1], by example, compared example by example.

With people's labels, a judge's agreement is with people, and the new judge's is held against the old judge's. Without
them, agreement is with the old judge, whose own is 1 (METHOD.md, part 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...evaluation.pass_fail import PassLabels, threshold_for
from ...evaluation.scoring import ExampleScore, Targets
from ...evaluation.verdict_table import SaidGood
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...stats.pass_fail import passes
from ..subject import Observation
from .decision import PassTable

Column = Sequence[float | None]


@dataclass(frozen=True)
class SeenJudge:
    """One judge on the development examples and on the test examples."""

    development: Observation
    test: Observation


@dataclass(frozen=True)
class AgreementMeasure:
    """One way to measure the agreement of judges; the same way for every judge and target."""

    targets: Targets
    """Scores of people, or of the old judge."""
    labels: PassLabels | None = None
    """People's labels, where they are pass or fail."""
    old: Checklist | None = None
    """The old judge's questions, where agreement is with its verdicts; None where it is with scores."""

    @property
    def said(self) -> str:
        """What agreement is, in words."""
        if self.targets.kind == "human":
            if self.labels is not None:
                return "pass or fail as people say, with each judge's own threshold from the development examples"
            return "1 - |score - people's score|, with scores from 0 to 1"
        if self.old is not None:
            return "share of the questions with the same answer as the old judge's"
        return "1 - |score - old judge's score|, with scores from 0 to 1"

    def table(self, judge: SeenJudge, old: SeenJudge, *, development: bool = False) -> PassTable:
        """Agreement by example and dimension, or by example and question; on test, or on the development examples."""
        seen, theirs = (each.development if development else each.test for each in (judge, old))
        if self.targets.kind != "human" and self.old is not None:
            columns = same_answers(self.old, theirs, seen)
        elif self.labels is not None:
            columns = {self._whole: self._as_labelled(judge.development, seen, self.labels)}
        else:
            columns = {name: self._near(name, seen.scores) for name in self.targets.dimensions}
        return _table(seen.examples, columns)

    @property
    def _whole(self) -> str:
        names = self.targets.dimensions
        return names[0] if len(names) == 1 else "overall"

    def _as_labelled(self, development: Observation, seen: Observation, labels: PassLabels) -> Column:
        fitted = threshold_for(development.scores, development.examples, self.targets, labels).value
        mine = [self.targets.score(each) for each in seen.scores]
        said = labels.of(each.example for each in seen.scores)
        return [
            None if score is None or label is None else float(passes(np.array(score), fitted) == bool(label))
            for score, label in zip(mine, said, strict=True)
        ]

    def _near(self, dimension: str, scores: Sequence[ExampleScore]) -> Column:
        wanted = [self.targets.wanted[each.example].get(dimension) for each in scores]
        mine = [self.targets.dimension_score(each, dimension) for each in scores]
        return [
            None if score is None or other is None else 1.0 - abs(score - other)
            for score, other in zip(mine, wanted, strict=True)
        ]


def same_answers(checklist: Checklist, old: Observation, new: Observation) -> dict[str, Column]:
    """By question that counts: 1 where both judges give the good answer or both the other one, else 0.

    A question may be asked of the new judge in other words and the other way round.
    """
    theirs = SaidGood.of(checklist, old.verdicts, new.examples).answers
    mine = SaidGood.of(new.checklist or checklist, new.verdicts, new.examples).answers
    return {
        each.id: [
            None if a is None or b is None else float(a == b)
            for a, b in zip(theirs[each.id], mine[each.id], strict=True)
        ]
        for each in checklist.asked
        if each.weight > 0 and each.id in mine
    }


def _table(examples: Sequence[Example], columns: Mapping[str, Column]) -> PassTable:
    cells = np.array([[np.nan if value is None else value for value in column] for column in columns.values()])
    return PassTable(tuple(each.id for each in examples), tuple(columns), cells.reshape(len(columns), -1).T)
