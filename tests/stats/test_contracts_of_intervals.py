"""What every figure with an interval promises, against brute force, closed forms and simulation.

The coverage of an interval is held from both sides, closer than a 90 % interval lies to a 95 % one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, is_dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from askance.stats.agreement import cohen_kappa, kappa_kernel, kappa_self, leave_one_out, observed_agreement
from askance.stats.closed_forms import spearman_intervals
from askance.stats.correlation import FLOOR, WORK, affordable, correlate, correlation_kernel, per_group, system_level
from askance.stats.differences import (
    _signs,
    compare_distributions,
    holm,
    label_difference,
    mean_difference,
    paired_difference,
    wasserstein_kernel,
)
from askance.stats.pass_fail import (
    FEWEST_LABELLED,
    area_under_curve,
    auc_kernel,
    best_kappas,
    fit_threshold,
    label_agreement,
    label_kernel,
    pass_fail_figures,
    prediction_powered,
    rate,
    rogan_gladen,
    variance_of_mean,
    wilson,
)
from askance.stats.resampling import (
    Resampling,
    Statistic,
    bootstrapped,
    complete,
    mean_kernel,
    percentile_interval,
    resample_weights,
)

Figures = Callable[[Sequence[np.ndarray], Resampling], Any]
N = 60


def world(n: int = N, seed: int = 4) -> list[np.ndarray]:
    """Three judges' scores in steps of a tenth, people's in quarters, and their labels."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    judges = [
        np.round(np.clip(0.5 + 0.2 * truth + 0.15 * rng.normal(size=n) + shift, 0, 1), 1) for shift in (0, 0.1, -0.1)
    ]
    people = np.round(4 * np.clip(0.5 + 0.25 * truth + 0.1 * rng.normal(size=n), 0, 1)) / 4
    return [*judges, people, (people > 0.5).astype(float)]


def points(values: np.ndarray) -> np.ndarray:
    return np.round(4 * values)


FIGURES: dict[str, Figures] = {
    "correlations": lambda c, r: correlate(c[0], c[3], r),
    "agreement": lambda c, r: observed_agreement(c[0], c[3], r, tolerance=0.2),
    "kappa": lambda c, r: cohen_kappa(points(c[0]), points(c[3]), r),
    "quadratic kappa": lambda c, r: cohen_kappa(points(c[0]), points(c[3]), r, weights="quadratic"),
    "self-consistency": lambda c, r: kappa_self([points(each) for each in c[:3]], r),
    "ceiling of people": lambda c, r: leave_one_out(c[:3], "pearson", r),
    "rate": lambda c, r: rate(c[4], r),
    "rate where all are alike": lambda c, r: rate(np.ones(len(c[0])), r),
    "pass or fail": lambda c, r: pass_fail_figures(c[0], c[4], 0.5, r),
    "area under the curve": lambda c, r: area_under_curve(c[0], c[4], r),
    "kappa at the best threshold": lambda c, r: label_agreement("kappa", c[0], c[4], r),
    "distributions": lambda c, r: compare_distributions(c[0], c[3], r),
    "difference of means": lambda c, r: mean_difference(c[0], c[1], r),
    "difference of spearman": lambda c, r: paired_difference(c[0], c[1], c[3], r),
    "difference of kendall": lambda c, r: paired_difference(c[0], c[1], c[3], r, statistic="kendall"),
    "difference of pearson": lambda c, r: paired_difference(c[0], c[1], c[3], r, statistic="pearson"),
    "gain on a constant judge": lambda c, r: paired_difference(
        np.ones(len(c[0])), c[1], c[3], r, undefined_as_zero=True
    ),
    "difference of areas": lambda c, r: label_difference(c[0], c[1], c[4], "auc", r),
    "difference of kappas": lambda c, r: label_difference(c[0], c[1], c[4], "kappa", r),
    "spearman without resampling": lambda c, r: spearman_intervals(
        np.column_stack(c[:2]), c[3], groups=r.groups, level=r.level
    ),
    "prediction-powered rate": lambda c, r: prediction_powered(
        points(c[0]) > 2, [each if place % 2 else None for place, each in each_of(c[4], r)], r
    ),
}


def each_of(values: np.ndarray, resampling: Resampling) -> list[tuple[int, float]]:
    """Every value with the number of its document, by which a half is labelled."""
    assert resampling.groups is not None
    return [(int(str(group)), float(value)) for group, value in zip(resampling.groups, values, strict=True)]


def numbers(found: Any) -> list[float]:
    """The values and ends in a figure, without the counts of items."""
    if isinstance(found, list | tuple):
        return [number for each in found for number in numbers(each)]
    if not is_dataclass(found):
        return [found] if isinstance(found, float) else []
    return [number for each in _parts(found) for number in numbers(each)]


def _parts(found: Any) -> list[Any]:
    return [getattr(found, name) for name in found.__dataclass_fields__ if name not in ("confusion", "n", "labelled")]


