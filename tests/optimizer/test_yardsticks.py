from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from askance.evaluation.pass_fail import PassLabels
from askance.evaluation.scoring import ExampleScore, Targets
from askance.optimizer.acceptance import CorrelationYardstick, MeanYardstick, Metric
from askance.prompts.examples import Example
from askance.stats.differences import label_difference
from askance.stats.resampling import Resampling
from tests.said import says

N = 24
TRUTH, NOISE, OTHER = np.random.default_rng(3).random((3, N))
EXAMPLES = [Example(id=f"e{n}", input="i") for n in range(N)]
TARGETS = Targets("human", ("d",), {f"e{n}": {"d": float(TRUTH[n])} for n in range(N)})


def scores(values: np.ndarray | list[float | None], dimension: str = "d") -> list[ExampleScore]:
    rows = [None if value is None else float(value) for value in values]
    return [ExampleScore(f"e{n}", value, {dimension: value}) for n, value in enumerate(rows)]


def test_a_judge_is_measured_by_its_correlations_with_the_wanted_scores() -> None:
    judged = TRUTH + 0.3 * NOISE
    found = CorrelationYardstick(TARGETS, resamples=200, seed=1).measure(scores(judged), EXAMPLES)
    assert found["spearman"] == pytest.approx(spearmanr(judged, TRUTH)[0])
    assert found["kendall"] == pytest.approx(kendalltau(judged, TRUTH)[0])
    assert found["pearson"] == pytest.approx(pearsonr(judged, TRUTH)[0])
    assert (found["n"], found["dimensions"]["d"]["spearman"]) == (N, found["spearman"])
    assert found["low"] < found["spearman"] < found["high"]


def test_a_better_judge_differs_by_the_difference_of_its_correlations() -> None:
    worse, better = TRUTH + OTHER, TRUTH + 0.1 * NOISE
    found = CorrelationYardstick(TARGETS, resamples=200, seed=1).difference(scores(worse), scores(better), EXAMPLES)
    assert found.value == pytest.approx(spearmanr(better, TRUTH)[0] - spearmanr(worse, TRUTH)[0])


def test_a_judge_that_says_the_same_of_everything_ranks_nothing_and_can_be_improved() -> None:
    yardstick = CorrelationYardstick(TARGETS, resamples=200, seed=1)
    constant = scores(np.full(N, 0.9))
    assert yardstick.measure(constant, EXAMPLES)["spearman"] is None
    assert yardstick.measure(constant, EXAMPLES)["reason"]
    assert yardstick.difference(constant, scores(TRUTH), EXAMPLES).value == pytest.approx(1.0)


def test_a_generator_is_measured_by_its_mean_and_says_why_it_has_no_correlation() -> None:
    values = [None, *(float(n % 2) for n in range(N - 1))]
    found = MeanYardstick(resamples=200, seed=1).measure(scores(values), EXAMPLES)
    assert (found["mean"], found["n"]) == (pytest.approx(11 / 23), 23)
    assert found["low"] < found["mean"] < found["high"]
    assert (found["spearman"], found["kendall"], found["pearson"]) == (None, None, None)
    assert says(found["reason"], "mean score", "nothing to correlate")
    assert found["dimensions"]["d"]["mean"] == found["mean"]


def test_a_generator_without_any_score_has_no_mean_and_says_why() -> None:
    found = MeanYardstick(resamples=200, seed=1).measure(scores([None] * N), EXAMPLES)
    assert (found["mean"], found["n"]) == (None, 0)
    assert "fewer than" in found["reason"]


def test_dimensions_that_only_some_examples_have_are_measured_on_those() -> None:
    rows = [ExampleScore(f"e{n}", 1.0, {"even": 1.0} if n % 2 == 0 else {"odd": 0.0}) for n in range(N)]
    found = MeanYardstick(resamples=200, seed=1).measure(rows, EXAMPLES)["dimensions"]
    assert (found["even"]["mean"], found["even"]["n"]) == (1.0, 12)
    assert (found["odd"]["mean"], found["odd"]["n"]) == (0.0, 12)


