from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.agent import ParseError
from askance.agents.note_takers import BatchNoteTaker
from askance.agents.notes import Case
from askance.agents.rules import LENIENT, STRICTER
from askance.models.gateway import Gateway
from askance.prompts.checklist import Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement, Lesson
from askance.prompts.text import fence
from askance.testing import ScriptedModel
from tests.said import naming, says

QUESTION = Question(id="q", text="Is it right?", dimension="facts")
LONG = " ".join(f"In the year of report {number} nothing came of that plan at all." for number in range(40))
EXAMPLES = {
    "a": Example(id="a", input=f"{LONG} The mayor opened a bridge.", output="The mayor closed a bridge."),
    "b": Example(id="b", input="Rain fell on Friday.", output="Rain fell on Sunday."),
    "c": Example(id="c", input="A dog was found.", output="A cat was found."),
}
IDS = ("L1a", "L1b", "L1c")


REASONS = {"b": {"target": "It rains.", "reference": "The day differs."}}


def cases(*, target: bool = True, question: Question = QUESTION) -> list[Case]:
    return [
        Case(
            Disagreement(example=name, question=question.id, target=target, reference=not target, gap=0.5),
            example,
            question,
            REASONS.get(name, {}),
        )
        for name, example in EXAMPLES.items()
    ]


def rule(ending: str, *items: int, kind: str = "a wrong thing", field: str = "answer_no_if") -> dict[str, Any]:
    return {"items": list(items), "quote": "closed", "kind": kind, field: ending}


async def take(*replies: list[dict[str, Any]], target: bool = True) -> tuple[list[Lesson], ScriptedModel]:
    left = iter(replies)

    def script(request: Any) -> str:
        if "kinds" in request.parameters.schema["properties"]:
            return json.dumps({"kinds": ["a wrong thing", "an added claim"]})
        return json.dumps({"rules": next(left)})

    model = ScriptedModel(script)
    taker = BatchNoteTaker(Gateway(), model, "Summarise.", seed=1)
    return await taker.take_notes(cases(target=target), IDS), model


async def test_one_call_gives_several_rules_each_with_the_items_that_support_it() -> None:
    lessons, model = await take(
        [rule("puts a thing on a wrong day", 2), rule("names the wrong thing or deed", 3, 1, 3)]
    )
    assert [(each.id, each.text, each.evidence) for each in lessons] == [
        ("L1a", f"{STRICTER.opening} names the wrong thing or deed.", ("c/q", "a/q")),
        ("L1b", f"{STRICTER.opening} puts a thing on a wrong day.", ("b/q",)),
    ], "the best supported first"
    assert len(model.requests) == 2, "one for the kinds"


async def test_all_outputs_are_shown_but_of_a_long_document_only_what_is_near_the_output() -> None:
    _, model = await take([rule("names the wrong thing", 1)])
    shown = model.requests[-1].messages[-1][1]
    assert all(fence(each.output or "") in shown for each in EXAMPLES.values())
    assert "The mayor opened a bridge." in shown and LONG not in shown
    assert fence(EXAMPLES["b"].input) in shown
    assert "The day differs." in shown and "It rains." not in shown
    assert "a wrong thing; an added claim" in shown


async def test_rules_that_cannot_be_used_are_left_out() -> None:
    lessons, _ = await take([rule("says the mayor closed a bridge", 1, kind="x"), rule("names the wrong thing", 2, 9)])
    assert [(each.text, each.evidence) for each in lessons] == [
        (f"{STRICTER.opening} names the wrong thing.", ("b/q",))
    ]


async def test_where_no_rule_can_be_used_it_is_asked_again_once() -> None:
    copied = [rule("says the mayor closed a bridge", 1, kind="x")]
    lessons, model = await take(copied, [rule("names the wrong thing", 1)])
    assert len(lessons) == 1
    assert says(model.requests[-1].messages[-1][1], "example alone")
    with pytest.raises(ParseError, match=naming("example alone")):
        await take(copied, copied)
    outside = [rule("names the wrong thing", 4)]
    with pytest.raises(ParseError, match="numbers from 1 to 3"):
        await take(outside, outside)


async def test_the_same_rule_twice_is_one_lesson_with_the_evidence_of_both() -> None:
    lessons, _ = await take([rule("names the wrong thing", 1), rule("Names the wrong thing.", 2, 1)])
    assert [each.evidence for each in lessons] == [("a/q", "b/q")]


async def test_a_judge_that_was_too_strict_is_taught_to_be_more_lenient() -> None:
    lessons, _ = await take([rule("uses another word", 1, field="answer_yes_even_if")], target=False)
    assert (lessons[0].text, lessons[0].direction) == (
        f"{LENIENT.opening} uses another word.",
        "more lenient",
    )


async def test_a_batch_is_about_one_question_in_one_direction() -> None:
    taker = BatchNoteTaker(Gateway(), ScriptedModel([]), "Summarise.")
    other = Question(id="other", text="Is it short?")
    for beside in (cases(target=False), cases(question=other)):
        with pytest.raises(ValueError, match=naming("one question", "one direction")):
            await taker.take_notes([*cases(), *beside], IDS)
    with pytest.raises(ValueError, match="no disagreements"):
        await taker.take_notes([], IDS)
    with pytest.raises(ValueError, match="2 ids"):
        await taker.take_notes(cases(), IDS[:2])
