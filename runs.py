"""Functions that start runs, for Python and the command line: each runs the loop and writes the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from .agents.checks import CheckFunction
from .evaluation.kept_judge import KeptJudge
from .memory.run_directory import RunDirectory
from .models.event_loops import awaited
from .models.named import ModelLike, named_models
from .models.programs import GeneratorFunction
from .models.progress import Watcher, watching
from .optimizer.events import Callback, as_callbacks
from .optimizer.job import NOT_IN_FINGERPRINT, WHERE, Job
from .optimizer.loop import cannot_change, run_job, take_up
from .optimizer.migration.certificate import MigrationResult
from .optimizer.migration.inputs import WriterMigration, is_migration, kind_of, prepare_writer, read_migration
from .optimizer.migration.judges import has_several, migrate_judges, prepare_judges, take_up_judges
from .optimizer.migration.root import run_migration, verify
from .optimizer.modes import align as alignment
from .optimizer.modes import tune as tuning
from .optimizer.rounds import FurtherRound, prepare_round, run_round
from .optimizer.run_result import RunResult
from .prompts.checklist import Checklist
from .prompts.errors import InputError
from .prompts.examples import Example
from .prompts.formats.several import PromptsOfProgram
from .prompts.prompt import Prompt
from .report.certificate_page import write_certificate_page
from .report.run_page import write_report
from .setting_types import AlignSettings, MigrationSettings, ResumeSettings, TuneSettings


def migrate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    source: ModelLike | GeneratorFunction,
    target: ModelLike | GeneratorFunction | Sequence[ModelLike | GeneratorFunction],
    run: str | Path,
    checklist: str | Path | Checklist | None = None,
    prompt: str | Path | Prompt | None = None,
    source_prompt: str | Path | Prompt | None = None,
    kind: Literal["generator", "judge"] | None = None,
    judge: str | Path | ModelLike | KeptJudge | None = None,
    judge_prompt: str | Path | Prompt | None = None,
    second_judge: ModelLike | None = None,
    requirements: str | Path | Checklist | None = None,
    schema: str | Path | Mapping[str, Any] | None = None,
    checker: str | CheckFunction | None = None,
    yes: bool = False,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callback] = (),
    **options: Unpack[MigrationSettings],
) -> RunResult | MigrationResult:
    """Move a prompt to other models, with a certificate that says which models may replace the old one.

    A prompt that writes must meet the requirements that the old outputs meet (METHOD.md, part 6). A prompt that judges
    is improved until the target judges like the source, as far as held-out data confirms it (BinEval §3.3).

    Args:
        data: JSONL or CSV file, or rows; if they have human scores, the held-out correlation is with these.
        checklist: YAML or JSON file, or a checklist; none for a judge in people's own words (``reads``).
        source: The old model: ``provider/model``, a :class:`~askance.models.named.NamedModel`, or a model object;
            ``recorded`` if the data have its outputs.
        target: The new model, or several. A prompt that judges with one target returns that target's run.
        run: Directory of the run. The same command continues an interrupted run.
        prompt: The target's starting prompt; default: askance's own neutral prompt.
        source_prompt: The source's prompt; default: the same as ``prompt``.
        kind: Whether the prompt writes or judges, if its variables do not show it.
        judge: Judge of written outputs: a model, or a judge as a run's directory, a ``judge.yaml`` or an object.
        judge_prompt: The judge's prompt; default: askance's own neutral prompt.
        second_judge: A second model that judges only the test outputs, and from which nothing is learned.
        requirements: Checklist of the requirements for outputs, in place of the found ones.
        schema: JSON schema for outputs, or its file.
        checker: ``module:function`` (or the function) that takes an example with its output and returns what passes.
        yes: Accept the found requirements; without it they must be given.
        watcher: Receives the progress.
        progress: Show the progress; default: in notebooks only.
        callbacks: Functions called with every event of the run; see :mod:`askance.optimizer.events`.
        options: Settings of :class:`~askance.optimizer.options.WriterMigrationOptions` for a prompt that writes, of
            :class:`~askance.optimizer.options.MigrateOptions` for a prompt that judges.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting, or another run in the directory.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    targets = [*target] if isinstance(target, (list, tuple)) else [target]
    old, *new, settings = named_models(options, source, *targets)
    if kind_of(prompt, checklist or options.get("reads"), kind, options.get("variable") or {}) == "generator":
        asked, second, settings = named_models(settings, judge, second_judge)
        inputs = asked, judge_prompt, second, requirements, schema, checker
        assert prompt is not None, "without a prompt it judges"
        moved = prepare_writer(data, prompt, old, new, *inputs, options=settings)
        with watching(watcher, progress) as shown:
            return run_writer_migration(moved, run, shown, callbacks, yes=yes)
    jobs = prepare_judges(data, checklist, old, new, prompt, source_prompt, settings)
    if len(jobs) == 1:
        return _run_watched(jobs[next(iter(jobs))], run, watcher, progress, callbacks)
    with watching(watcher, progress) as shown:
        done = run_judges(jobs, run, shown, callbacks)
    for result in done.runs.values():
        result.require_coverage()
    return done


