"""Fit a calibration: for each question a threshold on P(good), Platt scaling, or a scaling by accepted outputs.

P(good) is P(yes), and P(no) for a question that looks for a fault (``good: no``). Calibrations are the cheap rivals of
a prompt update: a judge that is only too severe or too lenient needs a number, which costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError, did_you_mean
from ..prompts.examples import documents
from ..stats.resampling import Vector, constant_reason, group_codes
from .calibration import Calibration, Method, QuestionCalibration, logit, mean_of_others, replicates, sigmoid
from .scoring import complete_mean
from .verdict_table import only_judge

if TYPE_CHECKING:
    from ..prompts.checklist import Checklist, Question
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict
    from .scoring import Targets


Codes = NDArray[np.intp]

FEWEST = 8
"""Fewest examples on which a threshold, Platt scaling or a lean is fitted."""
SMALLER_SIDE = 3
"""Fewest examples, all of different documents, on each side of a threshold. On UniEval's scores against people's (five
questions, 12 development examples, 60 splits) held-out Spearman was .436, .444 and .452 with 1, 2 and 3."""
CHANCE = 0.1
"""Largest share of shuffled scores that may be separated as well as the real ones. So often the threshold of an
uninformative question moves. In the same trial 0.2 gave .461 and 1 gave .469; from 30 examples on all levels gave the
same."""
SHUFFLES = 200
_SEED = 42
RIDGE = 1.0
"""Weight of the prior: slope ~ N(1, 1/RIDGE), shift ~ N(0, 1/RIDGE), where an example counts as one trial. In the same
trial the held-out cross-entropy was lowest at 1 (of .01 to 10) with 12 and 30 examples, and no longer mattered with 80.
"""
FEWEST_ACCEPTED = 4
"""Fewest accepted outputs from which a centre and a spread are taken."""
LEAST_SPREAD = 0.3
"""Least spread, in log-odds: a question with equal answers on all accepted outputs is not infinitely sharp."""
MANY = 20
"""Number of accepted outputs from which some count as accepted by mistake."""
NORMAL = 1.4826
"""Standard deviation of a normal distribution, in units of its median absolute deviation."""
OUTSTANDING = 2.5
"""Deviations below the centre of the accepted outputs at which an output counts as half bad. The odds are even there
for a fault that one output in twenty has and that raises a question's log-odds by two deviations (1 + log(19)/2)."""
STEEPNESS = 2.0
"""Log-odds of being fine per deviation: the value between two normal distributions, for a fault as above."""
SHRUNK_BY = 5.0
"""Weight, in accepted outputs, of the prior that a question leans on no other question."""
MOST_LEANING = 1.5
_ROUNDING = 1e-9


def _fit(
    method: Method,
    verdicts: Iterable[Verdict],
    examples: Sequence[Example],
    checklist: Checklist,
    targets: Targets,
    *,
    leans: bool = True,
) -> Calibration:
    """Fit each question's P(good) to the wanted scores of its dimension.

    The verdicts are one judge's. Replicates are averaged, and verdicts on other examples are ignored. If ``overall`` is
    the only wanted dimension, every question is fitted to it. ``targets`` must know every example. Without ``leans``,
    ``accepted`` reads each question alone. Raises InputError if there are no verdicts, they are by several judges, or
    one answers a question that is not asked.
    """
    ids = [example.id for example in examples]
    groups = documents(examples)
    codes = np.arange(len(ids)) if groups is None else group_codes(groups, np.ones(len(ids), dtype=bool))
    chosen = set(ids)
    measured = {each.id for each in checklist.measures}  # which have their own curves
    mine = [verdict for verdict in verdicts if verdict.example in chosen and verdict.question not in measured]
    model, prompt = _judge(mine, checklist)
    criteria = (*checklist.asked, *checklist.checks)
    answers = _mean_answers(mine, criteria, ids)
    fits = {}
    for place, question in enumerate(criteria):
        dimension = "overall" if targets.dimensions == ("overall",) else question.dimension
        wanted = np.array([targets.wanted[example].get(dimension) for example in ids], dtype=np.float64)
        rated = wanted[~np.isnan(wanted)]
        mean_rating = float(rated.mean()) if len(rated) else np.nan
        has_both = ~np.isnan(answers[place]) & ~np.isnan(wanted)
        beside = [logit(each[has_both]) for each in np.delete(answers, place, axis=0)]
        others = mean_of_others(beside) if beside and leans else np.full(np.count_nonzero(has_both), np.nan)
        p_good = 1.0 - answers[place, has_both] if question.is_fault else answers[place, has_both]
        others = -others if question.is_fault else others
        fit = _ONE[method](_Column(p_good, wanted[has_both], mean_rating, others, dimension, codes[has_both]))
        fits[question.id] = _of_fault(fit) if question.is_fault else fit
    return Calibration(method=method, model=model, prompt=prompt, target=targets.kind, n=len(ids), questions=fits)


