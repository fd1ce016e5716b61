"""A judge whose prompt is improved; shared by ``migrate`` and ``align``.

Beside the judge's correlation a run measures its bias, and the gain that calibration alone would bring. If several
people rated an output, their agreement is measured before anything is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ...agents.evaluator import Evaluator
from ...agents.judging import Judging
from ...agents.note_takers import NoteTaker
from ...evaluation.calibration import Calibration
from ...evaluation.calibration_fit import fit_platt, fit_thresholds
from ...evaluation.pass_fail import pass_labels
from ...evaluation.raters.agreement import agreement_of_raters
from ...evaluation.raters.agreement_view import cases_lines, ceiling_lines
from ...evaluation.raters.rater_by_rater import MOST_VALUES, Combination, Rule, choose, combined_ratings
from ...evaluation.scoring import (
    ScoreErrors,
    Targets,
    dimension_errors,
    human_targets,
    overall_errors,
    score_examples,
    yes_rates,
)
from ...models.base import Model
from ...models.budget import RoleLedger
from ...models.gateway import Gateway
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents
from ...prompts.human_feedback import known_ratings
from ...prompts.raters import rater_columns
from ...prompts.verdicts import Verdict
from ...stats.differences import Difference, difference_dict
from ...stats.resampling import Resampling
from ..acceptance import BiasGuard, CorrelationYardstick, Metric, acceptance_of
from ..contest import Screening, WritesQuestions
from ..job import Job
from ..mode import RunContext, SetUp, Step
from ..signals import Signal
from ..steps.lesson_edits import Pruning, edit_steps
from ..subject import Draft, Observation, Outcome, Pair, Subject, WritingCost, by_pair


@dataclass(frozen=True)
class JudgeSubject:
    """A judge model that judges with the prompt of a draft."""

    gateway: Gateway
    model: Model
    judging: Judging
    role: str
    """Name of the ledger for its calls."""
    soft: bool
    tally: Callable[[Sequence[Verdict]], None]
    """Receives all verdicts."""

    @classmethod
    def of(cls, context: RunContext, model: Model, role: str) -> JudgeSubject:
        """Make the judge that a run improves."""
        options = context.job.options
        return cls(context.gateway, model, options.judging, role, options.soft, context.count)

    def evaluator(self, draft: Draft) -> Evaluator:
        """Return the judge with a draft's prompt and questions."""
        how = replace(self.judging, mode=draft.mode or self.judging.mode)
        told: dict[str, Any] = {"role": self.role, "tally": self.tally}
        return Evaluator(self.gateway, self.model, draft.prompt, draft.questions, how, **told)

    def once(self) -> JudgeSubject:
        """Return the judge without replicates, for callers that read only the first replicate."""
        return replace(self, judging=replace(self.judging, repeat=1))

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Judge the examples' outputs."""
        ledger = self.gateway.budget.role(self.role)
        before = replace(ledger)
        verdicts = await self.evaluator(draft).judge(examples, on_done)
        scores = draft.scores(examples, verdicts, soft=self.soft)
        return Observation(examples, verdicts, scores, draft.checklist, spent=_spent(before, ledger, len(examples)))

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Ask single questions about single examples; all questions if the judge is asked them in one call."""
        by_id = {example.id: example for example in seen.examples}
        mode = draft.mode or ("batched" if self.judging.mode == "batched" else "each")
        asked: dict[str | None, dict[str, Example]] = {}
        for example, question in pairs:
            asked.setdefault(None if mode == "batched" else question, {})[example] = by_id[example]
        found: dict[Pair, Verdict] = {}
        for question_alone, examples in asked.items():
            questions = draft.questions if question_alone is None else only(draft.questions, question_alone)
            judge = self.once().evaluator(Draft(draft.prompt, questions, mode=mode))
            found |= by_pair(await judge.judge(list(examples.values())))
        return {pair: found[pair] for pair in pairs if pair in found}


def _spent(before: RoleLedger, after: RoleLedger, outputs: int) -> WritingCost | None:
    """Return the cost of judging so many outputs; None if an answer came from the store and was paid for before."""
    if after.cached_calls > before.cached_calls or not outputs:
        return None
    tokens = after.prompt_tokens + after.completion_tokens - before.prompt_tokens - before.completion_tokens
    cost = None if after.unpriced_calls > before.unpriced_calls else after.cost_usd - before.cost_usd
    return WritingCost(outputs, tokens, cost, 0.0, 0)


def only(checklist: Checklist, question: str) -> Checklist:
    """Return the checklist with only this question."""
    one = checklist.question(question).model_copy(update={"weight": 1.0})
    return checklist.model_copy(update={"questions": (one,)})


async def calibration_facts(
    context: RunContext,
    subject: Subject,
    yardstick: CorrelationYardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Return calibration and drift of the first and the best version, measured on the test examples.

    Thresholds and Platt scaling are fitted on the development examples; missing verdicts on these are bought. Both
    calibrations of the best version are written to the run directory. If the best version is calibrated already,
    because it learned questions, only this calibration is written.
    """
    yardstick = replace(yardstick, metric="spearman")  # whatever the acceptance test compares
    compared: dict[str, dict[str, CalibrationFigures]] = {}
    drift: dict[str, Any] = {}
    for side, version in (("baseline", outcome.baseline), ("best", outcome.best)):
        if version.number not in outcome.seen:
            context.events.phase("judging the development examples, to calibrate")
            outcome.seen[version.number] = await subject.observe(
                version.draft, context.splits.development, context.events.advance
            )
        held_out = tests[version.number]
        if version.draft.calibration is None:
            compared[side] = compare_calibrations(
                outcome.seen[version.number].verdicts,
                held_out.verdicts,
                development=context.splits.development,
                held_out=context.splits.test,
                checklist=version.draft.questions,
                yardstick=yardstick,
                soft=context.job.options.soft,
            )
        errors = dimension_errors(held_out.scores, yardstick.targets)
        mean_errors = {name: each.bias for name, each in errors.items()}
        drift[side] = {"mean_errors": mean_errors, "yes_rates": yes_rates(held_out.verdicts)}
    kept = [outcome.best.draft.calibration]
    if "best" in compared:
        kept = [each.calibration for each in compared["best"].values()]
    for each in filter(None, kept):
        context.run.write(f"calibration-{each.method}.json", each.to_json())
    figures = {side: {name: each.to_dict() for name, each in by.items()} for side, by in compared.items()}
    return {"calibration": figures, "drift": drift}


