"""The first screen of a result's report: what was found in words, the figures behind it, and what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..models.budget import count
from .report_words import NONE, money

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .report_scores import Scale


@dataclass(frozen=True)
class Tile:
    """One figure with what it is."""

    label: str
    figure: str
    sub: str = ""
    before: str | None = None
    """The figure that it is compared with."""
    unit: str = ""
    gain: Mapping[str, Any] | None = None
    """``value``, ``low`` and ``high`` of a difference, to be drawn."""
    scale: Scale | None = None
    """Its axis."""
    is_change: bool = True
    """Whether it is a difference, of which zero is none."""
    known: bool = True
    """Whether there is a figure, and not a word in its place."""


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before anything else."""

    command: str
    """``weigh``, ``select``, ``compare`` or ``evaluate``."""
    name: str
    """Of the file."""
    choice: Literal["adopt", "keep", "undecided"]
    """Its tone: good, plain, or not settled."""
    headline: str
    lead: str
    tiles: Sequence[Tile]
    cautions: Sequence[str] = ()
    heading: str = "Before acting on this"
    """Above the cautions."""
    who: str = ""


def cost_tile(data: Mapping[str, Any]) -> Tile:
    """What a command bought."""
    spent = money(data["cost_usd"]) if data["cost_usd"] else "no charge recorded"
    reused = f", {count(data['cached_calls'], 'answer')} reused" if data["cached_calls"] else ""
    return Tile("Cost", f"{data['calls']:,}", f"{data['tokens']:,} tokens, {spent}{reused}", unit=_calls(data["calls"]))


def _calls(calls: int) -> str:
    return "call" if calls == 1 else "calls"


def unknown(label: str, sub: str) -> Tile:
    """A tile without a figure, and why."""
    return Tile(label, NONE, sub, known=False)
