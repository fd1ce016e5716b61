"""Which wording of a question to ask: on which examples they are tried, which are dropped, and what counts as better.

The best of many wordings looks better than it is. So it has to gain more than the best of as many, none of them better,
would seem to in four of five cases: the standard error of the paired gain times that quantile of the largest of so many
standard normals (two for each wording, as its good answer is chosen too; Šidák, J. Am. Stat. Assoc. 62, 1967).

Simulated with eight other wordings, 150 trials a cell: where none was better, one was chosen in 17 % of the cases
from 30 examples without any correlation, in 8 % where all had .4. One with .7 beside .3 was chosen in 40 % from 30
examples and in 70 % from 60; one with .85 beside .1 in 97 % from 30. The acceptance test on validation comes after
that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np

from ...memory.records import QuestionWordings, Wording, WordingTried
from ...prompts.checklist import Question
from ...prompts.verdicts import Verdict
from ...stats.correlation import spearman
from ...stats.differences import paired_difference
from ...stats.resampling import Resampling
from ...stats.spearman_interval import spearman_intervals
from ..signals import take_turns

RUNGS = (12, 24)
"""Development examples after which the worse half of the wordings is dropped."""
CLEAR = 0.05
"""Level at which the data must say that a wording means the opposite, before it is used the other way round."""
SEEMING = 0.2
"""Share of the questions whose wording may be replaced although none is better; the acceptance test looks at those
again."""
UNANSWERED = 0.1
"""Share of the verdicts that may be missing; a wording that the target cannot answer is dropped."""

Answers = Mapping[str, "float | None"]
"""P(yes) by example; None where there is no answer."""


def in_turns(examples: Sequence[str], source: Mapping[str, Verdict]) -> list[str]:
    """The examples that the source answered, its yes and its no taking turns as long as there are both."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for each in examples:
        verdict = source.get(each)
        if verdict is not None and verdict.answer is not None:
            sides[verdict.answer].append(each)
    return take_turns(sides.values())


def rungs(examples: int) -> list[int]:
    """How many examples are judged before each look."""
    return [*(each for each in RUNGS if each < examples), examples]


def nothing_to_tell(source: Mapping[str, Verdict]) -> str | None:
    """Why the source's verdicts on a question cannot tell its wordings apart; None where they can."""
    answers = [each.answer for each in source.values() if each.answer is not None]
    if not answers:
        return "the source answered it on no development example"
    if len(set(answers)) == 1:
        said = "yes" if answers[0] else "no"
        return f"the source answers {said} on all {len(answers)} development examples, so there is nothing to tell"
    return None


@dataclass(frozen=True)
class Trying:
    """The wordings of one question on some of the examples."""

    question: Question
    wanted: Mapping[str, float]
    """The source's P(good), by example."""

    def own(self, answers: Answers) -> WordingTried:
        """The source's wording, with its good answer."""
        return self._correlated(WordingTried.of(self.question), answers)

    def other(self, wording: Wording, answers: Answers) -> WordingTried:
        """Another wording, with the good answer that the data speak for."""
        asked = self._correlated(WordingTried(text=wording.text, sees=wording.sees), answers)
        if asked.correlation is None or asked.correlation >= 0:
            return asked if asked.correlation else asked.model_copy(update={"good": self.question.good})
        return asked.model_copy(update={"good": "no", "correlation": -asked.correlation})

    def _correlated(self, wording: WordingTried, answers: Answers) -> WordingTried:
        found = spearman(self.p_good(wording, answers), [self.wanted[each] for each in answers])
        return wording.model_copy(update={"correlation": found.value, "n": found.n})

    def p_good(self, wording: WordingTried, answers: Answers) -> list[float | None]:
        """P(the good answer) to a wording."""
        return [None if p is None else 1 - p if wording.good == "no" else p for p in answers.values()]

    def choose(
        self, own: Answers, others: Mapping[Wording, Answers], tried: Sequence[WordingTried], resampling: Resampling
    ) -> QuestionWordings:
        """The best wording in place of the source's own, if it is better by more than the selection bias.

        Args:
            own: The target's answers to the source's wording, on all examples.
            others: Those to the wordings that are left, on the same examples.
            tried: All that were tried, those that were dropped with the reason.
            resampling: How the standard error of the gain is made. Its groups are those of the examples in ``own``, in
                their order.
        """
        before = self.own(own)
        found = [self.other(wording, answers) for wording, answers in others.items()]
        turned = self.other(before.wording, own)
        if turned.good != before.good:
            found.append(turned)
        every = (*tried, *found)
        best = max(found, key=lambda each: each.correlation or 0.0, default=None)
        made = partial(QuestionWordings, question=self.question.id, before=before, tried=every)
        if best is None:
            return made(reason="no other wording can be used")
        if best.correlation is None:
            return made(reason="the target answers every other wording alike")
        answers = own if best is turned else others[best.wording]
        wanted = [self.wanted[each] for each in own]
        difference = paired_difference(
            self.p_good(before, own), self.p_good(best, answers), wanted, resampling, undefined_as_zero=True
        )
        if difference.value is None or difference.standard_error is None:
            return made(reason=f"the gain of another wording is undefined: {difference.reason}")
        bias = difference.standard_error * largest_by_chance(2 * (len(others) + len(tried) + 1))
        made = partial(made, gain=difference.value, bias=bias)
        said = f"rank correlation with the source {_said(before.correlation)}, the best other wording {_said(best.correlation)}"
        what = f"{said}, n = {best.n}"
        if difference.value <= bias:
            chance = f"{difference.value:+.2f} is no more than {bias:.2f}, what the best of so many may gain by chance"
            return made(reason=f"{what}: {chance}")
        if best.good != self.question.good and not self._is_clear(best, answers, resampling.groups):
            return made(reason=f"{what}: too unsure to use it the other way round")
        return made(reason=f"{what}, a gain beyond the {bias:.2f} of chance", after=best)

    def _is_clear(self, wording: WordingTried, answers: Answers, groups: Sequence[Hashable] | None) -> bool:
        """Tell whether the correlation is above zero beyond chance.

        Examples of one document are not taken for independent.
        """
        values = [np.nan if p is None else -p for p in self.p_good(wording, answers)]
        wanted = [self.wanted[each] for each in answers]
        (found,) = spearman_intervals(np.array(values)[:, np.newaxis], wanted, groups=groups)
        return found.p_against is not None and found.p_against <= CLEAR


def better_half(tried: Sequence[WordingTried]) -> set[Wording]:
    """Those that correlate best, an odd one among them; of equal ones the first."""
    order = sorted(tried, key=lambda each: -(each.correlation or 0.0))
    return {each.wording for each in order[: (len(order) + 1) // 2]}


def unanswered(answers: Answers) -> bool:
    """Whether too many verdicts are missing."""
    return sum(p is None for p in answers.values()) > UNANSWERED * len(answers)


def largest_by_chance(number: int) -> float:
    """What the largest of so many independent standard normals stays below with probability 1 - ``SEEMING``."""
    return NormalDist().inv_cdf((1 - SEEMING) ** (1 / number))


def _said(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
