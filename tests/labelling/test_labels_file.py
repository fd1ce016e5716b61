"""The file of what raters said: it only grows, is whole after a kill, and is one process's at a time."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from askance.labelling.labels_file import AllSaid, Entry, LabelsFile, known_entries, texts_of
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.examples import Example

from ..said import naming, says

ONE = Example(id="a", input="in", output="out")


def entry(example: str = "a", kind: Any = "label", rater: str = "anna", **more: Any) -> Entry:
    row = {"example": example, "rater": rater, "texts": texts_of(ONE), "time": "t", "why": "file", "kind": kind}
    return Entry.model_validate({**row, "human": {"overall": True} if kind == "label" else {}, **more})


@pytest.fixture
def file(tmp_path: Path) -> Any:
    one = LabelsFile(tmp_path / "x.labels.jsonl")
    one.open()
    yield one
    one.close()


def again(file: LabelsFile) -> list[Entry]:
    file.close()
    return file.open()


def test_what_is_written_is_read_back(file: LabelsFile) -> None:
    told = [entry(comment="two\nlines, a sign \u2028 and \x00"), entry("b", "skip"), entry("b", "undo")]
    for each in told:
        file.append(each)
    assert again(file) == told


def test_a_line_that_a_kill_tore_is_cut_off_and_said(file: LabelsFile, caplog: pytest.LogCaptureFixture) -> None:
    file.append(entry())
    with file.path.open("ab") as out:
        out.write(b'{"example": "b", "rater": "an')
    assert again(file) == [entry()]
    assert "torn" in caplog.text
    file.append(entry("c"))
    assert [each.example for each in again(file)] == ["a", "c"]


@pytest.mark.parametrize(
    "text", [b"# Notes\nnot ours, without an end", b"[" * 3000, b"\x9c\xff", b'{"id": "a", "human']
)
def test_a_file_that_is_no_labels_file_is_refused_and_left_as_it_is(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"notes\.md"):
        LabelsFile(path).open()
    assert path.read_bytes() == text


def test_a_whole_last_line_without_its_end_is_kept(file: LabelsFile) -> None:
    file.append(entry())
    os.truncate(file.path, file.path.stat().st_size - 1)
    assert again(file) == [entry()]
    file.append(entry("b"))
    assert [each.example for each in again(file)] == ["a", "b"]


def test_a_damaged_line_is_named_and_the_file_is_left_alone(file: LabelsFile) -> None:
    file.append(entry())
    text = file.path.read_text() + '{"example": "b", "rater": 5}\n'
    file.path.write_text(text)
    with pytest.raises(InputError, match=r"x\.labels\.jsonl, line 2: .*rater"):
        again(file)
    assert file.path.read_text() == text
    file.path.write_text("{}")
    with pytest.raises(InputError, match="line 1"):
        file.open()  # it was let go


def test_a_second_process_is_refused(file: LabelsFile) -> None:
    with pytest.raises(AskanceError, match=naming("another process", "labelling")):
        LabelsFile(file.path).open()


def test_where_the_disk_is_full_the_file_is_as_it_was(file: LabelsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.append(entry())
    before = file.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AskanceError, match="No space left"):
        file.append(entry("b"))
    assert file.path.read_bytes() == before


def test_an_undo_takes_back_the_raters_last_word_and_leaves_it_as_a_draft() -> None:
    said = AllSaid.of(
        [entry("a"), entry("a", rater="ben"), entry("b", "skip"), entry("a", comment="no"), entry("a", "undo")]
    )
    assert list(said.standing("anna")) == ["a", "b"]
    assert said.standing("anna")["a"].comment == ""
    assert said.drafts["anna", "a"].comment == "no"
    assert said.raters == ["anna", "ben"]
    said.add(entry("a", "undo", rater="ben"))
    said.add(entry("a", "undo", rater="ben"))
    assert said.raters == ["anna"]


def test_labels_of_texts_that_changed_are_not_used_and_said(caplog: pytest.LogCaptureFixture) -> None:
    path, other = Path("x"), Example(id="b", input="in", output="out")
    assert known_entries(path, [entry(), entry("b"), entry("c")], [ONE, other]) == [entry(), entry("b")]
    assert says(caplog.text, "1 output", "not used", "data")
    assert known_entries(path, [entry()], [ONE.model_copy(update={"output": "new"})]) == []
    assert "the texts changed" in caplog.text
    with pytest.raises(InputError, match=naming("none", "labels", "data")):
        known_entries(path, [entry("c")], [ONE])
