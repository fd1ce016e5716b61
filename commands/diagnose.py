"""``askance diagnose``: say which questions of a checklist are worth asking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..agents.buying import NOTHING
from ..evaluation.diagnose import diagnose, prepare
from ..evaluation.options import LEAST_COVERAGE, DiagnoseOptions
from ..evaluation.progress import showing
from ..prompts.errors import InputError
from .options import GroupedCommand, buying_options, load_dotenv, need, settings, settings_options
from .output import check_output, echo_estimate, tell_judged


@click.command(name="diagnose", cls=GroupedCommand)
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", default=None, help="Judge, as provider/model; with --verdicts: whose verdicts to take.")
@click.option(
    "--prompt",
    default=None,
    help="Evaluator prompt; default: a neutral one; with --verdicts: the one they are made with.",
)
@click.option("--verdicts", default=None, help="Verdicts file of `askance evaluate -o`; then nothing is bought.")
@click.option("-o", "--output", default=None, help="Write the verdicts to this file: JSONL, or Parquet.")
@buying_options
@click.option(
    "--scores",
    type=click.Choice(["soft", "expected"]),
    default=None,
    help="Look at probabilities of yes beside the yes/no answers, or at the expected number on --score-scale. [default: soft]",
)
@settings_options(DiagnoseOptions, without=("weights", "scores"))
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Say which questions of a checklist are worth asking of DATA (JSONL or CSV).

    Yes-rates, questions that never vary or that run against people, pairs that are answered alike, how many
    independent questions there are in effect, answers that change when asked again, and coverage.
    """
    load_dotenv()
    options, inputs = settings(DiagnoseOptions, config, given)
    need(inputs, "data", "checklist")
    if inputs["model"] is None and inputs["verdicts"] is None:
        raise InputError("--model or --verdicts is needed, on the command line or in the --config file.")
    output = inputs.pop("output")
    check_output(output, writes="verdicts")
    if dry_run and inputs["verdicts"] is None:
        inputs.pop("verdicts")
        echo_estimate(prepare(**inputs, options=options).estimate(), as_json=as_json)
        return
    with showing(not quiet) as watcher:
        found = diagnose(watcher=watcher, **inputs, **options)
    if dry_run:
        echo_estimate(NOTHING, as_json=as_json)
        return
    least = float(options.get("min_coverage", LEAST_COVERAGE))
    tell_judged(found, output, as_json=as_json, quiet=quiet, least=least)
