"""``askance weigh``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..evaluation.options import UNUSED, WeighOptions
from ..models.budget import spending
from ..optimizer.weights import learners
from ..optimizer.weights.rating_plan import METHODS
from ..optimizer.weights.weigh import estimate_weighing, weigh
from .options import common_options, config_option, load_dotenv, settings, settings_options
from .output import atomic_text, check_coverage, console, echo_estimate, echo_json
from .tables import show


@click.command(name="weigh")
@click.argument("data", metavar="[PREFS]", required=False, default=None)
@click.option("--ratings", default=None, help="Examples with human scores to learn from, alone or beside PREFS.")
@click.option("--checklist", default=None, help="Checklist whose questions are the tests; without it: scores in PREFS.")
@click.option("--model", default=None, help="Judge that answers the checklist, as provider/model.")
@click.option("--prompt", default=None, help="Evaluator prompt; default: a neutral one.")
@click.option("-o", "--output", default=None, help="Write the weights to this JSON file.")
@click.option("--no-cache", is_flag=True, help="Reuse no earlier answer and keep none.")
@click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")
@config_option
@common_options
@click.option(
    "--method",
    type=click.Choice(list(dict.fromkeys(["auto", *learners(), *METHODS]))),
    default=None,
    help=f"Learner (bayes takes minutes); with --ratings one of {', '.join(METHODS)}. [default: auto]",
)
@settings_options(
    WeighOptions, only=tuple(name for name in WeighOptions.model_fields if name not in ("method", *UNUSED))
)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, no_cache: bool, **given: Any) -> None:
    """Learn how question scores add up to one score, from preference pairs (PREFS), human ratings or both.

    The learned weights are compared with uniform ones and with other learners on the same held-out data, and the
    result says in words whether they are better beyond noise.
    """
    load_dotenv()
    names = ("data", "ratings", "checklist", "model", "prompt", "output")
    options, inputs = settings(WeighOptions, config, given, {name: given.pop(name) for name in names})
    output = inputs.pop("output")
    if dry_run:
        echo_estimate(estimate_weighing(inputs.pop("data"), no_cache=no_cache, **inputs, **options), as_json=as_json)
        return
    with console(quiet) as watcher:
        found = weigh(inputs.pop("data"), watcher=watcher, no_cache=no_cache, **inputs, **options)
    report = found.to_dict()
    if output:
        with atomic_text(Path(output)) as file:
            file.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    if as_json:
        echo_json(report)
    else:
        show(found)
        if found.judged:
            spent = ("calls", "cached_calls", "tokens", "cost_usd")
            click.echo(spending(*(sum(getattr(each.budget, name) for each in found.judged) for name in spent)))
    if output and not quiet:
        use = "" if found.scores == "pairwise" else f"; other commands take them with --weights {output}"
        click.echo(f"The weights are in {output}{use}.", err=True)
    for judged in found.judged:
        check_coverage(judged.verdicts, judged.coverage, float(options.get("min_coverage", 0.0)))
