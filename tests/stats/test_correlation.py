"""Correlations agree with scipy and with published figures, and say why they do not exist."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from askance.prompts.errors import InputError
from askance.stats.correlation import (
    affordable,
    between_systems,
    correlate,
    correlation_kernel,
    kendall,
    per_group,
    spearman,
    system_level,
)
from askance.stats.resampling import Resampling, average_ranks, resample_weights
from tests.said import naming, says

REFERENCE = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}
OURS = {
    "spearman": spearman,
    "kendall": kendall,
    "pearson": lambda a, b: correlate(a, b, Resampling(resamples=1)).pearson,
}
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

columns = st.integers(3, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-4, 4), min_size=n, max_size=n).filter(lambda c: len(set(c)) > 1),
        st.lists(st.integers(-4, 4), min_size=n, max_size=n).filter(lambda c: len(set(c)) > 1),
    )
)


def scored(n: int, seed: int = 0, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    human = np.round(rng.normal(size=n) * 2) / 2
    scores = human + rng.normal(size=n)
    return (np.round(scores) if ties else scores), human


@pytest.mark.parametrize("method", REFERENCE)
@settings(max_examples=60, deadline=None)
@given(pair=columns)
def test_each_correlation_equals_scipy_on_columns_full_of_ties(method: str, pair: tuple) -> None:
    a, b = pair
    assert OURS[method](a, b).value == pytest.approx(float(REFERENCE[method](a, b)[0]), abs=1e-12)


@pytest.mark.parametrize("method", REFERENCE)
def test_weighted_correlation_equals_scipy_on_repeated_items(method: str) -> None:
    scores, human = scored(25, ties=True)
    kernel = correlation_kernel(method, scores, human)
    for weights in resample_weights(25, 20, seed=5):
        for column, value in enumerate(kernel(weights)):
            drawn = np.repeat(np.arange(25), weights[:, column].astype(int))
            assert value == pytest.approx(float(REFERENCE[method](scores[drawn], human[drawn])[0]), abs=1e-12)


def test_kendall_equals_scipy_for_many_items() -> None:
    scores, human = scored(2300, ties=True)
    assert kendall(scores, human).value == pytest.approx(stats.kendalltau(scores, human)[0], abs=1e-12)


def test_average_ranks_equal_scipy() -> None:
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0, 1.0])
    assert average_ranks(values).tolist() == stats.rankdata(values).tolist()


@pytest.mark.parametrize("method", ["spearman", "kendall"])
@settings(max_examples=40, deadline=None)
@given(pair=columns)
def test_rank_correlations_do_not_change_under_a_monotone_transform(method: str, pair: tuple) -> None:
    a, b = pair
    assert OURS[method](np.exp(a), b).value == pytest.approx(OURS[method](a, b).value, abs=1e-12)
    assert OURS[method](-np.exp(a), b).value == pytest.approx(-OURS[method](a, b).value, abs=1e-12)


@pytest.mark.parametrize("method", REFERENCE)
@settings(max_examples=40, deadline=None)
@given(pair=columns, data=st.data())
def test_no_correlation_depends_on_the_order_of_the_items(method: str, pair: tuple, data: st.DataObject) -> None:
    a, b = pair
    order = data.draw(st.permutations(range(len(a))))
    shuffled = OURS[method]([a[i] for i in order], [b[i] for i in order])
    assert shuffled.value == pytest.approx(OURS[method](a, b).value, abs=1e-12)


def test_constant_scores_are_undefined_with_the_constant_in_the_reason() -> None:
    statistic = spearman([1.0] * 5, [1, 2, 3, 4, 5])
    assert statistic.value is None and statistic.n == 5
    assert statistic.reason == "the scores are constant (all 1)"
    assert spearman([1, 2, 3], [0.5] * 3).reason == "the human scores are constant (all 0.5)"
    found = correlate([0.1 + 0.2, 0.3, 0.3], [1, 2, 3], Resampling(resamples=50))
    assert found.pearson.value is None and found.kendall.value is None


def test_fewer_than_three_complete_items_are_undefined() -> None:
    statistic = kendall([1, 2, None, 4], [1, None, 3, 4])
    assert (statistic.value, statistic.n) == (None, 2)
    assert says(statistic.reason, "3 items", 2)
    assert correlate([], []).spearman.value is None


def test_scores_that_differ_only_by_summation_order_are_ties() -> None:
    assert spearman([0.1 + 0.2, 0.3, 0.5, 0.7], [2, 1, 3, 4]).value == spearman([3, 3, 5, 7], [2, 1, 3, 4]).value


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1, 2], [1, 2, 3], "different lengths"),
        ([[1, 2]], [1, 2], "one number per example"),
        ([1, float("inf"), 2], [1, 2, 3], "infinite value at position 1"),
    ],
)
def test_columns_that_cannot_be_compared_are_refused(a: list, b: list, words: str) -> None:
    with pytest.raises(InputError, match=words):
        spearman(a, b)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        Resampling(resamples=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        Resampling(level=95)
    with pytest.raises(InputError, match="no correlation named"):
        per_group([1, 2, 3], [1, 2, 3], list("aaa"), "tau")  # type: ignore[arg-type]


def test_bootstrap_interval_agrees_with_scipys_percentile_bootstrap() -> None:
    scores, human = scored(120)
    found = correlate(scores, human, Resampling(resamples=4000, seed=1))
    for method in ("spearman", "pearson"):
        reference = stats.bootstrap(
            (scores, human),
            lambda x, y, method=method: REFERENCE[method](x, y)[0],
            paired=True,
            vectorized=False,
            n_resamples=1000,
            method="percentile",
            rng=np.random.default_rng(2),
        ).confidence_interval
        ours = getattr(found, method)
        assert (ours.low, ours.high) == pytest.approx((reference.low, reference.high), abs=0.03)
    assert found.kendall.low < found.kendall.value < found.kendall.high


def test_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    scores, human = scored(40)
    assert correlate(scores, human, Resampling(resamples=200, seed=3)) == correlate(
        scores, human, Resampling(resamples=200, seed=3)
    )
    other = correlate(scores, human, Resampling(resamples=200, seed=4))
    assert other.spearman.low != correlate(scores, human, Resampling(resamples=200, seed=3)).spearman.low


def test_resampling_documents_widens_the_interval_when_their_items_repeat() -> None:
    scores, human = scored(30)
    repeated = [np.repeat(column, 6) for column in (scores, human)]
    documents = np.repeat(np.arange(30), 6).tolist()
    by_item = correlate(*repeated, Resampling(resamples=600)).spearman
    by_document = correlate(*repeated, Resampling(groups=documents, resamples=600)).spearman
    single = correlate(scores, human, Resampling(resamples=600)).spearman
    assert by_document.value == by_item.value
    assert by_document.high - by_document.low > 1.8 * (by_item.high - by_item.low)
    assert by_document.high - by_document.low == pytest.approx(single.high - single.low, rel=0.15)


def test_an_interval_is_withheld_when_many_resamples_are_constant() -> None:
    statistic = correlate([1, 1, 1, 1, 1, 0], [1, 2, 3, 4, 5, 6], Resampling(resamples=300)).spearman
    assert statistic.value is not None and statistic.low is None
    assert says(statistic.reason, "no interval", "of 300 resamples", "20%") or says(
        statistic.reason, "of 300", "constant scores"
    )
    few = correlate([1, 2, 3, 4], [1, 2, 3, 5], Resampling(groups=list("aabb"), resamples=50)).spearman
    assert few.value is not None and few.reason == "no interval: only 2 groups to resample"


def test_few_items_in_the_exact_order_of_people_have_no_interval_without_width() -> None:
    found = correlate([0.1, 0.2, 0.4], [3, 4, 9])
    assert (found.spearman.value, found.spearman.low, found.spearman.high) == (1.0, None, None)
    assert says(found.spearman.reason, "no interval", "3 items", "by chance")
    line = correlate([0.1, 0.2, 0.3], [1, 2, 3]).pearson
    assert (line.value, line.low, line.high) == (pytest.approx(1.0), None, None)
    assert correlate([0.1, 0.2, 0.4, 0.5], [3, 4, 9, 8]).spearman.low is not None
    assert correlate(list(range(8)), list(range(8))).spearman.low == 1
    grouped = correlate(list(range(8)), list(range(8)), Resampling(list("aabbccdd")))
    assert says(grouped.kendall.reason, "no interval", "4 groups", "by chance")


def test_per_group_averages_the_groups_where_the_correlation_exists() -> None:
    groups = list("aaaabbbbccccdd") + ["e"] * 4
    scores = [1, 2, 3, 4, 4, 3, 2, 1, 7, 7, 7, 7, 1, 2, 1, 2, 3, 5]
    human = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 1, 3, 2, 4]
    found = per_group(scores, human, groups, "spearman", resampling=Resampling(resamples=200))
    assert (found.used, found.undefined, found.average.n) == (3, 2, 3)
    assert found.average.value == pytest.approx((1 - 1 + 0.8) / 3)
    assert found.average.low < found.average.value < found.average.high
    nothing = per_group([1, 1, 1], [1, 2, 3], list("aaa"))
    assert nothing.average.value is None and says(nothing.average.reason, "undefined", "1 groups")


def test_groups_that_all_have_the_same_correlation_give_no_interval_without_width() -> None:
    groups = [f"d{number}" for number in range(4) for _ in range(3)]
    found = per_group([1, 3, 2] * 4, [1, 2, 3] * 4, groups, resampling=Resampling(resamples=200)).average
    assert (found.value, found.low, found.high) == (pytest.approx(0.5), None, None)
    assert says(found.reason, "no interval", "in every group")


def test_system_level_correlates_the_means_of_the_systems() -> None:
    rng = np.random.default_rng(0)
    systems = [name for name in "abcdef" for _ in range(30)]
    human = np.repeat(np.arange(6.0), 30) + rng.normal(size=180)
    scores = human + rng.normal(size=180)
    found = system_level(scores, human, systems, Resampling(resamples=200))
    means = [[c[30 * k : 30 * k + 30].mean() for k in range(6)] for c in (scores, human)]
    assert found.pearson.value == pytest.approx(stats.pearsonr(*means)[0])
    assert found.spearman.n == 6
    assert found.pearson.low <= found.pearson.value <= found.pearson.high <= 1
    assert system_level([1, 2], [1, 2], ["a", "b"]).kendall.reason == "fewer than 3 systems (there are 2)"


def test_systems_of_one_item_each_have_no_interval() -> None:
    found = system_level([1, 2, 4, 3], [1, 2, 3, 4], list("abcd"))
    assert found.spearman.value == pytest.approx(0.8)
    for each in (found.spearman, found.kendall, found.pearson):
        assert (each.low, each.high) == (None, None)
        assert says(each.reason, "no interval", "one item")


def test_items_of_no_named_system_are_no_system_of_their_own() -> None:
    rng = np.random.default_rng(1)
    scores, human = rng.normal(size=(2, 24))
    systems = ["a", "b", "c", None] * 6
    named = [place for place, system in enumerate(systems) if system is not None]
    found = between_systems(scores, human, systems, Resampling(resamples=50))
    assert found == system_level(
        scores[named], human[named], [systems[place] for place in named], Resampling(resamples=50)
    )
    assert found is not None and found.spearman.n == 3
    assert between_systems(scores, human, ["a", "b", None, None] * 6, Resampling(resamples=50)) is None


def test_group_names_must_match_the_items() -> None:
    with pytest.raises(InputError, match=naming("2 group names", "3 items")):
        correlate([1, 2, 3], [1, 2, 3], Resampling(groups=["a", "b"]))


def test_many_items_take_fewer_resamples() -> None:
    assert affordable(Resampling(), "kendall", 3000).resamples == 2000
    assert affordable(Resampling(), "kendall", 10_000).resamples == 600
    assert affordable(Resampling(resamples=100), "kendall", 10_000).resamples == 100
    assert affordable(Resampling(), "spearman", 25_000).resamples == 2000
    assert affordable(Resampling(), "pearson", 50_000).resamples == 1000
    assert affordable(Resampling(), "spearman", 1_000_000).resamples == 500


def test_fewer_resamples_of_many_items_move_an_interval_by_a_small_part_of_its_width() -> None:
    chance = np.random.default_rng(0)
    scores = chance.normal(size=100_000)
    human = scores + chance.normal(size=100_000)
    few = correlate(scores, human, Resampling(resamples=1000)).spearman  # 500 of them
    other = correlate(scores, human, Resampling(resamples=500, seed=1)).spearman
    assert few.value == other.value
    width = few.high - few.low
    assert 0.003 < width < 0.01
    assert max(abs(few.low - other.low), abs(few.high - other.high)) < 0.15 * width


def test_importing_the_statistics_does_not_import_scipy() -> None:
    code = "import sys, askance.stats.differences; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def published(name: str) -> list[dict]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the human-rated data {name} are not beside this checkout")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_unieval_on_qags_gives_the_published_correlations() -> None:
    rows = published("qags_cnndm.jsonl")
    found = correlate([row["unieval"]["consistency"] for row in rows], [row["human"]["consistency"] for row in rows])
    values = [found.pearson.value, found.spearman.value, found.kendall.value]
    assert [round(value, 3) for value in values] == [0.682, 0.662, 0.532]
    assert found.spearman.n == 235 and found.spearman.low < 0.662 < found.spearman.high


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("naturalness", (0.444, 0.514)),
        ("coherence", (0.595, 0.613)),
        ("engagingness", (0.557, 0.605)),
        ("groundedness", (0.536, 0.575)),
    ],
)
def test_unieval_on_topical_chat_gives_the_published_correlations(dimension: str, expected: tuple) -> None:
    rows = published("topical_chat.jsonl")
    a, b = ([row[who][dimension] for row in rows] for who in ("unieval", "human"))
    found = correlate(a, b, Resampling(resamples=1))
    assert (round(found.pearson.value, 3), round(found.spearman.value, 3)) == expected
