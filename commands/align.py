"""``askance align``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..optimizer.modes.align import prepare
from ..optimizer.options import AlignOptions
from .options import common_options, config_option, settings_options
from .runs import run_mode


@click.command(name="align")
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", default=None, help="The judge whose prompt is improved, as provider/model.")
@click.option("--prompt", default=None, help="Its starting prompt; default: a neutral one.")
@click.option("--run", default=None, help="Directory of the run; the same command on it goes on where it stopped.")
@click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")
@config_option
@common_options
@settings_options(AlignOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Improve a judge's prompt on DATA until it scores like people.

    An edit is kept only if held-out correlation with the human scores in DATA says so.
    """
    inputs = ("data", "checklist", "model", "prompt")
    needed = ("data", "checklist", "model")
    run_mode(AlignOptions, prepare, inputs, needed, config, given, as_json=as_json, quiet=quiet, dry_run=dry_run)
