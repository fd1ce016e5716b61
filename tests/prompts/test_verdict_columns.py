"""Verdicts in columns are read as the list of verdicts would be, and files of them are what they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.rows import column
from askance.prompts.verdicts import (
    Told,
    Verdict,
    VerdictColumns,
    dump_verdicts,
    read_verdicts,
    save_verdicts,
)
from tests.said import naming

VERDICTS = [
    Verdict("é", "q", "m", "p", True, 0.9, "logprob", 'Because\u2028"so".'),
    Verdict("é", "r", "m", "p", False, 0.0, "hard", replicate=1),
    Verdict("b", "q", "m", "p", None, status="api_error", error="down"),
    Verdict("q", "q", "n", "p", None, explanation="cannot tell", status="abstained", replicate=3),
    Verdict("b", "r", "m", "p", True, 1 / 3, "sampled"),
]


def test_columns_give_back_the_verdicts_whole_and_field_by_field() -> None:
    columns = VerdictColumns(VERDICTS)
    assert list(columns) == VERDICTS == columns
    assert [columns[place] for place in range(-5, 5)] == [*VERDICTS, *VERDICTS]
    assert columns[1:5:2] == VERDICTS[1:5:2]
    for field in Verdict.__slots__:
        assert (
            list(columns.column(field)) == [getattr(each, field) for each in VERDICTS] == list(column(VERDICTS, field))
        )
    with pytest.raises(IndexError):
        columns[5]


def test_columns_differ_from_other_verdicts() -> None:
    assert VerdictColumns(VERDICTS) != VERDICTS[:-1]
    assert VerdictColumns(VERDICTS) != [*VERDICTS[:-1], VERDICTS[0]]


def test_verdicts_that_are_due_can_be_put_in_any_order() -> None:
    said = [Told(True, 0.9, "logprob", "so"), Told(None, status="api_error", error="down"), Told(False, 0.0, "hard")]
    columns = VerdictColumns.due(["a", "b", "q"], ["q", "r"], "m", "p", repeat=2)
    for place in (11, 3, 4, 10, 0, 8, 9, 7, 1, 2, 6, 5):
        columns.put(place, said[place % 3])
    names = [(example, question, repeat) for example in "abq" for repeat in (0, 1) for question in "qr"]
    assert columns == [
        Verdict(example, question, "m", "p", *said[place % 3], repeat)
        for place, (example, question, repeat) in enumerate(names)
    ]
    assert list(VerdictColumns.due([], ["q"], "m", "p")) == []


def test_some_of_the_columns_are_those_verdicts_with_their_notes() -> None:
    columns = VerdictColumns([*VERDICTS, Verdict("b", "own", "m", "p", True, 0.8, "logprob", asked="Is it short?")])
    wanted = np.array([False, True, True, True, False, True])
    assert columns.only(wanted) == [each for each, is_wanted in zip(columns, wanted, strict=True) if is_wanted]
    assert list(columns.only(~wanted)) == [VERDICTS[0], VERDICTS[4]]


def test_more_verdicts_than_a_block_are_kept() -> None:
    many = [Verdict(f"e{number}", "q", "m", "p", number % 3 == 0, number / 500, "logprob") for number in range(500)]
    assert VerdictColumns(many) == many


def test_places_are_those_of_the_names_given_and_minus_one_elsewhere() -> None:
    columns = VerdictColumns(VERDICTS)
    assert columns.places("example", ["b", "unknown", "é"]).tolist() == [2, 2, 0, -1, 0]
    assert columns.places("question", []).tolist() == [-1] * 5


def test_what_was_said_is_a_probability_or_an_answer_and_nan_where_there_is_none() -> None:
    columns = VerdictColumns(VERDICTS)
    np.testing.assert_array_equal(columns.said(soft=True), [0.9, 0.0, np.nan, np.nan, 1 / 3])
    np.testing.assert_array_equal(columns.said(soft=False), [1.0, 0.0, np.nan, np.nan, 1.0])


def test_lines_are_those_of_a_json_encoder() -> None:
    expected = "".join(json.dumps(each.to_dict(), ensure_ascii=False) + "\n" for each in VERDICTS)
    assert dump_verdicts(VERDICTS) == dump_verdicts(VerdictColumns(VERDICTS)) == expected


@pytest.mark.parametrize("name", ["v.jsonl", "v.parquet"])
def test_a_file_gives_back_what_was_saved(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    save_verdicts(tmp_path / name, VERDICTS)
    assert read_verdicts(tmp_path / name) == VERDICTS
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_half_a_surrogate_pair_that_a_judge_said_is_its_escape_in_a_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    verdicts = [VERDICTS[0], Verdict("e", "q", "m", "p", True, 1.0, "hard", explanation="half \ud83d of it")]
    save_verdicts(tmp_path / "v.parquet", verdicts)
    again = read_verdicts(tmp_path / "v.parquet")
    assert again[0] == VERDICTS[0] and again[1].explanation == r"half \ud83d of it"


def test_a_repeat_in_a_parquet_file_is_named_by_its_rows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    save_verdicts(tmp_path / "v.parquet", [*VERDICTS, VERDICTS[1]])
    with pytest.raises(InputError, match=r"v\.parquet, row 6: .* stands in row 2 already"):
        read_verdicts(tmp_path / "v.parquet")


def test_without_pyarrow_the_extra_is_named_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match="files"):
        save_verdicts(tmp_path / "v.parquet", VERDICTS)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_verdict_is_refused_by_its_kind() -> None:
    with pytest.raises(InputError, match=naming("dict", "askance.Verdict")):
        VerdictColumns.of([VERDICTS[0].to_dict()])  # type: ignore[list-item]
