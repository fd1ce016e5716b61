"""The loss that a test can rule out, before anything is bought and again from development (METHOD.md, part 6)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...memory.certificate_file import PowerRecord
from ...prompts.formatting import count
from ...stats.correlation import Column
from ...stats.noninferiority import SpreadEstimate, examples_needed, loss_ruled_out, measure_spread

ASSUMED = SpreadEstimate(0.3)
"""The paired difference where nothing is measured yet."""


def power_lines(
    test_examples: int,
    max_loss: float,
    level: float,
    development: Column | None = None,
    documents: Sequence[Hashable] | None = None,
) -> list[PowerRecord]:
    """The loss that so many test examples rule out in 8 of 10 cases where there is none.

    Args:
        test_examples: Number of test examples.
        max_loss: The loss that is to be ruled out.
        level: Chance of an error that the certificate allows.
        development: Differences of the pass rate on development, new minus old.
        documents: Document of each of them.

    Returns:
        A record for the deviation that is assumed, and one for the measured deviation where one was measured.

    Raises:
        InputError: There is not one document for each difference.
    """
    spread = None if development is None else measure_spread(development, documents)
    return [
        PowerRecord(
            examples=test_examples,
            deviation=each.deviation,
            assumed=each is ASSUMED,
            loss=loss_ruled_out(test_examples, each, level),
            needed=examples_needed(each, max_loss, level),
            needed_most=None if each is ASSUMED else examples_needed(each.most, max_loss, level),
        )
        for each in (ASSUMED, spread)
        if each is not None
    ]


def power_said(found: PowerRecord, max_loss: float) -> str:
    """One sentence: whether the test can rule out ``max_loss``, or else what it can and how much it lacks."""
    rows = count(found.examples, "test row")
    basis = (
        f"assuming a standard deviation of {found.deviation:.2g}"
        if found.assumed
        else (f"by the standard deviation on development, {found.deviation:.2f}")
    )
    if found.examples >= found.needed:
        return f"With {rows} a loss of {max_loss:g} is ruled out in 8 of 10 cases where there is none ({basis})."
    most = "" if found.needed_most is None else f", at most {found.needed_most:,}"
    return (
        f"With {rows} only a loss of {found.loss:.2f} or more can be ruled out in 8 of 10 cases where there is none; "
        f"a loss of {max_loss:g} takes about {found.needed:,}{most} ({basis})."
    )
