"""Reading a judge's replies to the questions of :mod:`.requests`.

The kinds of reply, in the order of this file: one word, a JSON object, a quote from the output, a number. A reply that
cannot be read raises ``ValueError``. The judge gets its message when it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..models.base import Answer
from ..models.replies.answer_words import answer_words, expected_number, number_said
from ..models.replies.json_object import object_in
from ..models.replies.yes_no import (
    BARE,
    AnswerWords,
    first_of_quote,
    p_quoted,
    p_yes_of_field,
    read_tokens,
    read_yes_no,
    says_nothing_to_quote,
    stands_in,
    stated_p_yes,
)
from ..prompts.checklist import Question
from ..prompts.prompt import Prompt

Answers = tuple[str, str]
"""Words for yes and no that a judge must answer with."""
ENGLISH: Answers = ("yes", "no")
NOTHING_QUOTED = "No words of the output make the answer yes."
"""Explanation if there is nothing to quote."""
_ABSTENTIONS = frozenset({"n/a", "na", "unknown", "unclear", "undetermined", "neither", "cannot", "unsure"})


class Reading(NamedTuple):
    """A reply's answer to one question. An ``answer`` of None means that the judge abstained."""

    answer: bool | None
    p_yes: float | None
    explanation: str | None = None
    value: float | None = None
    """Score on the judge's own scale."""


@dataclass(frozen=True)
class YesNoForm:
    """Settings for asking yes/no questions and reading the replies."""

    prompt: Prompt
    questions: tuple[Question, ...]
    explained: bool
    logprobs: bool
    """Whether log-probabilities are asked for."""
    temperature: float
    seed: int | None
    answers: Answers | None = None
    """Words that are asked for. None: yes and no are asked for, and words of the prompt's language are read too."""
    stated: bool = False
    """Whether a probability is asked for with the answer."""
    by_number: bool = False
    """Whether P(yes) is the stated probability."""

    @cached_property
    def words(self) -> AnswerWords:
        """Words that are read as yes or no."""
        return words_read(self.prompt, self.questions, self.answers)

    @property
    def asked_words(self) -> Answers:
        """Words for yes and no that are asked for."""
        return self.answers or ENGLISH


def words_read(prompt: Prompt, questions: Sequence[Question], answers: Answers | None) -> AnswerWords:
    """Return the words that are read as yes or no in answers to questions."""
    return answer_words((prompt.text, "\n".join(each.text for each in questions)), answers)


def read_word(answer: Answer, form: YesNoForm) -> Reading:
    """Read a reply of one word. Raises ValueError if it is neither yes nor no, or if P(yes) is wanted and cannot be
    told. Without log-probabilities an abstention is a reading, too."""
    ended = answer.finish != "length"
    if not form.logprobs:
        said = read_yes_no(answer.text, form.words, ended=ended)
        if said is None and not _abstains(answer.text):
            raise ValueError(f"{in_quotes(answer.text)} is neither yes nor no")
        return Reading(said, None)
    read = read_tokens(answer.logprobs or (), form.words, ended=ended)
    if read is None:
        raise ValueError(f"{in_quotes(answer.text)} is neither yes nor no")
    _, p_yes = read
    if p_yes is None:
        raise ValueError("the beginning of a yes was likely too, and whether it would have become one cannot be told")
    return Reading(p_yes >= 0.5, p_yes, _below_the_word(answer.text, form.words))


def _below_the_word(text: str, words: AnswerWords) -> str | None:
    """Return the text below a first line that is only yes or no: an unasked reason of the judge; else None."""
    if "\n" not in text:
        return None
    first, _, rest = text.strip().partition("\n")
    return rest.strip() or None if BARE[first] in words.known else None


def _abstains(text: str) -> bool:
    return text.strip().lower().rstrip(".!") in _ABSTENTIONS


def read_object(answer: Answer, form: YesNoForm) -> Reading:
    """Read a JSON reply about one question."""
    return _read_fields(json_object(answer, ["answer"]), "answer", answer, form)


def read_objects(answer: Answer, questions: Sequence[str], form: YesNoForm) -> dict[str, Reading]:
    """Read the usable answers of a JSON reply, by question id. Raises ValueError if there is none."""
    fields = json_object(answer, questions)
    readings = {}
    for question in questions:
        if question not in fields:
            continue
        value = fields[question]
        try:
            readings[question] = _read_fields(
                value if isinstance(value, dict) else {"answer": value}, question, answer, form
            )
        except ValueError:
            continue
    if not readings:
        raise ValueError("none of the questions' ids has a usable answer in it")
    return readings


