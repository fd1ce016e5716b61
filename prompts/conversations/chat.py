"""Conversations as OpenAI's chat API takes them, and their images, last replies and calls of tools.

Other interfaces are reached through this form: LiteLLM turns it into Anthropic's or Gemini's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from ..checklist import Sees
from ..messages import (
    THINKING,
    StructuredText,
    call_of,
    calls_in,
    calls_text,
    content_text,
    conversation,
    fields_of,
    inner_of,
    is_content,
    message_of,
    messages_of,
    part_text,
)

ChatMessage = dict[str, Any]
Part = Mapping[str, Any]
IMAGE_TOKENS = 1000
"""Tokens that estimates count for an image; models differ, from about 85 to 1,600."""
NO_CALL = "No tool was called."
"""The text that a judge sees, for a question about calls, if the output has none."""
_IMAGES = frozenset({"image", "image_url", "input_image"})
_CALLS = frozenset({"tool_use", "tool_call"})
_ADDRESS = re.compile(r"(?:https?|gs)://|data:image/[\w.+-]+;base64,", re.IGNORECASE)


def raw_messages(value: Any) -> list[Any] | None:
    """Return the messages of a value, unchanged; None if it is not a conversation."""
    if isinstance(value, (list, tuple)):
        if len(value) == 1 and isinstance(value[0], list):
            return raw_messages(value[0])
        if is_content(value):
            return [{"role": "user", "content": list(value)}]
        return list(value) if messages_of(value) else None
    if message_of(value) is not None:
        return [value]
    inner = inner_of(value) if isinstance(value, Mapping) else None
    return None if inner is None or isinstance(inner, str) else raw_messages(inner)


def _made_of(text: str | None) -> list[Any]:
    """Return the messages that a text was made of; empty for a plain text."""
    return (raw_messages(text.original) or []) if isinstance(text, StructuredText) else []


# --- messages for a model -------------------------------------------------------------------------------------------


def chat_of(text: str) -> list[ChatMessage]:
    """Return the messages of a text that was made of a conversation; empty for other texts.

    Calls of tools are kept as calls if each has its result after it. Other calls and results are written as text,
    because endpoints refuse a call without a result, and a result without a call.
    """
    return _paired([each for raw in _made_of(text) if (found := fields_of(raw)) for each in _chat(*found)])


def _chat(role: str, fields: Mapping[str, Any]) -> Iterator[ChatMessage]:
    """Yield the messages made of one: first each tool result among its parts, then the rest of the message."""
    content = fields.get("content")
    parts = content if isinstance(content, list) else [] if content is None else [content]
    parts = [each for each in parts if not (isinstance(each, Mapping) and each.get("type") in THINKING)]
    kinds = [each.get("type") if isinstance(each, Mapping) else "text" for each in parts]
    if role in ("tool", "function"):
        yield _tool_result(fields.get("tool_call_id"), parts)
        return
    for part, kind in zip(parts, kinds, strict=True):
        if kind == "tool_result":
            yield _tool_result(part.get("tool_use_id"), part.get("content"))
    shown = [_chat_part(part) for part, kind in zip(parts, kinds, strict=True) if kind not in (*_CALLS, "tool_result")]
    refusal = fields.get("refusal")
    if not shown and isinstance(refusal, str):
        shown = [{"type": "text", "text": refusal}]
    beside = calls_in(fields) or []
    calls = [part for part, kind in zip(parts, kinds, strict=True) if kind in _CALLS]
    calls += beside if isinstance(beside, list) else [beside]
    if shown or calls or "tool_result" not in kinds:
        known = role if role in ("system", "assistant") else "user"
        yield {"role": known, "content": shown, **({"calls": calls} if calls else {})}


def _tool_result(call: Any, content: Any) -> ChatMessage:
    parts = content if isinstance(content, list) else [content]
    images = [image for each in parts if (image := image_of(each))]
    return {"role": "tool", "id": call, "content": content_text(content), "images": images}


def _chat_part(part: Any) -> Part:
    return image_of(part) or {"type": "text", "text": part if isinstance(part, str) else part_text(part)}


def _paired(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages as they are sent; a call and its result get the same id."""
    sent: list[ChatMessage] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if message["role"] == "tool":
            sent.append(_result_told(message))
            continue
        results = []
        while message.get("calls") and place < len(messages) and messages[place]["role"] == "tool":
            results.append(messages[place])
            place += 1
        sent += _with_results(message, results)
    return sent