@pytest.mark.parametrize("name", FIGURES)
def test_each_example_five_times_in_its_document_changes_nothing(name: str) -> None:
    columns, groups = world(), list(range(N))
    once = FIGURES[name](columns, Resampling(groups, resamples=120))
    again = FIGURES[name]([np.repeat(each, 5) for each in columns], Resampling(np.repeat(groups, 5).tolist(), 120))
    told = numbers(once)
    assert len(told) >= 3 and numbers(again) == pytest.approx(told, abs=1e-9)


@pytest.mark.parametrize("name", FIGURES)
def test_documents_of_five_alike_make_no_figure_as_sure_as_five_times_the_examples(name: str) -> None:
    """What ignores documents passes the other test where it has none: here the two must differ."""
    columns = [np.repeat(each, 5) for each in world()]
    together = FIGURES[name](columns, Resampling(np.repeat(range(N), 5).tolist(), 120))
    alone = FIGURES[name](columns, Resampling(list(range(5 * N)), 120))
    assert numbers(alone) != pytest.approx(numbers(together), rel=0.01)


DRAWN = FIGURES.keys() - {"rate", "rate where all are alike", "pass or fail", "prediction-powered rate"}


@pytest.mark.parametrize("name", sorted(DRAWN))
@pytest.mark.parametrize("documents", [2, 3])
def test_two_documents_of_many_examples_make_no_interval(name: str, documents: int) -> None:
    found = FIGURES[name](world(), Resampling([place % documents for place in range(N)], resamples=200))
    ends = _ends(found)
    assert ends and all(each is None for each in ends) == (documents == 2 or name == "spearman without resampling")


def _ends(found: Any) -> list[Any]:
    if isinstance(found, list | tuple):
        return [each for one in found for each in _ends(one)]
    if not is_dataclass(found):
        return []
    own = [getattr(found, name) for name in ("low", "high") if hasattr(found, name)]
    return own + [each for one in _parts(found) for each in _ends(one)]


