"""Figures of pass/fail labels against reference implementations; corrected pass rates against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from askance.prompts.errors import InputError
from askance.stats.pass_fail import area_under_curve, auc_kernel, pass_fail_figures, rate, wilson, wilson_size
from askance.stats.pass_rate import prediction_powered, rogan_gladen
from askance.stats.resampling import Resampling, Statistic
from askance.stats.threshold import binary_kappa, cut_kappas, fit_threshold


def judged(n: int, seed: int = 0, steps: int = 8) -> tuple[list[float], list[float]]:
    """Scores with ties, and labels that they tell something of."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.6).astype(float)
    scores = np.round(np.clip(0.5 + 0.2 * rng.normal(size=n) + 0.3 * (labels - 0.5), 0, 1) * steps) / steps
    return scores.tolist(), labels.tolist()


def test_the_figures_are_those_of_the_reference_implementations() -> None:
    scores, labels = judged(80)
    found = pass_fail_figures(scores, labels, 0.5)
    said = [float(score >= 0.5) for score in scores]
    assert found.kappa.value == pytest.approx(cohen_kappa_score(said, labels))
    assert found.auc.value == pytest.approx(roc_auc_score(labels, scores))
    both = sum(a == b == 1 for a, b in zip(said, labels, strict=True))
    low, high = proportion_confint(both, int(sum(labels)), method="wilson")
    rates = found.true_positive_rate
    assert (rates.value, rates.low, rates.high) == pytest.approx((both / sum(labels), low, high))
    assert sum(found.confusion) == 80 and found.confusion[0] == both
    assert found.accuracy.value == pytest.approx((found.confusion[0] + found.confusion[3]) / 80)


@pytest.mark.parametrize("seed", range(3))
def test_the_area_of_weighted_items_is_that_of_repeated_items(seed: int) -> None:
    scores, labels = judged(30, seed)
    times = np.random.default_rng(seed).integers(0, 3, 30)
    weighted = auc_kernel(np.array(scores), np.array(labels))(times[:, np.newaxis].astype(float))[0]
    assert weighted == pytest.approx(roc_auc_score(np.repeat(labels, times), np.repeat(scores, times)))


def test_kappa_at_every_cut_is_the_reference() -> None:
    scores, labels = judged(40)
    cuts = np.unique(scores)
    found = cut_kappas(np.array(scores), np.array(labels))(np.ones((40, 1)))[:, 0]
    wanted = [cohen_kappa_score(np.array(scores) >= cut, np.array(labels) == 1) for cut in cuts[1:]]
    assert found == pytest.approx(np.array(wanted))
    assert binary_kappa(*(np.array([each]) for each in (0.0, 0.0, 0.0, 9.0)))[0] == 0


def test_a_missing_score_or_label_is_left_out_and_a_label_that_is_none_refused() -> None:
    found = pass_fail_figures([0.9, None, 0.1, 0.8], [1, 1, 0, None], 0.5)
    assert found.accuracy.n == 2 and found.accuracy.value == 1
    with pytest.raises(InputError, match=r"there is a 0\.5"):
        pass_fail_figures([0.9, 0.1], [0.5, 0], 0.5)


def test_what_cannot_be_known_is_none_with_the_reason() -> None:
    found = pass_fail_figures([0.9, 0.8, 0.7, 0.2], [1, 1, 1, 1], 0.5)
    assert found.true_negative_rate.value is None
    assert found.true_negative_rate.reason == "people failed none of the examples"
    assert found.auc.value is None and found.kappa.value is None and found.kappa.reason
    perfect = pass_fail_figures([0.9] * 10 + [0.1] * 10, [1] * 10 + [0] * 10, 0.5)
    assert perfect.auc.value == 1 and perfect.auc.low is None and "no interval" in str(perfect.auc.reason)
    assert perfect.kappa.value == 1 and perfect.kappa.low is None
    assert perfect.accuracy.low is not None and perfect.accuracy.low < 0.9, "Wilson's interval is never of no width"


def test_wilson_can_be_read_back() -> None:
    for share, n in ((0.0, 12), (0.3, 40), (0.5, 25), (0.93, 31.5), (1.0, 8)):
        assert wilson_size(share, *wilson(share, n)) == pytest.approx(n)


def test_items_of_a_few_documents_make_a_wider_interval() -> None:
    hits = [float(document % 3 > 0) for document in range(12) for _ in range(10)]
    groups = [document for document in range(12) for _ in range(10)]
    alone, together = rate(hits), rate(hits, Resampling(groups))
    assert together.value == alone.value
    assert (together.high or 0) - (together.low or 0) > 2 * ((alone.high or 0) - (alone.low or 0))
    assert rate([1.0] * 120, Resampling(groups)).low == pytest.approx(wilson(1.0, 12)[0])


def test_the_threshold_parts_what_can_be_parted_and_is_half_where_nothing_can_be_fitted() -> None:
    scores = [0.6, 0.65, 0.7, 0.72, 0.9, 0.91, 0.95, 0.97]
    found = fit_threshold(scores, [0, 0, 0, 0, 1, 1, 1, 1])
    assert 0.72 < found.value < 0.9 and found.n == 8 and found.reason is None
    few, rare = fit_threshold(scores[:7], [0, 0, 0, 0, 1, 1, 1]), fit_threshold(scores, [0, 0, 1, 1, 1, 1, 1, 1])
    against = fit_threshold(scores, [1, 1, 1, 1, 0, 0, 0, 0])
    for each, why in ((few, "fewer than 8"), (rare, "rarer label"), (against, "better than chance")):
        assert (each.value, each.n) == (0.5, 0) and why in str(each.reason)
    assert fit_threshold([0.4] * 10, [0, 1] * 5).reason is not None


