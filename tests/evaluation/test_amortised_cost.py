from __future__ import annotations

from askance.evaluation.compare.costs import Costs, Spent


def costs(upfront: int, each: float, examples: int = 1) -> Costs:
    return Costs(Spent(1, upfront, None), 1, each, 0.5, examples)


COT = costs(0, 30)


def test_what_is_paid_first_is_shared_by_all_samples() -> None:
    assert costs(1000, 10, 1).amortised_tokens == 1010
    assert costs(1000, 10, 100).amortised_tokens == 20
    assert costs(0, 30, 7).amortised_tokens == 30
    assert Costs(Spent(1, 1, 3.0), 1, 1, 0.5, 2).amortised_cost_usd == 2
    assert costs(1, 1).amortised_cost_usd is None, "a price is not known"


def test_from_break_even_on_the_cost_is_no_higher_and_before_it_is() -> None:
    assert costs(1000, 10).break_even(COT) == 50
    assert costs(1000, 10, 50).amortised_tokens <= costs(0, 30, 50).amortised_tokens
    assert costs(1000, 10, 49).amortised_tokens > costs(0, 30, 49).amortised_tokens
    assert costs(1001, 10).break_even(COT) == 51


def test_the_paper_counts_upfront_cost_in_samples() -> None:
    assert costs(1000, 10).equivalent_examples == 100
    assert costs(5, 0).equivalent_examples is None


def test_what_costs_as_much_or_more_for_each_never_pays() -> None:
    assert COT.break_even(costs(1000, 10)) is None
    assert costs(1, 30).break_even(COT) is None


def test_what_is_cheaper_from_the_start_pays_from_the_first_sample() -> None:
    assert costs(0, 10).break_even(COT) == 1
    assert COT.break_even(COT) == 1


def test_rounding_adds_no_sample() -> None:
    assert costs(3, 0.2).break_even(costs(0, 0.3)) == 30
