"""Raters with names: read from files and tables, written back, and refused where they are wrong."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.errors import InputError
from askance.prompts.examples import Example, ExampleTable, load_examples
from askance.prompts.human_feedback import Comment
from askance.prompts.raters import comments_in, rater_columns

TEXTS = {"id": "a", "input": "Where is my parcel?", "output": "It is lost."}
ANNA_AND_BEN: dict[str, Any] = {
    "anna": {"human": {"overall": "pass", "tone": 4}},
    "ben": {"human": {"overall": "fail"}, "comment": {"overall": "Curt."}},
}


def read(path: Path, row: dict[str, Any], **how: Any) -> Example:
    path.write_text(json.dumps({**TEXTS, **row}) + "\n", encoding="utf-8")
    return load_examples(path, **how)[0]


def test_raters_have_places_in_the_lists_and_comments_keep_their_names(tmp_path: Path) -> None:
    example = read(tmp_path / "a.jsonl", {"raters": ANNA_AND_BEN, "comment": "Odd."})
    assert example.raters == ("anna", "ben")
    assert example.human == {"overall": (True, False), "tone": (4.0, None)}
    assert example.comment == (Comment("Curt.", "overall", "ben"), Comment("Odd."))


@pytest.mark.parametrize("beside", [{}, {"human": {"overall": [True, False], "kind": "yes"}, "comment": ["x", "y"]}])
def test_raters_are_written_back_as_they_came(tmp_path: Path, beside: dict[str, Any]) -> None:
    example = read(tmp_path / "a.jsonl", {"raters": ANNA_AND_BEN, **beside})
    written = json.loads(json.dumps(example.model_dump(exclude_defaults=True)))
    assert set(written["raters"]) == {"anna", "ben"}
    assert written["raters"]["ben"] == {"human": {"overall": False}, "comment": {"overall": "Curt."}}
    assert read(tmp_path / "b.jsonl", written) == example
    assert ExampleTable([example])[0] == example
    assert [each.text for each in comments_in(written)] == [each.text for each in example.comment]


def test_ratings_beside_names_count_as_raters_without_one_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        example = read(tmp_path / "a.jsonl", {"raters": ANNA_AND_BEN, "human": {"overall": ["fail", "fail"]}})
    assert example.raters == ("anna", "ben", "", "")
    assert example.human["overall"] == (True, False, False, False)
    assert "'a' on overall" in caplog.text


@pytest.mark.parametrize(
    ("raters", "said"),
    [
        ({" ": {}}, "a rater needs a name"),
        ({"anna": 3}, "'anna' needs an object"),
        ({"anna": {"humn": {}}}, "'humn' is not known"),
        ({"anna": {"human": 4}}, "'human' of 'anna' must be an object"),
        ({"anna": {"human": {"overall": [1, 2]}}}, "'anna' has a list on 'overall'"),
        ({"anna": {"human": {"overall": "splendid"}}}, "'splendid' is no label"),
        (3, "metadata.raters=raters"),
        (["anna", "anna"], "a name stands there twice"),
        (["anna"], "there are 1, and 'overall' has 2 ratings"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, raters: Any, said: str) -> None:
    row = {"raters": raters, **({"human": {"overall": [1, 0]}} if isinstance(raters, list) else {})}
    with pytest.raises(InputError) as refusal:
        read(tmp_path / "a.jsonl", row)
    assert "a.jsonl, line 1" in str(refusal.value) and said in str(refusal.value)


def test_words_on_a_scale_are_read_of_every_rater(tmp_path: Path) -> None:
    raters = {"anna": {"human": {"overall": "Bad"}}, "ben": {"human": {"overall": "excellent"}}}
    example = read(tmp_path / "a.jsonl", {"raters": raters}, label_scale=["Bad", "Fair", "Excellent"])
    assert example.human == {"overall": (1.0, 3.0)}


def test_columns_of_a_table_are_raters(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "id,input,output,anna,ben,raters.cem.human.tone,raters.cem.comment\n1,a,b,4,,2,Curt.\n2,a,c,3,5,,\n"
    )
    first, second = load_examples(path, fields={"human.overall": "anna,ben"})
    assert rater_columns([first, second], "overall") == {"anna": [4.0, 3.0], "ben": [None, 5.0]}
    assert rater_columns([first, second], "tone") == {"cem": [2.0, None]}
    assert first.comment == (Comment("Curt.", rater="cem"),)
    with pytest.raises(InputError, match=r"raters\.NAME\.comment"):
        load_examples(path, fields={"raters.anna": "anna"})


def test_a_list_of_objects_is_a_rater_each_without_a_name(tmp_path: Path) -> None:
    row = {"experts": [{"tone": 1, "facts": 5}, {"tone": 2}]}
    example = read(tmp_path / "a.jsonl", row, fields={"human": "experts"})
    assert example.human == {"tone": (1.0, 2.0), "facts": (5.0, None)}
    assert rater_columns([example], "tone") == {"rater 1": [1.0], "rater 2": [2.0]}
