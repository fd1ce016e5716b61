"""A comparison of judges as tables on standard output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ..evaluation.compare.statistics import METHODS
from ..models.budget import spending
from .output import echo_json
from .tables import difference_text
from .tables import statistic_text as interval
from .tables import table_of as table

if TYPE_CHECKING:
    from ..agents.buying import Estimate
    from ..evaluation.compare.comparison import Comparison, WithPeople
    from ..stats.resampling import Statistic


def estimate_table(estimates: Mapping[str, Estimate], *, as_json: bool) -> None:
    """What each judge would buy."""
    if as_json:
        echo_json({name: _estimate_dict(each) for name, each in estimates.items()})
        return
    rows = table("judge", "verdicts", "calls to buy", "already there", "tokens, about")
    for name, each in estimates.items():
        rows.add_row(name, str(each.verdicts), str(each.calls), str(each.stored), f"{each.tokens:,}")
    Console(highlight=False).print(rows)
    click.echo("Judges that ask the same share their answers, so together they may buy less. Nothing was bought.")


def comparison_tables(found: Comparison) -> None:
    """Agreement with people on each dimension, agreement with itself and cost of each judge, and the differences."""
    out = Console(highlight=False)
    out.print(_heading(found), soft_wrap=True)
    for dimension in found.dimensions:
        if any(row.dimensions[dimension].people for row in found.rows):
            _with_people(out, found, dimension)
    if len(found.dimensions) > 1 and any(value is not None for row in found.rows for value in row.average.values()):
        _averages(out, found)
    _points(out, found)
    _costs(out, found)
    _differences(out, found)
    paid = found.paid
    out.print(spending(paid.calls, found.cached_calls, paid.tokens, paid.cost_usd), soft_wrap=True)


def _heading(found: Comparison) -> str:
    missing = [
        f"{row.name} {row.coverage.answered}/{row.coverage.asked}" for row in found.rows if row.coverage.share < 1
    ]
    scored = f"; scores that are there: {', '.join(missing)}" if missing else ""
    others = " other" if found.left_out else ""
    left_out = f" Left out, as no example has all its scores: {', '.join(found.left_out)}." if found.left_out else ""
    return (
        f"{found.model}: {len(found.rows)} judges compared on the {len(found.common)} of {found.examples} examples that "
        f"every{others} judge scored{scored}.{left_out}"
    )


def _with_people(out: Console, found: Comparison, dimension: str) -> None:
    rows = table(f"agreement with people: {dimension}", "n", "Spearman", "Kendall", "Pearson")
    reasons: dict[str, str] = {}
    for row in found.rows:
        people = row.dimensions[dimension].people
        if people is not None:
            for name, each in _people_rows(row.name, people):
                n = str(each["spearman"].n)
                rows.add_row(name, n, *(_value(reasons, f"{row.name}, {of}", each[of]) for of in METHODS))
    among = found.among_people.get(dimension)
    if among is not None:
        cells = [_value(reasons, f"people, {each}", among[each]) for each in METHODS]
        rows.add_row("one person and the others", str(among["spearman"].n), *cells)
    out.print(rows)
    _explain(out, reasons)


def _people_rows(name: str, people: WithPeople) -> list[tuple[str, dict[str, Statistic]]]:
    """The correlations of a judge over all examples, inside documents, and of systems' means."""
    rows: list[tuple[str, dict[str, Statistic]]] = [(name, {each: getattr(people.pooled, each) for each in METHODS})]
    if (inside := people.per_document) is not None:
        rows.append(("  per document, mean", {each: inside[each].average for each in METHODS}))
    if people.per_system is not None:
        rows.append(("  per system", {each: getattr(people.per_system, each) for each in METHODS}))
    return rows


def _averages(out: Console, found: Comparison) -> None:
    rows = table("mean over the dimensions", "Spearman", "Kendall", "Pearson")
    for row in found.rows:
        rows.add_row(row.name, *(_number(row.average[name]) for name in METHODS))
    out.print(rows)


def _points(out: Console, found: Comparison) -> None:
    people = any(each.people for row in found.rows for each in row.dimensions.values())
    columns = ["mean"]
    columns += ["at the top (people)", f"agreement ±{found.tolerance}", "QWK", "distance"] if people else []
    columns += ["κ with itself"] if found.repeat > 1 else []
    drift = any(each.em_dim is not None for row in found.rows for each in row.dimensions.values())
    columns += ["EM_dim"] if drift else []
    rows = table(f"on {found.points} points", *columns)
    reasons: dict[str, str] = {}
    for row in found.rows:
        for dimension, each in row.dimensions.items():
            name = row.name if len(found.dimensions) == 1 else f"{row.name}, {dimension}"
            cells = [_number(each.mean)]
            if each.people is not None:
                cells += _points_cells(reasons, name, each.people)
            if found.repeat > 1:
                cells.append(_value(reasons, f"{name}, κ with itself", each.kappa_self))
            if each.em_dim is not None:
                cells.append(_value(reasons, f"{name}, EM_dim", each.em_dim))
            rows.add_row(name, *cells)
    out.print(rows)
    _explain(out, reasons)


def _explain(out: Console, reasons: Mapping[str, str]) -> None:
    """Why values are undefined, below the table; values with one reason in one line."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        out.print(f"Undefined ({'; '.join(names)}): {reason}.", style="dim", markup=False, soft_wrap=True)


def _points_cells(reasons: dict[str, str], name: str, said: WithPeople) -> list[str]:
    spread = said.distribution
    return [
        f"{_share(spread.at_maximum)} ({_share(spread.human_at_maximum)})",
        _share(said.observed),
        _value(reasons, f"{name}, QWK", said.qwk),
        _value(reasons, f"{name}, distance", spread.distance),
    ]


def _value(reasons: dict[str, str], name: str, found: Statistic) -> str:
    if found.value is None:
        reasons[name] = found.reason or "undefined"
        return "undefined"
    return interval(found)


def _costs(out: Console, found: Comparison) -> None:
    money = any(row.costs.cost_usd for row in found.rows)
    columns = [
        "calls",
        "tokens",
        *(["$"] if money else []),
        "upfront tokens",
        "amortised tokens",
        f"cheaper than {found.rows[0].name}",
    ]
    rows = table("cost of an example", *columns)
    for row, cheaper in zip(found.rows, found.cheaper_than_first, strict=True):
        costs = row.costs
        cells = [f"{costs.calls:.3g}", f"{costs.tokens:,.0f}", *([f"{costs.cost_usd:.2g}"] if money else [])]
        cells += [f"{costs.upfront.tokens:,}", f"{costs.amortised_tokens:,.0f}", cheaper or ""]
        rows.add_row(row.name, *cells)
    out.print(rows)


def _differences(out: Console, found: Comparison) -> None:
    if not found.differences:
        return
    rows = table(f"Spearman against {found.rows[0].name}", "difference", "p", "p (Holm)")
    for each in found.differences:
        name = each.judge if len(found.dimensions) == 1 else f"{each.judge}, {each.dimension}"
        rows.add_row(name, difference_text(each.difference), _number(each.difference.p_value), _number(each.p_adjusted))
    out.print(rows)


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _share(found: Statistic) -> str:
    return "undefined" if found.value is None else f"{found.value:.1%}"


def _estimate_dict(each: Estimate) -> dict[str, Any]:
    return {"verdicts": each.verdicts, "calls": each.calls, "stored": each.stored, "tokens": each.tokens}
