from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.models.base import Parameters, Request, make_request
from askance.models.embedded import EmbeddedServerPool, ServerSettings
from askance.models.kept_prefixes import TwoSlots
from askance.models.resolve import EmbeddedModel
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

    def __init__(self, server: StandInServer, settings: ServerSettings) -> None:
        super().__init__(settings)
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


async def ask(settings: ServerSettings, requests: list[Request]) -> Recorder:
    seen = Recorder()
    with StandInServer(seen) as server:
        model = EmbeddedModel("local/m", Path("m.gguf"), "hash", Served(server, settings), 10)
        for each in requests:
            assert (await model.answer(each)).text == "yes"
        await model.close()
    return seen


ABCA = [request("a"), request("b"), request("b", "!"), request("c"), request("a")]


async def test_the_embedded_model_names_the_slot_and_sends_nothing_else_of_the_prefix() -> None:
    seen = await ask(ServerSettings(), ABCA)
    assert seen.slots == [0, 1, 1, 0, None]
    assert seen.texts == ["a?", "b?", "b!", "c?", "a?"]


@pytest.mark.parametrize("settings", [ServerSettings(slots=3), ServerSettings(prompt_cache_mib=0)])
async def test_with_more_slots_or_no_memory_it_is_left_to_the_server(settings: ServerSettings) -> None:
    assert (await ask(settings, ABCA)).slots == [None] * 5


async def test_requests_that_name_no_prefix_go_by_their_first_message() -> None:
    system = [make_request("m", [("system", "s"), ("user", each)], Parameters(1)) for each in "xy"]
    assert (await ask(ServerSettings(), [request("a"), *system, request("a")])).slots == [0, 1, 1, 0]


async def test_a_server_started_again_has_read_nothing() -> None:
    first, second = Recorder(), Recorder()
    with StandInServer(first) as before, StandInServer(second) as after:
        pool = Served(before, ServerSettings())
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

        async def _post(self, body: dict[str, Any]) -> tuple[int, Any, bytes]:
            self.now += 1
            under_way.append(self.now)
            try:
                return await super()._post(body)
            finally:
                self.now -= 1

    with StandInServer(Recorder(), delay=0.02) as server:
        model = Counting("local/m", Path("m.gguf"), "hash", Served(server, ServerSettings()), 10)
        await asyncio.gather(*map(model.answer, ABCA))
        await model.close()
    assert under_way == [1] * 5


def test_the_prefix_is_no_part_of_the_key() -> None:
    assert request("a") == make_request("m", [("user", "a?")], Parameters(1))
