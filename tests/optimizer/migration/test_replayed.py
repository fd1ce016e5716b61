"""A migration of an agent's prompt: the new model's calls get the recorded results, and are held against the old ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import askance
from askance.models.base import Answer, Request, message_said
from askance.prompts.checklist import load_checklist
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def call(city: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "weather", "arguments": json.dumps({"city": city})}}


def row(number: int) -> dict[str, Any]:
    """A question, and the turn that the old model wrote."""
    city = f"Town{number}"
    output = [
        {"role": "assistant", "content": None, "tool_calls": [call(city)]},
        {"role": "tool", "tool_call_id": "c", "content": f"{number} degrees"},
        {"role": "assistant", "content": f"It is {number} degrees."},
    ]
    return {"id": str(number), "input": f"How warm is it in {city}?", "output": output, "tools": TOOLS}


def forgetful(request: Request) -> str | Answer:
    """A new model that calls the tool for every third question only where its prompt names it."""
    if request.parameters.tools is None:  # asked to put a requirement into words
        return '{"line": "Call the tool weather."}'
    told = f"{request.messages[0][1]} {request.messages[1][1]}"
    city = re.findall(r"Town\d+", told)[0]
    if int(city.removeprefix("Town")) % 3 == 0 and "weather" not in told:
        return "It is warm."
    results = [content for role, content in request.messages if role == "tool"]
    return f"It is {results[0]}." if results else Answer(message_said("", [call(city)]), None, 10, 5)


def test_calls_that_the_new_model_leaves_out_are_regressions_that_are_mended(tmp_path: Path) -> None:
    rows = [row(number) for number in range(40)]
    how: dict[str, Any] = {"prompt": Prompt("Answer."), "kind": "generator", "yes": True, "no_cache": True}
    model = ScriptedModel(forgetful, name="scripted/new")
    askance.migrate(rows, source="recorded", target=model, run=tmp_path / "run", replay=True, progress=False, **how)
    required = {each.id for each in load_checklist(tmp_path / "run" / "requirements.yaml").questions}
    assert required >= {"tools", "calls_weather", "arguments_weather", "same_tools", "same_arguments"}
    target = json.loads((tmp_path / "run" / "certificate.json").read_text())["targets"]["scripted/new"]
    assert target["pass_rate"]["old"]["value"] == 1
    assert target["pass_rate"]["before"]["value"] < 0.95
    assert target["pass_rate"]["after"]["value"] == 1
    written = (tmp_path / "run" / "targets" / "scripted__new" / "outputs.jsonl").read_text().splitlines()
    replayed = [json.loads(line)["output"] for line in written]
    assert replayed and all(isinstance(each, list) and each[-1]["role"] == "assistant" for each in replayed)
