"""Rules that outputs keep, and rules that a prompt states."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from askance.evaluation.contract.clauses import key_limits, stated_rules
from askance.evaluation.contract.found_rules import FoundRule, found_rules
from askance.evaluation.contract.schemas import follows, schema_of, schema_said


def _found(outputs: list[str]) -> dict[str, FoundRule]:
    return {rule.id: rule for rule in found_rules(outputs)}


def _news(place: int, **other: Any) -> dict[str, Any]:
    fields = {"headline": f"Man wins prize {place}", "place": None if place % 3 else f"Leeds {place}"}
    return {**fields, "people": ["Ann Lee"] * (place % 4), "tone": ["good", "bad", "neutral"][place % 3], **other}


def test_outputs_that_are_json_have_a_schema_with_lengths_and_sets() -> None:
    rules = _found([json.dumps(_news(place)) for place in range(30)])
    assert rules["json_alone"].support == 1
    schema = rules["schema"].value
    assert isinstance(schema, dict)
    assert schema["required"] == ["headline", "place", "people", "tone"]
    assert schema["properties"]["tone"] == {"type": "string", "enum": ["bad", "good", "neutral"]}
    assert schema["properties"]["headline"] == {"type": "string", "maxLength": 20}
    assert schema["properties"]["place"] == {"type": ["string", "null"], "maxLength": 10}
    assert schema["properties"]["people"]["maxItems"] == 3
    assert not follows(schema, _news(1, tone="sad"))
    assert not follows(schema, _news(1, more=1))


def test_json_in_a_code_fence_is_read_and_breaks_the_rule_of_json_alone() -> None:
    outputs = [json.dumps(_news(place)) for place in range(20)]
    fenced = [f"```json\n{text}\n```" for text in outputs[:4]]
    rules = _found([*fenced, *outputs[4:]])
    assert (rules["json_alone"].kept, rules["json_alone"].is_enforced) == (16, False)
    assert rules["schema"].kept == 20


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
    assert rules["bullets"].good == "yes"
    assert (rules["no_headings"].good, rules["no_headings"].support) == ("no", 1)
    assert re.fullmatch(r"\d+ to \d+ words", str(rules["length"].value))


def test_a_beginning_that_one_output_in_twenty_lacks_is_found_with_its_support() -> None:
    outputs = [f"Hello! The number {place} is here." for place in range(39)] + ["No greeting at all"]
    assert _found(outputs)["begins"].value == "Hello! The number"
    assert _found(outputs)["begins"].support == 39 / 40


def test_different_beginnings_make_no_rule() -> None:
    assert "begins" not in _found([f"{letter}nother text" for letter in "abcdefghijkl"])


def test_few_outputs_make_no_rule() -> None:
    assert found_rules(["Dear Ann"] * 4) == []


@pytest.mark.parametrize(
    ("clause", "kind", "value", "good"),
    [
        ("No more than 90 words in all.", "length", "at most 90 words", "yes"),
        ("Keep it under 50 words.", "length", "at most 49 words", "yes"),
        ("Write ten sentences or fewer.", "length", "at most 10 sentences", "yes"),
        ("Use between 3 and 5 sentences.", "length", "3 to 5 sentences", "yes"),
        ("The answer must not exceed 200 characters.", "length", "at most 200 characters", "yes"),
        ('The first line is "Dear citizen,".', "begins", "Dear citizen,", "yes"),
        ("Sign off with 'Team Lamp'.", "ends", "Team Lamp", "yes"),
        ("No web addresses.", "matches", r"https?://|\bwww\.", "no"),
        ("Return only valid JSON.", "json", None, "yes"),
        ("Answer in German.", "language", "de", "yes"),
    ],
)
def test_clauses_that_code_can_check_are_read(clause: str, kind: str, value: str | None, good: str) -> None:
    [rule] = stated_rules(f"You help people.\n- {clause}\n")
    assert (rule.kind, rule.value, rule.good, rule.clause) == (kind, value, good, clause)


@pytest.mark.parametrize(
    "clause",
    [
        "Each bullet point must have at most 10 words.",
        "Give every paragraph a title of at most 5 words.",
        "Be kind and brief.",
        "Say what the passage says.",
        "Mention the price if the customer asks about links.",
    ],
)
def test_clauses_about_a_part_or_about_content_make_no_check(clause: str) -> None:
    assert stated_rules(clause) == []


def test_words_that_must_not_be_used_are_one_rule() -> None:
    [rule] = stated_rules('Never use the words "unfortunately" or "please note".')
    assert (rule.kind, rule.good) == ("matches", "no")
    assert re.search(str(rule.value), "Please note: closed")
    assert not re.search(str(rule.value), "You may please notebooks")


def test_a_number_of_bullet_points_is_counted() -> None:
    [rule] = stated_rules('Then two or three bullet points, each beginning with "- ".')
    kept = [bool(re.search(str(rule.value), "Hello\n" + "- a point\n" * times + "Bye")) for times in range(5)]
    assert kept == [False, False, True, True, False]


def test_a_clause_about_a_key_limits_that_key_alone() -> None:
    prompt = 'Keys:\n"headline": at most 8 words,\n"summary": one sentence of at most 25 words.'
    assert stated_rules(prompt) == []
    assert [(limit.key, limit.unit, limit.most) for limit in key_limits(prompt)] == [
        ("headline", "word", 8),
        ("summary", "word", 25),
    ]


def test_a_schema_is_told_in_words() -> None:
    told = schema_said(schema_of([_news(place) for place in range(30)]))
    assert re.search(r'"headline".* 20 .*"place".* 10 ', told)
    assert '"tone": one of "bad", "good", "neutral"' in told
