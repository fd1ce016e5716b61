"""``askance evaluate``: judge a data set with a checklist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..evaluation.evaluate import prepare
from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import SETTINGS
from ..evaluation.options import EvaluateOptions
from ..evaluation.progress import showing
from .options import GroupedCommand, beside_judge, buying_options, load_dotenv, need, settings, settings_options
from .output import check_output, echo_estimate, tell_judged
from .terminal import echo


@click.command(name="evaluate", cls=GroupedCommand)
@click.argument("data", required=False, default=None)
@click.option("--checklist", default=None, help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", default=None, help="Judge, as provider/model.")
@click.option(
    "--judge",
    "judge_file",
    default=None,
    metavar="RUN_OR_FILE",
    help="The judge of a run of align or migrate, a trained scorer's folder, or a judge.yaml: model, prompt, checklist and how they are used.",
)
@click.option("--prompt", default=None, help="Evaluator prompt; default: a neutral one.")
@click.option("-o", "--output", default=None, help="Write the verdicts to this file: JSONL, or Parquet.")
@buying_options
@settings_options(EvaluateOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Judge DATA (JSONL or CSV) with a checklist: scores, coverage and, with human scores, correlations.

    --own-questions takes the place of --checklist: each example is judged by questions that are written from its input.
    --judge takes the place of --checklist, --model and --prompt; what it was not asked before is asked of its model.
    """
    load_dotenv()
    options, inputs = settings(EvaluateOptions, config, given)
    output, judge = inputs.pop("output"), inputs.pop("judge_file")
    check_output(output, writes="verdicts")
    # of the file's questions and the command line's, those of the command line are asked
    if given["own_questions"] is None and (judge or given["checklist"]) is not None:
        own = ("own_questions", "writer", "own_decay")
        options = {name: each for name, each in options.items() if name not in own or given[name] is not None}
    elif given["own_questions"] and given["checklist"] is None:
        inputs["checklist"] = None
    if judge is None:
        need(inputs, "data", "model")
        job = prepare(**inputs, options=options)
    else:
        options = beside_judge("--judge", options, given, (*SETTINGS, "weights", "calibration"))
        if given["own_questions"]:
            raise click.UsageError("--judge brings its own checklist; leave out --own-questions, or --judge.")
        need(inputs, "data")
        job = load_judge(judge).prepare(inputs["data"], given["model"], options)
    if dry_run:
        echo_estimate(job.estimate(), as_json=as_json)
        if not quiet and any(options.get(name) is not None for name in ("stop_within", "pass_mark")):
            echo("Questions are left out once they cannot matter, so this is the most that it may take.", err=True)
        return
    with showing(not quiet) as watcher:
        found = job.run(watcher)
    least, pass_rate = job.settings.min_coverage, job.settings.fail_under
    tell_judged(found, output, as_json=as_json, quiet=quiet, least=least, fail_under=pass_rate)
