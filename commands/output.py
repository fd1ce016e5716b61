"""Writing results: JSON on standard output, files whole or not at all."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from ..prompts.errors import AskanceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..agents.buying import Estimate


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def echo_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what judging would take."""
    if as_json:
        echo_json(
            {"verdicts": estimate.verdicts, "calls": estimate.calls, "stored": estimate.stored}
            | {"tokens": estimate.tokens}
        )
        return
    click.echo(
        f"{estimate.verdicts} verdicts: {estimate.calls} calls to buy, {estimate.stored} answers already there; "
        f"about {estimate.tokens:,} tokens. Nothing was bought."
    )


@contextmanager
def atomic_text(path: Path) -> Iterator[TextIO]:
    """Open a text file that takes its place when it is complete; before that, what was there stays.

    Raises:
        AskanceError: It cannot be written.
    """
    partial = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise AskanceError(f"{path}: cannot be written ({error.strerror}).") from None
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
