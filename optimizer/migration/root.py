"""A migration of a prompt that writes: requirements first, then a run for each target, then the certificate.

The directory holds the old outputs, ``requirements.yaml`` and ``certificate.json``; ``targets/NAME/`` holds a run of
the loop for each target. Every part can be killed and resumed: bought answers are in the stores, and each run in
``targets/`` is a run of its own. Months later, :func:`verify` has the targets write the test outputs anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agents.checks import computed_verdicts
from ...agents.evaluator import Evaluator
from ...agents.generator import Generated, Generator
from ...agents.pairwise import AS_IT_IS, SWAPPED, PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from ...agents.traces.replay import ReplayingGenerator
from ...evaluation.judge_file import prompt_of
from ...memory.certificate_file import (
    CERTIFICATE_FILE,
    CertificateRecord,
    ShareRecord,
    VerificationRecord,
    VerifiedTarget,
    read_certificate,
)
from ...memory.run_directory import RunDirectory, prompt_file, read_exactly
from ...memory.verdict_store import VerdictStore
from ...models.base import ModelError
from ...models.event_loops import run_sync
from ...models.gateway import Gateway
from ...models.progress import Watcher
from ...models.resolve import Models
from ...models.session import session
from ...models.writing import AS_THE_RUN, writing_beside
from ...prompts.checklist import Checklist
from ...prompts.errors import CoverageError, InputError, did_you_mean
from ...prompts.examples import Example, documents
from ...prompts.messages import told
from ...prompts.preferences import Preference
from ...prompts.prompt import generator_messages
from ...prompts.text_files import read_text, write_whole
from ...prompts.verdicts import Verdict, read_verdicts
from ...stats.resampling import Resampling, mean_with_interval
from ..events import Callback
from ..job import model_name
from ..run_result import RunResult
from .certificate import MigrationResult, Tested, content_records, guarded, kept_requirements, mean_record, share_record
from .decision import MigrationDecision, power_lines, power_said
from .inputs import WriterMigration, migration_inputs, read_migration
from .judges import folder_of, run_target
from .preparation import (
    REQUIREMENTS,
    MigrationPart,
    Prepared,
    fixed_requirements,
    old_writer,
    outputs_subject,
    prepared_migration,
)
from .recorded import RECORDED

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...models.base import AnswerStore
    from ...models.progress import Watcher


BETTER = "Does the output do better what the conversation asks for?"
"""The only question in the direct comparison of old and new outputs."""


def written_outputs(run: Path, examples: Sequence[Example]) -> list[Example]:
    """Return the examples with the outputs that a target's run has kept. Examples without an output are left out."""
    rows = map(json.loads, read_text(run / "outputs.jsonl").splitlines())
    outputs = {row["id"]: told(row["output"]) for row in rows if row.get("output") is not None}
    return [each.model_copy(update={"output": outputs[each.id]}) for each in examples if each.id in outputs]


@dataclass(frozen=True)
class SecondOpinions:
    """Asks for further opinions on old and new outputs."""

    migration: WriterMigration
    checklist: Checklist
    models: Models
    gateway: Gateway
    watcher: Watcher

    async def second(self, examples: Sequence[Example], new: Sequence[Example]) -> MigrationDecision | None:
        """Return the decision by the second judge's answers; None without a second judge or questions."""
        migration, asked = self.migration, self.checklist.asked_alone
        if migration.second_judge is None or migration.judge is None or asked is None:
            return None
        judge = self.models.get(migration.second_judge)
        self.watcher.phase(f"{judge.name}, the second judge, looks at the test outputs")
        judging = migration.options.judging
        evaluator = Evaluator(self.gateway, judge, migration.judge.prompt, asked, judging, role="second_judge")

        async def judged(outputs: Sequence[Example]) -> list[Verdict]:
            computed = computed_verdicts(self.checklist.checks, outputs, migration.prompt.hash, {})
            return [*await evaluator.judge(outputs), *computed]

        tested = Tested.of(examples, self.checklist, await judged(examples), None, await judged(new))
        return tested.decide(migration.options)

    async def preferred(self, examples: Sequence[Example], new: Sequence[Example]) -> ShareRecord | None:
        """Return the share of inputs whose new output the judge prefers; None without a judge. Each pair is shown
        in both orders, and counts one half where the orders disagree."""
        migration = self.migration
        if migration.judge is None:
            return None
        judge = self.models.get(migration.judge.model)
        self.watcher.phase(f"{judge.name} compares old and new outputs")
        old = {each.id: each for each in examples}
        pairs = [self._pair(old[each.id], each) for each in new]
        checklist = Checklist.model_validate({"questions": [{"id": "better", "text": BETTER}]})
        judging = replace(migration.options.judging, mode="each", explain="never", score_scale=None, p_yes="hard")
        evaluator = PairEvaluator(self.gateway, judge, pairwise_prompt(), checklist, judging, role="judge")
        shown = [each for pair in pairs for each in ordered_examples(pair, swap=True)]
        first = {each.example: each.answer for each in await evaluator.judge(shown)}
        shares = [_new_is_better(first, pair.id) for pair in pairs]
        found = mean_with_interval(shares, Resampling(documents(new)), "no pair was compared")
        return share_record(found)

    def _pair(self, old: Example, new: Example) -> Preference:
        said = generator_messages(self.migration.prompt, old)
        asked = "\n\n".join(f"{role}: {content}" for role, content in said)
        return Preference(id=old.id, input=asked, output_a=old.output or "", output_b=new.output or "", preferred="tie")


