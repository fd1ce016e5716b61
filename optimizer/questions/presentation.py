"""How candidates are put to the judge: what it is shown, and whether several are asked in one call.

Several are asked in one call with ``--mode batched``, or with ``auto`` if the judge answers them as it does alone.
An answer may depend on the other questions of its call. So a candidate belongs to one group for the whole run, and a
group is asked as a whole. All folds then use the same answers, and no answer is bought twice.
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
"""Number of candidates that are asked in every way, and the shares of the accepted and rejected examples at a first and
a second look. The candidates with the most sources are taken, as several cases say more than one."""
# On three data sets eight candidates decided as twelve had. On only eight accepted examples, ways that are level on all
# examples looked apart by a third.
CLEARLY_WORSE = 2.0
"""Standard errors by which effects have to be smaller when the judge sees less, before everything is shown."""
_DONE: dict[Sees, str] = {
    "all": "asked with everything in view",
    "output": "asked of the output alone",
    "quote": "answered with a quote",
}


@dataclass(frozen=True)
class Compared:
    """Effects of some candidates that were asked in several ways, and the way that was taken."""

    taken: Sees
    effects: Mapping[Sees, float]
    """Mean effect of the candidates by way; a candidate that may not join counts 0. Empty where there are too few
    rejected outputs."""
    candidates: int
    """Number of candidates that have an effect in every way."""

    @classmethod
    def of(cls, found: Mapping[Sees, Mapping[str, Standing | None]]) -> Compared:
        """Choose a way by the effects of the same candidates on the same outputs in each way.

        A few outputs say little about one candidate. Over all candidates they tell whether this judge is helped or
        misled by the text that the output was made from. The output alone is shown unless everything in view is clearly
        better. A quote is asked for if its mean effect is higher than that of the way taken so far.
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
        """A sentence for people: the way that was taken, and the effects."""
        done = f"Questions are {_DONE[self.taken]}"
        if not self.effects:
            return f"{done}: there are too few rejected outputs to see what tells more."
        told = ", ".join(f"{_DONE[way].partition(' ')[2]} {signed(effect)}" for way, effect in self.effects.items())
        return f"{done}. Mean effect of {self.candidates} of them: {told}."


def ways_left(found: Mapping[Sees, Mapping[str, Standing | None]]) -> Sequence[Sees]:
    """Return the ways to ask that a second look may still choose, after a first one on half of the outputs.

    To show everything needs a clearly higher effect than the output alone, so it is out if it is not higher at all. If
    it is clearly higher already, the output alone is out. A quote is then compared with the other way that is left: it
    is out if it is worse by a standard error, and the only way left if it is clearly better.
    """
    effects, ways = _effects(found), [*found]
    if "all" in effects and "output" in effects:
        gains = effects["output"] - effects["all"]
        worse: Sees | None = "output" if _is_clearly_less(gains) else "all" if float(np.mean(gains)) >= 0 else None
        ways = [way for way in ways if way != worse]
    unquoted_ways: list[Sees] = [way for way in ways if way != "quote"]
    if "quote" in effects and len(unquoted_ways) == 1:
        gains = effects["quote"] - effects[unquoted_ways[0]]
        if _is_clearly_less(gains, 1.0):
            ways = unquoted_ways
        elif _is_clearly_less(-gains):
            ways = ["quote"]
    return ways


def _effects(found: Mapping[Sees, Mapping[str, Standing | None]]) -> dict[Sees, Vector]:
    """Return the worth of each candidate by way. Candidates without an effect in some way are left out."""
    known = [
        [each.worth for each in several if each is not None and each.effect is not None]
        for several in zip(*(standings.values() for standings in found.values()), strict=True)
    ]
    table = np.array([row for row in known if len(row) == len(found)])
    return dict(zip(found, table.T, strict=True)) if len(table) else {}


