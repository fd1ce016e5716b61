"""``checkeval``: the model adds questions to seed questions and leaves some out; the score is the share of hard yes.

CheckEval (Lee et al. 2025, §3): the checklist gives the seeds of each dimension. Two calls a dimension write more from
them: from other sides of the dimension, and in more detail. A third call filters the new questions by the paper's three
criteria: yes speaks for the output, the question belongs to its dimension, it repeats no other. The words are ours.
Seeds, which people wrote, are never filtered, so each dimension keeps a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...agents.agent import ask_for
from ...agents.buying import Estimate
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import BudgetExceededError
from ...prompts.templates import render
from .protocol import Criterion, criteria_for
from .questionnaire import needed_checklist, yes_no

if TYPE_CHECKING:
    from ...prompts.examples import Example
    from .protocol import JudgeScore, Setup
    from .questionnaire import Questionnaire

MOST_NEW = 5
"""Questions of one kind that are asked for, for a dimension."""
WRITING_TOKENS = 500
FILTER_TOKENS = 400
KINDS: Mapping[str, str] = {
    "diversified": "Look at it from sides that the questions above leave out, so that all of it is covered.",
    "elaborated": "Go into what the questions above ask: each new question asks for one detail of one of them.",
}
"""Instruction for each of the two ways of writing more."""


class FurtherQuestions(BaseModel):
    """The model's reply when it is asked for more questions."""

    model_config = ConfigDict(extra="forbid", title="questions")
    questions: list[Annotated[str, Field(min_length=8, max_length=300)]] = Field(max_length=MOST_NEW)


class _Drop(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int
    why: Literal["yes is bad", "elsewhere", "repeats"]


class FilteredQuestions(BaseModel):
    """The model's reply when it is asked which questions to leave out."""

    model_config = ConfigDict(extra="forbid", title="choice of questions")
    dropped: list[_Drop]


def evenly_weighted(checklist: Checklist) -> Checklist:
    """The checklist as CheckEval scores it: every question counts the same."""
    even = tuple(question.model_copy(update={"weight": 1.0}) for question in checklist.questions)
    return checklist.model_copy(update={"questions": even, "section_weights": {}})


class CheckEval:
    """The judge; its questions are written when it is prepared."""

    name = "checkeval"

    def __init__(self, setup: Setup) -> None:
        """Take the checklist as seeds. Raises InputError where there is none, or a dimension has no question."""
        self._setup = setup
        self._seeds = evenly_weighted(needed_checklist(setup, self.name))
        self._dimensions = criteria_for(self._seeds.dimensions)
        self.written: tuple[Question, ...] = ()
        """Questions that were added to the seeds; none before it is prepared."""

    async def prepare(self) -> None:
        """Have questions written and filtered: three calls a dimension, the last only where there are new ones."""
        added = [await self._added(self._setup, criterion) for criterion in self._dimensions]
        self.written = tuple(chain.from_iterable(added))

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask the seeds and what was written."""
        return await self._judge(self.written).rate(examples)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of the most that writing, filtering and asking would buy, where the new questions are not known."""
        stored_only = self._setup.stored_only
        added: list[Question] = []
        unknown = 0
        for criterion in self._dimensions:
            try:
                added += await self._added(stored_only, criterion)
            except BudgetExceededError:
                unknown += 1
                texts = [
                    f"A question of usual length on {criterion.dimension}, number {n}?" for n in range(2 * MOST_NEW)
                ]
                added += self._named(criterion, "new", texts)
        tokens = 2 * WRITING_TOKENS + FILTER_TOKENS
        return await self._judge(added).estimate(examples) + Estimate(0, 3 * unknown, 0, tokens * unknown)

    def _judge(self, added: Sequence[Question]) -> Questionnaire:
        whole = self._seeds.model_copy(update={"questions": (*self._seeds.questions, *added)})
        return yes_no(self.name, self._setup, whole, soft=False)

    async def _added(self, setup: Setup, criterion: Criterion) -> list[Question]:
        seeds = [each.text for each in self._seeds.asked if each.dimension == criterion.dimension]
        about = {
            "task": setup.task,
            "dimension": criterion.dimension.replace("_", " "),
            "description": criterion.description,
        }
        asked, seed = (setup.gateway, self.name, setup.model), setup.options.seed
        found: list[Question] = []
        known = {_wording(text) for text in seeds}
        for name, kind in KINDS.items():
            message = render("checkeval_more", **about, listed=_numbered(seeds), most=str(MOST_NEW), kind=kind)
            reply = await ask_for(*asked, [("user", message)], FurtherQuestions, max_tokens=WRITING_TOKENS, seed=seed)
            texts = {_wording(each): " ".join(each.split()) for each in reversed(reply.questions)}
            new = [texts[each] for each in reversed(texts) if each not in known]
            known.update(texts)
            found += self._named(criterion, name, new)
        if not found:
            return []
        listed = _numbered([*seeds, *(each.text for each in found)])
        message = render("checkeval_filter", **about, listed=listed)

        def known_numbers(reply: FilteredQuestions) -> None:
            if strange := [each.number for each in reply.dropped if not 1 <= each.number <= len(seeds) + len(found)]:
                raise ValueError(f"there is no question {strange[0]}")

        said = [("user", message)]
        filtered = await ask_for(
            *asked, said, FilteredQuestions, max_tokens=FILTER_TOKENS, seed=seed, check=known_numbers
        )
        dropped = {each.number for each in filtered.dropped}
        return [each for number, each in enumerate(found, len(seeds) + 1) if number not in dropped]

    def _named(self, criterion: Criterion, kind: str, texts: Sequence[str]) -> list[Question]:
        taken = {each.id for each in self._seeds.questions}
        named = []
        for number, text in enumerate(texts, 1):
            id = f"{criterion.dimension}-{kind}-{number}"
            while id in taken:
                id += "x"
            named.append(Question(id=id, text=text, dimension=criterion.dimension))
        return named


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def _wording(text: str) -> str:
    return " ".join(text.split()).casefold()
