"""``askance generate``: write the outputs of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..evaluation.generate import prepare
from ..evaluation.options import GenerateOptions
from ..models.progress import showing
from ..prompts.formatting import count
from .command_options import GroupedCommand, buying_options, load_dotenv, need, settings, settings_options
from .output import check_output, echo_estimate, echo_json, require_share, tell_errors
from .terminal import echo


@click.command(name="generate", cls=GroupedCommand)
@click.argument("data", required=False, default=None)
@click.option(
    "--generator",
    default=None,
    help="The model that writes, as provider/model; or a program of yours: file.py:function, "
    'command:"python app.py" or url:http://….',
)
@click.option(
    "--prompt",
    multiple=True,
    help="Its prompt; without placeholders it is the system message. Several, of a program, by giving it again.",
)
@click.option("--schema", default=None, help="JSON schema that outputs are to follow.")
@click.option("-o", "--output", default=None, help="Write the outputs to this JSONL file; default: standard output.")
@buying_options
@settings_options(GenerateOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, **given: Any) -> None:
    """Write an output for every example in DATA (JSONL or CSV), as tune has them written.

    Each line is an example with its new output and the version of the prompt, ready for `askance evaluate`.
    """
    load_dotenv()
    options, inputs = settings(GenerateOptions, config, given)
    check_output(output := inputs.pop("output"))
    need(inputs, "data", "generator", "prompt")
    job = prepare(**inputs, options=options)
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
    there = sum(each.error is None for each in found.written)
    if not quiet:
        followed = found.follow_schema
        schema = "" if followed is None else f"; {followed} of them follow the schema"
        echo(f"{count(there, 'output')} of {len(found.written)}{f' in {output}' if output else ''}{schema}.", err=True)
        echo(found.budget.sentence, err=True)
    tell_errors(each.error for each in found.written)
    lacking = f"only {there} of {len(found.written)} outputs are there ({found.share:.1%})"
    require_share(found.share, job.settings.min_coverage, lacking)
