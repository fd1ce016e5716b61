from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.models.base import Parameters, Request, make_request
from askance.models.embedded.servers import EmbeddedModel, EmbeddedServerPool, ProcessorTurns, TwoSlots
from askance.prompts.prompt import Framing
from askance.testing import StandInServer


@pytest.mark.parametrize(("asked", "taken"), [("aaabbb", [0, 0, 0, 1, 1, 1]), ("abcd", [0, 1, 0, 1])])
def test_an_example_stays_where_it_was_read_and_a_new_one_takes_the_slot_not_used_last(
    asked: str, taken: list[int]
) -> None:
    slots = TwoSlots()
    assert [slots.slot_for(each) for each in asked] == taken


def test_an_example_that_is_in_neither_slot_any_more_is_left_to_the_servers_memory() -> None:
    slots = TwoSlots()
    for each in "abc":
        slots.slot_for(each)
    assert slots.slot_for("a") is None, "the server loads it into slot 1, not used last"
    assert [slots.slot_for(each) for each in "aac"] == [1, 1, 0]
    assert slots.slot_for("b") is None
    assert slots.slot_for("b") == 1, "in slot 1, as 0 was used last"


class Served(EmbeddedServerPool):
    """A pool whose server is there already."""

    def __init__(self, server: StandInServer) -> None:
        super().__init__()
        self.servers = [server]

    async def url_for(self, path: Path) -> str:
        return self.servers[-1].url


def request(prefix: str, question: str = "?") -> Request:
    return make_request("m", [("user", prefix + question)], Parameters(1), framing=Framing(None, prefix, ""))


class Recorder:
    def __init__(self) -> None:
        self.slots: list[int | None] = []
        self.texts: list[str] = []

    def __call__(self, body: Mapping[str, Any]) -> str:
        self.slots.append(body.get("id_slot"))
        self.texts.append(body["messages"][0]["content"])
        return "yes"


async def ask(requests: list[Request]) -> Recorder:
    seen = Recorder()
    with StandInServer(seen) as server:
        model = EmbeddedModel("local/m", Path("m.gguf"), "hash", Served(server), 10)
        for each in requests:
            assert (await model.answer(each)).text == "yes"
        await model.close()
    return seen


ABCA = [request("a"), request("b"), request("b", "!"), request("c"), request("a")]


async def test_the_embedded_model_names_the_slot_and_sends_nothing_else_of_the_prefix() -> None:
    seen = await ask(ABCA)
    assert seen.slots == [0, 1, 1, 0, None]
    assert seen.texts == ["a?", "b?", "b!", "c?", "a?"]


async def test_requests_that_name_no_prefix_go_by_their_first_message() -> None:
    system = [make_request("m", [("system", "s"), ("user", each)], Parameters(1)) for each in "xy"]
    assert (await ask([request("a"), *system, request("a")])).slots == [0, 1, 1, 0]


async def test_a_server_started_again_has_read_nothing() -> None:
    first, second = Recorder(), Recorder()
    with StandInServer(first) as before, StandInServer(second) as after:
        pool = Served(before)
        model = EmbeddedModel("local/m", Path("m.gguf"), "hash", pool, 10)
        for each in ABCA[:4]:
            await model.answer(each)
        pool.servers.append(after)
        for each in ABCA[:2]:
            await model.answer(each)
        await model.close()
    assert first.slots == [0, 1, 1, 0] and second.slots == [0, 1]


async def test_two_requests_at_once_are_answered_one_after_the_other() -> None:
    under_way: list[int] = []

    class Counting(EmbeddedModel):
        now = 0

        async def call(self, *what: Any, **how: Any) -> tuple[int, Any, bytes]:
            self.now += 1
            under_way.append(self.now)
            try:
                return await super().call(*what, **how)
            finally:
                self.now -= 1

    with StandInServer(Recorder(), delay=0.02) as server:
        model = Counting("local/m", Path("m.gguf"), "hash", Served(server), 10)
        await asyncio.gather(*map(model.answer, ABCA))
        await model.close()
    assert under_way == [1] * 5


def test_the_prefix_is_no_part_of_the_key() -> None:
    assert request("a") == make_request("m", [("user", "a?")], Parameters(1))


async def test_models_of_several_processes_compute_in_turn(tmp_path: Path) -> None:
    order: list[str] = []

    async def ask(name: str, turns: ProcessorTurns) -> None:
        for _ in range(3):
            async with turns.turn():
                order.append(name)
                await asyncio.sleep(0.05)
                order.append(name)

    await asyncio.gather(*(ask(name, ProcessorTurns(tmp_path)) for name in "abc"))
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert len(pairs) == 9 and all(begun == ended for begun, ended in pairs)
    assert pairs[0] != pairs[1], "who has just computed lets who waits go first"
    assert {each for each, _ in pairs[:6]} == {"a", "b", "c"}


async def test_a_killed_process_gives_its_turn_back_and_a_stopped_one_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from askance.models.embedded.servers import ProcessorTurns
        async def main():
            async with ProcessorTurns(Path({str(tmp_path)!r})).turn():
                print("mine", flush=True)
                await asyncio.sleep(600)
        asyncio.run(main())
    """)
    other = await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None and other.stdout.readline() == b"mine\n"
        monkeypatch.setattr("askance.models.embedded.servers.TURN_SECONDS", 0.3)
        turns = ProcessorTurns(tmp_path)
        waited = []
        for _ in range(3):
            before = time.monotonic()
            async with turns.turn():
                waited.append(time.monotonic() - before)
        assert waited[0] >= 0.3 and max(waited[1:]) < 0.2
        monkeypatch.setattr("askance.models.embedded.servers.TURN_SECONDS", 20.0)
        waiting = asyncio.ensure_future(_entered(ProcessorTurns(tmp_path)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    finally:
        other.kill()
        other.communicate()
    await asyncio.wait_for(waiting, 10)


async def _entered(turns: ProcessorTurns) -> None:
    async with turns.turn():
        pass


async def test_a_cancelled_wait_keeps_no_lock(tmp_path: Path) -> None:
    async with ProcessorTurns(tmp_path).turn():
        waiting = asyncio.ensure_future(_entered(ProcessorTurns(tmp_path)))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await asyncio.wait_for(_entered(ProcessorTurns(tmp_path)), 5)


async def test_processes_on_other_processors_have_turns_of_their_own_however_many_these_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(512)), raising=False)
    async with ProcessorTurns(tmp_path).turn():
        waiting = asyncio.ensure_future(_entered(ProcessorTurns(tmp_path)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {512})
        await asyncio.wait_for(_entered(ProcessorTurns(tmp_path)), 5)
    await asyncio.wait_for(waiting, 5)


async def test_where_no_lock_can_be_had_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with ProcessorTurns(tmp_path / "file" / "turns").turn():
        await asyncio.wait_for(_entered(ProcessorTurns(tmp_path / "file" / "turns")), 5)
