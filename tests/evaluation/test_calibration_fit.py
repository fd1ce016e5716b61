"""Thresholds and Platt scaling fitted to wanted scores, against brute force, scipy and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.linear_model import LogisticRegression

from askance.evaluation.calibration import logit, sigmoid
from askance.evaluation.calibration_fit import (
    FITS,
    SHRUNK_BY,
    SHUFFLES,
    SMALLER_SIDE,
    Cut,
    best_cut,
    centre_and_spread,
    chance_of_cut,
    fit_accepted,
    fit_platt,
    fit_thresholds,
    leaning,
    platt,
)
from askance.evaluation.scoring import Targets, score_examples
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.verdicts import Verdict
from askance.stats.correlation import spearman
from tests.said import naming

from .conftest import ONE, TWO, answers, lenient, names, verdict, wanted

SAME = Checklist(
    questions=(Question(id="a", text="A?", dimension="one"), Question(id="b", text="B?", dimension="one")),
)

shares = st.floats(0, 1, width=32)
coarse = st.integers(0, 8).map(lambda number: number / 8)


def columns(least: int = 8) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    """P(yes) and wanted scores of the same length, full of ties or not."""
    values = st.one_of(shares, coarse)
    return st.integers(least, 25).flatmap(
        lambda n: st.tuples(st.lists(values, min_size=n, max_size=n), st.lists(values, min_size=n, max_size=n))
    )


def brute_force(p_yes: np.ndarray, truth: np.ndarray) -> float | None:
    found = []
    for low in np.unique(p_yes)[:-1]:
        yes = p_yes > low
        if min(yes.sum(), (~yes).sum()) >= SMALLER_SIDE:
            found.append(stats.pearsonr(yes.astype(float), truth)[0])
    return max(found) if found else None


@settings(max_examples=80, deadline=None)
@given(pair=columns())
def test_no_threshold_separates_better_than_the_one_found(pair: tuple[list[float], list[float]]) -> None:
    p_yes, truth = (np.array(column, dtype=float) for column in pair)
    assume(np.ptp(truth) > 1e-3)
    cut, best = best_cut(p_yes, truth), brute_force(p_yes, truth)
    if best is None:
        assert cut is None
    else:
        assert cut is not None
        assert cut.correlation == pytest.approx(best, abs=1e-9)
        yes = p_yes > cut.threshold
        assert stats.pearsonr(yes.astype(float), truth)[0] == pytest.approx(best, abs=1e-9)
        assert p_yes[~yes].max() <= cut.threshold < p_yes[yes].min()


def test_a_threshold_between_neighbouring_floats_still_separates_them() -> None:
    low, high = 0.3, np.nextafter(0.3, 1)
    p_yes = np.array([low] * 4 + [high] * 4)
    cut = best_cut(p_yes, np.array([0.0] * 4 + [1.0] * 4))
    assert cut is not None
    assert cut.correlation == pytest.approx(1.0)
    assert list(p_yes > cut.threshold) == [False] * 4 + [True] * 4


def test_of_equally_good_thresholds_the_one_closest_to_a_half_is_taken() -> None:
    p_yes = np.repeat([0.1, 0.4, 0.9], 3)  # both cuts correlate alike
    cut = best_cut(p_yes, np.repeat([0.0, 0.5, 1.0], 3))
    assert cut is not None
    assert cut.threshold == pytest.approx(0.65)
    mirrored = best_cut(1 - p_yes, np.repeat([1.0, 0.5, 0.0], 3))
    assert mirrored is not None
    assert mirrored.threshold == pytest.approx(0.35)


def test_a_threshold_never_rests_on_one_or_two_examples() -> None:
    p_yes = np.linspace(0.1, 0.9, 12)
    cut = best_cut(p_yes, np.array([0.0] + [1.0] * 11))
    assert cut is not None
    assert (p_yes <= cut.threshold).sum() == SMALLER_SIDE


def test_the_threshold_of_a_lenient_judge_lies_far_above_a_half_and_its_answers_then_rank() -> None:
    p_yes, truth = lenient()
    examples = names(len(truth))
    calibration = fit_thresholds(answers(a=p_yes), examples, ONE, wanted(one=truth))
    fit = calibration.questions["a"]
    assert fit.reason is None
    assert fit.threshold is not None and fit.threshold > 0.9
    assert (calibration.model, calibration.prompt, calibration.target, calibration.n) == ("m", "p", "human", 40)
    before = score_examples(examples, ONE, answers(a=p_yes), soft=False)
    after = score_examples(examples, ONE, calibration.apply(answers(a=p_yes)), soft=False)
    assert spearman([each.overall for each in before], truth).value is None  # all yes
    assert (spearman([each.overall for each in after], truth).value or 0.0) > 0.5


@pytest.mark.parametrize(
    ("p_yes", "truth", "reason"),
    [
        ([0.9] * 12, np.linspace(0, 1, 12), "probabilities of yes are constant (all 0.9)"),
        (np.linspace(0, 1, 12), [0.25] * 12, "wanted scores on 'one' are constant (all 0.25)"),
        (np.linspace(0, 1, 7), np.linspace(0, 1, 7), "only 7 examples have a verdict"),
        (np.linspace(0, 1, 12), np.linspace(1, 0, 12), "run against the wanted scores at every threshold"),
        ([0.1] * 2 + [0.9] * 10, [0.0] * 2 + [1.0] * 10, "no threshold leaves 3 of the 12 examples on either side"),
        (np.linspace(0, 1, 12), [0, 1] * 6, "no threshold is better than a coin"),
        (np.linspace(0, 1, 12), [None] * 12, "only 0 examples have a verdict and a wanted score on 'one'"),
    ],
)
def test_a_question_that_no_threshold_helps_stays_at_a_half_and_says_why(p_yes: Any, truth: Any, reason: str) -> None:
    calibration = fit_thresholds(answers(a=p_yes), names(len(p_yes)), ONE, wanted(one=truth))
    assert calibration.questions["a"].threshold == 0.5
    assert reason in calibration.reasons["a"]


def test_thresholds_are_moved_by_noise_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(3)
    moved = 0
    for _ in range(200):
        p_yes, truth = rng.uniform(size=(2, 20))
        cut = best_cut(p_yes, truth)
        assert cut is not None
        moved += chance_of_cut(p_yes, truth, cut) <= 0.1
    assert moved / 200 < 0.15  # 0.1 and two and a half standard errors


@settings(max_examples=60, deadline=None)
@given(pair=columns(), ridge=st.sampled_from([0.05, 1.0, 5.0]))
def test_platt_reaches_the_minimum_that_a_general_optimiser_finds(
    pair: tuple[list[float], list[float]], ridge: float
) -> None:
    p_yes, truth = (np.array(column, dtype=float) for column in pair)
    z = logit(p_yes)
    assume(np.ptp(z) > 1e-3)

    def loss(at: np.ndarray) -> float:
        x = at[0] * z + at[1]
        return float(np.sum(np.logaddexp(0, x) - truth * x) + ridge / 2 * ((at[0] - 1) ** 2 + at[1] ** 2))

    def slopes(at: np.ndarray) -> np.ndarray:
        error = sigmoid(at[0] * z + at[1]) - truth
        return np.array([error @ z + ridge * (at[0] - 1), error.sum() + ridge * at[1]])

    found = platt(p_yes, truth, ridge)
    reference = optimize.minimize(loss, [1.0, 0.0], jac=slopes, bounds=[(0, None), (None, None)], method="L-BFGS-B")
    assert found[0] >= 0
    assert loss(np.array(found)) <= reference.fun + 1e-9
    shift = slopes(np.array(found))[1]
    slope = slopes(np.array(found))[0]
    assert abs(shift) < 1e-6
    assert abs(slope) < 1e-6 if found[0] > 0 else slope > -1e-6  # the conditions of a minimum on a >= 0


@pytest.mark.parametrize("seed", range(5))
def test_platt_without_a_prior_is_scikit_learns_logistic_regression_with_soft_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=60)
    p_yes = sigmoid(2.0 + 2.5 * (truth - 0.5) + rng.normal(size=60))
    z = logit(p_yes)
    rows = np.concatenate([z, z])[:, None]  # every example once as yes and once as no, weighted by the wanted score
    labels = np.repeat([1, 0], len(z))
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    reference.fit(rows, labels, sample_weight=np.concatenate([truth, 1 - truth]))
    slope, shift = platt(p_yes, truth, ridge=1e-10)
    assert slope == pytest.approx(float(reference.coef_[0, 0]), abs=1e-5)
    assert shift == pytest.approx(float(reference.intercept_[0]), abs=1e-5)


def test_a_strong_prior_leaves_p_yes_as_it_is() -> None:
    p_yes, truth = lenient()
    assert platt(p_yes, truth, ridge=1e9) == pytest.approx((1.0, 0.0), abs=1e-6)


def test_the_true_slope_and_shift_are_recovered_from_many_examples() -> None:
    p_yes = np.random.default_rng(0).uniform(0.01, 0.99, 20_000)
    assert platt(p_yes, sigmoid(0.4 * logit(p_yes) - 1.5)) == pytest.approx((0.4, -1.5), abs=2e-3)


def test_p_yes_of_exactly_0_and_1_can_be_scaled() -> None:
    p_yes = np.array([0.0, 1.0] * 10)
    slope, shift = platt(p_yes, np.array([0.2, 0.7] * 10))
    assert sigmoid(slope * logit(p_yes[:2]) + shift) == pytest.approx([0.2, 0.7], abs=0.02)


def test_a_question_that_runs_against_the_wanted_scores_is_flattened_not_turned_round() -> None:
    truth = np.linspace(0, 1, 20)
    calibration = fit_platt(answers(a=1 - truth), names(20), ONE, wanted(one=truth))
    fit = calibration.questions["a"]
    assert fit.slope == 0.0
    assert "runs against" in calibration.reasons["a"]
    scaled = {each.p_yes for each in calibration.apply(answers(a=1 - truth))}
    assert len(scaled) == 1
    assert scaled.pop() == pytest.approx(0.5, abs=0.01)


def test_a_constant_p_yes_is_shifted_to_the_wanted_mean_and_its_slope_kept() -> None:
    calibration = fit_platt(answers(a=[0.95] * 40), names(40), ONE, wanted(one=[0.2, 0.6] * 20))
    assert calibration.questions["a"].slope == 1.0
    assert "only the shift" in calibration.reasons["a"]
    assert calibration.apply(answers(a=[0.95]))[0].p_yes == pytest.approx(0.4, abs=0.1)


def test_with_fewer_than_eight_examples_p_yes_is_not_scaled() -> None:
    calibration = fit_platt(answers(a=[0.9] * 7), names(7), ONE, wanted(one=[0.1] * 7))
    assert (calibration.questions["a"].slope, calibration.questions["a"].shift) == (1.0, 0.0)
    assert "only 7 examples" in calibration.reasons["a"]
    assert calibration.apply([verdict("e0", "a", 0.9)])[0].p_yes == pytest.approx(0.9)


@settings(max_examples=60, deadline=None)
@given(pair=columns())
def test_platt_never_turns_the_order_of_two_examples_round(pair: tuple[list[float], list[float]]) -> None:
    p_yes, truth = pair
    calibration = fit_platt(answers(a=p_yes), names(len(p_yes)), ONE, wanted(one=truth))
    scaled = [each.p_yes for each in calibration.apply(answers(a=p_yes))]
    order = np.argsort(p_yes, kind="stable")
    assert (np.diff(np.array(scaled, dtype=float)[order]) >= 0).all()
    assert all(0.0 <= value <= 1.0 for value in scaled if value is not None)


def test_with_two_questions_the_one_that_tells_nothing_loses_its_say() -> None:
    rng = np.random.default_rng(1)
    truth = rng.uniform(size=80)
    telling = sigmoid(6 * (truth - 0.5))
    noise = sigmoid(2 * rng.normal(size=80))
    calibration = fit_platt(answers(a=telling, b=noise), names(80), SAME, wanted(one=truth))
    assert (calibration.questions["a"].slope or 0) > 5 * (calibration.questions["b"].slope or 0)


def test_each_question_is_held_to_its_own_dimension() -> None:
    up, down = np.linspace(0, 1, 20), np.linspace(1, 0, 20)
    calibration = fit_thresholds(answers(a=up, b=up), names(20), TWO, wanted(one=up, two=down))
    assert calibration.questions["a"].correlation == pytest.approx(0.867, abs=0.01)
    assert "run against" in calibration.reasons["b"]


def test_where_only_overall_is_wanted_every_question_is_held_to_it() -> None:
    up = np.linspace(0, 1, 20)
    calibration = fit_thresholds(answers(a=up, b=up), names(20), TWO, wanted(overall=up))
    assert not calibration.reasons
    assert calibration.questions["b"].n == 20


def test_a_dimension_that_nobody_rated_leaves_its_questions_alone() -> None:
    up = np.linspace(0, 1, 20)
    calibration = fit_platt(answers(a=up, b=up), names(20), TWO, wanted(one=up))
    assert "'two'" in calibration.reasons["b"]
    assert (calibration.questions["b"].slope, calibration.questions["b"].shift) == (1.0, 0.0)


def test_examples_without_an_answer_or_a_wanted_score_are_left_out_of_the_fit() -> None:
    up = list(np.linspace(0, 1, 20))
    holes: list[float | None] = [*up[:18], None, up[19]]
    unrated: list[float | None] = [None, *up[1:]]
    calibration = fit_thresholds(answers(a=holes), names(20), ONE, wanted(one=unrated))
    assert calibration.questions["a"].n == 18
    alone = fit_thresholds(answers(a=[None, *holes[1:]]), names(20), ONE, wanted(one=up))
    assert alone.questions["a"] == calibration.questions["a"]


def test_verdicts_on_other_examples_play_no_part() -> None:
    p_yes, truth = lenient()
    some = names(30)
    all_of_them = fit_platt(answers(a=p_yes), some, ONE, wanted(one=truth))
    assert all_of_them == fit_platt(answers(a=p_yes[:30]), some, ONE, wanted(one=truth))
    elsewhere = Verdict("e39", "z", "another judge", "p", True, 0.9)
    assert all_of_them == fit_platt([*answers(a=p_yes[:30]), elsewhere], some, ONE, wanted(one=truth))


def test_replicates_are_averaged_before_the_fit_and_before_it_is_applied() -> None:
    p_yes, truth = lenient()
    noise = np.random.default_rng(5).uniform(-0.02, 0.02, len(truth))
    twice = [
        verdict(f"e{number}", "a", float(mean + sign * off), replicate)
        for number, (mean, off) in enumerate(zip(p_yes - 0.03, noise, strict=True))
        for replicate, sign in enumerate((1, -1))
    ]
    target = wanted(one=truth)
    once = fit_platt(answers(a=p_yes - 0.03), names(40), ONE, target).questions["a"]
    both = fit_platt(twice, names(40), ONE, target)
    assert both.questions["a"].slope == pytest.approx(once.slope)
    assert both.questions["a"].shift == pytest.approx(once.shift)
    applied = both.apply(twice[:2])
    assert applied[0].p_yes == applied[1].p_yes
    assert [each.replicate for each in applied] == [0, 1]
    assert applied[0].p_yes == pytest.approx(
        float(sigmoid((once.slope or 0) * logit(np.array([p_yes[0] - 0.03])) + (once.shift or 0))[0])
    )


def test_an_answer_without_p_yes_counts_as_its_answer() -> None:
    truth = [0.1] * 6 + [0.9] * 6
    hard = [Verdict(f"e{number}", "a", "m", "p", number >= 6) for number in range(12)]
    assert fit_thresholds(hard, names(12), ONE, wanted(one=truth)).questions["a"].correlation == pytest.approx(1.0)


@pytest.mark.parametrize("fit", [fit_thresholds, fit_platt])
def test_verdicts_of_several_judges_or_none_or_on_other_questions_are_refused(fit: Any) -> None:
    target = wanted(one=[0.5] * 10)
    with pytest.raises(InputError, match=naming("no verdicts")):
        fit([], names(10), ONE, target)
    mixed = [verdict("e0", "a", 0.5), Verdict("e1", "a", "other", "p", True, 0.5)]
    with pytest.raises(InputError, match=r"by 2 judges \(m with prompt p, other with prompt p\)"):
        fit(mixed, names(10), ONE, target)
    with pytest.raises(InputError, match=naming("'e0'", "'z'", "checklist")):
        fit([verdict("e0", "z", 0.5)], names(10), ONE, target)


# what a question leans on the others, and what it says of accepted outputs


@pytest.mark.parametrize("n", [8, 20, 200])
def test_a_leaning_is_the_least_squares_slope_shrunk_as_by_five_more_outputs_that_lean_on_nothing(n: int) -> None:
    rng = np.random.default_rng(n)
    others = 3.0 + rng.normal(size=n)
    values = 0.7 * others + 0.5 * rng.normal(size=n) - 2.0
    slope = stats.linregress(others, values).slope
    found = leaning(values, others)
    assert SHRUNK_BY == 5 and found == pytest.approx(slope * n / (n + 5))
    holed = np.append(others, [np.nan] * 4), np.append(values, [50.0, -80.0, 10.0, 0.0])
    assert leaning(holed[1], holed[0]) == pytest.approx(found), "what is missing beside a question is no zero"


@pytest.mark.parametrize(("n", "slope", "wanted"), [(7, 1.0, 0.0), (8, 1.0, 8 / 13), (40, 3.0, 1.5), (40, -1.0, 0.0)])
def test_a_leaning_needs_eight_outputs_and_stays_within_its_bounds(n: int, slope: float, wanted: float) -> None:
    others = np.linspace(-2, 2, n)
    assert leaning(slope * others, others) == pytest.approx(wanted)


def test_of_fewer_than_twenty_outputs_mean_and_deviation_are_taken_and_then_what_one_mistake_moves_little() -> None:
    rng = np.random.default_rng(1)
    few, many = 2 + rng.normal(size=19), 2 + rng.normal(size=20)
    assert centre_and_spread(few) == pytest.approx((few.mean(), few.std(ddof=1)))
    robust = stats.median_abs_deviation(many, scale="normal")
    assert centre_and_spread(many) == pytest.approx((np.median(many), robust), rel=1e-4)
    for alike in (np.full(10, 1.5), np.full(30, 1.5)):
        assert centre_and_spread(alike) == pytest.approx((1.5, 0.3))
    mistaken = np.append(2 + 0.5 * rng.normal(size=39), -40.0)
    assert centre_and_spread(mistaken)[0] == pytest.approx(2, abs=0.3) and centre_and_spread(mistaken)[1] < 1


@pytest.mark.parametrize("good", ["yes", "no"])
def test_an_output_counts_as_half_bad_two_and_a_half_deviations_below_the_accepted_ones(good: Any) -> None:
    """Ten outputs that are at least as good as the mean one say where the centre is; the others say nothing of it."""
    checklist = Checklist(questions=(Question(id="a", text="A?", dimension="one", good=good),))
    rng = np.random.default_rng(2)
    odds, truth = 1.5 + rng.normal(size=20), np.repeat([0.9, 0.1], 10)
    said = sigmoid(odds if good == "yes" else -odds)
    calibration = fit_accepted(answers(a=said), names(20), checklist, wanted(one=truth))
    fit, centre, spread = calibration.questions["a"], odds[:10].mean(), odds[:10].std(ddof=1)
    assert fit.slope is not None and fit.shift is not None and fit.lean is None
    assert fit.slope == pytest.approx(2 / spread) and fit.slope * (centre - 2.5 * spread) + fit.shift == pytest.approx(
        0
    )
    at = {name: sigmoid(np.array([centre - far * spread])) for name, far in (("half", 2.5), ("fine", 0.0))}
    for name, wanted_good in (("half", 0.5), ("fine", float(sigmoid(np.array([5.0]))[0]))):
        p_yes = float(at[name][0]) if good == "yes" else 1 - float(at[name][0])
        [read] = calibration.apply([verdict("e0", "a", p_yes)])
        assert read.p_yes == pytest.approx(wanted_good if good == "yes" else 1 - wanted_good)


@pytest.mark.parametrize("n", [12, 40])
def test_centre_and_spread_are_of_what_is_left_beside_the_other_questions(n: int) -> None:
    rng = np.random.default_rng(3)
    shared = 1.5 * rng.normal(size=2 * n)
    odds = {name: 1 + shared + 0.5 * rng.normal(size=2 * n) for name in "ab"}
    truth = np.repeat([0.9, 0.1], n)
    said = {name: sigmoid(each) for name, each in odds.items()}
    found = fit_accepted(answers(**said), names(2 * n), SAME, wanted(one=truth)).questions
    for mine, other in ("ab", "ba"):
        values, others = odds[mine][:n], odds[other][:n]
        lean = leaning(values, others)
        centre, spread = centre_and_spread(values - lean * others)
        fit = found[mine]
        assert lean > 0.3 and fit.lean == pytest.approx(lean) and fit.slope == pytest.approx(2 / spread)
        assert fit.shift == pytest.approx(2 / spread * (2.5 * spread - centre))


@pytest.mark.parametrize("accepted", [3, 4])
def test_outputs_are_accepted_by_the_mean_of_all_that_people_rated_and_four_are_needed(accepted: int) -> None:
    """Half of the outputs have no verdict; they say all the same what is usual."""
    truth = [0.6] * accepted + [0.2] * (10 - accepted) + [1.0] * 10
    said = [0.9, 0.8, 0.7, 0.95, *[0.5] * 6, *[None] * 10]
    usual = np.mean(truth)
    assert (usual > 0.6) and fit_accepted(answers(a=said), names(20), ONE, wanted(one=truth)).reasons
    low = [0.6] * accepted + [0.2] * (10 - accepted) + [0.1] * 10
    fit = fit_accepted(answers(a=said), names(20), ONE, wanted(one=low)).questions["a"]
    assert (fit.slope != 1.0) == (accepted == 4) and (fit.reason is None) == (accepted == 4) and fit.n == 10


# chance, and what a fit may look at


def test_the_chance_of_a_threshold_is_that_of_shuffled_scores_and_never_none() -> None:
    p_yes = np.linspace(0.05, 0.95, 24)
    clear = (p_yes > 0.5).astype(float)
    cut = best_cut(p_yes, clear)
    assert cut is not None and chance_of_cut(p_yes, clear, cut) == 1 / (1 + SHUFFLES)
    assert chance_of_cut(p_yes, clear, Cut(0.5, -1.0)) == 1.0
    assert chance_of_cut(p_yes, clear, Cut(0.5, 1.1)) == 1 / (1 + SHUFFLES), "of 200 shuffles none says 0"
    rng = np.random.default_rng(4)
    truth = np.round(4 * np.clip(0.5 + 0.5 * (p_yes - 0.5) + 0.3 * rng.normal(size=24), 0, 1)) / 4
    cut = best_cut(p_yes, truth)
    assert cut is not None
    reached = [best_cut(p_yes, rng.permutation(truth)) for _ in range(1500)]
    exact = np.mean([each is not None and each.correlation >= cut.correlation - 1e-9 for each in reached])
    assert 0.02 < exact < 0.6 and chance_of_cut(p_yes, truth, cut) == pytest.approx(exact, abs=0.08)


def test_scores_of_two_values_are_as_likely_as_exact_counting_says() -> None:
    """One cut alone: of twelve outputs four are good, and the five above the cut hold three of them or more by chance."""
    p_yes = np.array([0.2] * 7 + [0.8] * 5)
    truth = np.array([0.0] * 6 + [1.0] + [1.0] * 3 + [0.0] * 2)
    cut = best_cut(p_yes, truth)
    assert cut is not None
    exact = float(stats.hypergeom.sf(2, 12, 4, 5))  # ties with what was found count as well
    assert chance_of_cut(p_yes, truth, cut) == pytest.approx(exact, abs=0.06)
    assert float(stats.hypergeom.sf(3, 12, 4, 5)) < exact - 0.1


def test_a_question_moves_where_a_tenth_of_shuffled_scores_or_fewer_are_parted_as_well() -> None:
    rng = np.random.default_rng(10)
    chances = {True: [], False: []}  # type: ignore[var-annotated]
    for _ in range(60):
        truth = rng.random(20)
        p_yes = np.clip(0.5 + 0.3 * (truth - 0.5) + 0.15 * rng.normal(size=20), 0, 1)
        cut = best_cut(p_yes, truth)
        assert cut is not None
        fit = fit_thresholds(answers(a=p_yes), names(20), ONE, wanted(one=truth)).questions["a"]
        chances[fit.reason is None].append(chance_of_cut(p_yes, truth, cut))
        assert fit.threshold == (pytest.approx(cut.threshold) if fit.reason is None else 0.5)
    assert max(chances[True]) <= 0.1 < min(chances[False]) < 0.2 < max(chances[False])


def test_outputs_that_share_a_document_move_a_question_that_says_nothing_no_more_often() -> None:
    """P(yes) and scores depend on the document alone, each of the two by itself."""
    rng = np.random.default_rng(11)
    codes = np.repeat(np.arange(10), 4)
    moved = {True: 0, False: 0}
    for _ in range(150):
        p_yes, truth = (rng.random(10)[codes] + 0.02 * rng.random(40) for _ in range(2))
        for together, documents in ((True, codes), (False, None)):
            cut = best_cut(p_yes, truth, documents)
            moved[together] += cut is not None and chance_of_cut(p_yes, truth, cut, documents) <= 0.1
    assert moved[True] <= 0.16 * 150 and moved[False] > 0.4 * 150


def test_each_example_five_times_in_its_document_leaves_every_threshold_where_it_was() -> None:
    rng = np.random.default_rng(12)
    for _ in range(20):
        truth = rng.random(20)
        p_yes = np.clip(0.5 + 0.4 * (truth - 0.5) + 0.2 * rng.normal(size=20), 0, 1)
        codes, wide = np.arange(20) // 2, [np.repeat(each, 5) for each in (p_yes, truth, np.arange(20) // 2)]
        once, again = best_cut(p_yes, truth, codes), best_cut(wide[0], wide[1], wide[2])
        assert once is not None and again is not None
        assert (again.threshold, again.correlation) == pytest.approx((once.threshold, once.correlation))
        assert chance_of_cut(*wide[:2], again, wide[2]) == chance_of_cut(p_yes, truth, once, codes)


@pytest.mark.parametrize("method", FITS)
def test_no_fit_sees_a_verdict_or_a_score_of_an_example_that_it_is_not_given(method: str) -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(40)
    said = {name: sigmoid(3 * (truth - 0.5) + rng.normal(size=40)) for name in "ab"}
    known = FITS[method](
        answers(**{name: each[:24] for name, each in said.items()}), names(24), SAME, wanted(one=truth[:24])
    )
    assert known.n == 24 and {each.n for each in known.questions.values()} == {24}
    for others in (truth, 1 - truth, np.round(truth)):
        told = wanted(one=[*truth[:24], *others[24:]])
        turned = answers(**{name: [*each[:24], *(1 - each[24:])] for name, each in said.items()})
        assert FITS[method](turned, names(24), SAME, told) == known
    spied = _Spied(wanted(one=truth))
    FITS[method](answers(**said), names(24), SAME, spied)
    assert spied.asked == {each.id for each in names(24)}


class _Spied(Targets):
    """Wanted scores that note whose was asked for."""

    def __init__(self, known: Targets) -> None:
        asked: set[str] = set()

        class Noting(dict):  # type: ignore[type-arg]
            def __getitem__(self, example: str) -> Any:
                asked.add(example)
                return super().__getitem__(example)

        super().__init__(known.kind, known.dimensions, Noting(known.wanted))
        object.__setattr__(self, "asked", asked)

    asked: set[str]


@pytest.mark.parametrize("method", FITS)
def test_what_is_fitted_to_coin_flips_gains_nothing_on_other_examples(method: str) -> None:
    rng = np.random.default_rng(8)
    gains = []
    for _ in range(60):
        flips, said = (rng.random(60) < 0.5).astype(float), {name: rng.uniform(size=60) for name in "ab"}
        calibration = FITS[method](answers(**said), names(30), SAME, wanted(one=flips))
        scores = [
            [each.overall for each in score_examples(names(60), SAME, verdicts)][30:]
            for verdicts in (answers(**said), calibration.apply(answers(**said)))
        ]
        before, after = (spearman(each, flips[30:]).value or 0.0 for each in scores)
        gains.append(after - before)
    assert np.std(gains) > 0, "some fit must move"
    assert abs(np.mean(gains)) < 2.6 * np.std(gains) / np.sqrt(60)


@pytest.mark.parametrize("method", FITS)
def test_every_fit_holds_a_question_to_its_own_dimension(method: str) -> None:
    rng = np.random.default_rng(9)
    up = rng.random(40)
    said = sigmoid(4 * (up - 0.5) + 0.3 * rng.normal(size=40))
    both = FITS[method](answers(a=said, b=said), names(40), TWO, wanted(one=up, two=1 - up)).questions
    swapped = FITS[method](answers(a=said, b=said), names(40), TWO, wanted(one=1 - up, two=up)).questions
    kept = ("threshold", "slope", "shift")
    assert [getattr(both["a"], each) for each in kept] == [getattr(swapped["b"], each) for each in kept]
    assert [getattr(both["a"], each) for each in kept] != [getattr(both["b"], each) for each in kept]
