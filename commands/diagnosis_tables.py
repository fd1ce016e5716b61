"""A diagnosis as tables on standard output, and what is worth acting on in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from .tables import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from ..evaluation.diagnosis import Diagnosis
    from ..stats.phi import Pair
    from ..stats.resampling import Statistic


def diagnosis_tables(found: Diagnosis) -> None:
    """Questions, dimensions, pairs, and the findings last, where they are read."""
    out = Console(highlight=False)
    seen = found.coverage
    repeats = f", each asked {found.replicates} times" if found.replicates > 1 else ""
    out.print(
        f"{found.model}: {len(found.questions)} questions on {found.examples} examples{repeats}; coverage "
        f"{seen.answered}/{seen.asked} verdicts = {seen.share:.1%}",
        soft_wrap=True,
        markup=False,
    )
    out.print(_questions(found))
    out.print(_groups(found))
    if found.least_related:
        out.print(_pairs("least related, within a dimension", found.least_related))
        out.print(_pairs("most alike", found.most_alike))
    if found.budget is not None:
        out.print(found.budget.sentence)
    out.print("Worth acting on:" if found.findings else "Nothing here calls for a change.")
    for finding in found.findings:
        out.print(f"- {finding.text}", markup=False, soft_wrap=True)


def _questions(found: Diagnosis) -> Table:
    rated = any(question.human is not None for question in found.questions)
    retested = found.replicates > 1
    people = ("people: P(yes)", "answer") if rated else ()
    table = table_of("question", "yes", *people, *(["flips"] if retested else []), "coverage")
    for question in found.questions:
        cells = [question.id, _share(question.yes_rate)]
        if rated:
            cells += [_interval(question.soft), _number(question.hard.value)]
        if retested:
            cells.append(_share(question.flips))
        table.add_row(*cells, _share(question.coverage.share if question.coverage.asked else None))
    return table


def _groups(found: Diagnosis) -> Table:
    table = table_of("dimension", "varying", "yes", "mean phi", "|phi| < 0.3", "independent")
    groups = [*found.dimensions, found.together] if len(found.dimensions) > 1 else found.dimensions
    for group in groups:
        related = group.related
        weak = "undefined" if related.weak_share is None else f"{related.weak_share:.0%} of {related.pairs}"
        table.add_row(
            group.name,
            f"{group.varying} of {len(group.questions)}",
            "undefined" if group.yes_low is None else f"{group.yes_low:.0%} to {group.yes_high:.0%}",
            _number(related.mean),
            weak,
            "undefined" if related.effective is None else f"{related.effective:.1f}",
        )
    return table


def _pairs(title: str, pairs: Iterable[Pair]) -> Table:
    table = table_of(title, "phi", "n")
    for pair in pairs:
        table.add_row(f"{pair.first}, {pair.second}", f"{pair.phi:.2f}", str(pair.n))
    return table


def _interval(found: Statistic) -> str:
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)} [{found.low:.2f}, {found.high:.2f}]"


def _share(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
