"""The judge's agreement with people so far, and the number of labels that the acceptance test of ``align`` needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..optimizer.options import AlignOptions
from ..prompts.examples import documents
from ..prompts.formatting import count, percent
from ..prompts.human_feedback import known_ratings
from ..stats.correlation import spearman, statistic_dict
from ..stats.pass_fail import rate
from ..stats.resampling import Resampling, Statistic
from .desk import Desk, majority
from .next_output import JudgeOpinion, Opinions

Column = list[float | None]
MOST_POINTS = 200


def enough_for(desk: Desk, opinions: Opinions | None, gain: float) -> Enough:
    """Estimate how many labels the acceptance test needs, from the labels and the judge's scores so far."""
    people = desk.people()
    known = [each for each in people if each is not None]
    start = None
    if opinions is not None and len(known) >= FEWEST_KNOWN:
        scores = [None if np.isnan(each) else float(each) for each in opinions.judges[0].scores]
        start = spearman(scores, people).value
    return enough(len(known), int(sum(known)), gain=gain, start=start)


def agreement(desk: Desk, opinions: Opinions | None) -> dict[str, Any] | None:
    """Measure the judge's agreement with people's labels; None without a judge, or if no output has both. Intervals
    respect that outputs of one document are not independent.

    ``all`` covers every labelled output. ``random`` covers the outputs that were drawn at random, which stand for all
    outputs. ``passed`` and ``failed`` are the true positive and the true negative rate. ``curve`` is ``all`` after each
    label. ``questions`` covers the questions that people answered.
    """
    if opinions is None:
        return None
    judge, people = opinions.judges[0], desk.people()
    hits = _hits(judge, people)
    seen = [place for place, each in enumerate(hits) if each is not None]
    if not seen:
        return None
    every = np.ones(len(people), dtype=np.bool_)
    drawn = desk.at_random() if len(seen) < len(people) else every
    labels = np.array([np.nan if each is None else each for each in people])
    found = {
        "all": _share(desk, hits, every),
        "random": _share(desk, hits, drawn),
        "passed": _share(desk, hits, labels == 1),
        "failed": _share(desk, hits, labels == 0),
    }
    return {
        "judge": judge.name,
        "threshold": judge.threshold,
        "figures": {name: statistic_dict(each) for name, each in found.items()},
        "curve": _curve(desk, hits),
        "questions": _questions(desk, opinions),
    }


def agreement_line(found: dict[str, Any] | None) -> str | None:
    """Return the agreement in a sentence for a terminal; None if there is no agreement to report."""
    if found is None:
        return None
    every, drawn = found["figures"]["all"], found["figures"]["random"]
    said = f"{found['judge']} agrees with people on {_said(every)} of the {every['n']} labelled outputs"
    if drawn["n"] and drawn["n"] < every["n"]:
        said += f", and on {_said(drawn)} of the {drawn['n']} among them that were drawn at random, which stand for all"
    return said + "."


def _said(row: dict[str, Any]) -> str:
    return f"{percent(row['value'])} [{percent(row['low'])}, {percent(row['high'])}]"


def _hits(judge: JudgeOpinion, people: Column) -> Column:
    return [
        None if wanted is None or np.isnan(said) else float(said == wanted)
        for said, wanted in zip(judge.passed, people, strict=True)
    ]


def _share(desk: Desk, hits: Column, among: NDArray[np.bool_]) -> Statistic:
    kept: Column = [each if place else None for each, place in zip(hits, among, strict=True)]
    return rate(kept, Resampling(documents(desk.asked)))


