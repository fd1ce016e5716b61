from __future__ import annotations

from typing import Literal

import pytest

from askance.memory.embedders import embedder
from askance.memory.lesson_memory import LessonMemory
from askance.prompts.lessons import Lesson, LessonStatus
from tests.said import says

MERGED = "A number or a date is wrong."


def lesson(
    number: int,
    text: str,
    direction: Literal["stricter", "more lenient"] = "stricter",
    dimension: str = "quality",
    evidence: tuple[str, ...] = (),
) -> Lesson:
    keys = evidence or (f"e{number}/q",)
    return Lesson(id=f"L{number}", text=text, direction=direction, dimension=dimension, evidence=keys)


@pytest.fixture
def memory() -> LessonMemory:
    return LessonMemory(embedder("words"))


def test_an_empty_memory_has_no_neighbours(memory: LessonMemory) -> None:
    assert memory.nearest(lesson(1, "Answer no if a number is wrong.")) == []
    assert len(memory) == 0


def test_lessons_keep_the_order_in_which_they_came(memory: LessonMemory) -> None:
    for number, text in enumerate(["A name is wrong.", "A date is wrong.", "A place is wrong."], 1):
        memory.add(lesson(number, text))
    assert [each.id for each in memory.lessons] == ["L1", "L2", "L3"]


def test_the_nearest_lesson_comes_first(memory: LessonMemory) -> None:
    memory.add(lesson(1, "Answer no if the output is rude to the reader."))
    memory.add(lesson(2, "Answer no if the output gives a wrong number."))
    found = memory.nearest(lesson(3, "Answer no if the output gives a wrong number or date."))
    assert found[0].id == "L2"


def test_lessons_of_another_direction_or_dimension_are_never_shown(memory: LessonMemory) -> None:
    memory.add(lesson(1, "Answer no if a number is wrong.", direction="more lenient"))
    memory.add(lesson(2, "Answer no if a number is wrong.", dimension="style"))
    assert memory.nearest(lesson(3, "Answer no if a number is wrong.")) == []


def test_no_more_neighbours_than_asked_for_are_shown(memory: LessonMemory) -> None:
    for number in range(12):
        memory.add(lesson(number, f"Answer no if number {number} is wrong."))
    assert len(memory.nearest(lesson(99, "Answer no if a number is wrong."), k=4)) == 4


def test_a_merged_lesson_has_the_evidence_of_both_once(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong.", evidence=("e1/q", "e2/q")))
    merged = memory.merge("L1", lesson(2, "A number is not right.", evidence=("e2/q", "e3/q")))
    assert merged.evidence == ("e1/q", "e2/q", "e3/q")
    assert merged.support == 3
    assert merged.status == "merged"
    assert memory.lessons == [merged]


def test_a_merged_lesson_is_found_by_its_new_words_and_keeps_its_place(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.add(lesson(2, "The tone is rude."))
    memory.merge("L1", lesson(3, "A date is wrong."), MERGED)
    assert [each.text for each in memory.lessons] == [MERGED, "The tone is rude."]
    assert memory.nearest(lesson(4, MERGED))[0].id == "L1"
    assert len(memory) == 2


def test_new_evidence_opens_a_rejected_lesson_again(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], "rejected", "no gain")
    merged = memory.merge("L1", lesson(2, "A number is wrong."))
    assert (merged.status, merged.reason) == ("merged", None)


@pytest.mark.parametrize("status", ["rejected", "retired"])
def test_evidence_that_is_known_opens_no_lesson_again(memory: LessonMemory, status: LessonStatus) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], status, "no gain")
    kept = memory.merge("L1", lesson(1, "The number is wrong."), "A wrong number.")
    assert (kept.status, kept.reason, kept.text) == (status, "no gain", "A number is wrong.")
    assert memory.get("L1") == kept


def test_a_lesson_that_could_not_be_tried_stays_open_and_says_why(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.put_off(["L1"], "the candidates are used up")
    assert (memory.get("L1").status, memory.get("L1").reason) == ("new", "the candidates are used up")
    assert memory.merge("L1", lesson(1, "A number is wrong.")).status == "merged"


def test_an_applied_lesson_stays_applied_when_only_its_evidence_grows(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], "applied", "better on validation")
    kept = memory.merge("L1", lesson(2, "A number is wrong."))
    assert (kept.status, kept.reason, kept.support) == ("applied", "better on validation", 2)


def test_an_applied_lesson_that_gets_new_words_is_open_again(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], "applied", "better on validation")
    assert memory.merge("L1", lesson(2, "A date is wrong."), "A number or date is wrong.").status == "merged"


def test_a_lesson_that_stands_in_the_prompt_loses_only_its_later_words(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.add(lesson(2, "The tone is rude."))
    memory.mark(["L1"], "applied", "better on validation")
    memory.merge("L1", lesson(3, "A date is wrong."), "A number or date is wrong.")
    assert memory.words_in_prompt("L1") == "A number is wrong."
    memory.reject(["L1", "L2"], "no gain")
    assert [(each.text, each.status) for each in memory.lessons] == [
        ("A number is wrong.", "applied"),
        ("The tone is rude.", "rejected"),
    ]
    assert says(memory.get("L1").reason, '"A number or date is wrong."', "given up", "no gain")
    assert memory.get("L1").evidence == ("e1/q", "e3/q")
    assert memory.nearest(lesson(4, "A number is wrong."))[0].id == "L1"


def test_a_lesson_in_the_prompt_is_not_rejected_with_a_further_edit_of_it(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], "applied", "better on validation")
    memory.reject(["L1"], "no gain")
    assert (memory.get("L1").status, memory.get("L1").reason) == ("applied", "better on validation")


def test_a_lesson_that_was_taken_out_of_the_prompt_is_rejected_like_any(memory: LessonMemory) -> None:
    memory.add(lesson(1, "A number is wrong."))
    memory.mark(["L1"], "applied", "better on validation")
    memory.mark(["L1"], "retired", "taken out")
    memory.reject(["L1"], "no gain")
    assert memory.get("L1").status == "rejected"


def test_an_unknown_lesson_is_an_error(memory: LessonMemory) -> None:
    with pytest.raises(KeyError):
        memory.get("L1")
