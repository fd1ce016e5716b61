"""Requests to a judge: one call a question (the paper's), or one call an example.

A way to ask (:data:`Asking`) makes the calls for an example: for yes or no, for a number of a scale, or, in
:mod:`.pairwise`, for the better of two outputs. :mod:`.replies` reads what is answered.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from ..models.base import Answer, Message, Parameters, Request, RequestKey, make_request
from ..models.replies.yes_no import NUMBER, PROBABILITY, ROOM, wants_room
from ..prompts.checklist import Question, Sees
from ..prompts.conversations.chat import NO_CALL, calls_told, images_of, with_images
from ..prompts.examples import Example
from ..prompts.prompt import Framing, Prompt, frame
from ..prompts.templates import render, template
from .measures.nearest import in_view
from .replies import ENGLISH, Answers, Reading, YesNoForm, read_object, read_objects, read_quote, read_score, read_word

_EXPLANATION = {"type": "string", "maxLength": 300}


def object_schema(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _schema(answers: Answers, *, explained: bool, stated: bool = False) -> dict[str, Any]:
    word = {"type": "string", "enum": list(answers)}
    if not (explained or stated):
        return word
    fields: dict[str, Any] = {"answer": word}
    if stated:
        fields[PROBABILITY] = NUMBER  # after the answer, which is decided before it is rated
    if explained:
        fields["explanation"] = _EXPLANATION
    return object_schema(fields)


def question_block(question: Question) -> str:
    """One question with its rubric, reference answer and violation example, where it has them."""
    lines = [f"Question: {question.text}"]
    if question.rubric:
        lines.append(f"Rubric: {question.rubric}")
    if question.reference:
        lines.append(f"Reference answer: {question.reference}")
    if question.violation:
        lines.append(f"A violation would be: {question.violation}")
    return "\n".join(lines)


def each_format(*, explained: bool, answers: Answers = ENGLISH, stated: bool = False) -> str:
    """The sentence that says how to answer one question."""
    name = "answer" + ("_stated" * stated + "_explained" * explained or "_word")
    return render(name, good=answers[0], bad=answers[1])


def quote_format() -> str:
    """The sentence that says how to answer with a quote."""
    return template("answer_quote")


def batched_schema(
    questions: Sequence[Question], *, explained: bool, answers: Answers = ENGLISH, stated: bool = False
) -> dict[str, Any]:
    """JSON schema of the answers, keyed by question id in the order asked."""
    one = _schema(answers, explained=explained, stated=stated)
    return object_schema({question.id: one for question in questions})


def shuffled(questions: Sequence[Question], seed: int, example: str, replicate: int) -> list[Question]:
    """The questions in an order that depends on the seed, the example and the replicate alone."""
    order = list(questions)
    random.Random(f"{seed}/{example}/{replicate}").shuffle(order)
    return order


TOP_LOGPROBS = 20
"""Alternatives asked for at the token of the verdict; enough to hold every spelling of yes and no."""
QUOTE_TOKENS = 40
"""Most tokens of a quote that is read; longer ones are cut off."""
STATED_TOKENS = 40
"""Most tokens of an answer with its probability, in JSON."""


@dataclass(slots=True)
class Ask:
    """One call to be made: which questions on which example, and everything needed to build the request."""

    index: int
    """Position of the first of its verdicts in the result."""
    example: Example
    questions: tuple[Question, ...]
    replicate: int
    key: bytes
    framing: Framing
    rest: str
    """Text that follows the part that all questions on this example share."""
    parameters: Parameters
    wants_a_word: bool = False
    """Whether the answer is one word, yes or no."""
    wants_a_quote: bool = False
    """Whether it is words of the output, or no."""
    seen: Example | None = None
    """The example with what the judge is shown of it; None where that is the whole example."""

    @property
    def messages(self) -> list[Message]:
        """The conversation, as it is sent."""
        return opening(self.framing, self.framing.before + self.rest)

    def request(self) -> Request:
        """The request; it has the key that was computed without building it."""
        about = (self.questions[0], self.seen or self.example) if self.wants_a_word else None
        return Request(tuple(self.messages), self.parameters, self.replicate, self.key, self.framing, about)

    @property
    def is_short(self) -> bool:
        """Whether so few tokens are asked for that a mark before the answer may take them all."""
        return (self.wants_a_word or self.wants_a_quote) and self.parameters.max_tokens < ROOM

    def with_room(self, identity: str) -> Ask:
        """The call with room for what stands before the answer."""
        parameters = replace(self.parameters, max_tokens=ROOM)
        key = RequestKey(identity, parameters, self.replicate, opening(self.framing, self.framing.before)).key(
            self.rest
        )
        return replace(self, parameters=parameters, key=key)

    def again(self, identity: str, answer: Answer, problem: str, form: str) -> Request:
        """The request that asks again, once, saying what was wrong."""
        complaint = render("answer_again", problem=problem, format=quote_format() if self.wants_a_quote else form)
        messages = [*self.messages, ("assistant", answer.text or "(nothing)"), ("user", complaint)]
        return make_request(identity, messages, self.parameters, self.replicate, framing=self.framing)


class OneByOne(ABC):
    """One call a question; the keys share one hash of all that comes before the question."""

    prompt: Prompt
    questions: tuple[Question, ...]

    @property
    @abstractmethod
    def form(self) -> str:
        """The sentence that says how to answer; empty where the prompt alone says it, and nobody is asked again."""

    @property
    @abstractmethod
    def _parameters(self) -> Parameters: ...

    @abstractmethod
    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the answer, by question id; ids that are missing have to be asked alone. Raises ValueError where it says
        nothing usable; the message is the problem."""

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Whether only the beginning of an answer came, because too few tokens were asked for."""
        return False

    def _parameters_of(self, sees: Sees) -> Parameters:
        return self._parameters

    @property
    def wants_a_word(self) -> bool:
        """Whether the answer is one word, yes or no."""
        return False

    def _block(self, question: Question) -> str:
        return f"{question_block(question)}\n{self.form}"

    @cached_property
    def _blocks(self) -> list[str]:
        return [self._block(question) for question in self.questions]

    @cached_property
    def _by_view(self) -> dict[Sees, list[tuple[int, Question, str]]]:
        found: dict[Sees, list[tuple[int, Question, str]]] = {}
        for place, (question, block) in enumerate(zip(self.questions, self._blocks, strict=True)):
            found.setdefault(self._view(question), []).append((place, question, block))
        return found

    def _view(self, question: Question) -> Sees:
        return question.shown

    def _seen(self, example: Example, sees: Sees) -> Example:
        """The example with what the judge is shown of it."""
        return in_view(example, sees)

    def _frame(self, example: Example, sees: Sees) -> Framing:
        return frame(self.prompt, example, sees)

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """The calls for one example whose verdicts begin at ``position``; those that see the same stand together."""
        word = self.wants_a_word
        for sees, asked in self._by_view.items():
            seen = self._seen(example, sees)
            framing, parameters = self._frame(seen, sees), for_replicate(self._parameters_of(sees), replicate)
            keys = RequestKey(identity, parameters, replicate, opening(framing, framing.before))
            for place, question, block in asked:
                rest, index = block + framing.after, position + place
                key, quote = keys.key(rest), sees == "quote"
                yield Ask(index, example, (question,), replicate, key, framing, rest, parameters, word, quote, seen)


@dataclass(frozen=True)
class EachAsking(YesNoForm, OneByOne):
    """One call a question, answered with one word, or in JSON where an explanation or a probability is wanted too; a
    quote explains itself."""

    @cached_property
    def form(self) -> str:
        """One word, or JSON where more is wanted."""
        return each_format(explained=self.explained, answers=self.asked_words, stated=self.stated)

    @property
    def wants_a_word(self) -> bool:
        """Unless an explanation or a probability is wanted too."""
        return not (self.explained or self.stated)

    def _view(self, question: Question) -> Sees:
        return question.sees

    def _block(self, question: Question) -> str:
        """The question alone where the prompt says itself how to answer; a bare one then needs no label."""
        if question.sees == "quote":
            return question_block(question)
        if question.is_relation:
            return super()._block(question)
        prompt = self.prompt if question.sees == "all" else self.prompt.of_output_alone
        asks = prompt.asks_yes_or_no if self.answers is None else prompt.asks_for(*self.answers)
        if not (self.wants_a_word and asks):
            return super()._block(question)
        block = question_block(question)
        return question.text if block == f"Question: {question.text}" else block

    @cached_property
    def _parameters(self) -> Parameters:
        if not self.wants_a_word:
            top = 5 if self.logprobs else 0
            tokens = (200 if self.explained else 0) + (STATED_TOKENS if self.stated else 0)
            schema = _schema(self.asked_words, explained=self.explained, stated=self.stated)
            return Parameters(tokens, self.temperature, self.seed, top, schema)
        return Parameters(1 if self.logprobs else 8, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def _parameters_of(self, sees: Sees) -> Parameters:
        """A quote that is read is written to its end; the probability is that of its first token as before."""
        if sees != "quote" or self.wants_a_word:
            return self._parameters
        return Parameters(QUOTE_TOKENS, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """The one answer."""
        if ask.wants_a_quote:
            reading = read_quote(answer, ask.example.output or "", self)
        else:
            reading = read_word(answer, self) if self.wants_a_word else read_object(answer, self)
        return {ask.questions[0].id: reading}

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Whether what stands before the answer took the few tokens that were asked for."""
        most, ended, tokens = ask.parameters.max_tokens, answer.finish != "length", answer.logprobs or ()
        quotes = ask.wants_a_quote
        return ask.is_short and wants_room(answer.text, tokens, self.words, most=most, ended=ended, quotes=quotes)