def _curve(desk: Desk, hits: Column) -> list[list[float | None]]:
    """Return ``[labels, share, low, high]`` as the labels were given here, with at most :data:`MOST_POINTS` points."""
    places = {each.id: place for place, each in enumerate(desk.asked)}
    labelled_places = [places[name] for name in desk.said_first() if hits[places[name]] is not None]
    known, groups = [hits[place] for place in labelled_places], documents(desk.asked)
    labelled_groups = None if groups is None else [groups[place] for place in labelled_places]
    step = max(1, -(-len(labelled_places) // MOST_POINTS))
    points = []
    for n in range(len(labelled_places), 0, -step):
        found = rate(known[:n], Resampling(None if labelled_groups is None else labelled_groups[:n]))
        points.append([n, found.value, found.low, found.high])
    return points[::-1]


def _questions(desk: Desk, opinions: Opinions) -> list[dict[str, Any]]:
    """Return, for each question that people answered, the share of outputs on which the judge gives the same answer."""
    rows = []
    resampling = Resampling(documents(desk.asked))
    entries = desk.entries()
    for column, question in enumerate(opinions.checklist.questions):
        hits: Column = [None] * len(desk.asked)
        for place, example in enumerate(desk.asked):
            answer = opinions.judges[0].answers[place, column]
            theirs = known_ratings(example.human.get(question.id, ()))
            given = [each.human for each in entries.get(example.id, ())]
            theirs += [float(human[question.id]) for human in given if question.id in human]
            wanted = majority(theirs)
            if wanted is not None and not np.isnan(answer):
                hits[place] = float(question.is_good(wanted) == (answer == 1))
        found = rate(hits, resampling)
        if found.n and any(each.id == question.id for each in desk.questions):
            rows.append({"question": question.text, **statistic_dict(found)})
    return rows


POWER = 0.8
"""Probability that a real gain passes the test."""
START = 0.3
"""Assumed Spearman of the judge before the gain, if it is not known."""
ALIKE = 0.5
"""Assumed correlation of the two judges' scores among outputs with the same label."""
BALANCE = (0.1, 0.9)
"""Limits of the pass rate; a rate beyond counts as the nearer limit."""
BEST = 0.98
"""Share of the largest possible Spearman up to which a gain counts as possible."""
FEWEST_KNOWN = 20
"""Number of labels from which on their own pass rate, and the judge's own Spearman, are used."""
_SIZE, _TRIALS, _SEED = 120, 1_000, 42

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Enough:
    """The number of labels that the acceptance test needs, and the assumptions behind it."""

    wanted: int
    """Number of labelled outputs, including those of validation and test."""
    labelled: int
    gain: float
    """The gain to be found, in Spearman."""
    start: float
    pass_rate: float
    has_room: bool = True
    """Whether any judge can be better than the present one by this gain."""

    @property
    def more(self) -> int:
        """Number of labels that are still missing; 0 if no judge can be better by this gain."""
        return max(0, self.wanted - self.labelled) if self.has_room else 0

    @property
    def sentence(self) -> str:
        """The number of labels that are needed, in words."""
        if not self.has_room:
            return (
                f"the judge is so near to people (Spearman {self.start:.2f}) that none can be better by {self.gain:g}"
            )
        how_many = f"{count(self.more, 'more label')} would" if self.more else f"the {self.labelled} labels"
        found = f"find a gain of {self.gain:g} in Spearman in {POWER:.0%} of cases"
        return f"{how_many} let the acceptance test of align {found}"

    @property
    def assumed(self) -> str:
        """The assumptions behind the number."""
        if not self.has_room:
            return "A smaller gain takes more labels: --gain."
        level, (development, validation, _) = _acceptance()
        return (
            f"{self.wanted} in all. Assumed: a judge at Spearman {self.start:.2f}, a pass rate of "
            f"{self.pass_rate:.0%}, the paired test at level {level:g} on the {development + validation:.0%} of the "
            f"labels that align tests learned questions on; for edits of the prompt it has {validation:.0%}, and needs "
            f"{math.ceil(self.wanted * (development + validation) / validation)} labels."
        )


def enough(labelled: int, passed: int, *, gain: float, start: float | None = None) -> Enough:
    """Compute how many labels let the paired one-sided acceptance test find a gain with :data:`POWER`.

    Scores are normal among passed and among failed outputs (the binormal model). They are shifted so that Spearman is
    ``start`` before and ``start + gain`` after, and the two judges' scores are correlated by :data:`ALIKE` within each
    group. The spread of the difference of Spearman is measured on simulated data; it falls with the root of the number
    of examples. The test is :func:`~askance.stats.differences.paired_difference`.

    Of the ``labelled`` outputs, ``passed`` were passed. ``gain`` and ``start`` are in Spearman; ``start`` is that of
    the present judge, if known.
    """
    rate = passed / labelled if labelled >= FEWEST_KNOWN else 0.5
    rate = min(max(rate, BALANCE[0]), BALANCE[1])
    # a share of the Spearman of a judge that separates all passed from all failed
    ceiling = BEST * math.sqrt(3 * rate * (1 - rate))
    before = max(0.0, START if start is None else round(start, 2))
    if before + gain > ceiling:
        return Enough(0, labelled, gain, before, rate, has_room=False)
    level, (development, validation, _) = _acceptance()
    # the rate (and the Spearman above) are rounded, so that the cache of _spread is hit more often
    spread = _spread(round(rate, 2), shift_of(before, rate), shift_of(before + gain, rate))
    reach = _NORMAL.inv_cdf(1 - level) + _NORMAL.inv_cdf(POWER)
    tested = math.ceil((reach * spread / gain) ** 2)
    return Enough(math.ceil(tested / (development + validation)), labelled, gain, before, rate)


def _acceptance() -> tuple[float, tuple[float, float, float]]:
    """Return the default level and split of ``align``."""
    defaults = AlignOptions.model_fields
    return defaults["alpha"].default, defaults["split"].default


def shift_of(spearman: float, pass_rate: float) -> float:
    """Return the distance, in standard deviations, between the mean scores of passed and failed outputs that gives this
    Spearman with the labels."""
    # with a label, Spearman is (2 AUC - 1) √(3 p (1 - p)), and AUC is Φ(shift / √2)
    area = (1 + spearman / math.sqrt(3 * pass_rate * (1 - pass_rate))) / 2
    return math.sqrt(2) * _NORMAL.inv_cdf(min(max(area, 1e-6), 1 - 1e-6))


@cache
def _spread(rate: float, before: float, after: float) -> float:
    """Simulate the standard deviation of the difference of Spearman on n examples, times √n."""
    rng = np.random.default_rng(_SEED)
    labels = np.zeros(_SIZE)
    labels[: max(1, round(rate * _SIZE))] = 1
    shared = rng.standard_normal((_TRIALS, _SIZE))
    values = []
    for shift in (before, after):
        own = rng.standard_normal((_TRIALS, _SIZE))
        values.append(_spearman(shift * labels + math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own, labels))
    return float((values[1] - values[0]).std() * math.sqrt(_SIZE))


def _spearman(scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman of each row of scores with the labels; scores have no ties. Shapes (trials, n) and (n,)."""
    ranks = np.argsort(np.argsort(scores, axis=1), axis=1).astype(np.float64)
    ranks -= ranks.mean(axis=1, keepdims=True)
    centred = labels - labels.mean()
    found: NDArray[np.float64] = ranks @ centred / np.sqrt((ranks**2).sum(axis=1) * (centred**2).sum())
    return found
