"""Rules that outputs keep, each with its support."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from askance.evaluation.contract.found_rules import found_rules, never_rules
from askance.evaluation.contract.schemas import keys_of, passes, schema_of, schema_said, united, widened
from askance.prompts.checklist import ComputedCheck


def _found(outputs: list[str]) -> dict[str, ComputedCheck]:
    return {rule.id: rule for rule in found_rules(outputs)}


def _follows(schema: dict[str, Any], value: Any) -> bool:
    return passes(ComputedCheck(id="s", kind="fields", value=json.dumps(schema)), json.dumps(value))


def _news(place: int, **other: Any) -> dict[str, Any]:
    fields = {"headline": f"Man wins prize {place}", "place": None if place % 3 else f"Leeds {place}"}
    return {**fields, "people": ["Ann Lee"] * (place % 4), "tone": ["good", "bad", "neutral"][place % 3], **other}


def test_outputs_that_are_json_have_a_schema_with_lengths_and_sets() -> None:
    schema = schema_of([_news(place) for place in range(30)])
    assert schema["required"] == ["headline", "place", "people", "tone"]
    assert schema["properties"]["tone"] == {"type": "string", "enum": ["bad", "good", "neutral"]}
    assert schema["properties"]["headline"] == {"type": "string", "maxLength": 20}
    assert schema["properties"]["place"] == {"type": ["string", "null"], "maxLength": 10}
    assert schema["properties"]["people"]["maxItems"] == 3
    assert not _follows(schema, _news(1, tone="sad"))
    assert not _follows(schema, _news(1, more=1))


def test_a_check_of_outputs_nobody_has_seen_has_wide_lengths_and_the_same_keys_and_types() -> None:
    rules = _found([json.dumps(_news(place)) for place in range(30)])
    assert rules["json_alone"].support == rules["keys"].support == 1
    schema = json.loads(rules["keys"].value or "")
    assert _follows(schema, _news(1, headline="A longer headline than any other one", people=["Ann Lee"] * 6))
    assert not _follows(schema, _news(1, headline="word " * 50))
    assert not _follows(schema, _news(1, people="Ann Lee"))
    assert not _follows(schema, {"headline": "a"})


@pytest.mark.parametrize("values", [["a"] * 9 + ["b"], [f"value {place}" for place in range(12)]])
def test_a_set_of_values_needs_each_more_than_once(values: list[str]) -> None:
    assert "enum" not in schema_of(values)


def test_json_in_a_code_fence_is_read_and_breaks_the_rule_of_json_alone() -> None:
    outputs = [json.dumps(_news(place)) for place in range(20)]
    fenced = [f"```json\n{text}\n```" for text in outputs[:4]]
    rules = _found([*fenced, *outputs[4:]])
    assert (rules["json_alone"].support, rules["json_alone"].weight) == (0.8, 0)
    assert (rules["keys"].support, rules["keys"].weight) == (1, 1)


def test_schemas_of_one_key_and_of_all_keys_are_united() -> None:
    whole = {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}, "required": ["a"]}
    one = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}, "required": ["a"]}
    found = united([whole, one])
    assert found["properties"] == {"a": {"type": "string", "maxLength": 5}, "b": {"type": "string"}}
    assert found["required"] == ["a"]
    assert widened(found)["properties"]["a"]["maxLength"] == 100


def test_keys_are_found_at_any_depth() -> None:
    assert keys_of([{"a": [{"b": 1}]}, {"c": {"a": 2}}]) == ["a", "b", "c"]


def test_a_rare_key_and_a_rare_type_are_no_part_of_the_schema() -> None:
    values = [_news(place) for place in range(40)] + [_news(1, odd=1, people="nobody")]
    schema = schema_of(values)
    assert "odd" not in schema["properties"]
    assert schema["properties"]["people"]["type"] == "array"


def test_texts_have_fixed_ends_of_whole_lines_a_length_and_traits() -> None:
    outputs = [
        f"Dear citizen,\n**Yes, it is {place}.**\n- a\n- b {'word ' * place}\nYour help desk" for place in range(30)
    ]
    rules = _found(outputs)
    assert rules["begins"].value == "Dear citizen,"
    assert rules["ends"].value == "Your help desk"
    assert (rules["bullets"].good, rules["bullets"].support) == ("yes", 1)
    assert re.fullmatch(r"\d+ to \d+ words", str(rules["length_words"].value))
    assert not any(rule.is_fault for rule in rules.values())


def test_what_no_output_has_is_a_rule_apart() -> None:
    never = {rule.id: rule for rule in never_rules([f"Plain text {place}" for place in range(30)])}
    assert (never["no_headings"].good, never["no_headings"].support) == ("no", 1)
    assert "no_bold" not in {rule.id for rule in never_rules(["**a**"] * 2 + ["a"] * 8)}


def test_a_beginning_that_one_output_in_twenty_lacks_is_found_with_its_support() -> None:
    outputs = [f"Hello! The number {place} is here." for place in range(39)] + ["No greeting at all"]
    assert _found(outputs)["begins"].value == "Hello! The number"
    assert _found(outputs)["begins"].support == 39 / 40


def test_different_beginnings_make_no_rule() -> None:
    assert "begins" not in _found([f"{letter}nother text" for letter in "abcdefghijkl"])


def test_outputs_that_are_one_of_a_few_labels_have_that_rule_alone() -> None:
    [rule] = found_rules(["billing", "technical ", "other"] * 8)
    assert passes(rule, "other\n") and not passes(rule, "others") and rule.support == 1


def test_few_outputs_make_no_rule() -> None:
    assert found_rules(["Dear Ann"] * 4) == never_rules(["Dear Ann"] * 4) == []


def test_a_schema_is_told_in_words() -> None:
    told = schema_said(schema_of([_news(place) for place in range(30)]))
    assert re.search(r'"headline".* 20 .*"place".* 10 ', told)
    assert '"tone": one of "bad", "good", "neutral"' in told
