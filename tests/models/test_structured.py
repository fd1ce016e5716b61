from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from askance.agents.agent import ParseError, ask_for, strict_schema
from askance.agents.generator import GeneratorNote
from askance.agents.lesson_checks import Relation
from askance.agents.question_writer import Requirements
from askance.agents.rules import LENIENT, STRICTER_ON_FAULT
from askance.agents.updater import Rewritten
from askance.models.base import Answer, ModelError
from askance.models.gateway import Gateway
from askance.models.replies.json_object import json_in, object_in
from askance.prompts.errors import AskanceError
from askance.testing import Reply, ScriptedModel
from tests.said import says

GOOD = '{"kind": "a", "size": 2}'


class Note(BaseModel):
    kind: Literal["a", "b"]
    size: int = Field(default=1, ge=0, description="How big.")


async def ask(*replies: Reply, **options: Any) -> tuple[Note | str, ScriptedModel]:
    """The record or the error, and the model that was asked."""
    model = ScriptedModel(replies)
    try:
        return await ask_for(Gateway(), "role", model, [("user", "Note?")], Note, max_tokens=50, **options), model
    except ParseError as error:
        return str(error), model


@pytest.mark.parametrize(
    "text", [GOOD, f" \n{GOOD}\n", f"```json\n{GOOD}\n```", f"\n```\n{GOOD}```\n", f"```JSON {GOOD}```"]
)
async def test_json_and_json_in_one_code_block_are_read(text: str) -> None:
    found, model = await ask(text)
    assert found == Note(kind="a", size=2)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Sure! {GOOD}", "not valid JSON"),
        (f"{GOOD} I hope it helps.", "not valid JSON"),
        (f"```json\n{GOOD}\n```\nor\n```json\n{GOOD}\n```", "not valid JSON"),
        ("null", "valid dictionary"),
        ("[" * 100_000, "nested too deeply"),
        ('{"size": 1}', "the field 'kind' is missing"),
        ('{"kind": "c"}', "field 'kind'"),
        ('{"kind": "a", "size": -1}', "field 'size'"),
        ('{"kind": "a", "size": ' + "9" * 5000 + "}", "4300"),
        (Answer(GOOD, finish="length"), "cut off"),
    ],
)
async def test_an_unusable_reply_is_asked_again_once_with_what_was_wrong(text: Reply, said: str) -> None:
    found, model = await ask(text, GOOD)
    assert found == Note(kind="a", size=2)
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[1][0] == "assistant"
    assert second.messages[1][1]
    role, complaint = second.messages[2]
    assert role == "user"
    assert said in complaint
    assert '"kind", "size"' in complaint


async def test_a_second_unusable_reply_is_an_error_that_says_why() -> None:
    found, model = await ask("prose", '{"kind": "z"}', GOOD)
    assert isinstance(found, str)
    assert says(found, "scripted/model", "Note", "twice", "'kind'")
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        *((each, "note") for each in (LENIENT.record, STRICTER_ON_FAULT.record, GeneratorNote)),
        (Relation, "comparison of lessons"),
        (Rewritten, "prompt"),
        (Requirements, "requirements"),
    ],
)
async def test_an_error_names_what_was_wanted_and_no_class(record: type[BaseModel], wanted: str) -> None:
    model = ScriptedModel(["prose", "prose"])
    with pytest.raises(ParseError, match=f"^scripted/model gave no usable {wanted}, twice: not valid JSON"):
        await ask_for(Gateway(), "role", model, [("user", "What?")], record, max_tokens=50)
    assert "title" not in strict_schema(record)


async def test_a_check_beyond_the_schema_can_refuse() -> None:
    def is_small(note: Note) -> None:
        if note.size > 1:
            raise ValueError("too big")

    found, model = await ask(GOOD, '{"kind": "b"}', check=is_small)
    assert found == Note(kind="b")
    assert "too big" in model.requests[1].messages[-1][1]


async def test_a_model_that_fails_is_no_parse_error() -> None:
    with pytest.raises(ModelError, match="gone"):
        await ask(ModelError("gone"))


def test_a_parse_error_reaches_a_user_as_a_sentence() -> None:
    assert issubclass(ParseError, AskanceError)


async def test_the_schema_and_the_seed_go_along() -> None:
    _, model = await ask(GOOD, seed=3)
    parameters = model.requests[0].parameters
    assert (parameters.max_tokens, parameters.temperature, parameters.seed) == (50, 0.0, 3)
    assert parameters.schema == strict_schema(Note)


def test_a_strict_schema_requires_every_field_and_allows_no_other() -> None:
    class Outer(BaseModel):
        notes: list[Note]
        title: str | None = None

    schema = strict_schema(Outer)
    note = schema["$defs"]["Note"]
    assert schema["required"] == ["notes", "title"]
    assert note["required"] == ["kind", "size"]
    assert schema["additionalProperties"] is note["additionalProperties"] is False
    assert not {"default", "description"} & set(json.dumps(schema).replace('"', " ").split())


@pytest.mark.parametrize(
    "text",
    [
        f"Here is my answer:\n```json\n{GOOD}\n```\nTell me if you need more.",
        f"```\n{GOOD}\n```\n",
        f"```json\n{GOOD}",
        f"Here: {GOOD}",
        f"Here it is.\n\n{GOOD}\n\nThat is all.",
        GOOD.replace("}", ",}"),
        GOOD.replace("}", ' , "note": "a\nb, }",\n}'),
        "\ufeff" + GOOD,
        "\u200b\n" + GOOD + "\n",
    ],
)
def test_json_is_read_with_text_around_it_and_with_the_slips_of_models(text: str) -> None:
    found = json_in(text)
    assert {name: found[name] for name in ("kind", "size")} == json.loads(GOOD)


@pytest.mark.parametrize("text", [f"[{GOOD}]", f'{{"response": {GOOD}}}', GOOD])
def test_an_object_may_be_the_only_one_of_a_list_or_of_another(text: str) -> None:
    assert object_in(text, ["kind"]) == json.loads(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        f"Sure, it is {GOOD} I think",
        f"{GOOD}\n{GOOD}",
        f"{GOOD} {GOOD}",
        f"```\n{GOOD}\n```\nor\n```\n{GOOD}\n```",
        '{"kind": "a" "size": 2}',
        "{'kind': 'a'}",
        '{"kind": a}',
        "",
    ],
)
@pytest.mark.parametrize("cut", [True, False])
def test_what_may_mean_several_things_is_not_guessed_at(text: str, cut: bool) -> None:
    with pytest.raises(ValueError, match=r"Expecting|no JSON|Extra data|delimiter"):
        object_in(text, ["kind"], cut=cut)


MEMBERS = st.dictionaries(st.text(max_size=4), st.one_of(st.text(max_size=6), st.booleans(), st.none(), st.integers()))


@given(st.dictionaries(st.text(max_size=4), st.one_of(MEMBERS, st.text(max_size=6)), min_size=1), st.data())
def test_of_an_object_that_breaks_off_nothing_is_read_that_was_not_said(
    whole: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(whole, ensure_ascii=data.draw(st.booleans()))
    said = text[: data.draw(st.integers(0, len(text)))]
    try:
        found = object_in(said, list(whole), cut=True)
    except ValueError:
        return
    for name, value in found.items():
        if isinstance(value, dict):
            assert value.items() <= whole[name].items()
        else:
            assert value == whole[name]