amigrate = awaited(migrate)


def run_judges(
    jobs: Mapping[str, Job], run: str | Path, watcher: Watcher, callbacks: Iterable[Callback] = (), **how: Any
) -> MigrationResult:
    """Move a prompt that judges to several targets, or continue this, and write all pages, whatever the coverage.
    ``how`` and the errors are those of :func:`~askance.optimizer.migration.judges.migrate_judges`."""
    pages = write_report, write_certificate_page
    return migrate_judges(jobs, RunDirectory(run), watcher, as_callbacks(callbacks), *pages, **how)


def run_writer_migration(
    migration: WriterMigration, run: str | Path, watcher: Watcher, callbacks: Iterable[Callback] = (), **how: Any
) -> MigrationResult:
    """Move a prompt that writes, or continue this, and write all pages. ``how`` and the errors are those of
    :func:`~askance.optimizer.migration.root.run_migration`."""
    pages = write_report, write_certificate_page
    return run_migration(migration, RunDirectory(run), watcher, as_callbacks(callbacks), *pages, **how)


def resume_migration(
    run: str | Path,
    options: Mapping[str, Any],
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    **how: Any,
) -> MigrationResult:
    """Continue a migration of a prompt that writes. The settings that may change are those of :func:`resume`,
    except ``max_iterations``. Raises InputError for any other setting."""
    for name in options:
        if name not in (*NOT_IN_FINGERPRINT, *WHERE):
            raise InputError(cannot_change(name))
    return run_writer_migration(read_migration(RunDirectory(run), options), run, watcher, callbacks, **how)


def verify_migration(
    run: str | Path,
    *,
    target: str | Sequence[str] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ResumeSettings],
) -> MigrationResult:
    """Check whether the certificate of a migration still holds: the adopted targets answer the test inputs anew.

    Args:
        run: The migration's directory.
        target: Targets to check; default: the adopted ones.
        watcher, progress: As in :func:`migrate`.
        options: Limits of the cost, and other places for answers.

    Raises:
        InputError: There is no certificate of a prompt that writes, or no such target.
        CoverageError: An endpoint is down, or outputs are missing, so that the check has no result.
        AskanceError: The disk is full.
    """
    names = [target] if isinstance(target, str) else list(target)
    with watching(watcher, progress) as shown:
        certificate = verify(RunDirectory(run), shown, names, **options)
        write_certificate_page(Path(run))
        return MigrationResult(Path(run), certificate)


averify_migration = awaited(verify_migration)


