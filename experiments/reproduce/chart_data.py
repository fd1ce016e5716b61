"""Scores by judge, example and dimension from a JSON result, as the pictures show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...stats.correlation import spearman

_TITLES = {
    "qags": "QAGS",
    "topical_chat": "Topical-Chat",
    "summeval": "SummEval",
}
Scores = Mapping[str, Mapping[str, float | None]]
"""Example to dimension to score in [0, 1]."""


@dataclass(frozen=True)
class ScoreTable:
    """People's and the judges' scores of the same examples."""

    name: str
    """Of the data."""
    dimensions: tuple[str, ...]
    examples: tuple[str, ...]
    human: Scores
    judges: Mapping[str, Scores]
    systems: Mapping[str, str]
    """Example to the system that wrote it; empty where that is unknown."""
    note: str = ""
    """What a reader must know of the scores."""

    def columns(self, dimension: str, judge: str) -> tuple[list[float], list[float]]:
        """People's and a judge's scores of the examples that have both."""
        pairs = [
            (human, score)
            for each in self.examples
            if (human := self.human[each].get(dimension)) is not None
            and (score := self.judges[judge].get(each, {}).get(dimension)) is not None
        ]
        return [human for human, _ in pairs], [score for _, score in pairs]

    def of(self, scores: Scores, dimension: str) -> list[float]:
        """People's or a judge's scores on a dimension."""
        return [score for each in self.examples if (score := scores.get(each, {}).get(dimension)) is not None]

    def by_system(self, scores: Scores) -> dict[str, list[float]]:
        """Scores of each system's examples, each the mean over the dimensions; incomplete examples are left out."""
        found: dict[str, list[float]] = {}
        for each in self.examples:
            values = [scores.get(each, {}).get(dimension) for dimension in self.dimensions]
            known = [value for value in values if value is not None]
            if each in self.systems and known and len(known) == len(values):
                found.setdefault(self.systems[each], []).append(float(np.mean(known)))
        return found


def score_table(result: Mapping[str, Any]) -> ScoreTable:
    """The scores of a result that :func:`~askance.experiments.reproduce.common.run` wrote.

    Examples that a judge left out are left out; of repeated ratings the first counts. A published score that leaves
    [0, 1] is mapped to [0, 1] by its lowest and highest value, and the note says so.
    """
    judges: dict[str, Scores] = {}
    notes = []
    for name, published in result.get("published", {}).items():
        judges[name], spans = _within(published)
        notes += [f"{name}: {each} {low:.1f} to {high:.1f} drawn as 0 to 1" for each, (low, high) in spans.items()]
    for name, ratings in result["ratings"].items():
        found: dict[str, dict[str, float | None]] = {}
        for rating in ratings:
            if not rating.get("replicate"):
                found.setdefault(rating["example"], {})[rating["dimension"]] = rating["score"]
        judges[name] = found
    return ScoreTable(
        title_of(result["dataset"]),
        tuple(result["dimensions"]),
        tuple(result["common"]),
        result["human"],
        judges,
        result.get("systems", {}),
        "; ".join(notes),
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> str:
    """Spearman's correlation in words for a picture: the letter rho with two decimals, or that it is undefined."""
    value = spearman(first, second).value
    return "ρ undefined" if value is None else f"ρ = {short(value)}"


def short(value: float) -> str:
    """Two decimals without the leading 0."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"


def _within(scores: Scores) -> tuple[Scores, dict[str, tuple[float, float]]]:
    """The scores inside [0, 1], and what was mapped: the lowest and highest value by dimension."""
    dimensions = dict.fromkeys(name for each in scores.values() for name in each)
    ranges = {name: _range(each.get(name) for each in scores.values()) for name in dimensions}
    outside = {name: span for name, span in ranges.items() if span[0] < 0 or span[1] > 1}

    def mapped(name: str, value: float | None) -> float | None:
        if value is None or name not in outside:
            return value
        low, high = outside[name]
        return (value - low) / (high - low)

    return {each: {name: mapped(name, value) for name, value in of.items()} for each, of in scores.items()}, outside


def _range(values: Iterable[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    return min(known), max(known)


def title_of(dataset: str) -> str:
    """Return the data set's name as its authors write it; any other name as it is."""
    return _TITLES.get(dataset, dataset)
