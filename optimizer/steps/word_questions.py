"""The step of a migration that words every question anew for the target, by the source's verdicts on development.

One of the wordings is the question's own text asked of the output alone (or with everything in view, if it was asked of
the output alone before). A small model mixes up the output with the text that it was made from. The step costs one
short call per example and wording, and leaves all other verdicts as they are. Wordings are chosen on development only,
by successive halving. The whole new checklist goes through the acceptance test once.

The best of many wordings looks better than it is. So its gain has to be above what chance gives the best of as many
equal wordings in four of five cases. The limit is the standard error of the paired gain, times this quantile of the
largest of so many standard normals. Each wording counts twice, because its good answer is chosen too (Šidák, J. Am.
Stat. Assoc. 62, 1967).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np

from ...agents.question_writer import KINDS, MOST_WORDINGS, Rephraser
from ...memory.records import QuestionWordings, Wording, WordingTried
from ...models.base import ModelError
from ...prompts.checklist import Checklist, Question
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ...stats.closed_forms import spearman_intervals
from ...stats.correlation import spearman
from ...stats.differences import paired_difference
from ...stats.resampling import Resampling
from ..events import QuestionWorded, Teller
from ..mode import LoopRound, Turn
from ..signals import take_turns
from ..subject import Draft, Subject

RUNGS = (12, 24)
"""Numbers of development examples after which the worse half of the wordings is dropped."""
CLEAR = 0.05
"""Largest p-value of the test that a wording means the opposite, before its other answer is used as the good one."""
SEEMING = 0.2
"""Share of the questions whose wording may be replaced although no wording is better. The acceptance test judges these
again."""
UNANSWERED = 0.1
"""Share of the verdicts that may be missing. A wording with more missing verdicts is dropped."""

Answers = Mapping[str, "float | None"]
"""P(yes) by example; None where there is no answer."""


def in_turns(examples: Sequence[str], source: Mapping[str, Verdict]) -> list[str]:
    """Return the examples that the source answered; its yes and no answers take turns as long as there are both."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for each in examples:
        verdict = source.get(each)
        if verdict is not None and verdict.answer is not None:
            sides[verdict.answer].append(each)
    return take_turns(sides.values())


def rungs(examples: int) -> list[int]:
    """Return the number of examples that are judged before each look."""
    return [*(each for each in RUNGS if each < examples), examples]


