"""The certificate of a prompt that judges: whether a target may take the old judge's place, decided on test once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...memory.certificate_file import (
    CertificateRecord,
    KeptRequirement,
    PowerRecord,
    RequirementRates,
    ShareRecord,
    SidesRecord,
    TargetRecord,
)
from ...prompts.checklist import Checklist
from ...prompts.examples import documents
from ...prompts.formatting import count
from ...stats.noninferiority import examples_needed, loss_ruled_out, mean_limits
from ...stats.resampling import Resampling, mean_with_interval
from ..options import MigrateOptions
from .agreement import AgreementMeasure, SeenJudge, same_answers
from .decision import PassChange, PassTable, decide

ASSUMED = 0.3
"""Standard deviation of the difference, where nothing is measured yet."""


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
            power=(power_of(len(self.best.test.examples), options), self._measured_power()),
        )

    def _record(self, model: str, settings: Mapping[str, Any], prompt: str) -> TargetRecord:
        options, examples = self.options, self.best.test.examples
        old, before, after = (self.measure.table(each, self.old) for each in (self.old, self.start, self.best))
        change = PassChange(old, after)
        found = decide(change, options.max_loss, options.certificate_level, documents(examples))
        far = options.margin - 1e-9
        limits = found.limits
        return TargetRecord(
            model=model,
            settings=dict(settings),
            decision=found.answer,
            reason=found.reason,
            needed=found.needed,
            prompt=prompt,
            pass_rate=SidesRecord(old=self._mean(old), before=self._mean(before), after=self._mean(after)),
            difference=ShareRecord(value=limits.value, low=limits.low, high=limits.high, n=limits.n),
            by_requirement=self._by_question(),
            worst=found.worse,
            regressions=_examples_where(change, change.changes <= -far),
            gains=_examples_where(change, change.changes >= far),
        )

    def _mean(self, table: PassTable) -> ShareRecord:
        resampling = Resampling(documents(self.best.test.examples), self.options.resamples, seed=self.options.seed)
        found = mean_with_interval(table.rates(), resampling, "no example was judged")
        return ShareRecord(value=found.value, low=found.low, high=found.high, n=found.n)

    def _by_question(self) -> tuple[RequirementRates, ...]:
        """Share of the test examples with the old judge's answer, by question; nothing where it left scores alone."""
        checklist = self.old.test.checklist
        if checklist is None:
            return ()
        before, after = (same_answers(checklist, self.old.test, each.test) for each in (self.start, self.best))
        return tuple(
            RequirementRates(
                requirement=name, old=1.0, before=_mean_of(before[name]), after=_mean_of(column), n=_n(column)
            )
            for name, column in after.items()
        )

    def _measured_power(self) -> PowerRecord:
        tables = (self.measure.table(each, self.old, development=True) for each in (self.old, self.best))
        seen = mean_limits(PassChange(*tables).differences(), groups=documents(self.best.development.examples))
        return power_of(len(self.best.test.examples), self.options, seen.deviation)


def kept_requirements(checklist: Checklist) -> tuple[KeptRequirement, ...]:
    """The questions and checks of a judge, as a certificate lists them."""
    rows = (
        {"id": each.id, "text": each.text, "from": each.origin, "enforced": each.weight > 0, "clause": each.clause}
        | {"is_check": each not in checklist.asked}
        for each in checklist.questions
    )
    return tuple(KeptRequirement.model_validate(row) for row in rows)


def power_of(examples: int, options: MigrateOptions, deviation: float | None = None) -> PowerRecord:
    """The loss that so many test examples can rule out; a deviation that is not known is assumed."""
    level, spread = options.certificate_level, ASSUMED if deviation is None else deviation
    return PowerRecord(
        examples=examples,
        deviation=spread,
        assumed=deviation is None,
        loss=loss_ruled_out(examples, spread, level),
        needed=examples_needed(spread, options.max_loss, level),
    )


def power_said(power: PowerRecord, max_loss: float) -> str:
    """The power of a test before anything is bought, as a sentence."""
    how = (
        f"assuming a standard deviation of {power.deviation:g}" if power.assumed else f"deviation {power.deviation:.2f}"
    )
    enough = "" if power.loss <= max_loss else f"; {max_loss:g} takes about {count(power.needed, 'test example')}"
    return (
        f"with {count(power.examples, 'test example')} a loss of {power.loss:.2f} beside the old judge is ruled out in "
        f"8 of 10 cases where there is none ({how}){enough}"
    )


def merged(parts: Sequence[tuple[str, CertificateRecord]]) -> CertificateRecord:
    """One certificate of several targets; each part comes with the folder that its prompt's path begins with."""
    first = parts[0][1]
    targets = {
        name: record.model_copy(update={"prompt": f"{folder}/{record.prompt}"})
        for folder, part in parts
        for name, record in part.targets.items()
    }
    power = (first.power[0], *(part.power[1] for _, part in parts))
    return first.model_copy(update={"targets": targets, "power": power, "looks": max(part.looks for _, part in parts)})


def _examples_where(change: PassChange, wanted: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.example for cell in change.old.cells(wanted)))


def _mean_of(column: Sequence[float | None]) -> float | None:
    known = [each for each in column if each is not None]
    return float(np.mean(known)) if known else None


def _n(column: Sequence[float | None]) -> int:
    return sum(each is not None for each in column)
