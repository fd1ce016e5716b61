"""``tune``: improve a generator's prompt against a judge, a checker, or both (BinEval §3.4)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.buying import Estimate
from ...agents.checks import CheckFunction, load_checker, make_ready
from ...agents.evaluator import Evaluator
from ...agents.example_questions import ExampleQuestions, estimate_unwritten
from ...agents.generator import Generator, GeneratorNoteTaker, RequirementWriter
from ...agents.traces.replay import ReplayingGenerator, with_record
from ...evaluation.generate import writing_for
from ...evaluation.measures.probe import paid_for, paid_for_said
from ...evaluation.weights_file import weighted_by
from ...memory.records import PerOutputRecord
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.programs import GeneratorFunction, Program, writer_of
from ...models.resolve import Models
from ...models.writing import AS_THE_RUN, PromptSettings, read_writing
from ...prompts.checklist import SCHEMA_CHECK, Checklist, load_checklist, with_schema
from ...prompts.errors import InputError
from ...prompts.examples import Example, ExampleTable, load_examples
from ...prompts.formats.binding import binding_of, refuse_unused
from ...prompts.formats.several import PromptsOfProgram, generator_prompt
from ...prompts.formatting import count
from ...prompts.human_feedback import stray_comments_said
from ...prompts.prompt import Prompt, default_prompt, load_prompt
from ...settings import parse_options, refuse_idle
from ..acceptance import MeanYardstick, PassRateGuard, Yardstick, acceptance_of
from ..job import Job, SplitExamples
from ..mode import RunContext, SetUp
from ..options import TuneOptions
from ..steps.additions import AdditionWriter, of_examples
from ..steps.edits import PlainLines
from ..steps.lesson_edits import Pruning, edit_steps
from ..steps.lessons import task_of
from ..steps.try_additions import TryAdditions
from ..subject import Draft, Observation, Outcome
from .generator import OLD, FailureSignal, GeneratorSubject, OldVerdicts, OutputJudge, effect_facts

logger = logging.getLogger(__name__)
OLD_OUTPUTS = "old_outputs"
"""Setting of a run whose examples carry the outputs of an old model, with which new outputs are compared."""


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    generator: str | Model | GeneratorFunction,
    judge: str | Model | None,
    prompt: PromptsOfProgram,
    judge_prompt: str | Path | Prompt | None,
    checker: str | CheckFunction | None,
    options: Mapping[str, Any],
    schema: str | Path | Mapping[str, Any] | None = None,
) -> Job:
    """Load and check the inputs. Raises InputError, which names the file, line and field at fault."""
    settings = parse_options(TuneOptions, dict(options))
    refuse_idle(settings, judge=judge, checklist=checklist, generator=generator)
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
    if settings.replay:
        examples = ExampleTable(map(with_record, examples))
    questions = None
    if checklist is not None:
        questions = load_checklist(checklist)
        if settings.weights is not None:
            questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    schema = schema_beside(prompt) if schema is None else schema
    questions = with_schema(without_paid(questions, examples), schema)
    _check_who_judges(questions, judge, checker, settings)
    if questions is not None and checker is None:
        stray = stray_comments_said({each.id: each.comment for each in examples}, questions)
        if stray is not None:
            logger.warning("%s", stray)
    binding = binding_of(examples, settings)
    written_by = writer_of(generator, version=settings.generator_version, timeout=settings.timeout)
    text, prompt_name = generator_prompt(prompt, binding, is_program=isinstance(written_by, Program))
    prompts = {"prompt": text}
    models: dict[str, str | Model] = {"generator": written_by}
    if judge is not None:
        models["judge"] = judge
        prompts["judge_prompt"] = (
            default_prompt(examples) if judge_prompt is None else load_prompt(judge_prompt, binding)
        )
    refuse_unused(settings.variable, [(each.form, each.placeholders) for each in prompts.values()])
    loaded = {} if checker is None else {"checker": load_checker(checker)}
    names = {name: each.name for name, each in loaded.items()}
    if schema is not None and questions is not None:
        names["schema"] = next(str(each.value) for each in questions.checks if each.id == SCHEMA_CHECK)
    if isinstance(written_by, Program):
        names |= {"program": written_by.version, "prompt_name": prompt_name}
    elif (writing := writing_for(prompt, settings, schema)).stated:
        names["writing"] = writing.to_yaml()
    if questions is not None:
        make_ready(questions.computed)
    return Job("tune", examples, questions, prompts, models, settings, names, loaded)


def without_paid(checklist: Checklist | None, examples: Sequence[Example]) -> Checklist | None:
    """Return the checklist without criteria that reward repeating the input, and log a warning about them. Raises
    InputError where no other criterion is left."""
    # a generator that is tuned finds out what pleases its judge
    if checklist is None:
        return checklist
    make_ready(checklist.measures)
    gains = paid_for(checklist.measures, list(examples)) if checklist.measures else {}
    gains |= {each.id: paid for each in checklist.asked if (paid := each.pays_for_repeating) is not None}
    if not gains:
        return checklist
    kept_checklist = checklist.of([each for each in checklist.questions if each.id not in gains])
    if kept_checklist is None:
        raise InputError(
            f"An output that repeats what it was given pleases all that counts in this checklist "
            f"({paid_for_said(gains)}): tune would teach just that. Give it questions or checks."
        )
    logger.warning("Left out, as an output that repeats what it was given pleases them: %s.", paid_for_said(gains))
    return kept_checklist


def schema_beside(prompt: object) -> Path | None:
    """Return the JSON schema beside a prompt's file, e.g. ``writer.schema.json`` beside ``writer.md``, or None."""
    file = Path(prompt).with_suffix(".schema.json") if isinstance(prompt, (str, Path)) else None
    if file is None or not file.is_file():
        return None
    logger.warning("%s lies beside the prompt: outputs are to follow it, and every one is checked.", file)
    return file


