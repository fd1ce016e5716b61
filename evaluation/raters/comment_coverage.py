"""Comment coverage: the share of people's comments whose output has a fault by some criterion of a judge.

An area under the curve says how well outputs are ranked, and not whether the judge sees what people complain about. One
vague question that speaks against every output would cover all comments. So the share is compared with chance: the
share of all outputs in which a criterion finds a fault. Chance is the mean over all permutations of the outputs, in
which the criteria find as many faults, and as many together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from ...prompts.formatting import number_text, signed
from ...stats.correlation import statistic_dict
from ...stats.resampling import Resampling, Statistic, bootstrapped_together, without_false_certainty
from ..calibration_fit import least_accepted

if TYPE_CHECKING:
    from ...prompts.checklist import Question
    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict
    from ...stats.resampling import Vector, Weights
    from ..scoring import Targets

FAULT = 0.5
"""P(good), as the judge reads it, below which a criterion finds a fault in an output."""


@dataclass(frozen=True)
class CommentCoverage:
    """Shares of the comments on rejected outputs, each in [0, 1], with 95 % intervals."""

    seen: Statistic
    """Share of the comments whose output has a fault by some criterion; ``n`` counts the comments."""
    chance: float | None
    """Share of comments if as many faults were spread over the outputs at random."""
    gain: Statistic
    """``seen`` less ``chance``."""
    criteria: int | None = None
    """Number of criteria, if it is not said elsewhere."""

    def to_dict(self) -> dict[str, Any]:
        """Return ``comment_coverage`` of ``result.json``."""
        row = statistic_dict(self.seen) | {"chance": self.chance, "gain": statistic_dict(self.gain)}
        return row if self.criteria is None else row | {"criteria": self.criteria}


def comment_coverage(
    examples: Sequence[Example],
    found: Mapping[str, bool],
    targets: Targets,
    resampling: Resampling,
    criteria: int | None = None,
) -> CommentCoverage | None:
    """Return the coverage of the comments on held-out outputs; None where no comment is on a rejected one.

    Args:
        examples: Examples that taught the criteria nothing.
        found: Whether some criterion finds a fault, by example id; an example that is not there is left out.
        targets: People's scores. An output whose score is below the mean is rejected.
        resampling: Draws the outputs, or whole documents, of ``examples`` for the intervals.
        criteria: Number of criteria, if it is to be reported.
    """
    wanted = {each.id: targets.overall(each.id) for each in examples}
    known = [value for value in wanted.values() if value is not None]
    least = least_accepted(fmean(known)) if known else 0.0
    keep = np.array([each.id in found and wanted[each.id] is not None for each in examples], dtype=bool)
    kept = [each for each, is_kept in zip(examples, keep, strict=True) if is_kept]
    comments = np.array([len(each.comment) if (wanted[each.id] or 0.0) < least else 0 for each in kept], dtype=float)
    if not len(kept) or not comments.sum():
        return None
    faults = np.array([found[each.id] for each in kept], dtype=float)

    def seen(drawn: Weights) -> Vector:
        with np.errstate(invalid="ignore"):  # a resample without a comment is undefined
            share: Vector = ((comments * faults) @ drawn) / (comments @ drawn)
        return share

    def gain(drawn: Weights) -> Vector:
        difference: Vector = seen(drawn) - (faults @ drawn) / drawn.sum(axis=0)
        return difference

    n = int(comments.sum())
    share, more = bootstrapped_together([seen, gain], keep, resampling)
    return CommentCoverage(_of(share, n), float(faults.mean()), _of(more, n), criteria)


def faults_found(verdicts: Iterable[Verdict], criteria: Mapping[str, Question]) -> dict[str, bool]:
    """Return by example whether some of these criteria finds a fault.

    Replicates of a criterion are averaged. An example is left out where no fault is found and an answer is missing.
    """
    answers: defaultdict[str, defaultdict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for each in verdicts:
        if each.question in criteria:
            value = criteria[each.question].p_good(each.score(soft=each.p_yes is not None))
            answers[each.example][each.question].append(value)
    found: dict[str, bool] = {}
    for example, rows in answers.items():
        means = [None if None in row else fmean(value for value in row if value is not None) for row in rows.values()]
        if any(mean is not None and mean < FAULT for mean in means):
            found[example] = True
        elif None not in means and len(means) == len(criteria):
            found[example] = False
    return found


def coverage_said(row: Mapping[str, Any]) -> str:
    """Return one row of :meth:`CommentCoverage.to_dict` as a sentence."""
    if row["value"] is None:
        return f"Comments seen by what was learned: not known, {row['reason']}."
    gain = row["gain"]
    more = f"{signed(gain['value'])}" if gain["low"] is None else number_text(gain["value"], gain["low"], gain["high"])
    return (
        f"Of {row['n']} comments on rejected test outputs, {row['value']:.0%} are on an output in which a criterion finds "
        f"a fault, {row['chance']:.0%} if faults were found at random: gain {more}."
    )


def _of(found: Statistic, comments: int) -> Statistic:
    found = without_false_certainty(found, "a fault is found for all comments or for none")
    return Statistic(found.value, comments, found.low, found.high, found.reason)


def covered_criteria(questions: Iterable[Question], ids: Collection[str] | None = None) -> dict[str, Question]:
    """Return the criteria with a weight, by id; if ``ids`` are given, these only."""
    return {each.id: each for each in questions if each.weight > 0 and (ids is None or each.id in ids)}
