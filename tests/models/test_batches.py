from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Parameters, Request, make_request
from askance.models.batches import batch_model, open_batches
from askance.models.batches.batch_model import BatchModel, Pace
from askance.models.batches.records import BatchJournal, BatchRecord
from askance.models.budget import Budget
from askance.models.direct import DirectModel
from askance.models.files import cache_directory
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.prices import Price
from askance.models.resolve import Models
from askance.models.session import ModelOptions, session
from askance.prompts.errors import BudgetExceededError, InputError
from askance.testing import BatchServer, ServedBatch, ServerReply, StandInServer

JUDGED = Parameters(5, 0.0, 7, 5)
PRICE = Price(0.001, 0.01)
IDENTITY = "openai:here:m"
QUICK = Pace(still=0.04, first=0.01, longest=0.02)
Outcome = Answer | BaseException


def script(body: Mapping[str, Any]) -> ServerReply:
    return random.Random(json.dumps(body["messages"])).random()


def requests(count: int, start: int = 0, parameters: Parameters = JUDGED) -> list[Request]:
    return [make_request(IDENTITY, [("user", f"text {each}")], parameters) for each in range(start, start + count)]


class Asked:
    """A gateway with a model that asks in batches, and what it said."""

    def __init__(self, url: str, *, budget: Budget | None = None, attempts: int = 3, store: Any = None) -> None:
        self.said: list[str] = []
        retry = RetryPolicy(attempts, first=0.01, longest=0.02)
        self.model = BatchModel(
            "openai/m",
            "m",
            url,
            identity=IDENTITY,
            price=PRICE,
            retry=retry,
            say=self.said.append,
            on_wait=lambda why, seconds: self.said.append(why),
            pace=QUICK,
        )
        self.gateway = Gateway(store, budget, retry=retry)

    async def all(self, asked: list[Request]) -> list[Outcome]:
        calls = [self.gateway.ask("evaluator", self.model, each) for each in asked]
        return await asyncio.gather(*calls, return_exceptions=True)


@asynccontextmanager
async def asking(server: StandInServer, **how: Any) -> AsyncIterator[Asked]:
    asked = Asked(server.url, **how)
    try:
        yield asked
    finally:
        await asked.model.close()


def direct(url: str) -> DirectModel:
    return DirectModel("openai/m", "m", url, identity=IDENTITY, price=PRICE)


def records() -> list[Path]:
    return sorted((cache_directory() / "batches").glob("*"))


def answers(found: list[Outcome]) -> list[Answer]:
    assert all(isinstance(each, Answer) for each in found), found
    return [each for each in found if isinstance(each, Answer)]


def error_of(found: Outcome) -> ModelError:
    assert isinstance(found, ModelError), found
    return found


# --- the same answers, at half the price --------------------------------------------------------------------------


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
    assert sum("Waiting for the batch batch_1: 11 requests" in each for each in batched.said) == 1


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


# --- what does not come back --------------------------------------------------------------------------------------


async def test_what_an_expired_batch_left_is_asked_again_and_nothing_else() -> None:
    asked = requests(9)
    with BatchServer(script) as server:
        server.end = lambda batch: "expired" if batch.id == "batch_1" else "completed"
        server.is_answered = lambda batch, number: number < 3
        async with asking(server) as batched:
            answers(await batched.all(asked))
        first, second = server.batches
        left = [each.key.hex() for each in asked[4:]]
        assert [each["custom_id"] for each in first.requests[3:]] == left
        assert sorted(each["custom_id"] for each in second.requests) == sorted(left)
        assert len(server.bodies) == 9, "an answer was bought twice"
    assert batched.gateway.budget.role("evaluator").retries == 5
    assert records() == []


async def test_what_never_comes_is_said_to_have_failed_after_the_last_attempt() -> None:
    with BatchServer(script) as server:
        server.end = lambda batch: "expired"
        server.is_answered = lambda batch, number: False
        async with asking(server, attempts=2) as batched:
            found = await batched.all(requests(14))
        assert len(server.batches) == 2
    answers(found[:1])
    assert all("could not be executed in time" in str(error_of(each)) for each in found[1:])
    assert not any(error_of(each).fatal for each in found[1:]), "that a batch expired says nothing of the endpoint"
    assert batched.gateway.budget.role("evaluator").failures == 13


async def test_lines_that_are_missing_are_asked_again() -> None:
    with BatchServer(script) as server:
        server.leaves_out = lambda batch, number: batch.id == "batch_1" and number in (2, 5)
        async with asking(server) as batched:
            answers(await batched.all(requests(9)))
        assert [len(each.requests) for each in server.batches] == [8, 2]
        assert len(server.bodies) == 9


