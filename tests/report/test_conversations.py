"""Runs whose data are conversations: their files, their page and what is told of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory import run_directory
from askance.models.base import Request
from askance.models.direct import chat_fields
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

pytestmark = pytest.mark.usefixtures("sandbox")
PIXEL = "data:image/png;base64,iVBORw0KGgo="
LOOK = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": PIXEL}}]}
]
CALLED = [
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "A cat."},
]
ASKED = Checklist(
    questions=(
        Question(id="all", text="Is it right?"),
        Question(id="last", text="Is it polite?", sees="last"),
        Question(id="call", text="Is the tool called once?", sees="call"),
    )
)


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"e{n:02d}",
            "input": LOOK,
            "output": [*CALLED, {"role": "assistant", "content": f"It is cat {n}."}],
            "context": ["One.", "Two."],
            "human": {"overall": n},
        }
        for n in range(30)
    ]


def align(place: Path) -> Any:
    """Align a judge that says what people say already, so that the run goes to its test."""

    def reply(request: Request) -> float:
        number = re.search(r"It is cat (\d+)", request.messages[-1][1])
        return 0.2 + int(number[1]) / 50 if number else 0.5

    model = ScriptedModel(reply)
    return askance.align(rows(), checklist=ASKED, model=model, run=place, max_iterations=1, update="edits")


def test_a_run_keeps_what_came_and_its_page_shows_transcript_and_image(tmp_path: Path) -> None:
    align(tmp_path / "run")
    kept = [json.loads(line) for line in (tmp_path / "run/inputs/examples.jsonl").read_text().splitlines()]
    names = ("input", "output", "context")
    assert [[each[name] for name in names] for each in kept] == [[each[name] for name in names] for each in rows()]
    page = (tmp_path / "run/report.html").read_text()
    assert "Calls look({})" in page and PIXEL in page and "It is cat 2" in page
    judge = (tmp_path / "run/judge.yaml").read_text()
    assert "sees: last" in judge and "sees: call" in judge
    assert askance.load_judge(tmp_path / "run").checklist == ASKED


def test_a_run_that_kept_texts_alone_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = run_directory._line
    monkeypatch.setattr(run_directory, "_line", lambda example, **_: line(example, as_texts=True))  # as before
    first = align(tmp_path / "run")
    monkeypatch.undo()
    kept = json.loads((tmp_path / "run/inputs/examples.jsonl").read_text().splitlines()[0])
    assert kept["input"] == "Look.\n[image_url]"
    again = align(tmp_path / "run")
    assert again.result["best"] == first.result["best"]


def test_outputs_that_are_generated_stand_in_place_of_those_of_the_data(tmp_path: Path) -> None:
    writer = ScriptedModel(lambda request: f"Written to {len(request.messages)} messages.")
    judge = ScriptedModel(lambda _: 0.9)
    asked = Checklist(questions=ASKED.questions[:2])
    askance.tune(rows(), checklist=asked, generator=writer, judge=judge, prompt=Prompt("Write."), run=tmp_path / "run")
    assert [role for role, _ in writer.requests[0].messages] == ["system", "user"]
    context = {"type": "text", "text": "[1] One.\n\n[2] Two."}
    sent = {"role": "user", "content": [context, *LOOK[0]["content"]]}
    assert chat_fields(writer.requests[0])["messages"][1] == sent
    assert any("Written to 2 messages." in request.messages[-1][1] for request in judge.requests)


def test_an_example_is_its_texts_for_who_compares() -> None:
    assert Example(**rows()[0]) == Example(**rows()[0]).model_copy(update={"context": "[1] One.\n\n[2] Two."})
