"""``askance migrate``, ``align``, ``tune`` and ``resume``: the commands that make a run or go on with one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import click

from .. import runs
from ..agents.buying import Estimate
from ..evaluation.kept_judge import SETTINGS
from ..memory.journal import read_events
from ..memory.run_directory import RunDirectory
from ..models.budget import CAPS
from ..models.progress import Watcher, showing
from ..optimizer.job import CAN_GROW, NOT_IN_FINGERPRINT, WHERE, Job
from ..optimizer.loop import cannot_change, take_up
from ..optimizer.migration.certificate import MigrationResult
from ..optimizer.migration.inputs import is_migration, kind_of, prepare_writer
from ..optimizer.migration.judges import has_several, prepare_judges, take_up_judges
from ..optimizer.migration.root import estimate_migration
from ..optimizer.modes import align as alignment
from ..optimizer.modes import tune as tuning
from ..optimizer.options import (
    AlignOptions,
    LoopOptions,
    MigrateOptions,
    TuneOptions,
    WriterMigrationOptions,
)
from ..optimizer.remembering import memory_for
from ..optimizer.rounds import prepare_round
from ..optimizer.run_result import RunResult
from ..prompts.errors import AskanceError, BudgetExceededError, UnapprovedError, as_typed
from ..prompts.formats.binding import parse_variables
from ..prompts.tables import read_rows
from ..run_estimate import MOVED, RunEstimate, estimate_run, estimate_runs, typical_lines, typical_record
from ..settings import flag, load_config
from .command_options import (
    Function,
    GroupedCommand,
    beside_judge,
    buying_options,
    common_options,
    load_dotenv,
    need,
    settings,
    settings_options,
    store_options,
)
from .output import echo_json, show, tell_errors
from .terminal import echo


def run_options(record: type[LoopOptions]) -> Callable[[Function], Function]:
    """Add the options of all runs, and the settings of one mode."""
    run = click.option("--run", help="Directory of the run; the same command on it goes on where it stopped.")
    return lambda function: run(yes_option(buying_options(settings_options(record)(function))))


yes_option = click.option(
    "--yes",
    is_flag=True,
    help="Write accepted sentences out without asking; nobody is asked without a terminal either.",
)


def _run_and_tell(
    work: Callable[[Watcher, bool], RunResult], run: str, *, as_json: bool, quiet: bool, yes: bool
) -> None:
    """Do the work of a run and print the result. A person at the terminal must agree to new sentences before they are
    written out; with ``--yes``, or without a terminal, nobody is asked."""
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        with showing(not quiet) as watcher:
            done = work(watcher, asks)
    except UnapprovedError as error:
        echo(error, err=True)
        if not click.confirm("Write them out?", err=True):
            raise UnapprovedError(
                f"Nothing was written out. Every version that was tried is in {run}/prompts; askance resume "
                f"{as_typed(run)} asks again."
            ) from None
        with showing(not quiet) as watcher:
            done = work(watcher, False)
    finish(done, as_json=as_json)


def _run_job(job: Job, run: str, **how: bool) -> None:
    _run_and_tell(lambda watcher, asks: runs.run_and_report(job, run, watcher, ask_first=asks), run, **how)


def run_mode(
    record: type[LoopOptions],
    prepare: Callable[..., Job],
    needed: Sequence[str],
    *,
    config: Path | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Run or estimate a mode. ``prepare`` makes the job from the inputs and the settings of ``record``; the inputs
    ``needed`` must be given."""
    load_dotenv()
    options, values = settings(record, config, given)
    if values.get("from_run") is not None:
        options = beside_judge("--from", options, given, (*SETTINGS, "weights"))
        needed, values = ("data",), {**values, "checklist": None, "prompt": None, "model": given["model"]}
    _need(values, *needed, dry_run=dry_run)
    run = values.pop("run")
    job = prepare(**values, options=options)
    if dry_run:
        _estimate([job], run, as_json=as_json)
    else:
        _run_job(job, run, as_json=as_json, quiet=quiet, yes=yes)


def _need(values: Mapping[str, Any], *names: str, dry_run: bool) -> None:
    """Check that arguments were given, and a directory for the run, except for a dry run."""
    need(values, *names, *(() if dry_run else ("run",)))


