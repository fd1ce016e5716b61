"""Candidates that are asked together, where the judge answers several questions in one call (``--mode batched``, or ``auto``
where it was found to answer so as it does alone).

An answer may depend on what else is asked in its call. So a candidate belongs to one group for the whole run, and a group is
asked as a whole: all folds then know the same answers, and none of them is bought twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import ceil
from typing import Any, Literal

import numpy as np

from ...evaluation.calibration import sigmoid
from ...models.base import Model, ModelError
from ...models.budget import FREE
from ...models.gateway import Gateway
from ...prompts.examples import Example
from ...prompts.formatting import count
from ..events import Teller
from ..options import AlignOptions
from ..subject import Draft, Subject
from .candidates import Candidate, yes_logits
from .racing import Verdicts

Mode = Literal["each", "batched"]
GROUP = 8
"""Candidates of one call. A small model is worse at it than at one question a call (``docs/results/simulated.md``: a mean area under the curve of .70
and .75)."""
BOTH_WAYS = 2 * GROUP
"""Candidates that are asked alone and together, to see whether the judge answers alike: some 170 answers for as many calls and
40 more."""
FEWEST_BOTH_WAYS = 40
"""Answers from which that is seen."""
FEWEST_QUESTIONS, FEWEST_EXAMPLES, ENOUGH_BOTH_WAYS = 3, 10, 100
"""Questions that a judge has at the start from which it is seen by these, examples that they are then asked of at least, and answers
that are enough."""
ALIKE = 0.95
"""Share of the answers that have to be the same. Were every other one wrong, a question would lose a tenth of the difference that it
makes between outputs with its fault and without."""
NEAR = 0.2
"""Distance of two probabilities of yes up to which answers are the same on both sides of one half: any other wording turns those."""


@dataclass(frozen=True)
class AskedBothWays:
    """How a judge answers several questions in one call, beside its answers to the same questions alone."""

    same: int
    """Answers that are the same: yes or no, or nearly the same probability of yes."""
    answers: int
    """Those that were given alone."""

    @classmethod
    def of(cls, alone: Verdicts, together: Verdicts) -> AskedBothWays:
        """By log-odds of yes; what is not answered together is not the same."""
        pairs = [(odds, together.get(name, {}).get(each)) for name, row in alone.items() for each, odds in row.items()]
        return cls(sum(other is not None and _is_same(odds, other) for odds, other in pairs), len(pairs))

    @classmethod
    async def by(cls, answers: Callable[[Mode], Awaitable[Verdicts]], events: Teller) -> AskedBothWays:
        """By what is answered alone, then together: nothing, where the endpoint takes no such calls. It is said.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
        """
        alone = await answers("each")
        try:
            together = await answers("batched")
        except ModelError:
            together = {}
        found = cls.of(alone, together)
        events.say(found.sentence)
        return found

    @property
    def mode(self) -> Mode:
        """How the judge should be asked."""
        enough = self.answers >= FEWEST_BOTH_WAYS
        return "batched" if enough and self.same >= ALIKE * self.answers else "each"

    @property
    def sentence(self) -> str:
        """What was found, and what is done."""
        if self.answers < FEWEST_BOTH_WAYS:
            return f"Questions are asked one a call: {count(self.answers, 'answer')} show too little of others in one call."
        how = "one call an example" if self.mode == "batched" else "one call a question"
        return (
            f"Questions are asked in {how}: together they got the same answer as alone in {self.same} of {self.answers} cases"
            f" ({ALIKE:.0%} are needed)."
        )

    def to_dict(self) -> dict[str, Any]:
        """As under ``asked_both_ways`` in ``result.json``."""
        return {"mode": self.mode, "same": self.same, "answers": self.answers, "sentence": self.sentence}


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
    """Of how many examples a judge of so many questions is asked at the start, alone and together; 0 where that shows too little."""
    needed = max(FEWEST_EXAMPLES, ceil(ENOUGH_BOTH_WAYS / questions))
    return needed if questions >= FEWEST_QUESTIONS and needed <= examples else 0


async def asked_at_the_start(
    subject: Subject, start: Draft, examples: Sequence[Example], events: Teller
) -> AskedBothWays | None:
    """How a judge answers its questions together; None where it has too few of them, or there are too few examples.

    Raises:
        BudgetExceededError: A cap was reached.
        ModelError: An endpoint refuses every call.
    """
    some = examples[: examples_to_ask_of(len(start.questions.questions), len(examples))]
    if not some:
        return None
    events.phase("asking questions alone and together")

    async def answers(mode: Mode) -> Verdicts:
        return yes_logits((await subject.observe(replace(start, mode=mode), some, events.advance)).verdicts)

    return await AskedBothWays.by(answers, events)


@dataclass
class Groups:
    """Who is asked with whom, from the first time that somebody is asked."""

    _members: list[dict[str, Candidate]] = field(default_factory=list, init=False)
    _place: dict[str, int] = field(default_factory=dict, init=False)

    def holding(self, named: Mapping[str, Candidate], waiting: Mapping[str, Candidate]) -> list[dict[str, Candidate]]:
        """The groups that the candidates are in, each as a whole; those that are in none yet make new ones.

        They are mixed by a hash of their words: those that were made of one comment ask nearly the same, and would
        answer each other.

        Args:
            named: Candidates by their ids, all shown the same of an example: so is everybody then who is asked with them.
            waiting: Others that may be asked later: they fill the last group and make groups of their own.
        """
        for some in (named, waiting):
            new = some.keys() - self._place.keys()
            for name in sorted(new, key=lambda name: sha256(some[name].text.encode()).digest()):
                if not self._members or len(self._members[-1]) == GROUP:
                    self._members.append({})
                self._members[-1][name] = some[name]
                self._place[name] = len(self._members) - 1
        sees = next(iter(named.values())).sees
        places = sorted({self._place[name] for name in named})
        return [{name: replace(each, sees=sees) for name, each in self._members[place].items()} for place in places]
