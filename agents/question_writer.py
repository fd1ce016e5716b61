"""Agents that write yes/no questions from a task or from examples, or reword a question.

:class:`QuestionWriter` goes from the task to its requirements, and from each requirement to atomic questions (BinEval
§3.1). :class:`QuestionProposer` sees a few examples without their scores, and the known questions (EIG §3.2, App. A.5).
:class:`Rephraser` rewords a question for a judge that does not understand it. Small models hear the topic of a question
and not its negation, so no wording may negate; the data decide which answer is good. :class:`QuestionMender` corrects a
question that is not a proper sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..memory.embedders import Embedder, greedy_unique
from ..models.base import CallError, EmptyAnswerError, Message, Model
from ..models.gateway import Gateway
from ..prompts.checklist import Checklist, Question
from ..prompts.criteria.wording import oddity
from ..prompts.errors import AskanceError
from ..prompts.examples import Example
from ..prompts.lessons import foreign_order
from ..prompts.prompt import Prompt
from ..prompts.templates import FencedText, joined, render, template
from ..prompts.text import fence, shorten
from .agent import Agent, ParseError
from .updater import split_parts

SAME_QUESTION = 0.95
"""Smallest cosine similarity at which two questions count as the same."""
MOST_REQUIREMENTS = 12
"""Most requirements read from a task, unless another number is given."""
MOST_PARTS = 3
"""Most questions for one requirement, and most parts of a compound question."""
MOST_CALLS = 1 + MOST_REQUIREMENTS * (1 + MOST_PARTS)
"""Most calls for a checklist, without re-asks: one for the requirements, one for the questions of each requirement, and
one to split each question."""
_COMPOUND = re.compile(r"\b(?:and|or|both|as well as)\b|;", re.IGNORECASE)
_LONGEST_TEXT = 6000
"""Most characters of an example's text that are shown. A longer text is cut in its middle."""


@dataclass(frozen=True)
class ProposedQuestion:
    """A question before it has an id."""

    text: str
    violation: str
    dimension: str
    clause: str | None = None
    """Part of a judge's prompt that the question comes from."""


def name_questions(proposed: Iterable[ProposedQuestion]) -> Iterator[Question]:
    """Yield the questions with ids made of their dimension and a number."""
    numbers: dict[str, int] = {}
    for proposal in proposed:
        slug = re.sub(r"\W+", "-", proposal.dimension).strip("-") or "question"
        numbers[slug] = numbers.get(slug, 0) + 1
        name = f"{slug}-{numbers[slug]}"
        yield Question(
            id=name,
            text=proposal.text,
            dimension=proposal.dimension,
            violation=proposal.violation,
            clause=proposal.clause,
        )


def wording(text: str) -> str:
    """Return only the words of a question, to compare it with others. A text without words is returned unchanged."""
    return re.sub(r"\W+", " ", text).strip().casefold() or text


