"""``askance label`` and ``ui``: pages of this machine on which people label outputs, look at runs and change a
judge."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from ..labelling.label_options import LabelOptions
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..prompts.errors import as_typed
from ..workbench.label import Labelled, is_run, label
from .command_options import GroupedCommand, common_options, config_option, need, settings, settings_options
from .output import echo_json
from .terminal import echo


@click.command(name="label", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("-o", "--output", help="Labelled data (JSONL); default: DATA-labelled.jsonl.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="RUN_OR_FILE",
    help="A run, a judge.yaml, or verdicts of `evaluate -o`: decides what is asked first, and its agreement is shown; "
    "may be given several times.",
)
@click.option("--checklist", help="Questions that can be answered one by one; a judge brings its own.")
@click.option("--open", "to_open", is_flag=True, help="Open the page in the browser.")
@common_options
@config_option
@settings_options(LabelOptions)
def label_command(
    config: Path | None, as_json: bool, quiet: bool, to_open: bool, judges: tuple[str, ...], **given: Any
) -> None:
    """Label the outputs in DATA, or those of a run of tune (DATA is its directory), on a page of this machine: pass,
    fail, answers to questions, comments.

    Every label is saved at once; Ctrl-C ends it, and the same command goes on. DATA is never written to: the labels go
    to DATA-labelled.jsonl, which align reads; those of a run stay in its directory, from which tune --from goes on.
    """
    options, inputs = settings(LabelOptions, config, given)
    need(inputs, "data")

    def ready(address: str, order: str) -> None:
        echo(f"Label at {address}", err=True)
        if not quiet:
            echo(f"Order: {order}. Ctrl-C ends it; everything is saved as you go.", err=True)
        if to_open:
            webbrowser.open(address)

    labelled = label(
        inputs["data"], inputs["output"], judge=judges, checklist=inputs["checklist"], ready=ready, **options
    )
    if as_json:
        echo_json(labelled.to_dict())
    else:
        run = str(inputs["data"]) if is_run(inputs["data"]) else None
        _tell(labelled, judges, inputs["checklist"], run)


def _tell(found: Labelled, judges: tuple[str, ...], checklist: str | None, of_run: str | None = None) -> None:
    """Print how much was labelled, and the next command. ``of_run`` is the run that wrote the outputs, if any."""
    if not found.labelled:
        echo("Nothing was labelled.")
        return
    note = f", {found.comments} with a comment" if found.comments else ""
    sides = ("in the better half", "in the worse half") if found.steps else ("pass", "fail")
    echo(
        f"{found.labelled} of {found.outputs} outputs are labelled by {found.rater}, {found.added} of them now: "
        f"{found.passed} {sides[0]}, {found.failed} {sides[1]}{note}. They are in {found.output}."
    )
    if found.agreement:
        echo(found.agreement)
    if not found.passed or not found.failed:
        echo("Both labels are needed: a judge learns from what passes and what fails.")
    echo(found.enough)
    if of_run is not None:
        echo(f"Next: askance tune --from {as_typed(of_run)} --run NEW_RUN")
        return
    run = next((each for each in judges if _is_of_run(Path(each))), None)
    scale = f" --human-scale {_ends(found)}" if found.steps else ""
    how = f"--from {as_typed(run)}" if run else f"--checklist {as_typed(checklist or 'CHECKLIST')} --model MODEL"
    echo(f"Next: askance align {as_typed(found.output)} {how}{scale} --run RUN")


def _ends(found: Labelled) -> str:
    """Return the worst and the best step as in the labelled data, where steps in words are numbered from 1."""
    numbers = found.steps[0].lstrip("-").isdigit()
    return f"{found.steps[0]} {found.steps[-1]}" if numbers else f"1 {len(found.steps)}"


def _is_of_run(judge: Path) -> bool:
    """Whether a judge is in the directory of its run, from which ``align`` can go on. A trained scorer has no run."""
    folder = judge if judge.is_dir() else judge.parent
    return (judge.is_dir() or judge.name == JUDGE_FILE) and RunDirectory(folder).config_file.is_file()


@click.command(name="ui")
@click.argument("directory", required=False, default=".", type=click.Path(path_type=Path))
@click.option(
    "--by", default="me", show_default=True, help="Your name, for your labels and the history of a judge that you save."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port of the pages; 0 takes a free one."
)
@click.option("--open", "to_open", is_flag=True, help="Open the pages in the browser.")
def ui_command(directory: Path, by: str, port: int, to_open: bool) -> None:
    """Open the workbench on the runs in DIRECTORY, the present one by default: look at runs, compare two, change a
    judge's checklist while its agreement with people follows, without a call, and label examples beside its verdicts.

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
