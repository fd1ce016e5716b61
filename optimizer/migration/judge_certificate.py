"""The certificate of a prompt that judges: whether a target may take the old judge's place, decided on test once.

Agreement, in [0, 1], is compared example by example. With people's labels, each judge's agreement is with people.
Without labels it is with the old judge, whose own agreement is 1 (METHOD.md, part 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...evaluation.pass_fail import PassLabels, threshold_for
from ...evaluation.scoring import ExampleScore, Targets, mean_score
from ...evaluation.verdict_table import SaidGood
from ...memory.certificate_file import CertificateRecord, PowerRecord, RequirementRates, SidesRecord, TargetRecord
from ...prompts.checklist import Checklist
from ...prompts.examples import Example, documents
from ...stats.pass_fail import passes
from ..options import MigrateOptions
from ..subject import Observation
from .certificate import kept_requirements, mean_record, share_record
from .decision import PassChange, PassTable, decide, power_lines

Column = Sequence[float | None]


@dataclass(frozen=True)
class SeenJudge:
    """One judge on the development examples and on the test examples."""

    development: Observation
    test: Observation


@dataclass(frozen=True)
class AgreementMeasure:
    """The way to measure the agreement of judges; the same way for every judge and target."""

    targets: Targets
    """Scores of people, or of the old judge."""
    labels: PassLabels | None = None
    """People's labels, where they are pass or fail."""
    old: Checklist | None = None
    """The old judge's questions, where agreement is with its verdicts; None where it is with scores."""

    @property
    def said(self) -> str:
        """The meaning of agreement, in words."""
        if self.targets.kind == "human":
            if self.labels is not None:
                return "pass or fail as people say, with each judge's own threshold from the development examples"
            return "1 - |score - people's score|, with scores from 0 to 1"
        if self.old is not None:
            return "share of the questions with the same answer as the old judge's"
        return "1 - |score - old judge's score|, with scores from 0 to 1"

    def table(self, judge: SeenJudge, old: SeenJudge, *, development: bool = False) -> PassTable:
        """Return agreement by example and dimension, or by example and question; on test or on development."""
        seen, old_seen = (each.development if development else each.test for each in (judge, old))
        if self.targets.kind != "human" and self.old is not None:
            columns = same_answers(self.old, old_seen, seen)
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
        scores = [self.targets.score(each) for each in seen.scores]
        said = labels.of(each.example for each in seen.scores)
        return [
            None if score is None or label is None else float(passes(np.array(score), fitted) == bool(label))
            for score, label in zip(scores, said, strict=True)
        ]

    def _near(self, dimension: str, scores: Sequence[ExampleScore]) -> Column:
        wanted = [self.targets.wanted[each.example].get(dimension) for each in scores]
        judge_scores = [self.targets.dimension_score(each, dimension) for each in scores]
        return [
            None if score is None or other is None else 1.0 - abs(score - other)
            for score, other in zip(judge_scores, wanted, strict=True)
        ]


def same_answers(checklist: Checklist, old: Observation, new: Observation) -> dict[str, Column]:
    """Return by question that counts: 1 where both judges give the good answer or both the other one, else 0. The new
    judge may be asked the question in other words and with the opposite polarity."""
    old_answers = SaidGood.of(checklist, old.verdicts, new.examples).answers
    new_answers = SaidGood.of(new.checklist or checklist, new.verdicts, new.examples).answers
    return {
        each.id: [
            None if a is None or b is None else float(a == b)
            for a, b in zip(old_answers[each.id], new_answers[each.id], strict=True)
        ]
        for each in checklist.asked
        if each.weight > 0 and each.id in new_answers
    }


def _table(examples: Sequence[Example], columns: Mapping[str, Column]) -> PassTable:
    cells = np.array([[np.nan if value is None else value for value in column] for column in columns.values()])
    return PassTable(tuple(each.id for each in examples), tuple(columns), cells.reshape(len(columns), -1).T)


