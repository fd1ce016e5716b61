"""``tune``: improve a generator's prompt against a judge, a checker, or both (BinEval §3.4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.example_questions import ExampleQuestions, estimate_unwritten
from ...agents.generator import Generator, GeneratorNoteTaker, RequirementWriter
from ...evaluation.weights_file import weighted_by
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...prompts.checklist import Checklist, load_checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example, load_examples
from ...prompts.human_feedback import stray_comments_said
from ...prompts.prompt import Prompt, default_prompt, load_generator_prompt, load_prompt
from ...settings import parse_options, refuse_idle
from ..acceptance import acceptance_of
from ..job import Job, SplitExamples
from ..mode import SetUp
from ..options import TuneOptions
from ..run_context import RunContext
from ..steps.lesson_edits import edit_steps
from ..steps.lessons import task_of
from ..steps.plain_lines import PlainLines
from ..steps.pruning import Pruning
from ..subject import Draft
from ..yardsticks import MeanYardstick, PassRateGuard
from .checker import CheckFunction, load_checker
from .generator import FailureSignal, GeneratorSubject, OutputJudge, effect_facts
from .judge import note_taking

logger = logging.getLogger(__name__)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    generator: str | Model,
    judge: str | Model | None,
    prompt: str | Path | Prompt,
    judge_prompt: str | Path | Prompt | None,
    checker: str | CheckFunction | None,
    options: Mapping[str, Any],
) -> Job:
    """Load and check the inputs.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(TuneOptions, dict(options))
    refuse_idle(settings, judge=judge, checklist=checklist)
    if judge is None and judge_prompt is not None:
        raise InputError("judge_prompt: no judge is asked (--judge).")
    examples = load_examples(
        data,
        fields=settings.field,
        limit=settings.limit,
        need_output=False,
        labels=settings.labels,
        label_scale=settings.label_scale,
    )
    questions = None
    if checklist is not None:
        questions = load_checklist(checklist)
        if settings.weights is not None:
            questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    _check_who_judges(questions, judge, checker, settings)
    if questions is not None and checker is None:
        stray = stray_comments_said({each.id: each.comment for each in examples}, questions)
        if stray is not None:
            logger.warning("%s", stray)
    prompts = {"prompt": load_generator_prompt(prompt)}
    models: dict[str, str | Model] = {"generator": generator}
    if judge is not None:
        models["judge"] = judge
        prompts["judge_prompt"] = default_prompt(examples) if judge_prompt is None else load_prompt(judge_prompt)
    loaded = {} if checker is None else {"checker": load_checker(checker)}
    names = {name: each.name for name, each in loaded.items()}
    return Job("tune", examples, questions, prompts, models, settings, names, loaded)


def _check_who_judges(
    checklist: Checklist | None, judge: str | Model | None, checker: object, settings: TuneOptions
) -> None:
    asks = checklist is not None or settings.own_questions
    if judge is None and checker is None:
        raise InputError("Nothing says how good an output is: give a --judge with a --checklist, or a --checker.")
    if judge is not None and not asks:
        raise InputError("The judge has nothing to ask: give a --checklist, or --own-questions.")
    if judge is None and asks:
        raise InputError("There are questions but no --judge to answer them.")
    if settings.notes == "batched" and not settings.paper:
        raise InputError("--notes batched is for judges; an output's failures are read one by one.")
    if checklist is not None and settings.own_questions:
        raise InputError("--own-questions writes questions for each example; leave out --checklist, or that.")


class Tune:
    """The mode: a generator's prompt, held against questions and checks."""

    options = TuneOptions
    models = ("generator", "judge")
    prompts = ("prompt",)
    settings = ("checker",)
    needs_checklist = False

    def strata(self, job: Job) -> list[float | None] | None:
        """None: nothing is known of the examples before something is written for them."""
        return None

    async def set_up(self, context: RunContext) -> SetUp:
        """Nothing is bought before the loop."""
        job, options = context.job, context.job.options_as(TuneOptions)
        generator = context.model("generator")
        judge = context.model("judge") if "judge" in job.models else None
        helper = judge or generator
        checker = job.checker
        subject = GeneratorSubject(
            Generator(
                context.gateway,
                generator,
                job.prompt,
                options.max_output_tokens,
                options.generator_temperature,
                options.seed,
            ),
            judge=None
            if judge is None
            else OutputJudge(judge, job.prompts["judge_prompt"], options.judging, options.soft),
            checklist=job.checklist,
            questions=ExampleQuestions(context.gateway, context.helper("writer", helper), seed=options.seed)
            if options.own_questions
            else None,
            checker=load_checker(checker, context.run.began_in) if checker else None,
            score_as=options.score_as,
            tally=context.count,
            say=context.events.say,
        )
        note_taker = GeneratorNoteTaker(
            context.gateway,
            context.helper("note_taker", helper),
            task_of(job.checklist),
            seed=options.seed,
            settings=note_taking(options),
        )
        signal = FailureSignal(
            subject.evaluator if options.explain != "never" else None,
            {each.id: each.comment for each in context.splits.development},
        )
        yardstick = MeanYardstick(resamples=options.resamples, seed=options.seed)
        plain = _plain_lines(context, options, helper)
        guard, validation = PassRateGuard(options.max_bias), context.splits.validation
        return SetUp(
            start=Draft(job.prompt, job.checklist),
            subject=subject,
            signal=signal,
            yardstick=yardstick,
            acceptance=acceptance_of(options, yardstick, validation, guard),
            steps=edit_steps(
                context, subject, signal, helper, note_taker, plain=plain, classify=True, failed_before_first=True
            ),
            last=(Pruning(yardstick),) if options.prune and not options.paper else (),
            agreed="nothing_fails",
            free_facts=(partial(effect_facts, context),),
        )

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """Writing all outputs, and judging them; questions written per example are counted as six."""
        options = job.options_as(TuneOptions)
        model = models.get(job.models["generator"])
        settings = (options.max_output_tokens, options.generator_temperature, options.seed)
        writer = Generator(gateway, model, job.prompt, *settings)
        found = writer.estimate(job.examples)
        if "judge" not in job.models:
            return found
        judge, prompt = models.get(job.models["judge"]), job.prompts["judge_prompt"]
        if job.checklist is not None:
            shown = writer.foreseen(job.examples)
            return found + Evaluator(gateway, judge, prompt, job.checklist, options.judging).estimate(shown)
        return found + estimate_unwritten(job.examples, prompt, options.judging)


def _plain_lines(context: RunContext, options: TuneOptions, helper: Model) -> PlainLines | None:
    """Who states requirements plainly; nobody where it was not wanted."""
    if not options.plain_first:
        return None
    writer = RequirementWriter(context.gateway, context.helper("note_taker", helper), seed=options.seed)
    return PlainLines(writer, context.job.checklist, context.memory, context.events)


MODE = Tune()
