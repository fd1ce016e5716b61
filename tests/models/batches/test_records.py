from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request, StoreAwayError
from askance.models.batches.open_batches import BatchJournal, BatchRecord
from askance.prompts.errors import AskanceError, InputError
from tests.doubles import BatchServer
from tests.said import says

from .conftest import IDENTITY, Asked, answers, asking, error_of, records, requests, script


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
        assert says(said[-1], "goes on", "endpoint")
        (kept,) = BatchJournal(IDENTITY).read()
        assert (kept.batch, kept.requests) == ("batch_1", tuple(each.key.hex() for each in asked[1:]))
        server.looks = 0
        async with asking(server, store=store) as batched:
            answers(await batched.all([*asked, *requests(4, start=20)]))
        assert [len(each.requests) for each in server.batches] == [8, 3], "something was bought again"
        assert len(server.bodies) == len(asked) + 4
    assert any(says(each, "Going on", "batch") for each in batched.said)
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


async def test_answers_that_the_store_did_not_take_stay_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.models.gateway.STORE_PATIENCE", 0.3)
    asked = requests(5)
    with BatchServer(script) as server, VerdictStore(":memory:") as store:

        def away(key: bytes, answer: Answer) -> None:
            raise StoreAwayError("The database is restarted.")

        with monkeypatch.context() as patch:
            patch.setattr(store, "put", away)
            async with asking(server, store=store) as batched:
                assert all(isinstance(each, AskanceError) for each in await batched.all(asked))
        (kept,) = BatchJournal(IDENTITY).read()
        assert kept.requests == tuple(each.key.hex() for each in asked[1:]), "the first was asked directly"
        async with asking(server, store=store) as batched:
            answers(await batched.all(asked))
        assert len(server.batches) == 1, "nothing is bought again"
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
