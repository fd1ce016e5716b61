"""``migrate``: move an evaluator prompt to another model (BinEval §3.3, Algorithm 1).

Beyond the paper the questions are worded anew first, as the target may not understand them as the source does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import Rephraser
from ...evaluation.evaluate import load_inputs
from ...evaluation.own_judge import improved_in_own_words, judge_asked
from ...evaluation.scoring import Targets, human_targets, score_examples, source_targets
from ...evaluation.verdict_table import SaidGood, parity
from ...models.base import Model
from ...models.gateway import Gateway
from ...models.resolve import Models
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents, human_dimensions
from ...prompts.formats.binding import binding_of
from ...prompts.prompt import Prompt, load_prompt
from ...prompts.verdicts import Verdict
from ...settings import parse_options
from ...stats.resampling import Resampling
from ..acceptance import CorrelationYardstick, Yardstick
from ..job import Job, SplitExamples, model_name
from ..mode import RunContext, SetUp
from ..options import MigrateOptions
from ..signals import CrossModelSignal
from ..steps.word_questions import WordQuestions
from ..subject import Observation, Outcome, Subject, by_pair
from .judge import JudgeSubject, asked_as_it_thinks, judge_set_up, strata_of_people


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    source: str | Model,
    target: str | Model,
    prompt: str | Path | Prompt | None,
    source_prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> Job:
    """Load and check the inputs of a migration. Raises InputError that names the file, line and field at fault."""
    checklist, settings = judge_asked(checklist, prompt, parse_options(MigrateOptions, dict(options)))
    settings = improved_in_own_words(settings)
    examples, questions, text = load_inputs(data, checklist, prompt, settings, source_prompt)
    theirs = text if source_prompt is None else load_prompt(source_prompt, binding_of(examples, settings))
    if model_name(source) == model_name(target) and theirs == text:
        raise InputError(
            "Source and target are the same model with the same prompt, so they cannot disagree. Name another model, "
            "or give the source a prompt of its own (--source-prompt)."
        )
    prompts = {"prompt": text, "source_prompt": theirs}
    return Job("migrate", examples, questions, prompts, {"source": source, "target": target}, settings)


class Migrate:
    """The mode that compares a judge with another judge."""

    options = MigrateOptions
    models = ("source", "target")
    prompts = ("prompt", "source_prompt")
    settings = ()
    needs_checklist = True

    def strata(self, job: Job) -> list[float | None] | None:
        """The human scores, where held-out scores are compared with people's."""
        return None if _wants_source_targets(job) else strata_of_people(job)

    async def set_up(self, context: RunContext) -> SetUp:
        """Buy the source's verdicts."""
        job, splits, events = context.job, context.splits, context.events
        options = job.options_as(MigrateOptions)
        source, target = context.model("source"), context.model("target")
        default = source if options.roles == "cross" else target
        their = replace(_source(job, context.gateway, source), role="source", tally=context.count)
        judged = splits.development
        if _wants_source_targets(job):  # its verdicts on the test examples are bought at the end, like the target's
            judged = [*splits.development, *splits.validation]
        events.phase(f"the source judges {len(judged)} examples")
        verdicts = await their.judge(judged, events.advance)
        targets = _targets(job, judged, verdicts)
        subject = JudgeSubject.of(context, target, "target")
        development = {example.id for example in splits.development}
        signal = CrossModelSignal(
            their,
            [each for each in verdicts if each.example in development],
            splits.development,
            subject.evaluator if options.explain != "never" else None,
            margin=options.margin,
            differing=options.differing,
            tolerance=options.tolerance if options.paper else None,
            say=events.say,
            soft=options.soft,
            of_scores=options.reads is not None,
        )
        set_up = replace(judge_set_up(context, subject, signal, targets, default), without_rounds="questions_worded")
        if options.words_questions:
            set_up = replace(set_up, first=(_word_questions(context, subject.once(), verdicts, default),))
        if options.words_questions or options.reads is not None or _wants_source_targets(job):
            parity_facts = partial(_parity_facts, context, their)
            set_up = replace(set_up, bought_facts=(*set_up.bought_facts, parity_facts))
        set_up = await asked_as_it_thinks(context, subject, set_up)

        async def at_the_test() -> CorrelationYardstick:
            events.phase(f"the source judges {len(splits.test)} test examples")
            wanted = _targets(job, splits.test, await their.judge(splits.test, events.advance)).wanted
            known = replace(targets, wanted={**targets.wanted, **wanted})
            return CorrelationYardstick(known, resamples=options.resamples, seed=options.seed)

        return replace(set_up, at_the_test=at_the_test) if _wants_source_targets(job) else set_up

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """The price of source and target, each on the examples that it judges once."""
        source, target = models.get(job.models["source"]), models.get(job.models["target"])
        options = job.options_as(MigrateOptions)
        judged = job.examples if _wants_source_targets(job) or options.words_questions else splits.development
        theirs = _source(job, gateway, source).estimate(judged)
        return theirs + Evaluator(gateway, target, job.prompt, job.questions, options.judging).estimate(job.examples)


MODE = Migrate()


def _source(job: Job, gateway: Gateway, model: Model) -> Evaluator:
    return Evaluator(gateway, model, job.prompts["source_prompt"], job.questions, job.options.judging)


def _wants_source_targets(job: Job) -> bool:
    """Whether held-out scores are compared with the source's and not with people's."""
    reference = job.options_as(MigrateOptions).reference
    return not human_dimensions(job.examples, job.questions) if reference == "auto" else reference == "source"


def _word_questions(context: RunContext, subject: Subject, source: Sequence[Verdict], helper: Model) -> WordQuestions:
    options, development = context.job.options, context.splits.development
    seen = {example.id for example in development}
    return WordQuestions(
        Rephraser(context.gateway, context.helper("writer", helper), seed=options.seed),
        subject,
        by_pair(each for each in source if each.example in seen),
        development,
        context.events,
        Resampling(documents(development), options.resamples, seed=options.seed),
        together=options.judging.mode != "batched",
    )


async def _parity_facts(
    context: RunContext,
    source: Evaluator,
    yardstick: Yardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Compare the answers of the first and the best version with the source's, on validation and test, by question."""
    options = context.job.options
    found: dict[str, dict[str, Any]] = {}
    for split, examples in (("validation", context.splits.validation), ("test", context.splits.test)):
        context.events.phase(f"the source judges {len(examples)} {split} examples, to compare verdicts")
        theirs = SaidGood.of(source.checklist, await source.judge(examples, context.events.advance), examples)
        before, after = (
            SaidGood.of(
                version.draft.questions,
                version.verdicts if split == "validation" else tests[version.number].verdicts,
                examples,
            )
            for version in (outcome.baseline, outcome.best)
        )
        how: dict[str, Any] = {"resamples": options.resamples, "seed": options.seed}
        how["of_scores"] = options.judging.reads is not None
        found[split] = {
            "baseline": parity(theirs, before, examples, **how),
            "best": parity(theirs, after, examples, before=before, **how),
        }
    return {"parity": found}


def _targets(job: Job, examples: Sequence[Example], source_verdicts: Sequence[Verdict]) -> Targets:
    if _wants_source_targets(job):
        scores = score_examples(examples, job.questions, source_verdicts, soft=job.options.soft)
        return source_targets(job.questions, scores)
    return human_targets(job.examples, job.questions, job.options.human_scale)
