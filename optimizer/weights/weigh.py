"""Learn weights of tests from pairs, ratings or both, and say whether they beat uniform weights on held-out data. The
scores are in the data or are bought from a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from ...agents.buying import NOTHING, Estimate
from ...evaluation.evaluation_result import Evaluation
from ...evaluation.raters.agreement import ceiling_of
from ...evaluation.view import Shown, View
from ...evaluation.weights_file import ScoreKind
from ...models.base import Model
from ...models.budget import CAPS
from ...models.event_loops import awaited
from ...models.named import ModelLike, named_models
from ...models.progress import Watcher, watching
from ...prompts.checklist import Checklist
from ...prompts.errors import BudgetExceededError, CoverageError, InputError
from ...prompts.field_map import check_field_map
from ...prompts.preferences import KNOWN_FIELDS
from ...prompts.prompt import Prompt
from ...setting_types import WeighSettings
from ...settings import flag, parse_options, refuse_idle
from ...stats.resampling import Resampling
from ..options import CAPPED, WeighOptions, left_of_caps
from .evidence import (
    SCORE_TIE,
    Evidence,
    PairDifferences,
    PairFold,
    RatedScores,
    codes_of,
    grouped_folds,
    require_groups,
    single_split,
)
from .heldout import CONFIDENCE, WeightSamples, bootstrap_counts, compare_held_out, interval, rank_stability
from .judged_pairs import PairsJob, PositionBias, RatingsJob, prepare_pairs, prepare_ratings
from .learner_choice import Pooling, Recipe, Weighting, choose_recipe, find_learner, learners
from .learners import LearningFailedError, WeightLearner
from .score_tables import Level, PreferenceScores, RatingScores, load_preferences, load_ratings
from .weights_result import (
    PairCounts,
    RatingCounts,
    SectionWeights,
    WeighResult,
    sentences,
    weights_report,
    weights_view,
)


@dataclass(frozen=True, repr=False)
class LearnedWeights(Shown):
    """Learned weights and how sure they are, in numbers and in words."""

    result: WeighResult
    judged: tuple[Evaluation, ...] = ()
    """The evaluations that were bought; empty where all scores were given."""
    bias: PositionBias | None = None
    """Effect of the order of the outputs; None unless the judge saw both outputs of a pair."""
    scores: ScoreKind = "given"

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
        """Return the findings in sentences."""
        findings = sentences(self.result)
        if self.scores == "pairwise":
            findings.append(
                "These weights are for comparing two outputs; --weights, where outputs are judged alone, refuses them."
            )
        return findings + (self.bias.sentences() if self.bias else [])


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
    """Learn weights of tests, and say whether they beat uniform weights. Raises InputError for bad data or settings,
    and for settings that do not go together. Raises AskanceError, which says why, where judging or learning failed.

    Args:
        data: Preference pairs, with scores of their own or to be judged: a file, a data frame or rows.
        ratings: Rated outputs, with scores of their own or to be judged: a file, a data frame or rows; alone or
            beside ``data``.
        checklist: The tests, where outputs are to be judged.
        model: The judge.
        prompt: For the judge; askance's own by default.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.optimizer.options.WeighOptions`, among them ``store`` and ``no_cache``.
    """
    asked, given = named_models(options, model)
    return prepare(data, ratings, checklist, asked, prompt, given).run(watcher, progress)


aweigh = awaited(weigh)


def prepare(
    data: Any,
    ratings: Any,
    checklist: str | Path | Checklist | None,
    model: str | Model | None,
    prompt: str | Path | Prompt | None,
    options: Mapping[str, Any],
) -> WeighingJob:
    """Load and check the arguments of :func:`weigh`; nothing is bought. Raises InputError as :func:`weigh`."""
    settings = parse_options(WeighOptions, options)
    refuse_idle(settings, data=data, ratings=ratings, model=model)
    _refuse(settings, data=data, ratings=ratings, checklist=checklist, model=model)
    pairs: PreferenceScores | PairsJob | None = None
    rated: RatingScores | RatingsJob | None = None
    dimension, limit = settings.rating_dimension, settings.limit
    if checklist is None or model is None:
        words: dict[str, Any] = {"limit": limit, "labels": settings.labels}
        if data is not None:
            pairs = load_preferences(data, fields=settings.field, **words)
        if ratings is not None:
            words |= {"label_scale": settings.label_scale, "human_scale": settings.human_scale}
            rated = load_ratings(ratings, dimension=dimension, **words)
        return WeighingJob(pairs, rated, settings, "given")
    judge: dict[str, Any] = {"checklist": checklist, "model": model, "prompt": prompt, **settings.for_judging}
    if data is not None:
        each = {name: value for name, value in judge.items() if name != "field"}
        renamed = {name: column for name, column in settings.field.items() if name in KNOWN_FIELDS}
        pairs = prepare_pairs(data, pairwise=settings.pairwise, swap=settings.swap, pair_field=renamed, **each)
    if ratings is not None:
        rated = prepare_ratings(ratings, dimension=dimension, human_scale=settings.human_scale, **judge)
    job = WeighingJob(pairs, rated, settings, "pairwise" if settings.pairwise else settings.scores)
    job.check()
    return job


@dataclass(frozen=True)
class WeighingJob:
    """Checked data to learn weights from: given scores, or outputs to be judged."""

    pairs: PreferenceScores | PairsJob | None
    rated: RatingScores | RatingsJob | None
    settings: WeighOptions
    scores: ScoreKind

    def check(self) -> None:
        """Refuse data that teach nothing, before anything is bought. Raises InputError as :func:`weigh`."""
        pairs = self.pairs.unscored if isinstance(self.pairs, PairsJob) else self.pairs
        rated = self.rated.unscored if isinstance(self.rated, RatingsJob) else self.rated
        check(pairs, rated, level=self.settings.level)

    def estimate(self) -> Estimate:
        """Estimate what :meth:`run` would buy: nothing where the scores are given. An output that is both in a pair and
        rated counts twice here, but is bought once."""
        judged = [
            each.asked.estimate() for each in (self.pairs, self.rated) if isinstance(each, (PairsJob, RatingsJob))
        ]
        return sum(judged, NOTHING)

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> LearnedWeights:
        """Judge the outputs that have no scores, then learn. Raises as :func:`weigh`."""
        with watching(watcher, progress) as shown:
            return self._run(shown)

    def _run(self, watcher: Watcher) -> LearnedWeights:
        judged: list[Evaluation] = []
        pairs, rated, bias = self.pairs, self.rated, None
        if isinstance(pairs, PairsJob):
            pairs, bought, bias = pairs.run(watcher)
            judged.append(bought)
        if isinstance(rated, RatingsJob):
            spent = {name: sum(getattr(each.budget, name) or 0 for each in judged) for name in CAPPED.values()}
            left = rated.asked.settings.model_copy(update=left_of_caps(self.settings, spent))
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


def _refuse(settings: WeighOptions, *, data: Any, ratings: Any, checklist: Any, model: Any) -> None:
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


def _require_scores(judged: Sequence[Evaluation], pairs: PreferenceScores | None, rated: RatingScores | None) -> None:
    for what, scores in (("pair", pairs), ("rated output", rated)):
        if judged and scores is not None and not scores.ids:
            errors = [verdict.error for each in judged for verdict in each.verdicts if verdict.error]
            raise CoverageError(f"Not one {what} has all its scores. {errors[0] if errors else ''}".rstrip())


QUICK = ("uniform", "best-single", "logistic", "robust")
"""Learners that pairs are also tried with, unless others are named. Ratings are tried with all learners."""
MANY_PAIRS = 20_000
"""With more pairs than this, one half is held out once. With fewer, every pair is held out once, in five folds."""
HELD_OUT = 0.5
"""Share of the pairs that one split holds out."""
MANY_SCORES = 500_000
"""With more scores (pairs times tests), weights get 50 bootstrap resamples, not 200, unless a number is given."""


def learn_weights(
    pairs: PreferenceScores | None = None,
    *,
    ratings: RatingScores | None = None,
    method: str | WeightLearner = "auto",
    compare: Sequence[str | WeightLearner] | None = None,
    level: Level = "global",
    pooling: Pooling = "partial",
    pair_share: float = 0.5,
    folds: int | None = None,
    resamples: int | None = None,
    seed: int = 42,
) -> WeighResult:
    """Learn weights of tests, and compare them on held-out data with simpler learners (LMUnit §3.5, A.3.5).

    For the held-out figures, weights are learned from the development part of each split. The returned weights are then
    learned from all data in the same way. Groups with the same name in ratings and pairs are one group. ``compare``
    names the learners to compare with; ``uniform`` is always among them (None: the quick ones, for ratings all).
    ``level`` and ``pooling`` are for pairs alone. ``pair_share`` is the share of the pairs in the objective beside
    ratings, in [0, 1]. ``folds`` is 1 for one split into halves; None means 5, or 1 with a slow learner or over 20,000
    pairs. ``resamples`` is 200 by default (100 for ratings), 50 over 500,000 scores, none for a slow learner.

    Raises InputError for an unknown learner, an option out of range, or data from which nothing can be learned;
    LearningFailedError where the method finds no weights; MissingExtraError where it needs a package.
    """
    if folds is not None and folds < 1:
        raise InputError(f"folds is {folds}; it must be at least 1.")
    if not 0.0 <= pair_share <= 1.0:
        raise InputError(f"pair_share is {pair_share}; it must lie in [0, 1].")
    rated = ratings is not None
    chosen = find_learner(method, rated=rated)
    known = compare if compare is not None else tuple(learners(rated=True)) if rated else QUICK
    other_learners = [find_learner(each, rated=rated) for each in known]
    other_learners = [each for each in other_learners if each.name not in (chosen.name, "uniform")]
    data = check(pairs, ratings, level=level, pair_share=pair_share)
    names = () if rated or pairs is None else pairs.section_names(level)
    splits = _splits(data, folds, all(each.quick for each in (chosen, *other_learners)), seed)
    scores, verdict, power, held_out = compare_held_out(
        [chosen, *other_learners], data, splits, sections=len(names), pooling=pooling, seed=seed
    )

    recipe, reason = choose_recipe(data, chosen, sections=len(names), pooling=pooling, seed=seed)
    fitted = recipe.fit(data, seed=seed)
    if resamples is None:
        resamples = _usual_resamples(data) if recipe.quick else 0
    is_resampled = bool(resamples) and recipe.learns
    samples = bootstrap_weights(recipe, data, fitted, resamples=resamples, seed=seed) if is_resampled else None
    usable = samples if samples is not None and samples.usable else None
    low, high = interval(usable.overall) if usable else (None, None)
    return WeighResult(
        method=chosen.name,
        learner=recipe.overall.name,
        reason=reason,
        level=level,
        tests=next(each.tests for each in (ratings, pairs) if each is not None),
        weights=fitted.overall,
        low=low,
        high=high,
        no_interval=_no_interval(samples, recipe, "ratings" if rated else "pairs"),
        sections=_section_weights(names, data, fitted, usable),
        stability=rank_stability(fitted.overall, usable.overall) if usable else None,
        learners=tuple(scores),
        verdict=verdict,
        power=power,
        counts=_count(pairs, ratings, data, fitted, held_out),
        folds=len(splits),
        resamples=resamples,
        failed_resamples=samples.failed if samples else 0,
        confidence=CONFIDENCE,
        seed=seed,
        raters={} if ratings is None else _raters(ratings, resamples, seed),
    )


def _raters(ratings: RatingScores, resamples: int, seed: int) -> dict[str, Any]:
    """Return the agreement between raters and the ceiling, by dimension; empty where each output has one rating."""
    found = ceiling_of(ratings.raters, Resampling(ratings.groups, resamples, seed=seed)) if ratings.raters else None
    return {} if found is None else {"ratings": found}


def _splits(data: Evidence, folds: int | None, quick: bool, seed: int) -> list[PairFold]:
    if folds is None:
        many = isinstance(data, PairDifferences) and len(data) > MANY_PAIRS
        folds = 5 if quick and not many else 1
    return grouped_folds(data.groups, folds, seed) if folds > 1 else single_split(data.groups, HELD_OUT, seed)


def check(
    pairs: PreferenceScores | None, ratings: RatingScores | None, *, level: Level = "global", pair_share: float = 0.5
) -> Evidence:
    """Combine pairs and ratings, and refuse data from which nothing can be learned, whatever their scores.

    Raises InputError where there is no decided pair and no order among rated outputs, where there is only one group,
    where no pair names a section or data set, or where ratings and pairs were scored by different tests.
    """
    if ratings is None:
        assert pairs is not None
        data: Evidence = pairs.differences(level)
        if not data.can_be_learned:
            qualifier, missing_note = "", ""
            if pairs.left_out:
                qualifier = " with all scores"
                missing_note = f" {len(pairs.left_out)} pairs were left out because scores are missing."
            raise InputError(f"In none of the {len(data)} pairs{qualifier} did people prefer one output.{missing_note}")
    else:
        data = _together(ratings, pairs, pair_share)
        if not data.can_be_learned:
            raise InputError(
                "Learning from ratings needs at least three rated outputs that are not all rated the same."
            )
    require_groups(data.groups)
    return data


def _together(ratings: RatingScores, pairs: PreferenceScores | None, pair_share: float) -> RatedScores:
    if pairs is None:
        return RatedScores(ratings.scores, ratings.ratings, codes_of(ratings.groups))
    if set(pairs.tests) != set(ratings.tests):
        raise InputError(
            f"Ratings and pairs were scored by different tests ({', '.join(ratings.tests)}; {', '.join(pairs.tests)})."
        )
    codes = codes_of([*ratings.groups, *pairs.groups])
    outputs = len(ratings.groups)
    order = [pairs.tests.index(test) for test in ratings.tests]
    rows = pairs.differences()
    differences = replace(rows, differences=rows.differences[:, order], groups=codes[outputs:])
    share = pair_share if rows.decided_pairs else 0.0
    return RatedScores(ratings.scores, ratings.ratings, codes[:outputs], differences, share)


def bootstrap_weights(recipe: Recipe, data: Evidence, fitted: Weighting, *, resamples: int, seed: int) -> WeightSamples:
    """Learn again on resamples of whole groups, starting from the weights found.

    The choices in ``recipe`` (learner, shrinkage, pooling) stay as they are, so the spread is the spread of the weights
    given those choices. For learners of the 0-1 objective the bootstrap is only a rough guide. Maximisers of piecewise
    constant objectives converge with the cube root of the number of pairs (Manski's maximum score), and the bootstrap
    does not reproduce this.
    """
    overall, by_section, failed = [], [], 0
    for number, counts in enumerate(bootstrap_counts(data.groups, resamples, seed)):
        drawn = data.reweighted(counts)
        if not drawn.can_be_learned:  # the drawn outputs have no order
            failed += 1
            continue
        try:
            weighting = recipe.fit(drawn, seed=seed + number, start=fitted)
        except LearningFailedError:
            failed += 1
            continue
        overall.append(weighting.overall)
        if weighting.by_section is not None:
            by_section.append(weighting.by_section)
    return WeightSamples(
        np.array(overall).reshape(-1, data.tests), np.array(by_section) if by_section else None, failed
    )


def _usual_resamples(data: Evidence) -> int:
    if isinstance(data, RatedScores):
        return 100
    return 50 if data.differences.size > MANY_SCORES else 200


def _no_interval(samples: WeightSamples | None, recipe: Recipe, what: str) -> str | None:
    if not recipe.learns:
        return f"{recipe.overall.name} weights are the same whatever the {what}"
    if samples is None and not recipe.quick:
        return "learning again on resamples takes too long with this learner; ask for resamples to have it done"
    drawn = 0 if samples is None else len(samples.overall) + samples.failed
    if drawn < 2:
        return "one resample makes no interval; ask for two or more" if drawn else "no resamples were asked for"
    if samples is None or samples.usable:
        return None
    return f"nothing could be learned on {samples.failed} of the {drawn} resamples"


def _section_weights(
    names: tuple[str, ...], data: Evidence, fitted: Weighting, samples: WeightSamples | None
) -> tuple[SectionWeights, ...]:
    if fitted.by_section is None or isinstance(data, RatedScores):
        return ()
    low = high = None
    if samples is not None and samples.by_section is not None:
        low, high = interval(samples.by_section)
    decided = np.bincount(data.sections[~data.is_tie], minlength=len(names))
    return tuple(
        SectionWeights(
            name,
            int(decided[number]),
            fitted.by_section[number],
            None if low is None else low[number],
            None if high is None else high[number],
        )
        for number, name in enumerate(names)
    )


def _count(
    prefs: PreferenceScores | None, ratings: RatingScores | None, data: Evidence, fitted: Weighting, held_out: int
) -> PairCounts | RatingCounts:
    if isinstance(data, RatedScores):
        assert ratings is not None
        return RatingCounts(
            outputs=len(data.ratings),
            without_order=len(data.ratings) - held_out,
            pairs=0 if data.pairs is None else len(data.pairs),
            left_out=len(ratings.left_out),
            pairs_decided=0 if data.pairs is None else data.pairs.decided_pairs,
            pairs_left_out=0 if prefs is None else len(prefs.left_out),
            pair_share=data.pair_share,
        )
    assert prefs is not None
    margins = np.abs(fitted.margins(data))
    ties = margins[data.is_tie]
    return PairCounts(
        read=len(data) + len(prefs.left_out),
        left_out=len(prefs.left_out),
        missing_by_test=prefs.missing_by_test,
        decided=data.decided_pairs,
        data_ties=len(ties),
        data_ties_tied_by_score=int((ties <= SCORE_TIE).sum()),
        mean_margin_data_ties=float(ties.mean()) if len(ties) else None,
        mean_margin_decided=float(margins[~data.is_tie].mean()),
        groups=len(set(data.groups.tolist())),
        held_out=held_out,
    )