def judge_set_up(
    context: RunContext,
    subject: JudgeSubject,
    signal: Signal,
    targets: Targets,
    helper: Model,
    metric: Metric = "spearman",
    writes_questions: WritesQuestions | None = None,
) -> SetUp:
    """Return the parts of a run that improves a judge's prompt; the ``metric`` against ``targets`` decides. ``helper``
    is the model for roles without a model of their own."""
    job, options = context.job, context.job.options
    ranks = CorrelationYardstick(targets, resamples=options.resamples, seed=options.seed)
    yardstick = replace(ranks, metric=metric, labels=pass_labels(job.examples, targets))
    taker, task = context.helper("note_taker", helper), job.questions.task
    steps: tuple[Step, ...] = ()
    if options.edits_prompt:
        note_taker = NoteTaker(context.gateway, taker, task, seed=options.seed)
        steps = edit_steps(context, subject, signal, helper, note_taker, writes_questions=writes_questions)
    return SetUp(
        start=Draft(job.prompt, job.questions),
        subject=subject,
        signal=signal,
        yardstick=yardstick,
        acceptance=acceptance_of(options, yardstick, context.splits.validation, BiasGuard(ranks, options.max_bias)),
        steps=steps,
        last=Pruning.steps(options, yardstick),
        writes_questions=writes_questions,
        screening=None if options.judging.mode == "batched" else Screening(subject, context.memory, soft=options.soft),
        bought_facts=(partial(calibration_facts, context, subject),),
        known_facts={"reference": targets.kind},
    )


async def asked_as_it_thinks(context: RunContext, subject: JudgeSubject, set_up: SetUp) -> SetUp:
    """Return the set-up with all questions in one call, if the judge's model thinks and the settings leave the mode
    open. The first answers tell whether the model thinks."""
    if context.job.options.mode != "auto" or subject.judging.score_scale is not None:
        return set_up
    if not context.splits.validation:  # in GEPA's loop; there the evaluator finds it out when GEPA asks
        return set_up
    await subject.evaluator(set_up.start).settle(context.splits.development)
    if not context.gateway.thinkers.get(subject.model.identity):
        return set_up
    return replace(set_up, start=replace(set_up.start, mode="batched"), screening=None)


