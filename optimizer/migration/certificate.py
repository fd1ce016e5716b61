"""Make the certificate for the migration of a prompt that writes, from the runs of its targets.

The certificate also has measures of content, which code computes on old and new outputs. They decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.measures.similarity import can_embed
from ...agents.measures.values import Value, values_of
from ...evaluation.measures.fitting import measure_named, usual_measures
from ...evaluation.scoring import mean_score
from ...evaluation.view import Shown, View
from ...memory.certificate_file import (
    TARGETS,
    CertificateDecision,
    CertificateRecord,
    ContentRecord,
    KeptRequirement,
    RequirementRates,
    ShareRecord,
    SidesRecord,
    TargetRecord,
    target_folder,
)
from ...memory.result_file import RunRecord
from ...memory.run_directory import RunDirectory, prompt_file
from ...models.budget import price_said
from ...prompts.checklist import Checklist, ComputedCheck, ComputedMeasure, Question
from ...prompts.criteria.measures import MEASURES, parse_measure
from ...prompts.errors import as_typed
from ...prompts.examples import Example, documents
from ...prompts.formatting import Figure, count, money
from ...prompts.verdicts import Verdict, read_verdicts
from ...stats.correlation import correlate
from ...stats.noninferiority import MeanLimits
from ...stats.pass_fail import rate
from ...stats.resampling import Resampling, Statistic, mean_with_interval
from ..options import WriterMigrationOptions
from ..run_result import RunResult
from .decision import MigrationDecision, PassChange, PassTable, decide


@dataclass(frozen=True)
class Tested:
    """One target's test outputs compared with the old ones, requirement by requirement."""

    examples: Sequence[Example]
    requirements: Checklist
    """The requirements that count."""
    old: PassTable
    before: PassTable | None
    """The target's outputs with the old prompt; None where only ``after`` is compared."""
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
        """Read the verdicts that a target's run has kept. Raises InputError where a file is damaged."""
        files = sorted((run.path / "verdicts").glob("[0-9]*-test.jsonl"))
        first, *later = [list(read_verdicts(each)) for each in files]
        old = read_verdicts(run.path / "verdicts" / "old-test.jsonl")
        return cls.of(examples, checklist, old, first, later[-1] if later else first)

    @property
    def change(self) -> PassChange:
        """The accepted prompt's outputs compared with the old ones."""
        return PassChange(self.old, self.after)

    @property
    def groups(self) -> list[str] | None:
        """The document of each example, where several share one."""
        return documents(self.examples)

    def decide(self, options: WriterMigrationOptions) -> MigrationDecision:
        """Decide: adopt, not yet or undecided."""
        return decide(self.change, options.max_loss, options.certificate_level, self.groups)

    def record(
        self, decision: MigrationDecision, result: RunRecord, run: RunDirectory, root: Path, **further: Any
    ) -> TargetRecord:
        """Make the target's part of the certificate."""
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
            difference=share_record(decision.limits),
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
        """Return Spearman's correlation of the old outputs' pass rates with people's scores; None without scores."""
        scores = [mean_score(each.human.get("overall", ())) for each in self.examples]
        if not any(score is not None for score in scores):
            return None
        return share_record(correlate(self.old.rates(), scores, Resampling(self.groups)).spearman)

    def _by_requirement(self) -> Iterable[RequirementRates]:
        before = (self.before or self.after).passed
        for place, name in enumerate(self.old.requirements):
            old, new = self.old.passed[:, place], self.after.passed[:, place]
            has_both = np.isfinite(old) & np.isfinite(new)
            yield RequirementRates(
                requirement=name,
                old=_share(old[has_both]),
                before=_share(before[has_both, place]),
                after=_share(new[has_both]),
                n=int(has_both.sum()),
            )


def mean_record(table: PassTable, groups: Sequence[str] | None) -> ShareRecord:
    """Return the mean share of the requirements that an output keeps."""
    return _mean(table.rates(), Resampling(groups))


def kept_requirements(checklist: Checklist) -> tuple[KeptRequirement, ...]:
    """Return the requirements as the certificate lists them."""
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
    """Combine both judges' decisions: "adopt" becomes "undecided" where the second judge says "not yet"."""
    if second is None or second.answer != "not_yet" or decision.answer != "adopt":
        return decision
    reason = f"Undecided: the judge says adopt, and the second judge, {name}, says: {second.reason}"
    return replace(decision, answer="undecided", reason=reason)


