"""What the modes that improve a judge have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agents.batch_notes import BatchNoteTaker
from ..agents.note_taker import NoteTaker
from ..agents.notes import NoteTaking
from ..evaluation.scoring import human_targets
from .judge_subject import JudgeSubject
from .screening import Screening

if TYPE_CHECKING:
    from ..models.base import Model
    from .bench import Bench
    from .job import Job
    from .lessons import TakesNotes
    from .options import LoopOptions


def judge_subject(bench: Bench, model: Model, role: str) -> JudgeSubject:
    """The judge that is improved; ``role`` is its ledger."""
    options = bench.job.options
    return JudgeSubject(bench.gateway, model, options.judging, role=role, soft=options.soft, tally=bench.count)


def judge_screening(bench: Bench, subject: JudgeSubject) -> Screening | None:
    """Judges candidates on a part of the questions first; None where one call answers all questions."""
    options = bench.job.options
    return None if options.judging.mode == "batched" else Screening(subject, bench.memory, soft=options.soft)


def judge_note_taker(bench: Bench, model: Model) -> TakesNotes:
    """Who takes notes on a judge's disagreements: ours, or one that was compiled with DSPy.

    Raises:
        InputError: The compiled one cannot be read.
        MissingExtraError: It needs DSPy, which is not installed.
    """
    job, options = bench.job, bench.job.options
    assert job.checklist is not None, "a judge needs a checklist"
    taker = bench.helper("note_taker", model)
    task, seed, program = job.checklist.task, options.seed, options.note_taker_program
    if program is None:
        return NoteTaker(bench.gateway, taker, task, seed=seed, settings=note_taking(options))
    from ..agents.dspy.note_taker import CompiledNoteTaker

    return CompiledNoteTaker(bench.gateway, taker, task, program, seed=seed)


def batch_note_taker(bench: Bench, model: Model) -> BatchNoteTaker:
    """Who takes notes on several of a judge's disagreements at once."""
    job, options = bench.job, bench.job.options
    assert job.checklist is not None, "a judge needs a checklist"
    taker = bench.helper("note_taker", model)
    return BatchNoteTaker(bench.gateway, taker, job.checklist.task, seed=options.seed, settings=note_taking(options))


def note_taking(options: LoopOptions) -> NoteTaking:
    """How notes are taken."""
    return NoteTaking(samples=options.note_samples, contrast=options.contrast, critique=options.critique)


def strata_of_people(job: Job) -> list[float | None]:
    """The human score of every example, to be spread evenly over the splits.

    Raises:
        InputError: The checklist asks about no dimension that people rated.
    """
    assert job.checklist is not None, "a judge needs a checklist"
    targets = human_targets(job.examples, job.checklist, job.options.human_scale)
    return [targets.overall(example.id) for example in job.examples]
