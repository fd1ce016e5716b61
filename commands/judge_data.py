"""``askance generate``, ``evaluate`` and ``diagnose``: write a data set's outputs, judge them with a checklist, and say
which questions are worth asking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..agents.buying import NOTHING
from ..evaluation.diagnose import diagnose
from ..evaluation.diagnose import prepare as prepare_diagnosis
from ..evaluation.evaluate import prepare
from ..evaluation.generate import prepare as prepare_outputs
from ..evaluation.judge_file import load_judge
from ..evaluation.kept_judge import SETTINGS
from ..evaluation.options import LEAST_COVERAGE, DiagnoseOptions, EvaluateOptions, GenerateOptions
from ..evaluation.raters.agreement import rater_agreement
from ..models.progress import showing
from ..prompts.errors import InputError
from ..prompts.formatting import count
from ..settings import flag
from .command_options import GroupedCommand, beside_judge, buying_options, load_dotenv, need, settings, settings_options
from .output import check_output, echo_estimate, echo_json, require_share, show, tell_errors, tell_judged
from .terminal import echo


@click.command(name="generate", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option(
    "--generator",
    help="The model that writes, as provider/model; or a program of yours: file.py:function, "
    'command:"python app.py" or url:http://….',
)
@click.option(
    "--prompt",
    multiple=True,
    help="Its prompt; without placeholders it is the system message. Several, of a program, by giving it again.",
)
@click.option("--schema", help="JSON schema that outputs are to follow.")
@click.option("-o", "--output", help="Write the outputs to this JSONL file; default: standard output.")
@buying_options
@settings_options(GenerateOptions)
def generate_command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Write an output for every example in DATA (JSONL or CSV), as tune has them written.

    Each line is an example with its new output and the version of the prompt, ready for `askance evaluate`.
    """
    load_dotenv()
    options, inputs = settings(GenerateOptions, config, given)
    check_output(output := inputs.pop("output"))
    need(inputs, "data", "generator", "prompt")
    job = prepare_outputs(**inputs, options=options)
    if dry_run:
        echo_estimate(job.estimate(), as_json=as_json)
        return
    with showing(not quiet) as watcher:
        found = job.run(watcher)
    if output:
        found.save(output)
    elif not as_json:
        echo(found.to_jsonl(), nl=False)
    if as_json:
        echo_json(found.to_dict())
    output_count = sum(each.error is None for each in found.written)
    if not quiet:
        followed = found.follow_schema
        schema = "" if followed is None else f"; {followed} of them follow the schema"
        echo(
            f"{count(output_count, 'output')} of {len(found.written)}{f' in {output}' if output else ''}{schema}.",
            err=True,
        )
        echo(found.budget.sentence, err=True)
    tell_errors(each.error for each in found.written)
    lacking = f"only {output_count} of {len(found.written)} outputs are there ({found.share:.1%})"
    require_share(found.share, job.settings.min_coverage, lacking)


