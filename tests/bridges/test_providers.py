"""Every command that asks models, with every provider's wire format, through LiteLLM itself where it lies between."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.doubles import VendorServer
from tests.doubles.vendors import FILTERED

CHECKLIST = Checklist(
    task="Summaries of reports.",
    questions=(
        Question(id="year", text="Does it name the year?", dimension="quality", violation="No year."),
        Question(id="short", text="Is it one sentence?", dimension="quality", violation="Three sentences."),
    ),
)
ROWS = [
    {
        "id": str(number),
        "input": f"Sum up report {number}.",
        "output": f"Sales rose in {2000 + number}, by {number} percent.",
        "human": {"quality": (number * 7 % 5) / 4},
    }
    for number in range(15)
]
DIRECT = {"openai/gpt-5-mini": "/v1", "openai/gpt-oss-120b": "/vllm/v1"}
"""Models asked without LiteLLM, with the path of their server."""
THROUGH_LITELLM = [
    "azure/prod-judge",
    "anthropic/claude-sonnet-4-5",
    "gemini/gemini-2.5-pro",
    "hosted_vllm/openai/gpt-oss-120b",
    "ollama_chat/qwen3",
    "openrouter/openai/gpt-5-mini",
    "openai/responses/gpt-5-mini",
]
QUICK = {"resamples": 100, "no_cache": True, "timeout": 20}
needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason="litellm is not installed (the extra 'providers')"
)
PROVIDERS = [*DIRECT, *(pytest.param(name, marks=needs_litellm) for name in THROUGH_LITELLM)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorServer]:
    with VendorServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def reach(server: VendorServer, name: str) -> dict[str, Any]:
    return {"api_base": server.root + DIRECT[name]} if name in DIRECT else {}


def source(request: Request) -> str:
    return "Yes" if sum(map(ord, request.messages[-1][1])) % 3 else "No"


def evaluate(server: VendorServer, name: str, run: Path) -> None:
    found = askance.evaluate(ROWS, checklist=CHECKLIST, model=name, **QUICK, **reach(server, name))
    assert len(found.verdicts) == 2 * len(ROWS)
    assert {each.status for each in found.verdicts} == {"ok"}
    assert len({each.answer for each in found.verdicts}) == 2, "it says yes and no"


def explained(server: VendorServer, name: str, run: Path) -> None:
    found = askance.evaluate(
        ROWS[:4], checklist=CHECKLIST, model=name, explain="always", **QUICK, **reach(server, name)
    )
    assert {each.status for each in found.verdicts} == {"ok"}
    assert all(each.explanation for each in found.verdicts)


def align(server: VendorServer, name: str, run: Path) -> None:
    done = askance.align(
        ROWS,
        checklist=CHECKLIST,
        model=name,
        run=run,
        max_iterations=1,
        resamples=100,
        timeout=20,
        **reach(server, name),
    )
    finished(done)


def migrate(server: VendorServer, name: str, run: Path) -> None:
    options = {"max_iterations": 1, "resamples": 100, "timeout": 20, **reach(server, name)}
    done = askance.migrate(
        ROWS, checklist=CHECKLIST, source=ScriptedModel(source), target=name, note_taker=name, run=run, **options
    )
    finished(done)


def tune(server: VendorServer, name: str, run: Path) -> None:
    options = {"max_iterations": 1, "resamples": 100, "timeout": 20, **reach(server, name)}
    done = askance.tune(
        ROWS, generator=name, judge=name, prompt=Prompt("Sum up the report."), checklist=CHECKLIST, run=run, **options
    )
    finished(done)


def finished(done: Any) -> None:
    """No call of any role was left without an answer, so that what was learned is of the model and not of its wire."""
    roles = done.result["roles"]
    assert {name: role["failures"] for name, role in roles.items() if role["failures"]} == {}
    assert len(roles) > 1 and done.finish_reason != "api_error"
    assert done.result["coverage"] == 1


COMMANDS: dict[str, Callable[[VendorServer, str, Path], None]] = {
    "evaluate": evaluate,
    "explained": explained,
    "align": align,
    "migrate": migrate,
    "tune": tune,
}


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_with_each_provider(command: str, name: str, server: VendorServer, tmp_path: Path) -> None:
    COMMANDS[command](server, name, tmp_path / "run")


@needs_litellm
def test_what_azures_filter_holds_back_is_a_failed_verdict_and_no_answer(server: VendorServer) -> None:
    rows = [*ROWS[:4], {**ROWS[4], "output": f"{FILTERED} and more."}]
    found = askance.evaluate(rows, checklist=CHECKLIST, model="azure/prod-judge", min_coverage=0.5, **QUICK)
    assert [each.status == "ok" for each in found.verdicts] == [True] * 8 + [False] * 2


@needs_litellm
def test_what_a_deployment_refuses_is_refused_once(server: VendorServer) -> None:
    askance.evaluate(ROWS, checklist=CHECKLIST, model="azure/prod-judge", **QUICK)
    said = [reply["error"]["param"] or reply["error"]["message"] for _, reply in server.refused]
    assert said[:2] == ["max_tokens", "temperature"] and "request logprobs" in said[2] and len(said) == 3


@needs_litellm
def test_an_old_api_version_explains_as_well(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes no schema; LiteLLM asks for a call of a tool instead."""
    monkeypatch.setenv("AZURE_API_VERSION", "2024-02-01")
    explained(server, "azure/prod-judge", Path())
    assert server.bodies[-1]["tools"]
