"""The rationale that a causal scorer writes before it answers (LMUnit §3.3): a turn of its own in the judge's conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...prompts.templates import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..base import Message
    from .causal import CausalNetwork
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


def levels_after_rationales(network: CausalNetwork, texts: Sequence[ScoredText], most: int) -> tuple[Any, list[str]]:
    """What a network says after the rationale that it writes to each text.

    Args:
        network: It writes the likeliest word each time.
        texts: With their conversations.
        most: Tokens of a rationale; what is longer is cut off.

    Returns:
        Log-probability of no and of yes, shape (texts, 2), and the rationales.
    """
    said = [found[0].text for found in network.write([asked_why(each) for each in texts], most)]
    return network.levels([after_rationale(each, why) for each, why in zip(texts, said, strict=True)]), said
