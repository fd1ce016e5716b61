"""What people wrote about an output: read in every form, kept, and told of the questions that it speaks of."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example, load_examples
from askance.prompts.human_feedback import Comment, comments_on, read_comments, stray_comments_said, told
from tests.said import says

GOOD = {"id": "a", "input": "A document.", "output": "A summary."}
FORMS = [
    ("Too long.", (Comment("Too long."),)),
    ("  Too long.\n", (Comment("Too long."),)),
    (["Too long.", "Dull."], (Comment("Too long."), Comment("Dull."))),
    ({"style": "Dull."}, (Comment("Dull.", "style"),)),
    ({"style": ["Dull.", "Flat."]}, (Comment("Dull.", "style"), Comment("Flat.", "style"))),
    (["Too long.", {"style": "Dull."}], (Comment("Too long."), Comment("Dull.", "style"))),
    (["", " ", None, "Dull."], (Comment("Dull."),)),
    ({"style": "", "facts": None}, ()),
    ("", ()),
    ([], ()),
    ({}, ()),
    (None, ()),
]


def jsonl(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("given", "comments"), FORMS)
def test_every_form_of_a_comment_is_read(tmp_path: Path, given: Any, comments: tuple[Comment, ...]) -> None:
    assert load_examples(jsonl(tmp_path, GOOD | {"comment": given}))[0].comment == comments


@pytest.mark.parametrize(("given", "comments"), FORMS)
def test_comments_are_the_same_after_being_written_and_read_again(
    tmp_path: Path, given: Any, comments: tuple[Comment, ...]
) -> None:
    example = Example(**GOOD, comment=given)
    for row in (json.loads(example.model_dump_json()), example.model_dump(exclude_defaults=True)):
        assert load_examples(jsonl(tmp_path, row))[0] == example


def test_a_comment_is_written_in_the_simplest_form() -> None:
    for given in ("Too long.", ["Too long.", "Dull."], {"style": "Dull."}):
        assert Example(**GOOD, comment=given).model_dump()["comment"] == given
    assert "comment" not in Example(**GOOD).model_dump(exclude_defaults=True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "a text, a list of texts, or an object"),
        ([True], "not bool"),
        ({"style": {"deeper": "x"}}, "not dict"),
        ("half \ud83d", "half a surrogate pair at character 6"),
    ],
)
def test_what_is_no_comment_is_refused_with_file_line_and_field(tmp_path: Path, given: Any, said: str) -> None:
    path = jsonl(tmp_path, GOOD, GOOD | {"id": "b", "comment": given})
    with pytest.raises(InputError) as caught:
        load_examples(path)
    assert f"{path}, line 2: field 'comment'" in str(caught.value)
    assert said in str(caught.value)


def test_a_comment_on_no_output_is_refused_with_file_line_and_field(tmp_path: Path) -> None:
    path = jsonl(tmp_path, GOOD, {"id": "b", "input": "x", "comment": "Too long."})
    with pytest.raises(InputError) as caught:
        load_examples(path, need_output=False)
    assert says(caught.value, path.name, "line 2", "comment", "no output")
    assert load_examples([{"id": "b", "input": "x", "comment": " "}], need_output=False)[0].comment == ()


def test_comments_come_from_csv_cells(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [
                ["id", "input", "output", "comment"],
                ["a", "x", "y", "Too long,\nand dull."],
                ["b", "x", "y", '{"style": "Dull."}'],
                ["c", "x", "y", '["Long.", "Dull."]'],
                ["d", "x", "y", "[sic] is there twice"],
                ["e", "x", "y", ""],
            ]
        )
    assert [each.comment for each in load_examples(path)] == [
        (Comment("Too long,\nand dull."),),
        (Comment("Dull.", "style"),),
        (Comment("Long."), Comment("Dull.")),
        (Comment("[sic] is there twice"),),
        (),
    ]


def test_a_field_map_names_columns_with_comments() -> None:
    row = GOOD | {"note": "Too long.", "about_style": "Dull."}
    assert load_examples([row], fields={"comment": "note"})[0].comment == (Comment("Too long."),)
    both = load_examples([row], fields={"comment.style": "about_style", "comment": "note"})[0]
    assert both.comment == (Comment("Dull.", "style"), Comment("Too long."))
    assert both.metadata == {}


def test_comments_come_from_rows_of_a_data_set_whose_none_means_not_there() -> None:
    rows = [GOOD | {"comment": {"style": "Dull.", "facts": None}}, GOOD | {"id": "b", "comment": None}]
    assert [each.comment for each in load_examples(rows)] == [(Comment("Dull.", "style"),), ()]


def test_a_very_long_comment_is_kept_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    long = "word " * 4_000
    with caplog.at_level(logging.WARNING):
        examples = load_examples(
            [GOOD | {"comment": long}, GOOD | {"id": "b", "comment": [long, "Dull."]}, GOOD | {"id": "c"}]
        )
    assert examples[0].comment == (Comment(long.strip()),)
    [record] = caplog.records
    assert says(record.message, "a", "b", "4,000")


def test_a_comment_of_the_longest_kind_that_is_told_whole_is_not_remarked_on(caplog: pytest.LogCaptureFixture) -> None:
    load_examples([GOOD | {"comment": "x" * 4_000}])
    assert not caplog.records


# --- which comments speak of a question ---------------------------------------------------------------------------

CHECKLIST = Checklist(
    questions=[
        Question(id="facts", text="Facts?", dimension="quality"),
        Question(id="words", text="Words?", dimension="quality"),
        Question(id="tone", text="Tone?", dimension="style"),
        Question(id="style", text="Style?", dimension="quality"),
    ]
)
COMMENTS = read_comments(
    ["All.", {"overall": "Whole.", "quality": "Quality.", "facts": "Facts.", "style": "Style.", "elsewhere": "No."}]
)


@pytest.mark.parametrize(
    ("question", "comments"),
    [
        ("facts", ["Facts.", "Quality.", "All.", "Whole."]),
        ("words", ["Quality.", "All.", "Whole."]),
        ("tone", ["Style.", "All.", "Whole."]),
        ("style", ["Quality.", "All.", "Whole."]),
    ],
)
def test_a_comment_goes_to_the_questions_that_it_is_about(question: str, comments: list[str]) -> None:
    assert comments_on(COMMENTS, question, CHECKLIST) == comments


def test_overall_is_a_dimension_where_the_checklist_has_it() -> None:
    checklist = Checklist(
        questions=[Question(id="whole", text="Good?"), Question(id="tone", text="Tone?", dimension="style")]
    )
    assert comments_on(read_comments({"overall": "Whole."}), "whole", checklist) == ["Whole."]
    assert comments_on(read_comments({"overall": "Whole."}), "tone", checklist) == []


def test_what_is_told_is_one_line() -> None:
    assert told(["Fine.\n\nSo  long", "Dull."]) == "Fine. So long. Dull."
    assert told(["Too long"]) == "Too long"
    assert told([]) == ""


def test_a_long_comment_is_cut_after_a_sentence_or_a_word() -> None:
    sentences = told(["The number in it is wrong. " * 1_000])
    assert sentences.endswith("wrong. …")
    assert 300 < len(sentences) <= 600
    words = told(["word " * 4_000])
    assert words.endswith("word…")
    assert 500 < len(words) <= 600
    assert len(told(["x" * 20_000])) == 600
    assert told(["First. " + "word " * 4_000]).startswith("First. word")


def test_comments_about_nothing_that_is_asked_are_named() -> None:
    given = {"a": read_comments(["All.", {"style": "x", "facts": "x", "overall": "x", "wit": "x"}])}
    said = stray_comments_said(given, CHECKLIST)
    assert said is not None
    assert says(said, "wit", "a")
    assert stray_comments_said(given, CHECKLIST, ["wit"]) is None
