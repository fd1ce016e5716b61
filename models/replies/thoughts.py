"""Marks of thinking in a reply, in one closed list, and the answer without the thinking.

An exported judge contains a copy of this file, so it imports only the standard library.
"""

from __future__ import annotations

import re
from typing import Any

BESIDE = ("reasoning_content", "reasoning", "thinking_blocks")  # fields of a message in which servers send the thinking
PARTS = ("thinking", "redacted_thinking", "reasoning")  # types of parts with thinking, if a content is a list
TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[think]", "[/think]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<|start_thinking|>", "<|end_thinking|>"),
)
"""Tags around thoughts, in lower case: Qwen, DeepSeek and others; Claude; Magistral; Seed-OSS; Kimi; Command A."""
_HARMONY = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>(?!final)\w+")
_FINAL = re.compile(r"<\|channel\|>final[^<]*<\|message\|>")
_BARE_HARMONY = re.compile(r"\s*analysis(?=[A-Z\"'“(])")
"""Channels of gpt-oss if a server leaves out the special tokens: ``analysisWe need …assistantfinalYes``."""
_BARE_FINAL = re.compile(r"assistantfinal")
_START_OF_ANSWER = re.compile(r"^<\|start_response\|>\s*", re.IGNORECASE)
_END_OF_ANSWER = re.compile(r"(?:<\|(?:return|end|end_response)\|>|\s)+$", re.IGNORECASE)
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_QUOTES = "`\"'“”‘’«»"


def opens_thought(text: str) -> bool:
    """Whether a text ends with a tag that opens a thought."""
    return text.translate(_LOWER).rstrip().endswith(tuple(opening for opening, _ in TAGS))


def thinks_apart(message: Any) -> bool:
    """Whether a message has the thinking apart from the answer, as servers with a parser for it send it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(message.get(field) for field in BESIDE) or any(
        isinstance(part, dict) and part.get("type") in PARTS for part in parts
    )


def after_thinking(text: str, logprobs: Any, *, apart: bool, free: bool = False) -> tuple[str, Any]:
    """Remove the thoughts before the answer from a reply and its log-probabilities. If the model thought ``apart``, the
    tokens may include more than the text. A ``free`` text, e.g. from a generator, may itself mention tags. The
    log-probabilities are None if the answer's tokens are not found, or there is no answer."""
    begins = _answer_begins(text, free=free)
    if not begins and not apart:
        return text, logprobs
    answer = text[begins:].lstrip()
    if begins and "<|" in answer:
        answer = _END_OF_ANSWER.sub("", _START_OF_ANSWER.sub("", answer))
    place = "".join(token for token, _ in logprobs or ()).rfind(answer.strip()) if answer.strip() else -1
    for number, (token, _) in enumerate(logprobs or ()):
        if 0 <= place < len(token):
            return answer, (logprobs or ())[number:]
        place -= len(token)
    return answer, None


def _answer_begins(text: str, *, free: bool) -> int:
    """Find the end of the thinking in a reply: the reply's end if the thinking was cut off, 0 without thinking."""
    first = _one_thought(text)
    begins = _template_opened(text, free=free) if first is None else first
    while begins and (after := _one_thought(text[begins:])) is not None:
        begins += after
    return begins


def _one_thought(text: str) -> int | None:
    """Find the end of the thought at the beginning of a text; None if there is no thought."""
    for opening, closing in ((_HARMONY, _FINAL), (_BARE_HARMONY, _BARE_FINAL)):
        if opening.match(text):
            end = closing.search(text)
            return len(text) if end is None else end.end()
    if (final := _FINAL.match(text)) is not None:
        return final.end()
    lower = text.translate(_LOWER)
    start = len(lower) - len(lower.lstrip())
    for begin, end_tag in TAGS:
        if lower.startswith(begin, start):
            tag_end = _tag_end(lower, end_tag, start)
            return len(text) if tag_end is None else tag_end
    return None


def _template_opened(text: str, *, free: bool) -> int:
    """Find the end of a thought that the server's template began; 0 if the reply has no such end."""
    lower = text.translate(_LOWER)
    if lower.lstrip().startswith(("{", "```")):  # JSON: a tag in it is part of a text
        return 0
    for begin, end_tag in TAGS:
        end = _tag_end(lower, end_tag, 0) if end_tag in lower else None
        if end is not None and begin not in lower[:end] and not (free and _is_mentioned(lower, end_tag, end)):
            return end
    return 0


def _tag_end(text: str, tag: str, start: int) -> int | None:
    """Find the end of the first tag that is not in quotes; None without one."""
    place = text.find(tag, start)
    while place >= 0:
        end = place + len(tag)
        neighbours = text[place - 1 : place], text[end : end + 1]
        if not all(character and character in _QUOTES for character in neighbours):
            return end
        place = text.find(tag, end)
    return None


def _is_mentioned(text: str, tag: str, end: int) -> bool:
    """Whether a tag is in the middle of a sentence or in a block of code, so that a free text only mentions it."""
    if text[:end].count("```") % 2:
        return True
    line = text[: end - len(tag)].rpartition("\n")[2]
    return bool(line.strip()) and text[end : end + 1] in (" ", ",", ".", ";", ":", ")")
