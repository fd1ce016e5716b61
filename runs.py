"""Runs as they are started from Python and from the command line: the loop, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from .agents.checks import CheckFunction
from .memory.run_directory import RunDirectory
from .models.event_loops import awaited
from .models.named import ModelLike, named_models
from .models.programs import GeneratorFunction
from .models.progress import Watcher, watching
from .optimizer.events import Callback, as_callbacks
from .optimizer.job import Job
from .optimizer.modes import align as alignment
from .optimizer.modes import migrate as migration
from .optimizer.modes import tune as tuning
from .optimizer.run_result import RunResult
from .optimizer.runner import run_job, take_up
from .prompts.checklist import Checklist
from .prompts.examples import Example
from .prompts.formats.several import PromptsOfProgram
from .prompts.prompt import Prompt
from .report.run_page import write_report
from .setting_types import AlignSettings, MigrateSettings, ResumeSettings, TuneSettings


def migrate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    source: ModelLike,
    target: ModelLike,
    run: str | Path,
    checklist: str | Path | Checklist | None = None,
    prompt: str | Path | Prompt | None = None,
    source_prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callback] = (),
    **options: Unpack[MigrateSettings],
) -> RunResult:
    """Improve the target's evaluator prompt until it judges like the source, as far as held-out data confirms it.

    Args:
        data: JSONL or CSV file, or rows; with human scores the held-out correlation is with those.
        checklist: YAML or JSON file, or a checklist; none for a judge in people's own words (``reads``).
        source: The judge to be matched: ``provider/model``, a :class:`~askance.models.named.NamedModel`, or an object
            that can be asked.
        target: The judge whose prompt is improved.
        run: Directory of the run; the same command on it goes on where it stopped.
        prompt: The target's starting prompt; askance's own neutral one by default.
        source_prompt: The source's prompt; by default the same as ``prompt``.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        callbacks: Told every event of the run; see :mod:`askance.optimizer.events`.
        options: Settings of :class:`~askance.optimizer.options.MigrateOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting, or another run in the directory.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    old, new, given = named_models(options, source, target)
    job = migration.prepare(data, checklist, old, new, prompt, source_prompt, given)
    return _run_watched(job, run, watcher, progress, callbacks)


amigrate = awaited(migrate)


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
        run: Directory of the run; the same command on it goes on where it stopped.
        checklist: YAML or JSON file, or a checklist.
        model: The judge: ``provider/model``, a :class:`~askance.models.named.NamedModel`, or an object that can be
            asked.
        prompt: The judge's starting prompt; askance's own neutral one by default.
        from_run: Directory of a finished run whose judge is the start, in place of ``checklist`` and ``prompt`` (and
            ``model``, where it is not given). Examples keep the part that they had there; what was read, tried and
            bought there is not read, tried and bought again.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        callbacks: Told every event of the run; see :mod:`askance.optimizer.events`.
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
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    generator: ModelLike | GeneratorFunction,
    prompt: PromptsOfProgram,
    run: str | Path,
    checklist: str | Path | Checklist | None = None,
    judge: ModelLike | None = None,
    judge_prompt: str | Path | Prompt | None = None,
    checker: str | CheckFunction | None = None,
    schema: str | Path | Mapping[str, Any] | None = None,
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
        prompt: Its starting prompt; without placeholders it is the system message. A program may have several, as files
            or by name (``{"plan": …, "answer": …}``).
        run: Directory of the run; the same command on it goes on where it stopped.
        checklist: Questions about every output. Without one, and with ``own_questions``, each example has its own.
        judge: The model that answers the questions.
        judge_prompt: The judge's prompt, which stays as it is; askance's own neutral one by default.
        checker: ``module:function`` (or the function), which says of an example with its output what passes.
        schema: JSON schema, or its file, that outputs are to follow: sent to a model whose endpoint takes it, and
            checked. By default the one beside the prompt, ``writer.schema.json`` of ``writer.md``.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        callbacks: Told every event of the run; see :mod:`askance.optimizer.events`.
        options: Settings of :class:`~askance.optimizer.options.TuneOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name, checker or setting, or another run in the directory.
        CoverageError: Fewer verdicts than ``min_coverage``; the result is written all the same.
        AskanceError: An endpoint is down, or the disk is full. The run can be resumed.
    """
    writes, judges, given = named_models(options, generator, judge)
    job = tuning.prepare(data, checklist, writes, judges, prompt, judge_prompt, checker, given, schema)
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
) -> RunResult:
    """Go on with the run in a directory; one that is finished is read, not repeated.

    These settings can be changed: limits of its cost (``call_budget``, ``token_budget``, ``cost_budget``,
    ``max_concurrency``, ``timeout``, ``retries``, ``engine``, ``workers``), other places of its answers (``store``,
    ``no_cache``), and ``max_iterations``, which can be larger: the result is then that of a run begun with so many.

    Args:
        run: The run's directory.
        watcher: Told how the work goes on.
        callbacks: Told every event that is new.
        progress: Show how the work goes on; by default in notebooks only.
        ask_first: As in :func:`run_and_report`.
        options: The changed settings.

    Raises:
        InputError: There is no run, a setting that cannot be changed was given, or more iterations would change
            nothing.
        AskanceError: As :func:`run_and_report`.
    """
    job = take_up(RunDirectory(run), options)
    with watching(watcher, progress) as shown:
        return run_and_report(job, run, shown, callbacks, ask_first=ask_first)


aresume = awaited(resume)


def run_and_report(
    job: Job, run: str | Path, watcher: Watcher, callbacks: Iterable[Callback] = (), *, ask_first: bool = False
) -> RunResult:
    """Run a job in its directory, or go on with it, and write ``report.html``, whatever the coverage.

    With ``ask_first`` nothing is written out where an accepted version has new sentences: they are the error's message.

    Raises:
        AskanceError: As :func:`~askance.optimizer.runner.run_job`, or the report cannot be written.
    """
    told = as_callbacks(callbacks)
    return run_job(job, RunDirectory(run), watcher, told, report=write_report, ask_first=ask_first)
