from __future__ import annotations

from pathlib import Path

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Parameters, make_request
from askance.models.budget import FREE, Budget, highest_cost, list_price, spending_of, together
from askance.models.resolve import Models
from askance.prompts.errors import InputError
from askance.testing import StandInServer
from tests.said import naming, says

OPENAI = "https://api.openai.com/v1"


def test_a_listed_model_costs_what_the_table_says_also_as_a_dated_snapshot() -> None:
    price = list_price("gpt-4o-mini", OPENAI)
    assert price is not None
    assert price.of(1_000_000, 1_000_000) == pytest.approx(0.75)
    assert list_price("gpt-4o-mini-2024-07-18", OPENAI) == price
    first, later = (list_price(f"gpt-4o-{date}", OPENAI) for date in ("2024-05-13", "2024-08-06"))
    assert first is not None and first.of(1_000_000, 1_000_000) == pytest.approx(20)
    assert later == list_price("gpt-4o", OPENAI) != first


@pytest.mark.parametrize(("model", "where"), [("my-finetune", OPENAI), ("gpt-4o-mini", "http://127.0.0.1:8000/v1")])
def test_what_is_not_listed_or_served_by_somebody_else_has_no_known_price(model: str, where: str) -> None:
    assert list_price(model, where) is None


def test_an_unknown_price_is_never_nothing() -> None:
    budget = Budget()
    budget.paid("judge", Answer("yes", None, 10, 1, 0.002))
    budget.paid("judge", Answer("yes", None, 10, 1, None))
    assert budget.cost_usd is None
    assert budget.to_dict()["unpriced_calls"] == 1
    [ledger] = budget.roles.values()
    assert (ledger.to_dict()["cost_usd"], ledger.to_dict()["unpriced_calls"]) == (None, 1)
    assert says(budget.sentence, "0.0020", "1 call", "judge", "price is unknown")
    assert says(spending_of(budget.to_dict()), "0.0020", "1 call", "price is unknown")
    budget = Budget()
    budget.paid("judge", Answer("yes", None, 10, 1, None))
    assert budget.sentence.endswith("price unknown") and "$" not in spending_of(budget.to_dict())


def test_what_is_known_of_several_budgets_is_added_up() -> None:
    priced, unpriced = Budget(), Budget()
    priced.paid("judge", Answer("yes", None, 10, 1, 0.002))
    unpriced.paid("writer", Answer("yes", None, 10, 1, None))
    both = together([priced.to_dict(), unpriced.to_dict()])
    assert (both["calls"], both["cost_usd"], both["unpriced_calls"], both["known_usd"]) == (2, None, 1, 0.002)
    assert together([both, priced.to_dict()])["known_usd"] == 0.004
    assert together([priced.to_dict(), priced.to_dict()])["cost_usd"] == 0.004


def test_what_costs_nothing_is_said_to_cost_nothing() -> None:
    budget = Budget()
    budget.paid("judge", Answer("yes", None, 10, 1, FREE.of(10, 1)))
    assert budget.sentence.endswith("$0.00")


def test_that_a_price_was_unknown_is_stored_with_the_answer(tmp_path: Path) -> None:
    for answer in (Answer("yes", cost_usd=None), Answer("yes", cost_usd=0.25)):
        with VerdictStore(tmp_path / f"{answer.cost_usd}.db") as store:
            store.put(b"1", answer)
            assert store.get(b"1") == answer


async def test_an_answer_of_an_openai_compatible_server_has_no_known_price() -> None:
    with StandInServer(lambda body: "Yes") as server:
        async with Models(api_base=server.url) as models:
            model = models.get("openai/judge")
            answer = await model.answer(make_request(model.identity, [("user", "Is it?")], Parameters(4)))
    assert answer.cost_usd is None


async def test_a_cap_on_money_is_kept_for_a_listed_model_and_refused_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    async with Models(api_base=OPENAI, need_prices=True) as models:
        model = models.get("openai/gpt-4o-mini")
        request = make_request(model.identity, [("user", "x" * 4_000_000)], Parameters(1_000_000))
        assert highest_cost(model, request) == pytest.approx(0.75)
        with pytest.raises(InputError, match=naming("price", "not known")):
            models.get("openai/my-finetune")
