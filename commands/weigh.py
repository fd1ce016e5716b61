"""``askance weigh``: learn from preferences or ratings how question scores add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..evaluation.options import LEAST_COVERAGE
from ..models.budget import spending_of, together
from ..models.progress import showing
from ..optimizer.options import UNUSED, WeighOptions
from ..optimizer.weights.learner_choice import learners
from ..optimizer.weights.weigh import prepare
from ..prompts.errors import InputError, as_typed
from ..prompts.text_files import write_whole
from .command_options import GroupedCommand, buying_options, load_dotenv, settings, settings_options
from .output import check_coverage, check_output, dump_json, echo_estimate, echo_json, show
from .terminal import echo


@click.command(name="weigh", cls=GroupedCommand)
@click.argument("data", metavar="[PREFS]", required=False)
@click.option("--ratings", help="Examples with human scores to learn from, alone or beside PREFS.")
@click.option("--checklist", help="Checklist whose questions are the tests; without it: scores in PREFS.")
@click.option("--model", help="Judge that answers the checklist, as provider/model.")
@click.option("--prompt", help="Evaluator prompt; default: a neutral one.")
@click.option("-o", "--output", help="Write the weights to this JSON file.")
@buying_options
@click.option(
    "--method",
    type=click.Choice(list(dict.fromkeys(["auto", *learners(), *learners(rated=True)]))),
    help=f"Learner (bayes takes minutes); with --ratings one of {', '.join(learners(rated=True))}. [default: auto]",
)
@settings_options(WeighOptions, without=("method", *UNUSED))
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Learn how question scores add up to one score, from preference pairs (PREFS), human ratings or both.

    The learned weights are compared with uniform ones and with other learners on the same held-out data, and the
    result says in words whether they are better beyond noise.
    """
    load_dotenv()
    options, inputs = settings(WeighOptions, config, given)
    check_output(output := inputs.pop("output"))
    if given["prompt"] is not None and inputs["model"] is None:
        raise InputError("--prompt is for a judge, and none is asked: name one with --model and --checklist.")
    job = prepare(**inputs, options=options)
    if dry_run:
        echo_estimate(job.estimate(), as_json=as_json)
        return
    with showing(not quiet) as watcher:
        found = job.run(watcher)
    report = found.to_dict()
    if output:
        write_whole(output, dump_json(report))
    if as_json:
        echo_json(report)
    else:
        show(found)
        if found.judged:
            echo(spending_of(together(each.budget.to_dict() for each in found.judged)))
    if output and not quiet:
        use = "" if found.scores == "pairwise" else f"; other commands take them with --weights {as_typed(output)}"
        echo(f"The weights are in {output}{use}.", err=True)
    for judged in found.judged:
        check_coverage(judged.verdicts, judged.coverage, float(options.get("min_coverage", LEAST_COVERAGE)))
