from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.errors import InputError
from askance.prompts.templates import render, template
from askance.prompts.verdicts import Verdict, dump_verdicts, read_verdicts, save_verdicts
from tests.said import naming


def test_a_verdict_without_an_answer_has_no_score() -> None:
    failed = Verdict("e", "q", "m", "p", None, status="parse_error", error="why")
    assert failed.score(soft=True) is None
    assert failed.score(soft=False) is None


def test_soft_scores_are_probabilities_and_hard_ones_are_not() -> None:
    verdict = Verdict("e", "q", "m", "p", False, 0.4, "logprob")
    assert (verdict.score(soft=True), verdict.score(soft=False)) == (0.4, 0.0)


def test_verdicts_are_written_one_a_line_in_order_with_the_fields_of_the_interface() -> None:
    text = dump_verdicts(
        [Verdict("é", "q", "m", "p", True, 1.0, "hard"), Verdict("b", "q", "m", "p", None, replicate=2)]
    )
    first, second = map(json.loads, text.splitlines())
    assert list(first) == (
        ["example", "question", "model", "prompt", "answer", "p_yes", "p_yes_from", "explanation", "status", "error"]
    )
    assert "é" in text
    assert second["replicate"] == 2


def test_templates_are_filled_once() -> None:
    lesson = "use {listed} and {{braces}}"
    assert render("deduplicator_case", lesson=lesson, listed="1. x").startswith(f"New lesson: {lesson}\n")
    assert not template("evaluator").endswith("\n")


VERDICTS = [
    Verdict("é", "q", "m", "p", True, 0.9, "logprob", "Because\u2028so."),
    Verdict("é", "q", "m", "p", False, 0.0, "hard", replicate=1),
    Verdict("b", "q", "m", "p", None, status="api_error", error="down"),
]


def row(**change: Any) -> dict[str, Any]:
    return {"example": "e1", "question": "q1", "model": "m", "prompt": "p", "answer": True, "p_yes": 0.9} | change


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "verdicts.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    save_verdicts(path, VERDICTS)
    assert read_verdicts(path, examples={"é", "b"}, questions=["q"]) == VERDICTS


def test_an_answer_alone_is_a_hard_probability(tmp_path: Path) -> None:
    [verdict] = read_verdicts(written(tmp_path, row(p_yes=None, answer=False, example=7)))
    assert (verdict.p_yes, verdict.p_yes_from, verdict.example) == (0.0, "hard", "7")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"example": "E1"}, "field 'example': there is no example 'E1' in the data. Did you mean 'e1'?"),
        ({"question": "q7"}, "field 'question': there is no question 'q7' in the checklist."),
        ({"answer": "yes"}, "field 'answer': input should be a valid boolean"),
        ({"answer": 1}, "field 'answer': input should be a valid boolean"),
        ({"answer": None}, "field 'answer': null, although the status is 'ok'"),
        ({"status": "parse_error"}, "although the status is 'parse_error'"),
        ({"answer": None, "status": "abstained"}, "field 'p_yes': a number, although there is no answer"),
        ({"p_yes": 1.2}, "field 'p_yes': input should be less than or equal to 1"),
        ({"p_yes_from": "guess"}, "field 'p_yes_from'"),
        ({"status": "fine"}, "field 'status'"),
        ({"replicate": -1}, "field 'replicate'"),
        ({"score": 3}, "the field 'score' is not known"),
    ],
)
def test_a_bad_verdict_is_named_by_file_line_and_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path, row(example="e2"), row(**change))
    with pytest.raises(InputError) as error:
        read_verdicts(path, examples=["e1", "e2"], questions=["q1"])
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert message in str(error.value)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    bad = row()
    del bad["model"]
    with pytest.raises(InputError, match=r"line 1: the field 'model' is missing"):
        read_verdicts(written(tmp_path, bad))


def test_a_verdict_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3: .* stands in line 1 already"):
        read_verdicts(written(tmp_path, row(), row(replicate=1), row(p_yes=0.8)))
    assert len(read_verdicts(written(tmp_path, row(), row(replicate=1), row(model="other"), row(prompt="other")))) == 4


def test_a_file_without_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("no verdicts")):
        read_verdicts(written(tmp_path))
    with pytest.raises(InputError, match=naming("no such file")):
        read_verdicts(tmp_path / "nowhere.jsonl")
