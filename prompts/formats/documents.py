"""The messages of a prompt file: a list of them, or the export of a tool that keeps prompts.

A format is a function that finds its messages in the value of a file, or returns None where the value is of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean
from .spelling import Place, Text
from .variables import SyntaxName

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
"""Roles as files have them, and as models are asked with them."""


@dataclass(frozen=True)
class MessageText:
    """A text of a message."""

    role: str
    """As models are asked with it: system, user or assistant."""
    text: str
    place: Place | None = None
    """Its place in the file; None where it stands nowhere as such, or stands for another message, too."""
    goes_on: bool = False
    """Whether it belongs to the same message as the part before it."""
    is_literal: bool = False
    """Whether braces in it are only text."""


@dataclass(frozen=True)
class Found:
    """The messages of a file."""

    format: str
    """Its format, in words."""
    parts: tuple[MessageText, ...]
    syntax: SyntaxName | None = None
    """The syntax of its variables, where the file says it."""
    outputs: tuple[str, ...] = ()


Reader = Callable[[Any, str, str | None], Found | None]
"""Finds messages in a value; told the file and the predictor that is named."""


def find_messages(document: Any, where: str, named: str | None = None) -> Found | None:
    """The messages of a file's value; None where it is of no format that is known.

    Raises:
        InputError: It is of a known one, with a message that cannot be used; names the message and the field.
    """
    for read in READERS:
        found = read(document, where, named)
        if found is not None:
            if not any(part.place for part in found.parts):
                raise InputError(f"{where}: there is no message with a text in it.")
            return found
    return None


def _one(role: object, content: object, where: str) -> list[MessageText]:
    """The parts of one message."""
    known = ROLES.get(str(role).lower())
    if known is None:
        raise InputError(
            f"{where}, field 'role': {str(role)!r} cannot be used; a prompt has messages of the roles system, user and "
            f"assistant.{did_you_mean(str(role), ROLES)}"
        )
    if isinstance(content, Text):
        return [MessageText(known, content, content.place)]
    if isinstance(content, list) and content:
        found = []
        for number, each in enumerate(content, 1):
            text = each.get("text") if isinstance(each, Mapping) else each
            if not isinstance(text, Text):
                raise InputError(
                    f"{where}, field 'content', part {number}: a text is needed; a prompt has no other parts."
                )
            found.append(MessageText(known, text, text.place, goes_on=number > 1))
        return found
    raise InputError(f"{where}, field 'content': a text is needed, not {_kind(content)}.")


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return "an object" if isinstance(value, Mapping) else "an empty list" if value == [] else f"{value!r:.40}"


def _listed(
    messages: Any, where: str, skip: Callable[[Mapping[str, Any]], bool] = lambda _: False
) -> tuple[MessageText, ...]:
    parts: list[MessageText] = []
    for number, each in enumerate(messages, 1):
        place = f"{where}, message {number}"
        if not isinstance(each, Mapping) or "role" not in each:
            if isinstance(each, Mapping) and skip(each):
                continue
            raise InputError(f"{place}: a message has the fields 'role' and 'content'.")
        parts += _one(each["role"], each.get("content"), place)
    places = [part.place for part in parts]
    return tuple(
        part if places.count(part.place) == 1 else MessageText(part.role, part.text, None, part.goes_on)
        for part in parts
    )


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, Mapping) and "role" in each for each in value)


def _messages(document: Any, where: str, _: str | None) -> Found | None:
    """A list of messages, or an object with one under ``messages``."""
    if _are_messages(document):
        return Found("messages", _listed(document, where))
    if isinstance(document, Mapping) and _are_messages(document.get("messages")):
        return Found("messages", _listed(document["messages"], f"{where}, field 'messages'"))
    return None


def _langfuse(document: Any, where: str, _: str | None) -> Found | None:
    """A prompt of Langfuse: its type is chat or text, its variables have double braces."""
    if not isinstance(document, Mapping) or document.get("type") not in ("chat", "text") or "prompt" not in document:
        return None
    prompt, place = document["prompt"], f"{where}, field 'prompt'"
    if isinstance(prompt, Text):
        return Found("Langfuse", (MessageText("user", prompt, prompt.place),), "double")
    if not isinstance(prompt, list):
        raise InputError(f"{place}: a text or a list of messages is needed, not {_kind(prompt)}.")
    for number, each in enumerate(prompt, 1):
        if isinstance(each, Mapping) and each.get("type") == "placeholder":
            raise InputError(
                f"{place}, message {number}: the placeholder '{each.get('name')}' stands for messages, which no column "
                "is put in for. Take it out of the file."
            )
    return Found("Langfuse", _listed(prompt, place), "double")


def _mlflow(document: Any, where: str, _: str | None) -> Found | None:
    """A prompt of MLflow's registry: a template with variables in double braces, beside its name and version."""
    if not isinstance(document, Mapping) or not {"name", "version", "template"} <= document.keys():
        return None
    template, place = document["template"], f"{where}, field 'template'"
    if isinstance(template, Text):
        return Found("MLflow", (MessageText("user", template, template.place),), "double")
    if not isinstance(template, list):
        raise InputError(f"{place}: a text or a list of messages is needed, not {_kind(template)}.")
    return Found("MLflow", _listed(template, place), "double")


READERS: list[Reader] = [_langfuse, _mlflow, _messages]
