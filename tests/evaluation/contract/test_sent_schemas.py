"""The contract of JSON outputs as it is sent, and as a form to be filled in."""

from __future__ import annotations

import json
from typing import Any

from askance.evaluation.contract.forms import order_of
from askance.evaluation.contract.schemas import cut_check, is_cut, json_form, limit_of_words, passes, sent_schema
from askance.evaluation.contract.wording import key_clauses
from askance.prompts.checklist import ComputedCheck, Question

PROMPT = """Describe the recipe as JSON:
"title": at most 6 words,
"course": one of "starter", "main", "dessert",
"steps": a list of the steps, at most 20 words each,
"note": one sentence of at most 30 words, or null.
"""
KEYS = ("title", "course", "steps", "note")
TEXT = {"type": "string", "maxLength": 200}


def fields(name: str, schema: dict[str, Any], clause: str | None = None) -> ComputedCheck:
    return ComputedCheck.model_validate({"id": name, "kind": "fields", "value": schema, "clause": clause})


def contract() -> list[Question]:
    whole = {
        "type": "object",
        "properties": {key: {} for key in KEYS},
        "required": [*KEYS],
        "additionalProperties": False,
    }
    own = {each.key: each for each in key_clauses(PROMPT, KEYS)}
    seen = {"title": TEXT, "course": TEXT, "steps": {"type": "array", "items": TEXT, "maxItems": 10}, "note": TEXT}
    return [
        fields("keys", whole, "\n".join(each.clause for each in own.values())),
        *(
            fields(f"key_{key}", {"type": "object", "properties": {key: own[key].part(seen[key])}}, own[key].clause)
            for key in KEYS
        ),
    ]


def outputs(steps: int = 4) -> list[str]:
    row = {
        "title": "Soup",
        "course": "main",
        "steps": [f"Cut the leek {each} times." for each in range(steps)],
        "note": None,
    }
    return [json.dumps(row | {"note": "Serve hot."}), json.dumps(row)]


def test_words_become_characters_and_old_outputs_set_the_other_lengths() -> None:
    schema = sent_schema(contract(), outputs())
    assert schema is not None
    parts = schema["properties"]
    assert schema["required"] == [*KEYS] and schema["additionalProperties"] is False
    assert (parts["title"]["maxLength"], parts["course"]["enum"]) == (20, ["starter", "main", "dessert"])
    assert (parts["steps"]["maxItems"], parts["steps"]["items"]["maxLength"]) == (5, 40)
    assert parts["note"]["type"] == ["string", "null"]
    assert "pattern" not in json.dumps(schema)
    wide = sent_schema(contract())
    assert wide is not None
    assert (wide["properties"]["title"]["maxLength"], wide["properties"]["note"]["maxLength"]) == (36, 180)
    assert wide["properties"]["steps"]["maxItems"] == 10


def test_a_pattern_of_the_users_own_is_sent_as_it_is() -> None:
    own = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}}}
    assert sent_schema([ComputedCheck(id="schema", kind="schema", value=json.dumps(own))]) == own
    assert sent_schema([Question(id="a", text="Is it so?")]) is None
    assert limit_of_words("^[a-z]+$") is None


def test_the_form_has_each_key_with_what_it_holds() -> None:
    shown = json_form(contract(), outputs())
    assert shown is not None
    assert [shown.find(f'"{key}": ') for key in KEYS] == sorted(shown.find(f'"{key}": ') for key in KEYS)
    assert '"title": "<at most 3 words>"' in shown
    assert '"course": "starter" or "main" or "dessert"' in shown
    assert '"steps": ["<' in shown
    nested = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    assert json_form([fields("keys", nested)]) == '[{"n": <a whole number>}]'
    assert json_form([fields("keys", {"type": "array"})]) is None