@dataclass(frozen=True)
class JudgesCompared:
    """The old judge, and the target with its starting prompt and with the accepted one."""

    measure: AgreementMeasure
    options: MigrateOptions
    old: SeenJudge
    start: SeenJudge
    best: SeenJudge

    def certificate(
        self, source: str, target: str, model: str, settings: Mapping[str, Any], prompt: str
    ) -> CertificateRecord:
        """Make the certificate of one target. ``prompt`` is the path of its accepted prompt."""
        options, checklist = self.options, self.old.test.checklist
        return CertificateRecord(
            kind="judge",
            source=source,
            max_loss=options.max_loss,
            level=options.certificate_level,
            measure=self.measure.said,
            requirements=() if checklist is None else kept_requirements(checklist),
            targets={target: self._record(model, settings, prompt)},
            power=self._power(),
        )

    def _record(self, model: str, settings: Mapping[str, Any], prompt: str) -> TargetRecord:
        options, examples = self.options, self.best.test.examples
        sides = {"old": self.old, "before": self.start, "after": self.best}
        tables = {name: self.measure.table(each, self.old) for name, each in sides.items()}
        change = PassChange(tables["old"], tables["after"])
        found = decide(change, options.max_loss, options.certificate_level, documents(examples))
        threshold = options.margin - 1e-9  # a change of the margin itself counts, in spite of rounding
        spent = self.best.test.spent
        rates = {name: mean_record(table, documents(examples)) for name, table in tables.items()}
        return TargetRecord(
            model=model,
            settings=dict(settings),
            decision=found.answer,
            reason=found.reason,
            needed=found.needed,
            prompt=prompt,
            pass_rate=SidesRecord(**rates),
            difference=share_record(found.limits),
            by_requirement=self._by_question(),
            worst=found.worse,
            regressions=_examples_where(change, change.changes <= -threshold),
            gains=_examples_where(change, change.changes >= threshold),
            price_per_output=None if spent is None or spent.cost_usd is None else spent.cost_usd / spent.outputs,
            tokens_per_output=None if spent is None else spent.tokens / spent.outputs,
        )

    def _by_question(self) -> tuple[RequirementRates, ...]:
        """Return by question the share of test examples with the old judge's answer; empty if it left only scores."""
        checklist = self.old.test.checklist
        if checklist is None:
            return ()
        before, after = (same_answers(checklist, self.old.test, each.test) for each in (self.start, self.best))
        return tuple(
            RequirementRates(
                requirement=name,
                old=1.0,
                before=mean_score(before[name]),
                after=mean_score(column),
                n=len(column) - list(column).count(None),
            )
            for name, column in after.items()
        )

    def _power(self) -> tuple[PowerRecord, ...]:
        """Return the loss that the test can rule out, as assumed at first and as measured on development."""
        options, development = self.options, self.best.development.examples
        tables = (self.measure.table(each, self.old, development=True) for each in (self.old, self.best))
        seen = {"development": PassChange(*tables).differences(), "documents": documents(development)}
        return tuple(power_lines(len(self.best.test.examples), options.max_loss, options.certificate_level, **seen))


def merged(parts: Sequence[tuple[str, CertificateRecord]]) -> CertificateRecord:
    """Merge the certificates of several targets. Each part comes with the folder to put before its prompt's path."""
    first = parts[0][1]
    targets = {
        name: record.model_copy(update={"prompt": f"{folder}/{record.prompt}"})
        for folder, part in parts
        for name, record in part.targets.items()
    }
    # the first line, by the assumed deviation, is the same for all targets
    power = (first.power[0], *(line for _, part in parts for line in part.power[1:]))
    return first.model_copy(update={"targets": targets, "power": power, "looks": max(part.looks for _, part in parts)})


def _examples_where(change: PassChange, wanted: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.example for cell in change.old.cells(wanted)))
