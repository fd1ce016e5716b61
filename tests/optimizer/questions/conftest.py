"""A front desk whose replies break house rules that only the reviewers know, and say in their comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel
from tests.worlds import share

RULES = {
    "price": ("Again a price! We never name a price.", "Does the reply name a price?"),
    "date": ("who said we promise a date", "Does the reply promise a date?"),
    "thanks": ("not a word of thanks?", "Does the reply thank the customer?"),
}
"""By what it is about: what a reviewer writes, and the question that finds it. Thanks are missing, the others are there."""
SENTENCES = {
    "price": "That costs forty pounds in all.",
    "date": "It is ready by tomorrow noon.",
    "thanks": "Many thanks for your mail.",
}
"""What a reply says that has the thing."""
FILLERS = ("We have looked at the wheel.", "Your bicycle is in the shed.", "The bell is on the left side.")
TWIN = "Does the reply give a price?"
"""Gets the same verdicts as the first question."""
DEAF = "Does the reply sound right?"
"""Says the same of every reply."""
WRONG = 0.05
"""Share of labels that are wrong."""


class Killed(BaseException):
    """What ends a process in the middle."""


def of_questions(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run in which questions alone may join: what the texts of this world share says it all."""
    learns = settings.get("update", "auto") in ("auto", "questions") and not settings.get("calibrate")
    return {"measures": "none", **settings} if learns else settings


class Desk:
    """Examples with labels and comments, and the replies of judge and note-taker."""

    def __init__(self, size: int = 120, *, comments: bool = True, kinds: bool = False) -> None:
        self.ids = [f"e{number:03d}" for number in range(size)]
        self.comments = comments
        self.kinds = kinds
        """Whether the model can say what an output does."""
        self.quotes = False
        """Whether the judge finds words to quote; else it finds none anywhere."""
        self.asked: list[str] = []
        """Comments that were read."""
        self.checklist = Checklist(
            task="Answer the customer.", questions=[Question(id="good", text="Is the reply good to send?")]
        )
        self.prompt = Prompt("Judge the reply.\n\nCustomer: {input}\n\nReply: {output}\n\n{question}")

    def broken(self, example: str) -> list[str]:
        """The rules that a reply breaks; about four in ten break one."""
        return [rule for rule in RULES if share("broken", rule, example) < 0.16]

    def passed(self, example: str) -> bool:
        """What people said."""
        return (not self.broken(example)) != (share("wrong", example) < WRONG)

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for each in self.ids:
            said = [text for rule, text in SENTENCES.items() if self.has(each, rule)]
            text = " ".join([f"Reply [{each}].", FILLERS[int(3 * share("filler", each))], *said])
            row: dict[str, Any] = {"id": each, "input": f"Mail [{each}].", "output": text}
            row["human"] = {"overall": "pass" if self.passed(each) else "fail"}
            if self.comments and not self.passed(each) and share("comment", each) < 0.7:
                row["comment"] = RULES[rule[0]][0] if (rule := self.broken(each)) else "meh"
            elif self.comments and self.passed(each) and share("praise", each) < 0.2:
                row["comment"] = "fine with me"
            rows.append(row)
        return rows

    def has(self, example: str, rule: str) -> bool:
        """Whether the thing is in the reply: thanks are what is missing where that rule is broken."""
        return (rule in self.broken(example)) != (rule == "thanks")

    def questions_for(self, comment: str) -> str:
        """What the note-taker writes."""
        self.asked.append(comment)
        for rule, (said, question) in RULES.items():
            if comment == said:
                return "\n".join([question, TWIN if rule == "price" else DEAF])
        return "none"

    def reply(self, messages: Sequence[tuple[str, str]]) -> str | float:
        last = messages[-1][1]
        if last.startswith("Comment: "):
            return self.questions_for(last.removeprefix("Comment: "))
        if last.startswith("Does the reply ") or (last.startswith("Text: ") and "\nComment: " in last):
            return "none"
        if "Copy from the text" in messages[0][1] and not self.quotes:
            return 0.02 + 0.01 * share("no quote", *last.splitlines()[-2:])
        if last.startswith("Text: ") and not self.kinds:
            return "none"
        if last.startswith("Text: "):
            done = [
                RULES[rule][1].removeprefix("Does the reply ").rstrip("?") for rule in RULES if SENTENCES[rule] in last
            ]
            return "\n".join([*done, "answer the customer"])
        last = last.rpartition("the output that you are to judge.")[2]  # without the cases that are shown
        example = re.findall(r"\[(e\d+)\]", last)[0]
        noise = 0.08 * share("noise", example, last.splitlines()[-2:])
        for rule, (_, question) in RULES.items():
            if question in last or (rule == "price" and TWIN in last):
                return (0.9 if self.has(example, rule) else 0.02) + 0.08 * share("noise", example, rule)
        return 0.5 + noise if DEAF in last else 0.9 + noise

    def model(self, before: Callable[[Request], None] | None = None) -> ScriptedModel:
        def script(request: Request) -> str | float:
            if before:
                before(request)
            return self.reply(request.messages)

        return ScriptedModel(script, name="desk/judge")

    def align(
        self,
        run: Path,
        before: Callable[[Request], None] | None = None,
        rows: Sequence[dict[str, Any]] | None = None,
        **options: Any,
    ) -> askance.RunResult:
        """A run on the desk's examples, or on those given."""
        settings: dict[str, Any] = {"embedder": "words", "resamples": 400, "update": "questions", "mode": "each"}
        return askance.align(
            self.rows if rows is None else rows,
            checklist=self.checklist,
            model=self.model(before),
            prompt=self.prompt,
            run=run,
            **of_questions(settings | options),
        )


class MuteDesk(Desk):
    """The note-taker makes no question of the comments on prices."""

    def questions_for(self, comment: str) -> str:
        return "none" if comment == RULES["price"][0] else super().questions_for(comment)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def make_desk() -> type[Desk]:
    return Desk
