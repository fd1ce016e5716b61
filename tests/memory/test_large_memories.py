"""Thousands of lessons: what a memory does with one more does not grow with how many there are, but for one scan."""

from __future__ import annotations

import time
from collections.abc import Sequence

from askance.memory.embedders import embedder
from askance.memory.lesson_memory import LessonMemory
from askance.memory.memory_contents import MemoryContents, RememberedLesson, remembered_lesson
from askance.prompts.lessons import Lesson
from tests.measured.neighbours import made_up_lessons

SIZE = 3000


def remember(memory: LessonMemory, lessons: Sequence[Lesson]) -> float:
    """Put lessons into a memory and reword every tenth; return the processor seconds."""
    began = time.process_time()
    for number, each in enumerate(lessons):
        memory.nearest(each)
        memory.opposed(each)
        memory.add(each)
        if number % 10 == 0:
            memory.merge(each.id, each.model_copy(update={"evidence": ("x/q",)}), f"{each.text} And more.")
    return time.process_time() - began


def test_lessons_are_looked_up_added_and_merged_in_time() -> None:
    memory = LessonMemory(embedder("words"))
    assert remember(memory, made_up_lessons(SIZE)) < 8  # 20 s before that, and four times as long for twice as many
    for each in memory.lessons[::300]:
        assert memory.nearest(each, 1)[0].text == each.text


def test_a_run_is_put_into_a_large_memory_in_time() -> None:
    facts = {"run": "r", "fingerprint": "f", "command": "align", "models": {}}

    def remembered(lesson: Lesson) -> RememberedLesson:
        return remembered_lesson(facts, lesson, iteration=1, questions={}, edits=())

    found = [remembered(each) for each in made_up_lessons(SIZE)]
    began = time.process_time()
    held = MemoryContents().with_run("f", found)
    again = held.with_run("f", found)
    assert time.process_time() - began < 3
    assert again == held
    assert len(held.lessons) == SIZE
    _, removed = held.without(held.lessons[7].id)
    without = held.without(removed.id)[0].with_run("f", found)
    assert len(without.lessons) == SIZE - 1
    assert removed.text not in {each.text for each in without.lessons}
