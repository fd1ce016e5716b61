"""A small checklist with its examples, and a judge that answers by what it is asked of which."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import log
from typing import Any

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

PROMPT = Prompt("Judge.")
QUESTIONS = tuple(Question(id=f"q{number}", text=f"Is it so {number}?") for number in range(3))
CHECKLIST = Checklist(questions=QUESTIONS)
EXAMPLES = [Example(id=f"e{number}", input=f"in {number}", output=f"out {number}") for number in range(4)]
LOGPROB, HARD = Judging(p_yes="logprob"), Judging(p_yes="hard")
BATCHED = Judging(mode="batched", p_yes="hard")
QUICK = RetryPolicy(first=0.001)
Script = Callable[[Request], Reply]


def asked(request: Request) -> tuple[str, list[str]]:
    """Example and questions of a request."""
    text = "\n".join(content for role, content in request.messages)
    [example] = re.findall(r"\nout (\d+)\n", text)
    user = request.messages[0][1] if len(request.messages) == 1 else request.messages[1][1]
    return f"e{example}", [f"q{number}" for number in re.findall(r"Is it so (\d)\?", user)]


def p_of(example: str, question: str) -> float:
    return (int(example[1:]) + 1) / 10 + int(question[1:]) / 100


def by_logprob(request: Request) -> Reply:
    example, [question] = asked(request)
    return p_of(example, question)


def batched(values: dict[str, Any] | None = None, *, drop: str = "") -> Script:
    """Answers yes to everything but q1, as JSON; a question asked alone is answered in a word."""

    def script(request: Request) -> Reply:
        _, questions = asked(request)
        words = {question: "no" if question == "q1" else "yes" for question in questions}
        if request.parameters.schema is None:
            return words[questions[0]]
        return json.dumps({name: word for name, word in (words | (values or {})).items() if name != drop})

    return script


def tokenized(text: str, p_yes: float) -> Answer:
    """An answer with log-probabilities at each of its words."""
    both = (("yes", round(log(p_yes), 4)), ("no", round(log(1 - p_yes), 4)))
    pieces = re.findall(r"\w+|\W+", text)
    return Answer(text, tuple((piece, both if piece in ("yes", "no") else ()) for piece in pieces))


class Lab:
    """One gateway with a store in memory, and a model behind it."""

    def __init__(self, script: Any, *, store: VerdictStore | None = None, **options: Any) -> None:
        self.model = ScriptedModel(script, **options)
        self.store = VerdictStore(":memory:") if store is None else store
        self.gateway = Gateway(self.store, retry=RetryPolicy(attempts=2, first=0.001))

    def evaluator(self, judging: Judging = LOGPROB, checklist: Checklist = CHECKLIST, **options: Any) -> Evaluator:
        return Evaluator(self.gateway, self.model, PROMPT, checklist, judging, **options)

    async def judge(self, judging: Judging = LOGPROB, examples: list[Example] = EXAMPLES) -> list[Verdict]:
        return await self.evaluator(judging).judge(examples)

    @property
    def calls(self) -> int:
        return len(self.model.requests)
