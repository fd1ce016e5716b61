from __future__ import annotations

import json

import pytest

from askance.agents.agent import ParseError
from askance.agents.lesson_checks import LessonClassifier, class_by_rule
from askance.models.gateway import Gateway
from askance.prompts.lessons import Lesson
from askance.testing import ScriptedModel


def lesson(text: str) -> Lesson:
    return Lesson(id="L1", text=text, direction="stricter", dimension="d", evidence=("e/q",))


@pytest.mark.parametrize(
    "text",
    [
        "When the instruction asks for an exact number of words, count them before you finish.",
        "Keep a ratio of two questions to one statement.",
        "Maintain an internal counter of each keyword.",
        "Use no more than 50 words.",
        "Write between 30 and 40 words.",
        "Make every second word start with a capital.",
        "The 5th word must be what the request gives.",
        "Sort the words alphabetically.",
        "Write fewer words than the input has.",
        "Keep 30 percent of the sentences in the passive.",
        "Answer no if the output has more than 30 words.",
    ],
)
def test_what_needs_counts_ratios_or_positions_is_computational(text: str) -> None:
    found = class_by_rule(text)
    assert found is not None and found.kind == "computational" and found.by == "rule"
    assert found.reason.startswith("it needs ")


@pytest.mark.parametrize(
    "text",
    [
        "Repeat the requested phrase exactly as it is written.",
        "Answer in one word.",
        "Begin every answer with the title that the request gives.",
        "Do not use commas.",
        "Answer no if the output gives a wrong number.",
        "Answer no if the number of people differs.",
        "Answer no if the output is about another country.",
        "Answer no if the output has a second claim.",
    ],
)
def test_what_needs_no_calculation_is_promptable(text: str) -> None:
    found = class_by_rule(text)
    assert found is not None and (found.kind, found.by) == ("promptable", "rule")


@pytest.mark.parametrize(
    "text",
    [
        "Write exactly 3 paragraphs.",
        "Use the keyword exactly once.",
        "Answer no if the output is longer than the input.",
        "Answer no if a percentage is wrong.",
        "Answer no if the output joins two words wrongly.",
    ],
)
def test_words_alone_do_not_tell_what_is_in_between(text: str) -> None:
    assert class_by_rule(text) is None


async def test_clear_cases_take_no_call_and_the_others_one() -> None:
    model = ScriptedModel(lambda request: json.dumps({"reason": "three  blocks of text", "kind": "promptable"}))
    classifier = LessonClassifier(Gateway(), model, seed=3)
    assert (await classifier.classify(lesson("Answer in one word."))).kind == "promptable"
    assert model.requests == []
    found = await classifier.classify(lesson("Write exactly 3 paragraphs."))
    assert (found.kind, found.reason, found.by) == ("promptable", "three blocks of text", "model")
    assert "Write exactly 3 paragraphs." in model.requests[0].messages[-1][1]


async def test_a_class_that_there_is_not_is_refused() -> None:
    model = ScriptedModel(lambda request: json.dumps({"reason": "so", "kind": "maybe"}))
    with pytest.raises(ParseError, match="kind"):
        await LessonClassifier(Gateway(), model).classify(lesson("Write exactly 3 paragraphs."))
