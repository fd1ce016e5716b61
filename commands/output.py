"""What the commands print: JSON, estimates, progress, and whether enough verdicts are there."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..evaluation.progress import showing
from ..prompts.errors import CoverageError
from ..prompts.rows import write_whole
from ..prompts.verdicts import dump_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from ..agents.buying import Estimate
    from ..evaluation.diagnosis import Diagnosis
    from ..evaluation.evaluate import Evaluation
    from ..evaluation.progress import Counting
    from ..evaluation.scoring import Coverage
    from ..prompts.verdicts import Verdict


def dump_json(value: Any) -> str:
    """A result as the text of a file."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(dump_json(value), nl=False)


def echo_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what judging would take."""
    if as_json:
        echo_json(asdict(estimate))
        return
    click.echo(
        f"{estimate.verdicts} verdicts: {estimate.calls} calls to buy, {estimate.stored} answers already there; "
        f"about {estimate.tokens:,} tokens. Nothing was bought."
    )


def console(quiet: bool) -> AbstractContextManager[Counting]:
    """Somebody who watches a command, fit for what standard error is."""
    return showing(not quiet)


def tell_judged(
    found: Evaluation | Diagnosis, tables: Callable[[Any], None], output: str | None, *, as_json: bool, least: float
) -> None:
    """Write the verdicts, print the result, and check the coverage.

    Raises:
        AskanceError: The verdicts cannot be written.
        CoverageError: As :func:`check_coverage`.
    """
    if output:
        write_whole(output, dump_verdicts(found.verdicts))
    if as_json:
        echo_json(found.to_dict())
    else:
        tables(found)
        if found.budget is not None:
            click.echo(found.budget.sentence)
        if output:
            click.echo(f"{len(found.verdicts)} verdicts are in {output}.", err=True)
    check_coverage(found.verdicts, found.coverage, least)


def hush(context: click.Context, parameter: click.Parameter, quiet: bool) -> bool:
    """Behind ``--quiet``: while the command lasts, askance logs errors and no warnings."""
    if quiet:
        logger = logging.getLogger(__name__.partition(".")[0])
        context.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    return quiet


def check_coverage(verdicts: Iterable[Verdict], seen: Coverage, least: float) -> None:
    """Name the errors on standard error.

    Raises:
        CoverageError: Less than ``least`` of the verdicts are there, or none at all.
    """
    tell_errors(verdict.error for verdict in verdicts)
    require_share(seen.share, least, f"Only {seen.share:.1%} of the verdicts are there")
    if not seen.answered:
        sys.stdout.flush()
        raise CoverageError("Not one question was answered, so there is no result.")


def tell_errors(errors: Iterable[str | None]) -> None:
    """Name the first errors on standard error, each once, and say how many others there are."""
    different = list(dict.fromkeys(error for error in errors if error))
    for error in different[:3]:
        click.echo(f"askance: {error}", err=True)
    if others := len(different[3:]):
        click.echo(f"askance: and {others} other {'error' if others == 1 else 'errors'}.", err=True)


def require_share(share: float, least: float, lacking: str) -> None:
    """Check that enough is there; ``lacking`` says what share of what.

    Raises:
        CoverageError: ``share`` is less than ``least``, the ``--min-coverage``.
    """
    if share < least:
        sys.stdout.flush()
        raise CoverageError(
            f"{lacking}, less than --min-coverage {least:.1%}. Run the command again to ask for the missing ones."
        )
