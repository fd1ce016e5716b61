"""The share of outputs that people would pass, from a judge that errs.

Where no output is labelled, the judge's pass rate is corrected by its true positive and true negative rate (Rogan and
Gladen, Am. J. Epidemiology 107, 1978), with the interval of Lang and Reiczigel (Preventive Veterinary Medicine 113,
2014), which takes in that both rates were measured themselves. Where people labelled some of the outputs, these say by how
much the judge is off on the others (prediction-powered inference: Angelopoulos et al., Science 382, 2023; weighted as in
PPI++, arXiv:2311.01453).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from ..prompts.errors import InputError
from .correlation import Column
from .pass_fail import variance_of_mean, wilson, wilson_size
from .resampling import USUAL, Resampling, Statistic, Vector, complete, group_codes

FEWEST_LABELLED = 30
"""Labelled outputs (or documents) below which no rate is made of labelled and unlabelled ones together."""
FEWEST_OF_A_LABEL = 2
"""Nor with fewer outputs that people passed, or failed."""
WEAKEST = 0.1
"""Where the lower end of TPR + TNR - 1 is not above this, a judge is too weak to be corrected."""


@dataclass(frozen=True, slots=True)
class CorrectedPassRate:
    """The share of the outputs that people would pass."""

    method: Literal["rogan_gladen", "ppi"]
    value: float | None
    """In [0, 1]; None where the judge is too weak, or too little is known of it."""
    low: float | None
    high: float | None
    n: int
    """Outputs that the judge has judged."""
    labelled: int
    """Labelled outputs that its errors are known from."""
    reason: str | None = None
    """Why there is no value, or what is odd about it."""


def rogan_gladen(
    pass_rate: Statistic, true_positive_rate: Statistic, true_negative_rate: Statistic, level: float = 0.95
) -> CorrectedPassRate:
    """The judge's pass rate on unlabelled outputs, corrected by its error rates on labelled ones of the same kind.

    Args:
        pass_rate: Of the unlabelled outputs, with the interval of :func:`~.pass_fail.rate`, as both others.
        true_positive_rate: On labelled outputs that were not used to choose the judge.
        true_negative_rate: On the same ones.
        level: Coverage of this interval and those of the three rates.
    """
    n, labelled = pass_rate.n, true_positive_rate.n + true_negative_rate.n

    def without(reason: str) -> CorrectedPassRate:
        return CorrectedPassRate("rogan_gladen", None, None, None, n, labelled, reason)

    if pass_rate.value is None or true_positive_rate.value is None or true_negative_rate.value is None:
        found = (pass_rate, true_positive_rate, true_negative_rate)
        return without(next((each.reason for each in found if each.reason), None) or "a rate of the judge is unknown")
    z = NormalDist().inv_cdf((1 + level) / 2)
    p, sensitivity, specificity = pass_rate.value, true_positive_rate.value, true_negative_rate.value
    known = sensitivity + specificity - 1
    reach = math.hypot(sensitivity - _low(true_positive_rate), specificity - _low(true_negative_rate))
    if known - reach <= WEAKEST:
        return without(
            f"the judge is too weak to be corrected: TPR + TNR - 1 is {known:.2f}, and with {labelled} labelled outputs "
            f"behind it may be as low as {known - reach:.2f}; more than {WEAKEST:g} is needed"
        )
    sizes = [_size(each, level) for each in (pass_rate, true_positive_rate, true_negative_rate)]
    drawn, of_passed, of_failed = sizes[0] + z**2, sizes[1] + 2, sizes[2] + 2
    p_near = (sizes[0] * p + z**2 / 2) / drawn
    sensitivity_near = (sizes[1] * sensitivity + 1) / of_passed
    specificity_near = (sizes[2] * specificity + 1) / of_failed
    slope = sensitivity_near + specificity_near - 1
    centre = (p_near + specificity_near - 1) / slope
    of_sensitivity = sensitivity_near * (1 - sensitivity_near) / of_passed
    of_specificity = specificity_near * (1 - specificity_near) / of_failed
    shift = 2 * z**2 * (centre * of_sensitivity - (1 - centre) * of_specificity)
    variance = p_near * (1 - p_near) / drawn + centre**2 * of_sensitivity + (1 - centre) ** 2 * of_specificity
    width = z * math.sqrt(variance) / slope
    value = (p + specificity - 1) / known
    low, high = _unit(centre + shift - width), _unit(centre + shift + width)
    value, beyond = _unit(value), value
    reason = None
    if beyond != value:
        way = "fewer" if beyond < 0 else "more"
        reason = f"the judge passes even {way} than its errors explain, so the rate is put at {value:g}"
    return CorrectedPassRate("rogan_gladen", value, min(low, value), max(high, value), n, labelled, reason)


def prediction_powered(verdicts: Column, labels: Column, resampling: Resampling = USUAL) -> CorrectedPassRate:
    """The share that people would pass of outputs of which they labelled some, chosen without looking at them.

    The mean label of the labelled outputs, moved by how the judge's verdicts on these differ from those on the others,
    as far as verdicts and labels go together. The interval is Wilson's, of as many labelled outputs as would tell as much;
    near 0 and 1 it holds better than the normal one.

    Args:
        verdicts: The judge's, 1 or 0; None where it has none. Outputs without one are left out.
        labels: People's, 1 or 0; None where there is none.
        resampling: Its groups and level are used; nothing is drawn.

    Raises:
        InputError: The columns do not match.
    """
    (judged,), keep = complete(verdicts)
    every = np.asarray(labels, dtype=np.float64)
    if len(every) != len(keep):
        raise InputError(f"There are {len(keep)} verdicts and {len(every)} labels; give one of each for every output.")
    people = every[keep]
    has_label = ~np.isnan(people)
    codes = np.arange(len(judged)) if resampling.groups is None else group_codes(resampling.groups, keep)
    n, labelled = len(judged), int(has_label.sum())
    units, unlabelled = len(set(codes[has_label])), n - labelled
    wanted, said = people[has_label], judged[has_label]

    def without(reason: str) -> CorrectedPassRate:
        return CorrectedPassRate("ppi", None, None, None, n, labelled, reason)

    rarer = int(min(wanted.sum(), labelled - wanted.sum()))
    if units < FEWEST_LABELLED or rarer < FEWEST_OF_A_LABEL:
        what = "outputs" if resampling.groups is None else "documents"
        return without(
            f"too few labels: {units} labelled {what} ({FEWEST_LABELLED} are needed), {rarer} outputs with the rarer "
            f"label ({FEWEST_OF_A_LABEL})"
        )
    if unlabelled == 0:
        return without("all outputs are labelled")
    others = judged[~has_label]
    weight = _weight(wanted, said, judged, labelled / unlabelled)
    value = float(wanted.mean() + weight * (others.mean() - said.mean()))
    residuals = wanted - weight * said
    variance = variance_of_mean(residuals, codes[has_label])
    variance += weight**2 * variance_of_mean(others, codes[~has_label])
    value = min(max(value, 0.5 / n), 1 - 0.5 / n)
    low, high = wilson(value, min(n, value * (1 - value) / variance) if variance > 0 else n, resampling.level)
    return CorrectedPassRate("ppi", value, low, high, n, labelled)


def _weight(wanted: Vector, said: Vector, judged: Vector, ratio: float) -> float:
    """How far the verdicts are trusted, in [0, 1]: what makes the variance least (PPI++, example 6.1)."""
    spread = float(judged.var())
    if spread == 0:
        return 0.0
    together = float(np.mean((wanted - wanted.mean()) * (said - said.mean())))
    return min(1.0, max(0.0, together / ((1 + ratio) * spread)))


def _size(found: Statistic, level: float) -> float:
    """How many independent items are behind a rate."""
    if found.value is None or found.low is None or found.high is None:
        return float(found.n)
    return wilson_size(found.value, found.low, found.high, level)


def _low(found: Statistic) -> float:
    return 0.0 if found.low is None else found.low


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))