async def test_of_requests_that_failed_those_are_asked_again_for_which_it_may_help() -> None:
    refused, busy = requests(9)[3], requests(9)[6]
    came: list[str] = []

    def answer(body: Mapping[str, Any]) -> ServerReply:
        text = body["messages"][0]["content"]
        if text == refused.messages[0][1]:
            return 400, {"error": {"message": "The prompt was filtered."}}
        if text == busy.messages[0][1] and came.append(text) is None and len(came) == 1:
            return 500, {"error": {"message": "The server had an error."}}
        return script(body)

    with BatchServer(answer) as server:
        async with asking(server) as batched:
            found = await batched.all(requests(9))
        assert len(server.batches) == 1, "what comes alone is asked directly"
    assert "The prompt was filtered." in str(error_of(found.pop(3)))
    answers(found)


async def test_a_batch_that_fails_its_check_ends_the_run_with_the_reason() -> None:
    def end(batch: ServedBatch) -> str:
        batch.errors = [{"code": "invalid_json_line", "message": "This line is no JSON.", "line": 3}]
        return "failed"

    with BatchServer(script) as server:
        server.end = end
        async with asking(server) as batched:
            found = await batched.all(requests(5))
        assert len(server.batches) == 1
    error = error_of(found[-1])
    assert error.fatal and "batch_1 failed: line 3: This line is no JSON." in str(error)
    assert records() == []


async def test_what_is_too_much_at_once_is_sent_in_parts_one_after_the_other() -> None:
    limit = "Enqueued token limit reached for m. Please try again once some batches have been completed."
    open_before: list[int] = []

    def end(batch: ServedBatch) -> str:
        if len(batch.requests) > 15:
            batch.errors = [{"code": "token_limit_exceeded", "message": limit, "line": None}]
            return "failed"
        open_before.append(sum(each.status in ("validating", "in_progress") for each in server.batches))
        return "completed"

    with BatchServer(script) as server:
        server.end = end
        async with asking(server) as batched:
            answers(await batched.all(requests(41)))
        assert [len(each.requests) for each in server.batches][:2] == [40, 20]
        assert sum(len(each.requests) for each in server.batches if each.status == "completed") == 40
    assert set(open_before) == {1}, "two of them were open at once"
    assert any(limit in each for each in batched.said)


async def test_a_batch_that_somebody_cancels_keeps_what_it_has_and_ends_the_run() -> None:
    asked = requests(9)
    with BatchServer(script) as server, VerdictStore(":memory:") as store:
        server.end = lambda batch: "cancelled"
        server.is_answered = lambda batch, number: number < 4
        async with asking(server, store=store) as batched:
            found = await batched.all(asked)
        assert len(store) == 5
    assert error_of(found[-1]).fatal and "was cancelled at the endpoint" in str(found[-1])


async def test_a_batch_that_is_overdue_is_cancelled_and_what_is_left_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_batches, "OVERDUE", -86_500.0)
    with BatchServer(script, looks=1000) as server:
        server.is_answered = lambda batch, number: number < 2 or batch.id != "batch_1"
        async with asking(server) as batched:
            answers(await batched.all(requests(7)))
        assert [each.status for each in server.batches] == ["cancelled", "cancelled"]
        assert [len(each.requests) for each in server.batches] == [6, 4]


# --- on the way ---------------------------------------------------------------------------------------------------


def times(count: int, method: str, path: str, reply: tuple[Any, ...]) -> Callable[[str, str], tuple[Any, ...] | None]:
    """A reply to the first calls of a kind; ``path`` is how theirs ends."""
    left = [reply] * count

    def tamper(how: str, where: str) -> tuple[Any, ...] | None:
        return left.pop() if how == method and where.endswith(path) and left else None

    return tamper


@pytest.mark.parametrize("path", ["/files", "/batches"])
async def test_an_endpoint_that_is_busy_when_a_batch_is_made_is_asked_again(path: str) -> None:
    with BatchServer(script) as server:
        server.before = times(2, "POST", path, (429, {"error": {"message": "Slow down."}}, {"Retry-After": "0.01"}))
        async with asking(server) as batched:
            answers(await batched.all(requests(5)))
        assert len(server.batches) == 1
    assert any("Slow down." in each for each in batched.said)


async def test_a_batch_whose_reply_was_lost_is_found_and_one_that_goes_on_is_looked_at_again() -> None:
    with BatchServer(script) as server:
        server.after = times(1, "POST", "/batches", (502, "Bad gateway"))
        server.before = times(9, "GET", "/batches/batch_1", (503, "Down for a while"))
        async with asking(server) as batched:
            answers(await batched.all(requests(5)))
        assert len(server.batches) == 1


async def test_an_endpoint_that_stays_busy_ends_the_run() -> None:
    with BatchServer(script) as server:
        server.before = times(99, "POST", "/batches", (429, {"error": {"message": "Slow down."}}))
        async with asking(server) as batched:
            found = await batched.all(requests(5))
        assert server.batches == []
    assert error_of(found[-1]).fatal and "The batch was not taken" in str(found[-1])
    assert records() == [], "429 says that there is no batch"


