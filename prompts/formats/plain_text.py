"""Parts of a plain prompt: the sentences on how to answer, and the paragraphs that show texts of an example."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text import placeholders_of

_TELLS_TO_ANSWER = re.compile(r"\b(?:answer|reply|respond|return|output)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\b(?:yes\W+(?:or\W+)?no|no\W+(?:or\W+)?yes)\b", re.IGNORECASE)
_YES, _NO, _JSON = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("yes", "no", "JSON"))


def answer_format(text: str) -> list[str]:
    """Return the sentences that say to answer with yes or no, or in JSON."""
    return [sentence.strip() for sentence in re.split(r"[.\n]", text) if _says_how_to_answer(sentence)]


def orders_json(text: str) -> bool:
    """Whether a sentence that says how to answer names JSON."""
    return any(_JSON.search(sentence) for sentence in answer_format(text))


def orders_yes_or_no(text: str) -> bool:
    """Whether a sentence says literally to answer "yes or no"."""
    return any(_YES_OR_NO.search(sentence) for sentence in answer_format(text))


def _says_how_to_answer(sentence: str) -> bool:
    order = _TELLS_TO_ANSWER.search(sentence)
    if not order:
        return False
    yes, no, json = (word.search(sentence, order.end()) for word in (_YES, _NO, _JSON))
    return bool((yes and no) or json)


_PROTECT_MARK = re.compile(r"<!-- (/?)protect -->")


def is_marked_well(text: str) -> bool:
    """Whether every protected part of a text is closed."""
    marks = _PROTECT_MARK.findall(text)
    return marks == ["", "/"] * (len(marks) // 2)


OTHER_TEXTS = frozenset({"input", "context", "reference"})
_HEADING = re.compile(r"\s*(?:#+ .*|<[\w-]+>|\*\*[^*\n]+\*\*|[^.!?\n]*:)\s*")
_END_TAG = re.compile(r"^[ \t]*</([\w-]+)>[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def without_other_texts(text: str) -> str:
    """Remove the paragraphs and lines that show input, context or reference; unchanged if that is not possible."""
    kept: list[str] = []
    for paragraph in re.split(r"(?<=\n\n)(?=[^\n])", text):
        shown = set(placeholders_of(paragraph))
        if not shown & OTHER_TEXTS:
            kept.append(paragraph)
            continue
        lines = paragraph.splitlines(keepends=True) if shown - OTHER_TEXTS else []
        kept_lines = _without_lines(lines)
        if any(OTHER_TEXTS & set(placeholders_of(line)) for line in kept_lines):
            return text
        if kept_lines:
            kept.append("".join(kept_lines))
        elif kept and _is_heading(kept[-1]):
            kept.pop()
    found = "".join(kept)
    if found != text:
        found = _END_TAG.sub(lambda tag: tag[0] if re.search(rf"<{tag[1]}[\s>]", found) else "", found)
    return found if is_marked_well(found) else text


def _without_lines(lines: Sequence[str]) -> list[str]:
    """Remove the lines that show only input, context or reference, and their headings."""
    kept: list[str] = []
    for line in lines:
        shown = set(placeholders_of(line))
        if shown and shown <= OTHER_TEXTS:
            if kept and _is_heading(kept[-1]) and line.strip().startswith("{"):
                kept.pop()
        else:
            kept.append(line)
    return kept


def _is_heading(text: str) -> bool:
    """Whether a line or paragraph only announces the next one, and has no placeholder."""
    return _HEADING.fullmatch(text) is not None and not placeholders_of(text)
