"""JSON documents that are no list, packed files, pipes, and tables as Excel and Spark write them."""

from __future__ import annotations

import gzip
import json
import os
import threading
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from askance.prompts.errors import InputError
from askance.prompts.examples import load_examples
from tests.said import says

ROWS = [{"id": "1", "input": "a", "output": "b"}, {"id": "2", "input": "c", "output": "d"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
TEXTS = [("a", "b"), ("c", "d")]


def texts(path: Path, **named: Any) -> list[tuple[str, str | None]]:
    return [(each.input, each.output) for each in load_examples(path, **named)]


def written(folder: Path, value: Any, name: str = "a.json", indent: int | None = None) -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=indent), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "value",
    [
        {"version": 1, "data": ROWS},
        {"meta": {"by": "x"}, "found": {"items": ROWS}},
        {row["id"]: row for row in ROWS},
        {row["id"]: {"input": row["input"], "output": row["output"]} for row in ROWS},
        {
            "features": [],
            "rows": [{"row_idx": place, "row": row, "truncated_cells": []} for place, row in enumerate(ROWS)],
        },
        {"columns": ["input", "output"], "index": [0, 1], "data": [["a", "b"], ["c", "d"]]},
        {"input": {"0": "a", "1": "c"}, "output": {"0": "b", "1": "d"}},
        {"input": ["a", "c"], "output": ["b", "d"]},
        ROWS,
    ],
)
def test_rows_in_a_document(tmp_path: Path, value: Any, indent: int | None) -> None:
    assert texts(written(tmp_path, value, indent=indent)) == TEXTS


def test_ids_that_are_names_in_the_document_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, {"x": {"input": "a", "output": "b"}, "y": {"input": "c", "output": "d"}})
    assert [each.id for each in load_examples(path)] == ["x", "y"]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("indent", [None, 1])
def test_one_object_or_several_after_each_other(tmp_path: Path, name: str, indent: int | None) -> None:
    assert texts(written(tmp_path, ROWS[0], name, indent)) == TEXTS[:1]
    several = "\n".join(json.dumps(row, indent=indent) for row in ROWS)
    assert texts(written(tmp_path, several, name)) == TEXTS
    assert texts(written(tmp_path, several.replace("}\n{", "}{"), name)) == TEXTS


def test_a_row_with_lists_of_objects_stays_a_row(tmp_path: Path) -> None:
    row = {"question": "a", "reply": "b", "passages": [{"text": "x"}, {"text": "y"}]}
    fields = {"input": "question", "output": "reply", "context": "passages"}
    assert load_examples(written(tmp_path, row), fields=fields)[0].context == "[1] x\n\n[2] y"
    messages = {"input": [{"role": "user", "content": "a"}], "output": "b"}
    assert texts(written(tmp_path, messages)) == TEXTS[:1]


def test_of_several_lists_one_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, {"faith": ROWS, "tone": ROWS[:1]})
    with pytest.raises(InputError) as caught:
        load_examples(path)
    assert says(str(caught.value), "2 lists", "'faith' (2)", "'tone' (1)", f"{path}#faith")
    assert texts(Path(f"{path}#tone")) == TEXTS[:1]
    with pytest.raises(InputError, match="no list or object at 'ton'"):
        load_examples(f"{path}#ton")
    load_examples(written(tmp_path, {"version": 1, "data": ROWS}))
    assert says(caplog.text, "'data'", "2 rows")


@pytest.mark.parametrize("value", ["5", '"text"', '{"a": ', '[{"a": 1}, 2]', '{"columns": ["a"], "data": [[1, 2]]}'])
def test_what_holds_no_rows_is_refused_with_its_file(tmp_path: Path, value: str) -> None:
    path = written(tmp_path, value)
    with pytest.raises(InputError) as caught:
        load_examples(path)
    assert str(path) in str(caught.value)


# --- packed files and pipes -----------------------------------------------------------------------------------------


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    for name, content in (
        ("a.jsonl", LINES),
        ("b.csv", "id,input,output\n1,a,b\n2,c,d\n"),
        ("c.json", json.dumps(ROWS)),
    ):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        with ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr(f"inner/{name}", content)
        assert texts(tmp_path / f"{name}.gz") == texts(tmp_path / f"{name}.zip") == TEXTS


def test_packed_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.jsonl", LINES)
        archive.writestr("b.jsonl", LINES)
    for name, content in (
        ("b.zip", b"PK no"),
        ("c.jsonl.gz", b"no"),
        ("d.jsonl.gz", gzip.compress(LINES.encode())[:-9]),
    ):
        (tmp_path / name).write_bytes(content)
    for name, said in (
        ("a.zip", "one file"),
        ("b.zip", "unpacked"),
        ("c.jsonl.gz", "unpacked"),
        ("d.jsonl.gz", "unpacked"),
    ):
        with pytest.raises(InputError) as caught:
            load_examples(tmp_path / name)
        assert says(str(caught.value), name, said)


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "id,input,output\n1,a,b\n2,c,d\n",
        json.dumps({"data": ROWS}, indent=1),
        json.dumps({"data": ROWS}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_where_a_file_is_and_more_than_once(tmp_path: Path, content: str, packed: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    sent = gzip.compress(content.encode()) if packed else content.encode()
    writer = threading.Thread(target=pipe.write_bytes, args=(sent,))
    writer.start()
    assert texts(pipe) == TEXTS
    writer.join()
    assert texts(pipe) == TEXTS


@pytest.mark.parametrize("content", [LINES, json.dumps(ROWS), "id,input,output\n1,a,b\n2,c,d\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_by_its_content_and_more_than_once(
    monkeypatch: pytest.MonkeyPatch, content: str, packed: bool
) -> None:
    sent = gzip.compress(content.encode()) if packed else content.encode()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(sent)))
    assert texts(Path("-")) == texts(Path("-")) == TEXTS


def test_errors_about_standard_input_name_it_and_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(LINES.encode() + b'{"id": "3"\n')))
    with pytest.raises(InputError) as caught:
        load_examples("-")
    assert says(str(caught.value), "standard input, line 3", "not valid JSON")


# --- Excel and Spark ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv"])
def test_unicode_text_of_excel(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes("id\tinput\toutput\r\n1\ta\tb\r\n2\tc\td\r\n".encode("utf-16"))
    assert texts(path) == TEXTS


def test_quotes_escaped_with_backslashes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, 'id,input,output\n1,"a, \\"b\\"","C:\\\\x"\n2,c,"d \\"e\\", f"\n', "a.csv")
    assert texts(path) == [('a, "b"', "C:\\x"), ("c", 'd "e", f')]
    assert "backslashes" in caplog.text


def test_a_backslash_that_ends_a_cell_is_as_ever(tmp_path: Path) -> None:
    assert texts(written(tmp_path, 'id,input,output\n1,"a\\","b ""c"""\n', "a.csv")) == [("a\\", 'b "c"')]
