"""The raters' agreement as tables and sentences, from ``rater_agreement`` of a result file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...prompts.formatting import Figure, count
from ...prompts.human_feedback import one_line
from ...prompts.text import shorten
from ..view import View

if TYPE_CHECKING:
    from ..view import Rows

ALL = "all dimensions"
"""Name of the mean over the dimensions, each brought to [0, 1]."""
BETWEEN, PERFECT = "one rater with another", "a perfect judge"
"""Names of the columns beside agreement with people."""
MOST_CASES = 10
"""Most contradictions in a terminal; results have them all."""
MOST_QUOTED = 160
"""Most characters of a quoted comment."""


def agreement_view(data: Mapping[str, Any]) -> View:
    """View of what ``diagnose --raters --json`` prints."""
    found = data["rater_agreement"]
    return View(
        f"raters of {count(data['examples'], 'example')}",
        [*ceiling_lines(found), *cases_lines(found)],
        {
            "rater_agreement": lambda: alpha_rows(found),
            "raters": lambda: _rater_rows(found),
            "pairs_of_raters": lambda: _pair_rows(found),
            "contradictions": lambda: case_rows(found),
        },
        captions=CAPTIONS,
        most={"contradictions": MOST_CASES},
        listed=("contradictions",),
    )


CAPTIONS = {
    "rater_agreement": "agreement of people with each other: Krippendorff's alpha of names, ranks and numbers; Fleiss' "
    "kappa, where all rated; Spearman of "
    "one rater with another",
    "raters": "each rater beside the others, on the same outputs; above the others: own rating less their mean",
    "pairs_of_raters": "pairs of raters; kappa has quadratic weights on a scale",
    "contradictions": "outputs to talk about, the furthest apart first",
}


def alpha_rows(found: Mapping[str, Any]) -> Rows:
    """Return one row per dimension."""
    return [
        {
            "dimension": name,
            "outputs": row["outputs"],
            "raters each": Figure(row["raters_per_output"], form=".3g"),
            **{f"alpha, {level}": Figure.of(each) for level, each in row["alpha"].items()},
            **({"Fleiss' kappa": Figure.of(row["fleiss_kappa"])} if "fleiss_kappa" in row else {}),
            **ceiling_cells(found, name),
        }
        for name, row in found.items()
    ]


def ceiling_cells(found: Mapping[str, Any], dimension: str) -> dict[str, Figure]:
    """Return cells beside the agreement with people on a dimension; none if one person rated."""
    row = found.get(dimension)
    if row is None:
        return {}
    return {BETWEEN: Figure.of(row["one_rater"]), PERFECT: Figure.of(row["ceiling"])}


def ceiling_of_all(found: Mapping[str, Any]) -> dict[str, Figure]:
    """Return cells beside the mean over all dimensions; none if not all of them have several raters."""
    return ceiling_cells(found, ALL if len(found) > 1 else next(iter(found), ""))


def _named(found: Mapping[str, Any], name: str) -> dict[str, str]:
    """The dimension as a first cell, where there are several."""
    return {"dimension": name} if len(found) > 1 else {}


def _rater_rows(found: Mapping[str, Any]) -> Rows:
    return [
        {
            **_named(found, name),
            "rater": each["rater"],
            "outputs": each["n"],
            "mean": Figure(each["mean"], form=".3g"),
            "above the others": Figure.of(each["leniency"], "+.3f"),
            "Spearman with the rest": Figure.of(each["with_the_rest"]),
        }
        for name, row in found.items()
        for each in row["raters"]
    ]


def _pair_rows(found: Mapping[str, Any]) -> Rows:
    return [
        {
            **_named(found, name),
            "pair": " and ".join(each["raters"]),
            "outputs": each["kappa"]["n"],
            "agreed": Figure.of(each["agreed"], ".1%"),
            "kappa": Figure.of(each["kappa"]),
        }
        for name, row in found.items()
        for each in row["pairs"]
    ]


def case_rows(found: Mapping[str, Any]) -> Rows:
    """Return the contradictions of all dimensions, with each rater's rating and comment; the furthest apart first."""
    cases = [(name, each) for name, row in found.items() for each in row["contradictions"]]
    return [
        {
            "output": f"{each['example']}{f' on {name}' if len(found) > 1 else ''}: "
            + ", ".join(f"{rater} {_said(rating)}" for rater, rating in each["ratings"].items()),
            "comments": " ".join(_comment(comment) for comment in each["comments"]) or None,
        }
        for name, each in sorted(cases, key=lambda case: -case[1]["apart"])
    ]


