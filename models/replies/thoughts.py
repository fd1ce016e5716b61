"""Marks of thinking in a reply, in one closed list, and the answer that is left without it.

An exported judge holds a copy of this file, so that it needs the standard library alone.
"""

from __future__ import annotations

import re
from typing import Any

BESIDE = ("reasoning_content", "reasoning", "thinking_blocks")  # fields of a message in which servers send the thinking
PARTS = ("thinking", "redacted_thinking", "reasoning")  # types of such parts of a content that is a list
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
"""The channels of gpt-oss where a server leaves out its special tokens: ``analysisWe need …assistantfinalYes``."""
_BARE_FINAL = re.compile(r"assistantfinal")
_START_OF_ANSWER = re.compile(r"^<\|start_response\|>\s*", re.IGNORECASE)
_END_OF_ANSWER = re.compile(r"(?:<\|(?:return|end|end_response)\|>|\s)+$", re.IGNORECASE)
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_QUOTES = "`\"'“”‘’«»"


def opens_thought(text: str) -> bool:
    """Tell whether a text ends with the tag that opens a thought."""
    return text.translate(_LOWER).rstrip().endswith(tuple(opening for opening, _ in TAGS))


def thinks_apart(message: Any) -> bool:
    """Whether what a model thought stands beside its answer, as servers with a parser for it send it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(message.get(field) for field in BESIDE) or any(
        isinstance(part, dict) and part.get("type") in PARTS for part in parts
    )


def after_thinking(text: str, logprobs: Any, *, apart: bool, free: bool = False) -> tuple[str, Any]:
    """A reply and its log-probabilities without the thoughts before the answer: no verdict is read from these. Where
    the model thought ``apart``, the tokens may be more than the text. A ``free`` text, e.g. of a generator, may itself
    speak of tags. The log-probabilities are None where they are not found, or nothing was answered."""
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
    """End of the thinking in a reply: the reply's end if it was cut off, 0 if there is none."""
    first = _one_thought(text)
    begins = _template_opened(text, free=free) if first is None else first
    while begins and (after := _one_thought(text[begins:])) is not None:
        begins += after
    return begins


def _one_thought(text: str) -> int | None:
    """End of the thought that a text begins with; None where it begins with none."""
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
    """End of a thought that the server's template began, so that only its end is in the reply; 0 without one."""
    lower = text.translate(_LOWER)
    if lower.lstrip().startswith(("{", "```")):  # JSON, in whose texts a tag is quoted
        return 0
    for begin, end_tag in TAGS:
        end = _tag_end(lower, end_tag, 0) if end_tag in lower else None
        if end is not None and begin not in lower[:end] and not (free and _is_mentioned(lower, end_tag, end)):
            return end
    return 0


def _tag_end(text: str, tag: str, start: int) -> int | None:
    """End of the first such tag that is not quoted."""
    place = text.find(tag, start)
    while place >= 0:
        after = place + len(tag)
        neighbours = text[place - 1 : place], text[after : after + 1]
        if not all(character and character in _QUOTES for character in neighbours):
            return after
        place = text.find(tag, after)
    return None


def _is_mentioned(text: str, tag: str, end: int) -> bool:
    """Whether a tag stands in the middle of a sentence or in a block of code: a free text may speak of it."""
    if text[:end].count("```") % 2:
        return True
    line = text[: end - len(tag)].rpartition("\n")[2]
    return bool(line.strip()) and text[end : end + 1] in (" ", ",", ".", ";", ":", ")")
