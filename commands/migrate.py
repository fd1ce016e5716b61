"""``askance migrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..optimizer.modes.migrate import prepare
from ..optimizer.options import MigrateOptions
from .options import common_options, config_option, settings_options
from .runs import run_mode


@click.command(name="migrate")
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--source", default=None, help="The judge to be matched, as provider/model.")
@click.option("--target", default=None, help="The judge whose prompt is improved.")
@click.option("--prompt", default=None, help="The target's starting prompt; default: a neutral one.")
@click.option("--source-prompt", default=None, help="The source's prompt; default: the same.")
@click.option("--run", default=None, help="Directory of the run; the same command on it goes on where it stopped.")
@click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")
@config_option
@common_options
@settings_options(MigrateOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Improve the target's evaluator prompt on DATA until it judges like the source.

    An edit is kept only if held-out correlation says so: with the human scores in DATA, else with the source.
    """
    inputs = ("data", "checklist", "source", "target", "prompt", "source_prompt")
    needed = ("data", "checklist", "source", "target")
    run_mode(MigrateOptions, prepare, inputs, needed, config, given, as_json=as_json, quiet=quiet, dry_run=dry_run)
