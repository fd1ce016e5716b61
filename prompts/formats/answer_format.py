"""Sentences of a prompt that say how to answer."""

from __future__ import annotations

import re

_TELLS_TO_ANSWER = re.compile(r"\b(?:answer|reply|respond|return|output)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\b(?:yes\W+(?:or\W+)?no|no\W+(?:or\W+)?yes)\b", re.IGNORECASE)
_YES, _NO, _JSON = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("yes", "no", "JSON"))


def answer_format(text: str) -> list[str]:
    """The sentences that say to answer with yes or no, or in JSON."""
    return [sentence.strip() for sentence in re.split(r"[.\n]", text) if _says_how_to_answer(sentence)]


def orders_json(text: str) -> bool:
    """Whether a sentence that says how to answer names JSON."""
    return any(_JSON.search(sentence) for sentence in answer_format(text))


def orders_yes_or_no(text: str) -> bool:
    """Whether a sentence says, in so many words, to answer yes or no."""
    return any(_YES_OR_NO.search(sentence) for sentence in answer_format(text))


def _says_how_to_answer(sentence: str) -> bool:
    order = _TELLS_TO_ANSWER.search(sentence)
    if not order:
        return False
    yes, no, json = (word.search(sentence, order.end()) for word in (_YES, _NO, _JSON))
    return bool((yes and no) or json)
