"""``askance lessons`` and ``--memory``: what is kept, found, removed and allowed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine

HOW = ["--embedder", "words", "--resamples", "200", "--alpha", "0.2", "--no-trial", "--no-prune"]
NAME = "Answer no if the output gives a wrong name."


@pytest.fixture
def place(world: Any, sandbox: Path, server: StandInServer, cli: Any) -> CommandLine:
    """A run that has filled a memory."""
    data, _, checklist, *_ = world.write(sandbox / "files")
    here = CommandLine(cli, server, data)
    code, _, err = align(here, "run", "--checklist", checklist)
    assert code == 0 and says(err, "3 added", "kept")
    return here


def align(place: CommandLine, run: str, *more: str) -> tuple[int, str, str]:
    where = ["--model", "openai/target", "--api-base", place.server.url, "--prompt", "files/prompt.md"]
    return place("align", place.data, *where, *HOW, "--memory", "kept", "--run", run, *more)


def listed(place: CommandLine, where: str = "kept") -> dict[str, Any]:
    code, out, _ = place("lessons", where, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_it_lists_lessons_with_where_they_came_from_of_a_memory_and_of_a_run(place: CommandLine) -> None:
    code, out, _ = place("lessons", "kept")
    assert code == 0 and f"] {NAME}" in out
    assert "accepted in 1 run" in out and "run (align, openai/target): L1, iteration 1" in out
    found = listed(place)
    assert len(found["lessons"]) == 3 and found["questions"] == found["removed"] == []
    assert {each["text"] for each in listed(place, "run")["lessons"]} == {each["text"] for each in found["lessons"]}


def test_it_finds_by_meaning_the_nearest_first(place: CommandLine) -> None:
    asked = ("lessons", "kept", "--search", "gives a wrong name", "--embedder", "words")
    code, out, _ = place(*asked, "-k", "2", "--json")
    found = json.loads(out)["found"]
    assert code == 0 and found[0]["text"] == NAME
    assert len(found) == 2 and found[0]["cosine"] > found[1]["cosine"]
    assert place(*asked)[1].startswith(f"{found[0]['cosine']:+.2f}  [{found[0]['id']}] {NAME}")


def test_a_lesson_is_removed_with_all_that_came_from_it_and_may_be_allowed_again(place: CommandLine) -> None:
    name = next(each["id"] for each in listed(place)["lessons"] if each["text"] == NAME)
    prompt = Path("run/prompt.md").read_bytes()
    code, out, _ = place("lessons", "kept", "--remove", name)
    assert code == 0 and f"Removed [{name}] {NAME}" in out
    assert f"Unchanged: run (align, openai/target): its prompt says: - {NAME}" in out
    assert f"askance lessons kept --forget-removal {name}" in out
    assert Path("run/prompt.md").read_bytes() == prompt
    assert NAME not in {each["text"] for each in listed(place)["lessons"]}
    assert says(place("lessons", "kept")[1], "Removed", f"[{name}] {NAME}")
    code, _, err = place("lessons", "kept", "--remove", name)
    assert code == 2 and "removed before" in err
    assert json.loads(place("lessons", "kept", "--forget-removal", name, "--json")[1]) == {"forgotten_removal": name}
    assert listed(place)["removed"] == []


def test_removal_as_json_says_what_went_and_what_stays(place: CommandLine) -> None:
    found = next(each for each in listed(place)["lessons"] if each["text"] == NAME)
    gone = json.loads(place("lessons", "kept", "--remove", found["id"], "--json")[1])
    assert gone["removed"] == found
    assert gone["went_with_it"]["disagreements"] == len(found["runs"][0]["evidence"]) > 0
    assert [(each["run"], each["edits"][0]["new"].endswith(NAME)) for each in gone["unchanged"]] == [("run", True)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "nowhere: there is no lesson memory"),
        (("kept", "--remove", "M0"), "nothing with the id 'M0'"),
        (("kept", "--forget-removal", "M0"), "Nothing with the id 'M0' was removed"),
        (("run", "--remove", "L1"), "a run is a record"),
        (("kept", "--search", "a", "--remove", "b"), "do not go together"),
        (("kept", "-k", "3"), "belong to --search"),
        (("kept", "--search", "a", "--embedder", "worms"), "no embedder 'worms'"),
        (("kept", "--search", " ", "--embedder", "words"), "--search has no text"),
        (("kept", "--search", ""), "--search has no text"),
    ],
)
def test_what_it_cannot_do_ends_with_2_and_a_sentence(
    place: CommandLine, arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = place("lessons", *arguments)
    assert code == 2 and says in err


def test_the_same_command_and_resume_add_nothing_twice_and_a_dry_run_makes_nothing(place: CommandLine) -> None:
    before, asked = Path("kept/memory.jsonl").read_bytes(), len(place.server.bodies)
    assert align(place, "run", "--checklist", "files/checklist.yaml")[0] == 0
    assert place("resume", "run", "--quiet")[0] == 0
    assert (Path("kept/memory.jsonl").read_bytes(), len(place.server.bodies)) == (before, asked)
    code, _, _ = place("align", place.data, "--checklist", "files/checklist.yaml", "--model", "openai/target",
                       "--api-base", place.server.url, "--memory", "new", "--run", "other", "--dry-run")  # fmt: skip
    assert code == 0 and not Path("new").exists()


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["run", "dry run"])
@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ("file", "file: cannot be made a directory for a memory ("),
        ("file/below", "below: cannot be made a directory for a memory ("),
        ("run", "run: this is the directory of a run"),
        ("damaged", "memory.jsonl, line 1: the field 'id' is missing"),
        ("other", "other: the memory and the run need a directory each"),
    ],
)
def test_a_dry_run_refuses_the_memories_that_a_run_refuses(
    place: CommandLine, memory: str, says: str, more: tuple[str, ...]
) -> None:
    Path("file").write_text("A text.")
    Path("damaged").mkdir()
    Path("damaged/memory.jsonl").write_text('{"entry": "lesson"}\n')
    code, _, err = place("align", place.data, "--checklist", "files/checklist.yaml", "--model", "openai/target", "--api-base",
                         place.server.url, "--embedder", "words", "--memory", memory, "--run", "other", *more)  # fmt: skip
    assert code == 2 and says in err
    assert not more or not Path("other").exists()


def test_a_dry_run_says_that_a_memory_cannot_be_written(place: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askance.memory.memory_directory.os.access", lambda path, mode: False)
    for memory, expected in (("kept", 1), ("new", 2)):
        code, _, err = place("align", place.data, "--checklist", "files/checklist.yaml", "--model", "openai/target",
                             "--api-base", place.server.url, "--memory", memory, "--run", "other", "--dry-run")  # fmt: skip
        assert code == expected and "(Permission denied)" in err and not Path("new").exists()


def test_a_damaged_memory_ends_a_run_before_it_begins(place: CommandLine) -> None:
    Path("kept/memory.jsonl").write_text('{"entry": "lesson"}\n')
    asked = len(place.server.bodies)
    code, _, err = align(place, "other", "--checklist", "files/checklist.yaml")
    assert code == 2 and says(err, "kept/memory.jsonl", "line 1", "'id'")
    assert len(place.server.bodies) == asked
