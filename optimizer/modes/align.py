"""``align``: bring a judge nearer to people's scores (BinEval App. B)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import QuestionWriter
from ...evaluation.evaluate import load_inputs
from ...evaluation.options import parse_options
from ...evaluation.scoring import human_targets
from ...prompts.comments import stray_comments_said
from ...prompts.examples import human_dimensions
from ..job import Job
from ..options import AlignOptions
from ..pruning import QuestionsAgain
from ..signals import HumanSignal
from .judge import judge_set_up, judge_subject, learner, strata_of_people

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...models.resolve import Models
    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.prompt import Prompt
    from ..job import SplitExamples
    from .bench import Bench
    from .mode import SetUp

logger = logging.getLogger(__name__)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> Job:
    """Load and check the inputs.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(AlignOptions, dict(options))
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    job = Job("align", examples, questions, {"prompt": text}, {"model": model}, settings)
    strata_of_people(job)  # refuses data without human scores before anything is opened
    stray = stray_comments_said({each.id: each.comment for each in examples}, questions, human_dimensions(examples))
    if stray is not None:
        logger.warning("%s", stray)
    return job


class Align:
    """The mode: a judge's prompt, held against people."""

    options = AlignOptions
    models = ("model",)
    prompts = ("prompt",)
    settings = ()
    needs_checklist = True

    def strata(self, job: Job) -> list[float | None] | None:
        """The human scores."""
        return strata_of_people(job)

    async def set_up(self, bench: Bench) -> SetUp:
        """Nothing is bought before the loop: people have judged already."""
        job, options = bench.job, bench.job.options_as(AlignOptions)
        model = bench.model("model")
        targets = human_targets(job.examples, job.questions, options.human_scale)
        subject = judge_subject(bench, model, "model")
        judge = subject.evaluator if options.explain != "never" else None
        signal = HumanSignal(targets, bench.splits.development, judge, threshold=options.threshold)
        set_up = replace(judge_set_up(bench, subject, signal, targets, model), improve=not options.calibrate)
        if options.update in ("auto", "questions"):
            set_up = replace(set_up, learner=learner(bench, subject, targets, model))
        if not options.regenerate_questions:
            return set_up
        writer = QuestionWriter(bench.gateway, bench.helper("writer", model), bench.embedder, seed=options.seed)
        return replace(set_up, questions_again=QuestionsAgain(writer, job.questions.dimensions, bench.events))

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """The judge on everything."""
        judge = models.get(job.models["model"])
        return Evaluator(gateway, judge, job.prompt, job.questions, job.options.judging).estimate(job.examples)


MODE = Align()
