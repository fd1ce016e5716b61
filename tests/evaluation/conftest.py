"""What several files share: verdicts by column, as calibrations are fitted on them; judges over a model that answers well."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askance.evaluation.calibration import sigmoid
from askance.evaluation.compare.judges import JUDGES
from askance.evaluation.compare.protocol import JudgeScore, Meter, Setup, criteria_for, layout_of
from askance.evaluation.options import CompareOptions
from askance.evaluation.scoring import Targets
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt, default_prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

ONE = Checklist(questions=(Question(id="a", text="A?", dimension="one"),))
TWO = Checklist(
    questions=(Question(id="a", text="A?", dimension="one"), Question(id="b", text="B?", dimension="two")),
)


def names(n: int) -> list[Example]:
    return [Example(id=f"e{number}", input="in", output="out") for number in range(n)]


def verdict(example: str, question: str, p_yes: float | None, replicate: int = 0, **fields: Any) -> Verdict:
    if p_yes is None:
        return Verdict(example, question, "m", "p", None, status="api_error", error="down", replicate=replicate)
    return Verdict(example, question, "m", "p", p_yes >= 0.5, p_yes, "logprob", replicate=replicate, **fields)


def answers(**by_question: Any) -> list[Verdict]:
    return [
        verdict(f"e{number}", question, None if p_yes is None else float(p_yes))
        for question, column in by_question.items()
        for number, p_yes in enumerate(column)
    ]


def wanted(**by_dimension: Any) -> Targets:
    length = len(next(iter(by_dimension.values())))
    rows = {
        f"e{number}": {
            name: None if column[number] is None else float(column[number]) for name, column in by_dimension.items()
        }
        for number in range(length)
    }
    return Targets("human", tuple(by_dimension), rows)


def lenient(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A judge that says yes to nearly everything, though its P(yes) follows the wanted scores."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=n)
    return sigmoid(3.0 + 2.0 * (truth - 0.5) + 0.3 * rng.normal(size=n)), truth


EXAMPLES = [Example(id=f"e{n}", input=f"Document {n}.", output=f"Summary {n}.") for n in range(4)]
CHECKLIST = Checklist(
    task="Summarise the document",
    questions=(
        Question(id="facts", text="Are the facts right?", dimension="consistency", weight=3),
        Question(id="names", text="Are the names right?", dimension="consistency"),
        Question(id="words", text="Are the words right?", dimension="fluency"),
    ),
)
STEPS = json.dumps({"steps": ["Read the document.", "Compare  every\nclaim."]})


WRITTEN = {
    "leave out": ["Are  the dates right?", "are the facts right?", "Is the place right?", "Are the sums right?"],
    "one detail": ["Are the sums right?", "Are the first names right?"],
}
"""What is written on seeing the seeds, by a word of what is asked for; two of them are there already."""


def schema_reply(request: Request) -> str:
    """What is said where a schema is given."""
    fields = request.parameters.schema["properties"]  # type: ignore[index]
    if "steps" in fields:
        return STEPS
    if "dropped" in fields:
        return json.dumps({"dropped": [{"number": 1, "why": "repeats"}, {"number": 4, "why": "elsewhere"}]})
    return json.dumps({"questions": next(new for word, new in WRITTEN.items() if word in asked(request))})


def asked(request: Request) -> str:
    return request.messages[-1][1]


def distribution(masses: dict[str, float], *, text: str | None = None) -> Answer:
    alternatives = tuple((token, math.log(mass)) for token, mass in masses.items())
    said = text or max(masses, key=lambda token: masses[token])
    return Answer(said, ((said, alternatives),), 10, 1)


def obliging(request: Request) -> Reply:
    """Answers whatever is asked, well."""
    text = asked(request)
    if request.parameters.schema is not None:
        return schema_reply(request)
    if "Score: " in text:
        return "It is good.\nScore: 4"
    if request.parameters.top_logprobs and "number from" in text:
        return distribution({"4": 0.6, "5": 0.4})
    if "number from" in text:
        return "4"
    return 0.75


def setup(
    script: Callable[[Request], Reply] | Sequence[Reply] = obliging,
    *,
    dimensions: Sequence[str] = ("consistency",),
    store: VerdictStore | None = None,
    prompt: Prompt | None = None,
    checklist: Checklist | None = CHECKLIST,
    budget: Budget | None = None,
    **options: Any,
) -> tuple[Setup, ScriptedModel]:
    model = ScriptedModel(script, slots=1)
    text = prompt or default_prompt(EXAMPLES)
    made = Setup(
        gateway=Meter(Gateway(VerdictStore(":memory:") if store is None else store, budget)),
        model=model,
        prompt=text,
        layout=layout_of(text, EXAMPLES),
        task="Summarise the document",
        criteria=criteria_for(dimensions),
        options=CompareOptions(**options),
        checklist=checklist,
    )
    return made, model


def rate(name: str, given: Setup, examples: Sequence[Example] = EXAMPLES) -> list[JudgeScore]:
    async def run() -> list[JudgeScore]:
        judge = JUDGES[name](given)
        await judge.prepare()
        return await judge.rate(examples)

    return asyncio.run(run())


def p_of(request: Request) -> Reply:
    text = asked(request)
    return 0.9 if "facts" in text else 0.4 if "names" in text else 0.2