def test_two_generators_differ_by_their_means_on_the_same_examples() -> None:
    before, after = [0.0] * N, [None, *([1.0] * 6), *([0.0] * (N - 7))]
    found = MeanYardstick(resamples=500, seed=1).difference(scores(before), scores(after), EXAMPLES)
    assert (found.value, found.n) == (pytest.approx(6 / 23), 23)
    assert found.p_value == pytest.approx(2**-6, abs=0.02), "the sign test on six changes, all for the better"


def test_examples_of_one_document_move_together() -> None:
    shared = [Example(id=f"e{n}", input="i", metadata={"document": n % 3}) for n in range(N)]
    yardstick = MeanYardstick(resamples=500, seed=1)
    alone = yardstick.difference(scores([0.0] * N), scores([1.0] * N), EXAMPLES)
    together = yardstick.difference(scores([0.0] * N), scores([1.0] * N), shared)
    assert alone.p_value is not None
    assert together.p_value is not None
    assert alone.p_value < 0.01 < together.p_value


LABELS = PassLabels({f"e{n}": float(TRUTH[n] > 0.5) for n in range(N)})
PASSED = (TRUTH > 0.5).astype(float)


@pytest.mark.parametrize("metric", ["auc", "kappa"])
def test_a_judge_can_be_measured_by_labels(metric: Metric) -> None:
    yardstick = CorrelationYardstick(TARGETS, resamples=200, seed=1, metric=metric, labels=LABELS)
    worse, better = TRUTH + 3 * OTHER, TRUTH + 0.3 * NOISE

    def reference(judged: np.ndarray) -> float:
        if metric == "auc":
            return float(roc_auc_score(PASSED, judged))
        return max(cohen_kappa_score(judged >= cut, PASSED == 1) for cut in judged)

    row = yardstick.measure(scores(better), EXAMPLES)
    assert row["optimised"]["metric"] == metric
    assert row["optimised"]["value"] == yardstick.value(scores(better)) == pytest.approx(reference(better))
    assert row["spearman"] == pytest.approx(spearmanr(better, TRUTH)[0]), "the correlations stand beside it"
    found = yardstick.difference(scores(worse), scores(better), EXAMPLES)
    assert found.value == pytest.approx(reference(better) - reference(worse))
    assert found.p_value is not None and found.p_value < 0.1
    back = yardstick.difference(scores(better), scores(worse), EXAMPLES)
    assert back.p_value is not None and back.p_value > 0.9


@pytest.mark.parametrize("metric", ["auc", "kappa"])
def test_a_judge_that_is_only_more_lenient_is_no_other_one(metric: Metric) -> None:
    yardstick = CorrelationYardstick(TARGETS, resamples=200, seed=1, metric=metric, labels=LABELS)
    judged = TRUTH + 0.3 * NOISE
    found = yardstick.difference(scores(judged / 3), scores(judged / 3 + 0.4), EXAMPLES)
    assert found.value == pytest.approx(0) and found.p_value == 1
    constant = yardstick.difference(scores(np.full(N, 0.9)), scores(judged), EXAMPLES)
    assert constant.value is not None and constant.value > 0.2 and (constant.p_value or 1) < 0.05


def test_kendall_can_be_what_is_raised() -> None:
    yardstick = CorrelationYardstick(TARGETS, resamples=200, seed=1, metric="kendall")
    judged = TRUTH + NOISE
    assert yardstick.name == "Kendall"
    assert yardstick.measure(scores(judged), EXAMPLES)["optimised"]["value"] == pytest.approx(
        yardstick.value(scores(judged))
    )
    assert yardstick.value(scores(judged)) == pytest.approx(kendalltau(judged, TRUTH)[0])


@pytest.mark.parametrize("metric", ["auc", "kappa"])
def test_the_gate_lets_no_more_through_than_its_level_where_nothing_is_better(metric: Metric) -> None:
    """150 pairs of equally good judges, the second more lenient, on 30 examples with scores in steps."""
    rng = np.random.default_rng(4)
    through = 0
    for _ in range(150):
        passed = (rng.random(30) < 0.6).astype(float)
        first, second = (np.round(passed + rng.normal(size=30), 1) for _ in range(2))
        found = label_difference(first, second + 0.5, passed, metric, Resampling(resamples=100))
        through += found.p_value is not None and found.p_value <= 0.1
    assert 2 <= through <= 27
