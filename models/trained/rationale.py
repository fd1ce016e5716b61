"""The rationale that a causal scorer writes before it answers (LMUnit §3.3): a turn of its own in the judge's conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...prompts.templates import template

if TYPE_CHECKING:
    from ..base import Message
    from .scored_text import ScoredText


class Rationale(NamedTuple):
    """Why an answer is yes or no, in words."""

    text: str
    is_whole: bool = True
    """Whether it came to its end; else it was cut off."""


def asked_why(text: ScoredText) -> tuple[Message, ...]:
    """The conversation in which the rationale is asked for, before the answer."""
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{template('rationale_first')}"))


def after_rationale(text: ScoredText, rationale: str) -> ScoredText:
    """The text whose conversation goes on with a rationale, and then asks for the answer in one word."""
    said: tuple[Message, ...] = (("assistant", rationale), ("user", template("rationale_then")))
    return replace(text, messages=(*asked_why(text), *said))


def asked_for(text: ScoredText) -> tuple[Message, ...]:
    """Of a text :func:`after_rationale`, the conversation that the rationale was asked for in."""
    return text.messages[:-2]