def _counted(checklist: Checklist, verdicts: Sequence[Verdict]) -> Checklist:
    """Return the requirements that count: those with a weight, and the checks that the user's own checker made."""
    known = {each.id for each in checklist.questions}
    names = dict.fromkeys(each.question for each in verdicts if each.question not in known)
    checks = [
        ComputedCheck(id=name, text=f"Does the output pass '{name}'?", kind="checker", value=name) for name in names
    ]
    kept: list[Question] = [*(each for each in checklist.questions if each.weight > 0), *checks]
    return Checklist.model_validate({"questions": kept})


def _sides(found: Sequence[ShareRecord]) -> SidesRecord:
    old, before, after = found
    return SidesRecord(old=old, before=before, after=after)


def _mean(values: Sequence[float | None], resampling: Resampling) -> ShareRecord:
    return share_record(mean_with_interval(values, resampling, "no output was judged"))


def _rates(passed: NDArray[np.float64]) -> list[float | None]:
    return [float(np.nanmean(row)) if np.isfinite(row).any() else None for row in passed]


def _all_kept(passed: NDArray[np.float64], groups: Sequence[str] | None) -> ShareRecord:
    """Return the share of the outputs that keep every check, with Wilson's interval."""
    whole = [None if np.isnan(row).any() else float((row == 1).all()) for row in passed]
    return share_record(rate(whole, Resampling(groups)))


def share_record(found: Statistic | MeanLimits) -> ShareRecord:
    """Return the certificate's record of a statistic, or of a paired difference with its one-sided limits."""
    return ShareRecord(value=found.value, low=found.low, high=found.high, n=found.n)


def _share(column: NDArray[np.float64]) -> float | None:
    return float(np.nanmean(column)) if np.isfinite(column).any() else None


def _examples_of(cells: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.example for cell in cells))


CONTENT = ("similarity", "mean_supported", "covered", "names_new", "numbers_new")
"""Measures of an output against a text: similarity, support by it, how much of it is covered, what is new."""


def content_records(old: Sequence[Example], new: Sequence[Example]) -> tuple[ContentRecord, ...]:
    """Measure old and new outputs against the texts that all examples have, and their paired difference. Without the
    extra ``memory`` there are no similarities. Examples without one of the two outputs are left out."""
    written = {each.id: each for each in new if each.output}
    before = [each for each in old if each.output and each.id in written]
    after = [written[each.id] for each in before]
    if not before:
        return ()
    names = usual_measures(before, "relations", embeds=can_embed())
    measures = [measure_named(name) for name in names if parse_measure(name)[0] in CONTENT]
    olds, news = values_of(measures, before), values_of(measures, after)
    sampling, ids = Resampling(documents(before)), [each.id for each in before]
    return tuple(
        _record(each, [olds[each.id][name] for name in ids], [news[each.id][name] for name in ids], sampling)
        for each in measures
    )


def _record(
    measure: ComputedMeasure, before: Sequence[Value], after: Sequence[Value], sampling: Resampling
) -> ContentRecord:
    old, new = ([None if isinstance(value, str) else value for value in side] for side in (before, after))
    changes = [None if a is None or b is None else b - a for a, b in zip(old, new, strict=True)]
    found = [mean_with_interval(each, sampling, "no output has it") for each in (old, new, changes)]
    template, against = MEASURES[measure.name].told, measure.against
    return ContentRecord(
        measure=measure.measure,
        text=template.format(against).removesuffix(":"),
        higher_is_better=measure.good == "yes",
        old=share_record(found[0]),
        after=share_record(found[1]),
        difference=share_record(found[2]),
    )


def content_lines(name: str, target: TargetRecord) -> Iterator[str]:
    """Yield a sentence where measures of the new outputs' content are worse beyond chance."""
    worse = [each for each in target.content if each.is_worse]
    if worse:
        comparisons = "; ".join(
            f"{each.text} {Figure(each.old.value, form='.3g')} before, {Figure(each.after.value, form='.3g')} now"
            for each in worse
        )
        yield f"{name}, content as code measures it (decides nothing; read some outputs): {comparisons}."