@dataclass(frozen=True)
class BatchedAsking(YesNoForm):
    """One call an example: all questions at once, answers keyed by question id, order shuffled by seed.

    Questions that see the same and stand next to each other are a call.
    """

    most: int | None = None
    """Questions of one call at most."""

    def alone(self, question_id: str) -> EachAsking:
        """The way to ask one of the questions on its own."""
        questions = tuple(question for question in self.questions if question.id == question_id)
        how = (self.explained, self.logprobs, self.temperature, self.seed, self.answers, self.stated, self.by_number)
        return EachAsking(self.prompt, questions, *how)

    @cached_property
    def form(self) -> str:
        """A JSON object keyed by question id."""
        yes, no = self.asked_words
        return render(f"answer_batched{'_stated' * self.stated}{'_explained' * self.explained}", good=yes, bad=no)

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """One call for all questions that see the same, and for each that is answered with a quote."""
        for part in self.parts:
            if part[0].sees == "quote":
                yield from self.alone(part[0].id).asks(identity, example, position, replicate)
            else:
                yield self._together(identity, example, part, position, replicate)
            position += len(part)

    @cached_property
    def parts(self) -> list[tuple[Question, ...]]:
        """The questions of each call: those that see the same and stand next to each other, and each that is answered
        with a quote."""
        found = []
        for sees, some in groupby(self.questions, key=lambda question: question.sees):
            questions = tuple(some)
            size = 1 if sees == "quote" else self.most or len(questions)
            found += [questions[place : place + size] for place in range(0, len(questions), size)]
        return found

    def tokens(self, questions: Sequence[Question]) -> int:
        """Most tokens of the answers to several questions."""
        one = (100 if self.explained else 20) + (STATED_TOKENS if self.stated else 0)
        return one * len(questions) + sum(len(each.id) for each in questions) + 50

    def schema(self, questions: Sequence[Question]) -> dict[str, Any]:
        """JSON schema of the reply about several questions."""
        return batched_schema(questions, explained=self.explained, answers=self.asked_words, stated=self.stated)

    def block(self, questions: Sequence[Question]) -> str:
        """Blocks of several questions, in their order."""
        return "\n\n".join([*(f"[{each.id}] {question_block(each)}" for each in questions), self.form])

    def _together(
        self, identity: str, example: Example, asked: tuple[Question, ...], position: int, replicate: int
    ) -> Ask:
        framing = frame(self.prompt, in_view(example, asked[0].sees), asked[0].sees)
        questions = shuffled(asked, self.seed or 0, example.id, replicate)
        rest, top = self.block(questions) + framing.after, 5 if self.logprobs else 0
        whole = Parameters(self.tokens(questions), self.temperature, self.seed, top, self.schema(questions))
        parameters = for_replicate(whole, replicate)
        key = RequestKey(identity, parameters, replicate, opening(framing, framing.before)).key(rest)
        return Ask(position, example, asked, replicate, key, framing, rest, parameters)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the answers that are there and usable."""
        if ask.wants_a_quote:
            return self.alone(ask.questions[0].id).read(ask, answer)
        return read_objects(answer, [question.id for question in ask.questions], self)

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Whether only the beginning of a quote came."""
        return ask.wants_a_quote and self.alone(ask.questions[0].id).wants_room(ask, answer)


