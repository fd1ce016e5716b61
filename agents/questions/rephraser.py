"""Other wordings of a question, for a judge that does not understand it as it stands.

Small models hear the topic of a question and not its negation, so no wording may negate: a question that asks whether
something is avoided becomes one that asks for the thing itself, and the data say which answer speaks for the output.
"""

from __future__ import annotations

import re

from ...models.base import Message
from ...prompts.checklist import Question
from ...prompts.templates import template
from ..agent import Agent
from ..question_writer import wording

MOST_WORDINGS = 4
"""Of one kind, and so twice as many for a question at most."""
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

        Raises:
            ModelError: No reply.
            BudgetExceededError: A cap was reached.
        """
        found: dict[str, str] = {wording(question.text): ""}
        for kind in KINDS:
            answer = await self._say(_messages(kind, question.text), max_tokens=_MOST_TOKENS)
            lines = answer.text.splitlines()
            usable = questions_in(lines[:-1] if answer.finish == "length" else lines)
            new = {wording(each): each for each in usable if wording(each) not in found}
            found |= dict(list(new.items())[:MOST_WORDINGS])
        return [text for text in found.values() if text]


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


def _messages(kind: str, text: str) -> list[Message]:
    """The orders, the template's examples as turns of a conversation, and the question."""
    orders, *examples = template(kind).split(f"\n\n{_ASKED}")
    messages: list[Message] = [("system", orders)]
    for example in examples:
        asked, written = example.split("\n", 1)
        messages += [("user", _ASKED + asked), ("assistant", written)]
    return [*messages, ("user", _ASKED + " ".join(text.split()))]
