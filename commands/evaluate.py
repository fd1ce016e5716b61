"""``askance evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..evaluation.evaluate import estimate_evaluation, evaluate
from ..evaluation.options import EvaluateOptions
from ..prompts.verdicts import write_verdicts
from .options import common_options, config_option, load_dotenv, need, settings, settings_options
from .output import atomic_text, check_coverage, console, echo_estimate, echo_json
from .tables import show


@click.command(name="evaluate")
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", default=None, help="Judge, as provider/model.")
@click.option("--prompt", default=None, help="Evaluator prompt; default: a neutral one.")
@click.option("-o", "--output", default=None, help="Write the verdicts to this JSONL file.")
@click.option("--no-cache", is_flag=True, help="Reuse no earlier answer and keep none.")
@click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")
@config_option
@common_options
@settings_options(EvaluateOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, no_cache: bool, **given: Any) -> None:
    """Judge DATA (JSONL or CSV) with a checklist: scores, coverage and, with human scores, correlations."""
    load_dotenv()
    other = {name: given.pop(name) for name in ("data", "checklist", "model", "prompt", "output")}
    options, inputs = settings(EvaluateOptions, config, given, other)
    need(inputs, "data", "checklist", "model")
    output = inputs.pop("output")
    data = inputs.pop("data")
    if dry_run:
        echo_estimate(estimate_evaluation(data, no_cache=no_cache, **inputs, **options), as_json=as_json)
        if not quiet and any(options.get(name) is not None for name in ("stop_within", "pass_mark")):
            click.echo(
                "Questions are left out once they cannot matter, so this is the most that it may take.", err=True
            )
        return
    with console(quiet) as watcher:
        found = evaluate(data, no_cache=no_cache, watcher=watcher, **inputs, **options)
    if output:
        with atomic_text(Path(output)) as file:
            write_verdicts(found.verdicts, file)
    if as_json:
        echo_json(found.to_dict())
    else:
        show(found)
        click.echo(found.budget.sentence)
        if output:
            click.echo(f"{len(found.verdicts)} verdicts are in {output}.", err=True)
    check_coverage(found.verdicts, found.coverage, float(options.get("min_coverage", 0.0)))
