"""Figures of pass/fail labels against reference implementations; corrected pass rates against simulation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from askance.evaluation.pass_fail import (
    CELLS,
    FIGURES,
    PassThreshold,
    figures_of,
    judge_passes,
    pass_labels,
    require_at_least,
    threshold_for,
)
from askance.evaluation.scoring import ExampleScore, Targets, human_targets
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import AskanceError, CoverageError, InputError
from askance.prompts.examples import Example
from askance.stats.pass_fail import (
    area_under_curve,
    auc_kernel,
    binary_kappa,
    cut_kappas,
    fit_threshold,
    pass_fail_figures,
    prediction_powered,
    rate,
    rogan_gladen,
    wilson,
    wilson_size,
)
from askance.stats.resampling import Resampling, Statistic
from tests.said import says


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
    assert says(found.true_negative_rate.reason, "people failed none")
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
    assert says(found.reason, "too weak", 0.15, 40)
    none = rogan_gladen(of(50, 100), Statistic(None, 0, None, None, "nobody passed"), of(11, 20))
    assert none.value is None and none.reason == "nobody passed"


def test_a_rate_beyond_what_errors_explain_is_put_at_the_end_and_said() -> None:
    found = rogan_gladen(of(2, 100), of(45, 50), of(40, 50))
    assert found.value == 0 and found.low == 0 and says(found.reason, "even fewer", 0)


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
    assert few.value is None and says(few.reason, "too few labels", "20 labelled outputs")


def test_the_area_under_the_curve_needs_both_labels() -> None:
    assert says(area_under_curve([0.1, 0.2, 0.3], [0, 0, 0]).reason, "people passed none")
    assert says(area_under_curve([0.1, 0.2, 0.3], [1, 1, 1]).reason, "people failed none")


# a judge's scores held against labels: evaluation/pass_fail.py

TWO = Checklist(questions=(Question(id="a", text="A?", dimension="tone"), Question(id="b", text="B?", dimension="wit")))


def labelled(*human: Mapping[str, Any], documents: Sequence[object] | None = None) -> list[Example]:
    names = range(len(human)) if documents is None else documents
    return [
        Example(id=f"e{n}", input="i", output="o", human=dict(each), metadata={"document": f"d{name}"})
        for n, (each, name) in enumerate(zip(human, names, strict=True))
    ]


def scored(tone: Sequence[float | None], wit: Sequence[float | None] | None = None) -> list[ExampleScore]:
    other = tone if wit is None else wit
    return [
        ExampleScore(f"e{n}", None if None in pair else sum(pair) / 2, {"tone": pair[0], "wit": pair[1]})  # type: ignore[arg-type]
        for n, pair in enumerate(zip(tone, other, strict=True))
    ]


def majority(ratings: Sequence[bool]) -> float | None:
    passed = sum(ratings)
    return None if not ratings or 2 * passed == len(ratings) else float(2 * passed > len(ratings))


def test_the_majority_of_raters_passes_an_output_on_every_dimension_and_a_tie_is_no_label() -> None:
    """All ratings of up to three raters on two dimensions, against counting."""
    ratings = [tuple(each) for n in range(4) for each in itertools.product([True, False], repeat=n)]
    pairs = list(itertools.product(ratings, repeat=2))
    examples = labelled(
        *({name: each for name, each in zip(("tone", "wit"), pair, strict=True) if each} for pair in pairs)
    )
    found = pass_labels(examples, human_targets(examples, TWO))
    assert found is not None
    for example, (tone, wit) in zip(examples, pairs, strict=True):
        sides = majority(tone), majority(wit)
        wanted = None if sides[0] is None or sides[1] is None else min(sides[0], sides[1])
        assert found.passed[example.id] == wanted, (tone, wit)
    assert found.of(["e5", "e1"]) == [found.passed["e5"], found.passed["e1"]]


@pytest.mark.parametrize(
    ("human", "are_labels"),
    [
        ([True, False, True], True),
        ([1, 0, 0], True),
        ([1, 1, 1], False),
        ([0, 1, 2], False),
        ([0.0, 0.5, 1.0], False),
        ([2, 4, 5], False),
    ],
)
def test_scores_on_a_scale_are_no_labels(human: list[Any], are_labels: bool) -> None:
    examples = labelled(*({"tone": each} for each in human))
    targets = human_targets(examples, TWO)
    assert (pass_labels(examples, targets) is not None) == are_labels
    source = Targets("source", targets.dimensions, targets.wanted)
    assert pass_labels(examples, source) is None, "another judge's scores are no labels of people"


def test_each_example_five_times_in_its_document_changes_no_figure_of_a_judge() -> None:
    rng = np.random.default_rng(2)
    people = rng.random(60) < 0.6
    tone = np.clip(0.5 + 0.3 * (people - 0.5) + 0.2 * rng.normal(size=60), 0, 1)
    unlabelled = np.arange(60) % 2 == 0
    threshold = PassThreshold(0.5, "judge", dimensions=("tone",))

    def told(times: int, labels: str) -> list[dict[str, Any]]:
        human = [
            {} if labels == "half" and none else {"tone": bool(each)}
            for each, none in zip(people, unlabelled, strict=True)
        ]
        examples = labelled(*(each for each in human for _ in range(times)), documents=np.repeat(range(60), times))
        scores = scored(np.repeat(tone, times).tolist())
        targets = human_targets(examples, TWO, (0, 1))
        mine = pass_labels(examples, targets)
        assert mine is not None
        sampling = Resampling([each.metadata["document"] for each in examples], 200)
        held = judge_passes(scores, examples, threshold, mine, sampling).to_dict()
        return [figures_of(scores, examples, targets, mine, 0.5, resamples=200, seed=42), held]

    once, again = told(1, "all"), told(5, "all")
    for name in FIGURES:
        for before, after in zip(once, again, strict=True):
            ends = [[each[name][key] for key in ("value", "low", "high")] for each in (before, after)]
            if before is once[0] and name in FIGURES[:3]:  # one document an example: no documents, and n, not n - 1
                ends[0][1:] = rate_ends(before[name])
            assert ends[1] == pytest.approx(ends[0], abs=1e-9), name
    for name in ("pass_rate", "people_pass_rate"):
        assert numbers(again[1][name]) == pytest.approx(numbers(once[1][name]), abs=1e-9)
    halves = [told(times, "half")[1]["corrected_pass_rate"] for times in (1, 5)]
    assert halves[0]["method"] == "ppi" and numbers(halves[1]) == pytest.approx(numbers(halves[0]), abs=1e-9)


def numbers(row: Mapping[str, Any]) -> list[float]:
    return [row["value"], row["low"], row["high"]]


def rate_ends(row: Mapping[str, Any]) -> tuple[float, float]:
    """The interval of as many documents, of which one is taken for the mean."""
    return wilson(row["value"], row["n"] - 1)


def test_a_threshold_is_held_against_the_mean_of_its_own_dimensions_and_a_missing_one_is_no_verdict() -> None:
    tone, wit = [0.9, 0.1, 0.9, None, 0.6, 0.5], [0.1, 0.9, None, 0.9, 0.6, 0.5]
    scores, examples = scored(tone, wit), labelled(*[{}] * 6)
    cases = {
        ("tone",): [True, False, True, None, True, True],
        ("wit",): [False, True, None, True, True, True],
        ("tone", "wit"): [True, True, None, None, True, True],
        (): [True, True, None, None, True, True],
        ("overall",): [True, True, None, None, True, True],
    }
    for dimensions, wanted in cases.items():
        threshold = PassThreshold(0.5, "given", dimensions=dimensions)
        found = judge_passes(scores, examples, threshold, None, Resampling())
        assert list(found.passed.values()) == wanted and list(found.passed) == [each.example for each in scores]
        known = [each for each in wanted if each is not None]
        assert (found.pass_rate.value, found.pass_rate.n) == (sum(known) / len(known), len(known))
    whole = [ExampleScore("e0", 0.9, {"tone": 0.2, "wit": 0.3})]
    for dimensions, is_pass in (((), True), (("tone",), False), (("tone", "wit"), False)):
        threshold = PassThreshold(0.5, "given", dimensions=dimensions)
        assert judge_passes(whole, examples[:1], threshold, None, Resampling()).passed == {"e0": is_pass}


def test_verdicts_and_labels_are_compared_on_the_threshold_that_is_held() -> None:
    """Tone tells pass from fail and the whole does not."""
    people = [True, False] * 10
    tone = [0.9 if each else 0.1 for each in people]
    examples = labelled(*({"tone": each} for each in people))
    scores = scored(tone, [1 - each for each in tone])
    targets = human_targets(examples, TWO)
    mine = pass_labels(examples, targets)
    found = judge_passes(scores, examples, PassThreshold(0.5, "judge", dimensions=("tone",)), mine, Resampling())
    assert found.figures is not None and found.people is not None
    assert found.figures.confusion == (10, 0, 0, 10) and found.people.value == 0.5 and found.corrected is None
    assert mine is not None and threshold_for(scores, examples, targets, mine).n == 20


@pytest.mark.parametrize("value", [0.2, 0.45, 0.8])
def test_figures_are_at_the_threshold_that_verdicts_are_made_with(value: float) -> None:
    rng = np.random.default_rng(5)
    people = rng.random(50) < 0.6
    tone = np.clip(0.5 + 0.4 * (people - 0.5) + 0.2 * rng.normal(size=50), 0, 1).tolist()
    examples = labelled(*({"tone": bool(each)} for each in people))
    targets = human_targets(examples, TWO)
    mine, sampling = pass_labels(examples, targets), Resampling(resamples=100)
    found = judge_passes(scored(tone), examples, PassThreshold(value, "given", dimensions=("tone",)), mine, sampling)
    assert found.figures == pass_fail_figures(tone, people.astype(float), value, sampling)
    assert list(found.passed.values()) == [each >= value for each in tone]
    assert sum(found.figures.confusion[:2]) == sum(each >= value for each in tone) > 0
    assert mine is not None
    row = figures_of(scored(tone), examples, targets, mine, value, resamples=100, seed=42)
    assert row["accuracy"]["value"] == found.figures.accuracy.value


def test_what_is_known_of_a_judge_corrects_each_kind_of_error_where_nobody_labelled() -> None:
    scores, examples = scored([0.9] * 30 + [0.1] * 70), labelled(*[{}] * 100)
    tpr, tnr = of(80, 100), of(48, 50)
    threshold = PassThreshold(0.5, "judge", true_positive_rate=tpr, true_negative_rate=tnr)
    found = judge_passes(scores, examples, threshold, None, Resampling())
    assert found.corrected is not None and found.corrected == rogan_gladen(found.pass_rate, tpr, tnr)
    assert found.corrected.value == pytest.approx((0.3 + 0.96 - 1) / (0.8 + 0.96 - 1))
    half = PassThreshold(0.5, "judge", true_positive_rate=tpr)
    assert judge_passes(scores, examples, half, None, Resampling()).corrected is None
    assert found.to_dict()["corrected_pass_rate"]["method"] == "rogan_gladen"


def test_a_threshold_fitted_on_coin_flips_agrees_with_other_labels_by_chance_alone() -> None:
    rng = np.random.default_rng(3)
    taught, tested = [], []
    for _ in range(60):
        flips = rng.random(40) < 0.5
        examples = labelled(*({"tone": bool(each)} for each in flips))
        scores, targets = scored(rng.random(40).tolist()), human_targets(examples, TWO)
        mine = pass_labels(examples, targets)
        assert mine is not None
        fitted = threshold_for(scores[:20], examples, targets, mine)
        for part, kappas in ((slice(0, 20), taught), (slice(20, 40), tested)):
            said = [each.dimensions["tone"] >= fitted.value for each in scores[part]]  # type: ignore[operator]
            kappas.append(cohen_kappa_score(said, flips[part]) if len(set(said)) > 1 else 0.0)
    assert np.mean(taught) > 0.1, "what teaches looks good on what it was taught by"
    assert abs(np.mean(tested)) < 2.5 * np.std(tested) / np.sqrt(60)


@pytest.mark.parametrize("scale", [(0.0, 1.0), (1.0, 5.0)])
@pytest.mark.parametrize("least", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("kind", ["pass", "overall"])
def test_a_build_passes_or_fails_only_where_no_missing_verdict_could_turn_it(
    kind: str, least: float, scale: tuple[float, float]
) -> None:
    """Every file of up to four outputs that pass, fail or are missing, against filling in what is missing."""
    low, high = scale
    for values in itertools.chain(*(itertools.product([1.0, 0.0, None], repeat=n) for n in (1, 2, 4))):
        rows = [
            {"pass": None if each is None else bool(each)}
            if kind == "pass"
            else {"overall": None if each is None else low + each * (high - low)}
            for each in values
        ]
        data = {"scale": scale, "scores": rows} | ({"pass_rate": {}} if kind == "pass" else {})
        filled = itertools.product(*([0.0, 1.0] if each is None else [each] for each in values))
        outcomes = {sum(each) / len(each) >= least for each in filled}
        if outcomes == {True}:
            assert f"{least:g}" in require_at_least(data, least)
            continue
        with pytest.raises(AskanceError) as caught:
            require_at_least(data, least)
        assert isinstance(caught.value, CoverageError) == (len(outcomes) == 2), values


def test_questions_left_out_settle_no_build_that_they_could_turn() -> None:
    def rows(*ends: tuple[float, float, float]) -> dict[str, Any]:
        return {"scale": (0, 10), "scores": [{"overall": a, "low": b, "high": c} for a, b, c in ends]}

    within = rows((5.0, 4.0, 6.0), (7.0, 6.0, 9.0))
    assert require_at_least(within, 0.5)
    for least, error in ((0.51, CoverageError), (0.74, CoverageError), (0.76, AskanceError)):
        with pytest.raises(AskanceError) as caught:
            require_at_least(within, least)
        assert type(caught.value) is error


def test_the_cells_of_a_confusion_matrix_are_told_by_name() -> None:
    examples = labelled(*({"tone": each} for each in [True] * 5 + [False] * 5))
    targets = human_targets(examples, TWO)
    mine = pass_labels(examples, targets)
    assert mine is not None
    scores = scored([0.9, 0.9, 0.9, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1])
    row = figures_of(scores, examples, targets, mine, 0.5, resamples=50, seed=1)
    assert row["confusion"] == dict(zip(CELLS, (3, 1, 2, 4), strict=True))
    assert row["confusion"]["false_positive"] == 1 and row["confusion"]["false_negative"] == 2
    assert (row["true_positive_rate"]["value"], row["true_negative_rate"]["value"]) == pytest.approx((0.6, 0.8))