def json_object(answer: Answer, wanted: Sequence[str]) -> dict[str, Any]:
    """Return the JSON object of a reply; of a cut-off reply, its complete fields. Raises ValueError, with the problem,
    if the reply is not an object, or was cut off before any wanted field."""
    try:
        fields = object_in(answer.text, wanted, cut=True)
    except ValueError:
        fields = None
    is_object = isinstance(fields, dict)
    if answer.finish == "length" and not (is_object and fields.keys() & set(wanted)):
        raise ValueError("the answer was cut off before its end")
    if not is_object:
        raise ValueError(f"{in_quotes(answer.text)} is not {'valid JSON' if fields is None else 'a JSON object'}")
    return dict(fields)


def _read_fields(fields: Mapping[str, Any], field: str, answer: Answer, form: YesNoForm) -> Reading:
    """Read the object that answers a question. ``field`` is its key in the whole reply."""
    value, words = fields.get("answer"), form.words
    is_yes = value if isinstance(value, bool) else read_yes_no(value, words) if isinstance(value, str) else None
    explanation = _explanation_in(fields)
    if is_yes is None:
        if isinstance(value, str) and _abstains(value):
            return Reading(None, None, explanation)
        raise ValueError('"answer" is neither "{}" nor "{}"'.format(*form.asked_words))
    if form.by_number:
        return Reading(is_yes, stated_p_yes(fields, is_yes, form.asked_words), explanation)
    if not form.logprobs:
        return Reading(is_yes, None, explanation)
    p_yes = p_yes_of_field(answer.logprobs or (), field, is_yes, words.beside(BARE[str(value)]))
    if p_yes is None:
        raise ValueError("its answer carries no log-probabilities of yes and no")
    return Reading(p_yes >= 0.5, p_yes, explanation)


def _explanation_in(fields: Mapping[str, Any]) -> str | None:
    explanation = fields.get("explanation")
    return explanation.strip() or None if isinstance(explanation, str) else None


def read_quote(answer: Answer, output: str, form: YesNoForm) -> Reading:
    """Read a reply that is a quote from the output, or no."""
    explanation = quote_in(answer, output) if form.explained else None
    if form.logprobs and not form.by_number:
        p_yes = p_quoted(*first_of_quote(answer.logprobs or ()), output)
        is_yes = None if p_yes is None else p_yes >= 0.5
    elif says_nothing_to_quote(answer.text):
        is_yes, p_yes = False, None
    else:  # a quote may begin with "no"
        is_yes, p_yes = True if stands_in(answer.text, output) else read_yes_no(answer.text, form.words), None
    if is_yes is None:
        raise ValueError(f"{in_quotes(answer.text)} is neither none nor words of the output")
    return Reading(is_yes, p_yes, explanation)


def quote_in(answer: Answer, output: str) -> str | None:
    """Return a reply's quote, or ``NOTHING_QUOTED``; None if its words are not in the output."""
    words = " ".join(answer.text.split()).strip("\"“”‘’«»' ")
    if says_nothing_to_quote(words):
        return NOTHING_QUOTED
    if not words or not stands_in(words, output):
        return None
    return f"“{words}{'…' if answer.finish == 'length' else ''}”"


def read_score(answer: Answer, scale: tuple[int, int], *, explained: bool) -> Reading:
    """Read the expected number on a scale, mapped to [0, 1] (LMUnit §3.3, eq. 2).

    It is Σ k·P(k), where P(k) are the probabilities of the numbers at the position of the judge's number, scaled to sum
    1. ``answer`` says whether it is at least the middle of the scale.
    """
    low, high = scale
    explanation, field = None, None
    if explained:
        fields, field = json_object(answer, ["score"]), "score"
        said = fields.get(field)
        if isinstance(said, bool) or not isinstance(said, int) or not low <= said <= high:
            raise ValueError(f'"score" is not a whole number from {low} to {high}')
        explanation = _explanation_in(fields)
    p_yes = expected_number(answer.logprobs or (), low, high, field)
    if p_yes is None:
        raise ValueError(f"{in_quotes(answer.text)} is no number from {low} to {high}")
    return Reading(p_yes >= 0.5, p_yes, explanation)


def read_better(answer: Answer, *, logprobs: bool) -> Reading:
    """Read the number of the better output. ``answer`` says whether it is the first, ``p_yes`` is its probability."""
    if logprobs and (second := expected_number(answer.logprobs or (), 1, 2)) is not None:
        return Reading(1.0 - second >= 0.5, 1.0 - second)
    number = None if logprobs else number_said(answer.text)
    if number not in (1, 2):
        raise ValueError(f"{in_quotes(answer.text)} is neither 1 nor 2")
    return Reading(number == 1, None)


def in_quotes(text: str) -> str:
    """Return a reply in quotation marks, on one line, cut after 60 characters."""
    text = " ".join(text.split())
    return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"