Asking = OneByOne | BatchedAsking
"""A way to ask a checklist about an example."""


def for_replicate(parameters: Parameters, replicate: int) -> Parameters:
    """The parameters with a seed of the replicate's own: with one seed an endpoint repeats itself."""
    if not replicate or parameters.seed is None:
        return parameters
    return replace(parameters, seed=parameters.seed + replicate)


def illustrated(examples: Iterable[Example]) -> Iterator[Example]:
    """The examples that have images in one of their texts."""
    if getattr(examples, "has_structure", True):  # a table of plain texts is not read
        for each in examples:
            if any(map(images_of, (each.input, each.output, each.context, each.reference))):
                yield each


def without_calls(examples: Iterable[Example], questions: Iterable[Question]) -> str | None:
    """A sentence where a question is about calls of tools and no example has one; None otherwise."""
    asked = next((each.id for each in questions if each.sees == "call"), None)
    outputs = (calls_told(each.output or "", each.input) for each in (examples if asked is not None else ()))
    if asked is None or any(each != NO_CALL for each in outputs):
        return None
    return f"Question '{asked}' is about calls of tools, and no output has any: the judge is told \"{NO_CALL}\""


def shows_images(prompt: Prompt, example: Example, sees: Sees = "all") -> bool:
    """Whether a judge is shown images of an example with a question that sees this part of it."""
    return bool(frame(prompt, example, sees).images)


