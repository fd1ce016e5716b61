"""The certificate of a migration of a prompt that writes, made from the runs of its targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evaluation.scoring import mean_score
from ...memory.certificate_file import (
    KeptRequirement,
    RequirementRates,
    ShareRecord,
    SidesRecord,
    TargetRecord,
)
from ...memory.result_file import RunRecord
from ...memory.run_directory import RunDirectory, prompt_file
from ...prompts.checklist import Checklist, ComputedCheck, Question
from ...prompts.examples import Example, documents
from ...prompts.verdicts import Verdict, read_verdicts
from ...stats.correlation import correlate
from ...stats.noninferiority import MeanLimits
from ...stats.pass_fail import rate
from ...stats.resampling import Resampling, Statistic, mean_with_interval
from ..options import WriterMigrationOptions
from .decision import MigrationDecision, PassChange, PassTable, decide


@dataclass(frozen=True)
class Tested:
    """One target's outputs on test beside the old ones, requirement by requirement."""

    examples: Sequence[Example]
    requirements: Checklist
    """Those that count."""
    old: PassTable
    before: PassTable | None
    """The target with the old prompt; None where that is the accepted one too."""
    after: PassTable

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        checklist: Checklist,
        old: Iterable[Verdict],
        before: Iterable[Verdict] | None,
        after: Iterable[Verdict],
    ) -> Tested:
        """Compare verdicts on the same examples; a checker's own checks count as requirements."""
        sides = [list(old), list(before or ()), list(after)]
        counted = _counted(checklist, [verdict for side in sides for verdict in side])
        ids = [each.id for each in examples]
        tables = [PassTable.of(ids, counted, side) for side in sides]
        return cls(examples, counted, tables[0], None if before is None else tables[1], tables[2])

    @classmethod
    def read(cls, run: RunDirectory, examples: Sequence[Example], checklist: Checklist) -> Tested:
        """The verdicts that a target's run has kept. InputError where a file is damaged."""
        files = sorted((run.path / "verdicts").glob("[0-9]*-test.jsonl"))
        first, *later = [list(read_verdicts(each)) for each in files]
        old = read_verdicts(run.path / "verdicts" / "old-test.jsonl")
        return cls.of(examples, checklist, old, first, later[-1] if later else first)

    @property
    def change(self) -> PassChange:
        """The accepted prompt's outputs beside the old ones."""
        return PassChange(self.old, self.after)

    @property
    def groups(self) -> list[str] | None:
        """The document of each example, where several share one."""
        return documents(self.examples)

    def decide(self, options: WriterMigrationOptions) -> MigrationDecision:
        """Adopt, not yet or undecided."""
        return decide(self.change, options.max_loss, options.certificate_level, self.groups)

    def record(
        self, decision: MigrationDecision, result: RunRecord, run: RunDirectory, root: Path, **further: Any
    ) -> TargetRecord:
        """The target's part of the certificate."""
        resampling = Resampling(self.groups)
        of_checks = [isinstance(each, ComputedCheck) for each in self.requirements.questions]
        checks, questions = np.array(of_checks), ~np.array(of_checks)
        spent = result.per_output
        before = self.before or self.after
        return TargetRecord(
            model=str(run.read_config()["config"]["generator"]),
            settings={} if result.best.writing is None else result.best.writing.stated,
            decision=decision.answer,
            reason=decision.reason,
            needed=decision.needed,
            prompt=str(prompt_file(run.path).relative_to(root)),
            pass_rate=_sides([mean_record(each, self.groups) for each in (self.old, before, self.after)]),
            contract=_sides([_all_kept(each.passed[:, checks], self.groups) for each in (self.old, before, self.after)])
            if checks.any()
            else None,
            questions=_sides(
                [_mean(_rates(each.passed[:, questions]), resampling) for each in (self.old, before, self.after)]
            )
            if questions.any()
            else None,
            difference=limits_record(decision.limits),
            by_requirement=tuple(self._by_requirement()),
            worst=decision.worse,
            regressions=_examples_of(self.change.regressions),
            gains=_examples_of(self.change.gains),
            price_per_output=None if spent is None else spent.cost_usd,
            seconds_per_output=run.seconds_per_output(str(result.best.hash)),
            tokens_per_output=None if spent is None else spent.tokens,
            **further,
        )

    def agreement(self) -> ShareRecord | None:
        """Spearman's correlation of the old outputs' pass rates with people's scores of them; None without scores."""
        scores = [mean_score(each.human.get("overall", ())) for each in self.examples]
        if not any(score is not None for score in scores):
            return None
        return share_record(correlate(self.old.rates(), scores, Resampling(self.groups)).spearman)

    def _by_requirement(self) -> Iterable[RequirementRates]:
        before = (self.before or self.after).passed
        for place, name in enumerate(self.old.requirements):
            old, new = self.old.passed[:, place], self.after.passed[:, place]
            both = np.isfinite(old) & np.isfinite(new)
            yield RequirementRates(
                requirement=name,
                old=_share(old[both]),
                before=_share(before[both, place]),
                after=_share(new[both]),
                n=int(both.sum()),
            )


