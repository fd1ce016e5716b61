"""Chat messages, and other values in which applications keep a text, as the text that a judge reads.

Understood are messages of OpenAI's two interfaces, Anthropic's content blocks, LangChain's messages (also serialised)
and ShareGPT's ``from`` and ``value``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROLES = {"human": "user", "ai": "assistant", "gpt": "assistant", "aimessagechunk": "assistant", "developer": "system"}
"""Other names of roles."""
PLAIN_KEYS = ("output", "answer", "response", "text", "content", "result", "input", "question", "query", "prompt")
"""Names under which applications keep the one text that matters; it is taken where nothing else is there."""
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Kinds of parts with what a model thought before it answered, which is no part of what it wrote."""

CONTENT_PARTS = frozenset({"text", "input_text", "output_text", "image", "image_url", "input_image"})
"""Kinds of parts of which a list is one message's content."""

Message = tuple[str, str]
"""Role and text."""


class StructuredText(str):
    """A text that was made of messages, a list or an object, which it holds as its ``original``."""

    __slots__ = ("original",)
    original: Any

    def __new__(cls, text: str, original: Any = None) -> StructuredText:
        """``original`` is what JSON can hold."""
        made = super().__new__(cls, text)
        made.original = original
        return made

    def __getnewargs__(self) -> tuple[str, Any]:  # type: ignore[override]
        return str(self), self.original


def fields_of(value: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Role and fields of one message, ``content`` and ``tool_calls`` among them; None where it is none."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("kwargs"), Mapping) and isinstance(value.get("id"), list) and value["id"]:  # LangChain
        found = str(value["id"][-1]).removesuffix("Chunk").removesuffix("Message"), value["kwargs"]
    elif isinstance(value.get("data"), Mapping) and isinstance(value.get("type"), str):
        found = value["type"], value["data"]
    elif isinstance(value.get("from"), str) and isinstance(value.get("value"), str):
        found = value["from"], {"content": value["value"]}
    elif value.get("type") == "function_call" and "name" in value:  # an item of OpenAI's responses
        found = "assistant", {"tool_calls": [value]}
    elif value.get("type") == "function_call_output" and "output" in value:
        found = "tool", {"content": value["output"], "tool_call_id": value.get("call_id")}
    elif isinstance(value.get("role", value.get("type")), str):
        found = value.get("role", value.get("type")), value
    else:
        return None
    role, fields = found
    if "content" not in fields and not calls_in(fields):
        return None
    return ROLES.get(role.lower(), role.lower()), fields


def calls_in(fields: Mapping[str, Any]) -> Any:
    """Calls of tools that stand beside the content of a message; None or empty where there are none."""
    return fields.get("tool_calls") or (fields.get("additional_kwargs") or {}).get("tool_calls")


def message_of(value: Any) -> Message | None:
    """Role and text of one message; None where it is none."""
    if (found := fields_of(value)) is None:
        return None
    role, fields = found
    refused = fields.get("refusal")  # OpenAI puts it beside a content that is null
    parts = [content_text(fields.get("content")) or (refused if isinstance(refused, str) else "")]
    if calls := calls_in(fields):
        parts.append(calls_text(calls))
    return role, "\n".join(part for part in parts if part)


def call_of(given: Any) -> tuple[str, str] | None:
    """Name and arguments of one call of a tool; None where it has no name."""
    call = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        return None
    arguments: Any = next((call[name] for name in ("arguments", "args", "input") if name in call), {})
    return call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def calls_text(calls: Any) -> str:
    """Calls of tools: ``Calls weather({"city": "Bonn"})``, a line each; their JSON where one has no name."""
    found = [call_of(each) for each in (calls if isinstance(calls, list) else [calls])]
    if None in found:
        return json.dumps(calls, ensure_ascii=False)
    return "\n".join(f"Calls {call[0]}({call[1]})" for call in found if call)


def content_text(content: Any) -> str:
    """A message's content as text. A part that is no text stands as its kind in brackets; thinking is left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return json.dumps(content, ensure_ascii=False)
    said = [each for each in content if not (isinstance(each, Mapping) and each.get("type") in THINKING)]
    return "\n".join(each if isinstance(each, str) else part_text(each) for each in said)


def part_text(part: Any) -> str:
    """A part of a content as text."""
    if not isinstance(part, Mapping):
        return json.dumps(part, ensure_ascii=False)
    for said in ("text", "refusal"):
        if isinstance(part.get(said), str):
            return str(part[said])
    kind = part.get("type", "part")
    if kind in ("tool_use", "tool_call"):
        return calls_text(part)
    if kind == "tool_result":
        return f"Result: {content_text(part.get('content'))}"
    return f"[{kind}]"


def is_content(value: Any) -> bool:
    """Whether a list holds the parts of one content, texts and images."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(
        isinstance(each, Mapping) and each.get("type") in CONTENT_PARTS and "content" not in each for each in value
    )