@pytest.mark.parametrize(
    "name", sorted(FIGURES.keys() - {"dimensions kept", "prediction-powered rate", "rate where all are alike"})
)
def test_examples_of_which_nothing_is_known_change_nothing_whichever_documents_they_are_of(name: str) -> None:
    columns, groups = world(), [place // 2 for place in range(N)]
    once = FIGURES[name](columns, Resampling(groups, resamples=120))
    holes = [np.insert(each, range(0, N, 7), np.nan) for each in columns]
    others = np.insert(np.array(groups), range(0, N, 7), [5, 900, 901, 5, 902, 2, 903, 904, 5]).tolist()
    assert numbers(FIGURES[name](holes, Resampling(others, resamples=120))) == pytest.approx(numbers(once), abs=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_ends_leave_out_the_same_share_on_both_sides(level: float) -> None:
    values = np.random.default_rng(0).permutation(1001) / 1000
    assert percentile_interval(values, level)[:2] == pytest.approx(((1 - level) / 2, (1 + level) / 2))
    holed = np.concatenate([values, np.full(250, np.nan)])
    assert percentile_interval(holed, level) == percentile_interval(values, level)


def test_an_interval_takes_a_fifth_of_resamples_without_a_value_and_no_more() -> None:
    fifth = np.array([0.0, 1.0, 2.0, 3.0, np.nan] * 20)
    assert percentile_interval(fifth, 0.95)[2] is None
    more = np.append(fifth, np.nan)
    assert percentile_interval(more, 0.95)[:2] == (None, None) and "21 of 101" in str(percentile_interval(more, 0.95))


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_is_that_of_all_resamples_there_are(level: float, grouped: bool) -> None:
    """Of five items, or of five documents of unequal sizes, all 3,125 equally likely resamples are made."""
    values = np.array([0.0, 1.0, 3.0, 7.0, 16.0, 2.0, 5.0, 4.0][: 8 if grouped else 5])
    codes = np.array([0, 1, 2, 3, 4, 0, 0, 3][: len(values)])
    every = [
        np.concatenate([values[codes == one] for one in each]).mean() for each in itertools.product(range(5), repeat=5)
    ]
    resampling = Resampling([f"d{code}" for code in codes] if grouped else None, resamples=20_000, level=level)
    found = bootstrapped(mean_kernel(values), np.ones(len(values), dtype=bool), resampling)
    low, high = np.quantile(every, [(1 - level) / 2, (1 + level) / 2])
    assert found.value == pytest.approx(values.mean()) and found.n == len(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.25)


def test_resamples_draw_every_unit_alike_and_no_two_blocks_are_the_same() -> None:
    blocks = list(resample_weights(7, 150, seed=3))
    drawn = np.concatenate(blocks, axis=1)
    assert drawn.shape == (7, 150) and np.all(drawn.sum(axis=0) == 7)
    assert not np.array_equal(blocks[0], blocks[1])
    many = np.concatenate(list(resample_weights(7, 6000, seed=3)), axis=1)
    assert many.mean(axis=1) == pytest.approx(np.ones(7), abs=0.05)
    assert many.var(axis=1) == pytest.approx(
        np.full(7, 6 / 7), abs=0.06
    )  # as a bootstrap's, not as of halves or jackknife
    codes = np.array([0, 2, 1, 0, 2, 2])
    [whole] = resample_weights(3, 40, 3, codes)
    assert np.array_equal(whole, next(resample_weights(3, 40, 3))[codes])
    assert not np.array_equal(next(resample_weights(7, 40, 3)), next(resample_weights(7, 40, 4)))


def test_groups_follow_their_items_where_some_are_left_out() -> None:
    keep = np.array([True, False, True, True, False, True])
    resampling = Resampling(list("abbcda"))
    units, codes = resampling.units(keep)
    assert units == 3 and codes is not None and codes.tolist() == [0, 1, 2, 0]
    assert resampling.only(keep).groups == list("abca")
    (left, right), kept = complete([1, None, 3, 4, None, 6], [1, 2, 3, 4, 5, np.nan])
    assert (left.tolist(), right.tolist(), kept.tolist()) == ([1, 3, 4], [1, 3, 4], [1, 0, 1, 1, 0, 0])


def held(low: float | None, truth: float, high: float | None) -> bool:
    assert low is not None and high is not None
    return low <= truth <= high


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_of_a_mean_is_as_wide_as_its_standard_error_says(level: float) -> None:
    values = np.random.default_rng(1).normal(size=400)
    found = bootstrapped(mean_kernel(values), np.ones(400, dtype=bool), Resampling(resamples=8000, level=level))
    reach = NormalDist().inv_cdf((1 + level) / 2) * values.std() / 20
    assert (found.low, found.high) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.05 * reach)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_difference_is_held_as_often_as_its_level_says(level: float) -> None:
    """600 worlds of 40 documents of 3 examples; a 90 % and a 95 % interval lie 5 points apart, the bounds 1.9 at most."""
    rng = np.random.default_rng(2)
    inside = []
    for trial in range(600):
        document = np.repeat(rng.normal(size=40), 3)
        a = rng.normal(size=120)
        b = a + 0.3 + 0.5 * document + 0.3 * rng.normal(size=120)
        groups = np.repeat(range(40), 3).tolist()
        found = mean_difference(a, b, Resampling(groups, resamples=300, level=level, seed=trial))
        inside.append(held(found.low, 0.3, found.high))
    assert level - 0.035 <= np.mean(inside) <= level + 0.015


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_rate_of_documents_is_held_as_often_as_its_level_says(level: float) -> None:
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(1500):
        hits = rng.binomial(1, np.repeat(rng.beta(2, 1, size=40), 5)).astype(float)
        found = rate(hits, Resampling(np.repeat(range(40), 5).tolist(), level=level))
        inside.append(held(found.low, 2 / 3, found.high))
    assert level - 0.02 <= np.mean(inside) <= level + 0.02


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_correlation_without_resampling_is_held_as_often_as_its_level_says(level: float) -> None:
    rng, inside = np.random.default_rng(5), []
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    for _ in range(1500):
        human = rng.normal(size=80)
        column = 0.6 * human + 0.8 * rng.normal(size=80)
        [found] = spearman_intervals(column[:, np.newaxis], human, level=level)
        inside.append(held(found.statistic.low, truth, found.statistic.high))
    assert level - 0.02 <= np.mean(inside) <= level + 0.02


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_jackknife_is_made_of_the_numerical_influence_of_every_unit(grouped: bool, level: float) -> None:
    """Weights are moved by a little towards one item or document; units / (units - 1) is for a small sample."""
    columns = world(48, seed=9)
    codes = np.repeat(range(16), 3) if grouped else np.arange(48)
    kernel = correlation_kernel("spearman", columns[0], columns[3])
    units, step = codes.max() + 1, 1e-6
    influences = []
    for unit in range(units):
        mine = (codes == unit).astype(float)
        moved = np.ones((48, 2)) + np.outer(mine, [step, -step])
        up, down = kernel(moved)
        influences.append((up - down) / (2 * step))
    rho = stats.spearmanr(columns[0], columns[3])[0]
    error = math.sqrt(np.sum(np.square(influences)) * units / (units - 1)) / (1 - rho**2)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    groups = codes.tolist() if grouped else None
    [found] = spearman_intervals(columns[0][:, np.newaxis], columns[3], groups=groups, level=level)
    wanted = [math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach)]
    assert [found.statistic.low, found.statistic.high] == pytest.approx(wanted, rel=1e-5)
    [weak] = spearman_intervals(world(48, seed=9)[0][::-1, np.newaxis], columns[3], level=level)
    assert weak.p_against is not None and weak.statistic.low is not None and weak.statistic.high is not None
    ends = math.atanh(weak.statistic.low), math.atanh(weak.statistic.high)
    error = (ends[1] - ends[0]) / 2 / NormalDist().inv_cdf((1 + level) / 2)
    assert weak.p_against == pytest.approx(NormalDist().cdf(sum(ends) / 2 / error), rel=1e-6)


@pytest.mark.parametrize("n", [9, 10])
@pytest.mark.parametrize("rare", [4, 5])
def test_a_jackknife_has_ten_units_and_five_of_the_rarer_score_at_least(n: int, rare: int) -> None:
    human = np.arange(3.0 * n) % 7
    column = np.zeros(3 * n)
    column[:rare] = 1
    groups = np.repeat(range(n), 3).tolist()
    [found] = spearman_intervals(column[:, np.newaxis], human, groups=groups)
    assert (found.statistic.low is not None) == (n == 10 and rare == 5)
    assert (found.p_against is not None) == (n == 10 and rare == 5)