def strata_of_people(job: Job) -> list[float | None]:
    """Return the human score of every example, to be spread evenly over the splits. Raises InputError if the checklist
    asks about no dimension that people rated, or their scale is unknown."""
    targets = human_targets(job.examples, job.questions, job.options.human_scale)
    if said := targets.without_scale():
        raise InputError(said)
    return [targets.overall(example.id) for example in job.examples]


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """Figures of one way to calibrate verdicts, on the held-out examples."""

    measure: Mapping[str, Any]
    """Correlations with the wanted scores, over all dimensions and on each."""
    errors: ScoreErrors
    """Errors of the score over all wanted dimensions."""
    dimensions: Mapping[str, ScoreErrors]
    """Errors on each wanted dimension."""
    gain: Difference | None
    """Paired gain of Spearman over the uncalibrated verdicts; a constant score counts as 0. None for uncalibrated."""
    calibration: Calibration | None
    """The calibration that was applied; None for the uncalibrated verdicts."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as in ``result.json``."""
        by_dimension = {
            name: {**self.measure["dimensions"][name], "errors": errors.to_dict()}
            for name, errors in self.dimensions.items()
        }
        row = {**self.measure, "errors": self.errors.to_dict(), "dimensions": by_dimension}
        if self.calibration is None:
            return row
        parameters = self.calibration.model_dump(mode="json", include={"n", "questions"}, exclude_none=True)
        return row | {"gain": difference_dict(self.gain), "fit": parameters}


def compare_calibrations(
    development_verdicts: Iterable[Verdict],
    held_out_verdicts: Iterable[Verdict],
    *,
    development: Sequence[Example],
    held_out: Sequence[Example],
    checklist: Checklist,
    yardstick: CorrelationYardstick,
    soft: bool = True,
) -> dict[str, CalibrationFigures]:
    """Fit both calibrations on the development verdicts, and measure them and no calibration on held-out verdicts.

    The keys are ``uncalibrated``, ``thresholds`` and ``platt``. Verdicts on other examples are ignored. The yardstick's
    targets must know all examples. Raises InputError if an example is in both splits, or the verdicts cannot be
    calibrated.
    """
    names = {example.id for example in held_out}
    if both := next((example.id for example in development if example.id in names), None):
        raise InputError(f"The example '{both}' is to be fitted on and measured on; a split must have it once.")
    fitted_on = list(development_verdicts)
    verdicts = [verdict for verdict in held_out_verdicts if verdict.example in names]
    targets = yardstick.targets
    before = score_examples(held_out, checklist, verdicts, soft=soft)

    def figures(calibration: Calibration | None) -> CalibrationFigures:
        scores, gain = before, None
        if calibration is not None:
            scores = score_examples(held_out, checklist, calibration.apply(verdicts), soft=soft)
            gain = yardstick.difference(before, scores, held_out)
        measured = yardstick.measure(scores, held_out)
        errors = overall_errors(scores, targets), dimension_errors(scores, targets)
        return CalibrationFigures(measured, *errors, gain, calibration)

    fits = [fit(fitted_on, development, checklist, targets) for fit in (fit_thresholds, fit_platt)]
    return dict(zip(("uncalibrated", "thresholds", "platt"), map(figures, (None, *fits)), strict=True))


def raters_of(context: RunContext, rule: Literal["auto"] | Rule) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Report the agreement of several raters, and combine their ratings on development and validation.

    Returns combined ratings by dimension and example, if the rule is not the mean, and ``rater_agreement`` of the
    result. Both are empty if one person rated each output. The rule is chosen on development; the test examples keep
    the mean. Raises InputError if a model of raters is asked for and the ratings have too many different values.
    """
    job, splits = context.job, context.splits
    dimensions = human_targets(job.examples, job.questions, job.options.human_scale).dimensions
    resampling_options: dict[str, Any] = {"resamples": job.options.resamples, "seed": job.options.seed}
    found = agreement_of_raters(job.examples, dimensions, Resampling(documents(job.examples), **resampling_options))
    if found is None:
        return {}, {}
    rows = found.by_dimension()
    for line in (*ceiling_lines(rows), *cases_lines(rows)):
        context.events.say(line)
    chosen: dict[str, Combination] = {}
    for name in (each for each in dimensions if each in rows):
        columns = rater_columns(splits.development, name)
        if rule == "auto":
            chosen[name] = choose(columns, Resampling(documents(splits.development), **resampling_options))
        else:
            values = {each for column in columns.values() for each in known_ratings(column)}
            if rule == "model" and len(values) > MOST_VALUES:
                raise InputError(
                    f"combine model: '{name}' has {len(values)} different ratings; a model of raters is of "
                    f"{MOST_VALUES} steps at most. Take mean or majority."
                )
            chosen[name] = Combination(rule, "asked for", {})
        rows[name]["combined"] = chosen[name].to_dict()
    rules = {name: each.rule for name, each in chosen.items()}
    for name, each in chosen.items():
        if each.rule != "mean":
            context.events.say(f"{name}: labels that teach are combined by {each.rule} ({each.reason})")
    taught = [*splits.development, *splits.validation]
    return combined_ratings(taught, rules), {"rater_agreement": rows}
