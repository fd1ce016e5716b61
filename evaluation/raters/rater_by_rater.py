"""Raters one by one: the judge's agreement with each (``--by-rater``), and one label from several raters.

The judge is compared with each rater as the raters are with each other. Several raters' labels are combined by
majority, by mean, or by a model of the raters (METHOD part 7). The rule is chosen by predicting a rater who is left
out: the rule combines the other raters' ratings, and the result is correlated with this rater's. The mean stays unless
another rule is better beyond noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...prompts.errors import InputError
from ...prompts.formatting import Figure
from ...prompts.human_feedback import known_ratings
from ...prompts.raters import rater_columns
from ...stats.agreement import FEWEST_TOGETHER, as_table, mean_over_parts
from ...stats.correlation import affordable, correlation_kernel, statistic_dict
from ...stats.differences import difference_dict, holm, two_sided_difference
from ...stats.resampling import Kernel, Resampling, Statistic, bootstrapped, bootstrapped_together, fields_dict, less
from .agreement import Ratings, pairs_together

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
    """Return by dimension the judge compared with each rater, and pairs of raters by their nearness to the judge.

    ``scores``, ``examples`` and the groups of ``resampling`` are in the same order. With ``lower_is_better`` the sign
    of ratings is turned, except of labels. Dimensions with one rater are left out.
    """
    found = {}
    for dimension in targets.dimensions:
        columns: Ratings = dict(rater_columns(examples, dimension))
        if lower_is_better and not _are_labels(columns):
            columns = {name: [None if each is None else -each for each in own] for name, own in columns.items()}
        if len(columns) > 1:
            said = [targets.dimension_score(each, dimension) for each in scores]
            raters = [_beside(said, name, columns, resampling) for name in columns]
            found[dimension] = {"raters": raters, "pairs": _pairs(said, columns, resampling)}
    return found


def _are_labels(columns: Ratings) -> bool:
    return any(isinstance(each, bool) for own in columns.values() for each in own)


def _beside(said: Column, rater: str, columns: Ratings, resampling: Resampling) -> dict[str, Any]:
    """Return a rater's correlation with the judge, its mean correlation with other raters, and their difference.

    An output counts if the judge, this rater and another one rated it.
    """
    table = as_table([said, columns[rater], *(ratings for name, ratings in columns.items() if name != rater)])
    is_rated = ~np.isnan(table)
    used = np.zeros(len(table), dtype=np.bool_)
    judge_parts: list[tuple[Kernel, NDArray[np.bool_]]] = []
    other_parts: list[tuple[Kernel, NDArray[np.bool_]]] = []
    for other in range(2, table.shape[1]):
        rated_by_all = is_rated[:, 0] & is_rated[:, 1] & is_rated[:, other]
        judge, ratings, other_ratings = (table[rated_by_all, place] for place in (0, 1, other))
        if len(ratings) >= FEWEST_TOGETHER and min(np.ptp(each) for each in (judge, ratings, other_ratings)) > 0:
            used |= rated_by_all
            judge_parts.append((correlation_kernel("spearman", judge, ratings), rated_by_all))
            other_parts.append((correlation_kernel("spearman", other_ratings, ratings), rated_by_all))
    n = int(used.sum())
    if not judge_parts:
        reason = f"the judge and two raters gave different values to fewer than {FEWEST_TOGETHER} of the same outputs"
        missing = statistic_dict(Statistic(None, n, reason=reason))
        return {"rater": rater, "judge": missing, "others": missing, "difference": missing}
    judge_kernel, others_kernel = (
        mean_over_parts([(kernel, mask[used]) for kernel, mask in side]) for side in (judge_parts, other_parts)
    )
    sampling = affordable(resampling, "spearman", n)
    kernels = [judge_kernel, others_kernel, less(judge_kernel, others_kernel)]
    names = ("judge", "others", "difference")
    rows = bootstrapped_together(kernels, used, sampling)
    return {"rater": rater} | {name: statistic_dict(each) for name, each in zip(names, rows, strict=True)}


def _pairs(said: Column, columns: Ratings, resampling: Resampling) -> list[dict[str, Any]]:
    """Return for each pair how much better the judge agrees with the first than with the second, on common outputs."""
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
    """Return one row per rater, from the ``by_rater`` of a result."""
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
        comparisons = []
        for each in apart:
            first, second = each["raters"] if each["value"] > 0 else each["raters"][::-1]
            size = Figure.of(each if each["value"] > 0 else _turned(each), "+.3f")
            comparisons.append(f"with {first} more than with {second} ({size})")
        lines.append(
            f"{name}: the judge agrees {'; '.join(comparisons)}"
            if comparisons
            else f"{name}: no rater is shown to be nearer to the judge than another"
        )
        for word, sign in (("less", -1), ("more", 1)):
            others = [each["rater"] for each in row["raters"] if Figure.of(each["difference"]).side == sign]
            if others:
                lines.append(f"{name}: the judge agrees {word} with {', '.join(others)} than another rater does")
    return lines


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the sign of a difference and its interval."""
    low, high = (None if row[end] is None else -row[end] for end in ("high", "low"))
    return {**row, "value": -row["value"], "low": low, "high": high}


