"""Learn how test scores add up from files: pairs, ratings or both, with scores given or bought (METHOD section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agents.buying import Estimate
from ...evaluation.evaluate import estimate_evaluation
from ...evaluation.options import WeighOptions, parse_options
from ...evaluation.progress import watching
from ...evaluation.shown import Shown, View
from ...prompts.errors import CoverageError, InputError
from . import (
    PreferenceScores,
    RatingScores,
    RatingWeights,
    WeighResult,
    find_learner,
    learn_from_pairs,
    learn_from_ratings,
    load_preferences,
    load_ratings,
    rating_report,
    rating_sentences,
    sentences,
    weights_report,
    weights_view,
)
from .judged_pairs import estimate_pairs, judge_preferences, judge_ratings
from .rating_plan import rating_method

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...evaluation.evaluate import Evaluation
    from ...evaluation.progress import Watcher
    from ...models.base import Model
    from ...prompts.checklist import Checklist
    from ...prompts.prompt import Prompt
    from . import ScoreKind
    from .judged_pairs import PositionBias


@dataclass(frozen=True, repr=False)
class LearnedWeights(Shown):
    """Weights with how sure they are, in numbers and in words."""

    result: WeighResult | RatingWeights
    judged: tuple[Evaluation, ...] = ()
    """The verdicts that were bought; none where all scores were given."""
    bias: PositionBias | None = None
    """What the order of the outputs did; None unless the judge saw both outputs of a pair."""
    scores: ScoreKind = "given"
    """What the weights were learned from."""

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each test; they sum to 1."""
        return dict(zip(self.result.tests, self.result.weights.tolist(), strict=True))

    def _view(self) -> View:
        return replace(weights_view(self.to_dict()), lines=self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """The content of ``weights.json``."""
        found = self.result
        report = weights_report(found) if isinstance(found, WeighResult) else rating_report(found)
        report = {"schema": report["schema"], "scores": self.scores} | report
        return report | ({"position_bias": self.bias.to_dict()} if self.bias else {})

    def sentences(self) -> list[str]:
        """What was found, in words."""
        found = self.result
        said = sentences(found) if isinstance(found, WeighResult) else rating_sentences(found)
        if self.scores == "pairwise":
            said.append(
                "These weights are for comparing two outputs; --weights, where outputs are judged alone, refuses them."
            )
        return said + (self.bias.sentences() if self.bias else [])


def weigh(
    data: str | Path | None = None,
    *,
    ratings: str | Path | None = None,
    checklist: str | Path | Checklist | None = None,
    model: str | Model | None = None,
    prompt: str | Path | Prompt | None = None,
    cache: str | Path | None = None,
    no_cache: bool = False,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Any,
) -> LearnedWeights:
    """Learn weights of tests, and whether they beat uniform ones.

    Args:
        data: Preference pairs, with scores of their own or to be judged.
        ratings: Rated outputs, with scores of their own or to be judged; alone or beside ``data``.
        checklist: The tests, where outputs are to be judged.
        model: The judge.
        prompt: For the judge; askance's own by default.
        cache: Where answers are kept.
        no_cache: Reuse no answer of an earlier command, and keep none for a later one.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.WeighOptions`.

    Raises:
        InputError: Bad data or settings, or settings that do not go together.
        AskanceError: Judging or learning failed; the message says why.
    """
    settings = parse_options(WeighOptions, options)
    _check(settings, data=data, ratings=ratings, checklist=checklist, model=model)
    judge: dict[str, Any] = {"checklist": checklist, "model": model, "prompt": prompt}
    judge |= {"cache": cache, "no_cache": no_cache, **settings.for_judging}
    with watching(watcher, progress) as shown:
        return _weigh(data, ratings, judge, settings, shown)


def estimate_weighing(
    data: str | Path | None = None,
    *,
    ratings: str | Path | None = None,
    checklist: str | Path | Checklist | None = None,
    model: str | Model | None = None,
    prompt: str | Path | Prompt | None = None,
    cache: str | Path | None = None,
    no_cache: bool = False,
    **options: Any,
) -> Estimate:
    """What :func:`weigh` would buy, which is nothing where the scores are in the files; nothing is bought.

    Outputs that are in a pair and rated as well are bought once, but are in the estimate twice.

    Raises:
        InputError: As :func:`weigh`.
    """
    settings = parse_options(WeighOptions, options)
    _check(settings, data=data, ratings=ratings, checklist=checklist, model=model)
    found = Estimate(0, 0, 0, 0)
    if model is None:
        return found
    judge: dict[str, Any] = {"checklist": checklist, "model": model, "prompt": prompt}
    judge |= {"cache": cache, "no_cache": no_cache, **settings.for_judging}
    if data is not None:
        found += estimate_pairs(data, pairwise=settings.pairwise, swap=settings.swap, **_without(judge, "field"))
    if ratings is not None:
        found += estimate_evaluation(ratings, **judge)
    return found


def _weigh(
    data: str | Path | None, ratings: str | Path | None, judge: dict[str, Any], settings: WeighOptions, watcher: Watcher
) -> LearnedWeights:
    judged: list[Evaluation] = []
    pairs, bias, rated = None, None, None
    model, judge = judge["model"], judge | {"watcher": watcher}
    if data is not None and model is None:
        pairs = load_preferences(data, limit=settings.limit)
    elif data is not None:
        found = judge_preferences(data, pairwise=settings.pairwise, swap=settings.swap, **_without(judge, "field"))
        pairs, bias = found.scores, found.bias
        judged.append(found.evaluation)
    if ratings is not None and model is None:
        rated = load_ratings(ratings, dimension=settings.rating_dimension, limit=settings.limit)
    elif ratings is not None:
        judge |= _left_of_budget(settings, judged)
        rated, bought = judge_ratings(ratings, dimension=settings.rating_dimension, **judge)
        judged.append(bought)
    _require_scores(judged, pairs, rated)
    scores: ScoreKind = "given" if model is None else "pairwise" if settings.pairwise else settings.scores
    return LearnedWeights(_learn(pairs, rated, settings, watcher), tuple(judged), bias, scores)


def _learn(
    pairs: PreferenceScores | None, rated: RatingScores | None, settings: WeighOptions, watcher: Watcher
) -> WeighResult | RatingWeights:
    tests = next(each.tests for each in (pairs, rated) if each is not None)
    counted = [f"{len(pairs.ids)} pairs"] if pairs else []
    counted += [f"{len(rated.ids)} rated outputs"] if rated else []
    watcher.phase(f"weighing {len(tests)} tests on {' and '.join(counted)}")
    common: dict[str, Any] = {"seed": settings.seed} | settings.asked_resamples
    if rated is not None:
        method, share = rating_method(settings.method), settings.pair_share
        return learn_from_ratings(rated, pairs=pairs, method=method, pair_share=share, **common)
    assert pairs is not None
    return learn_from_pairs(pairs, method=settings.method, level=settings.level, pooling=settings.pooling, **common)


def _check(settings: WeighOptions, *, data: Any, ratings: Any, checklist: Any, model: Any) -> None:
    if data is None and ratings is None:
        raise InputError("PREFS or --ratings is needed: preference pairs, rated outputs or both.")
    find_learner(settings.method) if ratings is None else rating_method(settings.method)
    if (checklist is None) != (model is None):
        raise InputError("--checklist and --model belong together: the model answers the checklist's questions.")
    if settings.pairwise and (data is None or model is None):
        raise InputError("--pairwise judges the pairs in PREFS, so it needs PREFS, --checklist and --model.")
    if settings.pairwise and ratings is not None:
        raise InputError(
            "--pairwise says which of two outputs does better; that is no score of an output alone, so it does not go "
            "with --ratings."
        )
    if settings.swap and not settings.pairwise:
        raise InputError("--swap shows both outputs of a pair in both orders, so it needs --pairwise.")
    if settings.level != "global" and ratings is not None:
        raise InputError(f"--level {settings.level} takes pairs: from ratings one set of weights is learned.")
    if settings.field and (ratings is None or model is None):
        raise InputError("--field renames the columns of --ratings that are judged; PREFS has names of its own.")


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in values.items() if each != name}


def _left_of_budget(settings: WeighOptions, judged: Sequence[Evaluation]) -> dict[str, Any]:
    """The caps, less what was spent: they hold for pairs and ratings together."""
    left: dict[str, Any] = {}
    for cap, spent in (("max_calls", "calls"), ("max_tokens", "tokens"), ("max_cost", "cost_usd")):
        most = getattr(settings, cap)
        if most is not None:
            left[cap] = max(most - sum(getattr(each.budget, spent) for each in judged), 0)
    return left


def _require_scores(judged: Sequence[Evaluation], pairs: PreferenceScores | None, rated: RatingScores | None) -> None:
    """Say why where nothing that was judged has all its scores."""
    for what, scores in (("pair", pairs), ("rated output", rated)):
        if judged and scores is not None and not scores.ids:
            errors = [verdict.error for each in judged for verdict in each.verdicts if verdict.error]
            raise CoverageError(f"Not one {what} has all its scores. {errors[0] if errors else ''}".rstrip())
