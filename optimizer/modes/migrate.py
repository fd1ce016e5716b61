"""``migrate``: move an evaluator prompt to another model (BinEval §3.3, Algorithm 1).

Beyond the paper, questions are worded anew first, because the target may not understand them as the source does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.buying import Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import Rephraser
from ...evaluation.evaluate import load_inputs
from ...evaluation.kept_judge import SETTINGS
from ...evaluation.own_judge import improved_in_own_words, judge_asked
from ...evaluation.pass_fail import pass_labels
from ...evaluation.scoring import WHOLE, Targets, human_targets, score_examples, source_targets
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
from ...settings import parse_options, refuse_idle
from ...stats.resampling import Resampling
from ..acceptance import CorrelationYardstick, Yardstick
from ..events import Teller
from ..job import Job, SplitExamples, model_name
from ..migration.decision import power_lines, power_said
from ..migration.judge_certificate import AgreementMeasure, JudgesCompared, SeenJudge
from ..migration.recorded import RECORDED, RecordedJudge, read_recorded
from ..mode import RunContext, SetUp
from ..options import MigrateOptions
from ..signals import CrossModelSignal, HumanSignal, Signal
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
    """Load and check the inputs of a migration. With source ``recorded``, the data hold the source's verdicts or
    scores. Raises InputError, which names the file, line and field at fault."""
    checklist, settings = judge_asked(checklist, prompt, parse_options(MigrateOptions, dict(options)))
    settings = improved_in_own_words(settings)
    refuse_idle(settings, source=source)
    recorded = source == RECORDED
    if recorded and settings.judge_scores is None:
        raise InputError(
            "--source recorded: name the column of DATA with the old judge's scores or verdicts: --judge-scores COLUMN"
        )
    if recorded and source_prompt is not None:
        raise InputError("--source-prompt: the source is recorded, so it is asked nothing.")
    examples, questions, text = load_inputs(data, checklist, prompt, settings, source_prompt)
    theirs = text if source_prompt is None else load_prompt(source_prompt, binding_of(examples, settings))
    prompts = {"prompt": text, "source_prompt": theirs}
    refuse_the_same(source, target, prompts)
    if not recorded:
        return Job("migrate", examples, questions, prompts, {"source": source, "target": target}, settings)
    said = read_recorded(examples, questions, settings)  # wrong records are refused here, before there is a run
    if settings.update == "questions" and said.scores:
        raise InputError(
            "update questions: a question is worded anew by the old judge's verdicts on it, and --judge-scores has "
            "scores alone."
        )
    return Job("migrate", examples, questions, prompts, {"target": target}, settings, {"source": RECORDED})


def refuse_the_same(source: str | Model, target: str | Model, prompts: Mapping[str, Prompt]) -> None:
    """Raise InputError if target and source are the same model with the same prompt."""
    if model_name(source) == model_name(target) and prompts["source_prompt"] == prompts["prompt"]:
        raise InputError(
            "Source and target are the same model with the same prompt, so they cannot disagree. Name another model, "
            "or give the source a prompt of its own (--source-prompt)."
        )


class Migrate:
    """The mode that compares a judge with another judge."""

    options = MigrateOptions
    models = ("source", "target")
    prompts = ("prompt", "source_prompt")
    settings = ("source",)
    needs_checklist = True

    def strata(self, job: Job) -> list[float | None] | None:
        """Return the human scores, if held-out scores are compared with people's; else None."""
        return None if _wants_source_targets(job) else strata_of_people(job)

    async def set_up(self, context: RunContext) -> SetUp:
        """Buy the source's verdicts, and make the parts of the loop."""
        job, splits, events = context.job, context.splits, context.events
        options = job.options_as(MigrateOptions)
        target = context.model("target")
        source = None if _is_recorded(job) else context.model("source")
        default = source if source is not None and options.roles == "cross" else target
        old = OldJudge.of(context, source)
        [assumed] = power_lines(len(splits.test), options.max_loss, options.certificate_level)
        events.say(power_said(assumed, options.max_loss))
        development = await old.observe(splits.development, "development")
        targets = _targets(job, development)
        if _wants_source_targets(job):  # the source's verdicts on test are bought at the end, like the target's
            validation = await old.observe(splits.validation, "validation")
            targets = replace(targets, wanted={**targets.wanted, **_targets(job, validation).wanted})
        subject = JudgeSubject.of(context, target, "target")
        signal = _signal(context, old, development, subject)
        set_up = replace(judge_set_up(context, subject, signal, targets, default), without_rounds="questions_worded")
        if options.words_questions and development.verdicts:
            words = _word_questions(context, subject.once(), development.verdicts, default)
            set_up = replace(set_up, first=(words,))
        bought = set_up.bought_facts
        wants_parity = options.words_questions or options.reads is not None or _wants_source_targets(job)
        if wants_parity and development.verdicts:
            bought = (*bought, partial(_parity_facts, context, old))
        certificate = partial(_certificate_facts, context, old, development, subject)
        set_up = replace(set_up, bought_facts=(*bought, certificate))
        set_up = await asked_as_it_thinks(context, subject, set_up)

        async def at_the_test() -> Yardstick:
            seen = await old.observe(splits.test, "test")  # before the target's; the certificate needs them too
            if not _wants_source_targets(job):
                return set_up.yardstick
            known = replace(targets, wanted={**targets.wanted, **_targets(job, seen).wanted})
            return CorrelationYardstick(known, resamples=options.resamples, seed=options.seed)

        return replace(set_up, at_the_test=at_the_test)

    def estimate(self, job: Job, splits: SplitExamples, models: Models, gateway: Gateway) -> Estimate:
        """Estimate the price of source and target, each on the examples that it judges once."""
        target_judge = Evaluator(
            gateway, models.get(job.models["target"]), job.prompt, job.questions, job.options.judging
        )
        if _is_recorded(job):
            return target_judge.estimate(job.examples)
        options = job.options_as(MigrateOptions)
        wants_all = _wants_source_targets(job) or options.words_questions
        judged = job.examples if wants_all else [*splits.development, *splits.test]
        source_estimate = _source(job, gateway, models.get(job.models["source"])).estimate(judged)
        return source_estimate + target_judge.estimate(job.examples)


