from __future__ import annotations

from askance.evaluation.compare.costs import JudgeCost, break_even
from tests.said import says

CHECKLIST = JudgeCost(upfront=1000, per_sample=10)
COT = JudgeCost(upfront=0, per_sample=30)


def test_what_is_paid_first_is_shared_by_all_samples() -> None:
    assert CHECKLIST.amortised(1) == 1010
    assert CHECKLIST.amortised(100) == 20
    assert COT.amortised(7) == 30


def test_from_break_even_on_the_cost_is_no_higher_and_before_it_is() -> None:
    found = break_even(CHECKLIST, COT)
    assert found.samples == 50
    assert CHECKLIST.amortised(50) <= COT.amortised(50)
    assert CHECKLIST.amortised(49) > COT.amortised(49)
    assert break_even(JudgeCost(1001, 10), COT).samples == 51


def test_the_paper_counts_upfront_cost_in_samples() -> None:
    assert CHECKLIST.equivalent_samples == 100
    assert JudgeCost(5, 0).equivalent_samples is None


def test_what_never_pays_says_why() -> None:
    assert break_even(COT, CHECKLIST).samples is None
    assert says(break_even(COT, CHECKLIST).reason, "more for each")
    assert says(break_even(JudgeCost(1, 30), COT).reason, "no less")


def test_what_is_cheaper_from_the_start_pays_from_the_first_sample() -> None:
    assert break_even(JudgeCost(0, 10), COT).samples == 1
    assert break_even(COT, COT).samples == 1


def test_rounding_adds_no_sample() -> None:
    assert break_even(JudgeCost(0.3, 0), JudgeCost(0, 0.1)).samples == 3
