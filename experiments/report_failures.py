"""What is missing in a judge's answers, and why: failures with the same reason together, the most frequent first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