MODE = Migrate()


@dataclass(frozen=True)
class OldJudge:
    """The judge that is to be replaced: a model, or its verdicts or scores in the data."""

    judge: Evaluator | RecordedJudge
    events: Teller
    soft: bool
    _seen: dict[str, Observation] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of(cls, context: RunContext, source: Model | None) -> OldJudge:
        """Return the source of a run. Without a model it is recorded."""
        job = context.job
        judge: Evaluator | RecordedJudge
        if source is None:
            judge = read_recorded(job.examples, job.questions, job.options_as(MigrateOptions))
        else:
            judge = replace(_source(job, context.gateway, source), role="source", tally=context.count)
        return cls(judge, context.events, job.options.soft)

    async def observe(self, examples: Sequence[Example], part: str) -> Observation:
        """Return the judge's verdicts and scores on the examples of a part. A model is asked once. A recorded judge
        with scores only has no verdicts and no checklist."""
        if part not in self._seen:
            self._seen[part] = await self._look(examples, part)
        return self._seen[part]

    async def _look(self, examples: Sequence[Example], part: str) -> Observation:
        if isinstance(self.judge, RecordedJudge) and self.judge.scores:
            return Observation(examples, (), self.judge.scored(examples))
        if isinstance(self.judge, Evaluator):
            self.events.phase(f"the source judges {len(examples)} {part} examples")
        verdicts, asked = await self.judge.judge(examples, self.events.advance), self.judge.checklist
        return Observation(examples, verdicts, score_examples(examples, asked, verdicts, soft=self.soft), asked)


def _source(job: Job, gateway: Gateway, model: Model) -> Evaluator:
    return Evaluator(gateway, model, job.prompts["source_prompt"], job.questions, job.options.judging)


def without_source(job: Job) -> Job:
    """Return the job as if the source were recorded, to estimate the cost of everything else."""
    return replace(job, models={"target": job.models["target"]}, settings={"source": RECORDED})


def _is_recorded(job: Job) -> bool:
    return job.settings.get("source") == RECORDED


def _wants_source_targets(job: Job) -> bool:
    """Whether held-out scores are compared with the source's scores; else with people's."""
    reference = job.options_as(MigrateOptions).reference
    return not human_dimensions(job.examples, job.questions) if reference == "auto" else reference == "source"


