"""Judge a data set with a checklist and say how far people agree (BinEval §3.2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..agents.buying import Estimate
from ..agents.evaluator import Evaluator
from ..memory.verdict_store import VerdictStore, open_store, open_store_to_estimate
from ..models.session import run_sync, session
from ..prompts.checklist import Checklist, load_checklist
from ..prompts.default import default_prompt
from ..prompts.examples import Example, documents, human_dimensions, load_examples
from ..prompts.prompt import Prompt, load_prompt
from ..stats.correlation import correlate, per_group, system_level
from .calibration import load_calibration
from .evaluate_options import EvaluationOptions
from .evaluation import Agreement, Evaluation
from .options import JudgeOptions, parse_options
from .scoring import coverage, score_examples
from .targets import human_targets
from .watching import watching
from .weights import weighted_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..models.base import Model
    from ..prompts.verdicts import Verdict
    from .progress import Watcher
    from .scoring import ExampleScore
    from .selection.adaptive import AdaptiveEvaluation


def evaluate(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    cache: str | Path | None = None,
    no_cache: bool = False,
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
        cache: Where answers are kept; ``verdicts.db`` in the user's cache directory by default.
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        evaluator: What puts the questions to the model.
        options: Settings of :class:`~askance.optimizer.evaluate_options.EvaluationOptions`.

    Raises:
        InputError: Bad data, checklist, prompt, model name or setting.
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    settings = parse_options(EvaluationOptions, options)
    examples, questions, text = load_inputs(data, checklist, prompt, settings)
    if human_dimensions(examples):
        human_targets(examples, questions, settings.human_scale)  # refuses ratings that fit nothing before a call
    with watching(watcher, progress) as shown, open_store(cache, no_cache=no_cache) as store:
        return run_sync(_evaluate(examples, questions, model, text, store, settings, shown, evaluator))


def estimate_evaluation(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    checklist: str | Path | Checklist,
    model: str | Model,
    prompt: str | Path | Prompt | None = None,
    cache: str | Path | None = None,
    no_cache: bool = False,
    evaluator: type[Evaluator] = Evaluator,
    **options: Any,
) -> Estimate:
    """What :func:`evaluate` would buy; nothing is bought.

    Raises:
        InputError: As :func:`evaluate`.
    """
    settings = parse_options(EvaluationOptions, options)
    examples, questions, text = load_inputs(data, checklist, prompt, settings)

    async def estimate(store: VerdictStore) -> Estimate:
        async with session(settings, store) as (models, gateway):
            return evaluator(gateway, models.get(model), text, questions, settings.judging).estimate(examples)

    with open_store_to_estimate(cache, no_cache=no_cache) as store:
        return run_sync(estimate(store))


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
    questions = checklist if isinstance(checklist, Checklist) else load_checklist(checklist)
    examples = load_examples(data, fields=settings.field, limit=settings.limit)
    if settings.weights is not None:
        questions = weighted_by(questions, settings.weights, scores=settings.scores, examples=examples)
    return examples, questions, default_prompt(examples) if prompt is None else load_prompt(prompt)


async def _evaluate(
    examples: list[Example],
    checklist: Checklist,
    model: str | Model,
    prompt: Prompt,
    store: VerdictStore,
    settings: EvaluationOptions,
    watcher: Watcher,
    evaluator: type[Evaluator],
) -> Evaluation:
    calibration = None if settings.calibration is None else load_calibration(settings.calibration)
    async with session(settings, store, watcher.say) as (models, gateway):
        judge = models.get(model)
        watcher.watch(gateway.budget)
        watcher.phase(f"asking {judge.name}", len(examples) * len(checklist.questions) * settings.repeat)
        asked = evaluator(gateway, judge, prompt, checklist, settings.judging)
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
    agreement: list[Agreement] = []
    if human_dimensions(examples):
        watcher.phase("comparing with the human scores")
        agreement = _agreement(examples, checklist, scores, settings)
    return Evaluation(
        judge.name, prompt.hash, verdicts, scores, agreement, seen, gateway.budget, settings.scale, asking
    )


async def _ask_adaptively(
    evaluator: Evaluator, examples: Sequence[Example], settings: EvaluationOptions, watcher: Watcher
) -> AdaptiveEvaluation:
    from .selection.adaptive import evaluate_adaptively

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
    examples: list[Example], checklist: Checklist, scores: list[ExampleScore], settings: EvaluationOptions
) -> list[Agreement]:
    targets = human_targets(examples, checklist, settings.human_scale)
    groups = documents(examples)
    systems = [example.system for example in examples]
    found = []
    for dimension in targets.dimensions:
        values = [targets.dimension_score(each, dimension) for each in scores]
        wanted = [targets.wanted[each.example].get(dimension) for each in scores]
        found.append(
            Agreement(
                dimension,
                correlate(values, wanted, groups=groups, resamples=settings.resamples, seed=settings.seed),
                per_group(values, wanted, groups, resamples=settings.resamples, seed=settings.seed) if groups else None,
                system_level(values, wanted, systems, resamples=settings.resamples, seed=settings.seed)
                if len(set(systems) - {None}) > 2
                else None,
            )
        )
    return found
