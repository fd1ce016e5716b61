"""Output to a terminal. Texts of files and models are never treated as markup or as control sequences."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from ..prompts.text import visible

if TYPE_CHECKING:
    from rich.console import Console


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Write a line, with control characters made visible."""
    click.echo(visible(str(text)), err=err, nl=nl)


@cache
def _console_class() -> type[Console]:
    from rich.console import Console

    class TextConsole(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            shown = [visible(each) if isinstance(each, str) else each for each in objects]
            super().print(*shown, **{"markup": False, **how})

    return TextConsole


def console() -> Console:
    """Return a console whose ``print`` ignores markup in texts and makes control characters visible."""
    return _console_class()(highlight=False)


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def log_visibly() -> None:
    """Make control characters visible in warnings that no other handler writes."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Visible())