def messages_of(value: Any) -> list[Message] | None:
    """The messages of a list of them; None where it is no such list, or empty."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value:
        if len(value) == 1 and isinstance(value[0], list):  # LangChain logs a list of conversations
            return messages_of(value[0])
        found = [message_of(each) for each in value]
        return [each for each in found if each] if all(found) else None
    return None


def conversation(messages: Sequence[Message]) -> str:
    """Messages as one text: a single one as it is, several as a paragraph each, with who says it."""
    if len(messages) == 1:
        return messages[0][1]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in messages)


def text_of(value: Any) -> str | None:
    """The text in a value that an application was given or gave; None where there is none.

    A text is itself, messages are a conversation, an object with ``messages``, ``choices`` or a single text is that,
    and any other object or list is its JSON.
    """
    if value is None or value == "" or value == {} or value == []:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if is_content(value):
        return content_text(value) or None
    messages = messages_of(value)
    if messages is None and (one := message_of(value)) is not None:
        messages = [one]
    if messages is not None:
        return conversation(messages) or None
    if isinstance(value, Mapping) and (inner := inner_of(value)) is not None:
        return text_of(inner)
    return json.dumps(value, ensure_ascii=False, indent=2)


def inner_of(value: Mapping[str, Any]) -> Any:
    """The value that an object is wrapped around; None where there is none."""
    if messages_of(value.get("messages")):
        return value["messages"]
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0].get("message", choices[0].get("text"))
    generations = value.get("generations")  # LangChain: one list a prompt, of which the first is used
    if isinstance(generations, list) and generations:
        first = generations[0][0] if isinstance(generations[0], list) and generations[0] else generations[0]
        if isinstance(first, Mapping):
            return first.get("message") or first.get("text")
    filled = {name: each for name, each in value.items() if each not in (None, "", {}, [])}
    if len(filled) == 1:
        [(name, only)] = filled.items()
        return only if isinstance(only, str) or name.lower() in PLAIN_KEYS else None
    return None


def told(value: Any, *, passages: bool = False) -> Any:
    """The text of a value by :func:`as_text`; it holds the value where that is messages, a list or an object. Raises
    ValueError where a message has no content."""
    text = as_text(value, passages=passages)
    return StructuredText(text, value) if isinstance(text, str) and isinstance(value, (Mapping, list, tuple)) else text


def as_text(value: Any, *, passages: bool = False) -> Any:
    """A value that stands where a text is wanted, as text; None where nothing is there.

    A text is itself and a number or truth value as JSON writes it. Messages are a transcript; texts in a list are
    paragraphs, or as ``passages`` numbered; an object around one text that matters is that text, and any other object
    or list is indented JSON. Raises ValueError where a message has no content.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, Mapping):
        filled = {name: each for name, each in value.items() if each not in (None, "", {}, [])}
        [name] = filled if len(filled) == 1 else [""]
        if len(filled) == 1 and str(name).lower() in PLAIN_KEYS:
            return as_text(filled[name])
        told = message_of(value) is not None or any(each in value for each in ("messages", "choices", "generations"))
        return text_of(value) if told or not filled else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if not isinstance(value, (list, tuple)):
        return value
    if is_content(value):
        return content_text(value) or None
    if any(isinstance(each, Mapping) and "role" in each for each in value) and messages_of(value) is None:
        wrong = next(place for place, each in enumerate(value, 1) if message_of(each) is None)
        raise ValueError(f"message {wrong} needs 'role' and 'content'")
    if messages_of(value) is None and (passages or all(isinstance(each, (str, int, float)) for each in value)):
        texts = [text for each in value if (text := as_text(each)) not in (None, "")]
        numbered = [f"[{number}] {text}" for number, text in enumerate(texts, 1)]
        return "\n\n".join(numbered if passages and len(texts) > 1 else texts) or None
    return text_of(value)
