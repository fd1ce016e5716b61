"""Agents: models behind the gateway that are asked, in a role, for a record or for plain text.

If a reply does not follow the record's JSON schema, the model is asked once more, with the validation error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from ..models.base import Answer, CallError, Message, Model, Parameters, make_request
from ..models.gateway import Gateway
from ..models.replies.json_object import object_in
from ..prompts.rows import explain

Reply = TypeVar("Reply", bound=BaseModel)


class ParseError(CallError, ValueError):
    """The model's reply could not be used, twice."""

    def __init__(self, message: str, keys: Sequence[bytes] = ()) -> None:
        super().__init__(message)
        self.keys = keys
        """Keys of the requests whose replies cannot be used."""


def strict_schema(record: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a record in the form that structured-output endpoints want: every field is required,
    and no other field is allowed."""

    def tighten(node: Any) -> Any:
        if isinstance(node, list):
            return [tighten(each) for each in node]
        if not isinstance(node, dict):
            return node
        node = {key: value for key, value in node.items() if key not in ("title", "description", "default")}
        for key, value in node.items():
            named = key in ("properties", "$defs") and isinstance(value, dict)
            node[key] = {name: tighten(each) for name, each in value.items()} if named else tighten(value)
        if node.get("type") == "object" and "properties" in node:
            node["required"] = list(node["properties"])
            node["additionalProperties"] = False
        return node

    schema: dict[str, Any] = tighten(record.model_json_schema())
    return schema


async def ask_for(
    gateway: Gateway,
    role: str,
    model: Model,
    messages: Sequence[Message],
    record: type[Reply],
    *,
    max_tokens: int,
    seed: int | None = None,
    check: Callable[[Reply], object] | None = None,
    forget: bool = False,
) -> Reply:
    """Ask for a record, at temperature 0.

    The record's JSON schema is sent along, and the reply is validated with the record, whose title appears in errors.
    ``check`` may raise ``ValueError`` for problems beyond the schema. With ``forget``, replies that cannot be used are
    deleted from the store, so that the next run asks for them again. Raises ParseError if the second reply cannot be
    used either, and ModelError if there is no reply."""
    parameters = Parameters(max_tokens, 0.0, seed, schema=strict_schema(record))
    conversation, keys = list(messages), list[bytes]()
    while True:
        request = make_request(model.identity, conversation, parameters)
        keys.append(request.key)
        answer = await gateway.ask(role, model, request)
        try:
            return _read(answer, record, check)
        except ValueError as error:
            if len(keys) == 2:
                await gateway.forget(keys if forget else ())
                wanted = record.model_config.get("title") or record.__name__
                raise ParseError(f"{model.name} gave no usable {wanted}, twice: {error}", keys) from None
            fields = ", ".join(f'"{name}"' for name in record.model_fields)
            complaint = f"That cannot be used: {error}\nAnswer again with one JSON object with the fields {fields} and "
            complaint += "nothing else."
            conversation += [("assistant", answer.text or "(nothing)"), ("user", complaint)]


def _read(answer: Answer, record: type[Reply], check: Callable[[Reply], object] | None) -> Reply:
    if answer.finish == "length":
        raise ValueError("the answer was cut off because it was too long; be much shorter")
    try:
        reply = record.model_validate(object_in(answer.text, record.model_fields))
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error.msg})") from None
    if check:
        check(reply)
    return reply


class Agent:
    """A model with a role.

    Each method that asks the model raises BudgetExceededError if a cap is reached, and ModelError if no reply comes.
    """

    role: ClassVar[str]
    """Role in the ledger of calls."""
    forgets: ClassVar[bool] = False
    """Whether replies that cannot be used are deleted from the store, so that the next run asks for them again."""

    def __init__(self, gateway: Gateway, model: Model, *, seed: int | None = None) -> None:
        """``seed`` is sent with each request if it is given."""
        self._gateway = gateway
        self._model = model
        self._seed = seed

    async def _ask(
        self,
        system: str | None,
        user: str,
        record: type[Reply],
        *,
        max_tokens: int,
        check: Callable[[Reply], object] | None = None,
    ) -> Reply:
        """Ask for one record, at temperature 0. ``check`` and the errors are those of :func:`ask_for`."""
        orders: list[Message] = [] if system is None else [("system", system)]
        return await ask_for(
            self._gateway,
            self.role,
            self._model,
            [*orders, ("user", user)],
            record,
            max_tokens=max_tokens,
            seed=self._seed,
            check=check,
            forget=self.forgets,
        )

    async def _say(self, messages: Sequence[Message], *, max_tokens: int) -> Answer:
        """Ask for a reply in plain text, at temperature 0."""
        request = make_request(self._model.identity, messages, Parameters(max_tokens, 0.0, self._seed))
        return await self._gateway.ask(self.role, self._model, request)