def _mean_answers(verdicts: Sequence[Verdict], criteria: Sequence[Question], ids: Sequence[str]) -> NDArray[np.float64]:
    """Return the mean P(yes) over replicates, shape (questions, examples); NaN if one is missing."""
    answers = replicates(verdicts)
    rows = [[complete_mean(answers.get((name, each.id), [])) for name in ids] for each in criteria]
    return np.array(rows, dtype=np.float64).reshape(len(criteria), len(ids))


@dataclass(frozen=True, slots=True)
class _Column:
    """Data that a question is fitted on; vectors of shape (n,), one number for each example with a verdict and wanted
    score."""

    p_good: Vector
    wanted: Vector
    usual: float
    """Mean wanted score of all examples, those without a verdict among them; NaN where nobody rated any."""
    others: Vector
    """Mean log-odds of yes to all other questions, or of no where no is the good answer; NaN where one is missing."""
    dimension: str
    codes: Codes
    """Number of each example's document."""


def _of_fault(fit: QuestionCalibration) -> QuestionCalibration:
    """Mark a fit on P(good) as that of a question that looks for a fault."""
    reason = fit.reason and fit.reason.replace("of yes", "of no")
    return fit.model_copy(update={"good": "no", "reason": reason})


def _threshold(column: _Column) -> QuestionCalibration:
    """Fit the threshold on P(good) whose answers correlate best with the wanted scores.

    It stays at 0.5, with a reason, if no threshold is better than a coin. That is so if P(good) or the wanted scores
    are constant, there are fewer than 8 examples, or fewer than 3 on one side, every threshold runs against the wanted
    scores, or shuffled scores are separated as well in more than one of ten trials. These trials do not take examples
    of one document for independent.
    """
    p_good, wanted, dimension = column.p_good, column.wanted, column.dimension
    n = len(p_good)

    def kept(reason: str) -> QuestionCalibration:
        return QuestionCalibration(threshold=0.5, n=n, reason=reason)

    if reason := _too_little(p_good, wanted, dimension):
        return kept(reason)
    for values, name in ((p_good, "probabilities of yes"), (wanted, f"wanted scores on '{dimension}'")):
        if reason := constant_reason(values, name):
            return kept(reason)
    cut = best_cut(p_good, wanted, column.codes)
    if cut is None:
        what = "examples" if len(set(column.codes)) == n else "examples, of as many documents,"
        return kept(f"no threshold leaves {SMALLER_SIDE} of the {n} {what} on either side")
    if cut.correlation <= 0:
        return kept("the answers run against the wanted scores at every threshold")
    chance = chance_of_cut(p_good, wanted, cut, column.codes)
    if chance > CHANCE:
        return kept(
            f"no threshold is better than a coin: the best reaches a correlation of {cut.correlation:.2f}, as shuffled "
            f"scores do in {chance:.0%} of trials"
        )
    return QuestionCalibration(threshold=cut.threshold, correlation=cut.correlation, n=n)


def _platt(column: _Column) -> QuestionCalibration:
    """Fit p' = sigmoid(a·logit(p) + b), a >= 0, by cross-entropy with the wanted scores as soft labels.

    With fewer than 8 examples a question keeps a = 1 and b = 0. The map is monotone, so with one question Spearman
    cannot change (unless a is 0, because the judge runs against the wanted scores), but errors can. With several
    questions their relative weights change.
    """
    p_good, wanted, dimension = column.p_good, column.wanted, column.dimension
    n = len(p_good)
    if reason := _too_little(p_good, wanted, dimension):
        return QuestionCalibration(slope=1.0, shift=0.0, n=n, reason=reason)
    slope, shift = platt(p_good, wanted)
    reason = None
    if np.ptp(logit(p_good)) == 0:
        reason = f"the probabilities of yes are constant (all {p_good[0]:.6g}), so only the shift is fitted"
    elif slope == 0:
        reason = (
            "the probability of yes runs against the wanted scores, so the question gives their mean and ranks nothing"
        )
    return QuestionCalibration(slope=slope, shift=shift, n=n, reason=reason)