def _check_who_judges(
    checklist: Checklist | None, judge: str | Model | None, checker: object, settings: TuneOptions
) -> None:
    asks = (checklist is not None and checklist.asked) or settings.own_questions
    checks = checklist is not None and checklist.computed
    if judge is None and checker is None and not checks:
        raise InputError(
            "Nothing says how good an output is: give a --judge with a --checklist, a checklist with checks, or a "
            "--checker."
        )
    if judge is not None and not asks:
        raise InputError("The judge has nothing to ask: give a --checklist, or --own-questions.")
    if judge is None and asks:
        raise InputError("There are questions but no --judge to answer them.")
    both = judge is not None and bool(checker is not None or checks)
    for name in ("lessons_from", "decide_by"):
        if getattr(settings, name) != "both" and not both:
            raise InputError(
                f"{name} {getattr(settings, name)}: the judge alone looks at the outputs; give a --checker, or a checklist "
                "with checks, beside it."
            )
    if checklist is not None and checklist.asked and settings.own_questions:
        raise InputError("--own-questions writes questions for each example; leave out --checklist, or that.")


class Tune:
    """The mode that improves a generator by questions and checks on its outputs."""

    options = TuneOptions
    models = ("generator", "judge")
    prompts = ("prompt",)
    settings = ("checker", "schema", "program", "prompt_name", "writing", OLD_OUTPUTS)
    needs_checklist = False

    def strata(self, job: Job) -> list[float | None] | None:
        """Return None: nothing is known of the examples before outputs are written for them."""
        return None

    async def set_up(self, context: RunContext) -> SetUp:
        """Make the parts of the loop. Only with old outputs verdicts are bought here, on these outputs."""
        job, options = context.job, context.job.options_as(TuneOptions)
        gateway, seed = context.gateway, options.seed
        generator = context.model("generator")
        judge = context.model("judge") if "judge" in job.models else None
        helper = judge or generator
        output_judge = None
        if judge is not None:
            output_judge = OutputJudge(judge, job.prompts["judge_prompt"], options.judging, options.soft)
        if job.checklist is not None:
            make_ready(job.checklist.computed)
        subject = GeneratorSubject(
            _generator(job, gateway, generator),
            output_judge,
            job.checklist,
            ExampleQuestions(gateway, context.helper("writer", helper), seed=seed) if options.own_questions else None,
            load_checker(job.checker, context.run.began_in) if job.checker else None,
            options.score_as,
            tally=context.count,
            say=context.events.say,
            timed=context.run.add_time,
            thinking=partial(context.models.with_thinking, job.models["generator"]),
            lessons_from=options.lessons_from,
            decide_by=options.decide_by,
            judged=_judged(options, context.splits),
        )
        old = None
        if OLD_OUTPUTS in job.settings:
            old = await _old_outputs(context, subject, [*context.splits.development, *context.splits.validation])
            subject = replace(subject, old=old)
        taker = context.helper("note_taker", helper)
        note_taker = GeneratorNoteTaker(gateway, taker, task_of(job.checklist), seed=seed)
        writer, plain, tried = RequirementWriter(gateway, taker, seed=seed), None, None
        if options.plain_first:
            plain = PlainLines(writer, job.checklist, context.memory, context.events)
        if options.additions and not options.paper:
            development = context.splits.development
            before = [] if old is None else [of_examples(each, development) for each in old.seen]
            makes = AdditionWriter(writer, job.checklist, context.events, options.vary, before)
            how = context.events, options.resamples, seed
            tried = TryAdditions(subject, makes, development, job.examples, *how)
        comments = {each.id: each.comment for each in context.splits.development}
        signal = FailureSignal(subject.evaluator if options.explain != "never" else None, comments, old)
        by = "" if options.decide_by == "both" else f" by the {options.decide_by}"
        yardstick = MeanYardstick(options.resamples, seed, f"mean score{by}")
        guard, validation = PassRateGuard(options.max_bias), context.splits.validation
        return SetUp(
            start=Draft(job.prompt, job.checklist, writing=_writing(job)),
            subject=subject,
            signal=signal,
            yardstick=yardstick,
            acceptance=acceptance_of(options, yardstick, validation, guard),
            first=() if tried is None else (tried,),
            steps=edit_steps(context, subject, signal, helper, note_taker, plain=plain, failed_before_first=True),
            last=Pruning.steps(options, yardstick),
            agreed="nothing_fails",
            needs_notes=old is None,
            bought_facts=(partial(_look_at_development, context, subject),) if old is None else (),
            at_the_test=None if old is None else partial(_old_at_the_test, context, subject, old, yardstick),
            free_facts=(partial(effect_facts, context), _per_output, *(() if tried is None else (tried.facts,))),
        )

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """Estimate the price of writing and judging all outputs. Questions of a single example are counted as six."""
        writer = _generator(job, gateway, models.get(job.models["generator"]))
        found = writer.estimate(job.examples)
        if "judge" not in job.models:
            return found
        judge, prompt, judging = models.get(job.models["judge"]), job.prompts["judge_prompt"], job.options.judging
        judged = _judged(job.options_as(TuneOptions), splits)
        asked = [each for each in job.examples if judged is None or each.id in judged]
        if job.checklist is not None and job.checklist.asked:
            shown = writer.foreseen(asked)
            return found + Evaluator(gateway, judge, prompt, job.checklist, judging).estimate(shown)
        return found + estimate_unwritten(asked, prompt, judging)


