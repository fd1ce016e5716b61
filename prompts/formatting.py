"""Numbers as text: counts, intervals, signed numbers, percents, dollars, or the reason why there is no number.

A page gets a real minus sign; a terminal and a text get a hyphen, which can be typed (``minus="-"``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
"""Stands on a page for a missing number."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number to be shown in a table or a sentence."""

    value: float | None
    """The number; None if it is undefined."""
    low: float | None = None
    """Lower end of the interval; None without an interval."""
    high: float | None = None
    form: str = ".3f"
    """Format specification: ``.3f``, ``+.3f`` for a difference, ``.1%`` for a share."""
    reason: str | None = None
    """Why the number is undefined, or has no interval."""
    measured: bool = False
    """Whether the number is a measurement, which has an interval if one can be computed."""

    @classmethod
    def of(cls, found: Any, form: str = ".3f", key: str = "value") -> Figure:
        """Make the figure of a record, or of a row of a result file. ``key`` names the field of the number; the other
        fields are ``low``, ``high`` and ``reason``, which a row may lack."""
        row = found if isinstance(found, Mapping) else {name: getattr(found, name) for name in (key, *_BESIDE)}
        return cls(row[key], row.get("low"), row.get("high"), form, row.get("reason"), measured=True)

    def span(self, minus: str = MINUS) -> tuple[str, str] | None:
        """Return the ends of the interval as text; None without an interval. Plain numbers get two decimals, unless the
        written value would then lie outside the written interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        form = self.form.replace(".3f", ".2f")
        if not float(format(self.low, ".2f")) <= float(format(self.value, ".3f")) <= float(format(self.high, ".2f")):
            form = self.form
        return _written(self.low, form, minus), _written(self.high, form, minus)

    @property
    def side(self) -> int | None:
        """1 if the whole interval is above zero, -1 if it is below, 0 if it holds zero; None without an interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return int(self.low > 0) - int(self.high < 0)

    def number(self, minus: str = MINUS) -> str:
        """Return the number without its interval, or ``undefined``."""
        return "undefined" if self.value is None else _written(self.value, self.form, minus)

    def __str__(self) -> str:
        """Return the number with its interval, for a terminal, e.g. ``0.812 [0.75, 0.86]``."""
        span = self.span("-")
        return self.number("-") + (f" [{span[0]}, {span[1]}]" if span else "")


_BESIDE = ("low", "high", "reason")


def number_text(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return ``0.812 [0.75, 0.86]``, or ``0.812`` without an interval, or ``undefined`` without a value."""
    return str(Figure(value, low, high))


def _written(value: float, form: str, minus: str) -> str:
    text = format(value, form)
    if minus != "-" and not any(each in "123456789" for each in text):
        text = text.lstrip("+-")
    return text.replace("-", minus)


def number(value: float | None, digits: int = 2) -> str:
    """Write a number; None becomes a dash."""
    return NONE if value is None else _written(value, f".{digits}f", MINUS)


def signed(value: float | None, digits: int = 2) -> str:
    """Write a difference with its sign; zero has no sign."""
    return NONE if value is None else _written(value, f"+.{digits}f", MINUS)


def interval(low: float | None, high: float | None, *, sign: bool = True) -> str:
    """Write an interval in words."""
    if low is None or high is None:
        return "no interval"
    form = signed if sign else number
    return f"{form(low)} to {form(high)}"


def money(dollars: float) -> str:
    """Write US dollars with two decimals; sums between 0 and 1 have four."""
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Write a share in percent. With decimals, a share below 1 is never rounded up to 100 %."""
    if share is None:
        return NONE
    most = 100 - 10**-digits if digits and share < 1 else 100 * share
    return f"{min(100 * share, most):.{digits if share < 1 else 0}f} %"


def coverage_text(share: float) -> str:
    """Write a share in percent, for a terminal. A share below 1 is never rounded up to 100 %."""
    return f"{min(share, 0.999) if share < 1 else share:.1%}"


def missing_share(coverage: float) -> str:
    """Write the share that is missing, in percent; it is never rounded to zero."""
    missing = 100 * (1 - coverage)
    return f"{missing:.1f} %" if missing >= 0.05 else "less than 0.1 %"


def p_value(value: float | None) -> str:
    """Write a p-value."""
    if value is None:
        return NONE
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def count(value: int, what: str) -> str:
    """Write a number of things, e.g. ``1 call`` or ``2 calls``."""
    return f"{value:,} {what}{'' if value == 1 else 's'}"


MOST_NAMES, MOST_LISTED = 3, 8
"""Maximum numbers of names: in the middle of a sentence, and in a list that is its point. A line of a terminal holds
no more."""


def names_text(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Write the first names, and the number of further ones."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def sentence(text: str) -> str:
    """Add a full stop to a text that does not end like a sentence."""
    plain = text.rstrip()
    return plain if plain.endswith((".", "!", "?", "…")) else f"{plain}."
