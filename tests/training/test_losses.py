"""The losses of LMUnit §3.3, against closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from askance.models.trained.scorer_file import ScoredText
from askance.training.losses import (
    RATIONALE_TIMES,
    ScoreObjective,
    dpo_loss,
    expected,
    forgiven,
    item_losses,
    mixed_loss,
    target_levels,
)
from askance.training.mixture import Probe, TrainingItem

from .conftest import options

torch: Any = pytest.importorskip("torch")

A, B = ScoredText("q1", "o"), ScoredText("q2", "o")
ROWS = {A: 0, B: 1}


def log_levels(*rows: list[float]) -> Any:
    return torch.tensor(rows).log()


def item(target: float, *side: Probe, right: tuple[Probe, ...] = ()) -> TrainingItem:
    return TrainingItem("preference" if right else "verdict", "verdicts", "e", "q", side, target, right)


def values(losses: dict[str, Any]) -> dict[str, float]:
    return {name: float(each) for name, each in losses.items()}


@pytest.mark.parametrize(("target", "levels"), [(0.0, 2), (1.0, 2), (0.3, 2), (0.5, 5), (0.7, 7), (1.0, 11)])
def test_a_target_is_what_its_levels_expect(target: float, levels: int) -> None:
    shares = target_levels(target, levels)
    assert len(shares) == levels and sum(shares) == pytest.approx(1)
    assert sum(k * share for k, share in enumerate(shares)) / (levels - 1) == pytest.approx(target)
    assert sum(share > 0 for share in shares) <= 2


def test_one_question_with_yes_and_no() -> None:
    found = values(item_losses(log_levels([0.2, 0.8]), item(0.7, Probe(A)), {A: 0}))
    assert found["cross_entropy"] == pytest.approx(-0.3 * math.log(0.2) - 0.7 * math.log(0.8), rel=1e-5)
    assert found["squared_error"] == pytest.approx(36 * (0.7 - 0.8) ** 2, rel=1e-5)


def test_score_levels() -> None:
    levels = log_levels([0.1, 0.2, 0.7])
    assert float(expected(levels[0])) == pytest.approx(0.8)
    found = values(item_losses(levels, item(0.75, Probe(A)), {A: 0}))
    assert found["cross_entropy"] == pytest.approx(-0.5 * math.log(0.2) - 0.5 * math.log(0.7), rel=1e-5)
    assert found["squared_error"] == pytest.approx(36 * 0.05**2, rel=1e-4)


def test_a_score_is_the_weighted_mean_of_questions_and_a_fault_counts_in_reverse() -> None:
    levels = log_levels([0.4, 0.6], [0.9, 0.1])
    side = (Probe(A, 3.0), Probe(B, 1.0, is_fault=True))
    score = (3 * 0.6 + 0.9) / 4
    found = values(item_losses(levels, item(1.0, *side), ROWS))
    assert found["squared_error"] == pytest.approx(36 * (1 - score) ** 2, rel=1e-4)
    assert found["cross_entropy"] == pytest.approx(-math.log(score), rel=1e-5)


@pytest.mark.parametrize(("target", "sign"), [(1.0, 1), (0.0, -1)])
def test_a_preference_is_bradley_terry_on_the_difference_of_scores(target: float, sign: int) -> None:
    levels = log_levels([0.3, 0.7], [0.5, 0.5])
    found = values(item_losses(levels, item(target, Probe(A), right=(Probe(B),)), ROWS))
    assert found == {"preference": pytest.approx(math.log(1 + math.exp(-sign * 6 * 0.2)), rel=1e-5)}


def test_scores_of_several_questions_are_summed_in_a_preference() -> None:
    levels = log_levels([0.3, 0.7], [0.5, 0.5])
    one = item(1.0, Probe(A), right=(Probe(B),))
    both = replace(one, left=one.left * 2, right=one.right * 2)
    assert values(item_losses(levels, both, ROWS))["preference"] == pytest.approx(
        math.log(1 + math.exp(-12 * 0.2)), rel=1e-5
    )


def test_a_tie_wants_equal_scores() -> None:
    levels = log_levels([0.3, 0.7], [0.5, 0.5])
    tie = item(0.5, Probe(A), right=(Probe(B),))
    assert values(item_losses(levels, tie, ROWS))["preference"] == pytest.approx(36 * 0.04, rel=1e-5)


def test_the_mixture_weighs_means_over_the_items_that_have_a_loss() -> None:
    levels = log_levels([0.3, 0.7], [0.5, 0.5])
    direct, pair = item(1.0, Probe(A)), item(1.0, Probe(A), right=(Probe(B),))
    heavy = replace(direct, left=(Probe(B),), weight=5.0)
    total, parts = mixed_loss(levels, [direct, heavy, pair], ROWS, (1.0, 0.5, 2.0))
    squared = (36 * 0.09 + 5 * 36 * 0.25) / 6
    entropy = (-math.log(0.7) - 5 * math.log(0.5)) / 6
    preference = math.log(1 + math.exp(-1.2))
    assert float(total) == pytest.approx(entropy + 0.5 * squared + 2 * preference, rel=1e-5)
    assert parts["squared_error"] == (pytest.approx(6 * squared, rel=1e-5), 6.0) and parts["preference"][1] == 1.0


def test_gradients_are_those_of_the_formula() -> None:
    logits = torch.tensor([[0.3, -0.2], [1.0, 0.4]], dtype=torch.float64, requires_grad=True)
    items = [item(0.7, Probe(A)), item(0.2, Probe(A, 2.0), Probe(B, is_fault=True))]
    items.append(item(0.0, Probe(A), right=(Probe(B),)))

    def loss(given: Any) -> Any:
        return mixed_loss(torch.log_softmax(given, -1), items, ROWS, (1.0, 1.0, 1.0))[0]

    found = torch.autograd.grad(loss(logits), logits)[0]
    step = 1e-5
    for row in range(2):
        for column in range(2):
            moved = torch.zeros_like(logits)
            moved[row, column] = step
            with torch.no_grad():
                slope = (loss(logits + moved) - loss(logits - moved)) / (2 * step)
            assert float(found[row, column]) == pytest.approx(float(slope), rel=1e-4, abs=1e-6)


def test_a_rationale_counts_by_its_mean_token_five_times_with_the_weight_of_cross_entropy() -> None:
    levels = log_levels([0.3, 0.7])
    given = replace(item(1.0, Probe(A)), kind="rationale", rationale="why")
    total, parts = mixed_loss(levels, [given], {A: 0}, (0.5, 0.0, 1.0), {A: torch.tensor(-2.0)})
    assert RATIONALE_TIMES == 5 and parts["rationale"] == (2.0, 1.0)
    assert float(total) == pytest.approx(0.5 * -math.log(0.7) + 5 * 0.5 * 2.0, rel=1e-5)


def test_dpo_is_the_logistic_loss_of_the_difference_of_log_ratios() -> None:
    """Rafailov et al. 2023, eq. 7, with its gradient in eq. 8: -beta * sigmoid(-beta * margin) for the preferred one."""
    numbers = [[-10.0, -3.0], [-12.0, -2.5], [-11.0, -4.0], [-11.5, -2.0]]
    better, worse, better_before, worse_before = (torch.tensor(each, dtype=torch.float64) for each in numbers)
    better.requires_grad_()
    found = dpo_loss(better, worse, better_before, worse_before, beta=0.3)
    margins = [0.3 * ((-10 + 11) - (-12 + 11.5)), 0.3 * ((-3 + 4) - (-2.5 + 2))]
    assert found.tolist() == pytest.approx([math.log(1 + math.exp(-margin)) for margin in margins])
    found.sum().backward()
    assert better.grad.tolist() == pytest.approx([-0.3 / (1 + math.exp(margin)) for margin in margins])
    same = dpo_loss(worse, worse_before, worse, worse_before)
    assert same.tolist() == pytest.approx([math.log(2)] * 2)


def test_being_too_sure_of_an_order_that_is_mostly_right_is_forgiven() -> None:
    sure = [(6.0, 1.0), (6.0, 1.0), (6.0, 1.0), (-6.0, 1.0)]
    as_said = sum(math.log1p(math.exp(-margin)) for margin, _ in sure)
    best = -3 * math.log(0.75) - math.log(0.25)  # that three of four are right
    assert forgiven(sure) == pytest.approx(as_said - best, abs=1e-3)
    assert forgiven([(6.0, 0.75), (-6.0, 0.25)]) == pytest.approx((as_said - best) / 4, abs=1e-3)
    assert forgiven([(-3.0, 1.0), (-1.0, 1.0)]) == pytest.approx(
        sum(math.log1p(math.exp(each)) for each in (3.0, 1.0)) - 2 * math.log(2), abs=1e-3
    )
    assert forgiven([(0.1, 1.0), (0.2, 1.0)]) == 0.0, "too little sure is not made surer"
    assert forgiven([]) == 0.0


def test_on_validation_a_sure_order_with_mistakes_is_better_than_none() -> None:
    class Says:
        """A network that knows P(yes) of the words of an output."""

        device = "cpu"

        def __init__(self, sure: float) -> None:
            self.sure = sure

        def levels(self, texts: list[ScoredText]) -> Any:
            yes = [0.5 + self.sure * (each.output == "good") for each in texts]
            return log_levels(*([1 - each, each] for each in yes))

    def pair(number: int, better: str, worse: str, target: float = 1.0) -> TrainingItem:
        sides = [tuple(Probe(ScoredText(f"q{at}", each, str(number))) for at in range(4)) for each in (better, worse)]
        return TrainingItem("preference", "preferences", f"p{number}", "all", sides[0], target, sides[1])

    pairs = [*(pair(number, "good", "bad") for number in range(3)), pair(3, "bad", "good"), pair(4, "good", "bad", 0.5)]
    losses = {
        sure: ScoreObjective(Says(sure), pairs, pairs, options(loss_weights=(0.0, 0.0, 1.0))).on_validation()["loss"]  # type: ignore[arg-type]
        for sure in (0.0, 0.4)
    }
    tie = (6 * 0.4) ** 2
    assert losses[0.0] == pytest.approx(4 * math.log(2) / 5, abs=1e-3)
    assert losses[0.4] == pytest.approx((-3 * math.log(0.75) - math.log(0.25) + tie) / 5, abs=1e-3)
