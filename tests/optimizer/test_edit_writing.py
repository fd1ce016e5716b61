"""From lessons to edits, and what becomes of lessons for which there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.agents.lesson_checks import ContradictionFinder
from askance.agents.updater import Rewriter, Updater
from askance.memory.embedders import embedder
from askance.memory.journal import Journal
from askance.memory.lesson_memory import LessonMemory
from askance.models.base import ModelError, Request
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.progress import Silent
from askance.optimizer.contest import bundle
from askance.optimizer.events import EditProposed, EditRefused, Event, Teller
from askance.optimizer.steps.edits import EditWriter, OpposedParts, add_lines
from askance.prompts.errors import BudgetExceededError
from askance.prompts.lessons import Lesson
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel

PROMPT = Prompt("You judge summaries.\nBe fair.")
TEXTS = {"L1": "Answer no if a date is wrong.", "L2": "Answer no if a name is wrong."}
LESSONS = [
    Lesson(id=name, text=text, direction="stricter", dimension="d", evidence=(f"{name}/q",))
    for name, text in TEXTS.items()
]


class Desk:
    """An updater or a rewriter that answers from a script, and who hears of it."""

    def __init__(self, folder: Path, script: Any) -> None:
        self.heard: list[Event] = []
        self.model = ScriptedModel(script)
        gateway = Gateway(retry=RetryPolicy(1))
        events = Teller(Journal(folder / "j"), Silent(), [self.heard.append])
        self.edits = EditWriter(Updater(gateway, self.model), events)
        self.rewrite = EditWriter(Rewriter(gateway, self.model), events)

    @property
    def outcomes(self) -> list[Event]:
        return [event for event in self.heard if isinstance(event, (EditProposed, EditRefused))]


def add(request: Request) -> Reply:
    """Add the lesson to the second part; the one about names is never to be had."""
    if TEXTS["L2"] in request.messages[1][1]:
        return "Let me think."
    return json.dumps({"part": 2, "action": "add", "text": TEXTS["L1"]})


async def test_each_lesson_gives_an_edit_of_the_same_prompt(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        text = next(text for text in TEXTS.values() if text in request.messages[1][1])
        return json.dumps({"part": 2, "action": "add", "text": text})

    desk = Desk(tmp_path, script)
    written = await desk.edits.write(PROMPT, LESSONS, [])
    assert [edit.lessons for edit in written.edits] == [("L1",), ("L2",)]
    assert [PROMPT.apply(edit).text for edit in written.edits] == [
        f"{PROMPT.text}\n- {text}" for text in TEXTS.values()
    ]
    assert written.refused == {}
    assert [event.row() for event in desk.outcomes] == [
        {"old": edit.old, "new": edit.new, "lessons": list(edit.lessons)} for edit in written.edits
    ]


async def test_a_lesson_without_an_edit_is_left_out_and_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path, add)
    written = await desk.edits.write(PROMPT, LESSONS, [])
    assert [edit.lessons for edit in written.edits] == [("L1",)]
    assert list(written.refused) == ["L2"]
    assert written.refused["L2"].startswith("no edit: scripted/model gave no usable Proposal")
    refused = desk.outcomes[1]
    assert isinstance(refused, EditRefused)
    assert refused.lessons == ["L2"]
    assert refused.sentence is not None
    assert refused.sentence.startswith("no edit for L2: ")


async def test_an_edit_that_copies_an_example_is_refused(tmp_path: Path) -> None:
    copied = "Answer no if a date is wrong, as in the little town of Bree."
    desk = Desk(tmp_path, lambda request: json.dumps({"part": 2, "action": "add", "text": copied}))
    written = await desk.edits.write(PROMPT, LESSONS[:1], ["They met in the little town of Bree last week."])
    assert written.edits == []
    assert "copies an example" in written.refused["L1"]


async def test_a_call_that_fails_costs_only_its_own_lesson(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        return (
            ModelError("down")
            if TEXTS["L1"] in request.messages[1][1]
            else json.dumps({"part": 2, "action": "add", "text": TEXTS["L2"]})
        )

    written = await Desk(tmp_path, script).edits.write(PROMPT, LESSONS, [])
    assert [edit.lessons for edit in written.edits] == [("L2",)]
    assert "down" in written.refused["L1"]


@pytest.mark.parametrize("error", [ModelError("wrong key", fatal=True), BudgetExceededError("max_calls", "used up")])
@pytest.mark.parametrize("way", ["edits", "rewrite"])
async def test_what_ends_the_run_is_not_taken_for_a_refusal(tmp_path: Path, error: Exception, way: str) -> None:
    with pytest.raises(type(error), match=str(error)):
        await getattr(Desk(tmp_path, lambda request: error), way).write(PROMPT, LESSONS, [])


async def test_a_rewrite_says_all_lessons_in_one_call_and_one_edit(tmp_path: Path) -> None:
    new = f"You judge summaries.\n{TEXTS['L1']}\n{TEXTS['L2']}\nBe fair."
    desk = Desk(tmp_path, lambda request: json.dumps({"prompt": new}))
    written = await desk.rewrite.write(PROMPT, LESSONS, [])
    [edit] = written.edits
    assert edit.lessons == ("L1", "L2")
    assert PROMPT.apply(edit).text == new
    assert len(desk.model.requests) == 1


async def test_a_rewrite_that_is_refused_refuses_all_its_lessons(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lambda request: json.dumps({"prompt": f"{PROMPT.text}\n{TEXTS['L1']}"}))
    written = await desk.rewrite.write(PROMPT, LESSONS, [])
    assert written.edits == []
    assert list(written.refused) == ["L1", "L2"]
    assert TEXTS["L2"] in written.refused["L1"]


@pytest.mark.parametrize("way", ["edits", "rewrite"])
async def test_without_lessons_nothing_is_asked(tmp_path: Path, way: str) -> None:
    desk = Desk(tmp_path, add)
    written = await getattr(desk, way).write(PROMPT, [], [])
    assert (written.edits, written.refused, desk.model.requests) == ([], {}, [])


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("Write a reply.", "Write a reply.\n- Two.\n- One."),
        (
            "Write:\n* Be kind.\n* Be brief.\nThat is all.",
            "Write:\n* Be kind.\n* Be brief.\n* Two.\n* One.\nThat is all.",
        ),
        ("Sum up.\n\nText:\n{input}\n\nSummary:", "Sum up.\n- Two.\n- One.\n\nText:\n{input}\n\nSummary:"),
        (
            "Sum up.\n<!-- protect -->\nEnd.\n<!-- /protect -->",
            "Sum up.\n- Two.\n- One.\n<!-- protect -->\nEnd.\n<!-- /protect -->",
        ),
    ],
)
def test_plain_lines_stand_where_the_prompt_lists_its_instructions(tmp_path: Path, prompt: str, wanted: str) -> None:
    desk = Desk(tmp_path, add)
    lessons = [LESSONS[0].model_copy(update={"text": "One."}), LESSONS[1].model_copy(update={"text": "Two."})]
    written = add_lines(Prompt(prompt), lessons, None, desk.edits.events)
    assert [edit.lessons for edit in written.edits] == [("L1",), ("L2",)]
    made = Prompt(prompt)
    for edit in bundle(made, written.edits):
        made = made.apply(edit)
    assert made.text == wanted
    assert not desk.model.requests


def test_a_plain_line_that_has_no_place_is_refused_with_the_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path, add)
    braces = LESSONS[0].model_copy(update={"text": "Write {name} as it is."})
    written = add_lines(Prompt("Write."), [braces], None, desk.edits.events)
    assert "{{name}}" in written.edits[0].new
    protected = Prompt("<!-- protect -->Write.<!-- /protect -->")
    for prompt, limit, reason in [
        (protected, None, "all of the prompt is protected"),
        (Prompt(f"Write. {LESSONS[0].text}"), None, "the prompt says it already"),
        (Prompt("Write."), 10, "more than 10"),
    ]:
        written = add_lines(prompt, LESSONS[:1], limit, desk.edits.events)
        assert not written.edits
        assert reason in written.refused["L1"]
    assert [type(event) for event in desk.outcomes] == [EditProposed, *[EditRefused] * 3]


WRONG = "- Answer yes even if the output has a date wrong."


async def test_a_line_that_orders_the_opposite_is_corrected_in_place(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        said = request.messages[-1][1]
        if "First instruction" in said:
            return json.dumps({"reason": "a wrong date", "contradicts": WRONG in said})
        if "order the opposite: 2" in said:
            return json.dumps({"part": 2, "action": "correct", "text": TEXTS["L1"]})
        return json.dumps({"part": 2, "action": "add", "text": TEXTS["L2"]})

    desk, prompt = Desk(tmp_path, script), Prompt(f"You judge summaries.\n{WRONG}\nBe fair.")
    memory = LessonMemory(embedder("words"))
    finder = ContradictionFinder(Gateway(retry=RetryPolicy(1)), desk.model)
    opposed = OpposedParts(finder, memory, desk.edits.events)
    written = await replace(desk.edits, opposed=opposed).write(prompt, LESSONS[:1], [])
    assert prompt.apply(written.edits[0]).text == f"You judge summaries.\n- {TEXTS['L1']}\nBe fair."


async def test_a_comparison_that_cannot_be_had_leaves_the_lesson_to_be_added(tmp_path: Path) -> None:
    desk, prompt = Desk(tmp_path, lambda request: "Let me think."), Prompt(f"You judge summaries.\n{WRONG}\nBe fair.")
    finder = ContradictionFinder(Gateway(retry=RetryPolicy(1)), desk.model)
    opposed = OpposedParts(finder, LessonMemory(embedder("words")), desk.edits.events)
    assert await opposed.find(prompt, LESSONS[0]) == []
