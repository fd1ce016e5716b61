"""``askance weigh``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..optimizer.judge_preferences import judge_preferences
from ..optimizer.options import EvaluateOptions
from ..optimizer.weights import learners, load_preferences, sentences, weigh, weights_report
from ..prompts.errors import InputError
from .console import console
from .options import common_options, config_option, load_dotenv, need, settings, settings_options
from .output import atomic_text, echo_json


@click.command(name="weigh")
@click.argument("data", metavar="PREFS", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist whose questions are the tests; without it: scores in PREFS.")
@click.option("--model", default=None, help="Judge that answers the checklist, as provider/model.")
@click.option("--prompt", default=None, help="Evaluator prompt; default: a neutral one.")
@click.option("-o", "--output", default=None, help="Write the weights to this JSON file.")
@click.option("--method", type=click.Choice(["auto", *learners()]), default="auto", show_default=True, help="Learner.")
@click.option(
    "--level",
    type=click.Choice(["global", "dataset", "section"]),
    default="global",
    show_default=True,
    help="One set of weights, or one for each data set or section.",
)
@click.option(
    "--pooling",
    type=click.Choice(["partial", "none"]),
    default="partial",
    show_default=True,
    help="Whether small data sets and sections lean on the whole.",
)
@click.option("--no-cache", is_flag=True, help="Reuse no earlier answer and keep none.")
@config_option
@common_options
@settings_options(EvaluateOptions)
def command(
    config: Path | None,
    as_json: bool,
    quiet: bool,
    no_cache: bool,
    method: str,
    level: Any,
    pooling: Any,
    **given: Any,
) -> None:
    """Learn from the preference pairs in PREFS how question scores add up to one score.

    The learned weights are compared with uniform ones and with other learners on the same held-out pairs, and the
    result says in words whether they are better beyond noise.
    """
    load_dotenv()
    names = ("data", "checklist", "model", "prompt", "output")
    options, inputs = settings(EvaluateOptions, config, given, {name: given.pop(name) for name in names})
    need(inputs, "data")
    if (inputs["checklist"] is None) != (inputs["model"] is None):
        raise InputError("--checklist and --model belong together: the model answers the checklist's questions.")
    with console(quiet) as watcher:
        if inputs["checklist"] is None:
            scores = load_preferences(inputs["data"])
        else:
            wanted = {name: inputs[name] for name in ("checklist", "model", "prompt")}
            scores, _ = judge_preferences(inputs["data"], watcher=watcher, no_cache=no_cache, **wanted, **options)
        watcher.phase(f"weighing {len(scores.tests)} tests on {len(scores.ids)} pairs")
        found = weigh(scores, method=method, level=level, pooling=pooling, seed=int(options.get("seed", 42)))
    report = weights_report(found)
    if inputs["output"]:
        with atomic_text(Path(inputs["output"])) as file:
            file.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    if as_json:
        echo_json(report)
    else:
        for sentence in sentences(found):
            click.echo(sentence)
