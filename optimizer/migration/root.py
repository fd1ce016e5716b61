"""A migration of a prompt that writes: requirements first, then a run for each target, then the certificate.

The directory holds the old outputs, ``requirements.yaml`` and ``certificate.json``; ``targets/NAME/`` holds a run of
the loop for each target. Every part can be killed and gone on with: what was bought is in the stores, and each run in
``targets/`` is one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

from ...memory.certificate_file import (
    CERTIFICATE_FILE,
    TARGETS,
    CertificateRecord,
    read_certificate,
    target_folder,
)
from ...memory.run_directory import RunDirectory, prompt_file, read_exactly
from ...memory.verdict_store import VerdictStore
from ...models.budget import CAPS
from ...models.event_loops import run_sync
from ...models.session import session
from ...prompts.errors import BudgetExceededError, InputError, UnapprovedError, as_typed
from ...prompts.text_files import write_whole
from ...settings import flag
from ..events import Callback
from ..job import model_name
from ..run_result import RunResult
from ..runner import run_job
from .certificate import Tested, guarded, kept_requirements, limits_record
from .certificate_view import MigrationResult
from .content import content_records
from .inputs import WriterMigration, migration_inputs
from .opinions import SecondOpinions, written_outputs
from .power import power_lines, power_said
from .preparation import REQUIREMENTS, MigrationPart, Prepared, old_writer, prepared_migration
from .recorded import RECORDED

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...models.base import AnswerStore
    from ...models.progress import Watcher


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
    """Move a prompt that writes, or go on with it; the certificate says what may be adopted.

    Args:
        report: Writes the report of a target's run.
        page: Writes the page of the certificate.
        yes: Take the proposed requirements.
        ask_first: Raise UnapprovedError where a person is to agree to something that is not ``approved``: the
            requirements, or a target's new lines. Without it nobody is asked, and requirements need ``yes``.
        approved: What a person has agreed to: :data:`REQUIREMENTS`, names of targets.

    Raises:
        InputError: Another run is in the directory, or nobody agreed to the requirements; what was bought is kept.
        UnapprovedError: As ``ask_first`` says.
        CoverageError: Too few old outputs could be written.
        AskanceError: An endpoint is down, a budget ended the run, or the disk is full. It can be resumed.
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
            directory = RunDirectory(run.path / TARGETS / target_folder(name))
            job = prepared.migration.target_job(name, prepared.checklist, asking.for_a_target())
            watcher.say(f"{name}: its run is in {directory.path}")
            asks = ask_first and name not in approved and not yes
            try:
                result = run_job(job, directory, watcher, callbacks, report, ask_first=asks)
            except UnapprovedError as error:
                raise UnapprovedError(f"{name}: {error}", what=name) from None
            asking.add(result.result)
            results[name] = result
            if result.finish_reason in CAPS:
                raise BudgetExceededError(
                    result.finish_reason,
                    f"A budget ended the run of {name}; what was bought is kept. To go on: askance resume "
                    f"{as_typed(run.path)} {flag(CAPS[result.finish_reason])} MORE",
                )
        certificate = run_sync(_certified(asking, prepared, results))
        spent = {name: value for name, value in asking.spent.items() if name != "cached_calls"}
        certificate = certificate.model_copy(update=spent)
        certificate.save(run.path)
        _copy_only_target(run.path, results)
        if page is not None:
            page(run.path)
    return MigrationResult(run.path, certificate)


@dataclass(frozen=True)
class MigrationEstimate:
    """What a migration takes, as far as that is known before the requirements are."""

    writing: Estimate
    """All outputs with the old prompt: the targets', and the source's where they are not recorded."""
    calls_per_question: int
    """Calls of one question of the requirements: on all old and new outputs."""
    power: str
    """The loss that the test could rule out."""


def estimate_migration(migration: WriterMigration) -> MigrationEstimate:
    """Estimate a migration; nothing is bought. Raises InputError where a model is not known."""
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
    """The certificate, from the targets' runs and the second opinions."""
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
                second=None if second is None else limits_record(second.limits),
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


def _copy_only_target(root: Path, results: Mapping[str, RunResult]) -> None:
    """With one target its prompt stands at the root, too."""
    if len(results) == 1:
        [result] = results.values()
        file = prompt_file(result.directory)
        write_whole(root / file.name, read_exactly(file))
