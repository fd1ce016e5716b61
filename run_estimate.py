"""What a run would buy, as far as that can be known before it is begun."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from .agents.buying import Estimate
from .agents.note_takers import MOST_LESSONS, MOST_RULES
from .agents.question_writer import MOST_CALLS
from .evaluation.scoring import human_targets
from .memory.verdict_store import Place, VerdictStore
from .models.event_loops import run_sync
from .models.session import session
from .optimizer.contest import most_tries
from .optimizer.job import Job, SplitExamples, split_examples
from .optimizer.lessons import BATCH
from .optimizer.modes.mode import mode_of
from .optimizer.options import AlignOptions, MigrateOptions, TuneOptions
from .optimizer.phrasings.step import most_calls
from .optimizer.questions.calls import calls_at_most, usual_calls
from .optimizer.questions.together import BOTH_WAYS, GROUP, examples_to_ask_of, mode_for
from .optimizer.trial import CONTROLS, EVIDENCE
from .prompts.examples import human_dimensions


@dataclass(frozen=True)
class RunEstimate:
    """What a run would buy, as far as that can be known before: what is certain, what is usual, and what is the most."""

    fixed: Estimate
    """Judging all splits once with the starting prompt, and the reference's verdicts; what is stored is not bought."""
    usual: int
    """Calls of the whole run, from what such runs took: the true number is between half of it and twice it unless
    there is nothing to improve."""
    wording_calls: int
    """Calls at most of wording the questions anew and trying the new checklist; 0 where they stay."""
    iteration_calls: int
    """Calls of one iteration at most, if every edit has to be tried alone and every helper be asked twice. Questions
    written anew are taken to be as many as those that they replace."""
    last_calls: int
    """Calls for the test and, to calibrate, development examples with the accepted prompt, and at most for what is done once:
    learning questions, pruning, and stating what fails in its own words."""
    together: int | None = None
    """As ``usual``, where the judge is found to answer several questions in one call as it answers them alone; None where that
    is not to be found out."""

    @property
    def low(self) -> int:
        """Calls that hardly a run stays below: it ends soon."""
        return max(self.fixed.calls, self.usual // 2) if self.together is None else self.together // 2

    @property
    def high(self) -> int:
        """Calls that hardly a run goes beyond."""
        return max(self.fixed.calls, 2 * self.usual)


LOOK, AGAIN, PRUNING = 1.3, 0.3, 0.7
"""Calls in units of a version's validation examples that an iteration takes for candidates (they are judged in steps, and
dropped) and its development examples for judging them anew, and that pruning takes. From the runs of
``experiments/measured/simulated_world.py``; ``tests/test_dry_run.py`` holds the estimate against scripted runs."""
EDITS_AFTER = 1 / 3
"""Of the usual rounds of edits, what ``update`` auto is taken to try beside learning: all where no question joins, else none."""


def estimate_run(job: Job) -> RunEstimate:
    """What running a job would buy; nothing is bought.

    Raises:
        InputError: A model is not known.
    """
    mode = mode_of(job.command)
    splits = split_examples(job, mode.strata(job))

    async def judging(there: Path | None, shared: Place | None) -> tuple[Estimate, bool]:
        with VerdictStore(":memory:", there, shared, is_ours=True) as store:
            async with session(job.options, store) as (models, gateway):
                finds_out = (
                    isinstance(job.options, AlignOptions)
                    and mode_for(job.options, models.get(job.models["model"]), gateway) == "auto"
                )
                return mode.estimate(job, splits, models, gateway), finds_out

    there = job.earlier.answers if job.earlier and not job.options.no_cache else None
    shared = job.options.shared if job.may_share else None
    shared = None if isinstance(shared, Path) and not shared.exists() else shared
    whole, finds_out = run_sync(judging(None, None))
    fixed = whole if there is None and shared is None else run_sync(judging(there, shared))[0]
    return _run_estimate(job, splits, whole, fixed, finds_out=finds_out)


def _run_estimate(job: Job, splits: SplitExamples, whole: Estimate, fixed: Estimate, *, finds_out: bool) -> RunEstimate:
    """Of what judging everything once takes, with nothing stored (``whole``) and now (``fixed``).

    ``finds_out`` says whether it is found out if questions can be asked together.
    """
    options = job.options
    if isinstance(options, AlignOptions) and options.calibrate:
        return RunEstimate(fixed, fixed.calls, 0, 0, 0)
    development, validation, test = (len(part) for part in (splits.development, splits.validation, splits.test))
    a_version = ceil((whole.calls + whole.stored) / len(job.examples))  # calls an example, rounded up
    notes = min(options.max_notes, development * max(1, a_version))
    one_version = validation * a_version
    regenerates = isinstance(options, AlignOptions) and options.regenerate_questions
    questions = 2 * MOST_CALLS + one_version if regenerates else 0  # written, with re-asks, and tried
    if options.paper:
        return _paper_estimate(job, fixed, (development, validation, test), a_version, questions)
    lessons = notes * (MOST_RULES if options.notes == "batched" else 1)
    edits = min(lessons, options.max_lessons)
    explanations = 0 if options.explain == "never" else 2 * notes
    trials = edits * (EVIDENCE + CONTROLS) * (a_version if job.command == "tune" else 1) if options.trial else 0
    # notes, kinds of faults, repeats, classes, three opposites among lessons and three in the prompt, edits, critiques; each
    # with one re-ask
    helpers = 2 * (options.note_samples + 10 + 2 * options.critique) * lessons
    tries = most_tries(edits)
    iteration = development * a_version + explanations + helpers + trials + tries * one_version + questions
    prunes = options.prune and options.edits_prompt
    pruning = options.max_lessons * one_version if prunes else 0
    words = 0
    if isinstance(options, MigrateOptions) and options.words_questions and job.checklist is not None:
        words = most_calls(len(job.checklist.questions), development, job.views) + one_version
    only_words = isinstance(options, MigrateOptions) and options.update == "questions"
    learning, usually_learning = _learning(job, splits, a_version, grouped=options.mode == "batched")
    asked_both_ways, learned_together = 0, None
    if finds_out:
        most_together, learned_together = _learning(job, splits, a_version, grouped=True)
        asked_both_ways = options.repeat * examples_to_ask_of(len(job.questions.questions), development)
        by_candidates = BOTH_WAYS // GROUP * (development + validation) if learning else 0
        learning = max(learning, most_together) + (asked_both_ways or by_candidates)
    states = (isinstance(options, TuneOptions) and options.plain_first) or options.memory is not None
    lines = most_tries(options.max_lessons) * one_version + 2 * options.max_lessons + questions if states else 0
    ends = (test + development) * a_version

    looked = a_version  # a version's calls an example, without the source's
    if job.command == "migrate" and job.checklist is not None:
        looked = options.repeat * (len(job.checklist.questions) if options.mode != "batched" else 1)
    rounds = 0 if only_words else min(options.max_iterations, options.patience + 1)
    a_note = (options.note_samples + 1 + (options.explain != "never") + options.critique) * notes
    edits_too = EDITS_AFTER if options.update == "auto" else 0.0

    def usual(judged: int, looked: int, learned: float | None) -> int:
        a_round = (LOOK * validation + AGAIN * development) * looked + a_note + trials / 4
        at_the_end = test * looked + (PRUNING * validation * looked if prunes else 0)
        improving = rounds * a_round if learned is None else learned + edits_too * rounds * a_round
        return round(judged + words / 2 + improving + at_the_end)

    together = None
    if asked_both_ways:
        a_call = ceil(fixed.calls / len(job.questions.questions))
        judged = min(fixed.calls, a_call + asked_both_ways * len(job.questions.questions))
        together = usual(judged, options.repeat, learned_together)
    elif learned_together is not None:
        together = usual(fixed.calls, looked, learned_together)
    most = ends + pruning + lines + learning
    usually = usual(fixed.calls, looked, usually_learning)
    return RunEstimate(fixed, usually, words, 0 if only_words else iteration, most, together)


def _paper_estimate(
    job: Job, fixed: Estimate, parts: tuple[int, int, int], a_version: int, writing: int
) -> RunEstimate:
    """Of the papers' loop: at most every example is disputed on every question; usually half of them are, in two rounds.

    ``parts`` are the sizes of development, validation and test; ``writing`` is what new questions take in an iteration.
    """
    options, (development, validation, test) = job.options, parts
    batches = ceil(development / BATCH) if options.notes == "batched" else development
    updates = 1 if options.update == "rewrite" else options.max_lessons
    reasons = 0 if options.explain == "never" else 2 * development * a_version
    helpers = 2 * (batches + MOST_LESSONS * development + updates)
    versions = (development + validation) * a_version
    usual = 2 * ((batches + MOST_LESSONS * development) / 2 + updates + versions + writing / 4) + test * a_version
    if options.explain == "needed":
        usual += reasons / 2
    return RunEstimate(
        fixed,
        round(fixed.calls + usual),
        0,
        versions + reasons + helpers + writing,
        (test + development) * a_version,
    )


def _learning(job: Job, splits: SplitExamples, a_version: int, *, grouped: bool) -> tuple[int, float | None]:
    """Calls at most of learning questions, and usually; None where no comment is read, so that it takes few.

    Where questions are learned, no edit is tried. ``grouped`` says whether several questions are a call.
    """
    options = job.options
    if not isinstance(options, AlignOptions) or options.update not in ("auto", "questions"):
        return 0, None
    halves = [splits.development, splits.validation]
    taught = halves if options.learn_from == "both" else halves[:1]
    tests = len(splits.test) + (0 if len(taught) == len(halves) else len(splits.validation))
    asked = a_version if options.mode == "batched" else ceil(a_version / len(job.questions.questions))
    again = (options.max_questions if options.memory is not None else 0) + (
        len(job.earlier.remembered.waiting) if job.earlier else 0
    )
    dimensions = len(human_dimensions(job.examples))
    views = job.views + (not grouped)  # a quote is a call of its own
    most = calls_at_most(
        taught,
        tests,
        most=options.max_questions,
        rounds=options.max_iterations,
        dimensions=dimensions,
        waiting=again,
        asked=asked,
        grouped=grouped,
        views=views,
    )
    usual = usual_calls(
        taught,
        tests,
        human_targets(job.examples, job.questions, options.human_scale),
        most=options.max_questions,
        rounds=options.max_iterations,
        asked=asked,
        grouped=grouped,
        views=views,
        before=job.earlier.comments_read(job.examples) if job.earlier else (),
    )
    return most, usual
