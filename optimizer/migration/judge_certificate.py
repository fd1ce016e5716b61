"""The certificate of a prompt that judges: whether a target may take the old judge's place, decided on test once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.scoring import mean_score
from ...memory.certificate_file import CertificateRecord, PowerRecord, RequirementRates, SidesRecord, TargetRecord
from ...prompts.examples import documents
from ..options import MigrateOptions
from .agreement import AgreementMeasure, SeenJudge, same_answers
from .certificate import kept_requirements, limits_record, mean_record
from .decision import PassChange, decide
from .power import power_lines


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
        """The certificate of one target. ``prompt`` is the path of its accepted prompt."""
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
        far = options.margin - 1e-9
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
            difference=limits_record(found.limits),
            by_requirement=self._by_question(),
            worst=found.worse,
            regressions=_examples_where(change, change.changes <= -far),
            gains=_examples_where(change, change.changes >= far),
            price_per_output=None if spent is None or spent.cost_usd is None else spent.cost_usd / spent.outputs,
            tokens_per_output=None if spent is None else spent.tokens / spent.outputs,
        )

    def _by_question(self) -> tuple[RequirementRates, ...]:
        """Share of the test examples with the old judge's answer, by question; nothing where it left scores alone."""
        checklist = self.old.test.checklist
        if checklist is None:
            return ()
        before, after = (same_answers(checklist, self.old.test, each.test) for each in (self.start, self.best))
        return tuple(
            RequirementRates(
                requirement=name, old=1.0, before=mean_score(before[name]), after=mean_score(column), n=_n(column)
            )
            for name, column in after.items()
        )

    def _power(self) -> tuple[PowerRecord, ...]:
        """The loss that the test can rule out, as assumed at first and as measured on development."""
        options, development = self.options, self.best.development.examples
        tables = (self.measure.table(each, self.old, development=True) for each in (self.old, self.best))
        seen = {"development": PassChange(*tables).differences(), "documents": documents(development)}
        return tuple(power_lines(len(self.best.test.examples), options.max_loss, options.certificate_level, **seen))


def merged(parts: Sequence[tuple[str, CertificateRecord]]) -> CertificateRecord:
    """One certificate of several targets; each part comes with the folder that its prompt's path begins with."""
    first = parts[0][1]
    targets = {
        name: record.model_copy(update={"prompt": f"{folder}/{record.prompt}"})
        for folder, part in parts
        for name, record in part.targets.items()
    }
    power = (first.power[0], *(line for _, part in parts for line in part.power[1:]))
    return first.model_copy(update={"targets": targets, "power": power, "looks": max(part.looks for _, part in parts)})


def _examples_where(change: PassChange, wanted: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.example for cell in change.old.cells(wanted)))


def _n(column: Sequence[float | None]) -> int:
    return sum(each is not None for each in column)