@click.command(name="evaluate", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("--checklist", help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", help="Judge, as provider/model.")
@click.option(
    "--judge",
    "judge_file",
    metavar="RUN_OR_FILE",
    help="The judge of a run of align or migrate, a trained scorer's folder, or a judge.yaml: model, prompt, checklist "
    "and how they are used.",
)
@click.option("--prompt", help="Evaluator prompt; default: a neutral one.")
@click.option("--schema", help="JSON schema that outputs are to follow: one more check, free of calls.")
@click.option("-o", "--output", help="Write the verdicts to this file: JSONL, or Parquet.")
@buying_options
@settings_options(EvaluateOptions)
def evaluate_command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Judge DATA (JSONL or CSV) with a checklist: scores, coverage and, with human scores, correlations.

    --own-questions takes the place of --checklist: each example is judged by questions that are written from its input.
    --judge takes the place of --checklist, --model and --prompt; what it was not asked before is asked of its model.
    """
    load_dotenv()
    options, inputs = settings(EvaluateOptions, config, given)
    output, judge = inputs.pop("output"), inputs.pop("judge_file")
    check_output(output, writes="verdicts")
    # The command line's questions take precedence over the file's.
    if given["own_questions"] is None and (judge or given["checklist"]) is not None:
        own = ("own_questions", "writer", "own_decay")
        options = {name: value for name, value in options.items() if name not in own or given[name] is not None}
    elif given["own_questions"] and given["checklist"] is None:
        inputs["checklist"] = None
    if judge is None:
        need(inputs, "data")
        job = prepare(**inputs, options=options)
    else:
        options = beside_judge("--judge", options, given, (*SETTINGS, "weights", "calibration"))
        for name in (option for option in ("own_questions", "schema") if given[option]):
            raise click.UsageError(f"--judge brings its own checklist; leave out {flag(name)}, or --judge.")
        need(inputs, "data")
        job = load_judge(judge).prepare(inputs["data"], given["model"], options)
    if dry_run:
        echo_estimate(job.estimate(), as_json=as_json)
        if not quiet and any(options.get(name) is not None for name in ("stop_within", "pass_mark")):
            echo("Questions are left out once they cannot matter, so this is the most that it may take.", err=True)
        return
    with showing(not quiet) as watcher:
        evaluation = job.run(watcher)
    least, pass_rate = job.settings.min_coverage, job.settings.fail_under
    tell_judged(evaluation, output, as_json=as_json, quiet=quiet, least=least, fail_under=pass_rate)


@click.command(name="diagnose", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("--checklist", help="Checklist file (YAML or JSON), or the name of a ready one.")
@click.option("--model", help="Judge, as provider/model; with --verdicts: whose verdicts to take.")
@click.option("--prompt", help="Evaluator prompt; default: a neutral one; with --verdicts: the one they are made with.")
@click.option("--verdicts", help="Verdicts file of `askance evaluate -o`; then nothing is bought.")
@click.option("-o", "--output", help="Write the verdicts to this file: JSONL, or Parquet.")
@click.option(
    "--raters",
    "of_raters",
    is_flag=True,
    help="Look at people alone: how far several raters agree, and which outputs to talk about. Nothing is asked.",
)
@buying_options
@click.option(
    "--scores",
    type=click.Choice(["soft", "expected"]),
    help="Look at probabilities of yes beside the yes/no answers, or at the expected number on --score-scale. "
    "[default: soft]",
)
@settings_options(DiagnoseOptions, without=("weights", "scores"))
def diagnose_command(
    config: Path | None, as_json: bool, quiet: bool, dry_run: bool, of_raters: bool, **given: Any
) -> None:
    """Say which questions of a checklist are worth asking of DATA (JSONL or CSV).

    Yes-rates, questions that never vary or that run against people, pairs that are answered alike, how many
    independent questions there are in effect, answers that change when asked again, and coverage.
    """
    load_dotenv()
    options, inputs = settings(DiagnoseOptions, config, given)
    need(inputs, "data")
    if of_raters:
        _tell_raters(inputs["data"], options, given, as_json=as_json)
        return
    if inputs["model"] is None and inputs["verdicts"] is None:
        raise InputError("--model or --verdicts is needed, on the command line or in the --config file.")
    output = inputs.pop("output")
    check_output(output, writes="verdicts")
    if dry_run and inputs["verdicts"] is None:
        inputs.pop("verdicts")
        echo_estimate(prepare_diagnosis(**inputs, options=options).estimate(), as_json=as_json)
        return
    with showing(not quiet) as watcher:
        diagnosis = diagnose(watcher=watcher, **inputs, **options)
    if dry_run:
        echo_estimate(NOTHING, as_json=as_json)
        return
    least = float(options.get("min_coverage", LEAST_COVERAGE))
    tell_judged(diagnosis, output, as_json=as_json, quiet=quiet, least=least)


OF_RATERS = ("data", "field", "labels", "label_scale", "limit", "seed")
"""Settings that ``diagnose --raters`` accepts."""


def _tell_raters(data: str, options: Mapping[str, Any], given: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the agreement of raters. Raises UsageError if an option about judges is given."""
    for name, value in given.items():
        if name not in OF_RATERS and value not in (None, (), False):
            raise click.UsageError(f"--raters looks at people alone; leave out {flag(name)}, or --raters.")
    agreement = rater_agreement(data, **{name: options[name] for name in OF_RATERS if name in options})
    if as_json:
        echo_json(agreement.to_dict())
    else:
        show(agreement)
