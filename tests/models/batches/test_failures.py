from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.batches import open_batches
from askance.models.batches.open_batches import BatchJournal, BatchRecord
from askance.prompts.errors import AskanceError
from askance.testing import ServerReply, StandInServer
from tests.doubles import BatchServer, ServedBatch
from tests.said import says

from .conftest import answers, asking, error_of, records, requests, script


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
    assert all(says(error_of(each), "in time") for each in found[1:])
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
    assert error_of(found[-1]).fatal and says(found[-1], "cancelled", "endpoint")


async def test_a_batch_that_is_overdue_is_cancelled_and_what_is_left_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_batches, "OVERDUE", -86_500.0)
    with BatchServer(script, looks=1000) as server:
        server.before = times(1, "POST", "/cancel", (503, "Down for a while"))
        server.is_answered = lambda batch, number: number < 2 or batch.id != "batch_1"
        async with asking(server) as batched:
            answers(await batched.all(requests(7)))
        assert [each.status for each in server.batches] == ["cancelled", "cancelled"]
        assert [len(each.requests) for each in server.batches] == [6, 4]


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


PAGES = ["<html>Back soon</html>", "", '{"id": "batch_1", "obj']


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_in_place_of_a_reply_about_a_batch_is_passed_over(page: str) -> None:
    with BatchServer(script) as server:
        server.after = times(1, "POST", "/batches", (200, page))
        server.before = times(1, "GET", "/batches/batch_1", (200, page))
        async with asking(server) as batched:
            answers(await batched.all(requests(5)))
        assert len(server.batches) == 1


@pytest.mark.parametrize("page", PAGES)
async def test_a_batch_whose_reply_is_a_page_each_time_is_not_forgotten(page: str) -> None:
    with BatchServer(script) as server:
        server.after = times(99, "POST", "/batches", (200, page))
        server.before = times(99, "GET", "/batches", (200, page))
        async with asking(server) as batched:
            found = await batched.all(requests(5))
        assert error_of(found[-1]).fatal and len(server.batches) == len(records()) == 1
        server.after = server.before = lambda method, path: None
        async with asking(server) as batched:
            answers(await batched.all(requests(5)[1:]))
        assert len(server.batches) == 1 and records() == []


async def test_an_endpoint_that_stays_busy_ends_the_run() -> None:
    with BatchServer(script) as server:
        server.before = times(99, "POST", "/batches", (429, {"error": {"message": "Slow down."}}))
        async with asking(server) as batched:
            found = await batched.all(requests(5))
        assert server.batches == []
    assert error_of(found[-1]).fatal and says(found[-1], "not taken")
    assert records() == [], "429 says that there is no batch"


@pytest.mark.parametrize("path", ["/files", "/batches"])
async def test_an_endpoint_that_refuses_a_batch_ends_the_run_with_the_reason(path: str) -> None:
    with BatchServer(script) as server:
        server.before = times(1, "POST", path, (413, {"error": {"message": "Too large."}}))
        async with asking(server) as batched:
            found = await batched.all(requests(5))
        assert len(server.bodies) == 1
    assert error_of(found[-1]).fatal and says(found[-1], "not taken", "Too large.")
    assert records() == []


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
    assert error_of(found[-1]).fatal and says(found[-1], "HTTP 404", "--engine batch")


async def test_an_endpoint_that_is_down_ends_the_run_as_it_does_one_by_one() -> None:
    """Each request comes alone, as those do by which a judge finds out whether there are log-probabilities."""
    with BatchServer(script) as server:
        async with asking(server, attempts=1) as batched:
            batched.model._base_url = "http://127.0.0.1:9/v1"
            for each in requests(9):
                (found,) = await batched.all([each])
                assert "cannot reach" in str(error_of(found)) and not error_of(found).fatal
            (found,) = await batched.all(requests(1, start=20))
    assert error_of(found).fatal and says(found, "10 calls")


@pytest.mark.parametrize("reply", [["hello"], "[" * 100_000])
async def test_a_reply_that_is_no_batch_is_said_to_be_none(reply: Any) -> None:
    with BatchServer(script) as server:
        server.before = lambda method, path: (200, reply) if path.endswith("/files") else None
        async with asking(server) as batched:
            found = await batched.all(requests(5))
    assert error_of(found[-1]).fatal and says(found[-1], "OpenAI's batch API")


@pytest.mark.parametrize("expires", [1.9e12, float("inf"), "2026-11-28T00:00:00Z", -1, True, [5]])
async def test_an_end_that_is_no_time_is_as_one_that_is_not_said(
    monkeypatch: pytest.MonkeyPatch, expires: object
) -> None:
    """Milliseconds, for one, are a year that no calendar has."""
    shown = BatchServer._shown
    monkeypatch.setattr(BatchServer, "_shown", lambda self, batch: {**shown(self, batch), "expires_at": expires})
    with BatchServer(script) as server:
        async with asking(server) as batched:
            answers(await asyncio.wait_for(batched.all(requests(5)), 20))
    assert not any("overdue" in each for each in batched.said)


async def test_whoever_waits_is_told_where_the_id_of_a_batch_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write = BatchJournal.write

    def full(self: BatchJournal, record: BatchRecord) -> None:
        if record.batch is not None:
            raise AskanceError("The disk is full.")
        write(self, record)

    with BatchServer(script) as server:
        async with asking(server) as batched:
            with monkeypatch.context() as now:
                now.setattr(BatchJournal, "write", full)
                found = await asyncio.wait_for(batched.all(requests(5)), 20)
            assert len(found) == 5 and all(says(each, "disk is full") for each in found[1:])
        assert len(records()) == 1, "what was sent is found again"
        async with asking(server) as batched:
            answers(await batched.all(requests(5)[1:]))
        assert len(server.batches) == 1


@pytest.mark.parametrize("page", ["<html>Back soon</html>", ""])
async def test_a_page_in_place_of_the_answers_is_waited_out(page: str) -> None:
    """What is paid for is not bought again."""
    with BatchServer(script) as server:
        server.before = times(9, "GET", "/content", (200, page))
        async with asking(server) as batched:
            answers(await batched.all(requests(5)))
        assert len(server.batches) == 1 and records() == []


async def test_lines_of_answers_that_are_none_are_no_answers() -> None:
    nonsense = "[" * 100_000 + '\nnonsense\n{"custom_id": 5}\n[]\n'
    with BatchServer(script) as server:
        server.before = lambda method, path: (200, nonsense) if path.endswith("/content") else None
        async with asking(server, attempts=1) as batched:
            found = await batched.all(requests(4))
    assert all("no answer" in str(error_of(each)) for each in found[1:])
