"""The messages of a prompt file, as a list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError, did_you_mean
from .spelling import Place, Text
from .variables import SyntaxName

AS_MESSAGES = {"input": "messages"}
"""Beside role and content of a prompt's last message: a conversation is sent as its messages, and the rest after it."""
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
    as_messages: bool = False
    """Whether an input that is a conversation is sent message by message, and not as a transcript where its variable
    stands."""


@dataclass(frozen=True)
class Found:
    """The messages of a file."""

    format: str
    """Its format, in words."""
    parts: tuple[MessageText, ...]
    syntax: SyntaxName | None = None
    """The syntax of its variables, where the file says it."""
    is_text: bool = False
    """Whether it is one text that no message holds: it may be asked as the system's, with the example after it."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Texts that the file itself gives to variables."""
    elsewhere: str | None = None
    """Another file that holds the prompt."""


def message(role: object, content: object, where: str) -> list[MessageText]:
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
    raise InputError(f"{where}, field 'content': a text is needed, not {kind_of(content)}.")


def kind_of(value: object) -> str:
    """A value in words, for errors."""
    if value is None:
        return "nothing"
    return "an object" if isinstance(value, Mapping) else "an empty list" if value == [] else f"{value!r:.40}"


def message_list(messages: Any, where: str) -> tuple[MessageText, ...]:
    """The texts of a list of messages; one that an alias repeats may not be edited, as it stands for several."""
    parts: list[MessageText] = []
    for number, each in enumerate(messages, 1):
        place = f"{where}, message {number}"
        if not isinstance(each, Mapping) or "role" not in each:
            raise InputError(f"{place}: a message has the fields 'role' and 'content'.")
        found = message(each["role"], each.get("content"), place)
        as_messages = AS_MESSAGES.items() <= each.items()
        parts += [replace(part, as_messages=True) for part in found] if as_messages else found
    places = [part.place for part in parts]
    return tuple(part if places.count(part.place) == 1 else replace(part, place=None) for part in parts)


def are_messages(value: Any) -> bool:
    """Whether a value is a list with a message in it."""
    return isinstance(value, list) and any(isinstance(each, Mapping) and "role" in each for each in value)


def messages_of(document: Any, where: str) -> Found | None:
    """A list of messages, an object with one under ``messages``, or texts by their roles; None where it is neither."""
    if are_messages(document):
        return Found("messages", message_list(document, where))
    if isinstance(document, Mapping) and are_messages(document.get("messages")):
        return Found("messages", message_list(document["messages"], f"{where}, field 'messages'"))
    if isinstance(document, Mapping) and {"system", "user"} & document.keys():
        parts: list[MessageText] = []
        for role, text in document.items():  # others, such as a model, are no messages
            if role in ("system", "user", "assistant"):
                if not isinstance(text, Text):
                    raise InputError(f"{where}, field '{role}': a text is needed, not {kind_of(text)}.")
                parts += message(role, text, where)
        return Found("messages", tuple(parts))
    return None


def one_text(format_: str, text: Text, syntax: SyntaxName | None = None) -> Found:
    """A prompt that is one text."""
    return Found(format_, (MessageText("user", text, text.place),), syntax, is_text=True)