def _estimate(jobs: Sequence[Job], run: str | None, *, as_json: bool) -> None:
    """Print the estimate for runs with the same settings. A memory that the run would refuse is refused here, too."""
    for job in jobs:
        memory_for(job, None if run is None else RunDirectory(run), make=False)
    _tell(estimate_runs(jobs), jobs[0].options.max_iterations, as_json=as_json)


def _tell(estimate: RunEstimate, iterations: int, *, as_json: bool) -> None:
    most_calls = estimate.most(iterations)
    if as_json:
        learning_calls = {
            "wording_calls_at_most": estimate.wording_calls,
            "calls_per_iteration_at_most": estimate.iteration_calls,
            "last_calls": estimate.last_calls,
            "calls_at_most": most_calls,
        }
        echo_json({**_certain(estimate.fixed), **learning_calls, **typical_record(estimate.typical)})
        return
    note = f" beside {estimate.fixed.stored:,} answers that are there already" if estimate.fixed.stored else ""
    echo(f"{estimate.fixed.calls:,} calls ({estimate.fixed.size}) to judge all splits with the starting prompt{note}.")
    if most_calls > estimate.fixed.calls:
        for line in typical_lines(estimate.typical):
            echo(line)
        echo(f"The whole run: never more than {most_calls:,} calls; --call-budget caps it.")
    echo("Nothing was bought.")


def _certain(found: Estimate) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("calls", "stored", "tokens", "cost_usd")}


def finish(done: RunResult, *, as_json: bool) -> None:
    """Print the result. Raises CoverageError if too many verdicts are missing, BudgetExceededError if a budget ended
    the run, AskanceError if no note could be taken."""
    if as_json:
        echo_json(done.result)
    else:
        show(done)
    if any(done.record.missing.values()):
        tell_errors(_errors_in(done.directory))
    done.require_coverage()
    if done.finish_reason == "notes_failed":
        reason = next(_notes_not_had(done.directory), "the note-taker failed")
        raise AskanceError(
            f"No note could be taken on any disagreement, so nothing was learned and the test was not judged: {reason} "
            f"To go on: askance resume {as_typed(done.directory)}"
        )
    if done.finish_reason in CAPS:
        raise BudgetExceededError(
            done.finish_reason,
            "A budget ended the run; the best prompt so far is kept. To go on: askance resume "
            f"{as_typed(done.directory)} {flag(CAPS[done.finish_reason])} MORE",
        )


def _notes_not_had(directory: Path) -> Iterator[str]:
    """Yield the reasons why notes could not be taken, the last reason first."""
    for event in reversed(read_events(directory / "journal.jsonl")):
        if event["event"] == "no_note":
            yield f"{event['reason'].rstrip('.')}."


def _errors_in(directory: Path) -> Iterator[str | None]:
    """Yield the errors of missing verdicts on the versions whose verdicts the run kept; None for other verdicts."""
    for file in sorted((directory / "verdicts").glob("[0-9]*.jsonl")):
        for _, row in read_rows(file):
            yield row.get("error")


def _migrate_writer(*, config: Path | None, dry_run: bool, as_json: bool, quiet: bool, yes: bool, **given: Any) -> None:
    """Migrate a generator's prompt, or estimate the migration."""
    load_dotenv()
    options, values = settings(WriterMigrationOptions, config, given)
    values["targets"] = values.get("targets") or ()
    _need(values, "data", "prompt", "source", dry_run=dry_run)
    run = values.pop("run")
    migration = prepare_writer(**values, options=options)
    if dry_run:
        _tell_migration_estimate(migration, as_json=as_json)
        return

    def work(watcher: Watcher, asks: bool, approved: Collection[str]) -> MigrationResult:
        return runs.run_writer_migration(migration, run, watcher, yes=yes, ask_first=asks, approved=approved)

    _migrate_and_tell(work, run, as_json=as_json, quiet=quiet, yes=yes)


