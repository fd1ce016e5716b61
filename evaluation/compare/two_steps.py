"""Judges of two steps: something is written or answered before an output is rated.

``geval`` writes steps of evaluation; ``checkeval`` writes further questions; ``filled`` answers a questionnaire, sees
its own answers and then says one number for a dimension (EIG paper §3.5 and Figure 11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...agents.agent import ask_for
from ...agents.buying import Estimate
from ...models.base import ModelError
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import BudgetExceededError, InputError
from ...prompts.examples import Example
from ...prompts.templates import render
from ...prompts.verdicts import Verdict
from .protocol import Criterion, JudgeScore, NothingToPrepare, Setup, criteria_for
from .questionnaire import (
    ExpectedNumbers,
    Questionnaire,
    Sheets,
    covering,
    needed_checklist,
    number_judge,
    rating_checklist,
    yes_no,
)

MOST_STEPS = 6
STEP_TOKENS = 400


class EvaluationSteps(BaseModel):
    """The model's reply when it is asked for its steps of evaluation."""

    model_config = ConfigDict(extra="forbid", title="steps")

    steps: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(min_length=1, max_length=MOST_STEPS)


class GEval:
    """``geval``: :meth:`prepare` has steps of evaluation written, and outputs are rated by them (Liu et al. 2023)."""

    name = "geval"

    def __init__(self, setup: Setup) -> None:
        """It needs no checklist."""
        self._setup = setup
        self._steps: dict[str, list[str]] = {}

    async def prepare(self) -> None:
        """Have the steps of every dimension written: one call each. Raises ParseError where the reply is no list."""
        for criterion in self._setup.criteria:
            self._steps[criterion.dimension] = await _write_steps(self._setup, criterion)

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Rate by the steps."""
        return await self._judge(self._steps).rate(examples)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate what writing the steps and rating would buy. Before the steps are known no rating can be in the
        store."""
        steps: dict[str, list[str]] = {}
        unknown = 0
        stored_only = self._setup.stored_only
        for criterion in self._setup.criteria:
            try:
                steps[criterion.dimension] = await _write_steps(stored_only, criterion)
            except BudgetExceededError:
                unknown += 1
                steps[criterion.dimension] = ["-"]
        rating = await self._judge(steps).estimate(examples)
        return rating + Estimate(0, unknown, 0, unknown * STEP_TOKENS)

    def _judge(self, steps: dict[str, list[str]]) -> ExpectedNumbers:
        lines = {
            dimension: "\n".join(f"{number}. {step}" for number, step in enumerate(each, 1))
            for dimension, each in steps.items()
        }
        checklist = rating_checklist(self._setup, "rate_geval", steps=lines)
        return ExpectedNumbers(self.name, self._setup, self._setup.layout, checklist)


async def _write_steps(setup: Setup, criterion: Criterion) -> list[str]:
    message = render(
        "geval_steps",
        task=setup.task,
        dimension=criterion.dimension.replace("_", " "),
        description=criterion.description,
        most=str(MOST_STEPS),
    )
    reply = await ask_for(
        setup.gateway,
        GEval.name,
        setup.model,
        [("user", message)],
        EvaluationSteps,
        max_tokens=STEP_TOKENS,
        seed=setup.options.seed,
    )
    return [" ".join(step.split()) for step in reply.steps]


MOST_NEW = 5
"""Most questions that are asked for, of one kind and for a dimension."""
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
    """``checkeval``: the model adds questions to seed questions; the score is the share of hard yes (Lee et al. 2025,
    §3).

    The checklist gives the seeds of each dimension. Two calls a dimension write more from them: from other sides of the
    dimension, and in more detail. A third call filters the new questions by the paper's three criteria: yes speaks for
    the output, the question belongs to its dimension, it repeats no other. The words are ours. Seeds, which people
    wrote, are never filtered, so each dimension keeps a question.
    """

    name = "checkeval"

    def __init__(self, setup: Setup) -> None:
        """Take the checklist as seeds. Raises InputError where there is none, or a dimension has no question."""
        self._setup = setup
        self._seeds = evenly_weighted(needed_checklist(setup, self.name))
        self._dimensions = criteria_for(self._seeds.dimensions)
        self.written: tuple[Question, ...] = ()
        """Questions that were added to the seeds; none before :meth:`prepare`."""

    async def prepare(self) -> None:
        """Have questions written and filtered: three calls a dimension, the last only where there are new ones."""
        added = [await self._added(self._setup, criterion) for criterion in self._dimensions]
        self.written = tuple(chain.from_iterable(added))

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Ask the seeds and the written questions."""
        return await self._judge(self.written).rate(examples)

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate the most that writing, filtering and asking would buy as long as the new questions are not known."""
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
        fields = {
            "task": setup.task,
            "dimension": criterion.dimension.replace("_", " "),
            "description": criterion.description,
        }
        asked, seed = (setup.gateway, self.name, setup.model), setup.options.seed
        found: list[Question] = []
        known = {_wording(text) for text in seeds}
        for name, kind in KINDS.items():
            message = render("checkeval_more", **fields, listed=_numbered(seeds), most=str(MOST_NEW), kind=kind)
            reply = await ask_for(*asked, [("user", message)], FurtherQuestions, max_tokens=WRITING_TOKENS, seed=seed)
            texts = {_wording(each): " ".join(each.split()) for each in reversed(reply.questions)}
            new = [texts[each] for each in reversed(texts) if each not in known]
            known.update(texts)
            found += self._named(criterion, name, new)
        if not found:
            return []
        listed = _numbered([*seeds, *(each.text for each in found)])
        message = render("checkeval_filter", **fields, listed=listed)

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


