"""What a run would buy, as far as that can be known before it is begun."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

from .agents.buying import Estimate
from .agents.note_takers import MOST_LESSONS, MOST_RULES
from .agents.question_writer import MOST_CALLS
from .memory.verdict_store import Place, VerdictStore
from .models.event_loops import run_sync
from .models.session import session
from .optimizer.contest import most_tries
from .optimizer.job import Job, SplitExamples, split_examples
from .optimizer.mode import mode_of
from .optimizer.options import AlignOptions, MigrateOptions, TuneOptions
from .optimizer.questions.calls import calls_at_most
from .optimizer.questions.presentation import BOTH_WAYS, GROUP, examples_to_ask_of, mode_for
from .optimizer.steps.lessons import BATCH
from .optimizer.steps.word_questions import most_calls
from .optimizer.trial import CONTROLS, EVIDENCE
from .prompts.examples import human_dimensions


@dataclass(frozen=True)
class RunEstimate:
    """What a run would buy, as far as that can be known before: what is certain, and what is the most."""

    fixed: Estimate
    """Judging all splits once with the starting prompt, and the reference's verdicts; what is stored is not bought."""
    wording_calls: int
    """Calls at most of wording the questions anew and trying the new checklist; 0 where they stay."""
    iteration_calls: int
    """Calls of one iteration at most, if every edit has to be tried alone and every helper be asked twice. Questions
    written anew are taken to be as many as those that they replace."""
    last_calls: int
    """Calls for the test and, to calibrate, development examples with the accepted prompt, and at most for what is done once:
    learning questions, pruning, and stating what fails in its own words."""


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
        return RunEstimate(fixed, 0, 0, 0)
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
    trials = edits * (EVIDENCE + CONTROLS) * (1 if job.is_judge else a_version) if options.trial else 0
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
    learning = _learning(job, splits, a_version, grouped=options.mode == "batched")
    if finds_out:
        most_together = _learning(job, splits, a_version, grouped=True)
        asked_both_ways = options.repeat * examples_to_ask_of(len(job.questions.questions), development)
        by_candidates = BOTH_WAYS // GROUP * (development + validation) if learning else 0
        learning = max(learning, most_together) + (asked_both_ways or by_candidates)
    states = (isinstance(options, TuneOptions) and options.plain_first) or options.memory is not None
    lines = most_tries(options.max_lessons) * one_version + 2 * options.max_lessons + questions if states else 0
    ends = (test + development) * a_version
    most = ends + pruning + lines + learning
    return RunEstimate(fixed, words, 0 if only_words else iteration, most)


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
    most = versions + reasons + helpers + writing
    return RunEstimate(fixed, 0, most, (test + development) * a_version)


def _learning(job: Job, splits: SplitExamples, a_version: int, *, grouped: bool) -> int:
    """Calls at most of learning questions.

    Where questions are learned, no edit is tried. ``grouped`` says whether several questions are a call.
    """
    options = job.options
    if not isinstance(options, AlignOptions) or options.update not in ("auto", "questions"):
        return 0
    halves = [splits.development, splits.validation]
    taught = halves if options.learn_from == "both" else halves[:1]
    tests = len(splits.test) + (0 if len(taught) == len(halves) else len(splits.validation))
    asked = a_version if options.mode == "batched" else ceil(a_version / len(job.questions.questions))
    again = (options.max_questions if options.memory is not None else 0) + (
        len(job.earlier.remembered.waiting) if job.earlier else 0
    )
    dimensions = len(human_dimensions(job.examples))
    views = job.views + (not grouped)  # a quote is a call of its own
    return calls_at_most(
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
