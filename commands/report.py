"""``askance report``: write the report of a run or another result as one HTML file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from ..evaluation.options import ScoreOptions
from ..prompts.errors import InputError
from ..report.any_result import kind_of, write_report_of
from ..report.verdicts_page import Beside
from ..settings import flag, parse_options
from .command_options import config_option, settings, settings_options
from .output import check_apart, check_output
from .terminal import echo

logger = logging.getLogger(__name__)
READING = ("field", "human_scale", "labels", "label_scale")
"""Settings for reading data."""


@click.command(name="report")
@click.argument("path", metavar="PATH")
@click.option("-o", "--output", help="File to write; default: beside PATH, in a run report.html.")
@click.option("--data", help="Of verdicts: the examples, for their texts and human scores.")
@click.option("--checklist", help="Of verdicts: the checklist, for its texts and dimensions (criteria).")
@click.option("--model", help="Of verdicts by several models: whose.")
@config_option
@settings_options(ScoreOptions, only=READING)
def command(path: str, output: str | None, config: Path | None, **given: Any) -> None:
    """Write the report of PATH as one HTML file that opens offline.

    PATH is the directory of a finished run, a scorer, or a file that evaluate, diagnose, weigh, select or compare
    wrote.
    """
    named = [flag(name) for name, value in given.items() if value not in (None, ())]
    model = given.pop("model")
    options, inputs = settings(ScoreOptions, config, given)
    check_output(output)
    check_apart(output, {"PATH": path, "config": config, **{name: inputs[name] for name in ("data", "checklist")}})
    if output and Path(output).is_file() and Path(output).suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{output}: this file is there and is no page. Name another with -o, or one that ends in .html."
        )
    reading = {name: options[name] for name in READING if name in options}
    beside = Beside(inputs["data"], inputs["checklist"], model, parse_options(ScoreOptions, reading))
    echo(str(write_report_of(path, output, beside)))
    if named and (kind := kind_of(path)) != "verdicts":
        logger.warning(
            "%s: not used, as this is no file of verdicts but %s; evaluate -o verdicts.jsonl writes one, whose report "
            "shows the examples' texts.",
            " ".join(named),
            kind,
        )
