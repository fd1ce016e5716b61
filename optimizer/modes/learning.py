"""What learns a judge's questions from people's comments, put together from a run's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...agents.comment_questions import BesideReader, CommentReader, Generaliser, KindReader, noun_of
from ...evaluation.scoring import Targets
from ...models.base import Model
from ...prompts.examples import Example
from ..options import AlignOptions
from ..questions.candidates import Candidate
from ..questions.choice import Chooser
from ..questions.finder import Finder
from ..questions.learner import QuestionLearner
from ..questions.proposers import CommentProposer, KindProposer
from ..questions.together import mode_for
from .bench import Bench
from .earlier import WaitingQuestion
from .judge import JudgeSubject


def learner(bench: Bench, subject: JudgeSubject, targets: Targets, helper: Model) -> QuestionLearner:
    """What learns questions from people's comments."""
    splits, options, events, earlier = bench.splits, bench.job.options, bench.events, bench.job.earlier
    aligning = bench.job.options_as(AlignOptions)
    mode, crossed = mode_for(aligning, subject.model, bench.gateway), aligning.learn_from == "both"
    finder, mirror = (
        _finder(bench, subject, targets, helper, part, mode) for part in (splits.development, splits.validation)
    )
    mirror.beside = finder
    every, same_judge = [*splits.development, *splits.validation], bench.job.is_same_judge
    again = earlier.waiting(every, same_judge=same_judge) if earlier is not None else ()
    for each, part, name in ((finder, splits.development, "development"), (mirror, splits.validation, "validation")):
        each.waiting = _of(part, name, again)
        if earlier is not None and same_judge:
            each.dropped = earlier.remembered.dropped
        if bench.remembering is not None:
            each.waiting = [*each.waiting, *bench.remembering.candidates(options.max_questions)]
            each.removed = bench.remembering.removed_questions
    keeps, most = aligning.keep_questions, options.max_questions
    both = Chooser(subject, targets, every, events, most, parts=2, mode=mode, keeps_start=keeps)
    return QuestionLearner(subject, finder, mirror, both, events, options.soft, crossed)


def _finder(
    bench: Bench,
    subject: JudgeSubject,
    targets: Targets,
    helper: Model,
    examples: Sequence[Example],
    mode: Literal["auto", "each", "batched"],
) -> Finder:
    """Finds questions by some of the examples."""
    job, options, events = bench.job, bench.job.options, bench.events
    taker, noun, most = bench.helper("note_taker", helper), noun_of(job.questions), options.max_questions
    writer, workers, earlier = (bench.gateway, taker, noun), bench.gateway.concurrency(taker), job.earlier
    read, contrasted = (earlier.comments_read(examples), earlier.contrasted(examples)) if earlier else ((), ())
    comments = CommentProposer(
        CommentReader(*writer, seed=options.seed),
        BesideReader(*writer, seed=options.seed) if options.max_iterations > 1 else None,
        Generaliser(*writer, seed=options.seed),
        examples,
        bench.embedder,
        events,
        most,
        workers,
        read,
    )
    kinds = KindProposer(KindReader(*writer, seed=options.seed), examples, targets, events, most, workers, contrasted)
    keeps = job.options_as(AlignOptions).keep_questions
    chooser = Chooser(subject, targets, examples, events, most, mode=mode, keeps_start=keeps)
    return Finder(chooser, bench.embedder, events, options.max_iterations, (comments, kinds))


def _of(examples: Sequence[Example], part: str, waiting: Sequence[WaitingQuestion]) -> list[Candidate]:
    """Questions of an earlier run as candidates, with what they come from among these examples, those of a part; without
    those that come from others alone, which these examples are to test."""
    known = {each.id for each in examples}
    found = [(each, tuple(source for source in each.sources if source in known)) for each in waiting]
    return [
        Candidate(each.text, each.dimension, each.kind, sources, each.comments)
        for each, sources in found
        if sources or part in each.parts or not (each.sources or each.parts)
    ]