def test_a_fitted_threshold_holds_on_other_examples() -> None:
    """A judge that is far too severe: at 0.5 it fails nearly everything."""
    rng = np.random.default_rng(1)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = (rng.random(n) < 0.6).astype(float)
        return np.clip(0.2 + 0.08 * rng.normal(size=n) + 0.2 * (labels - 0.5), 0, 1), labels

    gains = []
    for _ in range(20):
        found = fit_threshold(*drawn(30))
        scores, labels = drawn(500)
        at = [cohen_kappa_score(scores >= each, labels == 1) for each in (found.value, 0.5)]
        gains.append(at[0] - at[1])
    assert np.mean(gains) > 0.5


def of(hits: int, n: int) -> Statistic:
    return Statistic(hits / n, n, *wilson(hits / n, n), None)


@pytest.mark.parametrize(("share", "tpr", "tnr"), [(0.1, 0.9, 0.8), (0.3, 0.85, 0.8), (0.95, 0.9, 0.9)])
def test_the_corrected_rate_holds_the_truth_where_that_of_the_judge_does_not(
    share: float, tpr: float, tnr: float
) -> None:
    """Rogan-Gladen: 200 files of 400 outputs, error rates from 120 labelled ones, nominally 95 %."""
    rng = np.random.default_rng(5)
    held = judge_held = 0
    for _ in range(200):
        own = of(rng.binomial(400, share * tpr + (1 - share) * (1 - tnr)), 400)
        found = rogan_gladen(own, of(rng.binomial(70, tpr), 70), of(rng.binomial(50, tnr), 50))
        assert found.value is not None and found.low is not None and found.high is not None
        held += found.low <= share <= found.high
        judge_held += (own.low or 0) <= share <= (own.high or 0)
    assert held / 200 >= 0.91
    assert judge_held / 200 < 0.9


def test_an_exact_judge_needs_no_correction_and_known_rates_give_the_closed_form() -> None:
    exact = rogan_gladen(of(300, 1000), of(50_000, 50_000), of(50_000, 50_000))
    assert exact.value == pytest.approx(0.3)
    assert (exact.low, exact.high) == pytest.approx(wilson(0.3, 1000), abs=0.002)
    found = rogan_gladen(of(500, 1000), of(900, 1000), of(700, 1000))
    assert found.value == pytest.approx((0.5 + 0.7 - 1) / (0.9 + 0.7 - 1)) and found.labelled == 2000


def test_a_judge_that_is_too_weak_is_not_corrected() -> None:
    found = rogan_gladen(of(50, 100), of(12, 20), of(11, 20))
    assert found.value is None and found.low is None
    assert "too weak to be corrected: TPR + TNR - 1 is 0.15" in str(found.reason)
    none = rogan_gladen(of(50, 100), Statistic(None, 0, None, None, "people passed none of the examples"), of(11, 20))
    assert none.value is None and none.reason == "people passed none of the examples"


def test_a_rate_beyond_what_errors_explain_is_put_at_the_end_and_said() -> None:
    found = rogan_gladen(of(2, 100), of(45, 50), of(40, 50))
    assert found.value == 0 and found.low == 0 and "fewer than its errors explain" in str(found.reason)


@pytest.mark.parametrize(("share", "tpr", "tnr"), [(0.5, 0.9, 0.9), (0.8, 0.8, 0.6), (0.3, 0.6, 0.5)])
def test_labels_of_a_part_give_the_rate_of_all(share: float, tpr: float, tnr: float) -> None:
    """Prediction-powered: 200 files of 340 outputs, 40 of them labelled, nominally 95 %; never wider than the labels."""
    rng = np.random.default_rng(6)
    held, widths, alone = 0, [], []
    for _ in range(200):
        people = (rng.random(340) < share).astype(float)
        said = np.where(people == 1, rng.random(340) < tpr, rng.random(340) >= tnr).astype(float)
        labels: list[float | None] = [*people[:40].tolist(), *[None] * 300]
        found = prediction_powered(said.tolist(), labels)
        assert found.value is not None and found.low is not None and found.high is not None
        held += found.low <= share <= found.high
        widths.append(found.high - found.low)
        low, high = wilson(float(people[:40].mean()), 40)
        alone.append(high - low)
    assert held / 200 >= 0.91
    assert np.mean(widths) <= np.mean(alone) * (0.8 if tpr + tnr > 1.7 else 1.02)


def test_labels_of_one_document_count_once_and_too_few_are_said() -> None:
    rng = np.random.default_rng(7)
    people = np.repeat((rng.random(80) < 0.5).astype(float), 4)
    labels = [*people[:200].tolist(), *[None] * 120]
    said = people.tolist()
    groups = [place // 4 for place in range(320)]
    noisy = [each if rng.random() < 0.8 else 1 - each for each in said]
    alone, together = prediction_powered(noisy, labels), prediction_powered(noisy, labels, Resampling(groups))
    assert (together.high or 0) - (together.low or 0) > 1.3 * ((alone.high or 0) - (alone.low or 0))
    few = prediction_powered(noisy, [*people[:20].tolist(), *[None] * 300])
    assert few.value is None and "too few labels: 20 labelled outputs" in str(few.reason)


def test_the_area_under_the_curve_needs_both_labels() -> None:
    assert area_under_curve([0.1, 0.2, 0.3], [0, 0, 0]).reason == "people passed none of the examples"
