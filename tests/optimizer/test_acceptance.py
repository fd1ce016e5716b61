from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from askance.evaluation.scoring import ExampleScore, Targets
from askance.optimizer.acceptance import CorrelationYardstick, HeldOutAcceptance, MeanYardstick, PairedAcceptance
from askance.optimizer.subject import Crossed, CrossedFold
from askance.prompts.examples import Example
from askance.stats.differences import Difference
from tests.said import says

N = 30
TRUTH = np.linspace(0, 1, N)
NOISE = np.random.default_rng(0).normal(size=(3, N))


def examples(documents: int | None = None) -> list[Example]:
    return [Example(id=f"e{n}", input="i", metadata={"document": n % documents} if documents else {}) for n in range(N)]


def yardstick(wanted: np.ndarray = TRUTH, resamples: int = 500) -> CorrelationYardstick:
    targets = Targets("human", ("d",), {f"e{n}": {"d": float(wanted[n])} for n in range(N)})
    return CorrelationYardstick(targets, resamples=resamples, seed=1)


def gate(level: float = 0.1, documents: int | None = None, wanted: np.ndarray = TRUTH) -> PairedAcceptance:
    return PairedAcceptance(yardstick(wanted), examples(documents), level=level)


def scores(values: np.ndarray) -> list[ExampleScore]:
    return [ExampleScore(f"e{n}", float(value), {"d": float(value)}) for n, value in enumerate(values)]


def test_a_version_that_ranks_clearly_better_is_accepted() -> None:
    decision = gate().decide(scores(NOISE[0]), scores(TRUTH + 0.1 * NOISE[1]))
    assert decision.accepted
    assert decision.gain is not None
    assert decision.gain.value is not None
    assert decision.gain.value > 0.5
    assert decision.reason.startswith("better on validation (Spearman +")


def test_a_version_that_ranks_worse_is_rejected() -> None:
    decision = gate().decide(scores(TRUTH), scores(NOISE[0]))
    assert not decision.accepted
    assert says(decision.reason, "no gain", "validation")


def test_the_same_version_is_rejected() -> None:
    assert not gate().decide(scores(NOISE[0]), scores(NOISE[0])).accepted


def test_a_small_gain_is_taken_for_noise() -> None:
    before = TRUTH + 0.5 * NOISE[0]
    decision = gate().decide(scores(before), scores(before - 0.1 * NOISE[2]))
    assert not decision.accepted
    assert decision.gain is not None
    assert decision.gain.value is not None
    assert decision.gain.value > 0
    assert "within noise" in decision.reason and decision.within_noise


def test_a_judge_that_says_the_same_of_everything_can_be_improved() -> None:
    decision = gate().decide(scores(np.full(N, 0.9)), scores(TRUTH + 0.2 * NOISE[0]))
    assert decision.accepted


def test_a_candidate_that_says_the_same_of_everything_is_rejected() -> None:
    assert not gate().decide(scores(TRUTH), scores(np.full(N, 0.9))).accepted


def test_two_constants_are_rejected() -> None:
    assert not gate().decide(scores(np.full(N, 0.9)), scores(np.full(N, 0.1))).accepted


def test_constant_targets_leave_the_gain_undefined_and_the_version_rejected() -> None:
    decision = gate(wanted=np.zeros(N)).decide(scores(NOISE[0]), scores(TRUTH))
    assert not decision.accepted
    assert says(decision.reason, "gain", "undefined")


def test_examples_of_one_document_do_not_count_as_many() -> None:
    better = scores(TRUTH + 0.3 * NOISE[1])
    assert gate().decide(scores(NOISE[0]), better).accepted
    few = gate(level=0.02, documents=3).decide(scores(NOISE[0]), better)
    assert not few.accepted


def test_useless_edits_pass_about_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(5)
    accepted = 0
    for _ in range(150):
        shared = TRUTH + 0.4 * rng.normal(size=N)
        a, b = (shared + 0.3 * rng.normal(size=N) for _ in range(2))
        accepted += gate().decide(scores(a), scores(b)).accepted
    assert accepted / 150 == pytest.approx(0.1, abs=0.07)


# --- candidates that are dropped early -----------------------------------------------------------------------------


