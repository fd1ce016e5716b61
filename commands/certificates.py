"""``askance migrate`` of a prompt that writes: what it would take, what a person agrees to, and how it ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from .. import runs
from ..models.progress import showing
from ..optimizer.job import NOT_IN_FINGERPRINT, WHERE
from ..optimizer.migration.inputs import prepare_writer
from ..optimizer.migration.root import estimate_migration
from ..optimizer.options import WriterMigrationOptions
from ..prompts.errors import UnapprovedError, as_typed
from ..settings import flag
from .command_options import load_dotenv, need, settings
from .output import echo_json, show
from .terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ..models.progress import Watcher
    from ..optimizer.migration.certificate_view import MigrationResult


def migrate_writer(
    *,
    config: Path | None,
    as_json: bool,
    quiet: bool,
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Move a prompt that writes, or say what it would take."""
    load_dotenv()
    options, values = settings(WriterMigrationOptions, config, given)
    values["targets"] = values.get("targets") or ()
    need(values, "data", "prompt", "source", "run")
    run = values.pop("run")
    migration = prepare_writer(**values, options=options)
    if dry_run:
        tell_migration_estimate(migration, as_json=as_json)
        return
    done = with_agreement(
        lambda watcher, asks, approved: runs.run_writer_migration(
            migration, run, watcher, yes=yes, ask_first=asks, approved=approved
        ),
        run,
        quiet=quiet,
        yes=yes,
    )
    tell_certificate(done, as_json=as_json)


def with_agreement(
    work: Callable[[Watcher, bool, Collection[str]], MigrationResult], run: str, *, quiet: bool, yes: bool
) -> MigrationResult:
    """The result, once a person at the terminal has agreed to the requirements and to each target's new lines."""
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    approved: set[str] = set()
    while True:
        try:
            with showing(not quiet) as watcher:
                return work(watcher, asks, approved)
        except UnapprovedError as error:
            echo(error, err=True)
            what = error.what
        if not click.confirm("Go on with these?", err=True):
            raise UnapprovedError(f"Nothing more was bought. To go on: askance resume {as_typed(run)}")
        approved.add(what)


def tell_certificate(done: MigrationResult, *, as_json: bool) -> None:
    """Print the decisions."""
    if as_json:
        echo_json(done.certificate.model_dump(mode="json"))
    else:
        show(done)


def tell_migration_estimate(migration: Any, *, as_json: bool) -> None:
    """Say what a migration would take; nothing is bought."""
    estimate = estimate_migration(migration)
    questions = estimate.calls_per_question
    if as_json:
        figures = {
            "calls": estimate.writing.calls,
            "stored": estimate.writing.stored,
            "tokens": estimate.writing.tokens,
        }
        echo_json({**figures, "cost_usd": estimate.writing.cost_usd, "calls_per_question": questions})
        return
    echo(f"{estimate.writing.calls:,} calls ({estimate.writing.size}) to write all outputs with the old prompt.")
    if questions:
        echo(f"Each question among the requirements takes {questions:,} calls more.")
    echo(f"{estimate.power} Nothing was bought.")


def verify_migration(run: str, given: dict[str, Any]) -> None:
    """Look whether a certificate still holds, and print it. Exits with 1 where a target is not yet good enough."""
    load_dotenv()
    targets, as_json, quiet = given["targets"], given["as_json"], given["quiet"]
    options = {name: given[name] for name in (*NOT_IN_FINGERPRINT, *WHERE) if given.get(name) is not None}
    allowed = {*options, "targets", "as_json", "quiet", "config"}
    for name, value in given.items():
        if name not in allowed and value not in (None, (), False):
            raise click.UsageError(f"{flag(name)}: --verify looks at the run as it was certified.")
    with showing(not quiet) as watcher:
        done = runs.verify_migration(run, target=targets, watcher=watcher, **options)
    looked = done.certificate.verified[-1]
    failed = [name for name, each in looked.targets.items() if each.decision == "not_yet"]
    if as_json:
        gate = {"holds": not failed, "not_yet": failed, "max_loss": done.certificate.max_loss}
        echo_json({**done.certificate.model_dump(mode="json"), "gate": gate})
    else:
        for name, each in looked.targets.items():
            echo(f"{name}: {each.reason}")
    if failed:
        raise SystemExit(1)
