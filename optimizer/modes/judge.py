"""A judge whose prompt is improved: what ``migrate`` and ``align`` have in common.

Beside the judge's correlation a run says what calibration alone would have done, and its bias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.evaluator import Evaluator
from ...agents.judging import Judging
from ...agents.note_takers import BatchNoteTaker, NoteTaker
from ...agents.notes import NoteTaking, TakesNotes
from ...evaluation.calibration import Calibration
from ...evaluation.calibration_fit import fit_platt, fit_thresholds
from ...evaluation.pass_fail import pass_labels
from ...evaluation.scoring import (
    ExampleScore,
    ScoreErrors,
    Targets,
    dimension_errors,
    human_targets,
    overall_errors,
    score_examples,
    yes_rates,
)
from ...models.base import Model
from ...models.gateway import Gateway
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ...stats.differences import Difference, difference_dict
from ..acceptance import acceptance_of
from ..contest import WritesQuestions
from ..job import Job
from ..mode import SetUp, Step
from ..options import LoopOptions
from ..run_context import RunContext
from ..signals import Signal
from ..steps.lesson_edits import edit_steps
from ..steps.pruning import Pruning
from ..subject import Draft, Observation, Outcome, Pair, Subject, Version, by_pair
from ..trial import Screening
from ..yardsticks import BiasGuard, CorrelationYardstick, Metric


@dataclass(frozen=True)
class JudgeSubject:
    """An evaluator model; the draft's prompt is what it judges with."""

    gateway: Gateway
    model: Model
    judging: Judging
    role: str
    """Its ledger."""
    soft: bool
    tally: Callable[[Sequence[Verdict]], None]
    """Shown all verdicts."""

    def evaluator(self, draft: Draft) -> Evaluator:
        """The judge with a draft's prompt and questions."""
        return Evaluator(
            self.gateway,
            self.model,
            draft.prompt,
            draft.questions,
            replace(self.judging, mode=draft.mode or self.judging.mode),
            role=self.role,
            tally=self.tally,
        )

    def once(self) -> JudgeSubject:
        """The same judge asked once, for where the first replicate alone is read."""
        return replace(self, judging=replace(self.judging, repeat=1))

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        """Judge the examples' outputs."""
        verdicts = await self.evaluator(draft).judge(examples, on_done)
        scores = draft.scores(examples, verdicts, soft=self.soft)
        return Observation(examples, verdicts, scores, draft.checklist)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        """Ask single questions about single examples; all questions, where they are asked together."""
        by_id = {example.id: example for example in seen.examples}
        asked: dict[str | None, list[str]] = {}
        mode = draft.mode or ("batched" if self.judging.mode == "batched" else "each")
        for example, question in dict.fromkeys(pairs):
            asked.setdefault(None if mode == "batched" else question, []).append(example)
        found: dict[Pair, Verdict] = {}
        for together, examples in asked.items():
            questions = draft.questions if together is None else only(draft.questions, together)
            judge = self.once().evaluator(Draft(draft.prompt, questions, mode=mode))
            found |= by_pair(await judge.judge([by_id[each] for each in dict.fromkeys(examples)]))
        return {pair: found[pair] for pair in pairs if pair in found}


def only(checklist: Checklist, question: str) -> Checklist:
    """The checklist with this question alone."""
    one = checklist.question(question).model_copy(update={"weight": 1.0})
    return checklist.model_copy(update={"questions": (one,)})


async def calibration_facts(
    context: RunContext,
    subject: Subject,
    yardstick: CorrelationYardstick,
    outcome: Outcome,
    tests: Mapping[int, Observation],
) -> dict[str, Any]:
    """Calibration and drift of the first and the best version, measured on the test examples.

    Thresholds and Platt scaling are fitted on the development examples; verdicts on those that are not there yet are
    bought. ``calibration-platt.json`` and ``calibration-thresholds.json`` of the best version are kept; where it has
    learned questions, its verdicts are read by a calibration already, and that is kept as ``calibration-accepted.json``.

    Raises:
        BudgetExceededError: A cap was reached.
    """
    # calibrations are compared by it, whatever the acceptance test compares
    yardstick = replace(yardstick, metric="spearman")
    best = outcome.best
    sides: dict[str, Version] = {"baseline": outcome.baseline, "best": best}
    compared: dict[str, CalibrationComparison] = {}
    drift: dict[str, Any] = {}
    for side, version in sides.items():
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
        drift[side] = {
            "mean_errors": {
                name: each.bias for name, each in dimension_errors(held_out.scores, yardstick.targets).items()
            },
            "yes_rates": yes_rates(held_out.verdicts),
        }
    if best.draft.calibration is not None:
        context.run.write(f"calibration-{best.draft.calibration.method}.json", best.draft.calibration.to_json())
    else:
        for figures in (compared["best"].thresholds, compared["best"].platt):
            if figures.calibration is not None:
                name = f"calibration-{figures.calibration.method}.json"
                context.run.write(name, figures.calibration.to_json())
    return {"calibration": {side: each.to_dict() for side, each in compared.items()}, "drift": drift}


