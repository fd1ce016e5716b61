"""Fetching an embedded model with a bar."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..models.download import pull, pulled

if TYPE_CHECKING:
    from pathlib import Path

    from ..models.registry import RegisteredModel


def fetch(model: RegisteredModel) -> Path:
    """The path of the model's verified file; fetched with a progress bar on standard error if it is not there.

    Raises:
        AskanceError: No source gave the registered bytes, or the disk is full.
    """
    path = pulled(model)
    if path is not None:
        return path
    if not sys.stderr.isatty():
        return pull(model, progress=_Lines())
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(model.name, total=model.bytes)

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        return pull(model, progress=progress)


class _Lines:
    """One line for each tenth, for logs."""

    def __init__(self) -> None:
        self._last: tuple[bool, int] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Write a line where the next tenth is reached."""
        step = (what.endswith("joining"), 10 * done // max(total, 1))
        if step != self._last:
            self._last = step
            click.echo(f"{what}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", err=True)
