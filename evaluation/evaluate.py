"""``evaluate``: judge a data set with a checklist and say how far people agree (BinEval §3.2)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..agents.checks import Nobody
from ..agents.evaluator import Evaluator
from ..agents.example_questions import DIMENSION, OWN, ExampleQuestions, estimate_unwritten, judge_by_own
from ..agents.requests import without_calls
from ..models.event_loops import awaited, run_sync
from ..models.gateway import StoredAnswers
from ..models.named import ModelLike, named_models
from ..models.progress import watching
from ..models.session import session
from ..prompts.checklist import Checklist, load_checklist, with_schema
from ..prompts.errors import InputError
from ..prompts.examples import Example, ExampleTable, documents, human_dimensions, load_examples
from ..prompts.prompt import Prompt, bound_prompts, default_prompt
from ..prompts.rows import column
from ..prompts.verdicts import Provenance, Verdict, VerdictColumns, fields_of
from ..setting_types import EvaluateSettings
from ..settings import parse_options
from ..stats.correlation import between_systems, correlate, per_group
from ..stats.pass_fail import HALF
from ..stats.resampling import Resampling
from .calibration import load_calibration
from .evaluation_result import Agreement, Evaluation, slice_rows, slice_values
from .options import EvaluateOptions, JudgeOptions
from .own_judge import about_what_people_rated, judge_asked
from .pass_fail import PassThreshold, judge_passes, pass_labels
from .raters.agreement import agreement_of_raters
from .raters.rater_by_rater import check_several, rater_rows
from .raters.steps import StepThresholds, figures_of_steps
from .scoring import ExampleScore, coverage, human_targets, nothing_in_common, score_examples
from .weights_file import weighted_by

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..agents.buying import Estimate
    from ..models.base import AnswerStore, Model
    from ..models.gateway import Gateway
    from ..models.progress import Watcher
    from ..models.resolve import Models
    from .adaptive import AdaptiveEvaluation
    from .calibration import Calibration
    from .pass_fail import PassLabels
    from .scoring import Targets


def evaluate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    model: ModelLike | None = None,
    checklist: str | Path | Checklist | None = None,
    prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    evaluator: type[Evaluator] = Evaluator,
    schema: str | Path | Mapping[str, Any] | None = None,
    **options: Unpack[EvaluateSettings],
) -> Evaluation:
    """Judge examples with a checklist.

    Args:
        data: JSONL or CSV file, or rows.
        model: ``provider/model``, a :class:`~askance.models.named.NamedModel`, or an object that can be asked; none
            where the checklist has checks alone.
        checklist: YAML or JSON file, or a checklist; none with ``own_questions``.
        prompt: File or prompt; askance's own neutral one by default.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        evaluator: Class that puts the questions to the model.
        schema: JSON schema, or its file, that outputs are to follow: one more check, free of calls.
        options: Settings of :class:`~askance.evaluation.options.EvaluateOptions`, among them ``store`` and
            ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    asked, given = named_models(options, model)
    return prepare(data, checklist, asked, prompt, given, evaluator, schema).run(watcher, progress)


aevaluate = awaited(evaluate)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
    evaluator: type[Evaluator] = Evaluator,
    schema: str | Path | Mapping[str, Any] | None = None,
) -> EvaluationJob:
    """Load and check the arguments of :func:`evaluate`; nothing is bought. InputError names the file, line and field at
    fault."""
    settings = parse_options(EvaluateOptions, options)
    if settings.own_questions and checklist is not None:
        raise InputError("--own-questions writes questions for each example; leave out --checklist, or that.")
    if settings.own_questions and schema is not None:
        raise InputError("--schema is a check of a checklist, and --own-questions writes one for each example.")
    own_words = prompt is not None or settings.reads is not None
    if checklist is None and schema is None and not own_words and not settings.own_questions:
        raise InputError(
            "The judge has nothing to ask: give a --checklist, a --schema, --own-questions, or a --judge, which brings "
            "its own. A judge in your own words needs its --prompt alone."
        )
    given: str | Path | Checklist | None = OWN if settings.own_questions else checklist
    if not settings.own_questions and (checklist is not None or own_words):
        given, settings = judge_asked(checklist, prompt, settings)
    checklist = with_schema(None if given is None else load_checklist(given), schema) or OWN
    if model is None and checklist.asked:
        raise InputError("--model is needed: it answers the questions of the checklist.")
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    return EvaluationJob(examples, questions, text, model, settings, evaluator)


