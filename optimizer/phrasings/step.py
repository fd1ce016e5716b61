"""The first step of a migration: every question is worded anew for the target, by the source's verdicts on development.

Its own words asked of the output alone (or, where they were, with everything in view) are one of the wordings: a small model mixes
up the output with what it was made from.
It costs one short call an example and wording, and leaves every other verdict as it is. Wordings are chosen on
development alone, by successive halving; the whole new checklist goes through the acceptance test once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...agents.question_writer import KINDS, MOST_WORDINGS, Rephraser
from ...models.base import ModelError
from ...prompts.checklist import Checklist, Question
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ...stats.resampling import Resampling
from ..contest import Contest
from ..events import QuestionWorded, Teller
from ..subject import Draft, Subject, Version
from .choose import Answers, Trying, better_half, in_turns, nothing_to_tell, rungs, unanswered
from .wordings import QuestionWordings, Wording, WordingTried


@dataclass(frozen=True)
class WordQuestions:
    """Proposes a checklist whose questions the target understands as the source does its own."""

    writer: Rephraser
    subject: Subject
    source: Mapping[tuple[str, str], Verdict]
    """The source's verdicts on the development examples, by example and question."""
    examples: Sequence[Example]
    """The development examples."""
    events: Teller
    resampling: Resampling
    together: bool = True
    """Whether wordings may be asked side by side: True where each question is a call of its own."""

    async def challenge(self, version: Version, contest: Contest, found: list[QuestionWordings]) -> Version:
        """Word every question anew; returns the version with the new checklist where the acceptance test takes it.

        What became of each question is added to ``found``.

        Raises:
            BudgetExceededError: A cap was reached; ``version`` stands.
            ModelError: An endpoint refuses every call.
        """
        old = version.draft.questions
        for number, question in enumerate(old.questions, 1):
            self.events.phase(f"wording question {number} of {len(old.questions)}: {question.text}")
            taken = {_words(each.text): each.id for each in old.questions if each.id != question.id}
            taken |= {_words(each.after.text): each.question for each in found if each.after is not None}
            outcome = await self._word(version.draft, question, taken)
            found.append(outcome)
            self.events.emit(QuestionWorded(outcome))
        by_id = {each.question: each for each in found}
        new = old.model_copy(update={"questions": tuple(by_id[each.id].of(each) for each in old.questions)})
        if new == old:
            return version
        winner = await contest.challenge(version, (), 0, Draft(version.prompt, new))
        found[:] = [each.decided(accepted=winner is not version) for each in found]
        return winner

    async def _word(self, draft: Draft, question: Question, taken: Mapping[str, str]) -> QuestionWordings:
        """``taken``: the words of the checklist's other questions, with whose they are."""
        source = {name: each for (name, asked), each in self.source.items() if asked == question.id}
        asked = WordingTried.of(question)
        reason = nothing_to_tell(source)
        if reason is not None:
            return QuestionWordings(question.id, asked, reason)
        try:
            texts = await self.writer.write(question)
        except ModelError as error:
            if error.fatal:
                raise
            return QuestionWordings(question.id, asked, f"no other wordings could be had: {error}")
        wanted = {name: question.p_good(each.p_yes) for name, each in source.items() if each.p_yes is not None}
        order = in_turns([each.id for each in self.examples if each.id in wanted], source)
        others = [Wording(text, question.sees) for text in texts if _words(text) not in taken]
        refused = [
            WordingTried(
                text, question.good, dropped=f"it is what question {taken[_words(text)]} asks", sees=question.sees
            )
            for text in texts
            if _words(text) in taken
        ]
        if draft.prompt.can_show_less_of(self.examples):
            others.append(Wording(question.text, "all" if question.sees == "output" else "output"))
        made = await self._choose(draft, Trying(question, wanted), others, order)
        return replace(made, tried=(*refused, *made.tried))

    async def _choose(
        self, draft: Draft, trying: Trying, others: Sequence[Wording], order: Sequence[str]
    ) -> QuestionWordings:
        """Successive halving: all wordings on a few examples, the better half on more."""
        by_id = {example.id: example for example in self.examples}
        asked = WordingTried.of(trying.question).wording
        own: Answers = {}
        left: dict[Wording, Answers] = {each: {} for each in others}
        dropped: list[WordingTried] = []
        start = 0
        for rung in rungs(len(order)):
            judged = await self._judge(
                draft, trying.question, [asked, *left], [by_id[each] for each in order[start:rung]]
            )
            own = {**own, **judged[0]}
            left = {each: {**known, **new} for (each, known), new in zip(left.items(), judged[1:], strict=True)}
            tried = {each: trying.other(each, answers) for each, answers in left.items()}
            lost = {each: "the target left too many unanswered" for each in left if unanswered(left[each])}
            if rung < len(order):
                rest = [each for each in left if each not in lost]
                keep = better_half([tried[each] for each in rest])
                lost |= {each: f"not in the better half after {rung} examples" for each in rest if each not in keep}
            dropped += [replace(tried[each], dropped=why) for each, why in lost.items()]
            left = {each: answers for each, answers in left.items() if each not in lost}
            start = rung
        return trying.choose(own, left, dropped, self._resampling_of(own))

    def _resampling_of(self, answers: Answers) -> Resampling:
        """Return the resampling with the document of each answer.

        Answers come in another order than the examples, and may be fewer.
        """
        if self.resampling.groups is None:
            return self.resampling
        named = dict(zip((each.id for each in self.examples), self.resampling.groups, strict=True))
        return replace(self.resampling, groups=[named[each] for each in answers])

    async def _judge(
        self, draft: Draft, question: Question, wordings: Sequence[Wording], examples: Sequence[Example]
    ) -> list[dict[str, float | None]]:
        """The target's P(yes) to each wording, by example."""
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
    """A text's words alone, by which two questions are the same."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def most_calls(questions: int, examples: int, views: int) -> int:
    """Calls at most before the acceptance test: written, and judged with the source's wording as often as the last look asks.

    Args:
        questions: How many there are.
        examples: How many are in development.
        views: How a question may be asked: 2 where it may also see the output alone.
    """
    wordings, start, calls = MOST_WORDINGS * len(KINDS) + views - 1, 0, len(KINDS)
    for rung in rungs(examples):
        calls += (rung - start) * (wordings + 1)
        start, wordings = rung, (wordings + 1) // 2
    return questions * calls
