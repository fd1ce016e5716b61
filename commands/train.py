"""``askance train``: train a scorer on one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..models.progress import showing
from ..prompts.errors import as_typed
from ..training.options import TrainOptions
from ..training.train import DEFAULT_BASE, prepare
from .command_options import (
    GroupedCommand,
    common_options,
    config_option,
    load_dotenv,
    need,
    settings,
    settings_options,
    store_options,
)
from .output import echo_json, show
from .terminal import echo


@click.command(name="train", cls=GroupedCommand)
@click.argument("data", nargs=-1, required=False)
@click.option("--checklist", help="Checklist whose questions the scorer is to answer.")
@click.option("--verdicts", help="Verdicts of a judge on DATA, as `askance evaluate -o` writes them.")
@click.option("--preferences", help="Pairs of outputs of which people preferred one.")
@click.option("--judge", "judge_run", help="A run whose test examples are never trained on; it brings its checklist.")
@click.option(
    "--base",
    help="What is trained: minilm, an embedded model, a GGUF file, a folder, or a model on the hub. [default: minilm]",
)
@click.option("--prompt", help="Judge's prompt that a causal base is to answer. [default: evaluate's own]")
@click.option("--writer", help="Model that writes outputs to tell apart, as provider/model (--contrasts).")
@click.option(
    "--judge-model", help="Model that sees whether they came out as meant. [default: the teacher, else the writer]"
)
@click.option("-o", "--output", help="Folder of the scorer.")
@config_option
@store_options
@common_options
@settings_options(TrainOptions)
def command(config: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Train a small model on DATA that answers the checklist's questions with P(yes) in milliseconds.

    It learns from people's scores in DATA, a judge's verdicts and preference pairs. The folder is then a judge:
    `askance evaluate DATA --judge FOLDER`; or a model, with another checklist: `--checklist C --model FOLDER`. The
    same command goes on with a training that was broken off.
    """
    load_dotenv()
    options, inputs = settings(TrainOptions, config, given)
    inputs |= {"base": inputs["base"] or DEFAULT_BASE, "judge": inputs.pop("judge_run")}
    need(inputs, "data", "output", *(() if inputs["judge"] else ("checklist",)))
    with showing(not quiet) as watcher:
        job = prepare(**inputs, options=options, watcher=watcher)
        training = job.run(watcher)
    if as_json:
        echo_json(training.to_dict())
    else:
        show(training)
    if not quiet:
        echo(
            f"The scorer is in {job.output}; use it with --judge {as_typed(job.output)} (its questions come along) or "
            "--model.",
            err=True,
        )