def nothing_to_tell(source: Mapping[str, Verdict]) -> str | None:
    """Return why the source's verdicts on a question cannot tell its wordings apart; None where they can."""
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
        """Return the source's wording with its correlation; its good answer stays."""
        return self._correlated(WordingTried.of(self.question), answers)

    def other(self, wording: Wording, answers: Answers) -> WordingTried:
        """Return another wording with its correlation and the good answer that the data speak for."""
        asked = self._correlated(WordingTried(text=wording.text, sees=wording.sees), answers)
        if asked.correlation is None or asked.correlation >= 0:
            return asked if asked.correlation else asked.model_copy(update={"good": self.question.good})
        return asked.model_copy(update={"good": "no", "correlation": -asked.correlation})

    def _correlated(self, wording: WordingTried, answers: Answers) -> WordingTried:
        found = spearman(self.p_good(wording, answers), [self.wanted[each] for each in answers])
        return wording.model_copy(update={"correlation": found.value, "n": found.n})

    def p_good(self, wording: WordingTried, answers: Answers) -> list[float | None]:
        """Return P(the good answer) to a wording, in the order of ``answers``."""
        return [None if p is None else 1 - p if wording.good == "no" else p for p in answers.values()]

    def choose(
        self, own: Answers, others: Mapping[Wording, Answers], tried: Sequence[WordingTried], resampling: Resampling
    ) -> QuestionWordings:
        """Choose the best other wording if its gain over the source's wording is above the selection bias.

        Else the source's wording stays. The result gives the reason.

        Args:
            own: The target's answers to the source's wording, on all examples.
            others: The target's answers to the wordings that are left.
            tried: The wordings that were dropped.
            resampling: Its groups belong to the examples of ``own``, in their order.
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
        mine, other = _said(before.correlation), _said(best.correlation)
        said = f"rank correlation with the source {mine}, the best other wording {other}"
        comparison = f"{said}, n = {best.n}"
        if difference.value <= bias:
            chance = f"{difference.value:+.2f} is no more than {bias:.2f}, what the best of so many may gain by chance"
            return made(reason=f"{comparison}: {chance}")
        if best.good != self.question.good and not self._is_clear(best, answers, resampling.groups):
            return made(reason=f"{comparison}: too unsure to use it the other way round")
        return made(reason=f"{comparison}, a gain beyond the {bias:.2f} of chance", after=best)

    def _is_clear(self, wording: WordingTried, answers: Answers, groups: Sequence[Hashable] | None) -> bool:
        """Whether the correlation is above zero beyond chance, with documents as independent units."""
        values = [np.nan if p is None else -p for p in self.p_good(wording, answers)]
        wanted = [self.wanted[each] for each in answers]
        (found,) = spearman_intervals(np.array(values)[:, np.newaxis], wanted, groups=groups)
        return found.p_against is not None and found.p_against <= CLEAR


def better_half(tried: Sequence[WordingTried]) -> set[Wording]:
    """Return the half of the wordings that correlate best, rounded up; of equals the first."""
    order = sorted(tried, key=lambda each: -(each.correlation or 0.0))
    return {each.wording for each in order[: (len(order) + 1) // 2]}


def unanswered(answers: Answers) -> bool:
    """Whether too many verdicts are missing."""
    return sum(p is None for p in answers.values()) > UNANSWERED * len(answers)


def largest_by_chance(number: int) -> float:
    """Return the quantile 1 - ``SEEMING`` of the largest of so many independent standard normals."""
    return NormalDist().inv_cdf((1 - SEEMING) ** (1 / number))


def _said(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


@dataclass(frozen=True)
class WordQuestions:
    """Proposes a checklist whose wordings the target understands as the source understands its own."""

    writer: Rephraser
    subject: Subject
    source: Mapping[tuple[str, str], Verdict]
    """The source's verdicts on the development examples, by example and question."""
    examples: Sequence[Example]
    events: Teller
    resampling: Resampling
    together: bool = True
    """Whether several wordings may be judged at once; only where each question is a call of its own."""

    async def take(self, now: LoopRound) -> Turn | None:
        """Word every question anew, and send the new checklist through the acceptance test as a whole."""
        version, found = now.best, now.outcome.wordings
        old = version.draft.questions
        for number, question in enumerate(old.asked, 1):
            self.events.phase(f"wording question {number} of {len(old.asked)}: {question.text}")
            taken = {_words(each.text): each.id for each in old.questions if each.id != question.id}
            taken |= {_words(each.after.text): each.question for each in found if each.after is not None}
            outcome = await self._word(version.draft, question, taken)
            found.append(outcome)
            self.events.emit(QuestionWorded(outcome))
        by_id = {each.question: each for each in found}
        new = old.model_copy(update={"asked": tuple(by_id[each.id].of(each) for each in old.asked)})
        if new == old:
            return None
        winner = await now.contest.challenge(version, (), 0, Draft(version.prompt, new))
        if winner is not version:
            found[:] = [each.model_copy(update={"accepted": each.after is not None}) for each in found]
        return Turn(winner)

    async def _word(self, draft: Draft, question: Question, taken: Mapping[str, str]) -> QuestionWordings:
        """Choose a wording for one question. ``taken`` maps the words of the other questions to their ids."""
        source = {name: each for (name, asked), each in self.source.items() if asked == question.id}
        made = partial(QuestionWordings, question=question.id, before=WordingTried.of(question))
        reason = nothing_to_tell(source)
        if reason is not None:
            return made(reason=reason)
        try:
            texts = await self.writer.write(question)
        except ModelError as error:
            if error.fatal:
                raise
            return made(reason=f"no other wordings could be had: {error}")
        wanted = {name: question.p_good(each.p_yes) for name, each in source.items() if each.p_yes is not None}
        order = in_turns([each.id for each in self.examples if each.id in wanted], source)
        wordings = [Wording(text, question.sees) for text in texts if _words(text) not in taken]
        refused = [
            WordingTried.of(question).model_copy(
                update={"text": text, "dropped": f"it is what question {taken[_words(text)]} asks"}
            )
            for text in texts
            if _words(text) in taken
        ]
        if question.sees in ("all", "output", "quote") and draft.prompt.can_show_less_of(self.examples):
            wordings.append(Wording(question.text, "all" if question.sees == "output" else "output"))
        chosen = await self._choose(draft, Trying(question, wanted), wordings, order)
        return chosen.model_copy(update={"tried": (*refused, *chosen.tried)})

    async def _choose(
        self, draft: Draft, trying: Trying, others: Sequence[Wording], order: Sequence[str]
    ) -> QuestionWordings:
        """Choose by successive halving: all wordings on a few examples, the better half on more."""
        by_id = {example.id: example for example in self.examples}
        asked = WordingTried.of(trying.question).wording
        own_answers: Answers = {}
        wording_answers: dict[Wording, Answers] = {each: {} for each in others}
        dropped: list[WordingTried] = []
        start = 0
        for rung in rungs(len(order)):
            judged = await self._judge(
                draft, trying.question, [asked, *wording_answers], [by_id[each] for each in order[start:rung]]
            )
            own_answers = {**own_answers, **judged[0]}
            wording_answers = {
                each: {**known, **new} for (each, known), new in zip(wording_answers.items(), judged[1:], strict=True)
            }
            tried = {each: trying.other(each, answers) for each, answers in wording_answers.items()}
            lost = {
                each: "the target left too many unanswered"
                for each in wording_answers
                if unanswered(wording_answers[each])
            }
            if rung < len(order):
                rest = [each for each in wording_answers if each not in lost]
                keep = better_half([tried[each] for each in rest])
                lost |= {each: f"not in the better half after {rung} examples" for each in rest if each not in keep}
            dropped += [tried[each].model_copy(update={"dropped": why}) for each, why in lost.items()]
            wording_answers = {each: answers for each, answers in wording_answers.items() if each not in lost}
            start = rung
        return trying.choose(own_answers, wording_answers, dropped, self._resampling_of(own_answers))

    def _resampling_of(self, answers: Answers) -> Resampling:
        if self.resampling.groups is None:
            return self.resampling
        named = dict(zip((each.id for each in self.examples), self.resampling.groups, strict=True))
        return replace(self.resampling, groups=[named[each] for each in answers])

    async def _judge(
        self, draft: Draft, question: Question, wordings: Sequence[Wording], examples: Sequence[Example]
    ) -> list[dict[str, float | None]]:
        asked = [question.model_copy(update={**each._asdict(), "weight": 1.0}) for each in wordings]
        if self.together:
            named = tuple(each.model_copy(update={"id": str(place)}) for place, each in enumerate(asked))
            verdicts = await self._observe(draft, named, examples)
            return [{each.example: each.p_yes for each in verdicts if each.question == one.id} for one in named]
        alone = [await self._observe(draft, (one,), examples) for one in asked]
        return [{each.example: each.p_yes for each in verdicts} for verdicts in alone]

    async def _observe(
        self, draft: Draft, questions: tuple[Question, ...], examples: Sequence[Example]
    ) -> list[Verdict]:
        asked = Checklist(task=draft.questions.task, questions=questions, answers=draft.questions.answers)
        part = Draft(draft.prompt, asked)
        seen = await self.subject.observe(part, examples, self.events.advance)
        return [each for each in seen.verdicts if each.replicate == 0]


def _words(text: str) -> str:
    """Return a text's words without case and punctuation, to compare questions."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def most_calls(questions: int, examples: int, views: int) -> int:
    """Return the most calls before the acceptance test: writing the wordings, and judging them and the source's wording
    in every look. ``views`` is the number of ways to ask a question: 2 where it may also see the output alone."""
    wordings, start, calls = MOST_WORDINGS * len(KINDS) + views - 1, 0, len(KINDS)
    for rung in rungs(examples):
        calls += (rung - start) * (wordings + 1)
        start, wordings = rung, (wordings + 1) // 2
    return questions * calls
