"""A memory of lessons in a directory: what runs add, what people remove, and two that write at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from askance import load_memory
from askance.memory.embedders import embedder
from askance.memory.memory_contents import (
    MemoryContents,
    QuestionInRun,
    RememberedLesson,
    RememberedQuestion,
    remembered_lesson,
)
from askance.memory.memory_directory import MemoryDirectory, read_memory
from askance.prompts.errors import InputError
from askance.prompts.lessons import Edit, Lesson, LessonStatus
from tests.said import naming

NUMBER, NAME = "Answer no if a number is wrong.", "Answer no if a name is wrong."


def facts(run: str) -> dict[str, Any]:
    return {"run": run, "fingerprint": f"{run}-print", "command": "align", "models": {"model": "world/judge"}}


def lesson(
    run: str,
    text: str,
    name: str = "L1",
    status: LessonStatus = "applied",
    direction: Literal["stricter", "more lenient"] = "stricter",
    command: str = "align",
) -> RememberedLesson:
    edit = Edit(old="Judge.", new=f"Judge. {text}", lessons=(name,))
    learned = Lesson(
        id=name, text=text, direction=direction, dimension="quality", evidence=(f"{run}1/facts",), status=status
    )
    asked = {"facts": "Are the facts right?", "acts": "Are the acts right?"}
    return remembered_lesson(facts(run) | {"command": command}, learned, iteration=1, questions=asked, edits=[edit])


def question(run: str, text: str, name: str = "price", *, joined: bool = True) -> RememberedQuestion:
    row = {"name": name, "from": "comment", "comments": ["Again a price!"], "joined": joined}
    record = QuestionInRun.model_validate({**facts(run), **row})
    return RememberedQuestion(id="", text=text, dimension="overall", good="no", runs=(record,))


def with_run(held: MemoryContents, run: str, *found: Any, loaded: dict[str, str] | None = None) -> MemoryContents:
    return held.with_run(f"{run}-print", found, loaded)


def test_what_is_added_again_changes_nothing_and_what_is_known_gets_one_more_run() -> None:
    held = with_run(MemoryContents(), "a", lesson("a", NUMBER), question("a", "Is there a price?"))
    assert with_run(held, "a", lesson("a", NUMBER), question("a", "Is there a price?")) == held
    more = with_run(held, "b", lesson("b", NUMBER, "L4", "rejected"), lesson("b", NAME, "L5"))
    assert [each.text for each in more.lessons] == [NUMBER, NAME]
    first = more.lessons[0]
    assert first.id == held.lessons[0].id
    assert [(each.run, each.name, each.status) for each in first.runs] == [
        ("a", "L1", "applied"),
        ("b", "L4", "rejected"),
    ]
    assert first.runs[0].asked == {"facts": "Are the facts right?"} and len(first.runs[0].edits) == 1
    assert held.lessons[0].helped and not first.helped, "the last run that tried it did not accept it"


def test_a_lesson_is_not_about_a_question_whose_id_is_the_end_of_anothers() -> None:
    learned = Lesson(
        id="L1", text=NAME, direction="stricter", dimension="quality", evidence=("a1/style/names",), status="new"
    )
    asked = {"names": "Are the names right?", "style/names": "Are the names in full?"}
    found = remembered_lesson(facts("a"), learned, iteration=1, questions=asked, edits=[])
    assert found.runs[0].asked == {"style/names": "Are the names in full?"}


def test_the_other_direction_and_a_generators_lesson_are_other_lessons() -> None:
    found = [lesson("a", NUMBER), lesson("a", NUMBER, "L2", direction="more lenient")]
    held = with_run(with_run(MemoryContents(), "a", *found), "b", lesson("b", NUMBER, command="tune"))
    assert [each.about for each in held.lessons] == ["judge", "judge", "generator"]
    assert len({each.id for each in held.lessons}) == 3


def test_a_question_is_kept_once_it_has_joined_a_judge_and_later_failures_are_too() -> None:
    held = with_run(MemoryContents(), "a", question("a", "Is there a price?", joined=False))
    assert held.questions == ()
    held = with_run(held, "a", question("a", "Is there a price?"))
    held = with_run(held, "b", question("b", "Is there a price?", "a-price", joined=False))
    assert [each.joined for each in held.questions] == [(False, 1)]


def test_a_merge_gives_a_loaded_lesson_new_words_unless_another_run_has_changed_them() -> None:
    held = with_run(MemoryContents(), "a", lesson("a", NUMBER))
    known = held.lessons[0].id
    both = "Answer no if a number or a date is wrong."
    merged = with_run(held, "b", lesson("b", both, known).model_copy(update={"id": known}), loaded={known: NUMBER})
    assert (merged.lessons[0].text, merged.lessons[0].wordings) == (both, (NUMBER,))
    late = lesson("c", "Answer no if a number or a place is wrong.", known).model_copy(update={"id": known})
    after = with_run(merged, "c", late, loaded={known: NUMBER})
    assert after.lessons[0].text == both and len(after.lessons[0].runs) == 3
    assert with_run(after, "a", lesson("a", NUMBER)) == after, "the first run, resumed, does not turn it back"


def test_what_a_run_added_before_it_went_another_way_goes() -> None:
    held = with_run(MemoryContents(), "a", lesson("a", NUMBER), lesson("a", NAME, "L2"))
    held = with_run(held, "b", lesson("b", NUMBER))
    other = with_run(held, "a", lesson("a", NAME, "L1"))
    assert {each.text: [run.run for run in each.runs] for each in other.lessons} == {NUMBER: ["b"], NAME: ["a"]}


def test_what_was_removed_is_not_added_again_in_any_of_its_words_until_that_is_allowed() -> None:
    held = with_run(MemoryContents(), "a", lesson("a", NUMBER))
    known = held.lessons[0].id
    merged = lesson("a", "Answer no if a figure is wrong.").model_copy(update={"id": known})
    held = with_run(held, "a", merged)
    removed, gone = held.without(known)
    assert gone.text == "Answer no if a figure is wrong." and not removed.lessons
    assert removed.removed[0].texts == ("Answer no if a figure is wrong.", NUMBER)
    assert with_run(removed, "b", lesson("b", NUMBER)) == removed
    assert with_run(removed, "a", merged) == removed, "also by a run that had loaded it"
    with pytest.raises(InputError, match="removed before"):
        removed.without(known)
    allowed = with_run(removed.forgetting_removal(known), "b", lesson("b", NUMBER))
    assert [each.text for each in allowed.lessons] == [NUMBER]
    with pytest.raises(InputError, match=naming("Nothing", "id")):
        allowed.forgetting_removal(known)
    with pytest.raises(InputError, match=f"Did you mean '{known}'"):
        held.without(known[:-1])


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    held = with_run(
        MemoryContents(), "a", lesson("a", "Answer no if “x” is wrong."), question("a", "Is there a price?")
    )
    held, _ = held.without(held.lessons[0].id)
    held = with_run(held, "b", lesson("b", NUMBER))
    file = tmp_path / "memory.jsonl"
    file.write_text(held.to_text(), encoding="utf-8")
    assert read_memory(file) == held
    assert read_memory(file).to_text() == held.to_text()


def test_the_nearest_comes_first(tmp_path: Path) -> None:
    held = with_run(MemoryContents(), "a", lesson("a", "Be kind to every reader."), lesson("a", NUMBER, "L2"))
    found = held.search("a wrong number", embedder("words"))
    assert [each.text for each, _ in found] == [NUMBER, "Be kind to every reader."]
    assert 1 >= found[0][1] > found[1][1] >= -1
    assert MemoryContents().search("a wrong number", embedder("words")) == []


ADDS = """
import sys
from pathlib import Path
from askance.memory.memory_directory import MemoryDirectory
from tests.memory.test_memory_directory import lesson
run = sys.argv[2]
for number in range(8):
    MemoryDirectory(Path(sys.argv[1])).add(f"{run}-print", [lesson(run, f"Rule {each} of {run}.", f"L{each}") for each in range(number + 1)], {})