def opening(framing: Framing, content: str) -> list[Message]:
    """The conversation up to the first answer, whose user says ``content``."""
    before: list[Message] = [*framing.messages, *([("system", framing.system)] if framing.system is not None else [])]
    for said, answer in framing.turns:
        before += [("user", said), ("assistant", answer)]
    return [*before, ("user", with_images(content, framing.images))]


TOKENS = 4
"""Tokens of a reply: some tokenizers begin with a blank, and some models with marks around the number."""


@dataclass(frozen=True)
class ExpectedScoreAsking(OneByOne):
    """One call a question, answered with a number of a scale (LMUnit §3.3; :func:`.replies.read_score`)."""

    prompt: Prompt
    questions: tuple[Question, ...]
    explained: bool
    temperature: float
    seed: int | None
    scale: tuple[int, int]
    """Lowest and highest number, in 0 to 9, or to 10 where nothing is explained."""

    @cached_property
    def form(self) -> str:
        """One number, or JSON where an explanation is wanted."""
        name = "answer_score_explained" if self.explained else "answer_score"
        return render(name, low=str(self.scale[0]), high=str(self.scale[1]))

    @cached_property
    def _parameters(self) -> Parameters:
        if not self.explained:
            return Parameters(TOKENS, self.temperature, self.seed, TOP_LOGPROBS)
        low, high = self.scale
        score = {"type": "integer", "enum": list(range(low, high + 1))}
        schema = object_schema({"score": score, "explanation": _EXPLANATION})
        return Parameters(200, self.temperature, self.seed, TOP_LOGPROBS, schema)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """The expected number."""
        return {ask.questions[0].id: read_score(answer, self.scale, explained=self.explained)}

    def nearest(self, p_yes: float) -> str:
        """The number of the scale that an expected score lies next to: what the judge as good as said."""
        low, high = self.scale
        return str(low + round(p_yes * (high - low)))
