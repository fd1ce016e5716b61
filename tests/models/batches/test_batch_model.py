from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from askance.models.base import Answer, Parameters, Request
from askance.models.batches import batch_model
from askance.models.batches.batch_model import BatchModel
from askance.models.budget import Budget, Price
from askance.models.resolve import Models
from askance.models.session import ModelOptions, session
from askance.prompts.errors import BudgetExceededError, InputError
from askance.testing import ServerReply
from tests.doubles import BatchServer
from tests.said import naming, says
from tests.thinkers import Thinker

from .conftest import JUDGED, PRICE, answers, asking, direct, records, requests, script


async def test_what_is_asked_together_is_one_batch_with_the_same_answers_at_half_the_price() -> None:
    asked = requests(12)
    with BatchServer(script) as server:
        one_by_one = direct(server.url)
        singly = [await one_by_one.answer(each) for each in asked]
        await one_by_one.close()
        async with asking(server) as batched:
            found = answers(await batched.all(asked))
        (batch,) = server.batches
    assert [each.text for each in found] == [each.text for each in singly]
    assert [each.logprobs for each in found] == [each.logprobs for each in singly]
    assert all(each.logprobs for each in found)
    # the first of its form is asked directly, at the full price
    assert [each["custom_id"] for each in batch.requests] == [each.key.hex() for each in asked[1:]]
    assert batch.output_file is not None
    order = [json.loads(line)["custom_id"] for line in server.files[batch.output_file].splitlines()]
    assert order != [each.key.hex() for each in asked[1:]]
    costs, full = [each.cost_usd for each in found], [each.cost_usd for each in singly]
    assert costs[0] == pytest.approx(full[0])
    assert costs[1:] == pytest.approx([(each or 0) / 2 for each in full[1:]])
    assert batched.gateway.budget.cost_usd == pytest.approx(sum(each or 0 for each in costs))
    assert records() == []
    assert sum(says(each, "Waiting", "batch_1", "11 requests") for each in batched.said) == 1


async def test_a_request_that_comes_alone_is_asked_directly() -> None:
    first, second = requests(2)
    with BatchServer(script) as server:
        async with asking(server) as batched:
            (before,) = answers(await batched.all([first]))
            (after,) = answers(await batched.all([second]))
        assert server.batches == []
    assert before.cost_usd == PRICE.of(before.prompt_tokens, before.completion_tokens)
    assert after.cost_usd == PRICE.of(after.prompt_tokens, after.completion_tokens)


async def test_requests_that_come_one_after_the_other_are_gathered() -> None:
    with BatchServer(script) as server:
        async with asking(server) as batched:

            async def late(number: int, request: Request) -> Answer:
                await asyncio.sleep(0.005 * number)
                return await batched.gateway.ask("evaluator", batched.model, request)

            await asyncio.gather(*(late(number, each) for number, each in enumerate(requests(10))))
        assert [len(each.requests) for each in server.batches] == [9]


async def test_each_form_of_request_is_tried_before_a_batch_is_refused_for_it() -> None:
    forms = [JUDGED, Parameters(5, schema={"type": "object"}), Parameters(5)]

    def picky(body: Mapping[str, Any]) -> ServerReply:
        for field in ("max_tokens", "response_format"):
            if field in body:
                return 400, {"error": {"message": f"Unsupported parameter: {field}"}}
        return script(body)

    with BatchServer(picky) as server:
        async with asking(server) as batched:
            answers(await batched.all([each for form in forms for each in requests(3, parameters=form)]))
        (batch,) = server.batches
    assert len(batch.requests) == 6
    assert all("max_completion_tokens" in each["body"] for each in batch.requests)
    assert not any(field in each["body"] for each in batch.requests for field in ("max_tokens", "response_format"))


async def test_what_does_not_fit_into_one_batch_is_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_model, "MOST_REQUESTS", 8)
    with BatchServer(script) as server:
        async with asking(server) as batched:
            answers(await batched.all(requests(26)))
        assert max(len(each.requests) for each in server.batches) == 8
        assert sum(len(each.requests) for each in server.batches) == 25


async def test_no_file_is_larger_than_the_endpoint_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_model, "MOST_BYTES", 1500)
    with BatchServer(script) as server:
        async with asking(server) as batched:
            answers(await batched.all(requests(26)))
        sizes = [len(server.files[each.input_file]) for each in server.batches]
    assert max(sizes) <= 1500 and len(sizes) < 25


async def test_a_cap_on_calls_holds_for_what_is_gathered() -> None:
    with BatchServer(script) as server:
        async with asking(server, budget=Budget(call_budget=6)) as batched:
            found = await batched.all(requests(9))
        assert len(server.bodies) == 6
    answers(found[:6])
    assert all(isinstance(each, BudgetExceededError) for each in found[6:])


async def test_a_cap_on_money_is_held_by_half_the_price_of_what_goes_into_a_batch() -> None:
    asked = requests(9)
    highest = PRICE.highest(asked[0])
    with BatchServer(script) as server:
        # one directly, at the full price, and four at half of it
        async with asking(server, budget=Budget(cost_budget=3.01 * highest)) as batched:
            found = await batched.all(asked)
        assert len(server.bodies) == 5
    assert [isinstance(each, Answer) for each in found] == [True] * 5 + [False] * 4
    assert (batched.gateway.budget.cost_usd or 9) <= 3.01 * highest


@pytest.mark.parametrize("name", ["local/qwen2.5-coder-1.5b-instruct", "anthropic/claude-sonnet-4-5", "openvino/m"])
async def test_other_providers_are_refused(name: str) -> None:
    async with session(ModelOptions(engine="batch"), None) as (models, _):
        with pytest.raises(InputError, match=naming("--engine batch", "openai/NAME")):
            models.get(name)


async def test_a_session_with_batches_has_them_for_the_same_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-used")
    async with session(ModelOptions(engine="batch"), None) as (models, gateway):
        model = models.get(name := "openai/gpt-4o-mini")
        assert isinstance(model, BatchModel) and model.price == Price(0.075e-6, 0.3e-6)
        assert gateway.concurrency(model) == 2 * batch_model.MOST_REQUESTS
    async with Models() as one_by_one:
        assert one_by_one.get(name).identity == model.identity


async def test_of_a_model_that_thinks_no_batch_is_thought_away_as_its_first_call_shows_it() -> None:
    with BatchServer(Thinker(300)) as server:
        async with asking(server) as asked:
            found = answers(await asked.all(requests(20)))
            later = answers(await asked.all(requests(20, 20)))
    assert {each.text for each in found + later} == {"Yes"}
    sent = [line["body"]["max_tokens"] for batch in server.batches for line in batch.requests]
    assert set(sent) == {2_005}
    assert len(sent) >= 38
    assert [body["max_tokens"] for body in server.bodies if body["max_tokens"] < 2_000] == [5]
    assert asked.gateway.budget.calls == 40
    assert asked.gateway.budget.role("evaluator").failures == 0