"""


def test_processes_that_write_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    directory = MemoryDirectory.create(tmp_path / "memory")
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", ADDS, str(directory.path)]
    started = [
        subprocess.Popen([*command, run], env={"PYTHONPATH": f"{root.parent}:{root}"}, stderr=subprocess.PIPE)
        for run in ("a", "b")
    ]
    said = [each.communicate(timeout=120)[1].decode() for each in started]
    assert [each.returncode for each in started] == [0, 0], said
    assert len(directory.read().lessons) == 16


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"entry": "lesson", "id": "M1", "about": "judge"}', "line 2: the field 'text' is missing"),
        ("{", "line 2: not valid JSON"),
        ('{"entry": "rule"}', "line 2: field 'entry': must be lesson, question, removed, not 'rule'"),
        ('{"entry": "memory", "format": 99}', "line 2: not written by this askance"),
        ('{"entry": "removed", "id": "M1", "key": ["lesson", "judge"], "texts": ["x"]}', "line 2"),
        ('{"entry": "lesson", "id": "M1", "text": "x", "about": "us", "direction": "stricter", "dimension": "d", "runs": []}',
         "line 2: field 'about'"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_line_and_field(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "memory.jsonl").write_text('{"entry": "memory", "format": 1}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"memory.jsonl, {says}"):
        load_memory(tmp_path).read()


def test_an_id_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    held = with_run(MemoryContents(), "a", lesson("a", NUMBER))
    text = held.to_text()
    (tmp_path / "memory.jsonl").write_text(text + text.splitlines()[1] + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 3, field 'id'.*there twice"):
        load_memory(tmp_path).read()


def test_a_runs_directory_a_file_and_what_is_not_there_are_no_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=naming("made a directory")):
        MemoryDirectory.create(tmp_path / "file")
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.yaml").write_text("x")
    with pytest.raises(InputError, match=naming("a run")):
        MemoryDirectory.create(run)
    with pytest.raises(InputError, match=naming("no lesson memory")):
        load_memory(tmp_path / "nowhere")
    with pytest.raises(InputError, match=naming("file", "directory")):
        load_memory(tmp_path / "file")


def test_entries_are_plain_json_a_line_each(tmp_path: Path) -> None:
    directory = MemoryDirectory.create(tmp_path / "deep" / "memory")
    assert directory.touch() == MemoryContents()
    directory.add("a-print", [lesson("a", NUMBER), question("a", "Is there a price?")], {})
    rows = [json.loads(line) for line in directory.file.read_text(encoding="utf-8").splitlines()]
    assert [row["entry"] for row in rows] == ["memory", "lesson", "question"]
    assert rows[2]["runs"][0]["from"] == "comment"