def _migrate_and_tell(
    work: Callable[[Watcher, bool, Collection[str]], MigrationResult],
    run: str,
    *,
    as_json: bool,
    quiet: bool,
    yes: bool,
) -> MigrationResult:
    """Do the work of a migration and print its certificate. A person at the terminal must agree to the requirements
    and to each target's new lines before the work goes on."""
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    approved: set[str] = set()
    while True:
        try:
            with showing(not quiet) as watcher:
                done = work(watcher, asks, approved)
            break
        except UnapprovedError as error:
            echo(error, err=True)
            if not click.confirm("Go on with these?", err=True):
                raise UnapprovedError(f"Nothing more was bought. To go on: askance resume {as_typed(run)}") from None
            approved.add(error.what)
    tell_certificate(done, as_json=as_json)
    return done


def tell_certificate(done: MigrationResult, *, as_json: bool) -> None:
    """Print a migration's decisions."""
    if as_json:
        echo_json(done.certificate.model_dump(mode="json"))
    else:
        show(done)


def _tell_migration_estimate(migration: Any, *, as_json: bool) -> None:
    """Print the estimate of a migration; nothing is bought."""
    estimate = estimate_migration(migration)
    questions = estimate.calls_per_question
    writing = estimate.writing
    tokens = writing.tokens / max(1, writing.calls) * (writing.calls + writing.stored)
    typical = [MOVED.times(writing.calls + writing.stored, tokens)] if not questions else []
    if as_json:
        echo_json({**_certain(writing), "calls_per_question": questions, **typical_record(typical)})
        return
    echo(f"{writing.calls:,} calls ({writing.size}) to write all outputs with the old prompt.")
    for line in typical_lines(typical):
        echo(line)
    if questions:
        echo(f"Each question among the requirements takes {questions:,} calls more.")
    echo(f"{estimate.power} Nothing was bought.")


def _verify_migration(run: str, given: dict[str, Any]) -> None:
    """Check whether a certificate still holds, and print it. Exits with 1 if a target is not yet good enough."""
    load_dotenv()
    targets, as_json, quiet = given["targets"], given["as_json"], given["quiet"]
    options = {name: given[name] for name in (*NOT_IN_FINGERPRINT, *WHERE) if given.get(name) is not None}
    allowed = {*options, "targets", "as_json", "quiet", "config"}
    for name, value in given.items():
        if name not in allowed and value not in (None, (), False):
            raise click.UsageError(f"{flag(name)}: --verify looks at the run as it was certified.")
    with showing(not quiet) as watcher:
        done = runs.verify_migration(run, target=targets, watcher=watcher, **options)
    look = done.certificate.verified[-1]
    failed = [name for name, target in look.targets.items() if target.decision == "not_yet"]
    if as_json:
        gate = {"holds": not failed, "not_yet": failed, "max_loss": done.certificate.max_loss}
        echo_json({**done.certificate.model_dump(mode="json"), "gate": gate})
    else:
        for name, target in look.targets.items():
            echo(f"{name}: {target.reason}")
    if failed:
        raise SystemExit(1)


