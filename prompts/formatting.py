"""Numbers in words: counted, with their interval, their sign, in percent, in dollars, or why there is none.

A page has a minus sign that is one; a terminal and a text have the hyphen that can be typed (``minus="-"``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
"""Stands on a page where there is nothing to write."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as it is to be read, in a table or a sentence."""

    value: float | None
    """None where it is undefined."""
    low: float | None = None
    """Lower end of its interval; None where there is none."""
    high: float | None = None
    form: str = ".3f"
    """As in a format string: ``.3f``, ``+.3f`` for a difference, ``.1%`` for a share."""
    reason: str | None = None
    """Why it is undefined, or has no interval."""
    measured: bool = False
    """Whether it is a measurement, which has an interval where one can be given."""

    @classmethod
    def of(cls, found: Any, form: str = ".3f", key: str = "value") -> Figure:
        """That of a record, or of a row of a result file, with ``value``, ``low``, ``high`` and ``reason``."""
        row = found if isinstance(found, Mapping) else {name: getattr(found, name) for name in (key, *_BESIDE)}
        return cls(row[key], row.get("low"), row.get("high"), form, row.get("reason"), measured=True)

    def span(self, minus: str = MINUS) -> tuple[str, str] | None:
        """The ends of the interval; of plain numbers with one decimal less, where the number still lies in it as
        written. None where there is no interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        form = self.form.replace(".3f", ".2f")
        if not float(format(self.low, ".2f")) <= float(format(self.value, ".3f")) <= float(format(self.high, ".2f")):
            form = self.form
        return _written(self.low, form, minus), _written(self.high, form, minus)

    @property
    def side(self) -> int | None:
        """1 where the whole interval lies above zero, -1 where below, 0 where zero is in it; None without one."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return int(self.low > 0) - int(self.high < 0)

    def number(self, minus: str = MINUS) -> str:
        """The number alone, or ``undefined``."""
        return "undefined" if self.value is None else _written(self.value, self.form, minus)

    def __str__(self) -> str:
        """E.g. ``0.812 [0.75, 0.86]``, for a terminal."""
        span = self.span("-")
        return self.number("-") + (f" [{span[0]}, {span[1]}]" if span else "")


_BESIDE = ("low", "high", "reason")


def number_text(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """``0.812 [0.75, 0.86]``, without the interval where there is none; ``undefined`` where there is no value."""
    return str(Figure(value, low, high))


def _written(value: float, form: str, minus: str) -> str:
    text = format(value, form)
    if minus != "-" and not any(each in "123456789" for each in text):
        text = text.lstrip("+-")
    return text.replace("-", minus)


def number(value: float | None, digits: int = 2) -> str:
    """A number; a dash where there is none."""
    return NONE if value is None else _written(value, f".{digits}f", MINUS)


def signed(value: float | None, digits: int = 2) -> str:
    """A difference, with its sign; zero has none."""
    return NONE if value is None else _written(value, f"+.{digits}f", MINUS)


def interval(low: float | None, high: float | None, *, sign: bool = True) -> str:
    """An interval in words."""
    if low is None or high is None:
        return "no interval"
    form = signed if sign else number
    return f"{form(low)} to {form(high)}"


def money(dollars: float) -> str:
    """US dollars; small sums keep their digits."""
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share in percent; with decimals one below all of them is never rounded up to all."""
    if share is None:
        return NONE
    most = 100 - 10**-digits if digits and share < 1 else 100 * share
    return f"{min(100 * share, most):.{digits if share < 1 else 0}f} %"


def coverage_text(share: float) -> str:
    """A share in percent, for a terminal; where a little is missing it is never rounded up to all."""
    return f"{min(share, 0.999) if share < 1 else share:.1%}"


def missing_share(coverage: float) -> str:
    """The share that is missing, never rounded to nothing."""
    missing = 100 * (1 - coverage)
    return f"{missing:.1f} %" if missing >= 0.05 else "less than 0.1 %"


def p_value(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return NONE
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def count(value: int, what: str) -> str:
    """A number of things, e.g. ``1 call`` or ``2 calls``."""
    return f"{value:,} {what}{'' if value == 1 else 's'}"


MOST_NAMES, MOST_LISTED = 3, 8
"""Names in the middle of a sentence, and in a list that is its point; a terminal's line holds no more."""


def names_text(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """The first names, and how many there are more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def sentence(text: str) -> str:
    """A text, with a full stop where it does not end as a sentence does."""
    plain = text.rstrip()
    return plain if plain.endswith((".", "!", "?", "…")) else f"{plain}."