def judge_subject(context: RunContext, model: Model, role: str) -> JudgeSubject:
    """The judge that is improved; ``role`` is its ledger."""
    options = context.job.options
    return JudgeSubject(context.gateway, model, options.judging, role, options.soft, context.count)


def judge_set_up(
    context: RunContext,
    subject: JudgeSubject,
    signal: Signal,
    targets: Targets,
    helper: Model,
    metric: Metric = "spearman",
    writes_questions: WritesQuestions | None = None,
) -> SetUp:
    """Return the parts of a run that improves a judge's prompt.

    Args:
        context: With the judge's checklist.
        subject: The judge.
        signal: What it is held against.
        targets: What its held-out scores are correlated with.
        helper: Takes the roles that have no model of their own.
        metric: What the acceptance test compares.
        writes_questions: Writes the questions anew from a changed prompt.

    Raises:
        InputError: A compiled note-taker cannot be read.
        MissingExtraError: It needs DSPy, which is not installed.
    """
    job, options = context.job, context.job.options
    ranks = CorrelationYardstick(targets, resamples=options.resamples, seed=options.seed)
    yardstick = replace(ranks, metric=metric, labels=pass_labels(job.examples, targets))
    taker, task = context.helper("note_taker", helper), job.questions.task
    notes: dict[str, Any] = {"seed": options.seed, "settings": note_taking(options)}
    steps: tuple[Step, ...] = ()
    if options.edits_prompt:
        note_taker = _compiled(context, taker) or NoteTaker(context.gateway, taker, task, **notes)
        batches = BatchNoteTaker(context.gateway, taker, task, **notes)
        steps = edit_steps(
            context,
            subject,
            signal,
            helper,
            note_taker,
            batches=batches,
            classify=True,
            writes_questions=writes_questions,
        )
    return SetUp(
        start=Draft(job.prompt, job.questions),
        subject=subject,
        signal=signal,
        yardstick=yardstick,
        acceptance=acceptance_of(options, yardstick, context.splits.validation, BiasGuard(ranks, options.max_bias)),
        steps=steps,
        last=(Pruning(yardstick),) if options.prune and not options.paper else (),
        writes_questions=writes_questions,
        screening=None if options.judging.mode == "batched" else Screening(subject, context.memory, soft=options.soft),
        bought_facts=(partial(calibration_facts, context, subject),),
        known_facts={"reference": targets.kind},
    )


async def asked_as_it_thinks(context: RunContext, subject: JudgeSubject, set_up: SetUp) -> SetUp:
    """The set-up, with a judge that is asked all questions on an output in one call where its model thinks and the
    settings leave
    that open. The first answers tell whether it thinks.

    Raises:
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call or is down.
    """
    if context.job.options.mode != "auto" or subject.judging.score_scale is not None:
        return set_up
    if (
        not context.splits.validation
    ):  # the loop is another's (GEPA), and buys when it asks; the evaluator then finds it out
        return set_up
    await subject.evaluator(set_up.start).settle(context.splits.development)
    if not context.gateway.thinkers.get(subject.model.identity):
        return set_up
    return replace(set_up, start=replace(set_up.start, mode="batched"), screening=None)


def _compiled(context: RunContext, model: Model) -> TakesNotes | None:
    """A note-taker that was compiled with DSPy, where one is given."""
    options = context.job.options
    if options.note_taker_program is None:
        return None
    from ...agents.dspy.note_taker import CompiledNoteTaker

    there = context.run.began_in / options.note_taker_program
    program = there if there.is_file() else Path(options.note_taker_program)
    return CompiledNoteTaker(context.gateway, model, context.job.questions.task, program, seed=options.seed)


