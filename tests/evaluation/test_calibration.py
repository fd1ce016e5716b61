from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.linear_model import LogisticRegression

from askance.evaluation.calibration import Calibration, QuestionCalibration, load_calibration, logit, sigmoid
from askance.evaluation.calibration_fit import SMALLER_SIDE, best_cut, chance_of_cut, fit_platt, fit_thresholds, platt
from askance.evaluation.scoring import Targets, human_targets, score_examples
from askance.optimizer.modes.calibrations import compare_calibrations
from askance.optimizer.yardsticks import CorrelationYardstick
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from askance.stats.correlation import spearman

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ONE = Checklist(questions=(Question(id="a", text="A?", dimension="one"),))
TWO = Checklist(
    questions=(Question(id="a", text="A?", dimension="one"), Question(id="b", text="B?", dimension="two")),
)
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


def names(n: int) -> list[Example]:
    return [Example(id=f"e{number}", input="in", output="out") for number in range(n)]


def verdict(example: str, question: str, p_yes: float | None, replicate: int = 0, **fields: Any) -> Verdict:
    if p_yes is None:
        return Verdict(example, question, "m", "p", None, status="api_error", error="down", replicate=replicate)
    return Verdict(example, question, "m", "p", p_yes >= 0.5, p_yes, "logprob", replicate=replicate, **fields)


def answers(**by_question: Any) -> list[Verdict]:
    return [
        verdict(f"e{number}", question, None if p_yes is None else float(p_yes))
        for question, column in by_question.items()
        for number, p_yes in enumerate(column)
    ]


def wanted(**by_dimension: Any) -> Targets:
    length = len(next(iter(by_dimension.values())))
    rows = {
        f"e{number}": {
            name: None if column[number] is None else float(column[number]) for name, column in by_dimension.items()
        }
        for number in range(length)
    }
    return Targets("human", tuple(by_dimension), rows)


def lenient(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A judge that says yes to nearly everything, though its P(yes) follows the wanted scores."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=n)
    return sigmoid(3.0 + 2.0 * (truth - 0.5) + 0.3 * rng.normal(size=n)), truth


def brute_force(p_yes: np.ndarray, truth: np.ndarray) -> float | None:
    found = []
    for low in np.unique(p_yes)[:-1]:
        yes = p_yes > low
        if min(yes.sum(), (~yes).sum()) >= SMALLER_SIDE:
            found.append(stats.pearsonr(yes.astype(float), truth)[0])
    return max(found) if found else None


# Thresholds


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


# Platt


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


# Fitting over a checklist


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
    with pytest.raises(InputError, match="There are no verdicts"):
        fit([], names(10), ONE, target)
    mixed = [verdict("e0", "a", 0.5), Verdict("e1", "a", "other", "p", True, 0.5)]
    with pytest.raises(InputError, match=r"by 2 judges \(m with prompt p, other with prompt p\)"):
        fit(mixed, names(10), ONE, target)
    with pytest.raises(InputError, match="answers 'z', which the checklist does not ask"):
        fit([verdict("e0", "z", 0.5)], names(10), ONE, target)


# Applying


def calibrated(method: str, **parameters: Any) -> Calibration:
    fit = QuestionCalibration(n=10, **parameters)
    return Calibration(method=method, model="m", prompt="p", target="human", n=10, questions={"answer_ok": fit})


def test_thresholded_verdicts_are_hard_and_everything_else_is_kept() -> None:
    calibration = calibrated("thresholds", threshold=0.8)
    low, high = (verdict("e0", "answer_ok", p, explanation="because") for p in (0.8, 0.81))
    assert calibration.apply([low])[0] == Verdict("e0", "answer_ok", "m", "p", False, 0.0, "hard", "because")
    assert calibration.apply([high])[0] == Verdict("e0", "answer_ok", "m", "p", True, 1.0, "hard", "because")
    assert low.p_yes == 0.8  # the verdict given is as it was


def test_scaled_verdicts_keep_where_p_yes_comes_from_and_answer_by_it() -> None:
    calibration = calibrated("platt", slope=0.5, shift=-2.0)
    found = calibration.apply([verdict("e0", "answer_ok", 0.9)])[0]
    assert found.p_yes == pytest.approx(1 / (1 + np.exp(-(0.5 * np.log(9) - 2))))
    assert found.answer is False
    assert found.p_yes_from == "logprob"


def test_each_verdict_gets_the_parameters_of_its_own_question_in_the_order_given() -> None:
    fits = {name: QuestionCalibration(threshold=at, n=10) for name, at in (("a", 0.2), ("b", 0.8))}
    calibration = Calibration(method="thresholds", model="m", prompt="p", target="human", n=10, questions=fits)
    found = calibration.apply(verdict(example, question, 0.5) for example in ("e1", "e0") for question in "ba")
    assert [(each.example, each.question, each.answer) for each in found] == [
        ("e1", "b", False),
        ("e1", "a", True),
        ("e0", "b", False),
        ("e0", "a", True),
    ]


@pytest.mark.parametrize("parameters", [{"threshold": 0.8}, {"slope": 0.5, "shift": -2.0}])
def test_verdicts_without_an_answer_are_left_alone(parameters: dict[str, float]) -> None:
    calibration = calibrated("platt" if "slope" in parameters else "thresholds", **parameters)
    failed = verdict("e0", "answer_ok", None)
    assert calibration.apply([failed, verdict("e1", "answer_ok", 0.9)])[0] is failed


def test_a_question_that_is_not_calibrated_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match=r"knows no question 'answer_0k' \(example 'e0'\). Did you mean 'answer_ok'\?"):
        calibrated("thresholds", threshold=0.5).apply([verdict("e0", "answer_0k", 0.4)])


