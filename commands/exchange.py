"""``askance import`` and ``export``: examples from another tool's traces; a judge as a file for another tool."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from ..bridges.exports import TOOLS, ExportedJudge, export_judge
from ..bridges.trace_examples import FORMATS, import_traces
from ..prompts.errors import InputError
from ..prompts.field_map import parse_field_map
from ..prompts.text_files import write_whole
from .command_options import common_options
from .output import check_apart, check_output, echo_json
from .terminal import echo


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
def import_command(
    files: tuple[Path, ...], field: tuple[str, ...], output: str | None, quiet: bool, **given: Any
) -> None:
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


@click.command(name="export")
@click.argument("judge_file", metavar="RUN")
@click.option("--to", required=True, type=click.Choice(TOOLS), help="The tool.")
@click.option("-o", "--output", default=None, help="File to write; default: standard output.")
@common_options
def export_command(judge_file: str, to: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Write the judge of the run RUN (or a judge.yaml) as a file that another tool judges with, without askance.

    It asks what askance asks and reads, calibrates and weighs the answers alike. No key and no address is in it.
    """
    check_output(output)
    check_apart(output, {"RUN": judge_file})
    made = export_judge(judge_file, to)
    _check_suffix(output, made)
    if output:
        write_whole(output, made.text)
    if as_json:
        echo_json({"file": output, "name": made.name, "use": made.use, "notices": made.notices, "text": made.text})
    elif not output:
        click.echo(made.text, nl=False)
    if not quiet:
        for each in (*made.notices, *([f"{output} is written. {_use(made, Path(output))}"] if output else [])):
            echo(each, err=True)


def _use(made: ExportedJudge, file: Path) -> str:
    """How the file is used; where that is by importing it and its name does not allow it, what to call it."""
    usual = Path(made.name).stem
    use = made.use.replace(made.name, file.name)
    told = use.replace(f"from {usual} ", f"from {file.stem} ")
    if told == use or file.stem.isidentifier():
        return told
    as_module = re.sub(r"\W", "_", file.stem)
    name = as_module if as_module.isidentifier() else usual
    return f"{told} Python cannot import it under this name: call it {name}.py for that."


def _check_suffix(output: str | None, made: ExportedJudge) -> None:
    """See that the tool knows the file for one of Python; a pipe or a device is never read by it.

    Raises:
        InputError: It would not.
    """
    suffix = Path(made.name).suffix
    if output is None or suffix != ".py" or (os.path.exists(output) and not os.path.isfile(output)):
        return
    if Path(output).suffix != suffix:
        raise InputError(
            f"{output}: this is a file of Python, which the tool knows by its name; name it {suffix}, as {made.name}."
        )
