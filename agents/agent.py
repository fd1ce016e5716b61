"""A model behind the gateway, asked in the name of a role for a record or for plain text.

A reply that does not follow the record's JSON schema is asked for again, once, with the validation error.
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
    """A reply does not follow its schema, twice."""

    def __init__(self, message: str, keys: Sequence[bytes] = ()) -> None:
        super().__init__(message)
        self.keys = keys
        """Keys of the requests whose replies cannot be used."""


def strict_schema(record: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a record as structured-output endpoints want it: every field required, no others allowed."""

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

    Its JSON schema is sent along, the reply is validated against it, and its title says in errors what was wanted.
    ``check`` may raise ``ValueError`` with what is wrong beyond the schema. With ``forget`` no replies are kept that
    cannot be used, so that they are asked for anew the next time. Raises ParseError where the reply to the re-ask was
    no better, and ModelError where there is no reply."""
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

    Whatever asks it raises BudgetExceededError where a cap was reached, and ModelError where no reply comes.
    """

    role: ClassVar[str]
    """The ledger that its calls are booked under."""
    forgets: ClassVar[bool] = False
    """Whether replies that cannot be used are asked for anew the next time."""

    def __init__(self, gateway: Gateway, model: Model, *, seed: int | None = None) -> None:
        """``seed`` is sent along where given."""
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
        """One record, at temperature 0; ``check`` and the errors are those of :func:`ask_for`."""
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
        """A reply in plain text, at temperature 0."""
        request = make_request(self._model.identity, messages, Parameters(max_tokens, 0.0, self._seed))
        return await self._gateway.ask(self.role, self._model, request)