def test_an_order_is_tighter_than_its_check_and_says_not_to_copy_where_outputs_do() -> None:
    by_id = {each.id: each for each in contract() if isinstance(each, ComputedCheck)}
    long = " ".join(f"word{number}" for number in range(40))
    assert "at most 18 words" in (order_of(by_id["key_note"]) or "")
    copied = order_of(by_id["key_note"], [(long, f'{{"note": "{long}"}}'), (long, "{}")]) or ""
    plain = order_of(by_id["key_note"], [(long, '{"note": "short"}')]) or ""
    assert "copy" not in plain
    assert "copy" not in copied, "half of them is not most"
    assert "copy" in (order_of(by_id["key_note"], [(long, f'{{"note": "{long}"}}')]) or "")
    assert all(f'"{key}"' in (order_of(by_id["keys"]) or "") for key in KEYS)


def test_checks_without_a_clause_have_words_for_their_kind() -> None:
    def said(kind: str, value: str | None = None, **more: str) -> str | None:
        return order_of(ComputedCheck.model_validate({"id": "c", "kind": kind, "value": value, **more}))

    assert "60" in (said("length", "at most 100 words") or "")
    assert '"Dear all,"' in (said("begins", "Dear all,") or "")
    assert "not" in (said("matches", "^#", text="Has the output a heading?", good="no") or "")
    assert said("matches", "^#") is None
    assert said("checker", "file.py:check") is None
    assert "no code fence" in (said("json") or "")


def test_a_text_that_fills_its_room_is_cut() -> None:
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 5},
            "tone": {"enum": ["good"], "maxLength": 4},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 4}},
        },
    }
    assert is_cut('{"title": "Bridg", "tone": "good"}', schema)
    assert is_cut('{"names": ["Ann", "Mari"]}', schema)
    assert not is_cut('{"title": "Brid", "tone": "good", "names": ["Ann"], "more": "Bridges"}', schema)
    assert not is_cut("Bridg", schema), "no JSON"
    assert not is_cut('{"title": "Bridg"}', {"type": "object"})


def cut(parts: dict[str, Any]) -> str:
    return json.dumps({"title": "Soup", "course": "main", "steps": ["Cut."], "note": None} | parts)


def test_a_text_that_the_schema_ends_breaks_the_contract() -> None:
    schema, check = sent_schema(contract(), outputs()), cut_check(contract(), outputs())
    assert schema is not None and check is not None
    assert all(passes(check, each) for each in outputs())
    most = schema["properties"]["title"]["maxLength"]
    assert not passes(check, cut({"title": "x" * most}))
    assert not passes(check, cut({"steps": ["Cut.", "y" * schema["properties"]["steps"]["items"]["maxLength"]]}))
    # a longer one was not written with this schema, and one with a full stop came to its end
    assert passes(check, cut({"title": "x" * (most + 1)}))
    assert passes(check, cut({"note": "z" * (schema["properties"]["note"]["maxLength"] - 1) + "."}))


def test_the_length_at_which_texts_are_cut_can_be_changed_in_the_requirements() -> None:
    check = cut_check(contract(), outputs())
    assert check is not None and check.value is not None
    sent = sent_schema([*contract(), check], outputs())
    assert sent == sent_schema(contract(), outputs())
    ends = json.loads(check.value)
    ends["properties"]["title"]["not"] |= {"minLength": 70, "maxLength": 70}
    changed = sent_schema([*contract(), check.model_copy(update={"value": json.dumps(ends)})], outputs())
    assert changed is not None and changed["properties"]["title"]["maxLength"] == 70


def test_texts_that_are_cut_lead_to_an_order_to_finish_them() -> None:
    check = cut_check(contract(), outputs())
    assert check is not None
    order = order_of(check)
    assert order is not None and "finish" in order and '"title" below 12' in order


def test_no_schema_without_lengths_has_a_check_of_cut_texts() -> None:
    assert cut_check([fields("keys", {"type": "object", "properties": {"course": {"enum": ["main"]}}})], []) is None


def test_whole_sentences_that_a_clause_asks_for_are_not_sent_as_a_pattern() -> None:
    note = next(each for each in contract() if each.id == "key_note")
    assert passes(note, cut({"note": "Serve hot."})) and passes(note, cut({"note": None}))
    assert not passes(note, cut({"note": "Serve hot with some bre"}))
    schema = sent_schema(contract(), outputs())
    assert schema is not None and "allOf" not in schema["properties"]["note"]