def note_taking(options: LoopOptions) -> NoteTaking:
    """How notes are taken."""
    return NoteTaking(samples=options.note_samples, contrast=options.contrast, critique=options.critique)


def strata_of_people(job: Job) -> list[float | None]:
    """The human score of every example, to be spread evenly over the splits.

    Raises:
        InputError: The checklist asks about no dimension that people rated, or it is not known on what scale they did.
    """
    targets = human_targets(job.examples, job.questions, job.options.human_scale)
    if said := targets.without_scale():
        raise InputError(said)
    return [targets.overall(example.id) for example in job.examples]


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """What the held-out examples say of one way to read the same verdicts."""

    measure: Mapping[str, Any]
    """Correlations with the wanted scores, over all dimensions and on each (:meth:`~askance.evaluation.scoring.TargetCorrelations.to_dict`)."""
    errors: ScoreErrors
    """Of the score over all wanted dimensions."""
    dimensions: Mapping[str, ScoreErrors]
    """On each wanted dimension."""
    gain: Difference | None
    """Spearman beyond that of the uncalibrated verdicts, paired; None for those themselves. A constant score counts as
    a correlation of 0 here."""
    calibration: Calibration | None
    """What was applied; None for the uncalibrated verdicts."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``result.json``."""
        by_dimension = {
            name: {**self.measure["dimensions"][name], "errors": errors.to_dict()}
            for name, errors in self.dimensions.items()
        }
        row = {**self.measure, "errors": self.errors.to_dict(), "dimensions": by_dimension}
        if self.calibration is None:
            return row
        parameters = self.calibration.model_dump(mode="json", include={"n", "questions"}, exclude_none=True)
        return row | {"gain": difference_dict(self.gain), "fit": parameters}


@dataclass(frozen=True, slots=True)
class CalibrationComparison:
    """The same held-out verdicts as they are, thresholded, and Platt-scaled."""

    uncalibrated: CalibrationFigures
    thresholds: CalibrationFigures
    platt: CalibrationFigures

    def to_dict(self) -> dict[str, Any]:
        """As under ``calibration`` in ``result.json``."""
        return {name: getattr(self, name).to_dict() for name in self.__slots__}


def compare_calibrations(
    development_verdicts: Iterable[Verdict],
    held_out_verdicts: Iterable[Verdict],
    *,
    development: Sequence[Example],
    held_out: Sequence[Example],
    checklist: Checklist,
    yardstick: CorrelationYardstick,
    soft: bool = True,
) -> CalibrationComparison:
    """Fit both calibrations on the development verdicts and measure them, beside no calibration, on held-out ones.

    Args:
        development_verdicts: One judge's; those on other examples are not looked at, here and below, so that the
            verdicts of all splits may be given for both.
        held_out_verdicts: The same judge's.
        development: Examples to fit on.
        held_out: Examples to measure on.
        checklist: What was asked.
        yardstick: What measures; its targets must know all of these examples.
        soft: Score from P(yes), else from the answers.

    Raises:
        InputError: An example is in both splits, or as :func:`fit_thresholds` and :meth:`~.calibration.Calibration.apply`.
    """
    names = {example.id for example in held_out}
    if both := next((example.id for example in development if example.id in names), None):
        raise InputError(f"The example '{both}' is to be fitted on and measured on; a split must have it once.")
    fitted_on = list(development_verdicts)
    verdicts = [verdict for verdict in held_out_verdicts if verdict.example in names]
    targets = yardstick.targets
    before = score_examples(held_out, checklist, verdicts, soft=soft)

    def calibrated(calibration: Calibration) -> CalibrationFigures:
        after = score_examples(held_out, checklist, calibration.apply(verdicts), soft=soft)
        gain = yardstick.difference(before, after, held_out)
        return _figures(after, held_out, yardstick, gain, calibration)

    return CalibrationComparison(
        _figures(before, held_out, yardstick),
        calibrated(fit_thresholds(fitted_on, development, checklist, targets)),
        calibrated(fit_platt(fitted_on, development, checklist, targets)),
    )


def _figures(
    scores: Sequence[ExampleScore],
    examples: Sequence[Example],
    yardstick: CorrelationYardstick,
    gain: Difference | None = None,
    calibration: Calibration | None = None,
) -> CalibrationFigures:
    targets = yardstick.targets
    return CalibrationFigures(
        yardstick.measure(scores, examples),
        overall_errors(scores, targets),
        dimension_errors(scores, targets),
        gain,
        calibration,
    )
