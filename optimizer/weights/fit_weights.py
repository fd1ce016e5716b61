"""Learn weights from pairs, ratings or both, and say on held-out data whether that beats uniform weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...prompts.errors import InputError
from .evidence import (
    SCORE_TIE,
    Codes,
    Evidence,
    Floats,
    PairDifferences,
    PairFold,
    RatedScores,
    codes_of,
    compact,
    grouped_folds,
    require_groups,
    single_split,
)
from .heldout import CONFIDENCE, compare_held_out, interval
from .learner_choice import Pooling, Recipe, Weighting, find_learner, learners, prepare
from .learners import LearningFailedError, WeightLearner
from .score_tables import Level, PreferenceScores, RatingScores
from .weights_result import PairCounts, RankOfTest, RatingCounts, SectionWeights, Stability, WeighResult

QUICK = ("uniform", "best-single", "logistic", "robust")
"""Learners of pairs that are shown beside the chosen method unless others are named; of ratings all are."""
MANY_PAIRS = 20_000
"""With more pairs one half is held out once; with fewer, every pair is held out once, in five folds."""
HELD_OUT = 0.5
"""Share of the pairs that one split holds out."""
MANY_SCORES = 500_000
"""With more pairs times tests, weights get 50 bootstrap resamples instead of 200 unless a number is given."""


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
    """Learn how test scores add up, judged on held-out data beside simpler ways (LMUnit §3.5, A.3.5).

    The held-out figures are those of learning from the development part of each split; the weights returned are then
    learned from everything in the same way. Groups of the same name in ratings and pairs are one group.

    Args:
        pairs: Pairs with scores.
        ratings: Rated outputs with scores by the same tests; alone or with pairs beside them.
        method: A learner or its name (see ``learners()``) that gives the weights.
        compare: Learners shown beside it, ``uniform`` always among them; None: the quick ones.
        level: One set of weights, or one for each data set or section; of pairs alone.
        pooling: For data sets and sections: ``partial`` leans small ones on the whole, ``none`` keeps them apart.
        pair_share: Share of the pairs in what is maximised beside ratings, in [0, 1].
        folds: 1: one split into halves; None: 5, or 1 with a slow learner or over 20,000 pairs.
        resamples: None: 200 (100 of ratings), or 50 over 500,000 scores, or none for a slow learner.
        seed: Decides splits, searches and resamples.

    Raises:
        InputError: An unknown learner, an option out of range, or data from which nothing can be learned.
        LearningFailedError: The method finds no weights for these data.
        MissingExtraError: The method needs a package that is not installed.
    """
    if folds is not None and folds < 1:
        raise InputError(f"folds is {folds}; it must be at least 1.")
    if not 0.0 <= pair_share <= 1.0:
        raise InputError(f"pair_share is {pair_share}; it must lie in [0, 1].")
    rated = ratings is not None
    chosen = find_learner(method, rated=rated)
    known = compare if compare is not None else tuple(learners(rated=True)) if rated else QUICK
    others = [find_learner(each, rated=rated) for each in known]
    others = [each for each in others if each.name not in (chosen.name, "uniform")]
    data = check(pairs, ratings, level=level, pair_share=pair_share)
    names = () if rated or pairs is None else pairs.section_names(level)
    splits = _splits(data, folds, all(each.quick for each in (chosen, *others)), seed)
    compared = compare_held_out([chosen, *others], data, splits, sections=len(names), pooling=pooling, seed=seed)

    recipe, reason = prepare(data, chosen, sections=len(names), pooling=pooling, seed=seed)
    fitted = recipe.fit(data, seed=seed)
    if resamples is None:
        resamples = _usual_resamples(data) if recipe.quick else 0
    again = bool(resamples) and recipe.learns
    samples = bootstrap_weights(recipe, data, fitted, resamples=resamples, seed=seed) if again else None
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
        learners=tuple(compared.scores),
        verdict=compared.verdict,
        power=compared.power,
        counts=_count(pairs, ratings, data, fitted, compared.held_out),
        folds=len(splits),
        resamples=resamples,
        failed_resamples=samples.failed if samples else 0,
        confidence=CONFIDENCE,
        seed=seed,
    )


def _splits(data: Evidence, folds: int | None, quick: bool, seed: int) -> list[PairFold]:
    if folds is None:
        many = isinstance(data, PairDifferences) and len(data) > MANY_PAIRS
        folds = 5 if quick and not many else 1
    return grouped_folds(data.groups, folds, seed) if folds > 1 else single_split(data.groups, HELD_OUT, seed)


def check(
    pairs: PreferenceScores | None, ratings: RatingScores | None, *, level: Level = "global", pair_share: float = 0.5
) -> Evidence:
    """Bring pairs and ratings together, and refuse data from which nothing can be learned, whatever their scores.
    Raises InputError where there is no decided pair and no order among rated outputs, only one group, sections that
    no pair names; or ratings and pairs that were scored by different tests."""
    if ratings is None:
        assert pairs is not None
        data: Evidence = pairs.differences(level)
        if not data.can_be_learned:
            with_scores, left_out = "", ""
            if pairs.left_out:
                with_scores = " with all scores"
                left_out = f" {len(pairs.left_out)} pairs were left out because scores are missing."
            raise InputError(f"In none of the {len(data)} pairs{with_scores} did people prefer one output.{left_out}")
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


MOST_FAILED = 0.1
"""With a larger share of resamples on which nothing could be learned, no interval is given."""


def too_few(resamples: int) -> str | None:
    """The reason why so many resamples make no interval; None where they make one."""
    if resamples == 1:
        return "one resample makes no interval; ask for two or more"
    return None if resamples else "no resamples were asked for"


@dataclass(frozen=True, eq=False)
class WeightSamples:
    """Weights learned again on resamples of the pairs."""

    overall: Floats
    """Shape (resamples, tests)."""
    by_section: Floats | None
    """Shape (resamples, sections, tests), or None."""
    failed: int
    """Resamples on which the learner found no weights; they are not among the others."""

    @property
    def usable(self) -> bool:
        """Whether few enough resamples failed for an interval."""
        total = len(self.overall) + self.failed
        return len(self.overall) >= 2 and self.failed <= MOST_FAILED * total


def bootstrap_counts(groups: Codes, resamples: int, seed: int) -> Iterator[Floats]:
    """Draw groups with replacement; yields how often each pair was drawn, shape (pairs,)."""
    codes = compact(groups)
    count = int(codes.max()) + 1
    rng = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.bincount(rng.integers(0, count, count), minlength=count)
        yield drawn[codes].astype(np.float64)


def bootstrap_weights(recipe: Recipe, data: Evidence, fitted: Weighting, *, resamples: int, seed: int) -> WeightSamples:
    """Learn again on resamples (whole groups), starting from the weights found.

    The choices in ``recipe`` (learner, shrinkage, pooling) stay as they are, so the spread is that of the
    weights given those choices. For learners of the 0-1 objective the bootstrap is a rough guide only:
    maximisers of piecewise constant objectives converge with the cube root of the number of pairs (Manski's
    maximum score), which it does not reproduce.
    """
    overall, by_section, failed = [], [], 0
    for number, counts in enumerate(bootstrap_counts(data.groups, resamples, seed)):
        drawn = data.reweighted(counts)
        if not drawn.can_be_learned:  # its outputs have no order
            failed += 1
            continue
        try:
            again = recipe.fit(drawn, seed=seed + number, start=fitted)
        except LearningFailedError:
            failed += 1
            continue
        overall.append(again.overall)
        if again.by_section is not None:
            by_section.append(again.by_section)
    return WeightSamples(
        np.array(overall).reshape(-1, data.tests), np.array(by_section) if by_section else None, failed
    )


def rank_stability(weights: Floats, samples: Floats) -> Stability:
    """Compare the ranking of tests by ``weights`` (tests,) with those of ``samples`` (resamples, tests)."""
    ranks = _ranks(samples)
    low, high = interval(ranks.astype(np.float64))
    leaders = ranks == 1
    first = (leaders / leaders.sum(axis=1, keepdims=True)).mean(axis=0)
    now = _ranks(weights[None, :])[0]
    tests = tuple(
        RankOfTest(int(now[test]), int(np.floor(low[test])), int(np.ceil(high[test])), float(first[test]))
        for test in range(len(weights))
    )
    upper = np.triu_indices(len(weights), 1)
    signs = np.sign(now[upper[0]] - now[upper[1]])
    others = np.sign(ranks[:, upper[0]] - ranks[:, upper[1]])
    untied, others_untied = np.count_nonzero(signs), np.count_nonzero(others, axis=1)
    if len(weights) < 2 or untied == 0 or (others_untied == 0).any():
        return Stability(tests, None, "all weights are equal, so there is no ranking")
    return Stability(tests, float((others @ signs / np.sqrt(untied * others_untied)).mean()))


def _ranks(weights: Floats) -> Codes:
    """Rank of each weight in its row, 1 the heaviest, equal weights (to 1e-9) sharing the better rank."""
    rounded = np.round(weights, 9)
    ranks: Codes = 1 + (rounded[:, None, :] > rounded[:, :, None]).sum(axis=2)
    return ranks


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
    few = too_few(drawn)
    if samples is None or few or samples.usable:
        return few
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
