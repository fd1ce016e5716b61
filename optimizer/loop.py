"""The improvement loop, and a run from its first call to ``result.json``, whatever the mode.

The loop takes rounds of steps until nothing is gained (Algorithm 1 with three splits and an acceptance test). All modes
and the papers' way use the same loop. A mode brings the steps. The user always gets the best version so far, whatever
happens later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..memory.certificate_file import TARGETS
from ..memory.memory_directory import MEMORY_FILE
from ..memory.result_file import FinishReason
from ..memory.run_directory import RunDirectory
from ..memory.verdict_store import SharedStore, VerdictStore
from ..models.budget import CAPS
from ..models.event_loops import run_sync
from ..models.programs import writer_of
from ..models.progress import Watcher
from ..models.session import session
from ..prompts.errors import BudgetExceededError, InputError, MissingExtraError, as_typed
from ..prompts.formatting import count
from ..settings import by_own_names, flag, idle_settings, parse_options, refuse_old_names
from .contest import Contest
from .earlier import Earlier, read_earlier
from .events import Callback, ExamplesSplit, LoopStopped, RunBegan, Teller
from .finish import earlier_looks, finish
from .job import CAN_GROW, NOT_IN_FINGERPRINT, WHERE, Job, split_examples
from .migration.recorded import RECORDED
from .mode import LoopRound, RunContext, SetUp, Step, Turn, mode_of
from .remembering import memory_for
from .run_result import RunResult
from .splits import unused_split
from .steps.lesson_edits import LessonBook
from .subject import Draft, Outcome

NOTHING_LEFT: tuple[FinishReason, ...] = ("no_evidence", "no_disagreements")
"""Reasons to stop which, in the first round after an earlier run, mean that there is nothing new to learn from."""


class Loop:
    """One run of the loop."""

    def __init__(self, context: RunContext, set_up: SetUp) -> None:
        """Make the contest; nothing is asked yet. The set-up has the subject and the steps."""
        options, self._set_up, self._context, self._events = context.job.options, set_up, context, context.events
        papers = options.paper  # the papers' loop tries every version whole
        self.contest = Contest(
            set_up.subject,
            set_up.acceptance,
            context.splits.validation,
            context.run,
            context.events,
            racing=options.racing and not papers,
            bisect=not papers,
            max_prompt_chars=options.max_prompt_chars if papers else context.max_prompt_chars,
            min_coverage=options.min_coverage,
            screening=None if papers else set_up.screening,
            again=None if papers else set_up.writes_questions,
        )
        self._lessons = LessonBook(context.memory)

    async def improve(self, start: Draft) -> Outcome:
        """Improve a draft until there is a reason to stop. Raises BudgetExceededError if the budget ended before the
        starting draft was measured, and ModelError if a model cannot be reached at all."""
        contest, set_up = self.contest, self._set_up
        baseline = await contest.start(start)
        outcome = Outcome(baseline, baseline, set_up.without_rounds, 0, contest.tried)
        if not (set_up.first or set_up.steps):
            return outcome
        self._events.measured(set_up.yardstick.value(baseline.scores), set_up.yardstick.name)
        try:
            await self._take(set_up.first, outcome)
            if set_up.steps:
                outcome.finish_reason = await self._rounds(outcome)
            if outcome.finish_reason != "notes_failed" or not set_up.needs_notes:  # else the run is to be resumed
                await self._take(set_up.last, outcome)
        except BudgetExceededError as error:
            outcome.finish_reason = cast(FinishReason, error.limit)
            self._events.say(str(error))
            outcome.best = contest.accepted or outcome.best
        self._lessons.close(outcome, contest)
        self._events.emit(LoopStopped(outcome.finish_reason, outcome.iterations))
        return outcome

    async def _rounds(self, outcome: Outcome) -> FinishReason:
        """Take rounds until there is a reason to stop, and return it. The outcome is kept up to date."""
        options, idle = self._context.job.options, 0
        while outcome.iterations < options.max_iterations:
            outcome.iterations += 1
            turn = await self._round(outcome)
            self._context.keep_lessons(turn.best, outcome.questions, outcome.iterations)
            idle = 0 if turn.best is not outcome.best else idle + 1
            outcome.best = turn.best
            if turn.stop is not None:
                goes_on = self._context.job.earlier is not None and outcome.iterations == 1
                return "no_new_evidence" if goes_on and turn.stop in NOTHING_LEFT else turn.stop
            if idle >= options.patience:
                return "no_gain"
        return "max_iterations"

    async def _round(self, outcome: Outcome) -> Turn:
        set_up, best, number = self._set_up, outcome.best, outcome.iterations
        self._events.phase(f"iteration {number}: judging the development examples")
        seen = await set_up.subject.observe(best.draft, self._context.splits.development, self._events.advance)
        outcome.seen[best.number] = seen
        if set_up.signal.agrees(seen):
            return Turn(best, set_up.agreed)
        last_turn = Turn(best)
        for step in set_up.steps:
            turn = await step.take(LoopRound(best, number, self.contest, outcome))
            if turn is not None and turn.best is not best:
                return turn
            last_turn = turn or last_turn
        return last_turn

    async def _take(self, steps: Sequence[Step], outcome: Outcome) -> None:
        for step in steps:
            turn = await step.take(LoopRound(outcome.best, 0, self.contest, outcome))
            if turn is not None:
                outcome.best = turn.best


def run_job(
    job: Job,
    run: RunDirectory,
    watcher: Watcher,
    callbacks: Iterable[Callback] = (),
    report: Callable[[Path], object] | None = None,
    *,
    ask_first: bool = False,
    common: Callable[[], SharedStore] | None = None,
) -> RunResult:
    """Run a job in its directory, or go on with it. The result is returned whatever its coverage.

    ``report`` writes the report before callbacks are told that everything is written. With ``ask_first`` nothing is
    written out if an accepted version has new sentences, unless an earlier process wrote the same version. ``common``
    opens a store that several related runs share, in place of the store of all commands.

    Raises InputError for too few examples, an unknown model, or another run in the directory; a new run that bought
    nothing is then removed. Raises UnapprovedError if ``ask_first`` stops the run; the same call without it buys
    nothing. Raises AskanceError if an endpoint is down, a budget ended the run before its start was measured, or the
    disk is full; the run can then be resumed.
    """
    with run.lock():
        job, no_cache = replace(job, memory=memory_for(job, run)), job.options.no_cache
        further = job.earlier.files() if job.earlier else {}
        if job.memory is not None:
            further |= {MEMORY_FILE: job.memory.to_text()}
        answers = job.earlier.answers if job.earlier and not no_cache else None
        inputs = job.config, job.examples, job.checklist, job.prompts
        was_there = run.open(*inputs, further, answers, no_cache=no_cache)
        try:
            of_all = job.options.shared if job.may_share else None
            with run.store(of_all if common is None else common()) as store:
                return run_sync(_run(job, run, store, watcher, callbacks, report, ask_first))
        except BudgetExceededError as error:
            option = flag(CAPS[error.limit])
            raise BudgetExceededError(
                error.limit,
                f"{error} It ended before the starting prompt was measured, so there is no result yet. To go on: "
                f"askance resume {as_typed(run.path)} {option} MORE",
            ) from None
        except (InputError, MissingExtraError):
            if not was_there:  # a corrected setting would make it another run, which this directory would refuse
                run.take_back()
            raise


def take_up(directory: RunDirectory, options: Mapping[str, Any]) -> Job:
    """Return the job of the run in a directory, to go on with.

    Limits of the cost can be changed. ``max_iterations`` can be larger, even for a finished run; the result is then the
    same as if the run had begun with the larger number. Raises InputError if there is no run, a setting was given that
    cannot be changed, the number of iterations is smaller, or more iterations would change nothing because the run
    ended for another reason.
    """
    directory.read_config()  # a missing run is reported before a wrong setting
    refuse_old_names(options, "options")
    options = by_own_names(options, directory.path)
    for name in options:
        if name not in (*NOT_IN_FINGERPRINT, *WHERE, *CAN_GROW):
            raise InputError(cannot_change(name))
    most = options.get("max_iterations")
    job = read_job(directory, options)
    if most is None or most == directory.read_config()["config"]["max_iterations"]:
        return job
    result = directory.read_result() if directory.finished else None
    if result is not None and result.finish_reason not in ("max_iterations", "notes_failed", *CAPS):
        raise InputError(
            f"{directory.path}: this run ended because {result.why_it_ended}, so more iterations would change nothing. "
            f"With more data or comments a judge is improved by: askance align DATA --from {as_typed(directory.path)} "
            "--run NEW_RUN"
        )
    directory.extend(most)
    return job


def cannot_change(what: str, why: str = "cannot be changed when a run is resumed") -> str:
    """Return the error text for a change with which a run cannot be resumed, with what to do instead."""
    can = ", ".join(flag(name) for name in (*NOT_IN_FINGERPRINT, *WHERE))
    return (
        f"'{what}' {why}. What can be: --max-iterations (more of them), {can}. To improve a judge with more data or "
        "comments: askance align DATA --from RUN --run NEW_RUN. For anything else start another run."
    )


def read_job(directory: RunDirectory, options: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Job:
    """Return the job of the run in a directory, with changed settings and the models that are ``given``. Raises
    InputError if there is no run, a file of it is missing or damaged, or a setting is wrong."""
    run = directory.path
    config = dict(directory.read_config()["config"])
    command = str(config.pop("command", None))
    try:
        mode = mode_of(command)
    except InputError as error:
        raise InputError(f"{run}: {error}") from None
    models = {name: config.pop(name) for name in mode.models if config.get(name) not in (None, RECORDED)}
    settings = {name: config.pop(name) for name in mode.settings if config.get(name) is not None}
    of_mode = (*mode.models, *mode.settings, TARGETS)  # TARGETS: only in the directory of several runs
    config = {name: value for name, value in config.items() if name not in of_mode}
    examples, checklist, prompts = directory.read_inputs()
    if checklist is None and mode.needs_checklist:
        raise InputError(f"{run}/inputs/checklist.yaml is missing, so the run cannot be resumed.")
    for name in mode.prompts:
        if name not in prompts:
            raise InputError(f"{run}/inputs/{name}.md is missing, so the run cannot be resumed.")
    known = parse_options(mode.options, config | dict(options), f"{run}/config.yaml", kept=True)
    for name, why in idle_settings(mode.options, vars(known)).items():
        if name in by_own_names(options, run):
            raise InputError(f"{name}: {why}.")
    models |= given or {}
    if models.get("generator") is not None:
        how: dict[str, Any] = {"version": getattr(known, "generator_version", None), "timeout": known.timeout}
        if "generator" not in (given or {}):
            how |= {"folder": directory.began_in, "begun_with": settings.get("program")}
        models["generator"] = writer_of(models["generator"], **how)
    if known.memory is not None and not (run / "inputs" / MEMORY_FILE).is_file():
        raise InputError(f"{run}/inputs/{MEMORY_FILE} is missing, so the run cannot be resumed.")
    earlier = read_earlier(directory)
    if isinstance(earlier, Earlier):
        # inputs/prompt.md holds the text alone; the examples that the judge is shown are in its file
        prompts = {**prompts, "prompt": replace(prompts["prompt"], shown=earlier.judge.prompt.shown)}
    return Job(command, examples, checklist, prompts, models, known, settings, earlier=earlier)


async def _run(
    job: Job,
    run: RunDirectory,
    store: VerdictStore,
    watcher: Watcher,
    callbacks: Iterable[Callback],
    report: Callable[[Path], object] | None,
    ask_first: bool,
) -> RunResult:
    mode = mode_of(job.command)
    splits = split_examples(job, mode.strata(job))
    events = Teller(run.journal(), watcher, callbacks)
    if run.finished:
        events.say("this run has a result; what follows is read from its answers, and only what is not there is asked")
    events.tell(RunBegan(run.path, job.config, str(run.read_config()["fingerprint"])))
    ids = ([each.id for each in part] for part in (splits.development, splits.validation, splits.test))
    events.emit(ExamplesSplit(*ids))
    if (unused := unused_split(job.examples)) is not None:
        events.say(unused)
    if job.earlier is not None:
        events.say(job.earlier.said(job.examples))
    if looks := earlier_looks(run):
        events.say(
            f"this run was made longer after its test examples had been looked at ({count(looks, 'time')}): its "
            "figures on them are no first look any more"
        )
    asking = session(job.options, store, events.say, stored_answers_are_ours=True, brought=store.brought)
    async with asking as (models, gateway):
        events.watch(gateway.budget)
        context = RunContext(job, splits, models, gateway, run, events)
        context.resolve_names()
        set_up = await mode.set_up(context)
        outcome = await Loop(context, set_up).improve(set_up.start)
        return await finish(context, set_up, outcome, report, ask_first=ask_first)
