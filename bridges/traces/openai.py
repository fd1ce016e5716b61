"""Logs in the forms of OpenAI: stored completions and their messages, responses, batches, requests with their responses,
and lists of messages as for fine-tuning.

A batch has its requests in one file and its answers in another, and a stored completion its messages: give both files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .spans import Part, Row, TracedSpan, entries, loaded, mapping, named, short

NAME = "openai"
_STORED = re.compile(r"(chatcmpl-\w+)-(\d+)")
_PAIRS = (("request", "response"), ("input", "output"), ("request", "completion"), ("prompt", "completion"))


def parts(row: Row) -> list[Part] | None:
    """What a row holds; None where it is none of these."""
    if "custom_id" in row:
        return _batch(row)
    if row.get("object") in ("chat.completion", "response"):
        return [_of(str(row.get("id") or named(row)), row, row)]
    stored = _STORED.fullmatch(str(row.get("id")))
    if stored and "role" in row:
        return [TracedSpan(stored[1], stored[1], None, "", [dict(row)], piece=True)]
    for asked, answered in _PAIRS:
        request, response = loaded(row.get(asked)), loaded(row.get(answered))
        if isinstance(request, Mapping) and isinstance(response, Mapping) and _is_body(request, response):
            return [_of(str(row.get("id") or response.get("id") or named(row)), request, response, row)]
    messages = loaded(row.get("messages"))
    if isinstance(messages, list) and messages and isinstance(messages[-1], Mapping) and "role" in messages[-1]:
        last = messages[-1] if messages[-1]["role"] == "assistant" else None
        name = str(row.get("id") or named(messages))
        before = messages[:-1] if last else messages
        return [TracedSpan(name, name, None, "", before, last, _metadata(row))]
    return None


def _is_body(request: Row, response: Row) -> bool:
    return ("messages" in request or "input" in request or "prompt" in request) and (
        "choices" in response or response.get("object") in ("chat.completion", "response")
    )


def _batch(row: Row) -> list[Part] | None:
    name = str(row["custom_id"])
    if "body" in row:
        body = mapping(row["body"])
        return [TracedSpan(name, name, None, "", _asked(body), None, short({"model": body.get("model")}))]
    if "response" not in row:
        return None
    response = mapping(row["response"])
    body, error = mapping(response.get("body")), mapping(row.get("error"))
    if error or response.get("status_code", 200) >= 400:
        said = str(error.get("message") or mapping(body.get("error")).get("message") or "error")
        return [TracedSpan(name, name, None, "", problem=said)]
    return [_of(name, {}, body)]


def _of(name: str, request: Row, response: Row, log: Row | None = None) -> TracedSpan:
    metadata = short({**_metadata(response), **_metadata(request), **(_metadata(log) if log else {})})
    model = response.get("model") or request.get("model")
    return TracedSpan(name, name, None, "", _asked(request), _answer(response), {**metadata, **short({"model": model})})


def _metadata(row: Row) -> dict[str, Any]:
    return short({**mapping(row.get("metadata")), **mapping(row.get("tags"))})


def _asked(body: Row) -> Any:
    """What a model was asked: messages, the input of a response with its instructions, or a prompt."""
    if body.get("messages"):
        return body["messages"]
    given = body.get("input", body.get("prompt"))
    instructions = body.get("instructions")
    if isinstance(instructions, str) and given:
        first = {"role": "system", "content": instructions}
        return [first, *given] if isinstance(given, list) else [first, {"role": "user", "content": given}]
    return given


def _answer(body: Row) -> Any:
    """What it answered: the first choice, or the messages of a response."""
    choices = entries(body.get("choices"))
    if choices:
        return choices[0].get("message", choices[0].get("text"))
    items = entries(body.get("output"))
    messages = [each for each in items if each.get("type") == "message"]
    return messages or [each for each in items if each.get("type") != "reasoning"] or None
