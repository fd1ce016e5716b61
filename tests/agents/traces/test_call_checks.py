"""Checks of calls of tools, and of texts beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.checks import compute
from askance.agents.traces.call_checks import shared_arguments
from askance.prompts.checklist import ComputedCheck, parse_checklist
from askance.prompts.conversations.chat import ToolCall
from askance.prompts.errors import InputError
from askance.prompts.examples import Example

Call = tuple[str, dict[str, Any] | str]
SEARCH: Call = ("search", {"query": "lamp", "limit": 3})
OPEN: Call = ("open", {"page": 1})


def trace(*calls: Call, reply: str = "Here it is.") -> list[dict[str, Any]]:
    """The messages of an output: a call and its result each, and a reply."""
    messages: list[dict[str, Any]] = []
    for number, (name, arguments) in enumerate(calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"https://result.of/{name}"})
    return [*messages, {"role": "assistant", "content": reply}]


def found(kind: str, value: Any, output: Any, recorded: Any = None, **more: str) -> tuple[bool | None, str]:
    check = ComputedCheck.model_validate({"id": "c", "kind": kind, "value": value, **more})
    metadata = {} if recorded is None else {"recorded": recorded}
    told = compute(check, Example(id="e", input="Find me a lamp.", output=output, metadata=metadata))
    return told.answer, told.explanation or told.error or ""


LIMITED = {"search": {"type": "object", "properties": {"limit": {"type": "integer", "maximum": 5}}}}


@pytest.mark.parametrize(
    ("kind", "value", "passes", "fails", "said"),
    [
        ("tools", "search, open", [SEARCH], [SEARCH, ("delete", {})], "calls delete"),
        ("tools", "search", [], [OPEN], "calls open"),
        ("calls", "1 to 2 calls", [SEARCH, OPEN], [], "0 calls"),
        ("calls", "at least 1 call of open", [SEARCH, OPEN], [SEARCH, SEARCH], "0 calls of open"),
        ("calls", "exactly 1 call of search", [SEARCH, OPEN], [SEARCH, SEARCH], "2 calls of search"),
        ("arguments", LIMITED, [SEARCH, OPEN], [SEARCH, ("search", {"limit": 9})], "$.limit"),
        ("arguments", LIMITED, [OPEN], [("search", '{"limit": 3')], "no valid JSON"),
        ("order", "search before open", [SEARCH, OPEN, SEARCH], [OPEN, SEARCH], "open before search"),
        ("order", "search before open", [OPEN], [OPEN, OPEN, SEARCH], "open before search"),
    ],
)
def test_a_kind_passes_the_calls_that_have_the_property_and_says_what_it_found_of_others(
    kind: str, value: Any, passes: list[Call], fails: list[Call], said: str
) -> None:
    assert found(kind, value, trace(*passes)) == (True, "")
    answer, reason = found(kind, value, trace(*fails))
    assert answer is False and said in reason


@pytest.mark.parametrize(
    ("value", "passes", "fails", "said"),
    [
        ("tools", [OPEN, SEARCH, OPEN], [SEARCH, ("delete", {})], ["not call open", "delete"]),
        ("order", [SEARCH, ("delete", {}), OPEN], [OPEN, SEARCH], ["open, search", "search, open"]),
        ("order", [OPEN], [OPEN, SEARCH], ["open, search"]),
        ("arguments", [OPEN, ("search", {"limit": 3.0, "query": "lamp"})], [SEARCH], ["2 of 3", "open.page none"]),
        ("arguments", [SEARCH, OPEN], [SEARCH, OPEN, OPEN], ["3 of 4", "open.page 1, recorded none"]),
        (
            "arguments except search.query",
            [("search", {"query": "a red lamp", "limit": 3}), OPEN],
            [("search", {"query": "lamp", "limit": True}), OPEN],
            ["1 of 2", "search.limit true, recorded 3"],
        ),
    ],
)
def test_calls_are_held_against_those_of_the_recorded_output(
    value: str, passes: list[Call], fails: list[Call], said: list[str]
) -> None:
    recorded = trace(SEARCH, OPEN)
    assert found("calls_as", value, trace(*passes), recorded)[0] is True
    answer, reason = found("calls_as", value, trace(*fails), recorded)
    assert answer is False and all(each in reason for each in said)
    assert found("calls_as", value, recorded, recorded)[0] is True


def test_without_the_recorded_output_nothing_is_said_of_parity() -> None:
    answer, error = found("calls_as", "tools", trace(SEARCH))
    assert answer is None and "metadata.recorded" in error


def test_each_recorded_call_is_held_against_the_most_similar_call_of_its_tool() -> None:
    recorded = [ToolCall("search", {"query": "a", "limit": 1}), ToolCall("search", {"query": "b", "limit": 2})]
    shared = shared_arguments([ToolCall("search", {"query": "b", "limit": 2}), recorded[0]], recorded)
    assert (shared.equal, shared.of, shared.different) == (4, 4, ())
    nested = [ToolCall("book", {"trip": {"to": "Bonn", "days": [1, 2]}})]
    assert shared_arguments(nested, [ToolCall("book", {"trip": {"days": [1, 2], "to": "Bonn"}})]).equal == 1
    assert shared_arguments(nested, [ToolCall("book", {"trip": {"days": [2, 1], "to": "Bonn"}})]).equal == 0
    assert shared_arguments([ToolCall("stop", {})], [ToolCall("stop", {})])[:2] == (1, 1)


@pytest.mark.parametrize(
    ("kind", "value", "good"),
    [
        ("begins", "Dear Ann", "yes"),
        ("ends", "Bye.", "yes"),
        ("length", "exactly 3 words", "yes"),
        ("matches", "https?://", "no"),
    ],
)
def test_a_check_of_a_text_reads_the_last_reply_of_a_conversation(kind: str, value: str, good: str) -> None:
    output = trace(SEARCH, reply="Dear Ann. Bye.")
    check = ComputedCheck.model_validate({"id": "c", "kind": kind, "value": value, "good": good})
    assert check.is_good(compute(check, Example(id="e", input="in", output=output)).answer) is True
    assert "https://" in str(Example(id="e", input="in", output=output).output)  # the transcript has it


def test_an_output_that_ends_in_a_call_has_an_empty_reply() -> None:
    assert found("length", "exactly 0 words", trace(SEARCH)[:1])[0] is True
    assert found("json", None, trace(reply='{"a": 1}'))[0] is True


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("tools", "search; open page", "names of tools"),
        ("tools", "search,", "names of tools"),
        ("calls", "some calls", "at least 1 call of search"),
        ("calls", "3 to 1 calls", "smaller number"),
        ("order", "search then open", "search before"),
        ("order", "search before search", "search before"),
        ("arguments", "[1]", "JSON schema for each tool"),
        ("arguments", '{"search": {"type": "thing"}}', "'search'"),
        ("calls_as", "names", "tools, order"),
        ("calls_as", "tools except search.query", "tools, order"),
        ("calls_as", "arguments except query", "TOOL.ARGUMENT"),
        ("calls_as", None, "needs"),
    ],
)
def test_a_wrong_value_is_refused_with_the_check_that_has_it(kind: str, value: str | None, said: str) -> None:
    lines = [f"  - {{id: c, kind: {kind}, value: {json.dumps(value)}}}"]
    with pytest.raises(InputError) as error:
        parse_checklist("\n".join(["checks:", *lines]), "mine.yaml")
    assert "mine.yaml" in str(error.value) and said in str(error.value)


def test_schemas_of_tools_stand_in_a_checklist_as_they_are() -> None:
    text = "checks:\n  - id: c\n    kind: arguments\n    value:\n      search: {type: object, maxProperties: 1}\n"
    [check] = parse_checklist(text, "mine.yaml").checks
    assert json.loads(check.value or "") == {"search": {"type": "object", "maxProperties": 1}}
    assert "search" in check.text