@dataclass(frozen=True)
class EvaluationJob:
    """The inputs of an evaluation, checked."""

    examples: Sequence[Example]
    checklist: Checklist
    """A placeholder if each example has its own questions."""
    prompt: Prompt
    model: str | Model | None
    """None if there is no question to ask."""
    settings: EvaluateOptions
    evaluator: type[Evaluator] = Evaluator
    calibration: Calibration | None = None
    """Used if the settings name no calibration file."""
    answers: Path | None = None
    """Another store whose answers are reused too."""
    threshold: PassThreshold | None = None
    """Threshold from which an output passes, unless the settings name another."""
    steps: StepThresholds | None = None
    """Thresholds between the steps of an ordinal label."""
    p_yes_from: Provenance | None = None
    """Source of P(yes) when the judge was measured, for a judge that thinks."""

    @cached_property
    def read_with(self) -> Calibration | None:
        """Calibration of the answers: from the settings' file, else the one given. Raises InputError if the file is
        damaged or missing."""
        named = self.settings.calibration
        return self.calibration if named is None else load_calibration(named)

    def estimate(self) -> Estimate:
        """Estimate of what :meth:`run` would buy; nothing is bought."""

        async def estimate(store: AnswerStore) -> Estimate:
            async with session(self.settings, store) as (models, gateway):
                asked = self.asking(models, gateway)
                if not self.settings.own_questions:
                    return asked.estimate(self.examples)
                checklists = await self._write(models, StoredAnswers(store), {})
                left = [each for each in self.examples if each.id not in checklists]
                found = estimate_unwritten(left, self.prompt, self.settings.judging)
                for each in self.examples:
                    if each.id in checklists:
                        found += replace(asked, checklist=checklists[each.id]).estimate([each])
                return found

        with self.settings.open_store(to_estimate=True, beside=self.answers) as store:
            return run_sync(estimate(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Evaluation:
        """Judge the examples. Raises the same errors as :func:`evaluate`."""
        targets = None
        if self._is_rated(say=True):  # refuses ratings that fit nothing before a call
            targets = human_targets(self.examples, self.checklist, self.settings.human_scale)
            if said := targets.without_scale():
                logger.warning("%s", said)
        if self.settings.by_rater:
            check_several(self.examples, targets.dimensions if targets is not None else ())
        if self.settings.by is not None:
            slice_values(self.examples, self.settings.by)
        with watching(watcher, progress) as shown, self.settings.open_store(beside=self.answers) as store:
            return run_sync(self._run(store, shown))

    def _is_rated(self, *, say: bool = False) -> bool:
        """Return whether people rated anything that the judge scores. With ``say``, log a warning if they rated other
        dimensions only."""
        rated = human_dimensions(self.examples, self.checklist)
        has_own_questions = self.settings.own_questions
        # also dimensions whose questions all weigh 0: :func:`human_targets` refuses these and says why
        asked = [DIMENSION] if has_own_questions else self.checklist.dimensions
        fits = bool({"overall", *asked}.intersection(rated))
        if rated and not fits and say:
            message = (
                f"People rated {', '.join(rated)}, which examples' own questions are not about: no agreement is given."
            )
            logger.warning("%s", message if has_own_questions else nothing_in_common(asked, rated))
        return bool(rated) and fits

    def asking(self, models: Models, gateway: Gateway) -> Evaluator:
        """Return the evaluator, before any call. Raises InputError if the calibration does not fit the judge."""
        model = models.get(self.model) if self.model is not None else Nobody()
        if self.p_yes_from is not None and self.settings.p_yes == "auto":
            gateway.thinkers[model.identity] = True
            gateway.provenance[model.identity] = self.p_yes_from
        asked = self.evaluator(gateway, model, self.prompt, self.checklist, self.settings.judging)
        if (calibration := self.read_with) is not None and not self.settings.own_questions:
            calibration.check_questions(self.checklist)
            for each in (*self.checklist.asked, *self.checklist.checks):
                calibration.check("the first", each.id, asked.model.name, asked.prompt.hash)
        return asked

    async def _write(
        self, models: Models, gateway: Gateway, failed: dict[str, str], watcher: Watcher | None = None
    ) -> dict[str, Checklist]:
        """Write each example's own questions, by its id. ``failed`` gets the reason for each example without any."""
        settings = self.settings
        writer = ExampleQuestions(gateway, models.get(settings.writer or self.model or ""), seed=settings.seed)
        own = await writer.write(self.examples, failed.__setitem__, watcher.advance if watcher else None)
        return {name: _decaying(each, settings.own_decay) for name, each in own.items()}

    async def _run(self, store: AnswerStore, watcher: Watcher) -> Evaluation:
        examples, checklist, settings = self.examples, self.checklist, self.settings
        async with session(settings, store, watcher.say) as (models, gateway):
            asked = self.asking(models, gateway)
            watcher.watch(gateway.budget)
            verdicts, own_checklists, asking = await self._ask(asked, models, gateway, watcher)
        seen = coverage(verdicts)
        if self.read_with is not None:
            verdicts = self.read_with.apply(verdicts)
        if own_checklists is None:
            scores = score_examples(examples, checklist, verdicts, soft=settings.soft)
        else:
            scores = score_by_own(examples, own_checklists, verdicts, soft=settings.soft)
        if asking is not None:
            scores = asking.known(scores, checklist)
            seen = replace(seen, not_asked=asking.not_asked)
        sampling = Resampling(documents(examples), settings.resamples, seed=settings.seed)
        agreement: list[Agreement] = []
        targets = labels = raters = None
        if self._is_rated():
            watcher.phase("comparing with the human scores")
            targets = human_targets(examples, checklist, settings.human_scale)
            agreement = _agreement(examples, targets, scores, sampling)
            labels = pass_labels(examples, targets)
            raters = agreement_of_raters(examples, targets.dimensions, sampling)
        threshold = self.pass_threshold(targets, labels)
        passing = None if threshold is None else judge_passes(scores, examples, threshold, labels, sampling)
        slices = None
        if settings.by is not None:
            slices = slice_rows(settings.by, examples, scores, targets, labels, threshold, sampling)
        by_rater = None
        if settings.by_rater and targets is not None:
            turned = settings.human_scale is not None and settings.human_scale[0] > settings.human_scale[1]
            by_rater = rater_rows(examples, scores, targets, sampling, lower_is_better=turned)
        name, prompt = asked.model.name, self.prompt.hash
        spent, scale, faults = gateway.budget, settings.scale, tuple(checklist.faults)
        steps = None
        if self.steps is not None and threshold is None and asking is None:
            steps = self.steps.model_dump(mode="json")
            if targets is not None and targets.dimensions == (self.steps.of,):
                steps |= figures_of_steps(scores, targets, self.steps, sampling)
        beside = (passing, slices, own_checklists, raters, by_rater, steps)
        return Evaluation(name, prompt, verdicts, scores, agreement, seen, spent, scale, asking, faults, *beside)

    async def _ask(
        self, asked: Evaluator, models: Models, gateway: Gateway, watcher: Watcher
    ) -> tuple[Sequence[Verdict], Mapping[str, Checklist] | None, AdaptiveEvaluation | None]:
        """Return the verdicts; each example's own questions, if they were written; and the adaptive evaluation, if
        questions were left out."""
        examples, settings, phase = (
            self.examples,
            self.settings,
            f"asking {asked.model.name}" if self.checklist.asked else "checking",
        )
        if settings.own_questions:
            watcher.phase("writing questions for each example", len(examples))
            failed: dict[str, str] = {}
            own = await self._write(models, gateway, failed, watcher)
            watcher.phase(phase, len(own))
            return await self._by_own(asked, own, failed, watcher), own, None
        watcher.phase(phase, len(examples) * len(self.checklist.asked) * settings.repeat)
        if settings.adaptive:
            asking = await _ask_adaptively(asked, examples, settings, watcher)
            return asking.verdicts, None, asking
        return await asked.judge(examples, watcher.advance), None, None

    async def _by_own(
        self, asked: Evaluator, own: Mapping[str, Checklist], failed: Mapping[str, str], watcher: Watcher
    ) -> VerdictColumns:
        """Return the verdicts on each example's own questions, and a failed verdict on each example without any."""
        with_questions = [each for each in self.examples if each.id in own]
        verdicts = await judge_by_own(asked, with_questions, own, watcher.advance)
        for example, why in failed.items():
            error = f"no questions were written for the example: {why}"
            verdict = Verdict(example, "q1", asked.model.name, self.prompt.hash, None, status="api_error", error=error)
            verdicts.append(fields_of(verdict))
        return verdicts

    def pass_threshold(self, targets: Targets | None = None, labels: PassLabels | None = None) -> PassThreshold | None:
        """Return the threshold from which an output passes. None if nobody set one and no labels need one, or if
        ``stop_within`` makes scores inexact."""
        given, mark = self.settings.pass_threshold, self.settings.pass_mark
        rated = () if targets is None else targets.dimensions
        if given is not None:
            return PassThreshold(given, "given", dimensions=rated)
        if mark is not None:
            return PassThreshold(mark, "pass_mark")
        if self.settings.adaptive:
            return None
        return self.threshold or (PassThreshold(HALF, "default", dimensions=rated) if labels is not None else None)


ONE_BY_ONE = ExampleTable()
"""Data of a judge that is asked about one output at a time: the outputs are not known in advance."""


def unrated(examples: Sequence[Example]) -> ExampleTable:
    """Return the examples without human scores, for callers that compare with people question by question."""
    return ExampleTable(each.model_copy(update={"human": {}}) for each in examples)


def load_inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    prompt: str | Path | Prompt | None,
    settings: JudgeOptions,
    beside: str | Path | Prompt | None = None,
) -> tuple[ExampleTable, Checklist, Prompt]:
    """Load and check examples, checklist and evaluator prompt from files or objects; ``beside`` is another judge's
    prompt. InputError names the file, line and field at fault. ``data`` may be :data:`ONE_BY_ONE`."""
    questions, examples = load_checklist(checklist), ExampleTable()
    if data is not ONE_BY_ONE:
        examples = load_examples(
            data, fields=settings.field, limit=settings.limit, labels=settings.labels, label_scale=settings.label_scale
        )
    if settings.judging.reads is not None:
        questions = about_what_people_rated(questions, examples)
    questions = weighted(questions, examples, settings)
    if said := without_calls(examples, questions.questions):
        logger.warning("%s", said)
    given = default_prompt(examples) if prompt is None else prompt
    known, prompts = None if data is ONE_BY_ONE else examples, [given, *([] if beside is None else [beside])]
    return examples, questions, bound_prompts(prompts, known, settings)[0]


def weighted(questions: Checklist, examples: Sequence[Example], settings: JudgeOptions) -> Checklist:
    """Return the checklist with the weights that the settings name. InputError names the file and field at fault."""
    if settings.weights is None:
        return questions
    return weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)


