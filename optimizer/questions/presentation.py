"""How candidates are put to the judge: what it is shown, and whether several are asked in one call (``--mode
batched``, or ``auto`` where it was found to answer so as it does alone).

An answer may depend on what else is asked in its call. So a candidate belongs to one group for the whole run, and a
group is asked as a whole: all folds then know the same answers, and none of them is bought twice.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import ceil
from typing import Literal

import numpy as np

from ...evaluation.calibration import sigmoid
from ...memory.records import BothWaysRecord, CriterionRecord
from ...models.base import Model, ModelError
from ...models.budget import FREE
from ...models.gateway import Gateway
from ...prompts.checklist import Sees
from ...prompts.examples import Example
from ...prompts.formatting import count, signed
from ...stats.resampling import Vector
from ..events import Teller
from ..options import AlignOptions
from ..subject import Draft, Subject
from .candidates import Standing, yes_logits
from .racing import Verdicts

COMPARED, COMPARED_ON = 8, (1 / 6, 1 / 3)
"""Candidates that are asked in every way, to see which helps the judge: those that most remarks led to, as several
cases say more than one; on three data sets eight decided as twelve had, and fit one reading side by side. And the
shares of the accepted and of the rejected examples that each is asked of, at a first look and, where that does not
decide, at a second one; of eight accepted ones, ways that are level on all looked apart by a third."""
CLEARLY_WORSE = 2.0
"""Standard errors by which effects have to be smaller, with less in view, for everything to be shown."""
_DONE: dict[Sees, str] = {
    "all": "asked with everything in view",
    "output": "asked of the output alone",
    "quote": "answered with a quote",
}


@dataclass(frozen=True)
class Compared:
    """How far rejected outputs stand out from accepted ones where some candidates are asked in several ways."""

    taken: Sees
    effects: Mapping[Sees, float]
    """Mean effect of the candidates by way, 0 of one that could not join; empty where there are too few rejected
    outputs."""
    candidates: int
    """Candidates that have an effect in every way."""

    @classmethod
    def of(cls, found: Mapping[Sees, Mapping[str, Standing | None]]) -> Compared:
        """By what is said of the same candidates and outputs in each way, the simplest one first.

        Of one candidate some outputs say next to nothing, of all together they say whether this judge is helped or
        misled by what the output was made from. Where that is not clear, less is shown. A quote has to say more on
        average than what is taken else; neither way is the simpler one.
        """
        effects = _effects(found)
        taken: Sees = "output" if "output" in found else "all" if "all" in found else "quote"
        if taken in effects and "all" in effects and _is_clearly_less(effects[taken] - effects["all"]):
            taken = "all"
        if "quote" in effects and float(np.mean(effects["quote"] - effects[taken])) > 0:
            taken = "quote"
        known = len(next(iter(effects.values()), ()))
        return cls(taken, {way: float(np.mean(each)) for way, each in effects.items()}, known)

    @property
    def sentence(self) -> str:
        """A sentence on what was found and what is done."""
        done = f"Questions are {_DONE[self.taken]}"
        if not self.effects:
            return f"{done}: there are too few rejected outputs to see what tells more."
        told = ", ".join(f"{_DONE[way].partition(' ')[2]} {signed(effect)}" for way, effect in self.effects.items())
        return f"{done}. Mean effect of {self.candidates} of them: {told}."


def ways_left(found: Mapping[Sees, Mapping[str, Standing | None]]) -> Sequence[Sees]:
    """Return the ways to ask that a second look may still choose, after a first one on half of the outputs.

    Everything in view has to be clearly better than the output alone, so it is out where it is not better at all. A
    quote is out where it is worse by a standard error. Whatever is clearly better already is left alone.
    """
    effects, left = _effects(found), [*found]
    if "all" in effects and "output" in effects:
        gains = effects["output"] - effects["all"]
        worse: Sees | None = "output" if _is_clearly_less(gains) else "all" if float(np.mean(gains)) >= 0 else None
        left = [way for way in left if way != worse]
    others: list[Sees] = [way for way in left if way != "quote"]
    if "quote" in effects and len(others) == 1:
        gains = effects["quote"] - effects[others[0]]
        if _is_clearly_less(gains, 1.0):
            left = others
        elif _is_clearly_less(-gains):
            left = ["quote"]
    return left


def _effects(found: Mapping[Sees, Mapping[str, Standing | None]]) -> dict[Sees, Vector]:
    """Worth of each candidate by way. Candidates without an effect in some way are left out."""
    known = [
        [each.worth for each in several if each is not None and each.effect is not None]
        for several in zip(*(standings.values() for standings in found.values()), strict=True)
    ]
    table = np.array([row for row in known if len(row) == len(found)])
    return dict(zip(found, table.T, strict=True)) if len(table) else {}


def _is_clearly_less(gains: Vector, errors: float = CLEARLY_WORSE) -> bool:
    """Whether gains are below 0, on average, by so many standard errors."""
    noise = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return float(np.mean(gains)) + errors * noise < 0


Mode = Literal["each", "batched"]
GROUP = 8
"""Candidates of one call. A small model is worse at it than at one question a call (``docs/results/simulated.md``: a
mean area under the curve of .70 and .75)."""
BOTH_WAYS = 2 * GROUP
"""Candidates that are asked alone and together, to see whether the judge answers alike: some 170 answers for as many
calls and 40 more."""
FEWEST_BOTH_WAYS = 40
"""Answers from which that is seen."""
FEWEST_QUESTIONS, FEWEST_EXAMPLES, ENOUGH_BOTH_WAYS = 3, 10, 100
"""Questions that a judge has at the start from which it is seen by these, examples that they are then asked of at
least, and answers that are enough."""
ALIKE = 0.95
"""Share of the answers that have to be the same. Were every other one wrong, a question would lose a tenth of the
difference that it makes between outputs with its fault and without."""
NEAR = 0.2
"""Distance of two probabilities of yes up to which answers are the same on both sides of one half: any other wording
turns those."""


async def ask_both_ways(answers: Callable[[Mode], Awaitable[Verdicts]], events: Teller) -> BothWaysRecord:
    """See how a judge answers questions alone, then together: not at all, where the endpoint takes no such calls."""
    alone = await answers("each")
    try:
        together = await answers("batched")
    except ModelError:
        together = {}
    found = mode_by(same_answers(alone, together), sum(map(len, alone.values())))
    events.say(found.sentence)
    return found


def same_answers(alone: Verdicts, together: Verdicts) -> int:
    """Count the log-odds of yes that are the same answer; what is not answered together is not the same."""
    pairs = [(odds, together.get(name, {}).get(each)) for name, row in alone.items() for each, odds in row.items()]
    return sum(other is not None and _is_same(odds, other) for odds, other in pairs)


def mode_by(same: int, answers: int) -> BothWaysRecord:
    """How a judge should be asked that gave so many of its answers together as it gave them alone."""
    enough = answers >= FEWEST_BOTH_WAYS
    mode: Mode = "batched" if enough and same >= ALIKE * answers else "each"
    how = "one call an example" if mode == "batched" else "one call a question"
    told = f"together they got the same answer as alone in {same} of {answers} cases ({ALIKE:.0%} are needed)"
    few = f"one a call: {count(answers, 'answer')} show too little of others in one call"
    sentence = f"Questions are asked {f'in {how}: {told}' if enough else few}."
    return BothWaysRecord(mode=mode, same=same, answers=answers, sentence=sentence)


def _is_same(alone: float, together: float) -> bool:
    """Whether two log-odds of yes are one answer."""
    one, other = sigmoid(np.array([alone, together]))
    return (alone >= 0) == (together >= 0) or bool(abs(one - other) <= NEAR)


def mode_for(options: AlignOptions, model: Model, gateway: Gateway) -> Literal["auto", "each", "batched"]:
    """How learned questions are asked of a model; auto: to be found out.

    Together of a model that thinks, as all questions then share its thinking. Not of another one whose calls cost only
    time, as one
    call for several questions takes no less of that; nor of one that is asked for a number, or that is to be
    calibrated as it is.
    """
    if options.mode != "auto" or options.judging.score_scale is not None:
        return "batched" if options.mode == "batched" else "each"
    if gateway.thinkers.get(model.identity, gateway.room.thinks(model)):
        return "batched"
    return "each" if options.calibrate or getattr(model, "price", None) == FREE else "auto"


def examples_to_ask_of(questions: int, examples: int) -> int:
    """How many examples a judge is asked about at the start, alone and together; 0 where that shows too little."""
    needed = max(FEWEST_EXAMPLES, ceil(ENOUGH_BOTH_WAYS / questions))
    return needed if questions >= FEWEST_QUESTIONS and needed <= examples else 0


async def asked_at_the_start(
    subject: Subject, start: Draft, examples: Sequence[Example], events: Teller
) -> BothWaysRecord | None:
    """How a judge answers its questions together; None where it has too few of them, or there are too few examples."""
    some = examples[: examples_to_ask_of(len(start.questions.asked), len(examples))]
    if not some:
        return None
    events.phase("asking questions alone and together")

    async def answers(mode: Mode) -> Verdicts:
        return yes_logits((await subject.observe(replace(start, mode=mode), some, events.advance)).verdicts)

    return await ask_both_ways(answers, events)


@dataclass
class Groups:
    """Who is asked with whom, from the first time that somebody is asked."""

    _members: list[dict[str, CriterionRecord]] = field(default_factory=list, init=False)
    _place: dict[str, int] = field(default_factory=dict, init=False)
    _open: dict[Sees | None, int] = field(default_factory=dict, init=False)
    """The group that is not full yet, by the view of relations, and None for all other candidates."""

    def holding(
        self, named: Mapping[str, CriterionRecord], waiting: Mapping[str, CriterionRecord]
    ) -> list[dict[str, CriterionRecord]]:
        """The groups that the candidates are in, each as a whole; those that are in none yet make new ones.

        They are mixed by a hash of their words: those that were made of one comment ask nearly the same, and would
        answer each other.

        Args:
            named: Candidates by id. Those of a group see the same part of an example, because they share one call.
            waiting: Others that may be asked later: they fill the last group and make groups of their own.
        """
        for some in (named, waiting):
            new = some.keys() - self._place.keys()
            for name in sorted(new, key=lambda name: sha256(some[name].text.encode()).digest()):
                view = some[name].sees if some[name].is_relation else None
                place = self._open.get(view)
                if place is None or len(self._members[place]) == GROUP:
                    place = self._open[view] = len(self._members)
                    self._members.append({})
                self._members[place][name] = some[name]
                self._place[name] = place
        sees: Sees = next((each.sees for each in named.values() if not each.is_relation), "all")
        places = sorted({self._place[name] for name in named})
        return [
            {name: each if each.is_relation else each.but(sees=sees) for name, each in self._members[place].items()}
            for place in places
        ]