def _with_results(message: ChatMessage, results: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return a message with its calls and their results; as text if a call or result has no partner."""
    parts, given = message["content"], message.get("calls", [])
    if not given:
        return [{"role": message["role"], "content": _compact(parts)}]
    calls = [_chat_call(each, number) for number, each in enumerate(given, 1)]
    ids = [each["id"] for each in calls if each]
    named = [each["id"] for each in results]
    is_in_order = not any(named)
    if None in calls or len(results) != len(ids) or not (is_in_order or sorted(map(str, named)) == sorted(ids)):
        told = [*parts, {"type": "text", "text": calls_text(list(given))}]
        return [{"role": message["role"], "content": _compact(told)}, *map(_result_told, results)]
    answers = [
        {"role": "tool", "tool_call_id": ids[place] if is_in_order else str(each["id"]), "content": each["content"]}
        for place, each in enumerate(results)
    ]
    images = [part for each in results for part in each["images"]]
    shown = [{"role": "user", "content": images}] if images else []  # a tool's result can hold only text
    return [{"role": "assistant", "content": _compact(parts) or None, "tool_calls": calls}, *answers, *shown]


def _result_told(result: ChatMessage) -> ChatMessage:
    text = {"type": "text", "text": f"Result: {result['content']}"}
    return {"role": "user", "content": _compact([text, *result["images"]])}


def _chat_call(given: Any, number: int) -> ChatMessage | None:
    """Return one call of a tool in the form of the API; None if the call has no name."""
    if (call := call_of(given)) is None:
        return None
    identity = given.get("call_id") or given.get("id") or f"call_{number}"
    return {"id": str(identity), "type": "function", "function": {"name": call[0], "arguments": call[1]}}


def _compact(parts: Sequence[Part]) -> Any:
    """Join the parts to one text if all of them are texts."""
    if all(each["type"] == "text" for each in parts):
        return "\n".join(each["text"] for each in parts)
    return [*parts]


def sent_after(system: str, context: str, asked: str) -> list[tuple[str, str]]:
    """Return the messages, as (role, content), for a generator: its prompt as ``system``, then the input ``asked``.

    System messages at the beginning of the input are joined to the prompt, because many models take only one. The
    context stands before the last message of the user.
    """
    messages = chat_of(asked)
    if not messages:
        text = f"{context}\n\n{asked}" if context else asked
        return [("system", system), ("user", with_images(text, (*images_of(context), *images_of(asked))))]
    opening = list(takewhile(lambda each: each["role"] == "system", messages))
    system = "\n\n".join([system, *(content_text(each["content"]) for each in opening)])
    sent = [*map(as_sent, messages[len(opening) :])]
    place = max((place for place, (role, _) in enumerate(sent) if role == "user"), default=-1)
    if context and place < 0:
        sent.insert(0, ("user", context))
    elif context:
        sent[place] = (
            "user",
            _content_of({"content": _put_before(context, messages[len(opening) + place]["content"])}),
        )
    return [("system", system), *sent]


def as_sent(message: ChatMessage) -> tuple[str, str]:
    """Return a message of OpenAI's chat API as (role, content); content that is more than a text keeps its fields."""
    return message["role"], _content_of(message)


def with_images(text: str, images: Sequence[Part]) -> str:
    """Return a message's content: the images, if any, then the text.

    The images come first, so that all questions on an example share their beginning.
    """
    return StructuredText(text, {"content": [*images, {"type": "text", "text": text}]}) if images else text


def system_in_user(messages: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Move the system message, if it is the first, to the beginning of the first user message; without one, it becomes
    a user message."""
    if not messages or messages[0][0] != "system":
        return [*messages]
    system, sent = messages[0][1], [*messages[1:]]
    place = next((place for place, (role, _) in enumerate(sent) if role == "user"), None)
    if place is None:
        return [("user", system), *sent]
    content = sent[place][1]
    fields = content.original if isinstance(content, StructuredText) else {"content": content}
    sent[place] = ("user", _content_of({**fields, "content": _put_before(system, fields["content"])}))
    return sent


def put_after(messages: Sequence[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Add a text at the end of the last message if it is the user's, else as a new user message."""
    if not messages or messages[-1][0] != "user":
        return [*messages, ("user", text)]
    content = messages[-1][1]
    if not isinstance(content, StructuredText):
        return [*messages[:-1], ("user", f"{content}\n\n{text}")]
    parts = content.original["content"]
    parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
    fields = {**content.original, "content": [*parts, {"type": "text", "text": text}]}
    return [*messages[:-1], ("user", StructuredText(_fields_told(fields), fields))]


def _put_before(context: str, content: Any) -> Any:
    """Put a context and its images before a message's content."""
    if isinstance(content, str) and not images_of(context):
        return f"{context}\n\n{content}"
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*images_of(context), {"type": "text", "text": context}, *parts]


def _content_of(message: ChatMessage) -> str:
    fields = {name: value for name, value in message.items() if name != "role"}
    is_plain = len(fields) == 1 and isinstance(message["content"], str)
    return message["content"] if is_plain else StructuredText(_fields_told(fields), fields)


def _fields_told(fields: ChatMessage) -> str:
    calls = [calls_text(fields["tool_calls"])] if "tool_calls" in fields else []
    return "\n".join(each for each in (content_text(fields["content"]), *calls) if each)


# --- images ---------------------------------------------------------------------------------------------------------


def image_of(part: Any) -> Part | None:
    """Return the image of a part as OpenAI's ``image_url``; None if the part is not an image, or only names a file.
    Raises ValueError if its address is not a data URL of an image, nor begins with http, https or gs."""
    if not isinstance(part, Mapping) or part.get("type") not in _IMAGES:
        return None
    given = part.get("image_url", part.get("source", part))
    given = {"url": given} if isinstance(given, str) else given
    if not isinstance(given, Mapping):
        return None
    url, data = given.get("url"), given.get("data") or given.get("base64")
    if url is None and isinstance(data, str):
        kind = given.get("media_type") or given.get("mime_type") or "image/png"
        url = data if data.startswith("data:") else f"data:{kind};base64,{data}"
    if url is None:
        return None
    if not isinstance(url, str) or not _ADDRESS.match(url):
        raise ValueError(
            f"an image is data:image/…;base64,… or an address that begins with https://, not {str(url)[:40]!r}"
        )
    detail = {"detail": given["detail"]} if isinstance(given.get("detail"), str) else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def images_of(text: str | None) -> tuple[Part, ...]:
    """Return the images in the messages that a text was made of, in order; empty for a plain text."""
    return tuple(
        image for raw in _made_of(text) if (found := fields_of(raw)) for image in _images(found[1].get("content"))
    )


def _images(content: Any) -> Iterator[Part]:
    for part in content if isinstance(content, list) else ():
        if image := image_of(part):
            yield image
        elif isinstance(part, Mapping) and part.get("type") == "tool_result":
            yield from _images(part.get("content"))


MOST_SHOWN = 2_000_000
"""Maximum length, in characters, of the data URL of an image that a page shows."""
_PICTURE = re.compile(r"data:image/(?:png|jpeg|jpg|gif|webp);base64,[A-Za-z0-9+/=\s]+", re.IGNORECASE)


def pictures_of(text: str | None) -> list[tuple[str, str]]:
    """Return the images of a text as a page shows them, so that the page never loads one from another machine.

    Each entry is ``("image", data URL)``, ``("link", address)``, or ``("note", sentence)`` for an image that is not
    shown.
    """
    found = []
    for each in images_of(text):
        url = each["image_url"]["url"]
        if url.lower().startswith(("https://", "http://")):
            found.append(("link", url))
        elif len(url) > MOST_SHOWN:
            found.append(("note", f"An image of {len(url) * 3 / 4e6:.1f} MB is in the data."))
        elif _PICTURE.fullmatch(url):
            found.append(("image", "".join(url.split())))
        else:
            found.append(("note", "An image of another kind is in the data."))
    return found


# --- parts of an output that a question is asked of -----------------------------------------------------------------


def seen_of(output: str, input: str, sees: Sees) -> str:
    """Return the part of an output that a question is about: its last reply, its calls of tools, or all of it."""
    return last_reply(output) if sees == "last" else calls_told(output, input) if sees == "call" else output


def last_reply(output: str) -> str:
    """Return the last message of the assistant that is not empty, or of anybody if the assistant has none; a plain
    text is returned as it is."""
    raw = _made_of(output)
    replies = [each for each in raw if (read := message_of(each)) and read[0] == "assistant"] or raw
    said = [each for each in replies if (found := fields_of(each)) and content_text(found[1].get("content")).strip()]
    if not replies:
        return output
    last = (said or replies)[-1]
    return StructuredText(conversation([message_of(last) or ("", "")]), last)


def reply_text(output: str) -> str:
    """Return the words of an output's last reply, without calls of tools; empty if the reply has only calls."""
    reply = last_reply(output)
    found = fields_of(reply.original) if isinstance(reply, StructuredText) else None
    if found is None:
        return reply
    refused = found[1].get("refusal")
    return content_text(found[1].get("content")) or (refused if isinstance(refused, str) else "")


def calls_told(output: str, input: str | None = None) -> str:
    """Return the calls of tools in :func:`turn_of` as text, with arguments and results; :data:`NO_CALL` if none."""
    told = [each for raw in turn_of(output, input) if (found := fields_of(raw)) for each in _tool_turns(*found)]
    return conversation(told) if told else NO_CALL


def turn_of(output: str, input: str | None = None) -> list[Any]:
    """Return the messages of an output, unchanged. If none is the user's, the messages after the user's last one in the
    input come first."""
    messages = _made_of(output)
    # an application may log the reply alone as the output; its calls then stand at the end of the input
    if not any((read := message_of(each)) and read[0] == "user" for each in messages):
        messages = [*at_last_user(input)[1], *messages]
    return messages


def at_last_user(input: str | None) -> tuple[list[Any], list[Any]]:
    """Split the messages of an input after the last one in which the user says something."""
    messages, end = _made_of(input), 0
    for place, each in enumerate(messages, 1):
        found = fields_of(each)
        if found and found[0] == "user" and any(said["role"] == "user" for said in _chat(*found)):
            end = place
    return messages[:end], messages[end:]


class ToolCall(NamedTuple):
    """A call of a tool in a conversation."""

    name: str
    """The name of the tool; empty if the call has no name."""
    arguments: Any
    """The arguments, usually an object; the original text if it is not JSON."""
    result: str | None = None
    """The text of the result; None without a result."""


def calls_in_turn(output: str, input: str | None = None) -> list[ToolCall]:
    """Return the calls of tools in :func:`turn_of`, in order, with their results."""
    made: list[tuple[Any, ToolCall]] = []
    for message in (each for raw in turn_of(output, input) if (found := fields_of(raw)) for each in _chat(*found)):
        for number, given in enumerate(message.get("calls", ()), 1):
            call = _chat_call(given, number)
            function = {"name": "", "arguments": ""} if call is None else call["function"]
            made.append((call and call["id"], ToolCall(function["name"], _arguments(function["arguments"]))))
        if message["role"] != "tool":
            continue
        for place, (identity, known) in enumerate(made):
            if known.result is None and message["id"] in (None, identity):
                made[place] = identity, known._replace(result=message["content"])
                break
    return [call for _, call in made]


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text


def _tool_turns(role: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the calls of tools in a message, and the results in it, as (role, text)."""
    content = fields.get("content")
    parts = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    calls = [each for each in parts if each.get("type") in _CALLS]
    if calls or calls_in(fields):
        yield role, "\n".join(calls_text(each) for each in (calls, calls_in(fields)) if each)
    if role in ("tool", "function"):
        yield "tool", content_text(content)
    for each in parts:
        if each.get("type") == "tool_result":
            yield "tool", content_text(each.get("content"))