def limits_record(limits: MeanLimits) -> ShareRecord:
    """A paired difference with its one-sided limits."""
    return ShareRecord(value=limits.value, low=limits.low, high=limits.high, n=limits.n)


def mean_record(table: PassTable, groups: Sequence[str] | None) -> ShareRecord:
    """Mean share of the requirements that an output keeps."""
    return _mean(table.rates(), Resampling(groups))


def kept_requirements(checklist: Checklist) -> tuple[KeptRequirement, ...]:
    """The requirements as the certificate lists them."""
    return tuple(
        KeptRequirement(
            id=each.id,
            text=each.criterion,
            **{"from": each.origin},
            support=each.support,
            is_check=isinstance(each, ComputedCheck),
            enforced=each.weight > 0,
            clause=each.clause,
        )
        for each in checklist.questions
    )


def guarded(decision: MigrationDecision, second: MigrationDecision | None, name: str) -> MigrationDecision:
    """The decision with the second judge's word: where that is "not yet", the first judge's "adopt" is undecided."""
    if second is None or second.answer != "not_yet" or decision.answer != "adopt":
        return decision
    reason = f"Undecided: the judge says adopt, and the second judge, {name}, says: {second.reason}"
    return replace(decision, answer="undecided", reason=reason)


def _counted(checklist: Checklist, verdicts: Sequence[Verdict]) -> Checklist:
    """The requirements that count: those with a weight, and the checks that a checker of the user's own made."""
    known = {each.id for each in checklist.questions}
    own = dict.fromkeys(each.question for each in verdicts if each.question not in known)
    further = [
        ComputedCheck(id=name, text=f"Does the output pass '{name}'?", kind="checker", value=name) for name in own
    ]
    kept: list[Question] = [*(each for each in checklist.questions if each.weight > 0), *further]
    return Checklist.model_validate({"questions": kept})


def _sides(found: Sequence[ShareRecord]) -> SidesRecord:
    old, before, after = found
    return SidesRecord(old=old, before=before, after=after)


def _mean(values: Sequence[float | None], resampling: Resampling) -> ShareRecord:
    return share_record(mean_with_interval(values, resampling, "no output was judged"))


def _rates(passed: NDArray[np.float64]) -> list[float | None]:
    return [float(np.nanmean(row)) if np.isfinite(row).any() else None for row in passed]


def _all_kept(passed: NDArray[np.float64], groups: Sequence[str] | None) -> ShareRecord:
    """Share of the outputs that keep every check, with Wilson's interval."""
    whole = [None if np.isnan(row).any() else float((row == 1).all()) for row in passed]
    return share_record(rate(whole, Resampling(groups)))


def share_record(found: Statistic) -> ShareRecord:
    """A statistic as the certificate keeps it."""
    return ShareRecord(value=found.value, low=found.low, high=found.high, n=found.n)


def _share(column: NDArray[np.float64]) -> float | None:
    return float(np.nanmean(column)) if np.isfinite(column).any() else None


def _examples_of(cells: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.example for cell in cells))
