"""Learned weights are compared on the same held-out pairs and outputs, and nothing that tests them teaches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from askance.optimizer.weights.evidence import (
    Floats,
    PairDifferences,
    RatedScores,
    close_to_best,
    grouped_folds,
    margins_to_credits,
    paired_standard_error,
    share_right,
)
from askance.optimizer.weights.heldout import (
    HeldOutTrial,
    against_uniform,
    compare_held_out,
    pairs_to_tell,
    score_correlations,
    score_trials,
)
from askance.optimizer.weights.learner_choice import (
    Auto,
    Recipe,
    Shrunk,
    Weighting,
    choose_recipe,
    find_learner,
    learners,
)
from askance.optimizer.weights.learners import (
    BestSingle,
    LearningFailedError,
    LeastSquares,
    RankSearch,
    Uniform,
    WeightLearner,
)
from askance.optimizer.weights.score_tables import PreferenceScores, RatingScores, preference_scores, rating_scores
from askance.optimizer.weights.weigh import bootstrap_weights, learn_weights
from askance.optimizer.weights.weights_result import LearnerScore, PairCounts, RatingCounts

Simulate = Callable[..., PreferenceScores]


def credits(share: float, n: int, rng: np.random.Generator) -> Floats:
    return (rng.random(n) < share).astype(float)


def plain_bootstrap(
    values: Sequence[Floats], groups: Any, statistic: Callable[..., float], times: int = 1500
) -> Floats:
    """Percentiles of a statistic on resamples of whole groups, drawn one by one."""
    rng, rows = np.random.default_rng(99), [np.flatnonzero(groups == one) for one in np.unique(groups)]
    drawn = []
    for _ in range(times):
        chosen = np.concatenate([rows[one] for one in rng.integers(0, len(rows), len(rows))])
        drawn.append(statistic(*(each[chosen] for each in values)))
    found: Floats = np.nanquantile(drawn, [0.025, 0.975])
    return found


def test_an_accuracy_and_its_gain_have_the_intervals_of_a_bootstrap_of_whole_groups_on_the_same_pairs() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 4)
    base = np.repeat(credits(0.6, 60, rng), 4)
    ahead = np.where(rng.random(240) < 0.15, 1.0, base)
    trials = [
        HeldOutTrial("robust", ahead, weights=[np.ones(2) / 2]),
        HeldOutTrial("uniform", base, weights=[np.ones(2) / 2]),
    ]
    found, uniform = score_trials(trials, trials[1], groups, seed=3)
    own = plain_bootstrap([ahead], groups, lambda each: float(each.mean()))
    gain = plain_bootstrap([ahead, base], groups, lambda a, b: float((a - b).mean()))
    assert [found.low, found.high] == pytest.approx(own, abs=0.02)
    assert [found.difference_low, found.difference_high] == pytest.approx(gain, abs=0.008)
    assert (found.accuracy, found.difference) == pytest.approx((ahead.mean(), (ahead - base).mean()))
    assert found.difference_high - found.difference_low < 0.6 * (own[1] - own[0]), "common luck is taken off"  # type: ignore[operator]
    assert (found.right, found.score_ties, found.wrong) == (ahead.sum(), 0, 240 - ahead.sum())
    assert (uniform.difference, uniform.difference_low, uniform.difference_high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("low", "high", "conclusion"),
    [
        (0.01, 0.2, "better"),
        (-0.2, -0.01, "worse"),
        (-0.1, 0.1, "cannot tell"),
        (0.0, 0.1, "cannot tell"),
        (-0.1, 0.0, "cannot tell"),
    ],
)
def test_a_gain_is_one_where_its_whole_interval_is_on_one_side_of_nothing(
    low: float, high: float, conclusion: str
) -> None:
    mine, base = HeldOutTrial("robust", np.array([1.0, 0.0])), HeldOutTrial("uniform", np.array([0.0, 0.0]))
    score = LearnerScore("robust", difference_low=low, difference_high=high)
    assert against_uniform(mine, base, score) == conclusion
    assert against_uniform(base, base, score) == "same"
    assert against_uniform(HeldOutTrial("robust", failure="no"), base, score) == "undefined"


def test_the_power_of_a_cautious_choice_is_that_of_the_best_that_learns_several_weights() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(100), 2)
    base = credits(0.5, 200, rng)
    auto = HeldOutTrial("auto", base.copy())
    others = {
        name: HeldOutTrial(name, np.maximum(base, credits(share, 200, rng)))
        for name, share in (
            ("best-single", 0.95),
            ("logistic", 0.1),
            ("robust", 0.3),
            ("bayes", 0.2),
        )
    }
    uniform = HeldOutTrial("uniform", base)
    broken = HeldOutTrial("broken", failure="no")
    found = pairs_to_tell([auto, uniform, broken, *others.values()], uniform, groups, 400)
    assert found.learner == "robust"
    gains = others["robust"].credits - base  # type: ignore[operator]
    error = paired_standard_error(gains, groups)
    per_pair = (error * (stats.norm.ppf(0.975) + stats.norm.ppf(0.8))) ** 2 * 400
    assert found.observed == pytest.approx(per_pair / gains.mean() ** 2, abs=1.1)
    assert found.one_point == pytest.approx(per_pair / 0.01**2, abs=1.1)
    named = pairs_to_tell([others["logistic"], auto, uniform, others["robust"]], uniform, groups, 400)
    assert named.learner == "logistic", "who names a method is told of that method"
    alone = pairs_to_tell([auto, uniform, others["best-single"]], uniform, groups, 400)
    assert alone.learner == "auto" and alone.observed is None and alone.reason


# each pair, and each rated output, five times in its group


def repeated(prefs: PreferenceScores, times: int) -> PreferenceScores:
    def of(values: Any) -> Any:
        return np.repeat(values, times, axis=0)

    label = {1: "a", -1: "b", 0: "tie"}
    return preference_scores(
        [f"{each}/{n}" for each in prefs.ids for n in range(times)],
        prefs.tests,
        of(prefs.scores_a),
        of(prefs.scores_b),
        [label[int(each)] for each in of(prefs.preferred)],
        groups=of(np.array([f"g{place // 3}" for place in range(len(prefs.ids))])).tolist(),
    )


def test_each_pair_five_times_in_its_group_changes_no_figure(simulate: Simulate) -> None:
    prefs = simulate([0.6, 0.25, 0.15], 90, flips=0.2)
    once, again = (
        learn_weights(repeated(prefs, times), method="best-single", compare=(), resamples=40) for times in (1, 5)
    )
    assert isinstance(again.counts, PairCounts) and isinstance(once.counts, PairCounts)
    assert again.counts.held_out == 5 * once.counts.held_out and again.verdict == once.verdict
    for before, after in zip(once.learners, again.learners, strict=True):
        for name in ("accuracy", "low", "high", "difference", "difference_low", "difference_high", "weights"):
            assert getattr(after, name) == pytest.approx(getattr(before, name)), (before.name, name)
    assert again.weights == pytest.approx(once.weights) and once.low is not None and again.low is not None
    assert (again.low, again.high) == (pytest.approx(once.low), pytest.approx(once.high))
    assert once.power is not None and again.power is not None
    assert once.power.one_point is not None and once.power.one_point > 1000
    assert again.power.one_point == pytest.approx(5 * once.power.one_point, rel=0.01), "as many documents are needed"
    alone = learn_weights(prefs, method="best-single", compare=(), resamples=2)
    width = [each.held_out.high - each.held_out.low for each in (alone, again)]  # type: ignore[operator]
    assert width[1] > 0.5 * width[0], "five times as many pairs would have less than half the width"


def rated(weights: Sequence[float], outputs: int, *, noise: float, times: int = 1, seed: int = 0) -> RatingScores:
    rng = np.random.default_rng(seed)
    scores = rng.random((outputs, len(weights)))
    ratings = scores @ np.array(weights) + noise * rng.normal(size=outputs)
    groups = [f"g{place // 2}" for place in range(outputs) for _ in range(times)]
    return rating_scores(
        [str(n) for n in range(outputs * times)],
        [f"t{n}" for n in range(len(weights))],
        np.repeat(scores, times, axis=0),
        np.repeat(ratings, times),
        groups=groups,
    )


def test_each_rated_output_five_times_in_its_group_changes_no_figure() -> None:
    once, again = (
        learn_weights(ratings=rated([0.7, 0.3, 0.0], 60, noise=0.15, times=times), method="least-squares", resamples=30)
        for times in (1, 5)
    )
    assert isinstance(again.counts, RatingCounts) and isinstance(once.counts, RatingCounts)
    assert again.counts.outputs == 5 * once.counts.outputs and again.verdict == once.verdict
    told = 0
    for before, after in zip(once.learners, again.learners, strict=True):
        if before.name in ("rank-search", "auto"):  # what a search finds may differ by rounding
            continue
        for name in ("spearman", "low", "high", "kendall", "difference", "difference_low", "difference_high"):
            told += 1
            assert getattr(after, name) == pytest.approx(getattr(before, name), abs=1e-9), (before.name, name)
    assert told == 21 and again.weights == pytest.approx(once.weights)
    assert (again.low, again.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_a_gain_in_rank_correlation_is_measured_on_the_same_resamples_of_whole_groups() -> None:
    rng = np.random.default_rng(4)
    ratings = rng.normal(size=120)
    common = ratings + 0.8 * np.repeat(rng.normal(size=40), 3)
    uniform, learned = common + 0.2 * rng.normal(size=120), common + 0.1 * rng.normal(size=120)
    groups = np.repeat(np.arange(40), 3)
    data = RatedScores(rng.random((120, 2)), ratings, groups)
    trials = [
        HeldOutTrial(name, np.empty(0), learned if name == "rank-search" else uniform) for name in learners(rated=True)
    ]
    parts = [np.arange(60), np.arange(60, 120)]
    found = next(each for each in score_correlations(data, parts, trials, 5) if each.name == "rank-search")
    first = (np.arange(120) < 60).astype(float)

    def mean(predicted: Floats, people: Floats, side: Floats) -> float:
        parts = [(stats.spearmanr(predicted[rows], people[rows])[0], rows.sum()) for rows in (side > 0, side == 0)]
        return float(np.average([each for each, _ in parts], weights=[n for _, n in parts]))

    assert found.spearman == pytest.approx(mean(learned, ratings, first))
    assert found.difference == pytest.approx(mean(learned, ratings, first) - mean(uniform, ratings, first))
    own = plain_bootstrap([learned, ratings, first], groups, mean, 400)
    gain = plain_bootstrap(
        [learned, uniform, ratings, first], groups, lambda a, b, p, s: mean(a, p, s) - mean(b, p, s), 400
    )
    assert [found.low, found.high] == pytest.approx(own, abs=0.15 * (own[1] - own[0]))
    assert [found.difference_low, found.difference_high] == pytest.approx(gain, abs=0.15 * (gain[1] - gain[0]))
    assert gain[1] - gain[0] < 0.5 * (own[1] - own[0])


def resampled_weights(data: RatedScores, method: str, resamples: int, seed: int) -> Floats:
    """Weights by ``method`` on resamples of ``data``."""
    recipe, even = Recipe(find_learner(method, rated=True)), Weighting(np.full(data.tests, 1 / data.tests))
    return bootstrap_weights(recipe, data, even, resamples=resamples, seed=seed).overall


@pytest.mark.parametrize("failures", [1, 3])
def test_a_resample_whose_ratings_have_no_order_gives_no_weights(failures: int) -> None:
    """Of sixty outputs one (or three) fails: it is in 63 (or 95) of a hundred resamples, and only there is there an order."""
    rng = np.random.default_rng(0)
    ratings = (np.arange(60) >= failures).astype(float)
    data = RatedScores(np.column_stack([rng.random(60), ratings]), ratings, np.arange(60))
    for method in ("best-single", "rank-search", "least-squares"):
        samples = resampled_weights(data, method, 100, 7)
        assert len(samples) == pytest.approx(100 * (1 - (1 - failures / 60) ** 60), abs=10)
        assert (samples[:, 1] > 0.5).all() and samples.sum(axis=1) == pytest.approx(np.ones(len(samples)))


@pytest.mark.parametrize("method", ["best-single", "least-squares"])
def test_each_output_five_times_in_its_group_gives_the_same_weights_on_every_resample(method: Any) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((12, 2))
    ratings = scores @ np.array([0.6, 0.4]) + 0.2 * rng.normal(size=12)
    many = RatedScores(np.repeat(scores, 5, axis=0), np.repeat(ratings, 5), np.repeat(np.arange(12), 5))
    few = RatedScores(scores, ratings, np.arange(12))
    both = [resampled_weights(each, method, 40, 3) for each in (many, few)]
    assert len(both[0]) >= 35 and np.std(both[0][:, 0]) > 0
    assert both[0] == pytest.approx(both[1])


# nothing that tests weights teaches them


@dataclass(frozen=True)
class Spy:
    """Learns nothing and keeps what it was shown."""

    shown: list[PairDifferences] = field(default_factory=list)
    name: str = "spy"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        self.shown.append(pairs)
        return np.full(pairs.tests, 1 / pairs.tests)


def told_apart(simulate: Simulate, pairs: int = 60) -> PreferenceScores:
    """Pairs in groups of three whose first score says which pair it is."""
    prefs = simulate([0.5, 0.5], pairs)
    prefs.scores_a[:, 0], prefs.scores_b[:, 0] = np.arange(pairs) / pairs, 0.0
    return preference_scores(
        prefs.ids,
        prefs.tests,
        prefs.scores_a,
        prefs.scores_b,
        ["a"] * pairs,
        groups=[f"g{n // 3}" for n in range(pairs)],
    )


@pytest.mark.parametrize("folds", [1, 2, 5])
@pytest.mark.parametrize("inside_auto", [False, True])
def test_no_pair_of_a_tested_group_is_shown_to_a_learner_nor_to_those_that_it_chooses_between(
    simulate: Simulate, folds: int, inside_auto: bool
) -> None:
    spy = Spy()
    prefs = told_apart(simulate)
    method = Auto(learners=(spy,), name="auto-of-spies") if inside_auto else spy
    learn_weights(prefs, method=method, compare=(), folds=folds, resamples=0)
    seen = [{round(each * 60) // 3 for each in np.abs(shown.differences[:, 0])} for shown in spy.shown]
    assert all(len(shown) == 3 * len(groups) for shown, groups in zip(spy.shown, seen, strict=True)), "whole groups"
    outer = 10 if folds == 1 else 20 - 20 // folds
    if inside_auto:
        of_folds = [each for each in seen if len(each) < outer]
        assert of_folds and all(len(each) <= outer for each in seen if len(each) < 16 or folds == 5)
        assert max(map(len, of_folds)) < outer, "it chooses by pairs that it did not learn from either"
    else:
        assert [len(each) for each in seen] == [outer] * folds + [20]
        if folds > 1:
            tested = [set(range(20)) - each for each in seen[:-1]]
            assert sorted(group for each in tested for group in each) == list(range(20))


def test_preferences_of_held_out_pairs_do_not_change_what_is_learned_for_them(simulate: Simulate) -> None:
    """The preferences of one group are turned round: only the weights of folds that it teaches may move."""
    prefs = repeated(simulate([0.7, 0.2, 0.1], 60), 1)
    labels = ["a" if each > 0 else "b" for each in prefs.preferred]
    turned = ["b" if each == "a" and n < 3 else "a" if n < 3 else each for n, each in enumerate(labels)]
    spies = []
    for said in (labels, turned):
        spy = Spy()
        other = preference_scores(prefs.ids, prefs.tests, prefs.scores_a, prefs.scores_b, said, groups=prefs.groups)
        learn_weights(other, method=spy, compare=(), folds=5, resamples=0)
        spies.append(spy.shown[:-1])
    same = [np.array_equal(a.differences, b.differences) for a, b in zip(*spies, strict=True)]
    assert same.count(True) == 1, "of five folds the one that tests the group"


def test_coin_flips_of_people_gain_nothing_on_held_out_pairs() -> None:
    gains, better, taught = [], 0, []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        a, b = rng.random((2, 80, 4))
        flips = ["a" if each else "b" for each in rng.random(80) < 0.5]
        prefs = preference_scores([str(n) for n in range(80)], list("wxyz"), a, b, flips)
        try:
            found = learn_weights(prefs, method="robust", compare=(), resamples=0, folds=4)
        except LearningFailedError:  # no test points the way that these coins fell
            continue
        if found.held_out.difference is None:  # nor on a part of them
            continue
        gains.append(found.held_out.difference)
        better += found.verdict == "better"
        decided, counts = prefs.differences().decided()
        taught.append(share_right(decided, counts, found.weights) - share_right(decided, counts, np.ones(4)))
    assert np.mean(taught) > 0.05, "on the pairs that taught them weights look better"
    assert len(gains) >= 15 and abs(np.mean(gains)) < 2.5 * np.std(gains) / np.sqrt(len(gains)) and better <= 3


def test_ratings_by_lot_gain_nothing_on_held_out_outputs() -> None:
    gains, better, taught = [], 0, []
    for seed in range(25):
        ratings = rated([0.25] * 4, 40, noise=0.0, seed=seed)
        lots = np.random.default_rng(1000 + seed).permutation(ratings.ratings)
        data = RatedScores(ratings.scores, lots, np.arange(40))
        scored, verdict, _, _ = compare_held_out([BestSingle()], data, grouped_folds(data.groups, 4, seed), seed=seed)
        gains.append(scored[0].difference)
        better += verdict == "better"
        weights = BestSingle().learn(data, seed=seed)
        taught.append(float(np.subtract(*data.objective(np.array([weights, np.full(4, 0.25)])))))
    assert np.mean(taught) > 0.1, "on the outputs that taught them weights look better"
    assert abs(np.mean(gains)) < 2.8 * np.std(gains) / 5 and better <= 3


def test_ratings_of_held_out_outputs_do_not_change_what_is_predicted_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    taught: list[set[float]] = []
    fit = Recipe.fit

    def noting(recipe: Recipe, data: RatedScores, **settings: Any) -> Weighting:
        taught.append(set(data.ratings.tolist()))
        return fit(recipe, data, **settings)

    monkeypatch.setattr(Recipe, "fit", noting)
    learn_weights(ratings=rated([0.7, 0.3], 40, noise=0.1), method="best-single", folds=4, resamples=0)
    every = taught[-1]
    assert len(every) == 40
    assert len(taught) == 5 * 4 + 1
    folds = [every - each for each in taught[:4]]
    assert len(folds) == 4 and sorted(len(each) for each in folds) == [10] * 4
    assert set.union(*folds) == every, "each output is tested once, by weights that it did not teach"
    for place, fold in enumerate(folds):
        assert all(not fold & each for each in taught[place:20:4])


def test_every_decided_pair_beside_ratings_is_tested_once_by_weights_that_it_did_not_teach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from askance.optimizer.weights import heldout

    rng = np.random.default_rng(3)
    groups, ties = np.repeat(np.arange(20), 2), np.arange(40) % 8 == 0
    differences = rng.uniform(-1, 1, (40, 2))
    pairs = PairDifferences(differences, ties, groups, np.zeros(40, dtype=np.int64), np.ones(40))
    data = RatedScores(rng.random((40, 2)), rng.random(40), groups, pairs, 0.5)
    taught: list[set[float]] = []
    fit = Recipe.fit

    def noting(recipe: Recipe, inside: RatedScores, **settings: Any) -> Weighting:
        assert inside.pairs is not None
        taught.append(set(inside.pairs.differences[:, 0].tolist()))
        return fit(recipe, inside, **settings)

    tested: list[set[float]] = []

    def first_alone(margins: Floats) -> Floats:
        tested.append(set(np.round(margins, 9).tolist()))
        return margins_to_credits(margins)

    monkeypatch.setattr(Recipe, "fit", noting)
    monkeypatch.setattr(heldout, "margins_to_credits", first_alone)
    compare_held_out([Uniform()], data, grouped_folds(data.groups, 4, 1), seed=1)
    margins = differences @ np.full(2, 0.5)
    assert sorted(each for fold in tested for each in fold) == sorted(np.round(margins[~ties], 9).tolist())
    for fold, teachers in zip(tested, taught, strict=True):
        rows = [place for place in range(40) if round(float(margins[place]), 9) in fold]
        assert rows and not teachers & set(differences[rows, 0].tolist())


# what the parts promise


def test_credits_and_shares_count_a_tie_of_scores_as_half_whatever_the_scale_of_weights() -> None:
    assert margins_to_credits(np.array([0.2, -0.2, 0.0, 5e-10, -5e-10, 2e-9])).tolist() == [1, 0, 0.5, 0.5, 0.5, 1]
    differences = np.array([[0.2, -0.1], [0.1, -0.3], [0.5, -0.5]])
    counts = np.array([1.0, 3.0, 4.0])
    assert share_right(differences, counts, np.array([1.0, 1.0])) == (1 + 0 + 4 * 0.5) / 8
    assert share_right(differences, counts, np.array([50.0, 50.0])) == (1 + 0 + 4 * 0.5) / 8
    near = np.array([[5e-10, 5e-10]])  # a tie of normalised weights, whatever they add up to
    assert share_right(near, np.ones(1), np.array([50.0, 50.0])) == 0.5


def test_the_mixed_objective_is_spearman_and_right_pairs_each_on_one_scale() -> None:
    rng = np.random.default_rng(5)
    scores, ratings, differences = rng.random((20, 2)), rng.random(20), rng.uniform(-1, 1, (30, 2))
    ties = np.arange(30) % 5 == 0
    codes, counts = np.arange(30), rng.integers(1, 4, 30).astype(float)
    pairs = PairDifferences(differences, ties, codes, np.zeros(30, dtype=np.int64), counts)
    candidates = np.array([[0.5, 0.5], [0.9, 0.1]])
    spearman = np.array([stats.spearmanr(scores @ each, ratings)[0] for each in candidates])
    right = [np.average(differences[~ties] @ each > 0, weights=counts[~ties]) for each in candidates]
    for share in (0.0, 0.3, 1.0):
        wanted = (1 - share) * spearman + share * (2 * np.array(right) - 1)
        rated = RatedScores(scores, ratings, np.arange(20), pairs, share)
        assert rated.objective(candidates) == pytest.approx(wanted)


def test_what_is_about_as_good_as_the_best_is_within_half_a_paired_standard_error() -> None:
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(50), 2)
    best = credits(0.7, 100, rng)
    options = [best]
    for share in (0.01, 0.03, 0.05, 0.1, 0.2):
        options.append(np.where(rng.random(100) < share, 1 - best, best))
    table = np.array(options)
    first, close = close_to_best(table, groups)
    assert first == int(table.mean(axis=1).argmax()) and 1 < len(close) < 6
    for option in range(6):
        gap = table[first] - table[option]
        assert (option in close) == (option == first or gap.mean() <= 0.5 * paired_standard_error(gap, groups))


def chosen_for(data: RatedScores, method: str, seed: int) -> WeightLearner:
    """What ``method`` settles on."""
    return choose_recipe(data, find_learner(method, rated=True), sections=0, pooling="partial", seed=seed)[0].overall


def test_of_ways_about_as_good_the_most_uniform_is_taken_and_few_outputs_teach_nothing() -> None:
    even = rated([0.25] * 4, 80, noise=0.3)
    steep = rated([1.0, 0.0, 0.0, 0.0], 80, noise=0.05)
    of = {
        name: RatedScores(each.scores, each.ratings, np.arange(80)) for name, each in (("even", even), ("steep", steep))
    }
    assert chosen_for(of["even"], "auto", 1) == Uniform()
    found = chosen_for(of["steep"], "auto", 1)
    assert isinstance(found, Shrunk) and found.uniform_share < 0.5
    assert found.learner.name in ("least-squares", "rank-search")
    few = of["steep"].take(np.arange(80) < 19)
    assert chosen_for(few, "auto", 1) == Uniform()
    assert chosen_for(of["steep"].take(np.arange(80) < 20), "auto", 1) != Uniform()
    assert chosen_for(few, "least-squares", 1) == LeastSquares()


def test_a_cautious_choice_is_the_most_uniform_of_those_within_half_a_standard_error_of_the_best() -> None:
    """The table of folds is made again here; in some of these worlds another way is best and uniform weights are as good."""
    cautious = []
    for seed in (0, 2, 7):
        ratings = rated([0.5, 0.5], 30, noise=0.6, seed=seed)
        data = RatedScores(ratings.scores, ratings.ratings, np.arange(30))
        shrunk = [Shrunk(each, mix) for each in (LeastSquares(), RankSearch()) for mix in (0, 0.25, 0.5, 0.75)]
        plans: list[WeightLearner] = [Uniform(), *shrunk]
        folds = []
        for split in grouped_folds(data.groups, 5, seed):
            try:
                weights = [plan.learn(data.take(split.development), seed=0) for plan in plans]
            except LearningFailedError:
                folds = []
                break
            rows = split.test
            folds.append([stats.spearmanr(data.scores[rows] @ each, data.ratings[rows])[0] for each in weights])
        found = chosen_for(data, "auto", seed)
        if not folds:
            assert found == Uniform()
            continue
        table = np.array(folds)
        means, best = table.mean(axis=0), int(table.mean(axis=0).argmax())
        errors = (table[:, [best]] - table).std(axis=0, ddof=1) / np.sqrt(len(table))
        close = [n for n in range(len(plans)) if means[best] - means[n] <= 0.5 * errors[n]]
        share = [1.0, *(each.uniform_share for each in shrunk)]
        assert found == plans[max(close, key=lambda n: (share[n], means[n]))]
        cautious.append(found != plans[best])
    assert any(cautious)
