"""``generate``: the outputs of a data set, from a model or a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Answer, Request, message_said
from askance.models.progress import Watcher
from askance.models.writing import WRITING_FILE, PromptSettings
from askance.prompts.checklist import Checklist, ComputedCheck
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "input": "one",
        "output": "old",
        "human": {"overall": 1},
        "comment": "bad",
        "reference": "r",
        "city": "Bonn",
    },
    {"id": "b", "input": "two"},
]


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    path = tmp_path / "writer.md"
    path.write_text("Write.")
    return path


def test_outputs_are_examples_with_the_version_of_the_prompt(writer: Path, tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: f"about {request.messages[-1][1]}")
    found = askance.generate(ROWS, generator=model, prompt=writer, no_cache=True)
    assert found.rows() == [
        {
            "id": "a",
            "input": "one",
            "reference": "r",
            "output": "about one",
            "metadata": {"city": "Bonn"},
            "version": found.version,
        },
        {"id": "b", "input": "two", "output": "about two", "version": found.version},
    ]
    found.save(tmp_path / "outputs.jsonl")
    assert [each.output for each in askance.load_examples(tmp_path / "outputs.jsonl")] == ["about one", "about two"]


def test_a_program_writes_and_one_that_fails_on_an_example_leaves_it_out(writer: Path) -> None:
    def write(example: askance.Example, prompts: dict[str, str]) -> str:
        return prompts["writer"] if example.id == "a" else str(1 / 0)

    found = askance.generate(ROWS, generator=write, prompt=writer, no_cache=True)
    assert [row["id"] for row in found.rows()] == ["a"] and found.share == 0.5
    assert "ZeroDivisionError" in str(found.written[1].error)


def test_a_schema_is_sent_and_counted(writer: Path) -> None:
    sent: list[Request] = []

    def reply(request: Request) -> str:
        sent.append(request)
        return '{"t": "x"}' if "one" in request.messages[-1][1] else "no"

    schema = {"type": "object", "required": ["t"]}
    found = askance.generate(ROWS, generator=ScriptedModel(reply), prompt=writer, schema=schema, no_cache=True)
    assert [each.parameters.schema for each in sent] == [schema, schema] and found.follow_schema == 1
    assert found.to_dict()["follow_schema"] == 1


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("none.json", "there is no schema file none.json"),
        ("bad.json", "bad.json: not valid JSON"),
        ("odd.json", "at $.type"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_its_place(
    writer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{")
    Path("odd.json").write_text(json.dumps({"type": "strin"}))
    with pytest.raises(InputError) as caught:
        askance.generate(ROWS, generator=ScriptedModel([]), prompt=writer, schema=schema)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("generator", "setting", "said"),
    [
        (ScriptedModel([]), {"generator_version": "2"}, "the generator is a model"),
        (lambda example, prompts: "", {"max_output_tokens": 5}, "the generator is a program"),
    ],
)
def test_a_setting_that_the_generator_has_no_use_for_is_refused(
    writer: Path, generator: Any, setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        askance.generate(ROWS, generator=generator, prompt=writer, **setting)


class WithoutSchemas(ScriptedModel):
    """A model whose endpoint has refused a schema."""

    left_out = ("response_format",)


def test_an_endpoint_that_takes_no_schema_is_named(writer: Path) -> None:
    said: list[str] = []

    class Listening(Watcher):
        def watch(self, budget: object) -> None:
            pass

        def phase(self, text: str, total: int | None = None) -> None:
            pass

        def advance(self, done: int, total: int) -> None:
            pass

        def say(self, text: str) -> None:
            said.append(text)

    schema = {"type": "object"}
    askance.generate(
        ROWS, generator=WithoutSchemas(["{}", "{}"]), prompt=writer, schema=schema, no_cache=True, watcher=Listening()
    )
    assert any("schema" in each and "take" in each for each in said)


def test_the_settings_beside_a_runs_prompt_are_used_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Request] = []
    (tmp_path / "prompt.md").write_text("Write.")

    def versions(**more: Any) -> str:
        model = ScriptedModel(lambda request: sent.append(request) or "done")  # type: ignore[func-returns-value]
        return askance.generate(ROWS[1:], generator=model, prompt=tmp_path / "prompt.md", no_cache=True, **more).version

    before = versions()
    settings = PromptSettings(max_output_tokens=7, system_as="user", grammar='root ::= "done"')
    (tmp_path / WRITING_FILE).write_text(settings.to_yaml())
    assert versions() != before
    first, second = sent
    assert first.messages == (("system", "Write."), ("user", "two"))
    assert second.messages == (("user", "Write.\n\ntwo"),)
    assert (second.parameters.max_tokens, second.parameters.grammar) == (7, settings.grammar)
    assert WRITING_FILE in caplog.text and settings.said in caplog.text
    versions(max_output_tokens=9)
    assert sent[-1].parameters.max_tokens == 9


def test_a_recorded_turn_is_replayed_and_the_counts_are_said(writer: Path, tmp_path: Path) -> None:
    call = {"function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    old = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", **call}]},
        {"role": "tool", "tool_call_id": "c", "content": "12"},
        {"role": "assistant", "content": "12 degrees."},
    ]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    rows = [{"id": name, "input": f"How warm {name}?", "output": old, "tools": tools} for name in ("here", "there")]

    def script(request: Request) -> str | Answer:
        if "there" in request.messages[1][1]:
            return Answer(message_said("", [{"function": {"name": "weather", "arguments": '{"city": "Rome"}'}}] * 2))
        return "Warm." if len(request.messages) > 2 else Answer(message_said("", [call]))

    heard: list[str] = []

    class Hears(Watcher):
        def say(self, text: str) -> None:
            heard.append(text)

    how: dict[str, Any] = {"prompt": writer, "no_cache": True, "replay": True}
    found = askance.generate(rows, generator=ScriptedModel(script), watcher=Hears(), **how)
    counts = {"replayed": 2, "calls_with_nearest_result": 14, "unrecorded": 0, "endless": 1, "calls_as_text": 0}
    assert found.to_dict()["replay"] == counts
    assert any("14 calls" in each for each in heard)
    here, there = found.rows()
    assert [each["role"] for each in here["output"]] == ["assistant", "tool", "assistant"]
    assert here["metadata"]["recorded"] == old and there["output"][1]["replayed"] == "nearest"
    found.save(tmp_path / "outputs.jsonl")
    checks = Checklist(questions=(ComputedCheck(id="same", kind="calls_as", value="arguments"),))
    judged = askance.evaluate(tmp_path / "outputs.jsonl", checklist=checks)
    assert [each.answer for each in judged.verdicts] == [True, False]
    with pytest.raises(InputError, match="replay"):
        askance.generate(rows, generator=lambda example, prompts: "x", **how)