def all_counts(n: int) -> np.ndarray:
    """Every resample of n items as counts, shape (n, resamples)."""
    return np.array([each for each in itertools.product(range(n + 1), repeat=n) if sum(each) == n], dtype=float).T


@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_a_kappa_is_defined_where_both_sides_give_two_labels_and_is_the_reference_there(weights: Any) -> None:
    a, b = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 1, 2])
    drawn = all_counts(5)
    for column, value in zip(drawn.T, kappa_kernel(a, b, weights)(drawn), strict=True):
        left, right = np.repeat(a, column.astype(int)), np.repeat(b, column.astype(int))
        if min(len(set(left)), len(set(right))) < 2:
            assert np.isnan(value)
        else:
            kind = None if weights == "none" else weights
            assert value == pytest.approx(cohen_kappa_score(left, right, labels=range(3), weights=kind), abs=1e-9)


REFERENCES = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}


@pytest.mark.parametrize("method", REFERENCES)
def test_a_correlation_of_resamples_is_scipys_and_undefined_where_a_side_is_constant_however_it_rounds(
    method: Any,
) -> None:
    """Thirds and tenths have no exact binary fraction: a variance that is only rounding is none."""
    a = np.array([0.1, 0.1, 1 / 3, 0.7, 0.7, 1 / 3])
    b = np.array([0.3, 1 / 7, 0.3, 0.3, 0.9, 1 / 7])
    drawn = all_counts(6)[:, ::3]
    undefined = 0
    for column, value in zip(drawn.T, correlation_kernel(method, a, b)(drawn), strict=True):
        left, right = (np.repeat(each, column.astype(int)) for each in (a, b))
        if min(len(set(left)), len(set(right))) < 2:
            undefined += 1
            assert np.isnan(value)
        else:
            assert value == pytest.approx(REFERENCES[method](left, right)[0], abs=1e-9)
    assert undefined >= 10


@pytest.mark.parametrize("method", REFERENCES)
@pytest.mark.parametrize("turned", [False, True])
def test_a_side_of_which_one_value_alone_is_drawn_has_no_correlation_whatever_that_value_is(
    method: Any, turned: bool
) -> None:
    rng = np.random.default_rng(7)
    drawn = np.vstack([rng.integers(1, 5, size=(5, 40)), np.zeros((2, 40))]).astype(float)
    for value in rng.random(40):
        alike, varied = np.array([value] * 5 + [0.05, 0.95]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9])
        pair = (varied, alike) if turned else (alike, varied)
        assert np.isnan(correlation_kernel(method, *pair)(drawn)).all()


def test_a_small_variance_is_no_rounding() -> None:
    """Two scores a hundred-thousandth apart, beside one that is far away and not drawn, still order items."""
    a = np.array([1.0, 1.00001, 1.0, 1.00001, 1.00001, 2.0])
    b = np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.3])
    drawn = np.array([[1.0, 2, 1, 1, 1, 0]]).T
    left, right = (np.repeat(each, drawn[:, 0].astype(int)) for each in (a, b))
    for method, reference in REFERENCES.items():
        found = correlation_kernel(method, a, b)(drawn)[0]  # type: ignore[arg-type]
        assert found == pytest.approx(reference(left, right)[0], abs=1e-4)


@pytest.mark.parametrize("method", ["spearman", "kendall", "pearson"])
def test_fewer_resamples_are_made_only_where_the_work_is_larger_and_never_fewer_than_the_floor(method: Any) -> None:
    usual = Resampling(resamples=2000)
    fits = WORK[method] // 2000
    assert affordable(usual, method, fits).resamples == 2000
    assert affordable(usual, method, 2 * fits).resamples == 1000
    assert affordable(usual, method, 10**9).resamples == FLOOR[method]
    assert affordable(Resampling(resamples=7), method, 10**9).resamples == 7


