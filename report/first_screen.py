"""The first screen of a result's report: what was found in words, the figures behind it, and what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..models.budget import count
from ..prompts.words import NONE, money

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .scores import Scale


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


SHOWN_PLACES = 12
"""Places named for each reason."""
LONGEST = 400
"""Characters of a reason."""
STATUSES = {"abstained": "abstention", "parse_error": "unreadable answer", "api_error": "failed call"}


@dataclass(frozen=True)
class Failure:
    """Answers that are missing for one reason."""

    status: str
    """In words."""
    reason: str
    times: int
    places: Sequence[tuple[str, str]]
    """Example and question (or dimension) of the first ones."""


def failures(rows: Iterable[Mapping[str, Any]], asked: str = "question") -> list[Failure]:
    """Group the rows whose status is not ``ok``.

    Args:
        rows: Verdicts or ratings with ``example``, ``status`` and, where there is one, ``error``.
        asked: Name of the field that says what was asked.
    """
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        if row["status"] != "ok":
            reason = " ".join(str(row.get("error") or "no reason was given").split())[:LONGEST]
            found.setdefault((row["status"], reason), []).append((row["example"], row[asked]))
    ordered = sorted(found.items(), key=lambda each: -len(each[1]))
    return [
        Failure(STATUSES.get(status, status), reason, len(places), places[:SHOWN_PLACES])
        for (status, reason), places in ordered
    ]
