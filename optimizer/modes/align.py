"""``align``: bring a judge nearer to people's scores (BinEval App. B)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import QuestionWriter
from ...evaluation.evaluate import load_inputs
from ...evaluation.options import parse_options
from ...evaluation.scoring import human_targets
from ..job import Job
from ..options import AlignOptions
from ..pruning import QuestionsAgain
from ..signals import HumanSignal
from ..subject import Draft
from ..yardsticks import CorrelationYardstick, SeverityDrift
from .judge import batch_note_taker, judge_extras, judge_note_taker, judge_screening, judge_subject, strata_of_people
from .mode import SetUp

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
        job, options = bench.job, _options(bench.job)
        assert job.checklist is not None, "a judge needs a checklist"
        model = bench.model("model")
        targets = human_targets(job.examples, job.checklist, options.human_scale)
        yardstick = CorrelationYardstick(targets, resamples=options.resamples, seed=options.seed)
        subject = judge_subject(bench, model, "model")
        questions_again = None
        if options.regenerate_questions:
            writer = QuestionWriter(bench.gateway, bench.helper("writer", model), bench.embedder, seed=options.seed)
            questions_again = QuestionsAgain(writer, job.checklist.dimensions, bench.events)
        return SetUp(
            start=Draft(job.prompt, job.checklist),
            subject=subject,
            signal=HumanSignal(
                targets,
                bench.splits.development,
                subject.evaluator if options.explain != "never" else None,
                threshold=options.threshold,
            ),
            yardstick=yardstick,
            drift=SeverityDrift(yardstick, options.max_drift),
            note_taker=judge_note_taker(bench, model),
            helper=model,
            batches=batch_note_taker(bench, model),
            questions_again=questions_again,
            screening=judge_screening(bench, subject),
            extras=partial(judge_extras, bench, subject),
            improve=not options.calibrate,
            facts={"reference": targets.kind},
        )

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """The judge on everything."""
        assert job.checklist is not None, "a judge needs a checklist"
        judge = models.get(job.models["model"])
        return Evaluator(gateway, judge, job.prompt, job.checklist, job.options.judging).estimate(job.examples)


MODE = Align()


def _options(job: Job) -> AlignOptions:
    assert isinstance(job.options, AlignOptions), "an alignment has its own settings"
    return job.options