def _is_clearly_less(gains: Vector, errors: float = CLEARLY_WORSE) -> bool:
    """Whether the mean gain is below 0 by so many standard errors."""
    noise = float(np.std(gains, ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return float(np.mean(gains)) + errors * noise < 0


Mode = Literal["each", "batched"]
GROUP = 8
"""Most candidates of one call. A small model is worse at several questions in a call than at one (mean area under the
curve .70 and .75, ``docs/results/simulated.md``)."""
BOTH_WAYS = 2 * GROUP
"""Most candidates that are asked both alone and together, to see whether the judge answers alike. This takes some 170
answers, for as many calls and 40 more."""
FEWEST_BOTH_WAYS = 40
"""Fewest answers that show whether the judge answers alike."""
FEWEST_QUESTIONS, FEWEST_EXAMPLES, ENOUGH_BOTH_WAYS = 3, 10, 100
"""For a comparison with the questions of the start: fewest questions, fewest examples, and number of answers that is
enough."""
ALIKE = 0.95
"""Least share of the answers that have to be the same. If all others were wrong, a question would lose a tenth of the
difference that it makes between outputs with and without its fault."""
NEAR = 0.2
"""Largest distance of two probabilities of yes, on both sides of one half, at which the answers still count as the
same: any other wording turns such answers too."""


async def ask_both_ways(answers: Callable[[Mode], Awaitable[Verdicts]], events: Teller) -> BothWaysRecord:
    """Ask questions alone, then together, and compare the answers. If the endpoint refuses several questions in a call,
    no answer counts as the same, so the mode is ``each``."""
    single_answers = await answers("each")
    try:
        joint_answers = await answers("batched")
    except ModelError:
        joint_answers = {}
    found = mode_by(same_answers(single_answers, joint_answers), sum(map(len, single_answers.values())))
    events.say(found.sentence)
    return found


def same_answers(alone: Verdicts, together: Verdicts) -> int:
    """Count the answers that are the same alone and together. A question without an answer together is not the same."""
    pairs = [(odds, together.get(name, {}).get(each)) for name, row in alone.items() for each, odds in row.items()]
    return sum(other is not None and _is_same(odds, other) for odds, other in pairs)


def mode_by(same: int, answers: int) -> BothWaysRecord:
    """Decide how a judge is asked: ``same`` of its ``answers`` were the same together and alone."""
    is_enough = answers >= FEWEST_BOTH_WAYS
    mode: Mode = "batched" if is_enough and same >= ALIKE * answers else "each"
    how = "one call an example" if mode == "batched" else "one call a question"
    told = f"together they got the same answer as alone in {same} of {answers} cases ({ALIKE:.0%} are needed)"
    few = f"one a call: {count(answers, 'answer')} show too little of others in one call"
    sentence = f"Questions are asked {f'in {how}: {told}' if is_enough else few}."
    return BothWaysRecord(mode=mode, same=same, answers=answers, sentence=sentence)


def _is_same(alone: float, together: float) -> bool:
    """Whether two log-odds of yes are one answer."""
    one, other = sigmoid(np.array([alone, together]))
    return (alone >= 0) == (together >= 0) or bool(abs(one - other) <= NEAR)


def mode_for(options: AlignOptions, model: Model, gateway: Gateway) -> Literal["auto", "each", "batched"]:
    """Return how learned questions are asked of a model; ``auto``: to be found out.

    A mode in the settings is taken. With the setting ``auto``, a judge that is asked for a number gets ``each``. A
    model that thinks gets ``batched``, because all questions then share its thinking. Another model gets ``each`` if
    its calls cost only time, because one call for several questions takes as much time, or if it is only to be
    calibrated.
    """
    if options.mode != "auto" or options.judging.score_scale is not None:
        return "batched" if options.mode == "batched" else "each"
    if gateway.thinkers.get(model.identity, gateway.room.thinks(model)):
        return "batched"
    return "each" if options.calibrate or getattr(model, "price", None) == FREE else "auto"


def examples_to_ask_of(questions: int, examples: int) -> int:
    """Return how many examples the start's questions are asked about, alone and together; 0 where that is too few."""
    needed = max(FEWEST_EXAMPLES, ceil(ENOUGH_BOTH_WAYS / questions))
    return needed if questions >= FEWEST_QUESTIONS and needed <= examples else 0


async def asked_at_the_start(
    subject: Subject, start: Draft, examples: Sequence[Example], events: Teller
) -> BothWaysRecord | None:
    """Compare the judge's answers to the questions of the start alone and together; None where there are too few
    questions or examples."""
    sample = examples[: examples_to_ask_of(len(start.questions.asked), len(examples))]
    if not sample:
        return None
    events.phase("asking questions alone and together")

    async def answers(mode: Mode) -> Verdicts:
        return yes_logits((await subject.observe(replace(start, mode=mode), sample, events.advance)).verdicts)

    return await ask_both_ways(answers, events)


@dataclass
class Groups:
    """Groups of candidates that share a call. A candidate stays in its first group."""

    _members: list[dict[str, CriterionRecord]] = field(default_factory=list, init=False)
    _place: dict[str, int] = field(default_factory=dict, init=False)
    _open: dict[Sees | None, int] = field(default_factory=dict, init=False)
    """The group that is not full yet, by the view of relations; the key None is for all other candidates."""

    def holding(
        self, named: Mapping[str, CriterionRecord], waiting: Mapping[str, CriterionRecord]
    ) -> list[dict[str, CriterionRecord]]:
        """Return the whole groups that hold the candidates. Candidates without a group are put into new ones.

        New candidates are mixed by a hash of their words. Candidates from the same comment ask nearly the same, and in
        one call they would influence each other's answers.

        Args:
            named: Candidates by id. All of a group see the same part of an example, because they share one call.
            waiting: Other candidates that may be asked later. They fill the last group and make further groups.
        """
        for candidates in (named, waiting):
            new = candidates.keys() - self._place.keys()
            for name in sorted(new, key=lambda name: sha256(candidates[name].text.encode()).digest()):
                view = candidates[name].sees if candidates[name].is_relation else None
                place = self._open.get(view)
                if place is None or len(self._members[place]) == GROUP:
                    place = self._open[view] = len(self._members)
                    self._members.append({})
                self._members[place][name] = candidates[name]
                self._place[name] = place
        sees: Sees = next((each.sees for each in named.values() if not each.is_relation), "all")
        places = sorted({self._place[name] for name in named})
        return [
            {name: each if each.is_relation else each.but(sees=sees) for name, each in self._members[place].items()}
            for place in places
        ]
