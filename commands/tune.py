"""``askance tune``."""

from __future__ import annotations

from typing import Any

import click

from ..optimizer.modes.tune import prepare
from ..optimizer.options import TuneOptions
from .runs import run_mode, run_options


@click.command(name="tune")
@click.argument("data", required=False, default=None)
@click.option("--generator", default=None, help="The model whose prompt is improved, as provider/model.")
@click.option("--prompt", default=None, help="Its starting prompt; without placeholders it is the system message.")
@click.option("--judge", default=None, help="The model that answers the questions about the outputs.")
@click.option("--checklist", default=None, help="Questions about every output (YAML or JSON).")
@click.option("--judge-prompt", default=None, help="The judge's prompt, which stays as it is; default: a neutral one.")
@click.option("--checker", default=None, help="module:function that says of an example with its output what passes.")
@run_options(TuneOptions)
def command(**given: Any) -> None:
    """Improve a generator's prompt on DATA until nothing fails.

    What it writes is looked at by a judge with a checklist, by your own --checker, or by both. An edit is kept only if
    the mean score of held-out examples says so.
    """
    run_mode(TuneOptions, prepare, ("data", "generator", "prompt"), **given)
