"""``askance questions`` and ``select``: write a checklist for a task; choose the most informative questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..agents.buying import NOTHING
from ..evaluation.options import LEAST_COVERAGE, SelectOptions, WriterOptions
from ..evaluation.write_questions import RubricQuestions, questions_from, write_questions
from ..models.progress import showing
from ..optimizer.selection.select import prepare, select
from ..optimizer.selection.selected import Selection
from ..prompts.checklist import dump_checklist
from ..prompts.errors import CoverageError, InputError
from ..prompts.formatting import Figure, count, coverage_text
from ..prompts.text_files import write_whole
from .command_options import (
    GroupedCommand,
    buying_options,
    config_option,
    dimensions_option,
    load_dotenv,
    need,
    read_task,
    settings,
    settings_options,
    store_options,
)
from .output import (
    check_apart,
    check_output,
    dump_json,
    echo_estimate,
    echo_json,
    hush,
    print_rows,
    require_share,
    show,
    tell_errors,
)
from .terminal import echo


@click.command(name="questions", cls=GroupedCommand)
@click.argument("task", type=click.Path(path_type=Path), required=False)
@click.option("--from", "from_prompt", metavar="PROMPT", help="A judge's prompt to take apart, not a TASK.")
@click.option("--data", help="With --from: outputs on which the checklist is held beside that judge.")
@click.option("--model", help="The question writer, as provider/model.")
@click.option("--writer", help="The same as --model.")
@click.option("-o", "--output", help="Checklist file; default: standard output.")
@dimensions_option
@store_options
@click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only errors.")
@config_option
@settings_options(WriterOptions)
def questions_command(
    task: Path | None,
    from_prompt: str | None,
    writer: str | None,
    quiet: bool,
    config: Path | None,
    **given: Any,
) -> None:
    """Write a checklist for the task described in the file TASK, ready to be edited by hand.

    --from PROMPT makes it of a judge's prompt: every question names its clause. With --data both judge these outputs.
    """
    load_dotenv()
    if given["model"] and writer and given["model"] != writer:
        raise click.UsageError(f"--model {given['model']} and --writer {writer} are the same option; give one of them.")
    if (task is None) == (from_prompt is None):
        raise click.UsageError("Give either TASK, a file that describes the task, or --from with a judge's prompt.")
    if given["data"] and from_prompt is None:
        raise click.UsageError("--data compares the checklist with a judge: name its prompt with --from.")
    data = given["data"]  # a project's file names data for its other commands
    options, inputs = settings(WriterOptions, config, given | {"model": given["model"] or writer, "data": data})
    inputs["data"] = data
    if data is None:
        options = {
            name: value for name, value in options.items() if name not in BESIDE or given[name] not in (None, ())
        }
    need(inputs, "model")
    check_output(inputs["output"])
    check_apart(inputs["output"], {"TASK": task, "--from": from_prompt, "--data": data})
    if data is not None and inputs["output"] is None:
        raise InputError("--output is needed with --data (-o checklist.yaml): standard output holds the comparison.")
    shared: dict[str, Any] = {"model": inputs["model"], "dimensions": inputs["dimensions"] or (), **options}
    with showing(not quiet) as watcher:
        if from_prompt is not None:
            rubric_questions = questions_from(from_prompt, data=data, watcher=watcher, **shared)
            checklist = rubric_questions.checklist
        else:
            checklist = write_questions(read_task(task or ""), watcher=watcher, **shared)
    written = dump_checklist(checklist)
    if inputs["output"]:
        write_whole(inputs["output"], written)
        if not quiet:
            echo(f"{len(checklist.questions)} questions are in {inputs['output']}.", err=True)
    else:
        echo(written, nl=False)
    if from_prompt is not None:
        _tell_taken_apart(rubric_questions, quiet=quiet)


BESIDE = ("reads", "reply_tokens", "judge_scores", "field", "human_scale", "limit")
"""Settings for the comparison with an old judge."""


def _tell_taken_apart(found: RubricQuestions, *, quiet: bool) -> None:
    """Print the agreement of the checklist with the old judge, and the parts of the old prompt without a question.
    Raises CoverageError if verdicts of either judge are missing."""
    for part in found.left if not quiet else ():
        echo(f"No question comes from: {part}", err=True)
    if not found.rows:
        return
    texts = {question.id: question.text for question in found.checklist.questions}
    comparisons = [
        ("with the old judge", [row.judge for row in found.rows]),
        ("with people", [row.people for row in found.rows]),
    ]
    shown = [(name, figures) for name, figures in comparisons if any(figures)]
    print_rows(
        [
            {"": row.name, "n": row.n}
            | {name: None if figures[place] is None else Figure.of(figures[place]) for name, figures in shown}
            | {"question": texts.get(row.name)}
            for place, row in enumerate(found.rows)
        ]
    )
    echo("Spearman with 95% intervals. Nothing is replaced: the old prompt is as it was.")
    if found.missing:
        raise CoverageError(f"{count(found.missing, 'verdict')} of the two judges are missing; run it again.")


UNUSED = ("weights", "explain", "scores", "score_scale")
"""Settings of a judge that do not apply to a selection."""
RESULT = "selection.json"


@click.command(name="select", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option("--model", help="Judge, as provider/model.")
@click.option("--candidates", help="Checklist to choose from; without it candidates are proposed.")
@click.option("--verdicts", help="Verdicts on the candidates, of `askance evaluate -o`; then nothing is bought.")
@click.option("-k", "k", type=int, help="Questions to keep. [default: 5]")
@click.option("-o", "--output", help="Checklist file; selection.json is written beside it.")
@click.option("--prompt", help="The judge's prompt; default: a neutral one.")
@click.option("--task", help="File that says what the generator is asked to do.")
@dimensions_option
@buying_options
@settings_options(SelectOptions, without=(*UNUSED, "k"))
def select_command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Choose the few most informative questions: their answers tell most about how good the outputs in DATA are.

    Human scores are used where there are some, and are not needed, except with --verdicts. With those it says for every
    number of questions what they tell and how they correlate with people beside the whole checklist.
    """
    load_dotenv()
    options, inputs = settings(SelectOptions, config, given)
    need(inputs, "data")
    if inputs["verdicts"] is None:
        need(inputs, "model")
    for name in UNUSED:
        options.pop(name, None)  # a project's file may hold them for its other commands
    check_output(output := inputs.pop("output"))
    if output is not None and Path(output).name == RESULT:
        raise InputError(
            f"{output}: the numbers go to a file of this name beside the checklist; give that another one."
        )
    if output is not None:
        named = ("data", "candidates", "verdicts", "prompt", "task")
        check_apart(Path(output).with_name(RESULT), {"config": config, **{name: inputs[name] for name in named}})
    inputs["task"] = "" if inputs["task"] is None else read_task(inputs["task"]).strip()
    inputs["dimensions"] = inputs["dimensions"] or ()
    if dry_run and inputs["verdicts"] is None:
        inputs.pop("verdicts")
        job = prepare(**inputs, options=options)
        echo_estimate(job.estimate(), as_json=as_json)
        if not job.exact and not quiet:
            echo("Candidates are still to be proposed, so this is the most that it may take.", err=True)
        return
    if output is None and not dry_run:
        raise InputError("--output is needed (-o checklist.yaml), on the command line or in the --config file.")
    with showing(not quiet) as watcher:
        selection = select(watcher=watcher, **inputs, **options)
    if output is None or dry_run:
        echo_estimate(NOTHING, as_json=as_json)
        return
    numbers_file = write_selection(selection, Path(output))
    if as_json:
        echo_json(selection.to_dict())
    else:
        show(selection)
        echo(selection.budget.sentence)
        if not quiet:
            echo(f"The checklist is in {output}, the numbers are in {numbers_file}.", err=True)
    tell_errors(selection.problems)
    share = selection.coverage.share
    require_share(
        share,
        float(options.get("min_coverage", LEAST_COVERAGE)),
        f"Only {coverage_text(share)} of the answers are there",
    )


def write_selection(found: Selection, output: Path) -> Path:
    """Write the checklist, and ``selection.json`` beside it; return the path of ``selection.json``."""
    write_whole(output, dump_checklist(found.checklist))
    beside = output.with_name(RESULT)
    write_whole(beside, dump_json(found.to_dict()))
    return beside