def test_a_candidate_that_is_clearly_worse_on_the_first_examples_is_dropped() -> None:
    part = scores(-TRUTH)[::2]
    targets = Targets("human", ("d",), {f"e{n}": {"d": float(TRUTH[n])} for n in range(N)})
    order = [Example(id=each.example, input="i") for each in [*part, *scores(TRUTH)[1::2]]]
    racing = PairedAcceptance(CorrelationYardstick(targets, resamples=500, seed=1), order, level=0.1)
    best = [*scores(TRUTH)[::2], *scores(TRUTH)[1::2]]
    dropped = racing.hopeless(best, part)
    assert dropped is not None
    assert not dropped.accepted
    assert says(dropped.reason, "clearly worse", f"first {N // 2}", "Spearman -2.000")
    assert racing.hopeless(best, best[: N // 2]) is None


def test_a_gain_on_all_examples_far_from_the_level_is_within_noise_and_one_near_it_goes_on() -> None:
    """On all examples the look is at a part of the questions."""
    racing = PairedAcceptance(MeanYardstick(resamples=500, seed=1), examples(), level=0.1)

    def raised(count: int) -> list[ExampleScore]:
        return scores(np.array([0.3] * count + [0.0] * (N - count)))

    far = racing.hopeless(raised(0), raised(2))
    assert far is not None and far.within_noise and not far.accepted, "p is a quarter"
    assert racing.hopeless(raised(0), raised(3)) is None, "p is an eighth"
    assert racing.hopeless(raised(0), raised(2)[: N - 1]) is None, "other examples are still to come"


def test_one_single_loss_is_not_clear() -> None:
    """The one-sided p-value of a gain is 1 there: nothing that could have been swapped would have been worse."""
    yardstick = MeanYardstick(resamples=500, seed=1)
    racing = PairedAcceptance(yardstick, examples(), level=0.1)
    best = scores(np.ones(N))
    assert racing.hopeless(best, scores(np.array([0.0, *[1.0] * 9]))) is None
    assert racing.hopeless(best, scores(np.array([*[0.0] * 5, *[1.0] * 5]))) is not None


def test_the_papers_gate_looks_at_the_point_estimate_alone() -> None:
    held_out = HeldOutAcceptance(yardstick(), examples())
    before = TRUTH + 0.5 * NOISE[0]
    assert held_out.decide(scores(before), scores(before - 0.1 * NOISE[2])).accepted, "within noise, untested"
    assert held_out.decide(scores(before), scores(before)).accepted
    assert not held_out.decide(scores(TRUTH), scores(NOISE[0])).accepted
    assert held_out.hopeless(scores(TRUTH), scores(NOISE[0])[:10]) is None
    assert not HeldOutAcceptance(yardstick(np.zeros(N)), examples()).decide(scores(before), scores(TRUTH)).accepted


# --- calibration ---------------------------------------------------------------------------------------------------


def shares_on_noise(kind: str, level: float, racing: bool, runs: int = 120) -> float:
    """Share of useless edits that are accepted, dropped early as in a run or judged on everything."""
    rng = np.random.default_rng([7, racing, round(100 * level)])
    accepted = 0
    for _ in range(runs):
        truth = rng.random(N)
        if kind == "judge":
            shared = truth + 0.4 * rng.normal(size=N)
            touched = rng.random(N) < 0.6
            best = shared + 0.3 * rng.normal(size=N)
            candidate = np.where(touched, shared + 0.3 * rng.normal(size=N), best)
        else:
            best, candidate = (rng.random((2, N)) < 0.6).astype(float)
        targets = Targets("human", ("d",), {f"e{n}": {"d": float(truth[n])} for n in range(N)})
        correlations = CorrelationYardstick(targets, resamples=100, seed=1)
        noisy = PairedAcceptance(
            correlations if kind == "judge" else MeanYardstick(resamples=200, seed=1), examples(), level=level
        )
        rungs = [N // 3, 2 * N // 3] if racing else []
        if any(noisy.hopeless(scores(best), scores(candidate)[:rung]) for rung in rungs):
            continue
        accepted += noisy.decide(scores(best), scores(candidate)).accepted
    return accepted / runs


@pytest.mark.parametrize("racing", [True, False])
@pytest.mark.parametrize("kind", ["judge", "generator"])
@pytest.mark.parametrize("level", [0.1, 0.2])
def test_useless_edits_are_accepted_no_more_often_than_the_level(kind: str, level: float, racing: bool) -> None:
    error = (level * (1 - level) / 120) ** 0.5
    share = shares_on_noise(kind, level, racing)
    assert share <= level + 2.5 * error
    assert share > 0.1 * level, "a gate that accepts nothing would pass for calibrated"


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_all_looks_together_spend_the_level_and_the_first_most_of_it(most: int) -> None:
    levels = [gate().at_look(number, most).level for number in range(1, most + 1)]
    assert sum(levels) == pytest.approx(0.1)
    assert levels[0] == pytest.approx(0.1 if most == 1 else 0.05)


# --- every reason to refuse, one at a time --------------------------------------------------------------------------


class Given:
    """A yardstick whose difference is given; it notes between which scores, on which examples, it was asked for."""

    name = "figure"

    def __init__(self, *differences: Difference) -> None:
        self.differences = list(differences)
        self.asked: list[tuple[list[float | None], list[float | None], list[str]]] = []

    def value(self, scores: Sequence[ExampleScore]) -> float | None:
        raise AssertionError("only differences decide")

    def measure(self, scores: Sequence[ExampleScore], examples: Sequence[Example]) -> dict[str, object]:
        raise AssertionError("only differences decide")

    def difference(
        self, before: Sequence[ExampleScore], after: Sequence[ExampleScore], examples: Sequence[Example]
    ) -> Difference:
        self.asked.append(
            ([each.overall for each in before], [each.overall for each in after], [each.id for each in examples])
        )
        return self.differences.pop(0)


class Guarding:
    """A guard whose answer is given; it notes what it is shown."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.shown: list[tuple[object, object, list[str], object]] = []

    def problem(
        self,
        before: Sequence[ExampleScore],
        after: Sequence[ExampleScore],
        examples: Sequence[Example],
        ranks: tuple[Sequence[ExampleScore], Sequence[ExampleScore]] | None = None,
    ) -> str | None:
        self.shown.append((list(before), list(after), [each.id for each in examples], ranks))
        return self.answer


def gain(value: float | None, p: float | None = 0.05, error: float | None = 0.1) -> Difference:
    return Difference(value, N, None, None, p, "few" if value is None else None, error)


A, B = scores(TRUTH), scores(TRUTH[::-1])


@pytest.mark.parametrize(
    ("found", "refuses", "accepted", "within_noise"),
    [
        (gain(0.3), None, True, False),
        (gain(0.3, p=0.1), None, True, False),
        (gain(0.3, p=0.1001), None, False, True),
        (gain(0.001, error=None), None, True, False),
        (gain(0.0), None, False, False),
        (gain(-0.3), None, False, False),
        (gain(None), None, False, False),
        (gain(0.3, p=None), None, False, False),
        (gain(0.3), "a loss", False, False),
        (gain(0.3, p=0.9), "a loss", False, False),
        (gain(-0.3), "a loss", False, False),
    ],
    ids=[
        "clear",
        "at the level",
        "beyond the level",
        "no standard error",
        "a tie",
        "a loss",
        "undefined",
        "untested",
        "refused",
        "refused and noise",
        "worse and refused",
    ],
)
@pytest.mark.parametrize("crossed", [False, True])
def test_a_gain_is_accepted_if_it_is_above_zero_within_the_level_and_unrefused(
    found: Difference, refuses: str | None, accepted: bool, within_noise: bool, crossed: bool
) -> None:
    guard, measured = Guarding(refuses), Given(found)
    gate = PairedAcceptance(measured, examples(), level=0.1, guard=guard)
    folds = Crossed((CrossedFold(examples(), A, B, A),))
    decision = gate.decide_crossed(folds) if crossed else gate.decide(A, B)
    assert (decision.accepted, decision.within_noise, decision.gain) == (accepted, within_noise, found)
    assert bool(guard.shown) is ((found.value or 0) > 0 and found.p_value is not None), "it is asked of a gain alone"
    assert ("a loss" in decision.reason) is (refuses is not None and bool(guard.shown))


def test_the_yardstick_is_told_best_before_candidate_and_the_guard_sees_the_same_examples() -> None:
    guard, measured = Guarding(None), Given(gain(0.3))
    PairedAcceptance(measured, examples(), level=0.1, guard=guard).decide(A, B)
    names = [each.id for each in examples()]
    assert measured.asked == [([each.overall for each in A], [each.overall for each in B], names)]
    assert guard.shown == [(A, B, names, None)]


def test_of_folds_ranks_decide_and_the_guard_sees_scores_ranks_and_the_examples_of_the_folds() -> None:
    """Validation is another set of examples: it has taught the judge, and may be longer or shorter."""
    held = [Example(id=f"e{n}", input="i") for n in range(N)]
    two = Crossed(tuple(CrossedFold(held[part], A[part], B[part], A[part]) for part in (slice(0, 12), slice(12, N))))
    ids = [each.id for each in held]
    for gate_class in (PairedAcceptance, HeldOutAcceptance):
        measured, guard = Given(gain(0.3)), Guarding(None)
        others = [Example(id=f"other{n}", input="i") for n in range(5)]
        gate: Any = gate_class(
            measured, others, **({"level": 0.1, "guard": guard} if gate_class is PairedAcceptance else {})
        )
        assert gate.decide_crossed(two).accepted
        ranks = [(n + 1) / 12 for n in range(12)] + [(n + 1) / 18 for n in range(18)]
        turned = [1 - n / 12 for n in range(12)] + [1 - n / 18 for n in range(18)]
        [(before, after, names)] = measured.asked
        assert names == ids and before == pytest.approx(ranks) and after == pytest.approx(turned)
        if gate_class is PairedAcceptance:
            [(was, now, seen, both)] = guard.shown
            assert (was, now, seen) == (A, B, ids), "bias is in the scores as they are"
            assert [[each.overall for each in side] for side in both] == [before, after]  # type: ignore[attr-defined]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_look_changes_the_level_and_nothing_else(most: int) -> None:
    guard = Guarding(None)
    gate = PairedAcceptance(Given(), examples(), level=0.08, guard=guard)
    for number in range(1, most + 1):
        level = 0.08 / 2 ** (number - 1) if number == most else 0.08 / 2**number
        assert gate.at_look(number, most) == replace(gate, level=pytest.approx(level))


@pytest.mark.parametrize(
    ("judged", "differences", "dropped", "says_why"),
    [
        (10, [gain(None)], False, ""),
        (10, [gain(0.1, p=0.9)], False, ""),
        (N, [gain(0.1, p=0.2)], False, ""),
        (N, [gain(0.1, p=0.21)], True, "within noise"),
        (N - 1, [gain(0.1, p=0.9)], False, ""),
        (18, [gain(0.0)], True, "no gain"),
        (18, [gain(-0.1)], True, "no gain"),
        (17, [gain(0.0), gain(0.0, p=0.5)], False, ""),
        (17, [gain(-0.1), gain(0.1, p=0.1)], True, "clearly worse"),
        (17, [gain(-0.1), gain(0.1, p=0.11)], False, ""),
        (17, [gain(-0.1), gain(0.1, p=None)], False, ""),
    ],
)
def test_a_part_of_the_verdicts_ends_a_race_only_where_the_rest_is_hopeless(
    judged: int, differences: list[Difference], dropped: bool, says_why: str
) -> None:
    """From three fifths on any lack of a gain does, before that a clear loss; on all, p beyond twice the level."""
    measured = Given(*differences)
    found = PairedAcceptance(measured, examples(), level=0.1).hopeless(A, B[:judged])
    assert (found is not None) is dropped and not measured.differences
    first, part = [each.overall for each in A[:judged]], [each.overall for each in B[:judged]]
    asked = [(first, part), (part, first)][: len(differences)]
    assert [each[:2] for each in measured.asked][:2] == asked, "the other way round to see whether it is worse"
    assert all(names == [f"e{n}" for n in range(judged)] for *_, names in measured.asked)
    if found is not None:
        assert not found.accepted and says_why in found.reason


@pytest.mark.parametrize(("value", "accepted"), [(0.0, True), (-0.001, False), (0.2, True), (None, False)])
def test_the_papers_way_keeps_what_does_not_fall(value: float | None, accepted: bool) -> None:
    gate = HeldOutAcceptance(Given(gain(value)), examples())
    assert gate.decide(A, B).accepted is accepted and gate.at_look(1, 3) is gate
