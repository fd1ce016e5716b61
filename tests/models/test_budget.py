from __future__ import annotations

import pytest

from askance.models.base import Answer, Parameters, make_request
from askance.models.budget import Budget, estimate_tokens, reserved_tokens
from askance.prompts.errors import BudgetExceededError
from tests.said import naming


def refused(budget: Budget, tokens: int = 1, cost: float = 0.0) -> str:
    with pytest.raises(BudgetExceededError) as caught:
        budget.reserve(tokens, cost)
    assert caught.value.exit_code == 3
    return caught.value.limit


def test_without_caps_nothing_is_refused() -> None:
    budget = Budget()
    for _ in range(1000):
        budget.reserve(10**9, 10.0**6)


def test_calls_under_way_count_until_they_are_given_back() -> None:
    budget = Budget(call_budget=2)
    budget.reserve(1)
    budget.reserve(1)
    assert refused(budget) == "max_calls"
    budget.release(1)
    budget.reserve(1)


def test_a_cap_of_zero_buys_nothing() -> None:
    assert refused(Budget(call_budget=0)) == "max_calls"
    assert refused(Budget(token_budget=0)) == "max_tokens"
    assert refused(Budget(cost_budget=0.0)) == "max_cost"


def test_caps_are_shared_by_all_roles() -> None:
    budget = Budget(call_budget=2, token_budget=100)
    budget.paid("evaluator", Answer("a", None, 30, 10, 0.5))
    budget.paid("writer", Answer("a", None, 30, 10, 0.25))
    assert (budget.calls, budget.tokens, budget.cost_usd) == (2, 80, 0.75)
    assert refused(budget) == "max_calls"
    assert budget.role("writer").prompt_tokens == 30


def test_a_call_that_may_pass_the_cap_on_tokens_is_refused_before_it_is_made() -> None:
    budget = Budget(token_budget=100)
    budget.paid("evaluator", Answer("a", None, 50, 10))
    assert refused(budget, 41) == "max_tokens"
    budget.reserve(40)
    assert refused(budget, 1) == "max_tokens"


def test_a_call_that_may_pass_the_cap_on_money_is_refused_before_it_is_made() -> None:
    budget = Budget(cost_budget=1.0)
    budget.reserve(1, 0.6)
    assert refused(budget, 1, 0.5) == "max_cost"
    budget.release(1, 0.6)
    budget.paid("evaluator", Answer("a", cost_usd=0.9))
    assert refused(budget, 1, 0.2) == "max_cost"
    budget.reserve(1, 0.05)


def test_money_without_known_prices_is_refused_once_it_is_spent() -> None:
    budget = Budget(cost_budget=1.0)
    budget.reserve(1)
    budget.release(1)
    budget.paid("evaluator", Answer("a", cost_usd=1.0))
    assert refused(budget) == "max_cost"


def test_what_is_set_aside_is_the_prompt_and_the_longest_answer() -> None:
    request = make_request("m", [("system", "x" * 40), ("user", "y")], Parameters(7))
    assert reserved_tokens(request) == 10 + 1 + 7
    assert estimate_tokens("") == 1


@pytest.mark.parametrize(
    "text", ["这篇摘要是否与原文一致", "要約は原文と一致していますか。", "요약이원문과일치합니까", "𠮷野家"]
)
def test_a_character_of_chinese_japanese_or_korean_is_about_a_token(text: str) -> None:
    assert estimate_tokens(text) == len(text)
    assert estimate_tokens(text + "x" * 8) == len(text) + 2
    assert estimate_tokens("Größe – naïve “Привет”, 1 €") == 27 // 4


def test_a_refusal_says_what_is_set_aside_for_calls_under_way() -> None:
    budget = Budget(token_budget=100, cost_budget=1.0)
    budget.paid("evaluator", Answer("a", None, 10, 0, 0.125))
    budget.reserve(60, 0.5)
    with pytest.raises(BudgetExceededError, match=naming(40, 100, 10, 60, "Raise the cap")):
        budget.reserve(40)
    with pytest.raises(BudgetExceededError, match=naming("$1", "$0.125", "$0.5")):
        budget.reserve(1, 0.5)
