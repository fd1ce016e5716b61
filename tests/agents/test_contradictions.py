from __future__ import annotations

import json
from typing import Literal

from askance.agents.lesson_checks import ContradictionFinder
from askance.models.gateway import Gateway
from askance.prompts.lessons import Lesson
from askance.testing import ScriptedModel


def lesson(text: str, direction: Literal["stricter", "more lenient"] = "stricter") -> Lesson:
    return Lesson(id="L", text=text, direction=direction, dimension="d", evidence=("e/q",))


def finder(contradicts: bool) -> tuple[ContradictionFinder, ScriptedModel]:
    model = ScriptedModel(lambda request: json.dumps({"reason": "both speak of  dates", "contradicts": contradicts}))
    return ContradictionFinder(Gateway(), model, seed=1), model


async def test_a_model_decides_whether_both_can_be_followed() -> None:
    strict = lesson("Answer no if the output leaves a date out.")
    lenient = lesson("Answer yes even if the output has no dates.", "more lenient")
    for answer in (True, False):
        asked, model = finder(answer)
        found = await asked.compare(strict, lenient)
        assert (found.contradicts, found.reason, found.by) == (answer, "both speak of dates", "model")
        shown = model.requests[0].messages[-1][1]
        assert strict.text in shown and lenient.text in shown


async def test_the_order_of_the_two_does_not_matter() -> None:
    asked, model = finder(True)
    one, other = lesson("Answer no if it is long."), lesson("Answer no if it is short.")
    await asked.compare(one, other)
    await asked.compare(other, one)
    assert model.requests[0] == model.requests[1]


async def test_opposite_orders_for_the_same_words_contradict_without_a_call() -> None:
    asked, model = finder(False)
    strict = lesson("Answer no if the output leaves a date out.")
    lenient = lesson("Answer yes even if the output leaves a date out.", "more lenient")
    found = await asked.compare(strict, lenient)
    assert found.contradicts and found.by == "rule" and "leaves a date out" in found.reason
    assert model.requests == []


async def test_a_line_of_the_prompt_that_orders_the_opposite_is_told_with_as_few_calls() -> None:
    asked, model = finder(True)
    strict = lesson("Answer no if the output leaves a date out.")
    found = await asked.compare(strict, "- Answer yes even if the output leaves a date out.")
    assert found.contradicts and found.by == "rule"
    for harmless in ("* answer no if the output leaves a date out", "1. Answer no if the output invents a date."):
        assert not (await asked.compare(strict, harmless)).contradicts
    assert model.requests == []
    assert (await asked.compare(strict, "Dates may be left out.")).by == "model"


async def test_the_same_lesson_twice_is_no_contradiction_and_takes_no_call() -> None:
    asked, model = finder(True)
    found = await asked.compare(lesson("Answer no if it is long."), lesson("answer no if it is long"))
    assert not found.contradicts and model.requests == []
