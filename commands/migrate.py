"""``askance migrate``."""

from __future__ import annotations

from typing import Any

import click

from ..optimizer.modes.migrate import prepare
from ..optimizer.options import MigrateOptions
from .runs import run_mode, run_options


@click.command(name="migrate")
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--source", default=None, help="The judge to be matched, as provider/model.")
@click.option("--target", default=None, help="The judge whose prompt is improved.")
@click.option("--prompt", default=None, help="The target's starting prompt; default: a neutral one.")
@click.option("--source-prompt", default=None, help="The source's prompt; default: the same.")
@run_options(MigrateOptions)
def command(**given: Any) -> None:
    """Improve the target's evaluator prompt on DATA until it judges like the source.

    An edit is kept only if held-out correlation says so: with the human scores in DATA, else with the source.
    """
    run_mode(MigrateOptions, prepare, ("data", "checklist", "source", "target"), **given)