def _new_is_better(first: Mapping[str, bool | None], pair: str) -> float | None:
    """Return 1 (0) if the new output is better (worse) in both orders, .5 if they disagree; None if one is missing."""
    old_first, new_first = first.get(pair_id(pair, AS_IT_IS)), first.get(pair_id(pair, SWAPPED))
    if old_first is None or new_first is None:
        return None
    return (float(not old_first) + float(new_first)) / 2


def run_migration(
    migration: WriterMigration,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    report: Callable[[Path], object] | None = None,
    page: Callable[[Path], object] | None = None,
    *,
    yes: bool = False,
    ask_first: bool = False,
    approved: Collection[str] = (),
) -> MigrationResult:
    """Migrate a prompt that writes, or resume the migration. The certificate says which targets may be adopted.

    ``report`` writes the report of a target's run, ``page`` the page of the certificate. ``yes`` takes the proposed
    requirements. With ``ask_first`` UnapprovedError asks a person to agree to the requirements and to each target's new
    lines, unless they are ``approved`` (:data:`REQUIREMENTS`, names of targets).

    Raises InputError where another run is in the directory, or nobody agreed to the requirements; CoverageError where
    too few old outputs could be written; AskanceError where an endpoint is down, a budget ended the run, or the disk is
    full. What was bought is kept, and the migration can be resumed.
    """
    asking = MigrationPart(migration, run, watcher)
    with run.lock():
        was_there = run.open(migration.config, migration.examples, None, migration.prompts, migration_inputs(migration))
        try:
            prepared = run_sync(prepared_migration(asking, yes=yes or REQUIREMENTS in approved, ask_first=ask_first))
        except InputError:
            if not was_there:
                run.take_back()
            raise
        results = {}
        for name in migration.targets:
            job = prepared.migration.target_job(name, prepared.checklist, asking.for_a_target())
            asks = ask_first and name not in approved and not yes
            results[name] = run_target(name, job, run, watcher, callbacks, report, ask_first=asks)
            asking.add(results[name].result)
        certificate = run_sync(_certified(asking, prepared, results))
        spent = {name: value for name, value in asking.spent.items() if name != "cached_calls"}
        certificate = certificate.model_copy(update=spent)
        certificate.save(run.path)
        if len(results) == 1:  # the prompt of a single target stands at the root, too
            file = prompt_file(next(iter(results.values())).directory)
            write_whole(run.path / file.name, read_exactly(file))
        if page is not None:
            page(run.path)
    return MigrationResult(run.path, certificate)


@dataclass(frozen=True)
class MigrationEstimate:
    """Cost of a migration, as far as it is known before the requirements are."""

    writing: Estimate
    """All outputs with the old prompt: the targets', and the source's where they are not recorded."""
    calls_per_question: int
    """Calls for one question of the requirements, on all old and new outputs."""
    power: str
    """The loss that the test could rule out."""


def estimate_migration(migration: WriterMigration) -> MigrationEstimate:
    """Estimate a migration; nothing is bought. Raises InputError where a model is unknown."""
    options = migration.options

    async def writing(store: AnswerStore) -> Estimate:
        async with session(options, store) as (models, gateway):
            writers = [*migration.targets.values(), *([] if migration.source == RECORDED else [migration.source])]
            found = [old_writer(migration, gateway, models.get(each)).estimate(migration.examples) for each in writers]
            return reduce(add, found)

    shared = options.shared
    shared = None if isinstance(shared, Path) and not shared.exists() else shared
    with VerdictStore(":memory:", shared=shared, is_ours=True) as store:
        estimate = run_sync(writing(store))
    sides = 0 if migration.judge is None else 1 + len(migration.targets)
    [power] = power_lines(len(migration.splits().test), options.max_loss, options.certificate_level)
    return MigrationEstimate(estimate, sides * len(migration.examples), power_said(power, options.max_loss))


