"""Whether enough verdicts are there; if not, the exit code is 4."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ..prompts.errors import CoverageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..evaluation.scoring import Coverage
    from ..prompts.verdicts import Verdict


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