def _accepted(column: _Column) -> QuestionCalibration:
    """Fit p' = sigmoid(a·z + b), a > 0, such that .5 lies 2.5 deviations below the accepted centre.

    z is logit P(good) less its lean on the other questions: the slope on their mean
    (:func:`~.calibration.mean_of_others`) among accepted outputs. An output is accepted if its wanted score is at least
    the mean one of all examples. Centre and spread are those of z on accepted outputs. So an answer counts only if it
    stands out downwards from the answers on accepted outputs: a question that looks for one fault among many is no
    reason to praise an output that lacks it. Unlike Platt's, the slope does not shrink if a fault is rare. With fewer
    than 4 accepted outputs a question keeps a = 1, b = 0.
    """
    p_good, wanted, dimension = column.p_good, column.wanted, column.dimension
    fine = wanted >= least_accepted(column.usual)
    if (few := np.count_nonzero(fine)) < FEWEST_ACCEPTED:
        reason = f"only {few} accepted outputs have a verdict and a wanted score on '{dimension}'"
        return QuestionCalibration(
            slope=1.0, shift=0.0, n=len(p_good), reason=f"{reason}; {FEWEST_ACCEPTED} are needed"
        )
    values, others = logit(p_good)[fine], column.others[fine]
    lean = leaning(values, others)
    centre, spread = centre_and_spread((values - lean * others)[~np.isnan(others)] if lean else values)
    slope = STEEPNESS / spread
    return QuestionCalibration(
        slope=slope, shift=STEEPNESS * OUTSTANDING - slope * centre, lean=lean or None, n=len(p_good)
    )


_ONE: dict[Method, Callable[[_Column], QuestionCalibration]] = {
    "thresholds": _threshold,
    "platt": _platt,
    "accepted": _accepted,
}
FITS = {method: partial(_fit, method) for method in _ONE}
"""Fitting functions by method; each takes verdicts, examples, checklist and targets."""
fit_thresholds, fit_platt, fit_accepted = FITS.values()


def least_accepted(usual: float) -> float:
    """Return the lowest wanted score of an accepted output: the mean, less a rounding error that would matter if all
    scores are equal."""
    return usual - _ROUNDING


def leaning(values: Vector, others: Vector) -> float:
    """Return the least-squares slope of ``values`` on ``others``, shrunk towards 0, in [0, 1.5]; 0 below 8 examples.

    Both are log-odds on accepted outputs: of a question, and the mean of all others (NaN where not known).
    """
    known = ~np.isnan(others)
    values, others = values[known], others[known]
    if len(values) < FEWEST:
        return 0.0
    spread = others - others.mean()
    scale = float(spread @ spread) * (1 + SHRUNK_BY / len(values))
    return float(np.clip(spread @ values / scale, 0.0, MOST_LEANING)) if scale > 0 else 0.0


def centre_and_spread(fine: Vector) -> tuple[float, float]:
    """Return centre and spread (0.3 at least) of a question's log-odds on two accepted outputs or more.

    From 20 outputs on these are the median and the median absolute deviation (scaled as the standard deviation of a
    normal distribution), else mean and standard deviation.
    """
    # of few outputs mean and standard deviation are better: a median absolute deviation of eight is off by .4 of itself
    if len(fine) < MANY:
        return float(fine.mean()), max(float(fine.std(ddof=1)), LEAST_SPREAD)
    # some of many outputs are accepted by mistake, and one with the fault would blow up a standard deviation
    centre = float(np.median(fine))
    return centre, max(NORMAL * float(np.median(np.abs(fine - centre))), LEAST_SPREAD)


def _too_little(p_good: Vector, wanted: Vector, dimension: str) -> str | None:
    if len(p_good) >= FEWEST:
        return None
    return f"only {len(p_good)} examples have a verdict and a wanted score on '{dimension}'; {FEWEST} are needed"


def _judge(verdicts: Sequence[Verdict], checklist: Checklist) -> tuple[str, str]:
    asked = {question.id for question in checklist.questions}
    for verdict in verdicts:
        if verdict.question not in asked:
            raise InputError(
                f"A verdict on '{verdict.example}' answers '{verdict.question}', which the checklist does not ask."
                f"{did_you_mean(verdict.question, asked)}"
            )
    return only_judge(verdicts)


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold, and how well it separates."""

    threshold: float
    """P(good) above which the answer is the good one; lies between two observed values."""
    correlation: float
    """Pearson's correlation of 1[P(good) > threshold] with the wanted scores (point-biserial)."""


