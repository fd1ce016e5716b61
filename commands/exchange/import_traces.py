"""``askance import``: examples from traces that another tool exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...bridges.traces.import_traces import import_traces
from ...bridges.traces.trace_files import FORMATS
from ...prompts.field_map import parse_field_map
from ...prompts.text_files import write_whole
from ..output import check_apart, check_output
from ..terminal import echo


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--from", "source", type=click.Choice(list(FORMATS)), default=None, help="The tool; default: found out.")
@click.option("--span", default=None, metavar="NAME", help="Take spans of this name instead of each trace's root.")
@click.option(
    "--score",
    "scores",
    multiple=True,
    metavar="NAME",
    help="A score that people gave, where the file does not say so; may be given several times.",
)
@click.option(
    "--field",
    multiple=True,
    metavar="OURS=PATH",
    help="Take a field from a part of the span, e.g. output=output.answer or human.overall=metadata.rating.",
)
@click.option("-o", "--output", default=None, help="Examples file (JSONL); default: standard output.")
@click.option("--quiet", is_flag=True, help="Do not say what was left out.")
def command(files: tuple[Path, ...], field: tuple[str, ...], output: str | None, quiet: bool, **given: Any) -> None:
    """Make examples of traces that Langfuse, LangSmith, Phoenix (OpenInference), MLflow or OpenAI's logs exported.

    People's scores and comments come along, from the same FILE or another. What was left out is said.
    """
    check_output(output, writes="examples")
    check_apart(output, {"FILE": files})
    found = import_traces(files, fields=parse_field_map(field), **given)
    if output is None:
        click.echo(found.to_jsonl().encode("utf-8", "backslashreplace"), nl=False)  # as write_whole does
    else:
        write_whole(output, found.to_jsonl())
    if not quiet:
        for note in found.notes:
            echo(note, err=True)
        if output is not None:
            echo(f"The examples are in {output}.", err=True)