WORDS: dict[CertificateDecision, str] = {"adopt": "adopt", "not_yet": "not yet", "undecided": "undecided"}
"""Decisions, as people read them."""


@dataclass(frozen=True, repr=False)
class MigrationResult(Shown):
    """The result of a migration: everything in ``certificate.json``."""

    directory: Path
    certificate: CertificateRecord

    @cached_property
    def runs(self) -> dict[str, RunResult]:
        """The run of each target, by its name."""
        folders = {name: self.directory / TARGETS / target_folder(name) for name in self.certificate.targets}
        return {name: RunResult(each, RunDirectory(each).read_result()) for name, each in folders.items()}

    def _view(self) -> View:
        return View(
            f"migrate in {self.directory}",
            told(self.certificate, self.directory).splitlines(),
            {"targets": lambda: [*target_rows(self.certificate)]},
            brief=headline(self.certificate),
            captions={"targets": f"{measured(self.certificate)} on test; price of one output"},
        )


def told(certificate: CertificateRecord, run: Path | None = None) -> str:
    """Say the decision on each target and what to do next, one sentence a line. Paths begin with ``run``."""
    return "\n".join([*decisions(certificate), *_next_steps(certificate, run), *cost_said(certificate)])


def cost_said(certificate: CertificateRecord) -> Iterator[str]:
    """Yield a sentence on the calls, tokens and price of the migration, where they are known."""
    if certificate.calls is not None and certificate.tokens is not None:
        price = price_said(vars(certificate))
        yield f"It took {count(certificate.calls, 'call')}, {count(certificate.tokens, 'token')}, {price}."


def headline(certificate: CertificateRecord) -> str:
    """Say the decisions on all targets in one phrase."""
    adopted = [name for name, each in certificate.targets.items() if each.decision == "adopt"]
    if len(certificate.targets) != 1:
        many = len(certificate.targets)
        named = f": {', '.join(adopted)}" if 0 < len(adopted) <= 3 else ""
        return f"{len(adopted) or 'None'} of {many} targets may take the old model's place{named}"
    ((name, record),) = certificate.targets.items()
    return {
        "adopt": f"{name} may take the old model's place",
        "not_yet": f"{name} may not take the old model's place yet",
        "undecided": f"It is undecided whether {name} may take the old model's place",
    }[record.decision]


def measured(certificate: CertificateRecord) -> str:
    """Return the name of the figure that the decision is about."""
    return "Pass rate" if certificate.kind == "generator" else "Agreement"


def decisions(certificate: CertificateRecord) -> list[str]:
    """Return the decision on each target with its reason."""
    return [
        line
        for name, each in certificate.targets.items()
        for line in (f"{name}: {each.reason}", *content_lines(name, each))
    ]


def target_rows(certificate: CertificateRecord) -> Iterator[dict[str, Any]]:
    """Yield one row a target, short enough for a terminal."""
    for name, target in certificate.targets.items():
        yield {"target": name, "decision": WORDS[target.decision]} | {
            **{name: share and Figure(share.value, form=".3f") for name, share in target.pass_rate},
            "contract": None if target.contract is None else Figure(target.contract.after.value, form=".0%"),
            "price": None if target.price_per_output is None else money(target.price_per_output),
        }


def _next_steps(certificate: CertificateRecord, run: Path | None) -> Iterator[str]:
    """Yield what a reader does next, by decision."""
    folder = Path() if run is None else run
    names_by_decision: dict[str, list[str]] = {}
    for name, each in certificate.targets.items():
        names_by_decision.setdefault(each.decision, []).append(name)
    for name in names_by_decision.get("adopt", ()):
        yield (
            f"Next for {name}: use {folder / certificate.targets[name].prompt}, with the settings in certificate.json."
        )
    if "not_yet" in names_by_decision:
        yield (
            f"Next for {', '.join(names_by_decision['not_yet'])}: read what is still worse, case by case, "
            f"in {folder / 'report.html'}."
        )
    for name in names_by_decision.get("undecided", ()):
        needed = certificate.targets[name].needed
        more = "more test rows" if needed is None else f"about {count(needed, 'test row')}"
        yield f"Next for {name}: migrate again with {more} and another --run; until then the old model is the safer choice."
    if "adopt" in names_by_decision and certificate.kind == "generator":
        yield f"Look again later: askance migrate --verify {as_typed(folder)}"