def test_verdicts_by_another_model_or_prompt_are_refused() -> None:
    calibration = calibrated("thresholds", threshold=0.5)
    for model, prompt in (("other", "p"), ("m", "edited")):
        with pytest.raises(InputError, match=f"'e0' is by {model} with the prompt {prompt}"):
            calibration.apply([Verdict("e0", "answer_ok", model, prompt, True, 0.9)])


# The file


@pytest.mark.parametrize("fit", [fit_thresholds, fit_platt])
def test_a_calibration_survives_its_file(fit: Any, tmp_path: Path) -> None:
    p_yes, truth = lenient()
    target = wanted(one=truth, two=[None] * len(truth))
    calibration = fit(answers(a=p_yes, b=p_yes), names(40), TWO, target)
    assert calibration.reasons.keys() == {"b"}
    path = tmp_path / "calibration.json"
    path.write_text(calibration.to_json())
    assert load_calibration(path) == calibration
    assert load_calibration(path).apply(answers(a=p_yes)) == calibration.apply(answers(a=p_yes))
    assert json.loads(path.read_text())["schema"] == "askance.calibration/1"


GOOD = json.loads(calibrated("thresholds", threshold=0.5).to_json())
SLOPED = {"slope": 1.0, "shift": 0.0, "n": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "isotonic"}, "field 'method'"),
        ({"model": None}, "field 'model'"),
        ({"n": -1}, "field 'n'"),
        ({"schema": "askance.weights/1"}, "field 'schema': 'askance.calibration/1' is needed"),
        ({"extra": 1}, "the field 'extra' is not known"),
        ({"questions": {}}, "field 'questions'"),
        ({"questions": {"a": {"threshold": 1.5, "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": "0.5", "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": float("nan"), "n": 3}}}, "field 'questions.a.threshold'"),
        ({"questions": {"a": {"threshold": 0.5}}}, "the field 'questions.a.n' is missing"),
        ({"questions": {"a": {"n": 3}}}, "'questions.a': the method thresholds takes 'threshold'"),
        ({"questions": {"a": SLOPED}}, "'questions.a': the method thresholds takes 'threshold'"),
        ({"method": "platt"}, "'questions.answer_ok': the method platt takes 'slope' and 'shift'"),
        ({"method": "platt", "questions": {"a": SLOPED | {"slope": -1.0}}}, "field 'questions.a.slope'"),
    ],
)
def test_a_faulty_file_is_refused_by_name_and_field(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(InputError) as raised:
        load_calibration(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "not valid JSON"), ("[]", "an object is needed"), ("[" * 100_000, "not valid JSON")],
)
def test_a_file_that_is_no_calibration_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_calibration(path)
    with pytest.raises(InputError, match="there is no such calibration"):
        load_calibration(tmp_path / "other.json")


# The comparison


def split(p_yes: np.ndarray, truth: np.ndarray, at: int = 40, **settings: Any) -> Any:
    examples = names(len(truth))
    return compare_calibrations(
        answers(a=p_yes),
        answers(a=p_yes),
        development=examples[:at],
        held_out=examples[at:],
        checklist=ONE,
        yardstick=CorrelationYardstick(wanted(one=truth), resamples=200, seed=42),
        **settings,
    )


def test_calibration_takes_a_lenient_judge_s_drift_away_and_leaves_its_ranking() -> None:
    found = split(*lenient(120))
    assert found.uncalibrated.errors.bias > 0.4
    assert abs(found.platt.errors.bias) < 0.1
    assert found.platt.errors.mean_absolute < found.uncalibrated.errors.mean_absolute / 2
    assert found.platt.measure["spearman"] == pytest.approx(found.uncalibrated.measure["spearman"], abs=1e-12)
    assert found.platt.gain.value == pytest.approx(0.0, abs=1e-12)