@pytest.mark.parametrize("broken", [2, 99])
async def test_answers_that_break_off_are_fetched_again(broken: int) -> None:
    """Where they do so each time, what is whole is taken and the rest asked again."""
    with BatchServer(script) as server:
        left = [None] * broken

        def after(method: str, path: str) -> tuple[Any, ...] | None:
            if not path.endswith("/file-2/content") or not left:
                return None
            left.pop()
            text = server.files["file-2"]
            return 200, text[: len(text) // 2]

        server.after = after
        async with asking(server) as batched:
            answers(await batched.all(requests(9)))
        assert len(server.batches) == (1 if broken == 2 else 2)


async def test_an_endpoint_without_batches_is_said_to_have_none() -> None:
    with StandInServer(script) as server:
        async with asking(server) as batched:
            found = await batched.all(requests(5))
    assert error_of(found[-1]).fatal and "offers no batches (HTTP 404). Leave out --engine batch." in str(found[-1])


async def test_an_endpoint_that_is_down_ends_the_run_as_it_does_one_by_one() -> None:
    """Each request comes alone, as those do by which a judge finds out whether there are log-probabilities."""
    with BatchServer(script) as server:
        async with asking(server, attempts=1) as batched:
            batched.model._base_url = "http://127.0.0.1:9/v1"
            for each in requests(9):
                (found,) = await batched.all([each])
                assert "cannot reach" in str(error_of(found)) and not error_of(found).fatal
            (found,) = await batched.all(requests(1, start=20))
    assert error_of(found).fatal and "10 calls in a row failed" in str(found)


@pytest.mark.parametrize("reply", [["hello"], "[" * 100_000])
async def test_a_reply_that_is_no_batch_is_said_to_be_none(reply: Any) -> None:
    with BatchServer(script) as server:
        server.before = lambda method, path: (200, reply) if path.endswith("/files") else None
        async with asking(server) as batched:
            found = await batched.all(requests(5))
    assert error_of(found[-1]).fatal and "none of OpenAI's batch API" in str(found[-1])


async def test_lines_of_answers_that_are_none_are_no_answers() -> None:
    nonsense = "[" * 100_000 + '\nnonsense\n{"custom_id": 5}\n[]\n'
    with BatchServer(script) as server:
        server.before = lambda method, path: (200, nonsense) if path.endswith("/content") else None
        async with asking(server, attempts=1) as batched:
            found = await batched.all(requests(4))
    assert all("no answer" in str(error_of(each)) for each in found[1:])


# --- limits -------------------------------------------------------------------------------------------------------


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
        async with asking(server, budget=Budget(max_calls=6)) as batched:
            found = await batched.all(requests(9))
        assert len(server.bodies) == 6
    answers(found[:6])
    assert all(isinstance(each, BudgetExceededError) for each in found[6:])


async def test_a_cap_on_money_is_held_by_half_the_price_of_what_goes_into_a_batch() -> None:
    asked = requests(9)
    highest = PRICE.highest(asked[0])
    with BatchServer(script) as server:
        # one directly, at the full price, and four at half of it
        async with asking(server, budget=Budget(max_cost=3.01 * highest)) as batched:
            found = await batched.all(asked)
        assert len(server.bodies) == 5
    assert [isinstance(each, Answer) for each in found] == [True] * 5 + [False] * 4
    assert (batched.gateway.budget.cost_usd or 9) <= 3.01 * highest


# --- stopped and gone on with -------------------------------------------------------------------------------------


async def stopped(server: BatchServer, asked: list[Request], until: Callable[[], bool], **how: Any) -> list[str]:
    """Ask, and give up once something has happened; what was said."""
    async with asking(server, **how) as batched:
        work = asyncio.ensure_future(batched.all(asked))
        while not until():
            await asyncio.sleep(0.005)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    return batched.said


async def test_a_batch_that_was_left_is_gone_on_with() -> None:
    asked = requests(9)
    with BatchServer(script, looks=10**6) as server, VerdictStore(":memory:") as store:
        said = await stopped(server, asked, lambda: any(each.looks > 1 for each in server.batches), store=store)
        assert "goes on at the endpoint" in said[-1]
        (kept,) = BatchJournal(IDENTITY).read()
        assert (kept.batch, kept.requests) == ("batch_1", tuple(each.key.hex() for each in asked[1:]))
        server.looks = 0
        async with asking(server, store=store) as batched:
            answers(await batched.all([*asked, *requests(4, start=20)]))
        assert [len(each.requests) for each in server.batches] == [8, 3], "something was bought again"
        assert len(server.bodies) == len(asked) + 4
    assert any("Going on with the batch of" in each for each in batched.said)
    assert records() == []


async def test_it_is_written_down_before_it_is_made_and_found_by_its_file() -> None:
    asked = requests(9)
    with BatchServer(script) as server, VerdictStore(":memory:") as store:
        there: list[bool] = []

        def lost(method: str, path: str) -> tuple[Any, ...] | None:
            if method != "POST" or not path.endswith("/batches"):
                return None
            there.append(len(records()) == 1)
            return 503, "No reply comes through"

        server.after = lost
        server.before = lambda method, path: (
            (503, "Nor later") if method == "GET" and path.endswith("/batches") else None
        )
        async with asking(server, store=store) as batched:
            found = await batched.all(asked)
        assert there[0] and len(server.batches) == 1
        assert error_of(found[-1]).fatal
        (kept,) = BatchJournal(IDENTITY).read()
        assert kept.batch is None
        server.before = server.after = lambda method, path: None
        async with asking(server, store=store) as batched:
            answers(await batched.all(asked))
        assert len(server.batches) == 1 and len(server.bodies) == 9
    assert records() == []


@pytest.mark.parametrize("batch", [None, "batch_gone"])
async def test_a_batch_that_was_never_made_or_is_gone_is_asked_again(batch: str | None) -> None:
    asked = requests(5)
    BatchJournal(IDENTITY).write(
        BatchRecord(IDENTITY, "file-1", tuple(each.key.hex() for each in asked[1:]), 2e9, batch)
    )
    with BatchServer(script) as server:
        async with asking(server) as batched:
            answers(await batched.all(asked))
        assert len(server.batches) == 1
    assert records() == []
    assert any("has the batch batch_gone no more" in each for each in batched.said) is (batch is not None)


async def test_an_answer_that_nobody_has_taken_stays_in_the_record() -> None:
    """Those who wait are stopped when the answers have come, and before they are kept."""
    asked = requests(5)
    with BatchServer(script) as server, VerdictStore(":memory:") as store:
        first = Asked(server.url, store=store)
        work = asyncio.ensure_future(first.all(asked))
        deliver = first.model._open._deliver

        def stop_one(batch: Any, key: str) -> None:
            deliver(batch, key)
            if key == asked[3].key.hex():
                work.cancel()

        first.model._open._deliver = stop_one  # type: ignore[method-assign]
        await asyncio.gather(work, return_exceptions=True)
        await first.model.close()
        kept = BatchJournal(IDENTITY).read()
        left = {key for each in kept for key in each.requests}
        there = set(store.get_many([each.key for each in asked]))
        assert left == {each.key.hex() for each in asked if each.key not in there} and left
        async with asking(server, store=store) as batched:
            answers(await batched.all(asked))
        assert len(server.batches) == 1 and len(server.bodies) == 5
    assert records() == []


@pytest.mark.parametrize("text", ['{"identity": 3', "[" * 100_000])
async def test_a_damaged_record_is_named(text: str) -> None:
    BatchJournal(IDENTITY).write(BatchRecord(IDENTITY, "file-1", (), 2e9))
    (path,) = records()
    path.write_text(text)
    with BatchServer(script) as server:
        async with asking(server) as batched:
            found = await batched.all(requests(3))
    assert all(isinstance(each, InputError) and str(path) in str(each) for each in found)


def test_records_of_other_models_are_left_out_and_old_ones_are_not_as_a_clock_may_be_wrong() -> None:
    ours, other = BatchJournal(IDENTITY), BatchJournal("another")
    old = BatchRecord(IDENTITY, "file-old", ("a",), 1.0)
    new = BatchRecord(IDENTITY, "file-new", ("b",), 2e9)
    for each in (old, new):
        ours.write(each)
    other.write(BatchRecord("another", "file-new", ("c",), 2e9))
    assert ours.read() == [old, new]
    assert ours.read(known=["file-new"]) == [old]
    for each in (old, new):
        ours.drop(each)
    assert ours.read() == []
    assert len(other.read()) == 1


# --- who may be asked so ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["local/qwen2.5-coder-1.5b-instruct", "anthropic/claude-sonnet-4-5", "openvino/m"])
async def test_other_providers_are_refused(name: str) -> None:
    async with session(ModelOptions(engine="batch"), None) as (models, _):
        with pytest.raises(InputError, match="--engine batch asks openai/NAME alone"):
            models.get(name)


async def test_a_session_with_batches_has_them_for_the_same_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-used")
    async with session(ModelOptions(engine="batch"), None) as (models, gateway):
        model = models.get("openai/gpt-4o-mini")
        assert isinstance(model, BatchModel) and model.price == Price(0.075e-6, 0.3e-6)
        assert gateway.concurrency(model) == 2 * batch_model.MOST_REQUESTS
    async with Models() as one_by_one:
        assert one_by_one.get("openai/gpt-4o-mini").identity == model.identity
