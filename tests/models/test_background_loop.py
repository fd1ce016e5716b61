from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from askance.models.event_loops import BackgroundLoop
from askance.prompts.errors import AskanceError
from tests.said import says


async def where() -> int:
    await asyncio.sleep(0)
    return threading.get_ident()


def test_all_threads_share_one_loop() -> None:
    loop = BackgroundLoop()
    with ThreadPoolExecutor(4) as pool:
        threads = set(pool.map(lambda _: loop.run(where()), range(8)))
    loop.close()
    assert len(threads) == 1 and threading.get_ident() not in threads


async def test_it_can_be_waited_for_from_a_running_loop() -> None:
    loop = BackgroundLoop()
    assert await loop.wait_for(where()) == loop.run(where())
    loop.close()


def test_errors_come_out_as_they_are() -> None:
    async def fail() -> None:
        raise AskanceError("no")

    loop = BackgroundLoop()
    with pytest.raises(AskanceError, match=r"^no$"):
        loop.run(fail())
    loop.close()


class Waiting:
    """A thread that waits for a call which ends when it is told to."""

    def __init__(self, loop: BackgroundLoop) -> None:
        self.outcome: list[object] = []
        self._loop = loop
        self._begun = threading.Event()
        self.may_end = threading.Event()
        self.thread = threading.Thread(target=self._wait)
        self.thread.start()
        assert self._begun.wait(5)

    async def _call(self) -> str:
        self._begun.set()
        while not self.may_end.is_set():
            await asyncio.sleep(0.001)
        return "paid for"

    def _wait(self) -> None:
        try:
            self.outcome.append(self._loop.run(self._call()))
        except AskanceError as error:
            self.outcome.append(str(error))


def test_closing_waits_for_what_is_under_way_and_does_the_last_piece_of_work_after_it() -> None:
    loop = BackgroundLoop()
    order: list[str] = []
    waiting = Waiting(loop)

    async def last() -> None:
        order.append("last")

    closing = threading.Thread(target=loop.close, args=(last(),))
    closing.start()
    time.sleep(0.02)
    assert order == []
    with pytest.raises(AskanceError, match="closed"):
        loop.run(where())
    waiting.may_end.set()
    closing.join(5)
    waiting.thread.join(5)
    assert waiting.outcome == ["paid for"] and order == ["last"]


def test_closing_can_end_what_is_under_way() -> None:
    loop = BackgroundLoop()
    waiting = Waiting(loop)
    loop.close(cancel=True)
    waiting.thread.join(5)
    (said,) = waiting.outcome
    assert says(said, "gateway", "closed", "'with'")


def test_threads_that_go_on_asking_while_it_closes_are_not_left_waiting() -> None:
    for _ in range(30):
        loop = BackgroundLoop()

        def ask_on(loop: BackgroundLoop = loop) -> None:
            with suppress(AskanceError):
                while True:
                    loop.run(where())

        threads = [threading.Thread(target=ask_on, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        loop.close()
        for thread in threads:
            thread.join(5)
            assert not thread.is_alive()


def test_waiting_for_itself_or_for_a_closed_loop_is_refused() -> None:
    loop = BackgroundLoop()

    async def wait_for_itself() -> None:
        loop.run(where())

    with pytest.raises(AskanceError, match="own event loop"):
        loop.run(wait_for_itself())
    loop.close()
    with pytest.raises(AskanceError, match="closed"):
        loop.run(where())
