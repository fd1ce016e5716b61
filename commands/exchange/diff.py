"""``askance diff``: what changed from one run to another."""

from __future__ import annotations

import click

from ...evaluation.compare.run_difference import run_difference
from ..options import common_options
from ..output import echo_json, show


@click.command(name="diff")
@click.argument("before", metavar="RUN")
@click.argument("after", metavar="[RUN]", required=False, default=None)
@click.option("--by", default=None, metavar="FIELD", help="A metadata field whose values are compared one by one.")
@click.option(
    "--patch", "only_patch", is_flag=True, help="Nothing but the change of the prompt, for the program patch."
)
@common_options
def command(before: str, after: str | None, by: str | None, only_patch: bool, as_json: bool, quiet: bool) -> None:
    """Compare what two finished runs accepted, or a run's start with what it accepted: prompt, questions, scores.

    Nothing is asked of a model: scores are compared on the examples that were test examples of both.
    """
    if only_patch and as_json:
        raise click.UsageError("--patch and --json do not go together.")
    found = run_difference(before, after, by=by)
    if only_patch:
        click.echo(found.patch, nl=False)
    elif as_json:
        echo_json(found.to_dict())
    elif not quiet:
        show(found)
