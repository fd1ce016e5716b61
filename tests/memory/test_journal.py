from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.memory.journal import Journal, read_events
from askance.prompts.errors import AskanceError, InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def names(path: Path) -> list[str]:
    return [event["event"] for event in read_events(path)]


def test_every_event_is_a_line_with_its_time(path: Path) -> None:
    Journal(path).write("split", test=["e1"], name="é")
    row = json.loads(path.read_text(encoding="utf-8"))
    assert row.pop("time").endswith("+00:00")
    assert row == {"event": "split", "test": ["e1"], "name": "é"}


def test_half_a_surrogate_pair_that_a_model_said_comes_back_as_it_was(path: Path) -> None:
    said = {"target": {"e1/q": "a half \ud83d, and \\ud83d in letters"}}
    Journal(path).write("reasons", **said)
    assert read_events(path)[0]["target"] == said["target"]
    again = Journal(path)
    assert again.write("reasons", **said) is False


def test_a_journal_that_is_not_there_is_empty(path: Path) -> None:
    assert read_events(path) == []
    assert not Journal(path).replaying


def test_events_that_are_there_are_not_written_again(path: Path) -> None:
    first = Journal(path)
    first.write("a", n=1, pair=(1, 2))
    first.write("b")
    before = path.read_bytes()
    again = Journal(path)
    assert again.replaying
    again.write("a", n=1, pair=(1, 2))
    again.write("b")
    assert not again.replaying
    assert path.read_bytes() == before
    again.write("c")
    assert names(path) == ["a", "b", "c"]


def test_a_field_that_is_no_longer_written_is_no_other_story(path: Path) -> None:
    Journal(path).write("decision", gain={"value": 0.1, "used_zero_convention": False})
    again = Journal(path)
    again.write("decision", gain={"value": 0.1})
    assert names(path) == ["decision"] and not again.replaying


def test_a_torn_last_line_is_cut_before_anything_is_added(path: Path) -> None:
    Journal(path).write("a")
    with path.open("a") as file:
        file.write('{"event": "b", "te')
    journal = Journal(path)
    journal.write("a")
    journal.write("b", text="whole")
    assert names(path) == ["a", "b"]
    assert path.read_text().count("\n") == 2


def test_a_file_that_is_one_torn_line_begins_anew(path: Path) -> None:
    path.write_text('{"eve')
    Journal(path).write("a")
    assert names(path) == ["a"]


def test_where_a_repetition_differs_the_new_story_stands(path: Path) -> None:
    first = Journal(path)
    for name in ("a", "stopped", "finished"):
        first.write(name)
    second = Journal(path)
    second.write("a")
    second.write("edit")
    second.write("finished")
    assert names(path) == ["a", "edit", "finished"]
    assert "diverged" in path.read_text(), "the file itself forgets nothing"
    assert path.read_text().count("stopped") == 2


def test_a_story_that_differed_once_is_repeated_without_a_new_line(path: Path) -> None:
    for story in (["a", "stopped"], ["a", "edit", "stopped"], ["a", "edit", "edit again", "finished"]):
        journal = Journal(path)
        for name in story:
            journal.write(name)
    before = path.read_bytes()
    journal = Journal(path)
    for name in ("a", "edit", "edit again", "finished"):
        assert journal.replaying
        journal.write(name)
    assert path.read_bytes() == before


def test_a_damaged_line_is_named(path: Path) -> None:
    path.write_text('{"event": "a"}\n\x00\x00\x00\n{"event": "b"}\n')
    with pytest.raises(InputError, match=r"journal\.jsonl, line 2: damaged"):
        Journal(path)


def test_a_journal_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "gone" / "journal.jsonl")
    with pytest.raises(AskanceError, match="cannot be written"):
        journal.write("a")
