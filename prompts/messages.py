"""Turns chat messages, and other values in which applications keep a text, into the text that a judge reads.

It understands messages of OpenAI's two interfaces, Anthropic's content blocks, LangChain's messages (also serialised)
and ShareGPT's ``from`` and ``value``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROLES = {"human": "user", "ai": "assistant", "gpt": "assistant", "aimessagechunk": "assistant", "developer": "system"}
"""Other names of roles."""
PLAIN_KEYS = ("output", "answer", "response", "text", "content", "result", "input", "question", "query", "prompt")
"""Names under which applications keep the one text that matters; used if the object has no other value."""
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Kinds of parts that hold a model's thoughts before its answer; they do not belong to the answer."""

CONTENT_PARTS = frozenset({"text", "input_text", "output_text", "image", "image_url", "input_image"})
"""Kinds of parts; a list of only these is the content of one message."""

Message = tuple[str, str]
"""Role and text."""


class StructuredText(str):
    """A text that was made of messages, a list or an object; ``original`` holds that value."""

    __slots__ = ("original",)
    original: Any

    def __new__(cls, text: str, original: Any = None) -> StructuredText:
        """``original`` is a value that JSON can hold."""
        made = super().__new__(cls, text)
        made.original = original
        return made

    def __getnewargs__(self) -> tuple[str, Any]:  # type: ignore[override]
        return str(self), self.original


def fields_of(value: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Return the role and the fields (``content``, ``tool_calls`` and others) of one message; None for other values."""
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
    """Return the calls of tools beside the content of a message; None or empty without any."""
    return fields.get("tool_calls") or (fields.get("additional_kwargs") or {}).get("tool_calls")


def message_of(value: Any) -> Message | None:
    """Return the role and the text of one message; None if the value is not a message."""
    if (found := fields_of(value)) is None:
        return None
    role, fields = found
    refused = fields.get("refusal")  # OpenAI puts it beside a content that is null
    parts = [content_text(fields.get("content")) or (refused if isinstance(refused, str) else "")]
    if calls := calls_in(fields):
        parts.append(calls_text(calls))
    return role, "\n".join(part for part in parts if part)


def call_of(given: Any) -> tuple[str, str] | None:
    """Return the name and the arguments (a text) of one call of a tool; None if it has no name."""
    call = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        return None
    arguments: Any = next((call[name] for name in ("arguments", "args", "input") if name in call), {})
    return call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def calls_text(calls: Any) -> str:
    """Write calls of tools as text: one line ``Calls weather({"city": "Bonn"})`` each; JSON if one has no name."""
    found = [call_of(each) for each in (calls if isinstance(calls, list) else [calls])]
    if None in found:
        return json.dumps(calls, ensure_ascii=False)
    return "\n".join(f"Calls {call[0]}({call[1]})" for call in found if call)


def content_text(content: Any) -> str:
    """Return a message's content as text. A part without text becomes its kind in brackets; thinking is left out."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return json.dumps(content, ensure_ascii=False)
    said = [each for each in content if not (isinstance(each, Mapping) and each.get("type") in THINKING)]
    return "\n".join(each if isinstance(each, str) else part_text(each) for each in said)


def part_text(part: Any) -> str:
    """Return a part of a message's content as text."""
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
    """Whether a list holds the parts of one message's content: texts and images."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(
        isinstance(each, Mapping) and each.get("type") in CONTENT_PARTS and "content" not in each for each in value
    )


def messages_of(value: Any) -> list[Message] | None:
    """Return the messages of a list of messages; None for other values and for an empty list."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value:
        if len(value) == 1 and isinstance(value[0], list):  # LangChain logs a list of conversations
            return messages_of(value[0])
        found = [message_of(each) for each in value]
        return [each for each in found if each] if all(found) else None
    return None


def conversation(messages: Sequence[Message]) -> str:
    """Write messages as one text: a single message as it is; several as paragraphs that begin with the role."""
    if len(messages) == 1:
        return messages[0][1]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in messages)


def text_of(value: Any) -> str | None:
    """Return the text in the input or output of an application; None if it holds none.

    A text stays as it is, and messages become a conversation. An object with ``messages``, ``choices`` or a single text
    becomes the text of these. Any other object or list becomes JSON.
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
    """Return the value that an object wraps; None if it wraps none."""
    if messages_of(value.get("messages")):
        return value["messages"]
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0].get("message", choices[0].get("text"))
    generations = value.get("generations")  # LangChain: one list per prompt; the first is used
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
    """Return the text of a value by :func:`as_text`; for messages, a list or an object, as a :class:`StructuredText`.
    Raises ValueError if a message has no content."""
    text = as_text(value, passages=passages)
    return StructuredText(text, value) if isinstance(text, str) and isinstance(value, (Mapping, list, tuple)) else text


def as_text(value: Any, *, passages: bool = False) -> Any:
    """Turn a value of JSON into text; None if the value is empty. Values of other types are returned unchanged.

    A text stays as it is; a number or truth value becomes JSON. Messages become a transcript. Texts in a list become
    paragraphs, numbered if they are ``passages``. An object around one text that matters becomes that text, and any
    other object or list becomes indented JSON. Raises ValueError if a message has no content.
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
