"""``askance compare``: have several judges rate the same data, and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..agents.buying import Estimate
from ..evaluation.compare.compare import prepare
from ..evaluation.compare.comparison import Comparison
from ..evaluation.compare.judges import KNOWN, POOLED, check_names
from ..evaluation.options import CompareOptions
from ..experiments.datasets import RATED, load_rated
from ..models.budget import spending_of
from ..models.progress import showing
from ..prompts.errors import CoverageError, InputError
from ..prompts.formatting import coverage_text
from ..prompts.text_files import write_whole
from .command_options import GroupedCommand, buying_options, load_dotenv, names_of, need, settings, settings_options
from .output import check_output, dump_json, echo_json, print_rows, require_share, show, tell_errors
from .terminal import echo


@click.command(name="compare", cls=GroupedCommand)
@click.argument("data", required=False)
@click.option(
    "--model", multiple=True, help="The judges' model, as provider/model; given several times, every judge with each."
)
@click.option("--judge", "judges", help=f"Judges, with commas: {', '.join(KNOWN)}.")
@click.option("--checklist", help="Checklist file (YAML or JSON); direct, cot, geval, … need none.")
@click.option("--candidates", help="Questions that random_k draws from; default: the checklist's.")
@click.option(
    "--prompt",
    multiple=True,
    help="Prompt of the judges that ask questions; given several times, each of them with each. Default: a neutral "
    "one.",
)
@click.option("--criteria", help="What counts, in words, for the judges that need no checklist.")
@click.option(
    "--dimension",
    "--criterion",
    "dimensions",
    multiple=True,
    help="Compare on this dimension (criterion) only; may be given several times.",
)
@click.option("--panel", help="Models of poll, with commas; default: the one model several times.")
@click.option("--dataset", type=click.Choice(list(RATED)), help="DATA is this, as its authors publish it.")
@click.option("-o", "--output", help="Write the result with every score to this JSON file.")
@buying_options
@settings_options(CompareOptions)
def command(config: Path | None, as_json: bool, quiet: bool, dry_run: bool, dataset: str | None, **given: Any) -> None:
    """Have several judges rate DATA (JSONL or CSV), with one model or several, and compare them.

    Every --judge is there with every --model and, where it asks questions, every --prompt. One table says how each
    judge agrees with people, with itself (--repeat 2; at --temperature 0 most models repeat themselves word for word)
    and what it costs; another how the judges differ from the first one. All judges are compared on the examples that
    every one of them scored.
    """
    load_dotenv()
    options, inputs = settings(CompareOptions, config, given)
    inputs["prompt"] = inputs["prompt"] or None
    need(inputs | {"model": inputs["model"] or None}, "model")
    if dataset is None:
        need(inputs, "data")
    need({"judge": inputs["judges"]}, "judge")
    check_output(output := inputs.pop("output"))
    inputs |= {name: names_of(inputs[name]) for name in ("judges", "panel", "dimensions")}
    if given["candidates"] is not None and not set(POOLED).intersection(check_names(inputs["judges"])):
        raise InputError(f"--candidates: only the judges {', '.join(POOLED)} ask them.")
    if dataset is not None:
        inputs["data"] = load_rated(dataset, inputs["data"])
    job = prepare(**inputs, options=options)
    if dry_run:
        _print_estimates(job.estimate(), as_json=as_json)
        return
    with showing(not quiet) as watcher:
        found = job.run(watcher)
    if output:
        write_whole(output, dump_json(found.to_dict(ratings=True)))
    if as_json:
        echo_json(found.to_dict())
    else:
        show(found)
        paid = found.paid
        echo(spending_of({**asdict(paid), "cached_calls": found.cached_calls}))
        if output and not quiet:
            echo(f"The comparison with every score is in {output}.", err=True)
    _check_coverage(found, job.options.min_coverage)


def _print_estimates(estimates: Mapping[str, Estimate], *, as_json: bool) -> None:
    """Print the calls that each judge would buy."""
    kinds = {"verdicts": "verdicts", "calls": "API calls", "stored": "already there", "tokens": "tokens, about"}
    if as_json:
        echo_json({name: {kind: getattr(each, kind) for kind in kinds} for name, each in estimates.items()})
        return
    print_rows(
        [
            {"judge": name} | {what: getattr(each, kind) for kind, what in kinds.items()}
            for name, each in estimates.items()
        ]
    )
    echo("Judges that ask the same share their answers, so together they may buy less. Nothing was bought.")


def _check_coverage(found: Comparison, least: float) -> None:
    """Print the errors of each judge. Raises CoverageError if there are too few scores to compare."""
    for row in found.rows:
        tell_errors(rating.error and f"{row.name}: {rating.error}" for rating in found.ratings[row.name])
        require_share(
            row.coverage.share,
            least,
            f"The judge '{row.name}' gave only {coverage_text(row.coverage.share)} of its scores",
        )
    if not found.common:
        raise CoverageError("There is no example that every judge scored, so there is nothing to compare.")
