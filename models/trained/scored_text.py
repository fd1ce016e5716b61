"""The texts that a scorer reads: a question about an output, and the rationale that may stand beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ...prompts.conversations.chat import seen_of
from ...prompts.templates import render, template

if TYPE_CHECKING:
    from ...prompts.checklist import Question
    from ...prompts.examples import Example
    from ..base import Message


@dataclass(frozen=True, slots=True)
class ScoredText:
    """One question about one output, as two segments and as a conversation: a network reads the one or the other."""

    asked: str  # the question, with what its rubric and reference answer say
    output: str
    given: str = ""  # the sources of the output: the reference, the input and the context
    messages: tuple[Message, ...] = ()  # that ask a judge the question, for a network that reads them

    @property
    def read(self) -> tuple[str, str]:
        """The output and its input: the same for all questions on it that see the same."""
        return self.output, self.given

    @property
    def segments(self) -> tuple[str, str]:
        """Question and output, and what the output was made from."""
        return f"{self.asked}\n{self.output}", self.given


def scored_text(question: Question, example: Example, messages: tuple[Message, ...] = ()) -> ScoredText:
    """The text of a question about an example's output. The evaluator's prompt is in the messages alone, as an encoder
    has learned how to judge; ``good`` is not there: P(yes) is the network's answer, whatever it speaks for."""
    asked = [question.text, *(text for text in (question.rubric, question.reference) if text)]
    sources: tuple[str | None, ...] = ()
    if question.sees == "all":
        sources = (example.reference, example.input, example.context)
    elif question.is_relation:
        sources = (getattr(example, question.sees),)
    given = [text for text in sources if text]
    output = seen_of(example.output or "", example.input, question.sees)
    return ScoredText("\n".join(asked), output, "\n".join(given), messages)


class Rationale(NamedTuple):
    """Why an answer is yes or no, in words: a turn of its own in the judge's conversation."""

    text: str
    is_whole: bool = True  # whether the rationale came to its end; else it was cut off


def asked_for_level(text: ScoredText, levels: int) -> tuple[Message, ...]:
    """The conversation that asks for one of so many score levels: with two for yes or no, else for a number from 0."""
    if levels == 2:
        return text.messages
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{render('answer_level', most=str(levels - 1))}"))


def asked_why(text: ScoredText) -> tuple[Message, ...]:
    """The conversation that asks for the rationale, before the answer."""
    *before, (role, content) = text.messages
    return (*before, (role, f"{content}\n\n{template('rationale_first')}"))


def after_rationale(text: ScoredText, rationale: str) -> ScoredText:
    """The text whose conversation goes on with a rationale, and then asks for the answer in one word."""
    said: tuple[Message, ...] = (("assistant", rationale), ("user", template("rationale_then")))
    return replace(text, messages=(*asked_why(text), *said))


def asked_for(text: ScoredText) -> tuple[Message, ...]:
    """The conversation that asked for the rationale, from a text made by :func:`after_rationale`."""
    return text.messages[:-2]