def score_by_own(
    examples: Sequence[Example], own: Mapping[str, Checklist], verdicts: Iterable[Verdict], *, soft: bool
) -> list[ExampleScore]:
    """Score every example by its own checklist, as :func:`score_examples`; an example without one has no score."""
    by_example: dict[str, list[Verdict]] = {each.id: [] for each in examples}
    for verdict in verdicts:
        by_example[verdict.example].append(verdict)
    return [
        score_examples([each], own[each.id], by_example[each.id], soft=soft)[0]
        if each.id in own
        else ExampleScore(each.id, None, {DIMENSION: None})
        for each in examples
    ]


def _decaying(own: Checklist, decay: float) -> Checklist:
    """Question n weighs ``decay`` to the power of n - 1 (LMUnit, Table 15, has 0.8 to the n, the same ratios)."""
    weighted = (each.model_copy(update={"weight": decay**place}) for place, each in enumerate(own.questions))
    return own.model_copy(update={"questions": tuple(weighted)})


async def _ask_adaptively(
    evaluator: Evaluator, examples: Sequence[Example], settings: EvaluateOptions, watcher: Watcher
) -> AdaptiveEvaluation:
    from .adaptive import evaluate_adaptively

    questions = len(evaluator.checklist.asked) * settings.repeat

    def on_examples(done: int, of: int) -> None:
        watcher.advance(done * questions, of * questions)

    return await evaluate_adaptively(
        evaluator,
        examples,
        tolerance=settings.stop_within,
        cuts=() if settings.pass_mark is None else (settings.pass_mark,),
        soft=settings.soft,
        on_examples=on_examples,
    )


def _agreement(
    examples: Sequence[Example], targets: Targets, scores: Sequence[ExampleScore], resampling: Resampling
) -> list[Agreement]:
    groups = resampling.groups
    systems = list(column(examples, "system"))
    found = []
    for dimension in targets.dimensions:
        values = [targets.dimension_score(each, dimension) for each in scores]
        wanted = [targets.wanted[each.example].get(dimension) for each in scores]
        found.append(
            Agreement(
                dimension,
                correlate(values, wanted, resampling),
                per_group(values, wanted, groups, resampling=resampling) if groups else None,
                between_systems(values, wanted, systems, resampling),
            )
        )
    return found
