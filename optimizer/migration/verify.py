"""Does a certificate still hold? The targets write the test inputs anew, months later or under the same name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agents.generator import Generated, Generator
from ...agents.traces.replay import ReplayingGenerator
from ...evaluation.judge_file import prompt_of
from ...memory.certificate_file import (
    TARGETS,
    CertificateRecord,
    VerificationRecord,
    VerifiedTarget,
    read_certificate,
    target_folder,
)
from ...memory.run_directory import RunDirectory, prompt_file
from ...memory.verdict_store import VerdictStore
from ...models.base import ModelError
from ...models.event_loops import run_sync
from ...models.session import session
from ...models.writing import AS_THE_RUN, writing_beside
from ...prompts.errors import CoverageError, InputError, did_you_mean
from ...prompts.verdicts import read_verdicts
from .certificate import Tested, limits_record, mean_record
from .inputs import WriterMigration, read_migration
from .preparation import MigrationPart, fixed_requirements, outputs_subject

if TYPE_CHECKING:
    from ...models.progress import Watcher

LEAST_WRITTEN = 1.0
"""Share of the test outputs that must be there for an answer."""


def verify(run: RunDirectory, watcher: Watcher, targets: Sequence[str] = (), **options: Any) -> CertificateRecord:
    """Look again at the adopted targets of a migration, or at the named ones; the look is counted.

    The outputs are bought anew, past every store. The judge and the rule are those of the certificate.

    Raises:
        InputError: There is no certificate, it is of a judge, or it has no such target, or no adopted one.
        CoverageError: An endpoint is down, or outputs are missing; that is no answer.
        AskanceError: The disk is full.
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
    """One target's new outputs on test, judged like the old ones."""
    directory = run.path / TARGETS / target_folder(name)
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
        difference=limits_record(decision.limits),
        pass_rate=mean_record(tested.after, tested.groups),
    )


async def _written_anew(
    migration: WriterMigration, directory: Path, watcher: Watcher, name: str
) -> Sequence[Generated]:
    """The test outputs with the accepted prompt and its settings, all bought."""
    options, best = migration.options, RunDirectory(directory).read_result().best
    prompt = prompt_of(best, str(directory))
    examples = migration.splits().test
    with VerdictStore(":memory:", is_ours=True) as store:
        async with session(options, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            watcher.phase(f"{name} writes the test outputs anew", len(examples))
            how = options.max_output_tokens, options.generator_temperature, options.seed
            writing = writing_beside(prompt_file(directory)) or AS_THE_RUN
            target = migration.targets[name]
            model = models.get(target) if writing.thinking is None else models.with_thinking(target, writing.thinking)
            kind = ReplayingGenerator if options.replay else Generator
            writer = kind(gateway, model, prompt, *how, prompt_name=migration.prompt_name, writing=writing)
            return await writer.generate(examples, watcher.advance)
