from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.agents.lesson_checks import Deduplicator
from askance.memory.embedders import embedder
from askance.memory.journal import Journal
from askance.memory.lesson_memory import LessonMemory
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.models.progress import Silent
from askance.optimizer.events import Teller
from askance.optimizer.signals import Reasons
from askance.optimizer.steps.lessons import LessonDesk
from askance.optimizer.subject import Draft, Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

pytest.importorskip("dspy", reason="needs the extra: pip install 'askance[dspy]'")

from askance.agents.dspy.note_taker import CompiledNoteTaker, NoteTakerProgram

CHECKLIST = Checklist(task="Summarise.", questions=[Question(id="q", text="Is it right?", dimension="facts")])


def script(request: Request) -> str:
    fields = (request.parameters.schema or {})["properties"]
    if "kinds" in fields:
        return json.dumps({"kinds": ["a wrong day", "an added claim"]})
    note = {"quote": "shut", "fact": "opened", "kind": "a wrong day"}
    last = request.messages[-1][1]
    rule = "names a wrong day" if "day 2" in last else "speaks of the mayor of Arles and his bridge"
    return json.dumps(note | {"kind": "a wrong day" if "day 2" in last else "else", "rule": rule})


async def test_the_loop_takes_notes_with_a_compiled_note_taker(tmp_path: Path) -> None:
    model = ScriptedModel(script)
    examples = [Example(id=f"e{n}", input=f"The mayor opened a bridge on day {n}.", output="Shut.") for n in range(3)]
    disagreements = [
        Disagreement(example=each.id, question="q", target=True, reference=False, gap=1) for each in examples
    ]
    gateway = Gateway(VerdictStore(":memory:"))
    taker = CompiledNoteTaker(gateway, model, CHECKLIST.task, NoteTakerProgram())
    events = Teller(Journal(tmp_path / "journal.jsonl"), Silent())
    seen = Observation(examples, (), (), CHECKLIST)
    signal: Any = None  # asked for controls alone, where contrasting cases are shown
    lessons = await LessonDesk(
        taker, Deduplicator(gateway, model), LessonMemory(embedder("words")), events, signal
    ).learn(Draft(Prompt("Judge."), CHECKLIST), seen, disagreements, Reasons())
    assert [lesson.evidence for lesson in lessons] == [("e2/q",)]
    assert lessons[0].text == "Answer no if the output names a wrong day."
    assert gateway.budget.role("note_taker").calls == 1 + 3 + 2, "kinds, three notes, two that were refused once more"
    assert "twice" in (tmp_path / "journal.jsonl").read_text(encoding="utf-8"), "unusable notes are said, not kept"
