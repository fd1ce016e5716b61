"""``evaluate``: judge a data set with a checklist and say how far people agree (BinEval §3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.evaluator import Evaluator
from ..models.session import run_sync, session
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.default import default_prompt
from ..prompts.examples import Example, documents, human_dimensions, load_examples
from ..prompts.prompt import Prompt, load_prompt
from ..stats.correlation import correlate, per_group, system_level
from ..stats.resampling import Resampling
from ..stats.threshold import HALF
from .calibration import load_calibration
from .evaluation import Agreement, Evaluation
from .options import EvaluateOptions, JudgeOptions, parse_options
from .pass_fail import PassThreshold, judge_passes, pass_labels
from .progress import watching
from .scoring import coverage, human_targets, score_examples
from .slices import slice_rows, slice_values
from .weights_file import weighted_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..agents.buying import Estimate
    from ..models.base import Model
    from ..models.gateway import AnswerStore, Gateway
    from ..models.resolve import Models
    from ..prompts.verdicts import Verdict
    from .adaptive import AdaptiveEvaluation
    from .calibration import Calibration
    from .pass_fail import PassLabels
    from .progress import Watcher
    from .scoring import ExampleScore, Targets


def evaluate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    evaluator: type[Evaluator] = Evaluator,
    **options: Any,
) -> Evaluation:
    """Judge examples with a checklist.

    Args:
        data: JSONL or CSV file, or rows.
        checklist: YAML or JSON file, or a checklist.
        model: ``provider/model``, or an object that can be asked.
        prompt: File or prompt; askance's own neutral one by default.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        evaluator: What puts the questions to the model.
        options: Settings of :class:`~askance.evaluation.options.EvaluateOptions`, among them ``store`` and ``no_cache``.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    return prepare(data, checklist, model, prompt, options, evaluator).run(watcher, progress)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
    evaluator: type[Evaluator] = Evaluator,
) -> EvaluationJob:
    """Load and check what :func:`evaluate` is given; nothing is bought.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    settings = parse_options(EvaluateOptions, options)
    return EvaluationJob(*load_inputs(data, checklist, prompt, settings), model, settings, evaluator)


@dataclass(frozen=True)
class EvaluationJob:
    """The inputs of an evaluation, checked."""

    examples: list[Example]
    checklist: Checklist
    prompt: Prompt
    model: str | Model
    settings: EvaluateOptions
    evaluator: type[Evaluator] = Evaluator
    calibration: Calibration | None = None
    """In place of the file that the settings name."""
    answers: Path | None = None
    """Another store, whose answers are reused too."""
    threshold: PassThreshold | None = None
    """From which score on an output passes, unless the settings say otherwise."""

    def estimate(self) -> Estimate:
        """What :meth:`run` would buy; nothing is bought."""

        async def estimate(store: AnswerStore) -> Estimate:
            async with session(self.settings, store) as (models, gateway):
                return self._asking(models, gateway).estimate(self.examples)

        with self.settings.store(to_estimate=True, beside=self.answers) as store:
            return run_sync(estimate(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Evaluation:
        """Judge the examples; what is raised is as in :func:`evaluate`."""
        if human_dimensions(self.examples, self.checklist):  # refuses ratings that fit nothing before a call
            human_targets(self.examples, self.checklist, self.settings.human_scale)
        if self.settings.by is not None:
            slice_values(self.examples, self.settings.by)
        with watching(watcher, progress) as shown, self.settings.store(beside=self.answers) as store:
            return run_sync(self._run(store, shown))

    def _asking(self, models: Models, gateway: Gateway) -> Evaluator:
        return self.evaluator(gateway, models.get(self.model), self.prompt, self.checklist, self.settings.judging)

    async def _run(self, store: AnswerStore, watcher: Watcher) -> Evaluation:
        examples, checklist, settings = self.examples, self.checklist, self.settings
        calibration = self.calibration
        if settings.calibration is not None:
            calibration = load_calibration(settings.calibration)
        if calibration is not None:
            calibration.check_polarity(checklist)
        async with session(settings, store, watcher.say) as (models, gateway):
            asked = self._asking(models, gateway)
            watcher.watch(gateway.budget)
            watcher.phase(f"asking {asked.model.name}", len(examples) * len(checklist.questions) * settings.repeat)
            if settings.adaptive:
                asking = await _ask_adaptively(asked, examples, settings, watcher)
                verdicts: Sequence[Verdict] = asking.verdicts
            else:
                asking, verdicts = None, await asked.judge(examples, watcher.advance)
        if calibration is not None:
            verdicts = calibration.apply(verdicts)
        scores = score_examples(examples, checklist, verdicts, soft=settings.soft)
        seen = coverage(verdicts)
        if asking is not None:
            scores = asking.known(scores, checklist)
            seen = replace(seen, not_asked=asking.not_asked * settings.repeat)
        sampling = Resampling(documents(examples), settings.resamples, seed=settings.seed)
        agreement: list[Agreement] = []
        targets = labels = None
        if human_dimensions(examples, checklist):
            watcher.phase("comparing with the human scores")
            targets = human_targets(examples, checklist, settings.human_scale)
            agreement = _agreement(examples, targets, scores, sampling)
            labels = pass_labels(examples, targets)
        threshold = self._threshold(targets, labels)
        passing = None if threshold is None else judge_passes(scores, examples, threshold, labels, sampling)
        slices = None
        if settings.by is not None:
            slices = slice_rows(settings.by, examples, scores, targets, labels, threshold, sampling)
        name, prompt = asked.model.name, self.prompt.hash
        spent, scale, faults = gateway.budget, settings.scale, tuple(checklist.faults)
        return Evaluation(
            name, prompt, verdicts, scores, agreement, seen, spent, scale, asking, faults, passing, slices
        )

    def _threshold(self, targets: Targets | None, labels: PassLabels | None) -> PassThreshold | None:
        """From which score on an output passes; None where nobody said, and people's labels do not ask for it."""
        given, mark = self.settings.pass_threshold, self.settings.pass_mark
        rated = ("overall",) if targets is None else targets.dimensions
        if given is not None:
            return PassThreshold(given, "given", dimensions=rated)
        if mark is not None:
            return PassThreshold(mark, "pass_mark")
        if self.settings.adaptive:
            return None
        return self.threshold or (PassThreshold(HALF, "default", dimensions=rated) if labels is not None else None)