def _signal(context: RunContext, old: OldJudge, seen: Observation, subject: JudgeSubject) -> Signal:
    """Return the signal that compares with the source: by its verdicts on each question, or by its scores if it left no
    verdicts."""
    options, development = context.job.options_as(MigrateOptions), context.splits.development
    explained = subject.evaluator if options.explain != "never" else None
    if seen.checklist is None:
        wanted = source_scores(seen)
        how: dict[str, Any] = {"threshold": options.margin, "by_score": options.paper, "whose": "the old judge's score"}
        return HumanSignal(wanted, development, explained, **how)
    return CrossModelSignal(
        old.judge,
        seen.verdicts,
        development,
        explained,
        margin=options.margin,
        differing=options.differing,
        tolerance=options.tolerance if options.paper else None,
        say=context.events.say,
        soft=options.soft,
        of_scores=options.reads is not None,
    )


def _word_questions(context: RunContext, subject: Subject, source: Sequence[Verdict], helper: Model) -> WordQuestions:
    options, development = context.job.options, context.splits.development
    return WordQuestions(
        Rephraser(context.gateway, context.helper("writer", helper), seed=options.seed),
        subject,
        by_pair(source),
        development,
        context.events,
        Resampling(documents(development), options.resamples, seed=options.seed),
        together=options.judging.mode != "batched",
    )


async def _parity_facts(
    context: RunContext,
    source: OldJudge,
    yardstick: Yardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Compare the answers of the first and the best version with the source's, on validation and test, by question."""
    options = context.job.options
    found: dict[str, dict[str, Any]] = {}
    for split, examples in (("validation", context.splits.validation), ("test", context.splits.test)):
        seen = await source.observe(examples, split)
        source_answers = SaidGood.of(source.judge.checklist, seen.verdicts, examples)
        before, after = (
            SaidGood.of(
                version.draft.questions,
                version.verdicts if split == "validation" else tests[version.number].verdicts,
                examples,
            )
            for version in (outcome.baseline, outcome.best)
        )
        parity_options: dict[str, Any] = {"resamples": options.resamples, "seed": options.seed}
        parity_options["of_scores"] = options.judging.reads is not None
        found[split] = {
            "baseline": parity(source_answers, before, examples, **parity_options),
            "best": parity(source_answers, after, examples, before=before, **parity_options),
        }
    return {"parity": found}


async def _certificate_facts(
    context: RunContext,
    old: OldJudge,
    development: Observation,
    subject: JudgeSubject,
    yardstick: Yardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Make the certificate whether the target may replace the source. It needs the source's test verdicts."""
    job, config = context.job, context.job.config
    assert isinstance(yardstick, CorrelationYardstick), "judges are measured by their scores"
    seen = {}
    for version in (outcome.baseline, outcome.best):
        mine = outcome.seen.get(version.number)
        if mine is None:
            mine = await subject.observe(version.draft, context.splits.development, context.events.advance)
        seen[version.number] = SeenJudge(mine, tests[version.number])
    by_answers = job.options.judging.reads is None and development.checklist is not None
    labels = pass_labels(job.examples, yardstick.targets)
    compared = JudgesCompared(
        AgreementMeasure(yardstick.targets, labels, development.checklist if by_answers else None),
        job.options_as(MigrateOptions),
        SeenJudge(development, await old.observe(context.splits.test, "test")),
        seen[outcome.baseline.number],
        seen[outcome.best.number],
    )
    target = str(config["target"])
    named = job.options.models.get(target)
    usual = {name: info.default for name, info in MigrateOptions.model_fields.items()}
    settings = {name: config[name] for name in SETTINGS if name in config and getattr(job.options, name) != usual[name]}
    model = target if named is None else named.model
    made = compared.certificate(str(config["source"]), target, model, settings, f"prompt{outcome.best.prompt.suffix}")
    return {"certificate": made}


def _targets(job: Job, source: Observation) -> Targets:
    if not _wants_source_targets(job):
        return human_targets(job.examples, job.questions, job.options.human_scale)
    return source_scores(source) if source.checklist is None else source_targets(source.checklist, source.scores)


def source_scores(seen: Observation) -> Targets:
    """Return the wanted scores from an old judge that left scores only."""
    return Targets("source", (WHOLE,), {each.example: dict(each.dimensions) for each in seen.scores})