@click.command(name="migrate", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("--checklist", help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--source", help="The old model, as provider/model; recorded: its outputs are in DATA.")
@click.option("--target", "targets", multiple=True, help="The new model; may be given several times.")
@click.option("--prompt", help="The prompt that moves; of a judge default: a neutral one.")
@click.option("--source-prompt", help="The source judge's prompt; default: the same.")
@click.option(
    "--kind",
    type=click.Choice(["generator", "judge"]),
    help="Whether the prompt writes or judges, where its variables do not say it.",
)
@click.option("--judge", help="Judges what the prompt writes: a model, a run's directory, a judge.yaml.")
@click.option("--judge-prompt", help="The judge's prompt; default: a neutral one.")
@click.option("--second-judge", help="A model that judges the test outputs too, and never teaches.")
@click.option("--requirements", help="What outputs must keep (a checklist), in place of what is found.")
@click.option("--schema", help="JSON schema that outputs are to follow.")
@click.option("--checker", help="module:function that says of an example with its output what passes.")
@click.option("--verify", metavar="RUN", help="Look whether the certificate of this run still holds.")
@settings_options(WriterMigrationOptions, without=tuple(MigrateOptions.model_fields))
@run_options(MigrateOptions)
def migrate_command(config: Path | None, verify: str | None, **given: Any) -> None:
    """Move the prompt of DATA to other models, with a certificate that says which may take the old one's place.

    A prompt that writes keeps what the old outputs keep. A prompt that judges is improved until the target judges like
    the source, as far as held-out correlation with people, or with the source, says so.
    """
    if verify is not None:
        _verify_migration(verify, given)
        return
    in_file = load_config(config) if config else {}
    known = {name: given.get(name) or in_file.get(name) for name in ("prompt", "checklist", "reads", "variable")}
    prompt = known["prompt"]
    if prompt and config and not given["prompt"]:
        prompt = str(config.parent / prompt)
    variables = parse_variables(known["variable"] or {})
    kind = kind_of(prompt, known["checklist"] or known["reads"], given.pop("kind"), variables)
    record, reason = (MigrateOptions, _OF_JUDGES) if kind == "judge" else (WriterMigrationOptions, _OF_WRITERS)
    inputs = _WRITER_INPUTS if kind == "judge" else ("source_prompt", "checklist")
    for name in [*(each for each in _EITHER if each not in record.model_fields), *inputs]:
        if given.pop(name, None) not in (None, ()):
            raise click.UsageError(f"{flag(name)}: {reason}.")
    if kind == "judge":
        _migrate_judge(config=config, **given)
    else:
        _migrate_writer(config=config, **given)


def _migrate_judge(*, config: Path | None, dry_run: bool, as_json: bool, quiet: bool, yes: bool, **given: Any) -> None:
    """Migrate a judge's prompt to one target, as an ordinary run, or to several targets."""
    load_dotenv()
    options, values = settings(MigrateOptions, config, {**given, "target": None})
    named = values.pop("target") or ()
    values["targets"] = values["targets"] or ([named] if isinstance(named, str) else named)
    _need(values, "data", "source", dry_run=dry_run)
    run = values.pop("run")
    jobs = prepare_judges(**values, options=options)
    if dry_run:
        _estimate([*jobs.values()], run, as_json=as_json)
    elif len(jobs) > 1:
        _run_judges(lambda: jobs, run, as_json=as_json, quiet=quiet, yes=yes)
    else:
        [job] = jobs.values()
        _run_job(job, run, as_json=as_json, quiet=quiet, yes=yes)


def _run_judges(jobs: Callable[[], Mapping[str, Job]], run: str, **how: bool) -> None:
    """Run the jobs of several targets, print their certificate, and require coverage for each. ``jobs`` makes new jobs
    for every attempt."""

    def work(watcher: Watcher, asks: bool, approved: Collection[str]) -> MigrationResult:
        return runs.run_judges(jobs(), run, watcher, ask_first=asks, approved=approved)

    for result in _migrate_and_tell(work, run, **how).runs.values():
        if any(result.record.missing.values()):
            tell_errors(_errors_in(result.directory))
        result.require_coverage()


_EITHER = dict.fromkeys([*MigrateOptions.model_fields, *WriterMigrationOptions.model_fields])
_OF_JUDGES = "a prompt that judges has no use for it"
_OF_WRITERS = "a prompt that writes has no use for it"
_WRITER_INPUTS = ("judge", "judge_prompt", "second_judge", "requirements", "schema", "checker")


@click.command(name="align", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("--checklist", help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", help="The judge, as provider/model.")
@click.option("--prompt", help="Its starting prompt; default: a neutral one.")
@click.option(
    "--from",
    "from_run",
    metavar="RUN",
    help="Start from the judge of this finished run, in place of --checklist, --model and --prompt.",
)
@run_options(AlignOptions)
def align_command(**given: Any) -> None:
    """Have a judge learn to score the outputs in DATA like people: questions from their comments, edits of its prompt.

    A change is kept only if held-out correlation with the human scores in DATA says so. --from improves the judge of an
    earlier run by what DATA has in further examples and comments, and pays for those alone.
    """
    run_mode(AlignOptions, alignment.prepare, ("data", "model"), **given)


def _next_round(*, config: Path | None, as_json: bool, quiet: bool, dry_run: bool, yes: bool, **given: Any) -> None:
    """Go on with a run of ``tune`` from people's labels and comments on its outputs, or estimate that run."""
    for name in ("prompt", "checklist", "judge_prompt", "checker", "schema"):
        if given[name] not in (None, ()):
            raise click.UsageError(f"{flag(name)}: the run that --from names has one; leave out either.")
    load_dotenv()
    options, values = settings(TuneOptions, config, given)
    typed = {name for name, value in given.items() if value not in (None, ())}
    typed |= {"models"} if given.get("model_settings") else set()
    options = {name: value for name, value in options.items() if name in typed}  # a project's file is for other runs
    _need(values, dry_run=dry_run)
    next_round = prepare_round(given["data"], given["from_run"], given["generator"], given["judge"], options)
    if dry_run:
        estimates = [estimate_run(job) for job in next_round.jobs]
        _tell(reduce(add, estimates), next_round.job.options.max_iterations, as_json=as_json)
        return
    run = values["run"]

    def work(watcher: Watcher, asks: bool) -> RunResult:
        return runs.run_round_and_report(next_round, run, watcher, ask_first=asks)

    _run_and_tell(work, run, as_json=as_json, quiet=quiet, yes=yes)


@click.command(name="tune", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option(
    "--generator",
    help="The model whose prompt is improved, as provider/model; or a program of yours: file.py:function, "
    'command:"python app.py" or url:http://….',
)
@click.option(
    "--prompt",
    multiple=True,
    help="Its starting prompt; without placeholders it is the system message. Several, of a program, by giving it "
    "again.",
)
@click.option("--judge", help="The model that answers the questions about the outputs.")
@click.option("--checklist", help="Questions about every output (YAML or JSON).")
@click.option("--judge-prompt", help="The judge's prompt, which stays as it is; default: a neutral one.")
@click.option("--checker", help="module:function that says of an example with its output what passes.")
@click.option("--schema", help="JSON schema that outputs are to follow; default: writer.schema.json beside writer.md.")
@click.option(
    "--from",
    "from_run",
    metavar="RUN",
    help="Go on from this finished run with what people said of its outputs (askance label RUN); it brings all else.",
)
@run_options(TuneOptions)
def tune_command(**given: Any) -> None:
    """Improve a generator's prompt on DATA until nothing fails.

    What it writes is looked at by a judge with a checklist, by your own --checker, or by both. An edit is kept only if
    the mean score of held-out examples says so. --from has the judge of an earlier run learn from people's labels and
    comments first, and pays for what is new alone.
    """
    if given["from_run"] is not None:
        _next_round(**given)
        return
    del given["from_run"]
    run_mode(TuneOptions, tuning.prepare, ("data", "generator", "prompt"), **given)


class _Resume(GroupedCommand):
    """The command ``resume``. It says of a run's fixed setting that it cannot be changed; click would only say that
    there is no such option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").removeprefix("no-").replace("-", "_")
            if ctx.resilient_parsing or not any(name in record.model_fields for record in _RECORDS):
                raise
            raise click.UsageError(cannot_change(error.option_name), ctx) from None


_RECORDS = (MigrateOptions, AlignOptions, TuneOptions)


@click.command(name="resume", cls=_Resume)
@click.argument("run")
@click.argument("data", required=False, metavar="")
@yes_option
@store_options
@common_options
@settings_options(LoopOptions, only=(*CAN_GROW, *NOT_IN_FINGERPRINT))
def resume_command(run: str, data: str | None, as_json: bool, quiet: bool, yes: bool, **given: Any) -> None:
    """Go on with the run in the directory RUN. No call that was paid for is repeated.

    A run that used up its iterations or its budget goes on with more: --max-iterations 8.
    """
    if data is not None:
        raise click.UsageError(cannot_change(data, "is of no use here: a run keeps the data that it was begun with"))
    load_dotenv()
    options = {name: value for name, value in given.items() if value is not None}
    flags = {"as_json": as_json, "quiet": quiet, "yes": yes}
    if has_several(RunDirectory(run)):
        _run_judges(lambda: take_up_judges(RunDirectory(run), options), run, **flags)
        return

    def moved(watcher: Watcher, asks: bool, approved: Collection[str]) -> MigrationResult:
        return runs.resume_migration(run, options, watcher, yes=yes, ask_first=asks, approved=approved)

    def resumed(watcher: Watcher, asks: bool) -> RunResult:
        return runs.run_and_report(take_up(RunDirectory(run), options), run, watcher, ask_first=asks)

    if is_migration(RunDirectory(run)):
        _migrate_and_tell(moved, run, **flags)
    else:
        _run_and_tell(resumed, run, **flags)
