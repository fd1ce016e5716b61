from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from askance.agents.agent import ParseError
from askance.agents.question_writer import QuestionWriter
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, dump_checklist, parse_checklist
from askance.prompts.errors import AskanceError
from askance.testing import ScriptedModel
from tests.said import naming, says

TASK = "Summarise {the document}."


class Letters:
    """Embeds a text by its letters: texts of the same letters are the same."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.lower().count(chr(97 + n)) + 0.0 for n in range(26)] for text in texts], np.float32)
        return np.asarray(counts / np.linalg.norm(counts, axis=1, keepdims=True), np.float32)


def draft(text: str, dimension: str | None = None, violation: str = "It is not.") -> dict[str, str]:
    return {"text": text, "violation": violation} | ({"dimension": dimension} if dimension else {})


class Writer:
    """A model with requirements, drafts for each of them, and splits of compound questions."""

    def __init__(self, drafts: dict[str, list[dict[str, str]]], splits: dict[str, list[str]] | None = None) -> None:
        self.drafts = drafts
        self.splits = splits or {}
        self.model = ScriptedModel(self.script, slots=1)

    def script(self, request: Request) -> str:
        last = request.messages[1][1]
        fields = (request.parameters.schema or {})["properties"]
        if "requirements" in fields:
            return json.dumps({"requirements": list(self.drafts)})
        if last.startswith("The question: "):
            text = last.splitlines()[0].removeprefix("The question: ")
            return json.dumps({"questions": [draft(part) for part in self.splits.get(text, [text])]})
        requirement = last.split("The requirement: ")[1]
        return json.dumps({"questions": self.drafts[requirement]})

    async def write(self, *dimensions: str, **options: Any) -> Checklist:
        return await QuestionWriter(Gateway(), self.model, Letters(), **options).write(TASK, dimensions)

    def schemas(self) -> list[str]:
        return [json.dumps(request.parameters.schema) for request in self.model.requests]


async def test_requirements_become_questions_with_dimensions_of_the_models_own() -> None:
    told: list[str] = []
    writer = Writer({"Be true.": [draft("Is it all true?", " Facts ")], "Be brief.": [draft("Is it brief?", "style")]})
    checklist = await writer.write(on_progress=told.append)
    assert [(each.id, each.text, each.dimension) for each in checklist.questions] == (
        [("facts-1", "Is it all true?", "facts"), ("style-1", "Is it brief?", "style")]
    )
    assert checklist.questions[0].violation == "It is not."
    assert checklist.task == TASK
    assert len(told) == 3 and says(told[0], "requirements")
    assert says(told[1], "1 of 2", "Be true.") and says(told[2], "2 of 2", "Be brief.")
    assert TASK in writer.model.requests[0].messages[1][1]
    assert parse_checklist(dump_checklist(checklist), "c") == checklist


async def test_several_given_dimensions_are_the_only_ones_allowed_and_keep_their_spelling() -> None:
    writer = Writer({"Be true.": [draft("Is it all true?", "Factual (A+)")]})
    checklist = await writer.write("Factual (A+)", "Style")
    assert checklist.questions[0].dimension == "Factual (A+)"
    assert checklist.questions[0].id == "Factual-A-1"
    assert '"enum": ["Factual (A+)", "Style"]' in writer.schemas()[1]
    assert "pattern" not in writer.schemas()[1]
    with pytest.raises(ParseError, match="dimension"):
        await Writer({"Be true.": [draft("Is it all true?", "truth")]}).write("Factual (A+)", "Style")


async def test_a_single_given_dimension_is_not_asked_for() -> None:
    writer = Writer({"Be true.": [draft("Is it all true?")]})
    checklist = await writer.write("Truth")
    assert checklist.questions[0].dimension == "Truth"
    assert "dimension" not in writer.schemas()[1]


async def test_compound_questions_are_split_and_single_ones_cost_no_call() -> None:
    whole = "Is it true and brief?"
    writer = Writer(
        {"Be good.": [draft("Is it kind?", "a1"), draft(whole, "b1")]}, {whole: ["Is it true?", "Is it brief?"]}
    )
    checklist = await writer.write()
    assert [each.text for each in checklist.questions] == ["Is it kind?", "Is it true?", "Is it brief?"]
    assert [each.id for each in checklist.questions] == ["a1-1", "b1-1", "b1-2"]
    assert len(writer.model.requests) == 3


async def test_a_question_that_cannot_be_taken_apart_is_kept_whole_and_told() -> None:
    whole, told = "Is it true and brief and kind and clear?", list[str]()
    parts = [f"Is it so, part {number}?" for number in range(4)]
    writer = Writer({"Be good.": [draft(whole, "b1")], "Be kind.": [draft("Is it kind?", "a1")]}, {whole: parts})
    checklist = await writer.write(on_progress=told.append)
    assert [each.text for each in checklist.questions] == [whole, "Is it kind?"]
    assert says(told[2], "whole") and told[2].endswith(whole)


async def test_a_requirement_whose_replies_cannot_be_used_costs_no_other_and_is_told() -> None:
    drafts = {"Be true.": [draft("short", "a1")], "Be brief.": [draft("Is it brief?", "b1")]}
    lost: list[str] = []
    checklist = await Writer(drafts).write(on_lost=lost.append)
    assert [each.text for each in checklist.questions] == ["Is it brief?"]
    assert len(lost) == 1 and says(lost[0], "No question", "Be true.")
    with pytest.raises(ParseError, match="text"):
        await Writer(drafts).write()
    with pytest.raises(ParseError, match="text"):
        await Writer({"Be true.": [draft("short", "a1")]}).write(on_lost=lost.append)


async def test_near_duplicates_are_written_once_and_the_first_stays() -> None:
    drafts = [draft("Is it brief?", "a1"), draft("IS IT BRIEF?", "b1"), draft("Are the facts right?", "a1")]
    checklist = await Writer({"x": drafts[:2], "y": drafts[2:]}).write()
    assert [each.text for each in checklist.questions] == ["Is it brief?", "Are the facts right?"]
    assert [each.id for each in checklist.questions] == ["a1-1", "a1-2"]


async def test_dimensions_that_look_alike_still_give_ids_of_their_own() -> None:
    drafts = [draft("Is it brief?", "a b"), draft("Are the facts right?", "a-b"), draft("Any wonder?", "??")]
    checklist = await Writer({"x": drafts}).write()
    assert [each.id for each in checklist.questions] == ["a-b-1", "a-b-2", "question-1"]


async def test_no_more_requirements_are_read_than_allowed_and_empty_ones_are_skipped() -> None:
    writer = Writer({" ": [], "x": [draft("Is it brief?", "a1")], "y": [draft("Are the facts right?", "a1")]})
    checklist = await writer.write(most_requirements=2)
    assert [each.text for each in checklist.questions] == ["Is it brief?"]


async def test_a_task_without_requirements_is_told_in_a_sentence() -> None:
    with pytest.raises(AskanceError, match=naming("task")):
        await Writer({" ": []}).write()


@pytest.mark.parametrize("text", ["short", " " * 20, "x" * 301])
async def test_a_question_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="text"):
        await Writer({"x": [draft(text, "a1")]}).write()
