"""A schema is sent as a strict one where it is one: an endpoint that checks that refuses others."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from askance.agents.agent import strict_schema
from askance.agents.generator import GeneratorNote, StatedRequirement
from askance.agents.replies import ENGLISH
from askance.agents.requests import _schema, batched_schema, object_schema
from askance.models.base import Parameters, make_request
from askance.models.direct import chat_fields, is_strict
from askance.prompts.checklist import Question


class Inner(BaseModel):
    properties: str
    enum: list[str]


class Outer(BaseModel):
    inner: list[Inner]


@pytest.mark.parametrize(
    "schema",
    [
        *(strict_schema(each) for each in (GeneratorNote, StatedRequirement, Outer)),
        *(_schema(ENGLISH, explained=explained, stated=explained) for explained in (True, False)),
        object_schema({"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "explanation": {"type": "string"}}),
        batched_schema(
            (Question(id="a", text="Is it?"), Question(id="b", text="Is it?")), explained=True, answers=ENGLISH
        ),
    ],
)
def test_the_schemas_of_the_agents_and_the_judges_are_strict(schema: dict[str, Any]) -> None:
    assert is_strict(schema)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object"}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}, True),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"type": "array", "items": {"type": "string"}}, True),
    ],
)
def test_a_schema_of_the_users_is_called_strict_only_where_it_is(schema: dict[str, Any], strict: bool) -> None:
    request = make_request("m", [("user", "x")], Parameters(5, schema=schema))
    assert chat_fields(request)["response_format"]["json_schema"]["strict"] is strict