Rule = Literal["mean", "majority", "model"]
RULES: tuple[Rule, ...] = ("mean", "majority", "model")
MOST_VALUES = 11
"""Most different ratings with which the model of raters is tried."""
LEAST = 0.01
"""Gain in Spearman below which the mean stays."""
_ROUNDS = 50
_SHARED = 5.0
"""Weight, in ratings, of all raters' common rates in the rates of one rater."""


def combine(columns: Ratings, rule: Rule) -> list[float | None]:
    """Return one combined rating of each output, on the scale of the ratings; None where nobody rated it.

    ``majority`` is the rating that most raters gave, the mean of those that tie. ``model`` is the expected rating under
    Dawid and Skene's model (Applied Statistics 28, 1979): each rater takes a true step for others at rates of its own.
    """
    table = as_table(list(columns.values()))
    if rule == "model":
        return _by_model(table)
    found: list[float | None] = []
    for row in zip(*columns.values(), strict=True):
        known = known_ratings(row)
        if rule == "majority" and known:
            times = Counter(known)
            known = [rating for rating, number in times.items() if number == max(times.values())]
        found.append(sum(known) / len(known) if known else None)
    return found


def _by_model(table: NDArray[np.float64]) -> list[float | None]:
    """Fit Dawid and Skene's model by EM; a rater's rates are drawn towards the common rates of all raters."""
    values = np.unique(table[~np.isnan(table)])
    votes = (table[:, :, np.newaxis] == values).astype(np.float64)  # outputs, raters, steps
    rated = votes.sum(axis=(1, 2)) > 0
    belief = votes.sum(axis=1) + 1e-3
    belief /= belief.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        confused = np.einsum("ik,irl->rkl", belief[rated], votes[rated])
        # smoothed, and most of all towards the true step
        together = confused.sum(axis=0) + np.eye(len(values)) + 0.1
        together /= together.sum(axis=1, keepdims=True)
        rates = confused + _SHARED * together
        rates /= rates.sum(axis=2, keepdims=True)
        likely = np.log(belief[rated].mean(axis=0) + 1e-9) + np.einsum("irl,rkl->ik", votes, np.log(rates))
        belief = np.exp(likely - likely.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
    return [float(mean) if known else None for mean, known in zip(belief @ values, rated, strict=True)]


@dataclass(frozen=True)
class Combination:
    """The rule that combines the raters of one dimension, and why it was chosen."""

    rule: Rule
    reason: str
    left_out: Mapping[Rule, Statistic]
    """Spearman's correlation with a rater left out, by rule, the mean over raters; empty if no rule was tried."""

    def to_dict(self) -> dict[str, Any]:
        """Return the row for ``result.json``."""
        return fields_dict(self)


def choose(columns: Ratings, resampling: Resampling) -> Combination:
    """Choose the rule that best predicts a rater left out; the mean unless another is better beyond noise."""
    raters = {name: list(each) for name, each in columns.items()}
    most = max((len(known_ratings(row)) for row in zip(*raters.values(), strict=True)), default=0)
    if most < 3:
        return Combination("mean", "no output has three raters, so no rule can be told from another", {})
    values = {each for column in raters.values() for each in known_ratings(column)}
    rules = RULES if len(values) <= MOST_VALUES else RULES[:2]
    parts: dict[Rule, list[tuple[Kernel, NDArray[np.bool_]]]] = {rule: [] for rule in rules}
    for rater, own in raters.items():
        others = {name: each for name, each in raters.items() if name != rater}
        said = {rule: as_table([own, combine(others, rule)]) for rule in rules}
        has_both = np.logical_and(*np.isfinite(said["mean"]).T)
        cut = {rule: each[has_both] for rule, each in said.items()}
        if has_both.sum() >= FEWEST_TOGETHER and all(np.ptp(each, axis=0).min() > 0 for each in cut.values()):
            for rule, each in cut.items():
                parts[rule].append((correlation_kernel("spearman", each[:, 0], each[:, 1]), has_both))
    if not parts["mean"]:
        return Combination("mean", f"no rater rated {FEWEST_TOGETHER} outputs that others rated too", {})
    used = np.logical_or.reduce([mask for _, mask in parts["mean"]])
    kernels = {rule: mean_over_parts([(each, mask[used]) for each, mask in own]) for rule, own in parts.items()}
    found = {rule: bootstrapped(kernel, used, resampling) for rule, kernel in kernels.items()}
    gains = {
        rule: bootstrapped(less(kernel, kernels["mean"]), used, resampling)
        for rule, kernel in kernels.items()
        if rule != "mean"
    }
    better = {rule: each for rule, each in gains.items() if (each.value or 0) >= LEAST and (each.low or 0) > 0}
    if not better:
        return Combination("mean", f"no other rule predicts a rater left out better by {LEAST:g}, beyond noise", found)
    best = max(better, key=lambda rule: better[rule].value or 0.0)
    gain = Figure.of(better[best], "+.3f")
    return Combination(best, f"it predicts a rater left out better than the mean: {gain}", found)


def combined_ratings(examples: Sequence[Example], rules: Mapping[str, Rule]) -> dict[str, dict[str, float]]:
    """Return the combined rating of rated examples, by dimension and example id. Dimensions whose rule is the mean are
    left out."""
    found = {}
    for dimension, rule in rules.items():
        if rule != "mean":
            ratings = combine(rater_columns(examples, dimension), rule)
            found[dimension] = {
                each.id: rating for each, rating in zip(examples, ratings, strict=True) if rating is not None
            }
    return found
