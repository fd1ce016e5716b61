from __future__ import annotations

import json

import pytest

from askance.agents.note_taker import NoteTaker
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.models.structured import ParseError
from askance.prompts.checklist import Question
from askance.prompts.examples import Example
from askance.prompts.fences import fence
from askance.prompts.lessons import Disagreement, Lesson
from askance.testing import ScriptedModel

EXAMPLE = Example(
    id="e", input="On Monday the mayor of Arles opened a bridge.", output="The mayor closed {question} today."
)
QUESTION = Question(id="q", text="Is it right?", dimension="facts")
REASONS = {"target": "It sounds right.", "reference": "The day differs."}


async def take(*endings: str, target: bool = True) -> tuple[Lesson, ScriptedModel]:
    field = "answer_no_if" if target else "answer_yes_even_if"
    note = {"quote": "today", "fact": "Monday", "kind": "a wrong day"}
    left = iter(endings)

    def script(request: Request) -> str:
        if "kinds" in (request.parameters.schema or {})["properties"]:
            return json.dumps({"kinds": ["wrong  dates", "added claims"]})
        return json.dumps(note | {field: next(left)})

    model = ScriptedModel(script)
    disagreement = Disagreement(example="e", question="q", target=target, reference=not target, gap=0.9)
    taker = NoteTaker(Gateway(), model, "Summarise.", seed=1)
    return await taker.take_note(disagreement, EXAMPLE, QUESTION, REASONS, "L7"), model


async def test_a_judge_that_was_too_lenient_learns_to_be_stricter() -> None:
    lesson, model = await take("gives another day than the input does")
    assert lesson.text == "Answer no if the output gives another day than the input does."
    assert (lesson.id, lesson.direction, lesson.dimension, lesson.evidence) == ("L7", "stricter", "facts", ("e/q",))
    shown = model.requests[-1].messages[-1][1]
    for part in (fence(EXAMPLE.input), fence(EXAMPLE.output or ""), QUESTION.text, *REASONS.values(), "Summarise."):
        assert part in shown
    assert "wrong dates; added claims" in shown
    kinds = model.requests[0].messages[-1][1]
    assert EXAMPLE.input not in kinds, "the kinds of faults come from the question and the task alone"


async def test_a_judge_that_was_too_strict_learns_to_be_more_lenient() -> None:
    lesson, _ = await take("leaves the day of the week out", target=False)
    assert lesson.text == "Answer yes even if the output leaves the day of the week out."
    assert lesson.direction == "more lenient"


@pytest.mark.parametrize(
    "ending",
    [
        "Gives another day",
        "the output gives another day.",
        "it gives another day",
        "Answer no if the output gives another day.",
        ' "gives another\n day." ',
    ],
)
async def test_an_ending_that_repeats_the_opening_still_makes_one_sentence(ending: str) -> None:
    assert (await take(ending))[0].text == "Answer no if the output gives another day."


async def test_a_rule_that_copies_the_example_is_asked_for_again_once() -> None:
    copy = "says the mayor of Arles opened a bridge"
    lesson, model = await take(copy, "gives another day")
    assert lesson.text.endswith("gives another day.")
    assert "copies the example" in model.requests[-1].messages[-1][1]
    with pytest.raises(ParseError, match="copies the example"):
        await take(copy, copy)


async def test_a_rule_that_names_names_is_asked_for_again_once() -> None:
    lesson, model = await take("tells another story about Arles", "gives another day")
    assert lesson.text.endswith("gives another day.")
    assert "copies the example" in model.requests[-1].messages[-1][1]


async def test_a_rule_that_says_nothing_is_refused() -> None:
    with pytest.raises(ParseError, match="answer_no_if"):
        await take("is bad", "is bad")
