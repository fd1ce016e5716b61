"""``askance questions``: write a checklist for a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..evaluation.options import WriterOptions
from ..evaluation.progress import showing
from ..evaluation.write_questions import write_questions
from ..prompts.checklist import dump_checklist
from ..prompts.text_files import write_whole
from .options import (
    GroupedCommand,
    config_option,
    dimensions_option,
    load_dotenv,
    need,
    read_task,
    settings,
    settings_options,
    store_options,
)
from .output import check_apart, check_output, hush
from .terminal import echo


@click.command(name="questions", cls=GroupedCommand)
@click.argument("task", type=click.Path(path_type=Path))
@click.option("--model", default=None, help="The question writer, as provider/model.")
@click.option("--writer", default=None, help="The same as --model.")
@click.option("-o", "--output", default=None, help="Checklist file; default: standard output.")
@dimensions_option
@store_options
@click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only errors.")
@config_option
@settings_options(WriterOptions)
def command(
    task: Path,
    writer: str | None,
    quiet: bool,
    config: Path | None,
    **given: Any,
) -> None:
    """Write a checklist for the task described in the file TASK, ready to be edited by hand."""
    load_dotenv()
    if given["model"] and writer and given["model"] != writer:
        raise click.UsageError(f"--model {given['model']} and --writer {writer} are the same option; give one of them.")
    options, inputs = settings(WriterOptions, config, given | {"model": given["model"] or writer})
    need(inputs, "model")
    check_output(inputs["output"])
    check_apart(inputs["output"], {"TASK": task})
    text = read_task(task)
    with showing(not quiet) as watcher:
        checklist = write_questions(
            text,
            model=inputs["model"],
            dimensions=inputs["dimensions"] or (),
            watcher=watcher,
            **options,
        )
    written = dump_checklist(checklist)
    if inputs["output"]:
        write_whole(inputs["output"], written)
        if not quiet:
            echo(f"{len(checklist.questions)} questions are in {inputs['output']}.", err=True)
    else:
        echo(written, nl=False)