async def _old_outputs(context: RunContext, subject: GeneratorSubject, examples: Sequence[Example]) -> OldVerdicts:
    context.events.phase(f"judging the old outputs of {count(len(examples), 'example')}")
    old = OldVerdicts()
    await old.judge(subject, examples)
    return old


async def _old_at_the_test(
    context: RunContext, subject: GeneratorSubject, old: OldVerdicts, yardstick: MeanYardstick
) -> MeanYardstick:
    """Judge the old outputs of the test examples, and save these verdicts."""
    context.events.phase("judging the old outputs of the test examples")
    known = len(old.verdicts)
    await old.judge(replace(subject, old=None), context.splits.test)
    context.run.save_verdicts(f"{OLD}-test", old.verdicts[known:])
    return yardstick


async def _look_at_development(
    context: RunContext, subject: GeneratorSubject, _: Yardstick, outcome: Outcome, __: Mapping[int, Observation]
) -> dict[str, Any]:
    """Write and judge the best version's outputs on development, too, so that people can label them."""
    best = outcome.best
    if best.number not in outcome.seen:
        context.events.phase("looking at the development examples with the accepted prompt")
        outcome.seen[best.number] = await subject.observe(
            best.draft, context.splits.development, context.events.advance
        )
    return {}


def _per_output(_: Yardstick, outcome: Outcome, tests: Mapping[int, Observation]) -> dict[str, Any]:
    spent = tests[outcome.best.number].spent if outcome.best.number in tests else None
    if spent is None or not spent.outputs:
        return {}
    price = None if spent.cost_usd is None else spent.cost_usd / spent.outputs
    return {"per_output": PerOutputRecord(tokens=spent.tokens / spent.outputs, cost_usd=price)}


def _judged(options: TuneOptions, splits: SplitExamples) -> frozenset[str] | None:
    """Return the examples that the judge is asked about; None: all."""
    # if code decides, the judge only teaches (BinEval App. B)
    return frozenset(each.id for each in splits.development) if options.decide_by == "checker" else None


def _writing(job: Job) -> PromptSettings | None:
    return read_writing(job.settings["writing"], "writing") if "writing" in job.settings else None


def _generator(job: Job, gateway: Gateway, model: Model) -> Generator:
    options = job.options_as(TuneOptions)
    schema = json.loads(job.settings["schema"]) if "schema" in job.settings else None
    name = job.settings.get("prompt_name", "prompt")
    settings = options.max_output_tokens, options.generator_temperature, options.seed
    writing = _writing(job) or AS_THE_RUN
    kind = ReplayingGenerator if options.replay else Generator
    return kind(gateway, model, job.prompt, *settings, prompt_name=name, schema=schema, writing=writing)


MODE = Tune()
