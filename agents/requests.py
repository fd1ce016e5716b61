"""Requests to a judge: one call per question (as in the paper), or one call per example.

A way to ask (:data:`Asking`) makes the calls for an example. It asks for yes or no, for a number on a scale, or, in
:mod:`.pairwise`, for the better of two outputs. :mod:`.replies` reads the answers.
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
    """Return the JSON schema of an object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _schema(answers: Answers, *, explained: bool, stated: bool = False) -> dict[str, Any]:
    word = {"type": "string", "enum": list(answers)}
    if not (explained or stated):
        return word
    fields: dict[str, Any] = {"answer": word}
    if stated:
        fields[PROBABILITY] = NUMBER  # after the answer, so that the judge decides before it states a probability
    if explained:
        fields["explanation"] = _EXPLANATION
    return object_schema(fields)


def question_block(question: Question) -> str:
    """Write one question with its rubric, reference answer and violation example, if it has them."""
    lines = [f"Question: {question.text}"]
    if question.rubric:
        lines.append(f"Rubric: {question.rubric}")
    if question.reference:
        lines.append(f"Reference answer: {question.reference}")
    if question.violation:
        lines.append(f"A violation would be: {question.violation}")
    return "\n".join(lines)


def each_format(*, explained: bool, answers: Answers = ENGLISH, stated: bool = False) -> str:
    """Return the sentence that tells the judge how to answer one question."""
    name = "answer" + ("_stated" * stated + "_explained" * explained or "_word")
    return render(name, good=answers[0], bad=answers[1])


def quote_format() -> str:
    """Return the sentence that tells the judge how to answer with a quote."""
    return template("answer_quote")


def batched_schema(
    questions: Sequence[Question], *, explained: bool, answers: Answers = ENGLISH, stated: bool = False
) -> dict[str, Any]:
    """Return the JSON schema of the answers, keyed by question id in the order asked."""
    one = _schema(answers, explained=explained, stated=stated)
    return object_schema({question.id: one for question in questions})


def shuffled(questions: Sequence[Question], seed: int, example: str, replicate: int) -> list[Question]:
    """Shuffle the questions. The order depends only on the seed, the example and the replicate."""
    order = list(questions)
    random.Random(f"{seed}/{example}/{replicate}").shuffle(order)
    return order


TOP_LOGPROBS = 20
"""Number of alternatives asked for at the verdict's token, enough for every spelling of yes and no."""
QUOTE_TOKENS = 40
"""Most tokens of a quote; longer quotes are cut off."""
STATED_TOKENS = 40
"""Most tokens of an answer with its probability, in JSON."""


@dataclass(slots=True)
class Ask:
    """A call to be made: the questions on an example, and everything needed to build the request."""

    index: int
    """Position of the call's first verdict in the result."""
    example: Example
    questions: tuple[Question, ...]
    replicate: int
    key: bytes
    framing: Framing
    rest: str
    """Text after the part that all questions on this example share."""
    parameters: Parameters
    wants_a_word: bool = False
    """Whether the answer is one word, yes or no."""
    wants_a_quote: bool = False
    """Whether the answer is a quote from the output, or no."""
    seen: Example | None = None
    """The example reduced to the part that the judge sees; None if the judge sees all of it."""

    @property
    def messages(self) -> list[Message]:
        """The conversation that is sent."""
        return opening(self.framing, self.framing.before + self.rest)

    def request(self) -> Request:
        """Build the request, with the key that was computed before."""
        about = (self.questions[0], self.seen or self.example) if self.wants_a_word else None
        return Request(tuple(self.messages), self.parameters, self.replicate, self.key, self.framing, about)

    @property
    def is_short(self) -> bool:
        """Whether ``max_tokens`` is so small that text before the answer may use all tokens."""
        return (self.wants_a_word or self.wants_a_quote) and self.parameters.max_tokens < ROOM

    def with_room(self, identity: str) -> Ask:
        """Return the call with more tokens, for models that write something before the answer."""
        parameters = replace(self.parameters, max_tokens=ROOM)
        key = RequestKey(identity, parameters, self.replicate, opening(self.framing, self.framing.before)).key(
            self.rest
        )
        return replace(self, parameters=parameters, key=key)

    def again(self, identity: str, answer: Answer, problem: str, form: str) -> Request:
        """Make the request that asks again, once, and says what was wrong."""
        complaint = render("answer_again", problem=problem, format=quote_format() if self.wants_a_quote else form)
        messages = [*self.messages, ("assistant", answer.text or "(nothing)"), ("user", complaint)]
        return make_request(identity, messages, self.parameters, self.replicate, framing=self.framing)