def test_an_area_of_every_resample_is_the_reference_and_undefined_without_both_labels() -> None:
    scores, labels = np.array([0.1, 0.4, 0.4, 0.4, 0.9]), np.array([0.0, 1, 0, 1, 0])
    drawn = all_counts(5)
    for column, value, kappa in zip(
        drawn.T, auc_kernel(scores, labels)(drawn), label_kernel("kappa", scores, labels)(drawn), strict=True
    ):
        said, wanted = (np.repeat(each, column.astype(int)) for each in (scores, labels))
        if len(set(wanted)) < 2:
            assert np.isnan(value)
            continue
        assert value == pytest.approx(roc_auc_score(wanted, said))
        cuts = [cohen_kappa_score(said >= cut, wanted == 1) for cut in sorted(set(said))[1:]]
        assert kappa == pytest.approx(max([0.0, *cuts]), abs=1e-9)
        assert best_kappas(said[:, np.newaxis], wanted)[0] == pytest.approx(max([0.0, *cuts]), abs=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_rate_has_statsmodels_interval_and_documents_never_make_it_narrower(share: float, level: float) -> None:
    hits = (np.arange(50) < 50 * share).astype(float)
    alone = rate(hits, Resampling(level=level))
    wanted = proportion_confint(int(hits.sum()), 50, alpha=1 - level, method="wilson")
    assert (alone.low, alone.high) == pytest.approx(wanted)
    spread = sorted(range(50), key=lambda place: place % 5)
    mixed = hits[np.argsort(spread)] if share == 0.5 else hits
    every = np.tile([1.0, 0.0], 25)  # each document passes one of two: less than chance lies between them
    balanced = rate(every, Resampling([place // 2 for place in range(50)], level=level))
    half = proportion_confint(25, 50, alpha=1 - level, method="wilson")
    assert (balanced.low, balanced.high) == pytest.approx(half)
    scattered = rate(mixed, Resampling([place % 10 for place in range(50)], level=level))
    assert scattered.high - scattered.low >= (alone.high - alone.low) * (1 - 1e-9)  # type: ignore[operator]


def test_the_design_effect_is_the_variance_of_documents_over_that_of_items() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 9, size=30)
    codes = np.repeat(range(30), sizes)
    hits = rng.binomial(1, np.repeat(rng.beta(1, 1, size=30), sizes)).astype(float)
    n, share = len(hits), hits.mean()
    sums = np.array([np.sum(hits[codes == code] - share) for code in range(30)])
    variance = np.sum(sums**2) * 30 / 29 / n**2
    assert variance_of_mean(hits, codes) == pytest.approx(variance)
    found = rate(hits, Resampling(codes.tolist()))
    assert (found.low, found.high) == pytest.approx(wilson(share, share * (1 - share) / variance))
    assert share * (1 - share) / variance < n
    shuffled = rng.permutation(n)  # documents need not lie together
    assert numbers(rate(hits[shuffled], Resampling(codes[shuffled].tolist()))) == pytest.approx(numbers(found))


def test_rates_of_a_judge_are_each_of_their_own_label_and_of_the_documents_that_have_it() -> None:
    """Two thirds of the passed are passed, a fourth of the failed is failed; seven documents, of unequal sizes."""
    labels = [1.0] * 12 + [0.0] * 8
    said = [1.0] * 8 + [0.0] * 4 + [0.0] * 2 + [1.0] * 6
    groups = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 0, 1, 2, 6, 6]
    found = pass_fail_figures(said, labels, 0.5, Resampling(groups, level=0.9))
    assert found.confusion == (8, 6, 4, 2)
    assert (found.true_positive_rate.value, found.true_positive_rate.n) == (pytest.approx(8 / 12), 12)
    assert (found.true_negative_rate.value, found.true_negative_rate.n) == (pytest.approx(2 / 8), 8)
    assert found.true_positive_rate == rate(said[:12], Resampling(groups[:12], level=0.9))
    assert found.true_negative_rate == rate([1 - each for each in said[12:]], Resampling(groups[12:], level=0.9))
    assert found.accuracy == rate(
        [float(a == b) for a, b in zip(said, labels, strict=True)], Resampling(groups, level=0.9)
    )
    assert found.kappa.value == pytest.approx(cohen_kappa_score(said, labels))
    assert found.auc.value == pytest.approx(roc_auc_score(labels, said))
    assert found.kappa == cohen_kappa(said, labels, Resampling(groups, level=0.9))


@pytest.mark.parametrize("score", [0.5, 0.5 - 1e-12, 0.5 - 1e-6])
def test_a_score_at_the_threshold_passes_and_one_below_it_fails(score: float) -> None:
    found = pass_fail_figures([score, 0.9, 0.1], [1, 1, 0], 0.5)
    assert found.confusion == ((2, 0, 0, 1) if score > 0.4999999 else (1, 0, 1, 1))


def of(hits: int, n: int, level: float = 0.95) -> Statistic:
    return Statistic(hits / n, n, *wilson(hits / n, n, level), None)


def lang_reiczigel(p: float, n: int, tpr: float, passed: int, tnr: float, failed: int, level: float) -> list[float]:
    """The interval of a prevalence, written from the paper (formulas 3 to 5)."""
    z = stats.norm.ppf((1 + level) / 2)
    p1, se1, sp1 = (p * n + z**2 / 2) / (n + z**2), (tpr * passed + 1) / (passed + 2), (tnr * failed + 1) / (failed + 2)
    centre = (p1 + sp1 - 1) / (se1 + sp1 - 1)
    of_se, of_sp = se1 * (1 - se1) / (passed + 2), sp1 * (1 - sp1) / (failed + 2)
    shift = 2 * z**2 * (centre * of_se - (1 - centre) * of_sp)
    width = z / (se1 + sp1 - 1) * math.sqrt(p1 * (1 - p1) / (n + z**2) + centre**2 * of_se + (1 - centre) ** 2 * of_sp)
    return [max(0.0, centre + shift - width), min(1.0, centre + shift + width)]


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(("own", "tpr", "tnr"), [((60, 200), (52, 60), (30, 40)), ((150, 200), (30, 40), (54, 60))])
def test_a_corrected_rate_is_that_of_the_papers(
    own: tuple[int, int], tpr: tuple[int, int], tnr: tuple[int, int], level: float
) -> None:
    found = rogan_gladen(of(*own, level), of(*tpr, level), of(*tnr, level), level)
    p, sensitivity, specificity = own[0] / own[1], tpr[0] / tpr[1], tnr[0] / tnr[1]
    assert found.value == pytest.approx((p + specificity - 1) / (sensitivity + specificity - 1))
    wanted = lang_reiczigel(p, own[1], sensitivity, tpr[1], specificity, tnr[1], level)
    assert [found.low, found.high] == pytest.approx(wanted)
    assert (found.n, found.labelled) == (own[1], tpr[1] + tnr[1])


def test_a_corrected_rate_lies_in_its_interval_and_both_between_none_and_all() -> None:
    """Every number of passes of twenty outputs, by judges that err little or hardly."""
    rates = [of(hits, n) for hits, n in ((10, 10), (95, 100), (40, 50), (30, 30), (9, 10), (199, 200))]
    told = 0
    for passed, tpr, tnr in itertools.product(range(21), rates, rates):
        found = rogan_gladen(of(passed, 20), tpr, tnr)
        if found.value is not None:
            told += 1
            assert found.low is not None and found.high is not None
            assert 0 <= found.low <= found.value <= found.high <= 1, (passed, tpr, tnr)
    assert told > 200


def test_the_weakest_judge_that_is_corrected_is_a_tenth_above_chance_at_the_lower_ends() -> None:
    """TPR + TNR - 1, less the two lower reaches together, must be above 0.1."""
    seen = set()
    for hits in range(60, 100):
        rates = of(hits, 100)
        known, reach = 2 * hits / 100 - 1, math.sqrt(2) * (hits / 100 - wilson(hits / 100, 100)[0])
        found = rogan_gladen(of(120, 200), rates, rates)
        assert (found.value is not None) == (known - reach > 0.1)
        seen.add(found.value is None)
    assert seen == {True, False}


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_prediction_powered_rate_weighs_verdicts_as_makes_the_variance_least(grouped: bool, level: float) -> None:
    rng = np.random.default_rng(8)
    people = (rng.random(400) < 0.4).astype(float)
    said = np.where(rng.random(400) < 0.85, people, 1 - people)
    codes = np.arange(400) // 4 if grouped else np.arange(400)
    labelled = codes < (40 if grouped else 160)
    labels = [float(each) if there else None for each, there in zip(people, labelled, strict=True)]
    y, f, others = people[labelled], said[labelled], said[~labelled]
    ratio = len(y) / len(others)
    weight = np.cov(y, f, bias=True)[0, 1] / ((1 + ratio) * said.var())
    value = y.mean() + weight * (others.mean() - f.mean())

    def clustered(values: np.ndarray, of_values: np.ndarray) -> float:
        sums = [np.sum(values[of_values == code] - values.mean()) for code in np.unique(of_values)]
        return float(np.sum(np.square(sums)) * len(sums) / (len(sums) - 1) / len(values) ** 2)

    variance = clustered(y - weight * f, codes[labelled]) + weight**2 * clustered(others, codes[~labelled])
    found = prediction_powered(said, labels, Resampling(codes.tolist() if grouped else None, level=level))
    assert 0 < weight < 1 and found.value == pytest.approx(value)
    assert (found.low, found.high) == pytest.approx(wilson(value, value * (1 - value) / variance, level))
    assert (found.n, found.labelled) == (400, len(y))
    for other in (0.0, 0.6 * weight, 1.4 * weight, 1.0):  # of independent items no other weight tells more
        apart = np.var(y - other * f) / len(y) + other**2 * np.var(others) / len(others)
        assert np.var(y - weight * f) / len(y) + weight**2 * np.var(others) / len(others) <= apart * 1.01


def test_verdicts_that_say_the_opposite_or_nothing_leave_the_labels_alone() -> None:
    rng = np.random.default_rng(10)
    people = (rng.random(200) < 0.5).astype(float)
    labels: list[float | None] = [*people[:60].tolist(), *[None] * 140]
    for said in (1 - people, np.ones(200)):
        found = prediction_powered(said, labels)
        assert found.value == pytest.approx(people[:60].mean())
        assert (found.low, found.high) == pytest.approx(wilson(people[:60].mean(), 59))


@pytest.mark.parametrize("documents", [FEWEST_LABELLED - 1, FEWEST_LABELLED])
@pytest.mark.parametrize("rarer", [1, 2])
def test_labels_are_too_few_by_documents_and_by_the_rarer_label(documents: int, rarer: int) -> None:
    groups = np.repeat(range(60), 2).tolist()
    labels: list[float | None] = [1.0] * (2 * documents) + [None] * (120 - 2 * documents)
    labels[:rarer] = [0.0] * rarer
    found = prediction_powered([1.0, 0.0] * 60, labels, Resampling(groups))
    assert (found.value is not None) == (documents == FEWEST_LABELLED and rarer == 2)
    assert found.labelled == 2 * documents and (found.value is None) == (found.reason is not None)


def test_a_mean_change_has_its_paired_standard_error_and_every_swap_is_as_likely() -> None:
    rng = np.random.default_rng(11)
    a = 5 * rng.normal(size=300)
    b = a + 0.1 + 0.4 * rng.normal(size=300)
    found = mean_difference(a, b, Resampling(resamples=4000, level=0.9))
    error = (b - a).std() / math.sqrt(300)
    assert found.standard_error == pytest.approx(error, rel=0.05)
    reach = NormalDist().inv_cdf(0.95) * error
    assert (found.low, found.high) == pytest.approx(((b - a).mean() - reach, (b - a).mean() + reach), abs=0.08 * reach)


def test_the_p_value_of_documents_is_that_of_all_swaps_of_whole_documents() -> None:
    change = np.array([3.0, -1.0, 2.0, 2.0, -2.5, 1.0, 0.5, 0.25, 4.0, -1.0, -1.5, -0.5])
    codes = np.array([0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 6, 7])
    sums = np.bincount(codes, weights=change)
    every = np.array(list(itertools.product([1, -1], repeat=len(sums)))) @ sums
    exact = np.mean(every >= change.sum() - 1e-9)
    found = mean_difference(np.zeros(12), change, Resampling(codes.tolist(), resamples=8000))
    assert found.p_value == pytest.approx(exact, abs=0.015) and 0.05 < exact < 0.3


def test_no_p_value_is_zero_and_the_least_is_one_more_than_the_swaps() -> None:
    a, b = np.zeros(200), np.ones(200)
    assert mean_difference(a, b, Resampling(resamples=99)).p_value == pytest.approx(1 / 100)
    human = np.arange(200.0)
    noise = np.random.default_rng(1).normal(size=200)
    assert paired_difference(noise, human, human, Resampling(resamples=99)).p_value == pytest.approx(1 / 100)
    labels = (human >= 100).astype(float)
    for metric in ("auc", "kappa"):
        assert label_difference(noise, human, labels, metric, Resampling(resamples=99)).p_value == pytest.approx(0.01)  # type: ignore[arg-type]
        assert label_difference(human, noise, labels, metric, Resampling(resamples=99)).p_value == 1  # type: ignore[arg-type]


def test_signs_are_even_and_common_to_a_document() -> None:
    signs = np.concatenate(list(_signs(Resampling(list("aabcc"), resamples=4000), np.ones(5, dtype=bool))), axis=1)
    assert signs.shape == (5, 4000) and set(np.unique(signs)) == {-1.0, 1.0}
    assert np.array_equal(signs[0], signs[1]) and np.array_equal(signs[3], signs[4])
    assert signs.mean(axis=1) == pytest.approx(np.zeros(5), abs=0.06)
    assert abs(np.mean(signs[0] * signs[2])) < 0.06


@pytest.mark.parametrize("metric", ["auc", "kappa"])
def test_a_label_difference_is_that_of_the_two_figures(metric: Any) -> None:
    columns = world()
    found = label_difference(columns[0], columns[1], columns[4], metric, Resampling(resamples=100))
    first, second = (label_agreement(metric, each, columns[4], Resampling(resamples=2)).value for each in columns[:2])
    assert first is not None and second is not None and found.value == pytest.approx(second - first)
    back = label_difference(columns[1], columns[0], columns[4], metric, Resampling(resamples=100))
    assert back.value == pytest.approx(first - second) and found.value != 0


def test_the_p_value_of_a_label_difference_is_even_where_there_is_no_gain() -> None:
    rng = np.random.default_rng(12)
    for metric in ("auc", "kappa"):
        p = []
        for trial in range(150):
            labels = rng.permutation(np.repeat([0.0, 1.0], 15))
            a, b = (labels + rng.normal(size=30) for _ in range(2))
            p.append(label_difference(a, b, labels, metric, Resampling(resamples=60, seed=trial)).p_value)  # type: ignore[arg-type]
        assert 0.41 <= np.mean(p) <= 0.6 and 0.03 <= np.mean(np.array(p) <= 0.1) <= 0.19  # type: ignore[arg-type]


def test_holms_adjustment_is_that_of_statsmodels() -> None:
    p = [0.01, 0.6, 0.02, 0.011, 0.04, 0.9]
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([0.02, None, 0.03]) == [pytest.approx(0.04), None, pytest.approx(0.04)]


def test_a_distance_of_distributions_is_scipys_on_every_resample() -> None:
    columns = world(20)
    drawn = next(resample_weights(20, 30, seed=1))
    for column, value in zip(drawn.T, wasserstein_kernel(columns[0], columns[3])(drawn), strict=True):
        times = column.astype(int)
        wanted = stats.wasserstein_distance(np.repeat(columns[0], times), np.repeat(columns[3], times))
        assert value == pytest.approx(wanted)


def test_severity_and_crowding_are_the_judges_less_peoples() -> None:
    found = compare_distributions([0.99, 1.0, 0.98, 0.2, 0.5], [0.4, 1.0, 0.3, 0.1, 0.2])
    assert found.severity.value == pytest.approx(3.67 / 5 - 2.0 / 5)
    assert (found.at_maximum.value, found.human_at_maximum.value) == pytest.approx((0.4, 0.2))
    assert found.ceiling.value == pytest.approx(0.2) and found.severity.n == found.ceiling.n == 5


def test_a_mean_over_documents_resamples_documents_and_one_over_systems_the_items_of_each() -> None:
    rng = np.random.default_rng(13)
    groups = np.repeat(range(40), 6)
    human = rng.normal(size=240)
    scores = human * np.repeat(rng.uniform(0, 2, size=40), 6) + rng.normal(size=240)
    each = np.array([stats.spearmanr(scores[groups == one], human[groups == one])[0] for one in range(40)])
    found = per_group(scores, human, groups.tolist(), "spearman", Resampling(resamples=4000, level=0.9))
    reach = NormalDist().inv_cdf(0.95) * each.std() / math.sqrt(40)
    assert found.average.value == pytest.approx(each.mean()) and found.average.n == 40
    assert (found.average.low, found.average.high) == pytest.approx(
        (each.mean() - reach, each.mean() + reach), abs=0.1 * reach
    )
    systems = np.tile(range(6), 40)
    human, scores = human + 0.5 * systems, scores + 0.5 * systems
    of_systems = system_level(scores, human, systems.tolist(), Resampling(resamples=300))
    means = [[values[systems == one].mean() for one in range(6)] for values in (scores, human)]
    assert of_systems.pearson.value == pytest.approx(stats.pearsonr(*means)[0]) and of_systems.pearson.n == 6
    draws = []
    for _ in range(600):
        picked = [rng.choice(np.flatnonzero(systems == one), 40) for one in range(6)]
        draws.append(stats.pearsonr([scores[p].mean() for p in picked], [human[p].mean() for p in picked])[0])
    low, high = np.quantile(draws, [0.025, 0.975])
    assert (of_systems.pearson.low, of_systems.pearson.high) == pytest.approx((low, high), abs=0.15 * (high - low))


def test_a_threshold_lies_where_verdicts_agree_best_and_turns_with_the_labels() -> None:
    rng = np.random.default_rng(14)
    labels = (rng.random(300) < 0.5).astype(float)
    scores = np.clip(0.45 + 0.1 * rng.normal(size=300) + 0.3 * (labels - 0.5), 0, 1)
    found = fit_threshold(scores, labels)
    assert found.value == pytest.approx(0.45, abs=0.04) and found.n == 300
    assert fit_threshold(scores, 1 - labels).n == 0
    assert fit_threshold(1 - scores, 1 - labels).value == pytest.approx(1 - found.value, abs=0.03)
    both = [None, *scores[1:-1], 0.5], [1.0, *labels[1:-1], None]
    assert fit_threshold(*both).n == 298
    assert astuple(fit_threshold(scores[:7], labels[:7]))[:2] == (0.5, 0)
    moved = 0
    for few in range(20, 60, 5):  # each five times in its document
        said, wanted = rng.random(few) + 0.2 * labels[:few], labels[:few]
        five = np.repeat(said, 5), np.repeat(wanted, 5), np.repeat(range(few), 5).tolist()
        assert fit_threshold(*five).value == fit_threshold(said, wanted).value
        moved += fit_threshold(*five[:2]).value != fit_threshold(*five).value
    assert moved


@pytest.mark.parametrize("documents", [12, 36])
def test_the_reverse_of_peoples_order_has_the_chance_that_it_falls_out_so_among_documents(documents: int) -> None:
    """At most one in so many: half of the documents above the others, or fewer where nearly all scores are the same."""
    human = np.arange(36.0)
    groups = [place * documents // 36 for place in range(36)]
    rare = np.where(human < 5, 1.0, 0.0)
    for column, people, minority in ((-human, human, documents // 2), (rare, (human >= 5) * 1.0, 5)):
        [found] = spearman_intervals(column[:, np.newaxis], people, groups=groups)
        assert found.statistic.value == pytest.approx(-1) and found.statistic.low is None
        assert found.p_against == pytest.approx(1 / math.comb(documents, minority))
        [same] = spearman_intervals(-column[:, np.newaxis], people, groups=groups)
        assert same.p_against == 1


def test_the_least_that_is_enough_is_enough() -> None:
    """Six items in people's order, three labels of the rarer kind, eight examples; one fewer is too few."""
    for n, has_ends in ((5, False), (6, True)):
        found = correlate(list(range(n)), list(range(n)), Resampling(resamples=200)).spearman
        assert found.value == 1 and (found.low is not None) == has_ends
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9]
    for rare, n in ((3, 8), (2, 0)):
        assert fit_threshold(scores, [0.0] * (8 - rare) + [1.0] * rare).n == n
        assert fit_threshold(scores, [0.0] * rare + [1.0] * (8 - rare)).n == n


def test_a_judge_that_runs_against_people_has_kappa_0_at_its_best_threshold() -> None:
    assert label_agreement("kappa", [0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], Resampling(resamples=50)).value == 0
    against = best_kappas(np.array([[0.1], [0.2], [0.3], [0.4]]), np.array([1.0, 1, 0, 0]))
    assert against.tolist() == [0]