def load_inputs(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    checklist: str | Path | Checklist,
    prompt: str | Path | Prompt | None,
    settings: JudgeOptions,
) -> tuple[list[Example], Checklist, Prompt]:
    """Examples, checklist and evaluator prompt from files or objects, checked.

    Raises:
        InputError: Names the file, line and field at fault.
    """
    questions = load_checklist(checklist)
    examples = load_examples(data, fields=settings.field, limit=settings.limit, labels=settings.labels)
    if settings.weights is not None:
        questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    return examples, questions, default_prompt(examples) if prompt is None else load_prompt(prompt)


async def _ask_adaptively(
    evaluator: Evaluator, examples: Sequence[Example], settings: EvaluateOptions, watcher: Watcher
) -> AdaptiveEvaluation:
    from .adaptive import evaluate_adaptively

    questions = len(evaluator.checklist.questions) * settings.repeat

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
    examples: list[Example], targets: Targets, scores: Sequence[ExampleScore], resampling: Resampling
) -> list[Agreement]:
    groups = resampling.groups
    systems = [example.system for example in examples]
    found = []
    for dimension in targets.dimensions:
        values = [targets.dimension_score(each, dimension) for each in scores]
        wanted = [targets.wanted[each.example].get(dimension) for each in scores]
        found.append(
            Agreement(
                dimension,
                correlate(values, wanted, resampling),
                per_group(values, wanted, groups, resampling=resampling) if groups else None,
                system_level(values, wanted, systems, resampling) if len(set(systems) - {None}) > 2 else None,
            )
        )
    return found
