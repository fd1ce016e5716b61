"""A judge in people's own words: its prompt is sent with the example and nothing else, and its reply is read in the
form that the prompt orders.

Such a judge is a checklist of one question. The verdict holds the score; P(yes) is the score's place on the judge's own
scale, in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ..models.base import Answer, Parameters
from ..models.replies.own_scores import Reads
from ..prompts.checklist import Checklist, Question, Sees
from ..prompts.conversations.chat import images_of
from ..prompts.examples import Example
from ..prompts.prompt import PLACEHOLDERS, Framing, Prompt, frame
from ..prompts.text import fill
from .judging import Judging
from .replies import Reading
from .requests import Ask, OneByOne

_ASKED = "Is the output good by the judge's own prompt"


def is_own_question(question: Question) -> bool:
    """Return whether a question stands for the score of a judge in people's own words."""
    return question.text.startswith(_ASKED)


def own_checklist(reads: Reads, dimension: str = "overall") -> Checklist:
    """Make the checklist of one question that stands for such a judge's score. Yes is the better half of its scale."""
    middle = (reads.low + reads.high) / 2
    least = f"{middle:g} or more" if reads.low < reads.high else f"{middle:g} or less"
    if reads.labels:
        least = " or ".join(reads.labels[math.ceil(middle) - 1 :])
    text = f"{_ASKED} (is its score {least})?"
    return Checklist(questions=(Question(id=reads.name, text=text, dimension=dimension),))


@dataclass(frozen=True)
class OwnWordsAsking(OneByOne):
    """One call per example: the prompt with the example in it, and nothing else."""

    prompt: Prompt
    questions: tuple[Question, ...]
    """The single question that stands for the score."""
    judging: Judging

    @property
    def form(self) -> str:
        """Empty, because the prompt itself says how to answer."""
        return ""

    @cached_property
    def reads(self) -> Reads:
        """Rule for reading replies."""
        assert self.judging.reads is not None, "a judge in people's own words says how its reply is read"
        return self.judging.reads

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters(self.judging.reply_tokens, self.judging.temperature, self.judging.seed)

    def _block(self, question: Question) -> str:
        return ""

    def _frame(self, example: Example, sees: Sees) -> Framing:
        return as_it_stands(self.prompt, example)

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the score. The answer is yes if the score is at least in the middle of the scale."""
        value, share, reason = self.reads.read(answer.text, ended=answer.finish != "length")
        return {ask.questions[0].id: Reading(share >= 0.5, share, reason, value)}

    def nearest(self, share: float) -> str:
        """Return the score or label that is nearest to a place on the scale. It stands for the judge's answer."""
        value = self.reads.low + share * (self.reads.high - self.reads.low)
        return self.reads.labels[round(value) - 1] if self.reads.labels else f"{value:g}"


def as_it_stands(prompt: Prompt, example: Example) -> Framing:
    """Make the conversation with the judge: the messages of its prompt, and nothing added.

    The prompt's variables are replaced by the bare texts. If no variable shows the output, the example follows in a
    user message.
    """
    texts = {name: getattr(example, name) or "" for name in PLACEHOLDERS[:4]}
    shown = frame(Prompt(""), example).before.strip("\n")
    if prompt.form is not None and not prompt.form.is_plain:
        made = prompt.form.filled(prompt.text, example, texts)
        if "output" not in prompt.placeholders:
            made = [*made, ("user", shown)] if made[-1][0] == "system" else [("system", made[0][1]), ("user", shown)]
    elif prompt.placeholders:
        made = [("user", fill(prompt.text, texts))]
    else:
        made = [("system", fill(prompt.text, {})), ("user", shown)]
    *before, (_, content) = made
    names = prompt.placeholders if "output" in prompt.placeholders else texts
    images = tuple(image for name in names if name in texts for image in images_of(texts[name]))
    return Framing(None, content, "", messages=tuple(before), images=images)