def _said(rating: float | bool) -> str:
    return ("pass" if rating else "fail") if isinstance(rating, bool) else f"{rating:.3g}"


def _comment(comment: Mapping[str, Any]) -> str:
    who = comment["rater"] or "a rater who is not named"
    against = f", against {' and '.join(comment['against'])}" if comment["against"] else ""
    return f"{who}{against}: “{shorten(one_line(comment['text']), MOST_QUOTED)}”"


def beside(found: Mapping[str, Any], dimension: str | None = None) -> str:
    """Return the agreement of one rater with another and the ceiling, in brackets; empty if it is not known.

    Without a ``dimension`` these are the figures of the mean over all dimensions.
    """
    row = found.get(ALL if dimension is None and ALL in found else dimension or next(iter(found), ""))
    if row is None or row["one_rater"]["value"] is None:
        return ""
    most = row["ceiling"]["value"]
    best = "" if most is None else f"; {PERFECT} {most:.3f}"
    return f" ({BETWEEN} {row['one_rater']['value']:.3f}{best})"


def ceiling_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per dimension: one rater's agreement with another, and what a judge could reach."""
    for name, row in found.items():
        sentence = f"{name}: one rater agrees with another at Spearman {Figure.of(row['one_rater'])}"
        if row["ceiling"]["value"] is None:
            yield (
                f"{sentence}; {row['ceiling']['reason']}"
                if row["one_rater"]["value"] is not None
                else (f"{name}: one rater with another is undefined: {row['one_rater']['reason']}")
            )
        else:
            yield (
                f"{sentence}; with the mean of {row['raters_per_output']:.3g} raters a perfect judge could have "
                f"{Figure.of(row['ceiling'])}"
            )


def labels_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per dimension with labels: how far two people agree, to compare a judge with."""
    for name, row in found.items():
        pairs = (
            [each for each in row["pairs"] if each["agreed"]["value"] is not None] if row["kind"] == "labels" else []
        )
        if not pairs:
            continue
        agreed = sum(each["agreed"]["value"] for each in pairs) / len(pairs)
        known = [each["kappa"]["value"] for each in pairs if each["kappa"]["value"] is not None]
        kappa = f", kappa {sum(known) / len(known):.3f}" if known else ""
        of = f", mean of {len(pairs)} pairs" if len(pairs) > 1 else ""
        yield f"{name}: {BETWEEN} agreed {agreed:.1%}{kappa}{of}"


def combined_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per dimension whose labels were combined by another rule than the mean."""
    for name, row in found.items():
        if (how := row.get("combined")) and how["rule"] != "mean":
            yield f"{name}: labels that taught are combined by {how['rule']}: {how['reason']}"


def cases_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per dimension on which raters contradict each other: on how many outputs."""
    for name, row in found.items():
        if cases := row["contradictions"]:
            against = sum(bool(comment["against"]) for each in cases for comment in each["comments"])
            stand = "stands" if against == 1 else "stand"
            told = f"; {count(against, 'comment')} there {stand} against another rater's label" if against else ""
            far = "contradict each other" if row["kind"] == "labels" else "are more than half the scale apart"
            yield f"{name}: on {len(cases)} of {row['outputs']} outputs raters {far}{told}"
