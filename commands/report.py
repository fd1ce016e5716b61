"""``askance report``."""

from __future__ import annotations

import click

from ..experiments.report import write_report


@click.command(name="report")
@click.argument("run")
@click.option("-o", "--output", default=None, help="File to write; default: report.html in the run's directory.")
def command(run: str, output: str | None) -> None:
    """Write the report of the finished run in the directory RUN as one HTML file that opens offline."""
    click.echo(str(write_report(run, output)))
