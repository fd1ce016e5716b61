"""Agents that write yes/no questions from a task, from examples, or anew for another judge.

:class:`QuestionWriter` goes from the task to its requirements, and from each of these to atomic questions (BinEval
§3.1). :class:`QuestionProposer` is shown a few examples without their scores, and the questions that are there already
(EIG §3.2, App. A.5). :class:`Rephraser` words a question anew for a judge that does not understand it: small models
hear the topic of a question and not its negation, so no wording may negate. The data say which answer is good.
:class:`QuestionMender` makes a sentence of a question that reads oddly.
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
"""Cosine similarity from which two questions count as the same."""
MOST_REQUIREMENTS = 12
"""Requirements that are read from a task at most, unless another number is given."""
MOST_PARTS = 3
"""Questions for one requirement at most, and parts that a compound one is taken apart into."""
MOST_CALLS = 1 + MOST_REQUIREMENTS * (1 + MOST_PARTS)
"""Calls for a checklist at most, re-asks aside: the requirements, the questions for each, and each taken apart."""
_COMPOUND = re.compile(r"\b(?:and|or|both|as well as)\b|;", re.IGNORECASE)
_LONGEST_TEXT = 6000
"""Characters of an example's text that are shown; a longer one is cut in its middle."""


@dataclass(frozen=True)
class ProposedQuestion:
    """A question before it has an id."""

    text: str
    violation: str
    dimension: str
    clause: str | None = None
    """Words of a judge's prompt that it comes from."""


def name_questions(proposed: Iterable[ProposedQuestion]) -> Iterator[Question]:
    """Questions with ids made from their dimension and a number."""
    numbers: dict[str, int] = {}
    for each in proposed:
        slug = re.sub(r"\W+", "-", each.dimension).strip("-") or "question"
        numbers[slug] = numbers.get(slug, 0) + 1
        name = f"{slug}-{numbers[slug]}"
        yield Question(id=name, text=each.text, dimension=each.dimension, violation=each.violation, clause=each.clause)


def wording(text: str) -> str:
    """A question's words alone, by which two are the same question; a text without any stands for itself."""
    return re.sub(r"\W+", " ", text).strip().casefold() or text


class _Draft(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)

    text: str = Field(min_length=8, max_length=300)
    violation: str = Field(min_length=3, max_length=300)


class Requirements(BaseModel):
    """Step 1: what the task demands."""

    model_config = ConfigDict(title="requirements")

    requirements: list[str] = Field(min_length=1)


class _Criterion(BaseModel):
    part: int = Field(ge=1)
    criterion: str = Field(min_length=3, max_length=300)


class Criteria(BaseModel):
    """Step 1 on a judge's prompt: the criteria that its parts state."""

    model_config = ConfigDict(title="criteria")

    criteria: list[_Criterion] = Field(min_length=1)


class TakenApart(NamedTuple):
    """A judge's prompt as a checklist."""

    checklist: Checklist
    left: tuple[str, ...]
    """Parts of the prompt that no question comes from."""


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
        """Set it up.

        Args:
            embedder: Finds questions that repeat each other.
            most_requirements: How many requirements step 1 may list.
            on_lost: Told which requirement has no questions as the replies about it cannot be used, and why; without it
                that is an error.
        """
        super().__init__(gateway, model, seed=seed)
        self._embedder = embedder
        self._most = most_requirements
        self._tell = on_progress or (lambda _: None)
        self._on_lost = on_lost

    async def write(self, task: str, dimensions: Sequence[str] = ()) -> Checklist:
        """Write a checklist for a task; without ``dimensions`` that are allowed, the model proposes a word for each
        question. Raises ParseError where the model's replies cannot be used, those about all requirements where
        ``on_lost`` is there; a question that it cannot take apart is kept whole."""
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
        """Write the checklist of a judge's prompt: the criteria of its parts, then questions about each, with the part
        that it comes from as its ``clause``. Errors are those of :meth:`write`."""
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
        """Questions about each requirement; none where the replies about one cannot be used, as ``on_lost`` is told."""
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
        """Have a question that looks compound taken apart; others, and those that cannot be, are kept."""
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
    """A model that is shown examples without their scores and proposes questions to judge them by."""

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
        """``task`` is what the generator is asked to do; ``dimensions`` are the allowed ones, free where empty."""
        super().__init__(gateway, model, seed=seed)
        self._task = task.strip()
        self._dimensions = tuple(dimensions)
        self._most = most

    async def propose(self, examples: Sequence[Example], known: Sequence[str]) -> list[ProposedQuestion]:
        """Propose questions on seeing some examples; what no lesson may say, no question may. Raises ParseError where
        the replies cannot be used."""
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
    """Record of a reply with questions; the dimension of each is one of the given ones, free, or left out."""
    fields: dict[str, object] = {}
    if len(dimensions) > 1:
        fields["dimension"] = (Literal[tuple(dimensions)], ...)
    elif not dimensions:
        fields["dimension"] = (str, Field(min_length=2, max_length=40))
    return questions_record(create_model("Draft", __base__=_Draft, **fields), most)  # type: ignore[call-overload]


def questions_record(draft: type[BaseModel], most: int) -> type[BaseModel]:
    """Record of a reply with so many questions at most."""
    questions = (list[draft], Field(min_length=1, max_length=most))  # type: ignore[valid-type]
    return create_model("Drafts", __config__=ConfigDict(title="questions"), questions=questions)


def _proposed(reply: Any, dimensions: Sequence[str]) -> list[ProposedQuestion]:
    """The questions of such a reply, each with the one given dimension, the chosen one, or its own in plain words."""

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
"""Wordings of one kind at most; a question has two kinds."""
KINDS = ("rephrase_thing", "rephrase_opposite")
"""Templates: one asks for what the question is about, the other for what one would see where the answer is no."""
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
    """A model that asks the same in other words, and for the opposite; each in a call of some 300 tokens."""

    role = "writer"

    async def write(self, question: Question) -> list[str]:
        """Other wordings, in the order written; empty where no line of the replies can be used.

        A line is used where it is one short yes/no question that negates nothing and repeats no other in its words.
        Nothing is said of which answer is good: that is for the data.
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
    """A model that writes a question that reads oddly anew, in one call of some 300 tokens."""

    role = "writer"

    async def write(self, question: str, comments: Sequence[str]) -> list[str]:
        """Wordings of a question, in the order written, that are sentences; empty where no line of the reply is one.

        ``comments`` are what it was made from; the first is shown. A wording keeps to it as any question does.
        """
        about = f"\nSaid: {shorten(' '.join(comments[0].split()), _LONGEST)}" if comments else ""
        messages = _messages("mend_question", f"{question}{about}", lines=2)
        answer = await self._say(messages, max_tokens=_MOST_TOKENS)
        found = [each for each in questions_in(answer.text.splitlines()) if oddity(each) is None]
        return [each for each in dict.fromkeys(found) if each != question and foreign_order(each) is None]


def questions_in(lines: list[str]) -> list[str]:
    """The lines that are short yes/no questions without a negation, without bullets and numbers."""
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
    """The orders, the template's examples as turns of a conversation (so many ``lines`` are the user's), and the
    question."""
    orders, *examples = template(kind).split(f"\n\n{_ASKED}")
    messages: list[Message] = [("system", orders)]
    for example in examples:
        said = example.strip().split("\n")
        messages += [("user", _ASKED + "\n".join(said[:lines])), ("assistant", "\n".join(said[lines:]))]
    return [*messages, ("user", _ASKED + text)]
