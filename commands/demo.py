"""``askance demo``: see it work on the embedded model, with data that comes along."""

from __future__ import annotations

import time
from importlib.resources import as_file, files

import click

from ..models.embedded_models import RegisteredModel, resolve
from ..optimizer.modes.migrate import prepare
from ..prompts.errors import InputError
from ..runs import run_and_report
from .models import fetch
from .output import console, hush
from .runs import finish

SETTINGS = {"update": "edits", "limit": 48, "max_iterations": 1, "max_notes": 4, "split": (0.34, 0.33, 0.33)}
"""Less than the defaults and part of the data, so that two cores are done in some ten minutes."""


@click.command(name="demo")
@click.option("--model", default="qwen2.5-coder-1.5b-instruct", show_default=True, help="Embedded model.")
@click.option("--run", default="demo-run", show_default=True, help="Directory of the run.")
@click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only the result.")
def command(model: str, run: str, quiet: bool) -> None:
    """Migrate a judge's prompt on the embedded model, with data that comes with askance.

    The source judge has a careful, strict prompt, the target a plain one. The run shows what askance learns from
    their disagreements and whether held-out human scores confirm it. Nothing leaves this machine.
    """
    wanted = resolve(model)
    if not isinstance(wanted, RegisteredModel):
        raise InputError("The demo runs on a registered model; see: askance models")
    began = time.monotonic()
    fetch(wanted)
    fetched = time.monotonic() - began
    with as_file(files("askance.prompts") / "demo") as folder, console(quiet) as watcher:
        name = f"local/{wanted.name}"
        job = prepare(
            folder / "examples.jsonl",
            folder / "checklist.yaml",
            name,
            name,
            folder / "prompt.md",
            folder / "source_prompt.md",
            SETTINGS,
        )
        watcher.say(
            f"{len(job.examples)} summaries with human-style scores. The source judges with a strict prompt, the "
            f"target with a plain one; both are {name}."
        )
        done = run_and_report(job, run, watcher)
        took = watcher.took()
    finish(done, as_json=False)
    click.echo("\nHow long each part took:")
    for text, seconds in [("fetching the model", fetched), *took.items()]:
        click.echo(f"  {seconds:6.1f} s  {text}")
    click.echo(f"\nThe report: {run}/report.html    Again, without a call: the same command.")
