"""From a clause of a prompt that writes, or a reviewer's comment, to questions about the outputs (BinEval §3.1, step
2).

Examples in plain lines stand in for a JSON form: a small model that is asked for JSON with the whole prompt before it
writes questions about other clauses. What a clause forbids is asked for as the thing itself, with no as the good
answer, because small judges overlook "not".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...agents.agent import Agent
from ...models.base import Message, Model
from ...models.gateway import Gateway
from ...prompts.checklist import GoodAnswer
from ...prompts.lessons import foreign_order
from ...prompts.templates import template
from ...prompts.text import shorten

SHOTS = (
    (
        "You write captions for the photos of a museum.",
        "Rule: Say who made the work and when.",
        "yes: Does the output say who made the work?|yes: Does the output say when the work was made?",
    ),
    (
        "You turn letters from readers into records.",
        'Rule: "town": the town that the letter comes from, or null',
        'yes: Is "town" in the output the town that the letter comes from, or null if it names none?',
    ),
    (
        "You turn letters from readers into records.",
        'Rule: "title": at most 6 words',
        'yes: Is "title" in the output a title that fits the letter?',
    ),
    (
        "You turn letters from readers into records.",
        "Rule: Use nothing that is not in the letter.",
        "no: Does the output state something that is not in the letter?",
    ),
    (
        "You help the customers of a bike shop.",
        "Rule: You help the customers of a bike shop.",
        "yes: Does the output help the customer?",
    ),
    (
        "You help the customers of a bike shop.",
        "Rule: Open with one line in italics that gives the price, and never promise a date.",
        "yes: Does the first line of the output give the price?|no: Does the output promise a date?",
    ),
    ("You help the customers of a bike shop.", "Rule: The shop was founded in 1970.", "none"),
    (
        "Write a recipe for the ingredients.",
        "Comment: where's the oven temperature??",
        "yes: Does the output say how hot the oven must be?",
    ),
    ("Write a recipe for the ingredients.", "Comment: meh", "none"),
    (
        "Write the news of a club.",
        "Comment: We don't print phone numbers. Ever. Lovely that it thanks the helpers",
        "no: Does the output give a phone number?|yes: Does the output thank the helpers?",
    ),
)
"""Tasks, rules or comments, and the questions about them, from other fields."""
MOST_QUESTIONS = 3
"""Questions about one clause."""
MOST_WORDS = 30
"""Words of a question."""
LONGEST_TASK = 300
"""Characters of the task that are shown."""
_TOKENS = 120
_LINE = re.compile(r"^\W*(yes|no)\s*[:\-–]\s*((?:does|do|is|are|has|have|can|was|were)\b.+\?)\s*$", re.IGNORECASE)
_COPIES = frozenset(line.partition(": ")[2] for *_, answer in SHOTS for line in answer.split("|"))


class ClauseQuestion(NamedTuple):
    """A question with its good answer."""

    text: str
    good: GoodAnswer


class ClauseReader(Agent):
    """Turns clauses of a prompt and comments on outputs into questions, one call each."""

    role = "writer"

    def __init__(self, gateway: Gateway, model: Model, task: str, *, seed: int | None = None) -> None:
        """``task`` is the beginning of the prompt."""
        super().__init__(gateway, model, seed=seed)
        self._task = task
        self._orders: list[Message] = [("system", template("clause_questions"))]
        for shown, asked, answer in SHOTS:
            kind, _, words = asked.partition(": ")
            self._orders += [("user", _case(shown, kind, words)), ("assistant", answer.replace("|", "\n"))]

    async def of_clause(self, clause: str) -> list[ClauseQuestion]:
        """Questions about a clause of the prompt; none where nothing of use came."""
        return await self._questions("Rule", clause)

    async def of_comment(self, comment: str) -> list[ClauseQuestion]:
        """Questions about what a comment asks for; none where nothing of use came."""
        return await self._questions("Comment", comment)

    async def _questions(self, kind: str, words: str) -> list[ClauseQuestion]:
        case = _case(shorten(self._task, LONGEST_TASK), kind, words)
        reply = await self._say([*self._orders, ("user", case)], max_tokens=_TOKENS)
        return self.read(reply.text)

    def read(self, reply: str) -> list[ClauseQuestion]:
        """The usable questions of a reply: no copies of the examples, and nothing that gives orders."""
        lines = [found for line in reply.splitlines() if (found := _LINE.match(" ".join(line.split())))]
        texts = {found[2][0].upper() + found[2][1:]: found[1].lower() for found in lines}
        usable = [
            ClauseQuestion(text, "yes" if good == "yes" else "no")
            for text, good in texts.items()
            if text not in _COPIES and len(text.split()) <= MOST_WORDS and foreign_order(text, self._task) is None
        ]
        return usable[:MOST_QUESTIONS]


def _case(task: str, kind: str, words: str) -> str:
    """The words to write questions about, as something to look at: a small model follows a rule that it is given."""
    line = " ".join(words.split())
    return f"A prompt begins: «{' '.join(task.split())}»\n{kind}: «{line}»\nQuestions about an output:"
