"""``askance align``."""

from __future__ import annotations

from typing import Any

import click

from ..optimizer.modes.align import prepare
from ..optimizer.options import AlignOptions
from .runs import run_mode, run_options


@click.command(name="align")
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", default=None, help="The judge whose prompt is improved, as provider/model.")
@click.option("--prompt", default=None, help="Its starting prompt; default: a neutral one.")
@run_options(AlignOptions)
def command(**given: Any) -> None:
    """Improve a judge's prompt on DATA until it scores like people.

    An edit is kept only if held-out correlation with the human scores in DATA says so.
    """
    run_mode(AlignOptions, prepare, ("data", "checklist", "model"), **given)
