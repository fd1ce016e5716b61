"""How a judge does on each part of the examples that share a value of a metadata field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..prompts.errors import InputError, did_you_mean
from ..prompts.formatting import Figure
from ..stats.correlation import correlate, statistic_dict
from ..stats.resampling import Resampling, mean_with_interval
from .pass_fail import FIGURES, NAMES, form_of, judge_passes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..prompts.examples import Example
    from .pass_fail import PassLabels, PassThreshold
    from .scoring import ExampleScore, Targets
    from .shown import Rows

SMALL = 20
"""Examples below which a slice is marked as small: Wilson's interval of a rate is then up to .4 wide, or wider."""
ABSENT = "(none)"
"""The slice of the examples that lack the field."""
MOST_SHOWN = 30
"""Slices in the terminal, the largest first; results, pages and data frames have them all."""
OWN = ("system",)
"""Fields of an example that may be sliced by beside its metadata."""


def slice_values(examples: Sequence[Example], field: str) -> list[str]:
    """The value of a field for each example, as a text.

    Raises:
        InputError: No example has the field.
    """

    def value(example: Example) -> Any:
        return example.metadata.get(field, example.system if field in OWN else None)

    found = [value(each) for each in examples]
    if all(each is None for each in found):
        known = list(dict.fromkeys([name for each in examples for name in each.metadata]))
        has = f"there are {', '.join(known)}" if known else "the examples have no metadata"
        raise InputError(f"by: no example has a metadata field '{field}' ({has}).{did_you_mean(field, known)}")
    return [ABSENT if each is None else _said(each) for each in found]


def _said(value: Any) -> str:
    """A value as a text: as JSON has it, else as Python shows it (a period of pandas)."""
    return json.dumps(value, default=str) if isinstance(value, (bool, int, float, list, dict)) else str(value)


def slice_rows(
    field: str,
    examples: Sequence[Example],
    scores: Sequence[ExampleScore],
    targets: Targets | None,
    labels: PassLabels | None,
    threshold: PassThreshold | None,
    resampling: Resampling,
) -> dict[str, Any]:
    """Each slice's number of examples, mean score in [0, 1], pass rate and agreement with people, with intervals.

    ``scores``, ``examples`` and the groups of ``resampling`` are in the same order; the largest slice comes first.

    Raises:
        InputError: No example has the field.
    """
    parts: dict[str, list[int]] = {}
    for place, value in enumerate(slice_values(examples, field)):
        parts.setdefault(value, []).append(place)
    rows = []
    for name, places in parts.items():
        mine, judged = [examples[place] for place in places], [scores[place] for place in places]
        here = np.zeros(len(examples), dtype=np.bool_)
        here[places] = True
        within = resampling.only(here)
        row: dict[str, Any] = {"value": name, "n": len(places), "small": len(places) < SMALL}
        row["score"] = statistic_dict(
            mean_with_interval([each.overall for each in judged], within, "no example has a score")
        )
        if threshold is not None:
            found = judge_passes(judged, mine, threshold, labels, within).to_dict()
            row |= {each: found[each] for each in ("pass_rate", "people_pass_rate", *FIGURES) if each in found}
        if targets is not None and labels is None:
            wanted = [targets.overall(each.id) for each in mine]
            row["spearman"] = statistic_dict(
                correlate([targets.score(each) for each in judged], wanted, within).spearman
            )
        rows.append(row)
    return {"field": field, "slices": sorted(rows, key=lambda row: -row["n"])}


def slice_table(found: Mapping[str, Any]) -> Rows:
    """The slices as rows of a table."""
    return [
        slice_row(
            found["field"],
            row["value"],
            {
                "n": row["n"],
                "score": Figure.of(row["score"]),
                "pass rate": Figure.of(row["pass_rate"], ".1%") if "pass_rate" in row else None,
                **{NAMES[name]: Figure.of(row[name], form_of(name)) for name in ("accuracy", "kappa") if name in row},
                "Spearman with people": Figure.of(row["spearman"]) if "spearman" in row else None,
                "": "small" if row["small"] else None,
            },
        )
        for row in found["slices"]
    ]


def slice_row(field: str, value: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table of slices: its value under the field's name, ``metadata.NAME`` where a figure is called so."""
    return {f"metadata.{field}" if field in figures else field: value, **figures}
