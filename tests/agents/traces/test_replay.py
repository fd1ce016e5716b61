"""Recorded turns replayed: what the model is asked, what its calls get, and where a turn ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from askance.agents.checks import compute
from askance.agents.traces.replay import (
    NO_RESULT,
    Replayed,
    ReplayingGenerator,
    replay_counts,
    replay_said,
    with_record,
)
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Parameters, message_said
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import ComputedCheck
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

PROMPT = Prompt("Answer with the tools.")
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}},
    {"name": "forecast", "description": "Of days to come.", "input_schema": {"type": "object"}},
]


def calls(*made: tuple[str, Mapping[str, Any] | str], named: bool = False, content: str = "") -> Answer:
    """An answer with calls of tools; ``named``: with ids."""
    raw = [
        {
            **({"id": f"id{number}"} if named else {}),
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(made)
    ]
    return Answer(message_said(content, raw), None, 10, 5)


def recorded(*made: tuple[str, Mapping[str, Any], str], reply: str = "It is 12 degrees.") -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number, (name, given, result) in enumerate(made):
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    return [*messages, {"role": "assistant", "content": reply}]


OLD = recorded(
    ("weather", {"city": "Bonn", "unit": "C"}, "12"),
    ("weather", {"city": "Leeds", "unit": "C"}, "9"),
    ("weather", {"city": "Leeds", "unit": "C"}, "10"),
)


def example(output: Any = OLD, **metadata: Any) -> Example:
    asked = "How warm is it in Bonn?"
    return Example(id="e", input=asked, output=output, metadata={"tools": TOOLS, **metadata})


async def replay(
    script: Sequence[Reply], given: Example | None = None, store: VerdictStore | None = None
) -> tuple[Replayed, ScriptedModel]:
    model = ScriptedModel(script)
    writer = ReplayingGenerator(Gateway(store, retry=RetryPolicy(attempts=1)), model, PROMPT)
    [made] = await writer.generate([example() if given is None else given])
    assert isinstance(made, Replayed)
    return made, model


def messages(made: Replayed) -> list[dict[str, Any]]:
    dumped: list[dict[str, Any]] = made.example.model_dump()["output"]
    return dumped


async def test_a_call_gets_the_recorded_result_of_the_same_call_and_a_reply_ends_the_turn() -> None:
    asked = {"unit": "C", "city": "Bonn"}
    made, model = await replay(
        [calls(("weather", asked), named=True), Answer(message_said("12 degrees.", ()), None, 20, 4)]
    )
    first, second = model.requests
    assert first.messages == (("system", PROMPT.text), ("user", "How warm is it in Bonn?"))
    assert [tool["function"]["name"] for tool in first.parameters.tools or ()] == ["weather", "forecast"]
    assert [role for role, _ in second.messages] == ["system", "user", "assistant", "tool"]
    said, result, reply = messages(made)
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == asked
    assert result == {"role": "tool", "tool_call_id": "id0", "content": "12"}
    assert reply["content"] == "12 degrees." and str(made.example.output).endswith("Assistant: 12 degrees.")
    assert not (made.nearest or made.is_unrecorded or made.is_endless or made.error)
    assert made.tokens == 10 + 5 + 20 + 4
    assert replay_said([made]) == []


async def test_other_arguments_get_the_result_of_the_nearest_recorded_call_which_is_said() -> None:
    leeds = {"city": "Leeds", "unit": "F"}
    made, model = await replay([calls(("weather", leeds), ("weather", leeds)), calls(("weather", leeds)), "9."])
    results = [each for each in messages(made) if each["role"] == "tool"]
    # each recorded result is given out before one is given out again
    assert [(each["content"], each["replayed"]) for each in results] == [
        ("9", "nearest"),
        ("10", "nearest"),
        ("9", "nearest"),
    ]
    assert made.nearest == 3 and "3 calls" in replay_said([made])[0]
    assert len({each["tool_call_id"] for each in results}) == 3
    assert all("replayed" not in getattr(content, "original", {}) for _, content in model.requests[-1].messages)


@pytest.mark.parametrize("call", [("forecast", {"city": "Bonn"}), ("delete", {}), ("weather", '{"city": ')])
async def test_a_call_that_was_never_recorded_ends_the_turn(call: tuple[str, Mapping[str, Any] | str]) -> None:
    made, model = await replay([calls(call, ("weather", {"city": "Bonn", "unit": "C"}))])
    assert len(model.requests) == 1
    assert [each["content"] for each in messages(made)[1:]] == [NO_RESULT, "12"]
    assert made.is_unrecorded and made.error is None
    counts = replay_counts([made])
    assert counts is not None and counts.pop("replayed") == counts.pop("unrecorded") == 1
    assert counts and not any(counts.values())
    assert "never recorded" in replay_said([made])[0]


async def test_a_model_that_goes_on_calling_is_stopped_some_messages_after_the_recorded_turn() -> None:
    again = calls(("weather", {"city": "Bonn", "unit": "C"}))
    made, model = await replay([again] * 50)
    assert len(model.requests) == 4 + 5
    assert made.is_endless and not made.is_unrecorded


async def test_a_reply_without_a_call_is_a_turn_and_parity_says_what_is_missing() -> None:
    made, _ = await replay(["It is warm."])
    assert messages(made) == [{"role": "assistant", "content": "It is warm."}]
    check = ComputedCheck(id="same", kind="calls_as", value="tools")
    told = compute(check, made.example)
    assert told.answer is False and "weather" in str(told.explanation)
    assert compute(check, with_record(example())).answer is True


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ('{{"name": "weather", "arguments": {"city": "Bonn"}}}', True),  # as small models write it
        ('```json\n{\n  "name": "weather"\n}\n```', True),
        ('{"name": "Ann"}', False),
        ("I call weather.", False),
    ],
)
async def test_a_call_that_comes_as_text_is_no_call_and_that_is_said(text: str, is_one: bool) -> None:
    made, model = await replay([text])
    assert len(model.requests) == 1 and messages(made)[0]["content"] == text
    assert made.is_in_words is is_one and [each for each in replay_said([made]) if "parser" in each] == replay_said(
        [made]
    )
    assert bool(replay_said([made])) is is_one


async def test_what_stands_behind_the_users_last_message_is_the_output_although_the_data_has_it_in_the_input() -> None:
    history = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "How warm is it in Bonn?"},
    ]
    logged = Example(id="e", input=[*history, *OLD[:-1]], output="It is 12 degrees.", metadata={"tools": TOOLS})
    moved = with_record(logged)
    assert moved.model_dump()["input"] == history and moved.metadata["recorded"] == OLD
    assert moved.model_dump()["output"] == OLD and with_record(moved) == moved
    made, model = await replay(["Warm."], logged)
    assert [role for role, _ in model.requests[0].messages] == ["system", "user", "assistant", "user"]
    assert made.example.input == moved.input and made.example.metadata["recorded"] == OLD


async def test_a_replayed_output_is_replayed_again_against_the_first_record() -> None:
    made, _ = await replay(["Warm."])
    again, _ = await replay([calls(("weather", {"city": "Bonn", "unit": "C"})), "12."], made.example)
    assert again.nearest == 0 and not again.is_unrecorded and again.example.metadata["recorded"] == OLD


async def test_an_error_on_the_way_is_no_output() -> None:
    made, _ = await replay([calls(("weather", {"city": "Bonn", "unit": "C"})), ModelError("broken")])
    assert made.example.output is None and "broken" in str(made.error)
    made, _ = await replay([Answer("no message")])
    assert made.example.output is None and "no message" in str(made.error)


async def test_answers_in_the_store_are_not_bought_again_and_are_foreseen(tmp_path: Any) -> None:
    script = [calls(("weather", {"city": "Bonn", "unit": "C"})), "12 degrees."]
    with VerdictStore(tmp_path / "v.db") as store:
        model = ScriptedModel(script)
        writer = ReplayingGenerator(Gateway(store), model, PROMPT)
        before = writer.estimate([example()])
        assert (before.calls, before.stored) == (4, 0)
        assert before.tokens > 4 * (1024 + len(json.dumps(TOOLS)) // 4)  # definitions are sent each time
        [unknown] = writer.foreseen([example()])
        [made] = await writer.generate([example()])
        after = writer.estimate([example()])
        assert (after.calls, after.stored) == (0, 1)
        [foreseen] = writer.foreseen([example()])
        assert foreseen.output == made.example.output != unknown.output
        [again] = await ReplayingGenerator(Gateway(store), model, PROMPT).generate([example()])
    assert len(model.requests) == 2 and again == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Example(id="e", input="in", output=OLD), "metadata.tools"),
        (example(tools="[{"), "not valid JSON"),
        (example(tools=[*TOOLS, {"description": "Nameless."}]), "tool 3"),
        (example(tools=[{"type": "web_search_20250305", "name": "web_search"}]), "tool 1"),
        (example(output=None), "no recorded output"),
        (example(recorded="12"), "no recorded output"),
    ],
)
async def test_an_example_that_cannot_be_replayed_is_refused_before_anything_is_bought(
    given: Example, said: str
) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(InputError, match="example 'e'") as error:
        await ReplayingGenerator(Gateway(), model, PROMPT).generate([example(), given])
    assert said in str(error.value) and not model.requests


class NoTools(ScriptedModel):
    takes_tools = False


async def test_a_model_that_takes_no_tools_is_refused_before_anything_is_bought() -> None:
    model = NoTools(lambda request: "never")
    with pytest.raises(InputError, match="tools"):
        await ReplayingGenerator(Gateway(), model, PROMPT).generate([example()])
    assert not model.requests


async def test_definitions_may_be_text_in_json_as_in_a_table() -> None:
    _, model = await replay(["Warm."], example(tools=json.dumps(TOOLS)))
    [weather, forecast] = model.requests[0].parameters.tools or ()
    assert weather == TOOLS[0]
    assert forecast["function"] == {
        "name": "forecast",
        "description": "Of days to come.",
        "parameters": {"type": "object"},
    }


def test_tools_are_part_of_the_key_where_there_are_some_and_change_no_other() -> None:
    assert "tools" not in Parameters(10).canonical
    assert Parameters(10, tools=({"name": "a"},)).canonical != Parameters(10, tools=()).canonical