TEMPLATE = "rate_questionnaire"


def questionnaire(setup: Setup) -> Questionnaire:
    """``questionnaire``: the judge sees the checklist's questions and says one number a dimension (Figure 11)."""
    listed = _listed(setup, _asked(setup, "questionnaire"), {})
    return number_judge("questionnaire", setup, TEMPLATE, listed=listed)


class Filled(NothingToPrepare):
    """``filled``: the judge answers the checklist first, then sees its answers and says one number a dimension.

    An example with a missing answer has no score: its questionnaire is not filled.
    """

    name = "filled"

    def __init__(self, setup: Setup) -> None:
        """Raises InputError where the checklist has no question on a dimension."""
        self._setup = setup
        self._checklist = _asked(setup, self.name)
        self._answers = yes_no(self.name, setup, self._checklist, soft=False)

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """Answer the questions about every example, then rate the examples with all answers."""
        try:
            verdicts = await self._answers.evaluator.judge(examples)
        except ModelError as error:  # the very first call, which settles what the endpoint can do, failed on all
            if error.fatal:
                raise
            return self._answers.all_failed(examples, str(error))
        missing = {each.example: each for each in reversed(verdicts) if each.status != "ok"}
        whole = [example for example in examples if example.id not in missing]
        found: dict[str, list[JudgeScore]] = {example.id: [] for example in whole}
        for score in await self._numbers(self._sheets(whole, verdicts)).rate(whole):
            found[score.example].append(score)
        for example in examples:
            if (failed := missing.get(example.id)) is not None:
                scores = self._answers.all_failed([example], failed.error or "")
                found[example.id] = [replace(score, status=failed.status) for score in scores]
        return [score for example in examples for score in found[example.id]]

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate of both steps; before the answers are known no number can be in the store."""
        stored = yes_no(self.name, self._setup.stored_only, self._checklist, soft=False)
        try:
            verdicts: Sequence[Verdict] = await stored.evaluator.judge(examples)
        except BudgetExceededError:
            verdicts = ()
        sheets = self._sheets(examples, verdicts)
        return await self._answers.estimate(examples) + await self._numbers(sheets).estimate(examples)

    def _sheets(self, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> Sheets:
        answers: dict[tuple[str, int], dict[str, bool | None]] = {}
        for each in verdicts:
            answers.setdefault((each.example, each.replicate), {})[each.question] = each.answer
        return {
            (example.id, replicate): rating_checklist(
                self._setup,
                TEMPLATE,
                listed=_listed(self._setup, self._checklist, answers.get((example.id, replicate), {})),
            ).asked
            for example in examples
            for replicate in range(self._answers.repeat)
        }

    def _numbers(self, sheets: Sheets) -> Questionnaire:
        listed = _listed(self._setup, self._checklist, {})
        return number_judge(self.name, self._setup, TEMPLATE, sheets=sheets, listed=listed)


def _asked(setup: Setup, judge: str) -> Checklist:
    """Return the checklist's questions without computed ones, which a model does not answer."""
    alone = needed_checklist(setup, judge).asked_alone
    if alone is None:
        raise InputError(f"The judge '{judge}' fills a questionnaire, and code answers the whole checklist.")
    return covering(alone, setup, judge)


def _listed(setup: Setup, checklist: Checklist, answers: Mapping[str, bool | None]) -> dict[str, str]:
    """Number the questions of each dimension, each with its answer if there is one."""
    listed = {}
    for dimension in setup.dimensions:
        own = [each for each in checklist.questions if each.dimension == dimension] or checklist.questions
        lines = []
        for number, question in enumerate(own, 1):
            answer = answers.get(question.id)
            said = "" if answer is None else f" Answer: {'yes' if answer else 'no'}"
            lines.append(f"{number}. {question.text}{said}")
        listed[dimension] = "\n".join(lines)
    return listed
