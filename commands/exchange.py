"""``askance import``, ``export`` and ``mcp``: examples from another tool's traces; a judge as a file for another tool;
a server for coding agents."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..bridges.exports import TOOLS, ExportedJudge, export_judge
from ..bridges.imported_table import problem_of, rows_of_table
from ..bridges.trace_examples import FORMATS, are_traces, import_traces
from ..evaluation.options import ScoreOptions
from ..prompts.errors import AskanceError, InputError
from ..prompts.field_map import FIELDS, RATER, check_field_map, parse_field_map
from ..prompts.human_feedback import parse_label_scale, parse_labels
from ..prompts.mapping.published import FORMS
from ..prompts.mapping.table import Table, look_at
from ..prompts.preferences import KNOWN_FIELDS
from ..prompts.text_files import write_whole
from ..settings import load_config
from .command_options import Function, common_options, config_option, load_dotenv, settings_options
from .output import check_apart, check_output, echo_json
from .terminal import echo

ANY_FIELDS = tuple(dict.fromkeys([*FIELDS, RATER, *KNOWN_FIELDS]))
"""Fields of examples and of preference pairs."""


def _mapping_options(command: Function) -> Function:
    """Add the options for reading a file, under the names that every command has for them."""
    field = click.option(
        "--field",
        multiple=True,
        metavar="OURS=PATH",
        help="Take a field from a column, or a part of it or of a span: output=output.answer, "
        "human.overall=metadata.rating.",
    )
    return settings_options(ScoreOptions, only=("labels", "label_scale", "human_scale"))(field(command))


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    type=click.Choice(list(dict.fromkeys([*FORMATS, *(each.name for each in FORMS)]))),
    help="The tool or data set; default: found out.",
)
@click.option("--span", metavar="NAME", help="Take spans of this name instead of each trace's root.")
@click.option(
    "--score",
    "scores",
    multiple=True,
    metavar="NAME",
    help="A score of traces that people gave, where the file does not say so; may be given several times.",
)
@_mapping_options
@click.option("--yes", is_flag=True, help="Take the mapping that is proposed without asking.")
@click.option("-o", "--output", help="Examples file (JSONL); default: standard output.")
@click.option("--quiet", is_flag=True, help="Do not say what was found and left out.")
def import_command(
    files: tuple[Path, ...],
    output: str | None,
    quiet: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Make examples of any file: a table, a data set or a tool's export, traces included.

    Says what is in the file and proposes the options by which any command reads it. Asks at a terminal; --yes takes
    the proposal. Of traces (Langfuse, LangSmith, Phoenix, MLflow, OpenAI's logs) people's scores and comments come
    along, from the same FILE or another.
    """
    check_output(output, writes="examples")
    check_apart(output, {"FILE": files})
    names = ("source", "span", "scores")
    trace_settings, mapping = {name: given.pop(name) for name in names}, _changes(**given)
    if are_traces(files, trace_settings["source"]):
        traces = import_traces(files, fields=mapping["fields"], **trace_settings)
        lines, notes = iter([traces.to_jsonl()]), traces.notes
    else:
        lines, notes = _of_table(files, trace_settings, mapping, yes=yes, quiet=quiet), ()
    if output is None:
        for line in lines:
            click.echo(line.encode("utf-8", "backslashreplace"), nl=False)  # as write_whole does
    else:
        write_whole(output, lines)
    if not quiet:
        for note in notes:
            echo(note, err=True)
        if output is not None:
            echo(f"The examples are in {output}.", err=True)


def _of_table(
    files: Sequence[Path], given: Mapping[str, Any], mapping: Mapping[str, Any], *, yes: bool, quiet: bool
) -> Iterator[str]:
    """Return the examples in a table, read with the mapping that a person agreed to. Raises InputError if the table
    cannot be read so, or if nobody agreed."""
    for name in ("span", "scores"):
        if given[name]:
            raise InputError(f"--{name.removesuffix('s')}: {files[0]} holds no traces; --field takes a column.")
    if len(files) > 1:
        raise InputError(f"{files[1]}: several files are read together where they are traces; give one table.")
    table = look_at(files[0], given["source"]).changed(**mapping)
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if asks:
        table = _agreed(table)
    elif not quiet or not yes:
        _show(table)
    if not asks and (problem := problem_of(table)):
        raise InputError(problem)
    if not yes and not asks:
        raise InputError(
            "Nothing was written, as nobody is at the terminal to agree: --yes takes the mapping, and --field, "
            "--labels and --label-scale change it."
        )
    return rows_of_table(table)


def _show(table: Table) -> None:
    """Print the contents of a file, and how it would be read."""
    for line in (*table.described(), *([] if table.proposal.lacks else [f"Read by: {table.line()}"])):
        echo(line, err=True)


