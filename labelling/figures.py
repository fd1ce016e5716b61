"""What the labels say so far: how far the judge agrees with people, and how many labels the acceptance test needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..prompts.examples import documents
from ..prompts.formatting import percent
from ..stats.correlation import spearman
from ..stats.pass_fail import rate
from ..stats.resampling import Resampling, Statistic
from .desk import Desk, majority
from .enough import FEWEST_KNOWN, Enough, enough
from .labels_file import Entry
from .opinions import JudgeOpinion, Opinions

Column = list[float | None]
MOST_POINTS = 200
"""Points of the curve."""


def enough_for(desk: Desk, opinions: Opinions | None, gain: float) -> Enough:
    """How many labels the acceptance test needs, by what is known so far."""
    people = desk.people()
    known = [each for each in people if each is not None]
    start = None
    if opinions is not None and len(known) >= FEWEST_KNOWN:
        scores = [None if np.isnan(each) else float(each) for each in opinions.judges[0].scores]
        start = spearman(scores, people).value
    return enough(len(known), int(sum(known)), gain=gain, start=start)


def agreement(desk: Desk, opinions: Opinions | None) -> dict[str, Any] | None:
    """How far the judge's verdicts agree with people's; None without a judge, or as long as no output has both.

    ``all`` is of every labelled output, ``random`` of those that were drawn at random, which stand for all outputs;
    ``passed`` and ``failed`` are the true positive and true negative rate; ``curve`` is ``all`` as the labels came in;
    ``questions`` are those that people answered. Outputs of one document are not taken for independent in any of them.
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
        "figures": {name: _told(each) for name, each in found.items()},
        "curve": _curve(desk, hits),
        "questions": _questions(desk, opinions),
    }


def agreement_line(found: dict[str, Any] | None) -> str | None:
    """The same in a sentence for a terminal; None where there is nothing to say."""
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


def _told(found: Statistic) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "n": found.n}


def _curve(desk: Desk, hits: Column) -> list[list[float | None]]:
    """``[labels, share, low, high]`` after each label that was given here, at most :data:`MOST_POINTS` of them."""
    places = {each.id: place for place, each in enumerate(desk.asked)}
    came = [places[name] for name in desk.said_first() if hits[places[name]] is not None]
    known, groups = [hits[place] for place in came], documents(desk.asked)
    of_came = None if groups is None else [groups[place] for place in came]
    step = max(1, -(-len(came) // MOST_POINTS))
    points = []
    for n in range(len(came), 0, -step):
        found = rate(known[:n], Resampling(None if of_came is None else of_came[:n]))
        points.append([n, found.value, found.low, found.high])
    return points[::-1]


def _questions(desk: Desk, opinions: Opinions) -> list[dict[str, Any]]:
    """On how many outputs the judge's answer to a question is people's, of each question that people answered."""
    rows = []
    resampling = Resampling(documents(desk.asked))
    standing = [desk.said.standing(rater) for rater in desk.said.raters]
    for column, question in enumerate(opinions.checklist.questions):
        hits: Column = [None] * len(desk.asked)
        for place, example in enumerate(desk.asked):
            said = opinions.judges[0].answers[place, column]
            theirs = [*example.human.get(question.id, ())]
            theirs += [s[example.id].human[question.id] for s in standing if question.id in _human(s.get(example.id))]
            wanted = majority(theirs)
            if wanted is not None and not np.isnan(said):
                hits[place] = float(question.is_good(wanted) == (said == 1))
        found = rate(hits, resampling)
        if found.n and any(each.id == question.id for each in desk.questions):
            rows.append({"question": question.text, **_told(found)})
    return rows


def _human(entry: Entry | None) -> dict[str, bool]:
    return {} if entry is None or entry.kind != "label" else entry.human
