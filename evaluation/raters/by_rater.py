"""``--by-rater``: does the judge agree with one rater more than with another, and with each as they do with each
other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError
from ...prompts.formatting import Figure
from ...prompts.raters import rater_columns
from ...stats.agreement import FEWEST_TOGETHER, as_table, mean_over_parts
from ...stats.correlation import affordable, correlation_kernel, statistic_dict
from ...stats.differences import difference_dict, holm, two_sided_difference
from ...stats.resampling import Kernel, Resampling, Statistic, bootstrapped_together, less
from .agreement import pairs_together

if TYPE_CHECKING:
    from ...prompts.examples import Example
    from ..scoring import ExampleScore, Targets
    from ..view import Rows

LEVEL = 0.05
"""Level at which two raters are told apart, after Holm's adjustment for all pairs."""
Column = Sequence[float | None]


def check_several(examples: Sequence[Example], dimensions: Sequence[str]) -> None:
    """Raise InputError where no dimension has two raters."""
    if not any(len(rater_columns(examples, name)) > 1 for name in dimensions):
        raise InputError(
            f"by_rater: no output has ratings of two people on {', '.join(dimensions) or 'what is asked about'}."
        )


def rater_rows(
    examples: Sequence[Example],
    scores: Sequence[ExampleScore],
    targets: Targets,
    resampling: Resampling,
    *,
    lower_is_better: bool = False,
) -> dict[str, Any]:
    """By dimension, the judge beside each rater, and pairs of raters beside the judge.

    ``scores``, ``examples`` and the groups of ``resampling`` are in the same order. Of a scale on which
    ``lower_is_better`` the ratings are turned round. Dimensions with one rater are left out.
    """
    found = {}
    for dimension in targets.dimensions:
        columns: dict[str, Column] = dict(rater_columns(examples, dimension))
        if lower_is_better and not _are_labels(columns):
            columns = {name: [None if each is None else -each for each in own] for name, own in columns.items()}
        if len(columns) > 1:
            said = [targets.dimension_score(each, dimension) for each in scores]
            raters = [_beside(said, name, columns, resampling) for name in columns]
            found[dimension] = {"raters": raters, "pairs": _pairs(said, columns, resampling)}
    return found


def _are_labels(columns: Mapping[str, Column]) -> bool:
    return any(isinstance(each, bool) for own in columns.values() for each in own)


def _beside(said: Column, rater: str, columns: Mapping[str, Column], resampling: Resampling) -> dict[str, Any]:
    """One rater: the judge's correlation, the mean of other single raters', and the difference on the same outputs.

    Outputs count that the judge, this rater and another one rated.
    """
    table = as_table([said, columns[rater], *(own for name, own in columns.items() if name != rater)])
    there = ~np.isnan(table)
    used = np.zeros(len(table), dtype=np.bool_)
    of_judge: list[tuple[Kernel, NDArray[np.bool_]]] = []
    of_others: list[tuple[Kernel, NDArray[np.bool_]]] = []
    for other in range(2, table.shape[1]):
        all_three = there[:, 0] & there[:, 1] & there[:, other]
        judge, own, theirs = (table[all_three, place] for place in (0, 1, other))
        if len(own) >= FEWEST_TOGETHER and min(np.ptp(each) for each in (judge, own, theirs)) > 0:
            used |= all_three
            of_judge.append((correlation_kernel("spearman", judge, own), all_three))
            of_others.append((correlation_kernel("spearman", theirs, own), all_three))
    n = int(used.sum())
    if not of_judge:
        reason = f"the judge and two raters gave different values to fewer than {FEWEST_TOGETHER} of the same outputs"
        missing = statistic_dict(Statistic(None, n, reason=reason))
        return {"rater": rater, "judge": missing, "others": missing, "difference": missing}
    judge_with, others_with = (
        mean_over_parts([(kernel, mask[used]) for kernel, mask in side]) for side in (of_judge, of_others)
    )
    sampling = affordable(resampling, "spearman", n)
    kernels = [judge_with, others_with, less(judge_with, others_with)]
    names = ("judge", "others", "difference")
    rows = bootstrapped_together(kernels, used, sampling)
    return {"rater": rater} | {name: statistic_dict(each) for name, each in zip(names, rows, strict=True)}


def _pairs(said: Column, columns: Mapping[str, Column], resampling: Resampling) -> list[dict[str, Any]]:
    """Every pair: how much better the judge agrees with the first than with the second, on what both rated."""
    pairs = pairs_together(columns, said)
    # enough swaps that the smallest p-value passes after the adjustment
    sampling = replace(resampling, resamples=max(resampling.resamples, int(2 * len(pairs) / LEVEL)))
    found = [two_sided_difference(columns[other], columns[one], said, sampling) for one, other in pairs]
    adjusted = holm([each.p_value for each in found])
    return [
        {"raters": list(pair), **(difference_dict(each) or {}), "p_holm": p}
        for pair, each, p in zip(pairs, found, adjusted, strict=True)
    ]


def by_rater_rows(found: Mapping[str, Any]) -> Rows:
    """One row a rater, from the ``by_rater`` of a result."""
    return [
        {
            **({"dimension": name} if len(found) > 1 else {}),
            "rater": each["rater"],
            "n": each["judge"]["n"],
            "judge with this rater": Figure.of(each["judge"]),
            "another rater": Figure.of(each["others"]),
            "difference": Figure.of(each["difference"], "+.3f"),
        }
        for name, row in found.items()
        for each in row["raters"]
    ]


def by_rater_lines(found: Mapping[str, Any]) -> list[str]:
    """Say with whom the judge agrees better or worse, beyond noise."""
    lines = []
    for name, row in found.items():
        apart = [each for each in row["pairs"] if each["p_holm"] is not None and each["p_holm"] <= LEVEL]
        said = []
        for each in apart:
            first, second = each["raters"] if each["value"] > 0 else each["raters"][::-1]
            size = Figure.of(each if each["value"] > 0 else _turned(each), "+.3f")
            said.append(f"with {first} more than with {second} ({size})")
        lines.append(
            f"{name}: the judge agrees {'; '.join(said)}"
            if said
            else f"{name}: no rater is shown to be nearer to the judge than another"
        )
        for word, sign in (("less", -1), ("more", 1)):
            others = [each["rater"] for each in row["raters"] if Figure.of(each["difference"]).side == sign]
            if others:
                lines.append(f"{name}: the judge agrees {word} with {', '.join(others)} than another rater does")
    return lines


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """A difference the other way round."""
    low, high = (None if row[end] is None else -row[end] for end in ("high", "low"))
    return {**row, "value": -row["value"], "low": low, "high": high}