class OneByOne(ABC):
    """One call per question. The keys share one hash of the text before the question, which saves time."""

    prompt: Prompt
    questions: tuple[Question, ...]

    @property
    @abstractmethod
    def form(self) -> str:
        """The sentence that says how to answer; empty if the prompt says it. Then no question is asked again."""

    @property
    @abstractmethod
    def _parameters(self) -> Parameters: ...

    @abstractmethod
    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the answers, by question id. Questions without an answer must be asked alone. Raises ValueError, whose
        message is the problem, if the reply cannot be used."""

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Return whether the answer was cut off because ``max_tokens`` was too small."""
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
        """Reduce the example to the part that the judge sees."""
        return in_view(example, sees)

    def _frame(self, example: Example, sees: Sees) -> Framing:
        return frame(self.prompt, example, sees)

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """Yield the calls for one example, grouped by view. ``position`` is the place of its first verdict."""
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
    """One call per question, answered with one word, or in JSON if an explanation or a probability is wanted too.

    A question that is answered with a quote needs no JSON, because a quote explains itself.
    """

    @cached_property
    def form(self) -> str:
        """The sentence that asks for one word, or for JSON if more is wanted."""
        return each_format(explained=self.explained, answers=self.asked_words, stated=self.stated)

    @property
    def wants_a_word(self) -> bool:
        """Whether neither an explanation nor a probability is wanted."""
        return not (self.explained or self.stated)

    def _view(self, question: Question) -> Sees:
        return question.sees

    def _block(self, question: Question) -> str:
        """Write the question; without the sentence on how to answer, if the prompt itself has one. Then a question
        without further parts needs no label either."""
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
        # with log-probabilities the first token is enough; without, the word may have several tokens
        return Parameters(1 if self.logprobs else 8, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def _parameters_of(self, sees: Sees) -> Parameters:
        """Return the parameters; a quote gets more tokens. Its P(yes) is still the probability of its first token."""
        if sees != "quote" or self.wants_a_word:
            return self._parameters
        return Parameters(QUOTE_TOKENS, self.temperature, self.seed, TOP_LOGPROBS if self.logprobs else 0)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the answer to the call's only question."""
        if ask.wants_a_quote:
            reading = read_quote(answer, ask.example.output or "", self)
        else:
            reading = read_word(answer, self) if self.wants_a_word else read_object(answer, self)
        return {ask.questions[0].id: reading}

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Return whether text before the answer used up the few tokens that were asked for."""
        most, ended, tokens = ask.parameters.max_tokens, answer.finish != "length", answer.logprobs or ()
        quotes = ask.wants_a_quote
        return ask.is_short and wants_room(answer.text, tokens, self.words, most=most, ended=ended, quotes=quotes)


@dataclass(frozen=True)
class BatchedAsking(YesNoForm):
    """One call per example: all questions at once, answers keyed by question id, order shuffled by seed.

    Only neighbouring questions with the same view of the example share a call.
    """

    most: int | None = None
    """Most questions in one call."""

    def alone(self, question_id: str) -> EachAsking:
        """Return the way to ask one of the questions on its own."""
        questions = tuple(question for question in self.questions if question.id == question_id)
        how = (self.explained, self.logprobs, self.temperature, self.seed, self.answers, self.stated, self.by_number)
        return EachAsking(self.prompt, questions, *how)

    @cached_property
    def form(self) -> str:
        """The sentence that asks for a JSON object keyed by question id."""
        yes, no = self.asked_words
        return render(f"answer_batched{'_stated' * self.stated}{'_explained' * self.explained}", good=yes, bad=no)

    def asks(self, identity: str, example: Example, position: int, replicate: int) -> Iterator[Ask]:
        """Yield one call for each of :attr:`parts`."""
        for part in self.parts:
            if part[0].sees == "quote":
                yield from self.alone(part[0].id).asks(identity, example, position, replicate)
            else:
                yield self._together(identity, example, part, position, replicate)
            position += len(part)

    @cached_property
    def parts(self) -> list[tuple[Question, ...]]:
        """Questions of each call: neighbours with the same view of the example, at most ``most``. A question that is
        answered with a quote has a call of its own."""
        found = []
        for sees, some in groupby(self.questions, key=lambda question: question.sees):
            questions = tuple(some)
            size = 1 if sees == "quote" else self.most or len(questions)
            found += [questions[place : place + size] for place in range(0, len(questions), size)]
        return found

    def tokens(self, questions: Sequence[Question]) -> int:
        """Return the most tokens for the answers to several questions."""
        one = (100 if self.explained else 20) + (STATED_TOKENS if self.stated else 0)
        return one * len(questions) + sum(len(each.id) for each in questions) + 50

    def schema(self, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the JSON schema of the reply about several questions."""
        return batched_schema(questions, explained=self.explained, answers=self.asked_words, stated=self.stated)

    def block(self, questions: Sequence[Question]) -> str:
        """Write several questions, in their order."""
        return "\n\n".join([*(f"[{each.id}] {question_block(each)}" for each in questions), self.form])

    def _together(
        self, identity: str, example: Example, asked: tuple[Question, ...], position: int, replicate: int
    ) -> Ask:
        framing = frame(self.prompt, in_view(example, asked[0].sees), asked[0].sees)
        questions = shuffled(asked, self.seed or 0, example.id, replicate)
        tail, top = self.block(questions) + framing.after, 5 if self.logprobs else 0
        whole = Parameters(self.tokens(questions), self.temperature, self.seed, top, self.schema(questions))
        parameters = for_replicate(whole, replicate)
        key = RequestKey(identity, parameters, replicate, opening(framing, framing.before)).key(tail)
        return Ask(position, example, asked, replicate, key, framing, tail, parameters)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the usable answers of the reply, by question id."""
        if ask.wants_a_quote:
            return self.alone(ask.questions[0].id).read(ask, answer)
        return read_objects(answer, [question.id for question in ask.questions], self)

    def wants_room(self, ask: Ask, answer: Answer) -> bool:
        """Return whether a quote was cut off."""
        return ask.wants_a_quote and self.alone(ask.questions[0].id).wants_room(ask, answer)


Asking = OneByOne | BatchedAsking
"""Way to ask a checklist about an example."""


def for_replicate(parameters: Parameters, replicate: int) -> Parameters:
    """Return the parameters with the replicate's own seed, because with the same seed an endpoint repeats itself."""
    if not replicate or parameters.seed is None:
        return parameters
    return replace(parameters, seed=parameters.seed + replicate)


def illustrated(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield the examples with images in one of their texts."""
    if getattr(examples, "has_structure", True):  # a table of plain texts has no images, so it is not read
        for each in examples:
            if any(map(images_of, (each.input, each.output, each.context, each.reference))):
                yield each


def without_calls(examples: Iterable[Example], questions: Iterable[Question]) -> str | None:
    """Return a warning if a question is about calls of tools and no example has such calls; else None."""
    asked = next((each.id for each in questions if each.sees == "call"), None)
    outputs = (calls_told(each.output or "", each.input) for each in (examples if asked is not None else ()))
    if asked is None or any(each != NO_CALL for each in outputs):
        return None
    return f"Question '{asked}' is about calls of tools, and no output has any: the judge is told \"{NO_CALL}\""


def shows_images(prompt: Prompt, example: Example, sees: Sees = "all") -> bool:
    """Return whether a judge sees images of an example, with a question about this part of it."""
    return bool(frame(prompt, example, sees).images)


def opening(framing: Framing, content: str) -> list[Message]:
    """Return the conversation up to the judge's first answer; ``content`` is its last user message."""
    before: list[Message] = [*framing.messages, *([("system", framing.system)] if framing.system is not None else [])]
    for said, answer in framing.turns:
        before += [("user", said), ("assistant", answer)]
    return [*before, ("user", with_images(content, framing.images))]


TOKENS = 4
"""Tokens for a number: some tokenizers begin with a blank, and some models put marks around the number."""


@dataclass(frozen=True)
class ExpectedScoreAsking(OneByOne):
    """One call per question, answered with a number on a scale (LMUnit §3.3; :func:`.replies.read_score`)."""

    prompt: Prompt
    questions: tuple[Question, ...]
    explained: bool
    temperature: float
    seed: int | None
    scale: tuple[int, int]
    """Lowest and highest number, from 0 to 9; to 10 if no explanation is wanted."""

    @cached_property
    def form(self) -> str:
        """The sentence that asks for one number, or for JSON if an explanation is wanted."""
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
        """Read the expected number."""
        return {ask.questions[0].id: read_score(answer, self.scale, explained=self.explained)}

    def nearest(self, p_yes: float) -> str:
        """Return the number on the scale that is nearest to an expected score. It stands for the judge's answer."""
        low, high = self.scale
        return str(low + round(p_yes * (high - low)))
