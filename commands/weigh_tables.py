"""Learned weights as tables on standard output, and in words what they are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from ..models.budget import spending
from ..optimizer.weights import WeighResult
from .tables import table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ..optimizer.weights import RatingWeights
    from ..optimizer.weights.weigh import LearnedWeights


def weigh_tables(found: LearnedWeights) -> None:
    """The weights, the learners beside each other on the same held-out data, and the sentences."""
    out = Console(highlight=False)
    out.print(_weights(found.result))
    out.print(_learners(found.result))
    for sentence in found.sentences():
        out.print(sentence, markup=False, soft_wrap=True)
    if found.judged:
        spent = [judged.budget for judged in found.judged]
        calls, reused = sum(each.calls for each in spent), sum(each.cached_calls for each in spent)
        tokens, money = sum(each.tokens for each in spent), sum(each.cost_usd for each in spent)
        out.print(spending(calls, reused, tokens, money), soft_wrap=True)


def _weights(found: WeighResult | RatingWeights) -> Table:
    """A line for each test; a column for each section, where these have weights of their own."""
    sections = found.sections if isinstance(found, WeighResult) else ()
    table = table_of("test", "weight", "interval", *(section.name for section in sections))
    for place, test in enumerate(found.tests):
        low, high = (None if ends is None else float(ends[place]) for ends in (found.low, found.high))
        own = [f"{section.weights[place]:.3f}" for section in sections]
        table.add_row(test, f"{found.weights[place]:.3f}", _interval(low, high), *own)
    return table


def _learners(found: WeighResult | RatingWeights) -> Table:
    """A line for each learner, the best on held-out data first; one that gave nothing last."""
    rows: list[tuple[float, Sequence[str]]] = []
    if isinstance(found, WeighResult):
        table = table_of("learner", "right (held out)", "interval", "beyond uniform", "seconds")
        for each in found.learners:
            gain = "" if each.name == "uniform" else _number(each.difference, "+.1%")
            right = (_number(each.accuracy, ".1%"), _interval(each.low, each.high, ".1%"), gain)
            rows.append((-1.0 if each.accuracy is None else each.accuracy, (each.name, *right, _number(each.seconds))))
    else:
        table = table_of("learner", "Spearman (held out)", "interval", "beyond uniform", "pairs right")
        for score in found.learners:
            gain = "" if score.name == "uniform" else _number(score.difference, "+.3f")
            reached = (_number(score.spearman), _interval(score.low, score.high), gain)
            rows.append(
                (
                    -2.0 if score.spearman is None else score.spearman,
                    (score.name, *reached, _number(score.pair_accuracy, ".1%")),
                )
            )
    for _, row in sorted(rows, key=lambda each: -each[0]):
        table.add_row(*row)
    return table


def _number(value: float | None, form: str = ".3f") -> str:
    return "" if value is None else format(value, form)


def _interval(low: float | None, high: float | None, form: str = ".3f") -> str:
    return "" if low is None or high is None else f"{low:{form}} to {high:{form}}"