async def _certified(asking: MigrationPart, prepared: Prepared, results: Mapping[str, RunResult]) -> CertificateRecord:
    """Make the certificate from the targets' runs and the second opinions."""
    migration, run, options = prepared.migration, asking.run, prepared.migration.options
    examples = migration.splits().test
    targets, agreement = {}, None
    async with asking.open() as (models, gateway):
        opinions = SecondOpinions(migration, prepared.checklist, models, gateway, asking.watcher)
        for name, result in results.items():
            directory = RunDirectory(result.directory)
            tested = Tested.read(directory, examples, prepared.checklist)
            new = written_outputs(directory.path, examples)
            second = await opinions.second(examples, new)
            decision = guarded(tested.decide(options), second, str(migration.config["second_judge"]))
            targets[name] = tested.record(
                decision,
                result.record,
                directory,
                run.path,
                second=None if second is None else share_record(second.limits),
                preferred=await opinions.preferred(examples, new),
                content=content_records(examples, new),
            )
            agreement = tested.agreement()
    known = read_certificate(run.path) if (run.path / CERTIFICATE_FILE).is_file() else None
    return CertificateRecord(
        kind="generator",
        source=model_name(migration.source),
        max_loss=options.max_loss,
        level=options.certificate_level,
        judge=migration.config["judge"],
        judge_agreement=agreement,
        second_judge=migration.config["second_judge"],
        requirements=kept_requirements(prepared.checklist),
        targets=targets,
        power=prepared.power,
        looks=1 if known is None else known.looks,
        verified=() if known is None else known.verified,
    )


LEAST_WRITTEN = 1.0
"""Least share of the test outputs that must be there for an answer."""


def verify(run: RunDirectory, watcher: Watcher, targets: Sequence[str] = (), **options: Any) -> CertificateRecord:
    """Test the adopted targets of a migration again, or the named ones. Each look at the test is counted.

    The outputs are bought anew, past every store; the judge and the rule are those of the certificate. Raises
    InputError where there is no certificate, the certificate is of a judge, a named target is unknown, or no target was
    adopted; CoverageError where an endpoint is down or outputs are missing, so that there is no answer; AskanceError
    where the disk is full.
    """
    certificate = read_certificate(run.path)
    if certificate.kind != "generator":
        raise InputError(f"{run.path}: this is the certificate of a judge; evaluate it on new data instead.")
    for name in targets:
        if name not in certificate.targets:
            raise InputError(f"{run.path} has no target '{name}'.{did_you_mean(name, certificate.targets)}")
    chosen = list(targets) or [name for name, each in certificate.targets.items() if each.decision == "adopt"]
    if not chosen:
        raise InputError(f"{run.path}: no target was adopted; name the one to look at (--target).")
    with run.lock():
        migration = read_migration(run, options)
        found = {name: run_sync(_verified(migration, run, watcher, name)) for name in chosen}
        looked = VerificationRecord(time=datetime.now(UTC).isoformat(timespec="seconds"), targets=found)
        certificate = certificate.model_copy(
            update={"looks": certificate.looks + 1, "verified": (*certificate.verified, looked)}
        )
        certificate.save(run.path)
    return certificate


async def _verified(migration: WriterMigration, run: RunDirectory, watcher: Watcher, name: str) -> VerifiedTarget:
    """Have one target write the test outputs anew, and judge them like the old ones."""
    directory = folder_of(run, name).path
    examples = migration.splits().test
    try:
        written = await _written_anew(migration, directory, watcher, name)
    except ModelError as error:
        raise CoverageError(f"{name} could not be asked, which says nothing of its outputs: {error}") from None
    missing = [each for each in written if each.error is not None]
    if len(missing) > (1 - LEAST_WRITTEN) * len(written):
        raise CoverageError(f"{name}: {len(missing)} of {len(written)} outputs are missing: {missing[0].error}")
    checklist = fixed_requirements(run)
    if checklist is None:
        raise InputError(f"{run.path}/inputs/requirements.yaml is missing, so nothing can be verified.")
    asking = MigrationPart(migration, run, watcher)
    async with asking.open() as (models, gateway):
        watcher.phase(f"judging the new outputs of {name}")
        subject = outputs_subject(migration, checklist, models, gateway, watcher)
        seen = await subject.look_at(written, "verified")
    old = read_verdicts(directory / "verdicts" / "old-test.jsonl")
    tested = Tested.of(examples, checklist, old, None, seen.verdicts)
    decision = tested.decide(migration.options)
    return VerifiedTarget(
        decision=decision.answer,
        reason=decision.reason,
        difference=share_record(decision.limits),
        pass_rate=mean_record(tested.after, tested.groups),
    )


async def _written_anew(
    migration: WriterMigration, directory: Path, watcher: Watcher, name: str
) -> Sequence[Generated]:
    """Write the test outputs with the accepted prompt and its settings; all are bought."""
    options, best = migration.options, RunDirectory(directory).read_result().best
    prompt = prompt_of(best, str(directory))
    examples = migration.splits().test
    with VerdictStore(":memory:", is_ours=True) as store:
        async with session(options, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            watcher.phase(f"{name} writes the test outputs anew", len(examples))
            sampling = options.max_output_tokens, options.generator_temperature, options.seed
            writing = writing_beside(prompt_file(directory)) or AS_THE_RUN
            target = migration.targets[name]
            model = models.get(target) if writing.thinking is None else models.with_thinking(target, writing.thinking)
            kind = ReplayingGenerator if options.replay else Generator
            writer = kind(gateway, model, prompt, *sampling, prompt_name=migration.prompt_name, writing=writing)
            return await writer.generate(examples, watcher.advance)
