"""Lessons that order opposite things: which gives way, and when nobody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.agents.agent import ParseError
from askance.agents.lesson_checks import Contradiction
from askance.memory.embedders import embedder
from askance.memory.journal import Journal, read_events
from askance.memory.lesson_memory import LessonMemory
from askance.models.base import ModelError
from askance.models.progress import Silent
from askance.optimizer.events import Teller
from askance.optimizer.steps.lessons import LessonDesk
from askance.prompts.lessons import Lesson
from tests.said import says

STRICT = Lesson(
    id="L1", text="Answer no if the output leaves out a name.", direction="stricter", dimension="d", evidence=("a/q",)
)
LENIENT = Lesson(
    id="L2",
    text="Answer yes even if the output leaves out a name.",
    direction="more lenient",
    dimension="d",
    evidence=("b/q", "c/q"),
)


class Finder:
    def __init__(self, answer: bool | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def compare(self, first: Lesson, second: Lesson) -> Contradiction:
        self.asked.append((first.id, second.id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return Contradiction(self.answer, "one forbids what the other asks for", "model")


def desk(tmp_path: Path, finder: Any, *, applied: str | None = None) -> LessonDesk:
    memory = LessonMemory(embedder("words"))
    for lesson in (STRICT, LENIENT):
        memory.add(lesson)
    if applied:
        memory.mark([applied], "applied", "better on validation")
    events = Teller(Journal(tmp_path / "journal.jsonl"), Silent())
    nobody: Any = None
    return LessonDesk(nobody, nobody, memory, events, contradictions=finder)


def strength(of: dict[str, float]) -> Any:
    return lambda lesson: (of[lesson],)


async def test_of_two_that_contradict_each_other_the_weaker_is_retired_with_the_reason(tmp_path: Path) -> None:
    at = desk(tmp_path, Finder(True))
    assert await at.resolve(["L1", "L2"], strength({"L1": 0.2, "L2": 0.9})) == {"L1"}
    assert at.memory.get("L1").status == "retired"
    assert says(at.memory.get("L1").reason, "contradicts L2", "more speaks")
    assert at.memory.get("L2").status == "new"
    assert [(each["event"], each["id"]) for each in read_events(tmp_path / "journal.jsonl")] == [("retired", "L1")]


async def test_of_two_for_which_the_same_speaks_the_first_stays(tmp_path: Path) -> None:
    at = desk(tmp_path, Finder(True))
    assert await at.resolve(["L2", "L1"], strength({"L1": 0.9, "L2": 0.9})) == {"L1"}
    assert "contradicts L2, which came first" in (at.memory.get("L1").reason or "")


async def test_one_that_stands_in_the_prompt_does_not_give_way(tmp_path: Path) -> None:
    at = desk(tmp_path, Finder(True), applied="L1")
    assert await at.resolve(["L2"], strength({"L1": 0.0, "L2": 0.9})) == {"L2"}
    assert says(at.memory.get("L2").reason, "contradicts L1", "the prompt")
    assert at.memory.get("L1").status == "applied"


async def test_a_lesson_that_is_not_about_to_be_written_is_no_rival(tmp_path: Path) -> None:
    finder = Finder(True)
    assert await desk(tmp_path, finder).resolve(["L1"], strength({"L1": 0.2, "L2": 0.9})) == set()
    assert finder.asked == []


async def test_each_pair_is_asked_about_once(tmp_path: Path) -> None:
    finder = Finder(False)
    assert await desk(tmp_path, finder).resolve(["L1", "L2"], strength({"L1": 0.2, "L2": 0.9})) == set()
    assert finder.asked == [("L1", "L2")]


async def test_without_an_answer_both_go_on_and_an_endpoint_that_is_down_ends_it(tmp_path: Path) -> None:
    at = desk(tmp_path, Finder(ParseError("no usable reply")))
    assert await at.resolve(["L1", "L2"], strength({"L1": 0.2, "L2": 0.9})) == set()
    with pytest.raises(ModelError, match="wrong key"):
        await desk(tmp_path, Finder(ModelError("wrong key", fatal=True))).resolve(
            ["L1", "L2"], strength({"L1": 0, "L2": 1})
        )


async def test_where_nobody_compares_nothing_is_retired(tmp_path: Path) -> None:
    assert await desk(tmp_path, None).resolve(["L1", "L2"], strength({"L1": 0.2, "L2": 0.9})) == set()