class _Draft(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    text: str = Field(min_length=8, max_length=300)
    violation: str = Field(min_length=3, max_length=300)


class Requirements(BaseModel):
    """Step 1: the requirements of the task."""

    model_config = ConfigDict(title="requirements")

    requirements: list[str] = Field(min_length=1)


class _Criterion(BaseModel):
    part: int = Field(ge=1)
    criterion: str = Field(min_length=3, max_length=300)


class Criteria(BaseModel):
    """Step 1 for a judge's prompt: the criteria in its parts."""

    model_config = ConfigDict(title="criteria")

    criteria: list[_Criterion] = Field(min_length=1)


class TakenApart(NamedTuple):
    """A judge's prompt as a checklist."""

    checklist: Checklist
    left: tuple[str, ...]
    """Parts of the prompt without a question."""


class QuestionWriter(Agent):
    """A model that decomposes a task into a checklist."""

    role = "writer"

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        embedder: Embedder,
        *,
        seed: int | None = None,
        most_requirements: int = MOST_REQUIREMENTS,
        on_progress: Callable[[str], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        """Set up the writer.

        Args:
            embedder: Finds questions that repeat each other.
            most_requirements: Most requirements in step 1.
            on_lost: Called with a sentence on a requirement that gets no questions because the replies about it cannot
                be used. Without ``on_lost``, this is an error.
        """
        super().__init__(gateway, model, seed=seed)
        self._embedder = embedder
        self._most = most_requirements
        self._tell = on_progress or (lambda _: None)
        self._on_lost = on_lost

    async def write(self, task: str, dimensions: Sequence[str] = ()) -> Checklist:
        """Write a checklist for a task.

        ``dimensions`` are the allowed dimensions; without them, the model proposes a dimension for each question. A
        compound question that the model cannot split is kept whole. Raises ParseError if the model's replies cannot be
        used; with ``on_lost``, only if this holds for all requirements.
        """
        self._tell("reading the task's requirements")
        read = await self._ask(
            render("requirements", most=str(self._most)),
            render("requirements_case", task=task),
            Requirements,
            max_tokens=60 * self._most,
        )
        requirements = [text.strip() for text in read.requirements[: self._most] if text.strip()]
        found = await self._about(task, requirements, dimensions)
        return self._checklist(task.strip(), [draft for drafts in found for draft in drafts])

    async def take_apart(self, prompt: Prompt, dimensions: Sequence[str] = ()) -> TakenApart:
        """Write the checklist of a judge's prompt: first the criteria in its parts, then questions about each.

        The ``clause`` of a question is the part of the prompt that it comes from. Errors are those of :meth:`write`.
        """
        self._tell("reading the criteria of the prompt")
        parts = [prompt.text[start:end].strip() for start, end in split_parts(prompt)]

        def are_parts(read: Criteria) -> None:
            if any(each.part > len(parts) for each in read.criteria):
                raise ValueError(f'"part" must be a number from 1 to {len(parts)}')

        read = await self._ask(
            render("clauses", most=str(self._most)),
            render("clauses_case", parts="\n".join(f"[{number}] {part}" for number, part in enumerate(parts, 1))),
            Criteria,
            max_tokens=70 * self._most,
            check=are_parts,
        )
        criteria = read.criteria[: self._most]
        found = await self._about(prompt.text, [each.criterion.strip() for each in criteria], dimensions)
        clauses = [parts[each.part - 1] for each in criteria]
        drafts = [replace(draft, clause=clause) for clause, some in zip(clauses, found, strict=True) for draft in some]
        asked = {draft.clause for draft in drafts}
        return TakenApart(self._checklist("", drafts), tuple(part for part in parts if part not in asked))

    async def _about(
        self, task: str, requirements: Sequence[str], dimensions: Sequence[str]
    ) -> list[list[ProposedQuestion]]:
        """Write questions about each requirement. The list of a lost requirement is empty (see ``on_lost``)."""
        drafts: list[list[ProposedQuestion]] = []
        unusable: CallError | None = None
        for number, requirement in enumerate(requirements, 1):
            self._tell(f"requirement {number} of {len(requirements)}: {requirement}")
            drafts.append([])
            try:
                found = await self._decompose(task, requirement, dimensions)
            except (ParseError, EmptyAnswerError) as error:
                if self._on_lost is None or error.fatal:
                    raise
                unusable = error
                lost = f"No question was written about the requirement '{requirement}'; write one by hand."
                self._on_lost(f"{lost} {error}")
                continue
            for draft in found:
                drafts[-1] += await self._parts(draft)
        if not any(drafts):
            none = "The model wrote no questions for this task. Say more in the task, or use another model."
            raise unusable or AskanceError(none)
        return drafts

    def _checklist(self, task: str, drafts: Sequence[ProposedQuestion]) -> Checklist:
        kept = greedy_unique(self._embedder.embed([draft.text for draft in drafts]), SAME_QUESTION)
        return Checklist(task=task, questions=tuple(name_questions(drafts[index] for index in kept)))

    async def _decompose(self, task: str, requirement: str, dimensions: Sequence[str]) -> list[ProposedQuestion]:
        sentence, fields = ", and with the dimension of quality that it belongs to", '"text", "violation", "dimension"'
        if len(dimensions) > 1:
            sentence += f" (one of: {', '.join(dimensions)})"
        elif dimensions:
            sentence, fields = "", '"text", "violation"'
        reply = await self._ask(
            render("decompose", dimension_sentence=sentence, fields=fields),
            render("decompose_case", task=task, requirement=requirement),
            _drafts_record(dimensions, MOST_PARTS),
            max_tokens=500,
        )
        return _proposed(reply, dimensions)

    async def _parts(self, draft: ProposedQuestion) -> list[ProposedQuestion]:
        """Split a question that looks compound. Other questions, and those that the model cannot split, are kept."""
        if not _COMPOUND.search(draft.text):
            return [draft]
        case = render("split_question_case", question=draft.text, violation=draft.violation)
        try:
            record = questions_record(_Draft, MOST_PARTS)
            reply: Any = await self._ask(template("split_question"), case, record, max_tokens=400)
        except ParseError as error:
            self._tell(f"kept whole, as it could not be taken apart ({error}): {draft.text}")
            return [draft]
        return [replace(draft, text=part.text, violation=part.violation) for part in reply.questions]


class QuestionProposer(Agent):
    """A model that sees examples without their scores and proposes questions to judge them."""

    role = "writer"

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        *,
        task: str = "",
        dimensions: Sequence[str] = (),
        most: int = 8,
        seed: int | None = None,
    ) -> None:
        """``task`` is the generator's task. ``dimensions`` are the allowed dimensions; if empty, any is allowed."""
        super().__init__(gateway, model, seed=seed)
        self._task = task.strip()
        self._dimensions = tuple(dimensions)
        self._most = most

    async def propose(self, examples: Sequence[Example], known: Sequence[str]) -> list[ProposedQuestion]:
        """Propose questions after a look at some examples. ``known`` are the questions that exist already. Questions
        with an order that is forbidden in lessons are left out. Raises ParseError if the replies cannot be used."""
        fields = '"text", "violation"'
        if len(self._dimensions) != 1:
            fields += ', "dimension" (the side of quality that it is about'
            fields += f": one of {', '.join(self._dimensions)})" if self._dimensions else ", one or two words)"
        reply = await self._ask(
            render("propose", most=str(self._most), fields=fields),
            render(
                "propose_case",
                task=f"The task:\n{self._task}\n\n" if self._task else "",
                examples=joined((_shown(number, each) for number, each in enumerate(examples, 1)), "\n\n"),
                known="\n".join(f"- {text}" for text in known) or "(none)",
            ),
            _drafts_record(self._dimensions, self._most),
            max_tokens=120 * self._most,
        )
        found = _proposed(reply, self._dimensions)
        return [each for each in found if foreign_order(f"{each.text}\n{each.violation}", self._task) is None]


def _drafts_record(dimensions: Sequence[str], most: int) -> type[BaseModel]:
    """Make the record of a reply with questions. Their dimension is chosen from several, free if there are none, and
    left out if there is one."""
    fields: dict[str, object] = {}
    if len(dimensions) > 1:
        fields["dimension"] = (Literal[tuple(dimensions)], ...)
    elif not dimensions:
        fields["dimension"] = (str, Field(min_length=2, max_length=40))
    return questions_record(create_model("Draft", __base__=_Draft, **fields), most)  # type: ignore[call-overload]


def questions_record(draft: type[BaseModel], most: int) -> type[BaseModel]:
    """Make the record of a reply with at most ``most`` questions."""
    questions = (list[draft], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
    return create_model("Drafts", __config__=ConfigDict(title="questions"), questions=questions)


def _proposed(reply: Any, dimensions: Sequence[str]) -> list[ProposedQuestion]:
    """Return the questions of a reply with their dimensions: the only given one, the chosen one, or a free one."""

    def dimension(draft: Any) -> str:
        if len(dimensions) == 1:
            return dimensions[0]
        return str(draft.dimension) if dimensions else " ".join(draft.dimension.lower().split())

    return [ProposedQuestion(each.text, each.violation, dimension(each)) for each in reply.questions]


def _shown(number: int, example: Example) -> FencedText:
    parts = [f"Example {number}"]
    for name in ("context", "input", "reference", "output"):
        text = getattr(example, name)
        if text:
            parts.append(f"{name.capitalize()}:\n{fence(_cut(text))}")
    return FencedText("\n\n".join(parts))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


MOST_WORDINGS = 4
"""Most wordings of each kind in :data:`KINDS`."""
KINDS = ("rephrase_thing", "rephrase_opposite")
"""Templates: one asks for the thing that a question is about, one for what a reader sees if the answer is no."""
_MOST_TOKENS = 120
_LONGEST = 160
_SHORTEST = 10
_ASKED = "Question: "
_NUMBERED = re.compile(r"^\s*(?:[-*\u2022]|\(?\d{1,2}[.):])\s*")
_OPENING = re.compile(r"(?:do|does|did|is|are|was|were|has|have|can|could|would|will)\b", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:not|no|never|none|nothing|avoid\w*|without|refrain\w*|abstain\w*|free\s+(?:of|from)|cannot|"
    r"(?:stay|keep|steer)s?\s+(?:away|clear))\b|n['\u2019]t\b",
    re.IGNORECASE,
)


class Rephraser(Agent):
    """A model that rewords a question, and words its opposite; each in a call of about 300 tokens."""

    role = "writer"

    async def write(self, question: Question) -> list[str]:
        """Return other wordings, in the order written; none if no line of the replies can be used.

        A usable line is one short yes/no question without a negation that is not a repetition. The wordings do not say
        which answer is good; the data decide it.
        """
        found: dict[str, str] = {wording(question.text): ""}
        for kind in KINDS:
            answer = await self._say(_messages(kind, " ".join(question.text.split())), max_tokens=_MOST_TOKENS)
            lines = answer.text.splitlines()
            usable = questions_in(lines[:-1] if answer.finish == "length" else lines)
            new = {wording(each): each for each in usable if wording(each) not in found}
            found |= dict(list(new.items())[:MOST_WORDINGS])
        return [text for text in found.values() if text]


class QuestionMender(Agent):
    """A model that corrects a question that is not a proper sentence, in one call of about 300 tokens."""

    role = "writer"

    async def write(self, question: str, comments: Sequence[str]) -> list[str]:
        """Return corrected wordings, in the order written; none if no line of the reply is a proper question.

        Wordings with forbidden orders are left out. ``comments`` led to the question; the model sees the first one.
        """
        about = f"\nSaid: {shorten(' '.join(comments[0].split()), _LONGEST)}" if comments else ""
        messages = _messages("mend_question", f"{question}{about}", lines=2)
        answer = await self._say(messages, max_tokens=_MOST_TOKENS)
        found = [each for each in questions_in(answer.text.splitlines()) if oddity(each) is None]
        return [each for each in dict.fromkeys(found) if each != question and foreign_order(each) is None]


def questions_in(lines: list[str]) -> list[str]:
    """Return the lines that are short yes/no questions without a negation. Bullets and numbers are removed."""
    cleaned = [" ".join(_NUMBERED.sub("", line).strip(" \t\"'").removeprefix(_ASKED).split()) for line in lines]
    return [
        text
        for text in cleaned
        if _SHORTEST <= len(text) <= _LONGEST
        and text.endswith("?")
        and text.count("?") == 1
        and _OPENING.match(text)
        and not _NEGATED.search(text)
    ]


def _messages(kind: str, text: str, *, lines: int = 1) -> list[Message]:
    """Make a conversation: the orders, the template's examples as turns, and the question. The first ``lines`` lines of
    each example are the user's, the others the assistant's."""
    orders, *examples = template(kind).split(f"\n\n{_ASKED}")
    messages: list[Message] = [("system", orders)]
    for example in examples:
        said = example.strip().split("\n")
        messages += [("user", _ASKED + "\n".join(said[:lines])), ("assistant", "\n".join(said[lines:]))]
    return [*messages, ("user", _ASKED + text)]
