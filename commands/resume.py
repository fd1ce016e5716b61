"""``askance resume``."""

from __future__ import annotations

from typing import Any

import click

from ..optimizer.job import NOT_IN_FINGERPRINT
from ..optimizer.options import LoopOptions
from ..runs import resume
from .options import common_options, load_dotenv, settings_options
from .output import console
from .runs import finish


@click.command(name="resume")
@click.argument("run")
@common_options
@settings_options(LoopOptions, only=NOT_IN_FINGERPRINT)
def command(run: str, as_json: bool, quiet: bool, **given: Any) -> None:
    """Go on with the run in the directory RUN. No call that was paid for is repeated."""
    load_dotenv()
    with console(quiet) as watcher:
        done = resume(run, watcher, **{name: value for name, value in given.items() if value is not None})
    finish(done, as_json=as_json)