def test_the_figures_are_those_of_the_held_out_examples() -> None:
    p_yes, truth = lenient(120)
    found = split(p_yes, truth)
    threshold = found.thresholds.calibration.questions["a"].threshold
    yes = (p_yes[40:] > threshold).astype(float)
    assert found.thresholds.measure["spearman"] == pytest.approx(stats.spearmanr(yes, truth[40:])[0])
    assert found.thresholds.errors.mean_absolute == pytest.approx(np.abs(yes - truth[40:]).mean())
    assert found.thresholds.errors.bias == pytest.approx(yes.mean() - truth[40:].mean())
    assert found.uncalibrated.measure["spearman"] == pytest.approx(stats.spearmanr(p_yes[40:], truth[40:])[0])
    assert found.uncalibrated.dimensions["one"].n == 80


def test_with_hard_scores_thresholds_win_over_a_judge_that_says_yes_to_everything() -> None:
    found = split(*lenient(120), soft=False)
    row = found.to_dict()
    assert row["uncalibrated"]["spearman"] is None
    assert "constant" in row["uncalibrated"]["reason"]
    assert row["thresholds"]["gain"]["value"] > 0.4  # a judge that ranks nothing counts as 0
    assert row["thresholds"]["gain"]["p_value"] < 0.05


def test_the_comparison_is_plain_json_with_a_reason_beside_every_undefined_number() -> None:
    p_yes, truth = lenient(60)
    row = json.loads(json.dumps(split(p_yes, truth).to_dict(), allow_nan=False))
    assert set(row) == {"uncalibrated", "thresholds", "platt"}
    assert {"spearman", "low", "high", "n", "errors", "dimensions", "gain", "fit"} <= set(row["platt"])
    assert set(row["platt"]["fit"]["questions"]["a"]) == {"slope", "shift", "n"}
    assert row["platt"]["dimensions"]["one"] == {
        name: row["platt"][name] for name in ("spearman", "kendall", "pearson", "n", "low", "high", "errors")
    }
    examples = names(60)
    unrated = wanted(one=[*truth[:40], *[None] * 20])
    figures = compare_calibrations(
        answers(a=p_yes),
        answers(a=p_yes),
        development=examples[:40],
        held_out=examples[40:],
        checklist=ONE,
        yardstick=CorrelationYardstick(unrated, resamples=200, seed=42),
    ).to_dict()["platt"]
    assert figures["errors"] == {
        "mean_absolute": None,
        "drift": None,
        "n": 0,
        "reason": "no example has both a score and a wanted score",
    }
    assert figures["spearman"] is None and figures["reason"]
    assert figures["gain"]["value"] is None and figures["gain"]["reason"]


def test_an_example_in_both_splits_is_refused() -> None:
    p_yes, truth = lenient(40)
    with pytest.raises(InputError, match="'e20' is to be fitted on and measured on"):
        compare_calibrations(
            answers(a=p_yes),
            answers(a=p_yes),
            development=names(21),
            held_out=names(40)[20:],
            checklist=ONE,
            yardstick=CorrelationYardstick(wanted(one=truth), resamples=200, seed=42),
        )


def test_scores_of_unieval_are_brought_to_people_s_scale_on_held_out_dialogues() -> None:
    path = DATA / "topical_chat.jsonl"
    if not path.exists():
        pytest.skip(f"the rated dialogues are not here ({path.name})")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    asked = ("naturalness", "coherence", "groundedness", "understandability")
    checklist = Checklist(questions=tuple(Question(id=name, text=f"{name}?", dimension=name) for name in asked))
    examples = [
        Example(id=row["id"], input=row["input"], output=row["output"], human={n: row["human"][n] for n in asked})
        for row in rows
    ]
    judged = [verdict(row["id"], name, float(row["unieval"][name])) for row in rows for name in asked]
    order = np.random.default_rng(0).permutation(len(examples))
    found = compare_calibrations(
        judged,
        judged,
        development=[examples[place] for place in order[:100]],
        held_out=[examples[place] for place in order[100:]],
        checklist=checklist,
        yardstick=CorrelationYardstick(human_targets(examples, checklist), resamples=200, seed=42),
    )
    assert found.uncalibrated.measure["spearman"] > 0.5
    assert found.platt.measure["spearman"] > found.uncalibrated.measure["spearman"] - 0.05
    assert found.platt.errors.mean_absolute < found.uncalibrated.errors.mean_absolute - 0.02
    for name in asked:
        assert abs(found.platt.dimensions[name].bias) < 0.08


def test_calibration_imports_no_heavy_library() -> None:
    code = (
        "import sys, askance.optimizer.modes.calibrations; "
        "print([name for name in ('scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
