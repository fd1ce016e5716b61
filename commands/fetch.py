"""Fetching an embedded model with a bar."""

from __future__ import annotations

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
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

    click.echo(f"Fetching {model.name}, {model.bytes / 1e9:.1f} GB ({model.licence}), once.", err=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        return pull(model, progress=progress)