def best_cut(p_good: Vector, wanted: Vector, codes: Codes | None = None) -> Cut | None:
    """Return the threshold whose answers correlate best with the wanted scores; among equals the one closest to 0.5.

    ``codes`` are the numbers of the examples' documents, if several share one. None if no threshold leaves enough
    examples on both sides, or the wanted scores are constant.
    """
    order, ends = _cuts(p_good, codes)
    if not len(ends) or constant_reason(wanted, "wanted scores"):
        return None
    found = _correlations(wanted[order][:, None], ends)[:, 0]
    sorted_p = p_good[order]
    thresholds = _between(sorted_p[ends], sorted_p[ends + 1])
    best = np.flatnonzero(found >= found.max() - 1e-12)
    chosen = best[np.argmin(np.abs(thresholds[best] - 0.5))]
    return Cut(float(thresholds[chosen]), float(found[chosen]))


def chance_of_cut(p_good: Vector, wanted: Vector, cut: Cut, codes: Codes | None = None) -> float:
    """Return the share of shuffled scores, in (0, 1], that some threshold separates as well as ``cut`` does here.

    It is the p-value of a permutation test of the maximum, with 200 shuffles. If several examples share a document, the
    deviations of its scores from the mean change sign together instead.
    """
    order, ends = _cuts(p_good, codes)
    chance = np.random.default_rng(_SEED)
    if codes is None or len(set(codes)) == len(codes):
        shuffled = chance.permuted(np.tile(wanted, (SHUFFLES, 1)), axis=1).T
    else:
        # not shuffled: examples of one document are alike and tell no more than one
        signs = chance.choice([-1.0, 1.0], (codes.max() + 1, SHUFFLES))
        shuffled = (signs[codes] * (wanted - wanted.mean())[:, None])[order]
    best = _correlations(shuffled, ends).max(axis=0)
    return float((1 + np.count_nonzero(best >= cut.correlation - 1e-12)) / (1 + SHUFFLES))


def _cuts(p_good: Vector, codes: Codes | None) -> tuple[Codes, Codes]:
    """Return the order of the values, and the last place below each allowed threshold."""
    order = np.argsort(p_good, kind="stable")
    ends = np.flatnonzero(np.diff(p_good[order]) > 0)
    mine = order if codes is None else codes[order]
    below, above = _so_far(mine)[ends], _so_far(mine[::-1])[::-1][ends + 1]
    return order, ends[(below >= SMALLER_SIDE) & (above >= SMALLER_SIDE)]


def _so_far(codes: Codes) -> Codes:
    """Count the different codes up to each place."""
    is_first = np.zeros(len(codes), dtype=np.intp)
    is_first[np.unique(codes, return_index=True)[1]] = 1
    return np.cumsum(is_first)


def _correlations(wanted: NDArray[np.float64], ends: NDArray[np.intp]) -> NDArray[np.float64]:
    """Correlation of the wanted scores, sorted by P(good), shape (n, columns), with each cut; shape (cuts, columns)."""
    n = len(wanted)
    centred = wanted - wanted.mean(axis=0)
    above = -np.cumsum(centred, axis=0)[ends]  # the sum over the examples above the threshold
    below = (ends + 1.0)[:, None]
    spread = np.sqrt(below * (n - below) / n * np.sum(centred**2, axis=0))
    found: NDArray[np.float64] = np.clip(above / spread, -1.0, 1.0)  # rounding may pass 1
    return found


def _between(low: Vector, high: Vector) -> Vector:
    """A number t with low <= t < high: the middle, but for neighbouring floats."""
    middle = low + (high - low) / 2
    return np.where(middle < high, middle, low)


def platt(p_good: Vector, wanted: Vector, ridge: float = RIDGE) -> tuple[float, float]:
    """Slope a >= 0 and shift b of p' = sigmoid(a·logit(p) + b).

    They minimise the cross-entropy with the wanted scores as soft labels, summed over the examples, plus ridge/2·((a -
    1)² + b²); Platt 1999 has no such prior. The sum is convex. A constant P(good) says nothing about the slope, which
    then stays 1.
    """
    from scipy.optimize import minimize

    z = logit(p_good)
    prior = np.array([1.0, 0.0])

    def loss(at: Vector) -> tuple[float, Vector]:
        x, off = at[0] * z + at[1], at - prior
        missed = sigmoid(x) - wanted
        height = np.sum(np.logaddexp(0.0, x) - wanted * x) + ridge / 2 * off @ off
        return float(height), np.array([missed @ z, missed.sum()]) + ridge * off

    slope = (0.0, None) if np.ptp(z) > 0 else (1.0, 1.0)
    exact = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000}
    found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=[slope, (None, None)], options=exact)
    return float(found.x[0]), float(found.x[1])
