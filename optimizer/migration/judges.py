"""Move a prompt that judges to several targets: a run for each in ``targets/NAME/``, and one certificate.

The runs share examples, splits and answers, so that the source is asked once. A single target is a run like any other
(``modes/migrate.py``), with its own certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...memory.certificate_file import TARGETS, CertificateRecord, read_certificate, target_folder
from ...memory.result_file import RunRecord
from ...memory.run_directory import RunDirectory
from ...memory.verdict_store import SharedStore
from ...models.base import Model
from ...models.budget import CAPS
from ...models.event_loops import run_sync
from ...models.progress import Watcher
from ...models.session import session
from ...prompts.checklist import Checklist
from ...prompts.errors import (
    AskanceError,
    BudgetExceededError,
    InputError,
    MissingExtraError,
    UnapprovedError,
    as_typed,
)
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...settings import flag
from ..events import Callback
from ..job import CAN_GROW, Job, model_name, with_rest
from ..loop import run_job, take_up
from ..modes.migrate import prepare, refuse_the_same
from ..run_result import RunResult
from .certificate import MigrationResult
from .inputs import refuse_shared_folder
from .judge_certificate import merged

Jobs = Mapping[str, Job]
"""The run of each target, by the target's name."""


def prepare_judges(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    source: str | Model,
    targets: Sequence[str | Model],
    prompt: str | Path | Prompt | None,
    source_prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> dict[str, Job]:
    """Load and check the inputs; each target gets the same. Raises InputError as :func:`~..modes.migrate.prepare`, and
    where there is no target, two targets share a name, or a setting is only for a single target."""
    if not targets:
        raise InputError("--target is needed: the model that is to judge.")
    first = prepare(data, checklist, source, targets[0], prompt, source_prompt, options)
    if len(targets) > 1 and first.options.memory is not None:
        raise InputError(
            "memory: the run of each target would begin with the lessons of the one before; name one target."
        )
    jobs: dict[str, Job] = {}
    for target in targets:
        name = model_name(target)
        refuse_shared_folder(name, jobs)
        refuse_the_same(source, target, first.prompts)
        jobs[name] = _for_target(first, target)
    return jobs


def migrate_judges(
    jobs: Jobs,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    report: Callable[[Path], object] | None = None,
    page: Callable[[Path], object] | None = None,
    *,
    ask_first: bool = False,
    approved: Collection[str] = (),
) -> MigrationResult:
    """Run or resume the jobs of several targets in one directory. Caps hold for all targets together.

    ``report`` writes the report of a target's run, ``page`` the page of the certificate. With ``ask_first``
    UnapprovedError asks a person to agree to a target's new lines, unless the target is among the ``approved``. Raises
    as :func:`run_target`, and AskanceError where a target's test was not judged.
    """
    first = next(iter(jobs.values()))
    with run.lock():
        inputs = first.examples, first.checklist, first.prompts
        was_there = run.open(_config(jobs, run), *inputs, no_cache=first.options.no_cache)
        try:
            _refuse_unknown(jobs)
            spent: list[RunRecord] = []
            for name, job in jobs.items():
                asks, of_all = ask_first and name not in approved, job.options.shared if job.may_share else None
                how: dict[str, Any] = {"ask_first": asks, "common": partial(run.store, of_all)}
                done = run_target(name, with_rest(job, *spent), run, watcher, callbacks, report, **how)
                spent.append(done.record)
        except (InputError, MissingExtraError):
            if not was_there:
                run.take_back()
            raise
        certificate = merged([(f"{TARGETS}/{target_folder(name)}", _certificate_of(run, name)) for name in jobs])
        certificate.save(run.path)
        if page is not None:
            page(run.path)
    return MigrationResult(run.path, certificate)


def folder_of(run: RunDirectory, target: str) -> RunDirectory:
    """Return the run of one of several targets."""
    return RunDirectory(run.path / TARGETS / target_folder(target))


def has_several(run: RunDirectory) -> bool:
    """Whether a directory has the runs of several judges. Raises InputError where there is no run."""
    config = run.read_config()["config"]
    return TARGETS in config and config.get("kind") != "generator"


def take_up_judges(run: RunDirectory, options: Mapping[str, Any]) -> dict[str, Job]:
    """Read the jobs of a directory with several targets, to resume them; their cost limits can be changed. Raises
    InputError as :func:`~askance.optimizer.loop.take_up`, and for more iterations, because each run has its own."""
    if options.get("max_iterations") is not None:
        raise InputError(
            f"max_iterations: {run.path} has a run for each target. Go on with one of them, askance resume "
            f"{as_typed(run.path / TARGETS)}/NAME --max-iterations MORE, and then with this directory."
        )
    common = take_up(run, options)
    jobs = {}
    for name in run.read_config()["config"][TARGETS]:
        own = folder_of(run, name)
        jobs[name] = take_up(own, options) if own.config_file.is_file() else _for_target(common, name)
    return jobs


def _for_target(job: Job, target: Any) -> Job:
    return replace(job, models={**job.models, "target": target})


def _config(jobs: Jobs, run: RunDirectory) -> dict[str, Any]:
    """Return the settings that all targets have in common, with the names of the targets and all models. Settings that
    grew in the run of a target keep their first value."""
    configs = [job.config for job in jobs.values()]
    begun = run.read_config()["config"] if run.config_file.is_file() else configs[0]
    models = {name: each for config in configs for name, each in config.get("models", {}).items()}
    common = {name: value for name, value in configs[0].items() if name not in ("target", "models")}
    common |= {name: begun[name] for name in CAN_GROW if name in begun}
    return {**common, TARGETS: list(jobs), **({"models": models} if models else {})}


def _refuse_unknown(jobs: Jobs) -> None:
    """Look up every model, so that an unknown one shows before anything is bought for another target."""

    async def look_up() -> None:
        async with session(next(iter(jobs.values())).options, None) as (models, _):
            for job in jobs.values():
                for model in job.models.values():
                    models.get(model)

    run_sync(look_up())


def run_target(
    name: str,
    job: Job,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback],
    report: Callable[[Path], object] | None,
    *,
    ask_first: bool,
    common: Callable[[], SharedStore] | None = None,
) -> RunResult:
    """Run one target of the migration in a directory. Raises as :func:`~askance.optimizer.loop.run_job`, with the name
    of the target, and BudgetExceededError where a cap was reached."""
    own = folder_of(run, name)
    watcher.say(f"{name}: its run is in {own.path}")
    try:
        done = run_job(job, own, watcher, callbacks, report, ask_first=ask_first, common=common)
    except UnapprovedError as error:
        raise UnapprovedError(f"{name}: {error}", what=name) from None
    except BudgetExceededError as error:
        raise BudgetExceededError(error.limit, _go_on(run, name, error.limit)) from None
    if done.finish_reason in CAPS:
        raise BudgetExceededError(done.finish_reason, _go_on(run, name, done.finish_reason))
    return done


def _go_on(run: RunDirectory, target: str, limit: str) -> str:
    return (
        f"A budget of all targets together ended the migration at {target}; what was bought is kept. To go on: askance "
        f"resume {as_typed(run.path)} {flag(CAPS[limit])} MORE"
    )


def _certificate_of(run: RunDirectory, target: str) -> CertificateRecord:
    own = folder_of(run, target)
    with suppress(InputError):
        return read_certificate(own.path)
    why = own.read_result().why_it_ended
    raise AskanceError(
        f"{target} has no certificate, as its test was not judged: {why}. To go on: askance resume {as_typed(run.path)}"
    )
