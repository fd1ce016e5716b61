"""Rules of calls of tools that recorded outputs keep."""

from __future__ import annotations

import json
from typing import Any

from askance.agents.checks import compute
from askance.evaluation.contract.found_rules import found_rules, parity_rules
from askance.prompts.checklist import ComputedCheck
from askance.prompts.examples import Example
from askance.prompts.messages import told


def _output(place: int, *names: str, reply: str = "Dear Ann, here it is. Your shop") -> str:
    calls: list[dict[str, Any]] = []
    for name in names:
        arguments: dict[str, Any] = {"limit": place % 4 + 1}
        if name == "search":
            arguments["query"] = f"a lamp of number {place} please"
        calls.append({"name": name, "arguments": json.dumps(arguments)})
    messages = [{"role": "assistant", "content": "", "tool_calls": [each]} for each in calls]
    output: str = told([*messages, {"role": "assistant", "content": reply}])
    return output


def _found(outputs: list[str]) -> dict[str, ComputedCheck]:
    return {rule.id: rule for rule in found_rules(outputs)}


OUTPUTS = [_output(place, *(["search", "open"] if place % 2 else ["search"]), "send") for place in range(20)]


def test_tools_their_number_arguments_and_order_are_found_with_the_rules_of_the_reply() -> None:
    rules = _found(OUTPUTS)
    assert rules["tools"].value == "search, send, open"
    assert {name for name in rules if name.startswith("calls_")} == {"calls_search", "calls_send"}
    assert rules["calls"].value == "2 to 3 calls"
    schema = json.loads(rules["arguments_search"].value or "")
    assert schema["search"]["properties"]["limit"] == {"type": "integer"}
    assert schema["search"]["required"] == ["limit", "query"]
    assert rules["arguments_open"].support == 1
    # search before send is not implied: half of the outputs do not open anything
    assert {name for name in rules if "_before_" in name} == {
        "search_before_send",
        "search_before_open",
        "open_before_send",
    }
    assert rules["begins"].value == "Dear Ann, here it is. Your shop"
    assert all(rule.support == 1 for rule in rules.values())


def test_an_order_that_follows_from_two_others_is_left_out() -> None:
    rules = _found([_output(place, "search", "open", "send") for place in range(8)])
    assert "search_before_send" not in rules and "open_before_send" in rules


def test_a_tool_that_few_call_and_an_order_that_changes_are_no_rule() -> None:
    outputs = [_output(place, *(["a", "b"] if place % 3 else ["b", "a"])) for place in range(40)]
    rules = _found([*outputs, _output(1, "odd")])
    assert rules["tools"].value == "b, a" and rules["tools"].support == 40 / 41
    assert not [name for name in rules if "_before_" in name]


def test_outputs_without_calls_have_no_rules_of_calls() -> None:
    rules = _found([f"Plain text {place}" for place in range(9)])
    assert "length_words" in rules and not {"tools", "calls"} & rules.keys()
    assert parity_rules(["Plain text"]) == []


def test_parity_leaves_free_texts_aside_and_is_kept_by_the_recorded_output() -> None:
    same_tools, same_arguments = parity_rules(OUTPUTS)
    assert same_arguments.value == "arguments except search.query"
    for rule in (same_tools, same_arguments):
        original = OUTPUTS[3].original  # type: ignore[attr-defined]
        example = Example(id="e", input="in", output=original, metadata={"recorded": original})
        assert compute(rule, example).answer is True
        other = example.model_copy(update={"output": _output(0, "search")})
        assert compute(rule, other).answer is False