def align(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    run: str | Path,
    checklist: str | Path | Checklist | None = None,
    model: ModelLike | None = None,
    prompt: str | Path | Prompt | None = None,
    from_run: str | Path | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callback] = (),
    **options: Unpack[AlignSettings],
) -> RunResult:
    """Have a judge learn to score like people, as far as held-out data confirms it.

    Args:
        data: JSONL or CSV file, or rows, with human scores on the checklist's dimensions.
        run: Directory of the run. The same command continues an interrupted run.
        checklist: YAML or JSON file, or a checklist.
        model: The judge: ``provider/model``, a :class:`~askance.models.named.NamedModel`, or a model object.
        prompt: The judge's starting prompt; default: askance's own neutral prompt.
        from_run: Directory of a finished run whose judge is the start, in place of ``checklist`` and ``prompt`` (and
            ``model``, if it is not given). Examples keep the part that they had there. Comments, candidates and answers
            of that run are not read, tried or bought again.
        watcher: As in :func:`migrate`.
        progress: As in :func:`migrate`.
        callbacks: As in :func:`migrate`.
        options: Settings of :class:`~askance.optimizer.options.AlignOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting, no human scores, another run in the
            directory, or an earlier run that is not finished or has no judge.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    asked, given = named_models(options, model)
    job = alignment.prepare(data, checklist, asked, prompt, given, from_run)
    return _run_watched(job, run, watcher, progress, callbacks)


aalign = awaited(align)


def tune(
    data: str | Path | Iterable[Example | Mapping[str, Any]] | None = None,
    *,
    run: str | Path,
    generator: ModelLike | GeneratorFunction | None = None,
    prompt: PromptsOfProgram | None = None,
    checklist: str | Path | Checklist | None = None,
    judge: ModelLike | None = None,
    judge_prompt: str | Path | Prompt | None = None,
    checker: str | CheckFunction | None = None,
    schema: str | Path | Mapping[str, Any] | None = None,
    from_run: str | Path | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callback] = (),
    **options: Unpack[TuneSettings],
) -> RunResult:
    """Improve a generator's prompt until nothing fails, as far as held-out data confirms it.

    Args:
        data: JSONL or CSV file, or rows; outputs in it are not used.
        generator: The model that writes, or a program of your own: a function, plain or async, that takes an example
            and the prompts by name, or ``file.py:function``, ``command:…``, ``url:…``.
        prompt: The generator's starting prompt; without placeholders it is the system message. A program may have
            several prompts, as files or by name (``{"plan": …, "answer": …}``).
        run: Directory of the run. The same command continues an interrupted run.
        checklist: Questions about every output. Without a checklist, ``own_questions`` gives each example its own.
        judge: The model that answers the questions.
        judge_prompt: The judge's prompt, which does not change; default: askance's own neutral prompt.
        checker: ``module:function`` (or the function) that takes an example with its output and returns what passes.
        schema: JSON schema for outputs, or its file. Outputs are checked; the schema is also sent to a model whose
            endpoint takes it. Default: a schema file beside the prompt, ``writer.schema.json`` for ``writer.md``.
        from_run: Directory of a finished run of ``tune`` whose outputs people have labelled (``askance label RUN``).
            It provides data, prompts, checklist, models and settings; given data, models and settings replace its
            own. Its judge first learns from people, in ``RUN/judge``.
        watcher: As in :func:`migrate`.
        progress: As in :func:`migrate`.
        callbacks: As in :func:`migrate`.
        options: Settings of :class:`~askance.optimizer.options.TuneOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name, checker or setting, or another run in the directory.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    writes, judges, settings = named_models(options, generator, judge)
    if from_run is not None:
        brought = {"prompt": prompt, "checklist": checklist, "judge_prompt": judge_prompt}
        for name, part in {**brought, "checker": checker, "schema": schema}.items():
            if part is not None:
                raise InputError(f"{name}: the earlier run brings its own; leave out {name}, or from_run.")
        next_round = prepare_round(data, from_run, writes, judges, settings)
        with watching(watcher, progress) as shown:
            return run_round_and_report(next_round, run, shown, callbacks).require_coverage()
    for name, needed in {"data": data, "generator": generator, "prompt": prompt}.items():
        if needed is None:
            raise InputError(f"{name} is needed (or an earlier run to go on from, which brings its own).")
    assert data is not None and prompt is not None, "refused above"
    job = tuning.prepare(data, checklist, writes, judges, prompt, judge_prompt, checker, settings, schema)
    return _run_watched(job, run, watcher, progress, callbacks)


atune = awaited(tune)


def _run_watched(
    job: Job, run: str | Path, watcher: Watcher | None, progress: bool | None, callbacks: Iterable[Callback]
) -> RunResult:
    with watching(watcher, progress) as shown:
        return run_and_report(job, run, shown, callbacks).require_coverage()


def resume(
    run: str | Path,
    watcher: Watcher | None = None,
    callbacks: Iterable[Callback] = (),
    *,
    progress: bool | None = None,
    ask_first: bool = False,
    **options: Unpack[ResumeSettings],
) -> RunResult | MigrationResult:
    """Continue the run in a directory; a finished run is read, not repeated.

    These settings can be changed: limits of its cost (``call_budget``, ``token_budget``, ``cost_budget``,
    ``max_concurrency``, ``timeout``, ``retries``, ``engine``, ``workers``), other places for its answers (``store``,
    ``no_cache``), and ``max_iterations``, which can be larger. The result is then that of a run begun with this number.
    A migration of a prompt that writes, or of a judge to several targets, refuses ``max_iterations``.

    Args:
        run: The run's directory.
        watcher: As in :func:`migrate`.
        callbacks: As in :func:`migrate`; they receive the new events.
        progress: As in :func:`migrate`.
        ask_first: As in :func:`run_and_report`.
        options: The changed settings.

    Raises:
        InputError: There is no run, a setting that cannot be changed was given, or more iterations would change
            nothing.
        AskanceError: As :func:`run_and_report`.
    """
    if is_migration(RunDirectory(run)):
        with watching(watcher, progress) as shown:
            return resume_migration(run, options, shown, callbacks, ask_first=ask_first)
    if has_several(RunDirectory(run)):
        jobs = take_up_judges(RunDirectory(run), options)
        with watching(watcher, progress) as shown:
            return run_judges(jobs, run, shown, callbacks, ask_first=ask_first)
    job = take_up(RunDirectory(run), options)
    with watching(watcher, progress) as shown:
        return run_and_report(job, run, shown, callbacks, ask_first=ask_first)


aresume = awaited(resume)


def run_and_report(
    job: Job, run: str | Path, watcher: Watcher, callbacks: Iterable[Callback] = (), *, ask_first: bool = False
) -> RunResult:
    """Run a job in its directory, or continue it, and write ``report.html``, whatever the coverage. Raises AskanceError
    as :func:`~askance.optimizer.loop.run_job`, or if the report cannot be written.

    With ``ask_first`` an accepted version with new sentences is not written out. An error shows the sentences instead.
    """
    told = as_callbacks(callbacks)
    return run_job(job, RunDirectory(run), watcher, told, report=write_report, ask_first=ask_first)


def run_round_and_report(
    found: FurtherRound,
    run: str | Path,
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    *,
    ask_first: bool = False,
) -> RunResult:
    """Run a further round of ``tune``, or continue it, and write the reports. ``ask_first`` concerns the prompt.
    Raises AskanceError as :func:`~askance.optimizer.rounds.run_round`, or if a report cannot be written."""
    told = as_callbacks(callbacks)
    return run_round(found, RunDirectory(run), watcher, told, write_report, ask_first=ask_first)
