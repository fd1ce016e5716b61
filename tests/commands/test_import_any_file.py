"""``askance import`` of a table: what it says, what it proposes, and what it writes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from askance import import_file, load_examples
from askance.cli import main
from askance.prompts.errors import InputError
from tests.said import says

REVIEW = (
    "id;Question;Agent reply;anna;ben;Remark\n"
    "1;Where is my parcel?;It comes on Monday.;Pass;Pass;\n"
    "2;Can I have my money back?;Yes, you get all of it.;Fail;Pass;Do not promise refunds.\n"
    "3;Is the shop open today?;;;;\n"
)
LINE = "--field input=Question --field 'output=Agent reply' --field human.overall=anna,ben --field comment=Remark"


@pytest.fixture
def review(tmp_path: Path) -> Path:
    path = tmp_path / "review.csv"
    path.write_text(REVIEW, "utf-8")
    return path


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["import", *map(str, arguments)])
    return int(str(ended.value.code))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_without_a_terminal_it_says_what_it_saw_and_writes_nothing(
    review: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(review, "-o", tmp_path / "out.jsonl") == 2
    said = capsys.readouterr()
    assert said.out == "" and not (tmp_path / "out.jsonl").exists()
    assert "3 rows, 6 columns" in said.err and f"askance evaluate {review} {LINE}" in said.err
    assert "text: Pass (2)  -> human.overall" in said.err
    assert says(said.err, "Nothing was written", "--yes")


def test_yes_writes_what_the_proposed_line_reads(review: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert called(review, "--yes", "-o", out) == 0
    assert rows(out)[1] == {
        "id": "2",
        "input": "Can I have my money back?",
        "output": "Yes, you get all of it.",
        "raters": {"anna": {"human": {"overall": False}}, "ben": {"human": {"overall": True}}},
        "comment": "Do not promise refunds.",
    }
    fields = {"input": "Question", "output": "Agent reply", "human.overall": "anna,ben", "comment": "Remark"}
    told = [each.model_dump() for each in load_examples(review, fields=fields, need_output=False)]
    assert [each.model_dump() for each in load_examples(out, need_output=False)] == told


def test_options_change_the_proposal(review: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert called(review, "--yes", "-o", out, "--field", "comment=", "--field", "human.tone=anna") == 0
    assert rows(out)[1]["human"] == {"tone": False} and "comment" not in rows(out)[1]
    assert rows(out)[1]["raters"]["ben"] == {"human": {"overall": True}}
    assert rows(out)[1]["metadata"] == {"Remark": "Do not promise refunds."}


def test_a_scale_of_one_score_and_a_file_without_texts_are_refused(
    review: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(review, "--yes", "--human-scale", "5", "5") == 2
    assert says(capsys.readouterr().err, "human_scale", "must differ")
    (tmp_path / "numbers.jsonl").write_text('{"x": 1}\n', "utf-8")
    assert called(tmp_path / "numbers.jsonl", "--yes") == 2
    said = capsys.readouterr().err
    assert "No column" in said and "input" in said and "Read by" not in said


def test_only_traces_take_spans_and_several_files(review: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(review, "--span", "x", "--yes") == 2
    assert says(capsys.readouterr().err, "--span", "holds no traces")
    assert called(review, review, "--yes") == 2
    assert says(capsys.readouterr().err, "one table")


@pytest.mark.parametrize(
    ("typed", "code", "comment"),
    [
        ("y\n", 0, "Do not promise refunds."),
        ("nonsense=1\ncomment=\ny\n", 0, None),
        ("n\n", 1, None),
    ],
)
def test_at_a_terminal_it_asks(review: Path, tmp_path: Path, typed: str, code: int, comment: str | None) -> None:
    out = tmp_path / "out.jsonl"
    master, slave = pty.openpty()
    os.write(master, typed.encode())
    command = [sys.executable, "-m", "askance", "import", str(review), "-o", str(out)]
    ended = subprocess.run(
        command, stdin=slave, stdout=slave, stderr=slave, check=False, timeout=60, start_new_session=True
    )
    os.close(slave)
    assert ended.returncode == code
    assert out.exists() == (code == 0)
    if out.exists():
        assert rows(out)[1].get("comment") == comment


def test_an_interrupt_at_the_question_writes_nothing(
    review: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    for each in (sys.stdin, sys.stderr):
        monkeypatch.setattr(each, "isatty", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    assert called(review, "-o", tmp_path / "out.jsonl") == 130
    assert not (tmp_path / "out.jsonl").exists()


def test_from_python_it_is_import_file(review: Path, tmp_path: Path) -> None:
    found = import_file(review, fields={"comment": ""}, labels={"good": ["Pass"]})
    out = tmp_path / "out.jsonl"
    assert called(review, "--yes", "-o", out, "--field", "comment=") == 0
    assert list(found.rows) == rows(out) and found.notes[-1].startswith(f"Read by: askance evaluate {review} --field")
    with pytest.raises(InputError, match="one table"):
        import_file([review, review])
    with pytest.raises(InputError, match="no column 'nonsense'"):
        import_file(review, fields={"input": "nonsense"})
