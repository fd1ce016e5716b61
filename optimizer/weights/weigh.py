"""Learn how test scores add up from files: pairs, ratings or both, with scores given or bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from ...agents.buying import NOTHING, Estimate
from ...evaluation.evaluation import Evaluation
from ...evaluation.progress import Watcher, watching
from ...evaluation.shown import Shown, View
from ...models.base import Model
from ...models.budget import CAPS
from ...models.named import ModelLike, named_models
from ...prompts.checklist import Checklist
from ...prompts.errors import BudgetExceededError, CoverageError, InputError
from ...prompts.field_map import check_field_map
from ...prompts.preferences import KNOWN_FIELDS
from ...prompts.prompt import Prompt
from ...setting_types import WeighSettings
from ...settings import flag, parse_options, refuse_idle
from ..options import WeighOptions
from . import (
    PreferenceScores,
    RatingScores,
    ScoreKind,
    WeighResult,
    find_learner,
    learn_weights,
    load_preferences,
    load_ratings,
    sentences,
    weights_report,
    weights_view,
)
from .judged_pairs import PairsJob, PositionBias, RatingsJob, prepare_pairs, prepare_ratings
from .learn import check


@dataclass(frozen=True, repr=False)
class LearnedWeights(Shown):
    """Weights with how sure they are, in numbers and in words."""

    result: WeighResult
    judged: tuple[Evaluation, ...] = ()
    """The verdicts that were bought; none where all scores were given."""
    bias: PositionBias | None = None
    """Effect of the order of the outputs; None unless the judge saw both outputs of a pair."""
    scores: ScoreKind = "given"
    """The kind of scores that the weights were learned from."""

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each test; they sum to 1."""
        return dict(zip(self.result.tests, self.result.weights.tolist(), strict=True))

    def _view(self) -> View:
        return replace(weights_view(self.to_dict()), lines=self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """The content of ``weights.json``."""
        report = weights_report(self.result)
        report = {"schema": report["schema"], "scores": self.scores} | report
        return report | ({"position_bias": self.bias.to_dict()} if self.bias else {})

    def sentences(self) -> list[str]:
        """Say what was found."""
        said = sentences(self.result)
        if self.scores == "pairwise":
            said.append(
                "These weights are for comparing two outputs; --weights, where outputs are judged alone, refuses them."
            )
        return said + (self.bias.sentences() if self.bias else [])


def weigh(
    data: Any = None,
    *,
    ratings: Any = None,
    checklist: str | Path | Checklist | None = None,
    model: ModelLike | None = None,
    prompt: str | Path | Prompt | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[WeighSettings],
) -> LearnedWeights:
    """Learn weights of tests, and whether they beat uniform ones.

    Args:
        data: Preference pairs, with scores of their own or to be judged: a file, a data frame or rows.
        ratings: Rated outputs, as a file, a data frame or rows, with scores of their own or to be judged; alone or
            beside ``data``.
        checklist: The tests, where outputs are to be judged.
        model: The judge.
        prompt: For the judge; askance's own by default.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.optimizer.options.WeighOptions`, among them ``store`` and ``no_cache``.

    Raises:
        InputError: Bad data or settings, or settings that do not go together.
        AskanceError: Judging or learning failed; the message says why.
    """
    asked, given = named_models(options, model)
    return prepare(data, ratings, checklist, asked, prompt, given).run(watcher, progress)


def prepare(
    data: Any,
    ratings: Any,
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> WeighingJob:
    """Load and check what :func:`weigh` is given; nothing is bought.

    Raises:
        InputError: As :func:`weigh`.
    """
    settings = parse_options(WeighOptions, options)
    refuse_idle(settings, data=data, ratings=ratings, model=model)
    _check(settings, data=data, ratings=ratings, checklist=checklist, model=model)
    pairs: PreferenceScores | PairsJob | None = None
    rated: RatingScores | RatingsJob | None = None
    dimension, limit = settings.rating_dimension, settings.limit
    if checklist is None or model is None:
        pairs = (
            None if data is None else load_preferences(data, limit=limit, fields=settings.field, labels=settings.labels)
        )
        rated = (
            None
            if ratings is None
            else load_ratings(
                ratings, dimension=dimension, limit=limit, labels=settings.labels, label_scale=settings.label_scale
            )
        )
        return WeighingJob(pairs, rated, settings, "given")
    judge: dict[str, Any] = {"checklist": checklist, "model": model, "prompt": prompt, **settings.for_judging}
    if data is not None:
        each = {name: value for name, value in judge.items() if name != "field"}
        renamed = {name: column for name, column in settings.field.items() if name in KNOWN_FIELDS}
        pairs = prepare_pairs(data, pairwise=settings.pairwise, swap=settings.swap, pair_field=renamed, **each)
    if ratings is not None:
        rated = prepare_ratings(ratings, dimension=dimension, **judge)
    job = WeighingJob(pairs, rated, settings, "pairwise" if settings.pairwise else settings.scores)
    job.check()
    return job


@dataclass(frozen=True)
class WeighingJob:
    """Checked data to learn weights from: scores that are there, or outputs to be judged."""

    pairs: PreferenceScores | PairsJob | None
    rated: RatingScores | RatingsJob | None
    settings: WeighOptions
    scores: ScoreKind

    def check(self) -> None:
        """Refuse what nothing can be learned from, before anything is bought.

        Raises:
            InputError: As in :func:`weigh`.
        """
        pairs = self.pairs.unscored if isinstance(self.pairs, PairsJob) else self.pairs
        rated = self.rated.unscored if isinstance(self.rated, RatingsJob) else self.rated
        check(pairs, rated, level=self.settings.level)

    def estimate(self) -> Estimate:
        """Estimate what :meth:`run` would buy, which is nothing where the scores are in the files.

        Outputs that are in a pair and rated as well are bought once, but are in the estimate twice.
        """
        judged = [
            each.asked.estimate() for each in (self.pairs, self.rated) if isinstance(each, (PairsJob, RatingsJob))
        ]
        return sum(judged, NOTHING)

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> LearnedWeights:
        """Judge what has no scores and learn; what is raised is as in :func:`weigh`."""
        with watching(watcher, progress) as shown:
            return self._run(shown)

    def _run(self, watcher: Watcher) -> LearnedWeights:
        judged: list[Evaluation] = []
        pairs, rated, bias = self.pairs, self.rated, None
        if isinstance(pairs, PairsJob):
            found = pairs.run(watcher)
            pairs, bias = found.scores, found.bias
            judged.append(found.evaluation)
        if isinstance(rated, RatingsJob):
            left = rated.asked.settings.model_copy(update=_left_of_budget(self.settings, judged))
            try:
                rated, bought = replace(rated, asked=replace(rated.asked, settings=left)).run(watcher)
            except BudgetExceededError as error:
                if not judged:
                    raise
                cap = CAPS[error.limit]
                given = f"{flag(cap)} {getattr(self.settings, cap):g}"
                said = f"{error} That is what judging the pairs left of {given}."
                raise BudgetExceededError(error.limit, said) from None
            judged.append(bought)
        _require_scores(judged, pairs, rated)
        return LearnedWeights(_learn(pairs, rated, self.settings, watcher), tuple(judged), bias, self.scores)


def _learn(
    pairs: PreferenceScores | None, rated: RatingScores | None, settings: WeighOptions, watcher: Watcher
) -> WeighResult:
    tests = next(each.tests for each in (pairs, rated) if each is not None)
    counted = [f"{len(pairs.ids)} pairs"] if pairs else []
    counted += [f"{len(rated.ids)} rated outputs"] if rated else []
    watcher.phase(f"weighing {len(tests)} tests on {' and '.join(counted)}")
    return learn_weights(
        pairs,
        ratings=rated,
        method=settings.method,
        level=settings.level,
        pooling=settings.pooling,
        pair_share=settings.pair_share,
        resamples=settings.asked_resamples,
        seed=settings.seed,
    )


def _check(settings: WeighOptions, *, data: Any, ratings: Any, checklist: Any, model: Any) -> None:
    if data is None and ratings is None:
        raise InputError("PREFS or --ratings is needed: preference pairs, rated outputs or both.")
    find_learner(settings.method, rated=ratings is not None)
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
    if settings.field and data is None and model is None:
        raise InputError("--field renames the columns of PREFS, and of --ratings that are judged.")
    if data is not None and ratings is None:
        check_field_map(settings.field, KNOWN_FIELDS)


def _left_of_budget(settings: WeighOptions, judged: Sequence[Evaluation]) -> dict[str, Any]:
    """The caps, less what was spent: they hold for pairs and ratings together."""
    left: dict[str, Any] = {}
    for cap, spent in (("call_budget", "calls"), ("token_budget", "tokens"), ("cost_budget", "cost_usd")):
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
