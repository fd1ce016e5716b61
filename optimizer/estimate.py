"""What a run would buy, before it does."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from ..agents.batch_notes import MOST_RULES
from ..agents.question_writer import MOST_CALLS
from ..models.session import run_sync, session
from .contest import most_tries
from .job import split_examples
from .modes.mode import mode_of
from .options import AlignOptions
from .trial import CONTROLS, EVIDENCE

if TYPE_CHECKING:
    from ..agents.buying import Estimate
    from .job import Job


@dataclass(frozen=True)
class RunEstimate:
    """What a run would buy at least and at most, as far as that can be known before."""

    fixed: Estimate
    """Judging all splits once with the starting prompt, and the reference's verdicts."""
    iteration_calls: int
    """Calls of one iteration at most, if every edit has to be tried alone and every helper be asked twice. Questions
    written anew are taken to be as many as those that they replace."""
    last_calls: int
    """Calls for the test and, to calibrate, development examples with the accepted prompt, and for pruning at most."""


def estimate_run(job: Job) -> RunEstimate:
    """What running a job would buy; nothing is bought.

    Raises:
        InputError: A model is not known.
    """
    mode = mode_of(job.command)
    splits = split_examples(job, mode.strata(job))

    async def estimate() -> RunEstimate:
        async with session(job.options, None) as (models, gateway):
            fixed = mode.estimate(job, splits, models, gateway)
        options = job.options
        a_version = ceil(fixed.calls / len(job.examples))  # calls an example, rounded up
        notes = min(options.max_notes, len(splits.development) * max(1, a_version))
        one_version = len(splits.validation) * a_version
        lessons = notes * (MOST_RULES if options.notes == "batched" else 1)
        edits = min(lessons, options.max_lessons)
        explanations = 0 if options.explain == "never" else 2 * notes
        again = len(splits.development) * a_version
        trials = edits * (EVIDENCE + CONTROLS) * (a_version if job.command == "tune" else 1) if options.trial else 0
        # notes, kinds of faults, repeats, classes, three opposites, edits, critiques; each with one re-ask
        helpers = 2 * (options.note_samples + 7 + 2 * options.critique) * lessons
        tries = most_tries(edits)
        regenerates = isinstance(options, AlignOptions) and options.regenerate_questions
        questions = 2 * MOST_CALLS + one_version if regenerates else 0  # written, with re-asks, and tried
        iteration = again + explanations + helpers + trials + tries * one_version + questions
        pruning = options.max_lessons * one_version if options.prune else 0
        return RunEstimate(fixed, iteration, (len(splits.test) + len(splits.development)) * a_version + pruning)

    return run_sync(estimate())
