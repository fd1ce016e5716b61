"""``askance ui``: the workbench, pages of this machine about runs and their judges."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from .terminal import echo


@click.command(name="ui")
@click.argument("directory", required=False, default=".", type=click.Path(path_type=Path))
@click.option("--by", default="me", show_default=True, help="Your name, for the history of a judge that you save.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port of the pages; 0 takes a free one."
)
@click.option("--open", "to_open", is_flag=True, help="Open the pages in the browser.")
def command(directory: Path, by: str, port: int, to_open: bool) -> None:
    """Open the workbench on the runs in DIRECTORY, the present one by default: look at runs, compare two, and change a
    judge's checklist while its agreement with people follows, without a call.

    It is on this machine alone, and asks nobody else for anything. Ctrl-C ends it.
    """
    from ..workbench.workbench import workbench

    def ready(address: str) -> None:
        echo(f"The workbench is at {address}")
        echo("Ctrl-C ends it; everything is saved as you go.", err=True)
        if to_open:
            webbrowser.open(address)

    if not by.strip() or not by.isprintable():
        raise click.UsageError("--by: a name in plain signs is needed.")
    workbench(directory, by=by.strip(), port=port, ready=ready)
