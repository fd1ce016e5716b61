"""The server for coding agents, asked by the SDK's own client."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer
from tests.said import says
from tests.worlds import World

mcp = pytest.importorskip("mcp")

from askance.bridges.coding.mcp_server import Allowance, make_server  # noqa: E402

RELEASED = Path(__file__).parents[1] / "data" / "released_run"


@pytest.fixture
def endpoint(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInServer]:
    """A stand-in for the judge, and a project beside it."""
    world = World(16)
    world.write(sandbox)
    with StandInServer(world.serve) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@asynccontextmanager
async def client(**allowed: Any) -> AsyncIterator[Any]:
    async with mcp.Client(make_server(Allowance(**allowed))) as found:
        yield found


async def told(found: Any, tool: str, **arguments: Any) -> tuple[bool, Any]:
    """Whether a tool failed, and what it said."""
    result = await found.call_tool(tool, arguments)
    text = result.content[0].text
    return bool(result.is_error), text if result.is_error else json.loads(text)


ASKED = {"data": "data.jsonl", "checklist": "checklist.yaml", "model": "openai/target"}


async def test_every_tool_says_what_it_does_and_whether_it_only_reads() -> None:
    async with client() as found:
        tools = {each.name: each for each in (await found.list_tools()).tools}
    assert set(tools) == {"evaluate", "align", "explain", "result_of", "propose_questions"}
    assert all(each.description for each in tools.values())
    assert {name for name, each in tools.items() if each.annotations.read_only_hint} == {"explain", "result_of"}


async def test_without_a_cap_work_is_estimated_and_nothing_is_bought_or_written(
    endpoint: StandInServer, sandbox: Path
) -> None:
    before = set(os.listdir(sandbox))
    async with client() as found:
        failed, estimate = await told(found, "evaluate", **ASKED)
        assert not failed and estimate["estimate"]["calls"] == 32 and estimate["bought"] == 0
        failed, said = await told(found, "evaluate", **ASKED, buy=True)
        assert failed and says(said, "only reads", "--call-budget")
        failed, most = await told(found, "align", **ASKED)
        assert not failed and most["calls_at_most"] > most["estimate"]["calls"] > 0
        failed, said = await told(found, "align", **ASKED, buy=True)
        assert failed and says(said, "writes nothing", "--runs")
        failed, most = await told(found, "propose_questions", task="Write news.", model="openai/target")
        assert not failed and most["calls_at_most"] > 1
    assert endpoint.bodies == []
    assert set(os.listdir(sandbox)) - before <= {"cache"}


async def test_caps_hold_over_all_tools(endpoint: StandInServer) -> None:
    async with client(call_budget=40) as found:
        failed, first = await told(found, "evaluate", **ASKED, buy=True)
        assert not failed and 32 <= first["bought"] == len(endpoint.bodies) <= 34
        assert first["result"]["coverage"]["answered"] == 32
        failed, again = await told(found, "evaluate", **ASKED, buy=True)
        assert not failed and again["bought"] == 0, "the answers are there"
        failed, said = await told(found, "evaluate", **ASKED | {"model": "openai/another"}, buy=True)
        assert failed and "budget" in said.lower()
        assert len(endpoint.bodies) <= 40


async def test_a_kept_judge_is_asked_and_a_file_that_is_not_there_is_said(endpoint: StandInServer) -> None:
    async with client() as found:
        failed, said = await told(found, "evaluate", data="data.jsonl", judge="nowhere")
        assert failed and "nowhere" in said
        failed, said = await told(found, "evaluate", **ASKED, judge="run")
        assert failed and says(said, "judge", "its own checklist")


async def test_a_run_is_explained(sandbox: Path) -> None:
    result = json.loads((RELEASED / "result.json").read_text(encoding="utf-8"))
    lesson = next(each for each in result["lessons"] if each["status"] == "applied")
    async with client() as found:
        failed, why = await told(found, "explain", run=str(RELEASED), sentence=lesson["text"])
        assert not failed and lesson["text"] in json.dumps(why, ensure_ascii=False)
        failed, whole = await told(found, "result_of", run=str(RELEASED))
        assert not failed and whole["finish_reason"] == result["finish_reason"]
        failed, said = await told(found, "explain", run=str(RELEASED), sentence="Nobody says this at all.")
        assert failed and "says" in said


@pytest.mark.parametrize("name", ["../run", "a/b", "", "/tmp/run"])
async def test_a_run_stays_in_its_folder(endpoint: StandInServer, sandbox: Path, name: str) -> None:
    async with client(call_budget=10, runs=sandbox / "runs") as found:
        failed, said = await told(found, "align", **ASKED, run=name, buy=True)
    assert failed and "plain name" in said
    assert endpoint.bodies == []