def _agreed(table: Table) -> Table:
    """Ask the person at the terminal for changes of the mapping, and return the table with the agreed mapping."""
    while True:
        _show(table)
        if problem := problem_of(table):
            echo(f"It is not read so: {problem}", err=True)
        answer = click.prompt(_QUESTION, default="n" if problem else "y", err=True).strip()
        if answer.casefold() in ("n", "no"):
            raise AskanceError("Nothing was written.")
        if answer.casefold() in ("y", "yes"):
            return table
        try:
            typed = _edit.make_context("", shlex.split(answer)).params
            typed["field"] += typed.pop("changes")
            table = table.changed(**_changes(**typed))
        except (InputError, click.UsageError, ValueError) as error:
            echo(error.format_message() if isinstance(error, click.UsageError) else error, err=True)


_QUESTION = "Write the examples? y, n, or changes such as output=COLUMN comment= --labels good=WORD,bad=WORD"


@click.command(context_settings={"help_option_names": []})
@click.argument("changes", nargs=-1)
@_mapping_options
def _edit(**_: Any) -> None:
    """Take changes of a mapping as typed arguments."""


def _changes(
    field: Sequence[str], labels: Sequence[str], label_scale: str | None, human_scale: tuple[float, float] | None
) -> dict[str, Any]:
    """Return the settings that the options give; ``name=`` removes a field."""
    removed_fields = {each.removesuffix("=").strip(): () for each in field if each.endswith("=")}
    fields = parse_field_map(each for each in field if not each.endswith("="))
    check_field_map(fields, ANY_FIELDS)
    if human_scale and human_scale[0] == human_scale[1]:
        raise InputError("human_scale: the worst and the best score must differ.")
    return {
        "fields": fields | removed_fields,
        "labels": parse_labels(labels),
        "label_scale": parse_label_scale(label_scale),
        "human_scale": human_scale,
    }


@click.command(name="export")
@click.argument("judge_file", metavar="RUN")
@click.option("--to", required=True, type=click.Choice(TOOLS), help="The tool.")
@click.option("--questions-only", is_flag=True, help="Leave out the judge's measures, which no other tool computes.")
@click.option("-o", "--output", help="File to write; default: standard output.")
@common_options
def export_command(
    judge_file: str, to: str, questions_only: bool, output: str | None, as_json: bool, quiet: bool
) -> None:
    """Write the judge of the run RUN (or a judge.yaml) as a file that another tool judges with, without askance.

    It asks what askance asks and reads, calibrates and weighs the answers alike. No key and no address is in it.
    """
    check_output(output)
    check_apart(output, {"RUN": judge_file})
    made = export_judge(judge_file, to, questions_only=questions_only)
    _check_suffix(output, made)
    if made.beside and not output and not as_json:
        raise InputError(
            f"This export is several files ({', '.join([made.name, *made.beside])}): name the first with -o."
        )
    if output:
        for name, text in {Path(output).name: made.text, **made.beside}.items():
            write_whole(Path(output).parent / name, text)
    if as_json:
        echo_json({"file": output, **vars(made)})
    elif not output:
        click.echo(made.text, nl=False)
    if not quiet:
        for notice in (*made.notices, *([f"{output} is written. {_use(made, Path(output))}"] if output else [])):
            echo(notice, err=True)


def _use(made: ExportedJudge, file: Path) -> str:
    """Return instructions for the file. If Python cannot import it under its name, they propose a name."""
    usual = Path(made.name).stem
    use = made.use.replace(made.name, file.name)
    instructions = use.replace(f"from {usual} ", f"from {file.stem} ")
    if instructions == use or file.stem.isidentifier():
        return instructions
    as_module = re.sub(r"\W", "_", file.stem)
    name = as_module if as_module.isidentifier() else usual
    return f"{instructions} Python cannot import it under this name: call it {name}.py for that."


def _check_suffix(output: str | None, made: ExportedJudge) -> None:
    """Refuse a name without ``.py`` for a Python file, which the tool knows by its suffix. Raises InputError."""
    suffix = Path(made.name).suffix
    # The tool never reads a pipe or a device, so these may have any name.
    if output is None or suffix != ".py" or (os.path.exists(output) and not os.path.isfile(output)):
        return
    if Path(output).suffix != suffix:
        raise InputError(
            f"{output}: this is a file of Python, which the tool knows by its name; name it {suffix}, as {made.name}."
        )


@click.command(name="mcp")
@click.option("--call-budget", type=click.IntRange(min=1), help="Calls that all tools together may buy.")
@click.option("--cost-budget", type=click.FloatRange(min=0, min_open=True), help="US dollars that they may spend.")
@click.option("--runs", type=click.Path(file_okay=False), help="Folder in which align may make runs.")
@config_option
def mcp_command(call_budget: int | None, cost_budget: float | None, runs: str | None, config: Path | None) -> None:
    """Serve coding agents over the Model Context Protocol, on standard input and output.

    Without a budget no tool buys anything, and without --runs none writes a file. The settings file's models, endpoint
    and other settings hold for every tool.
    """
    load_dotenv()
    from ..bridges.coding.mcp_server import Allowance, make_server

    settings = {} if config is None else load_config(config)
    allowed = Allowance(call_budget, cost_budget, None if runs is None else Path(runs), settings)
    make_server(allowed).run("stdio")
