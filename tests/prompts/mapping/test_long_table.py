"""Long tables of ratings: a row for each output and rater."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance import rater_agreement
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples
from askance.prompts.mapping.table import look_at
from tests.said import naming

TABLE = """id,input,output,rater,label,comment
a,Where is it?,At home.,anna,fail,It does not say whose.
a,,,ben,pass,
b,Is it open?,Yes.,anna,pass,
b,Is it open?,Yes.,ben,pass,short
"""


def table(tmp_path: Path, text: str = TABLE) -> Path:
    (tmp_path / "ratings.csv").write_text(text)
    return tmp_path / "ratings.csv"


def test_the_rows_of_an_output_are_one_example_with_its_raters(tmp_path: Path) -> None:
    first, second = load_examples(table(tmp_path))
    assert (first.id, first.input, first.output) == ("a", "Where is it?", "At home.")
    assert first.raters == ("anna", "ben") and first.human == {"overall": (False, True)}
    assert [(each.rater, each.text) for each in first.comment] == [("anna", "It does not say whose.")]
    assert second.human == {"overall": (True, True)} and not second.metadata
    dumped = Example.model_validate(json.loads(first.model_dump_json()))
    assert dumped == first


def test_columns_may_be_called_otherwise_and_be_of_several_dimensions() -> None:
    rows: list[dict[str, Any]] = [
        {"item": 1, "q": "x", "a": "y", "coder": "c1", "clear": 4, "true": "2", "note": "so", "task": 7},
        {"item": 2, "q": "x", "a": "z", "coder": "c1", "clear": 1, "true": "1"},
        {"item": 1, "q": "x", "a": "y", "coder": "c2", "clear": 5, "true": ""},
    ]
    fields = {
        "id": "item", "input": "q", "output": "a", "rater": "coder", "human.clear": "clear", "human.true": "true",
        "comment": "note",
    }  # fmt: skip
    first, second = load_examples(rows, fields=fields)
    assert first.human == {"clear": (4, 5), "true": (2, None)} and second.human == {"clear": (1,), "true": (1,)}
    assert first.raters == ("c1", "c2") and first.metadata == {"task": 7}
    assert [each.id for each in load_examples(rows, fields=fields, limit=1)] == ["1"]


def test_a_rater_that_rated_twice_differently_is_refused_with_both_places(tmp_path: Path) -> None:
    twice = f"{TABLE}a,,,anna,fail,\n"
    assert len(load_examples(table(tmp_path, twice))) == 2
    with pytest.raises(
        InputError, match=naming("ratings.csv", "line 6", "human.overall", "anna", "pass", "fail", "line 2")
    ):
        load_examples(table(tmp_path, twice.replace("anna,fail,\n", "anna,pass,\n")))


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ("a,,,,pass,\n", ("line 6", "rater")),
        ("a,,At work.,carl,pass,\n", ("line 6", "output", "line 2")),
        (",x,y,carl,pass,\n", ("line 6", "id")),
        ("c,,y,carl,pass,\n", ("line 6", "input")),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_field(row: str, facts: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("ratings.csv", *facts)):
        load_examples(table(tmp_path, f"{TABLE}{row}"))


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=naming("labels", "label")):
        load_examples(table(tmp_path), fields={"human.overall": "labels"})


@pytest.mark.parametrize("names", [("id", "rater"), ("example_id", "annotator")])
def test_a_mapping_is_proposed_that_reads_it(names: tuple[str, str], tmp_path: Path) -> None:
    file = table(tmp_path, TABLE.replace("id,", f"{names[0]},", 1).replace("rater", names[1]))
    proposal = look_at(file).proposal
    assert "metadata.document" not in proposal.fields and proposal.fields.get("rater", "rater") == names[1]
    first, _ = load_examples(file, fields=dict(proposal.fields))
    assert first.id == "a" and first.raters == ("anna", "ben") and first.human == {"overall": (False, True)}


def test_agreement_is_told_of_a_long_table() -> None:
    rows = [
        {"id": n, "input": "q", "output": f"o{n}", "rater": rater, "score": (n + slip) % 5}
        for n in range(20)
        for rater, slip in (("anna", 0), ("ben", n % 7 == 0))
    ]
    found = rater_agreement(rows, resamples=100).dimensions["overall"]
    assert [each.rater for each in found.raters] == ["anna", "ben"] and found.outputs == 20


def test_a_column_of_raters_without_ids_stays_what_it_was() -> None:
    (only,) = load_examples([{"input": "q", "output": "o", "rater": "anna"}])
    assert not only.raters and only.metadata == {"rater": "anna"}
