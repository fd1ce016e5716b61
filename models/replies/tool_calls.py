"""The reply to a request with tools, kept as an answer's text: one message as JSON, with its calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def message_said(text: str, calls: Any) -> str:
    """The text of an answer with calls of tools, as an OpenAI-compatible endpoint gives them; empty where nothing is
    said.

    Raises:
        TypeError: The calls are no list of objects.
    """
    if not isinstance(calls or [], Sequence) or not all(isinstance(each, Mapping) for each in calls or ()):
        raise TypeError("tool_calls must be a list of objects")
    made = [{name: value for name, value in each.items() if name != "index"} for each in calls or ()]
    if not made and not text.strip():
        return ""
    return json.dumps(
        {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}, ensure_ascii=False
    )


def message_in(answer: str) -> dict[str, Any]:
    """The message in the text of an answer to a request with tools.

    Raises:
        ValueError: There is none, e.g. because the model does not know of tools.
    """
    try:
        message = json.loads(answer)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or message.get("role") != "assistant":
        raise ValueError("the reply to a request with tools is no message")
    return message


def add_pieces(calls: list[dict[str, Any]], pieces: Sequence[Mapping[str, Any]]) -> None:
    """Add the pieces of calls in an event of a stream; those with an index seen before go on with its call."""
    for piece in pieces:
        place = piece.get("index", len(calls))
        known = next((each for each in calls if each["index"] == place), None)
        if known is None:
            known = {"index": place, "type": "function", "function": {"name": "", "arguments": ""}}
            calls.append(known)
        known |= {name: piece[name] for name in ("id", "type") if piece.get(name)}
        for name, said in (piece.get("function") or {}).items():
            known["function"][name] = known["function"].get(name, "") + (said or "")
