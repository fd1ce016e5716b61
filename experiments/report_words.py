"""Numbers as a report writes them: a true minus sign, a fixed number of digits, no false precision."""

from __future__ import annotations

from datetime import datetime

NONE = "\N{EN DASH}"
"""Stands where there is nothing to write."""


def number(value: float | None, digits: int = 2) -> str:
    """A number with a minus sign that is one."""
    if value is None:
        return NONE
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "\N{MINUS SIGN}")


def signed(value: float | None, digits: int = 2) -> str:
    """A difference, with its sign."""
    if value is None:
        return NONE
    text = number(value, digits)
    return f"+{text}" if float(text.replace("\N{MINUS SIGN}", "-")) > 0 else text


def interval(low: float | None, high: float | None, *, sign: bool = True) -> str:
    """An interval in words."""
    if low is None or high is None:
        return "no interval"
    form = signed if sign else number
    return f"{form(low)} to {form(high)}"


def money(dollars: float) -> str:
    """US dollars; small sums keep their digits."""
    return f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def percent(share: float | None) -> str:
    """A share in percent."""
    return NONE if share is None else f"{100 * share:.0f} %"


def p_value(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return NONE
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def duration(first: str, last: str) -> str | None:
    """The time between two instants in ISO format; None where one is unreadable."""
    try:
        seconds = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    except (ValueError, TypeError):
        return None
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
