"""Labels in words: what they come to, what is refused, and where people contradict themselves."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import (
    Example,
    answered_questions,
    human_dimensions,
    load_examples,
    without_answers,
)
from askance.prompts.human_feedback import are_labels, contradictions, parse_labels
from tests.said import says

TEXTS = {"input": "A document.", "output": "A summary."}


def rows(*given: Any, name: str = "quality") -> list[dict[str, Any]]:
    return [
        {"id": f"e{place}", "input": f"Document {place}.", "output": "A summary.", "human": {name: value}}
        for place, value in enumerate(given)
    ]


def jsonl(folder: Path, given: list[dict[str, Any]]) -> Path:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    return path


def table(folder: Path, *lines: list[str]) -> Path:
    path = folder / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    return path


@pytest.mark.parametrize(
    ("label", "means"),
    [
        *((good, 1.0) for good in (True, "pass", "PASS", "Yes", "good", "Accept", "true", " yes ")),
        *((bad, 0.0) for bad in (False, "fail", "Fail", "NO", "bad", "reject", "FALSE")),
    ],
)
def test_labels_are_one_and_zero_in_any_case(label: Any, means: float) -> None:
    example = load_examples(rows(label))[0]
    assert example.human_score("quality") == means
    assert are_labels(example.human["quality"])


def test_a_list_of_labels_is_one_a_rater() -> None:
    example = load_examples(rows(["pass", "Fail", True, 1]))[0]
    assert example.human_score("quality") == 0.75


def test_numbers_are_no_labels() -> None:
    assert not are_labels(load_examples(rows(1))[0].human["quality"])


def test_labels_are_still_labels_after_examples_were_written_and_read_again(tmp_path: Path) -> None:
    examples = load_examples(rows("pass", ["fail", True], 1))
    path = tmp_path / "again.jsonl"
    path.write_text("".join(each.model_dump_json(exclude_defaults=True) + "\n" for each in examples))
    again = load_examples(path)
    assert again == examples
    assert [[type(each) for each in example.human["quality"]] for example in again] == [[bool], [bool, bool], [float]]


def test_labels_in_csv_columns_are_read_like_others(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        ["id", "input", "output", "verdict", "human"],
        ["a", "x", "y", "Pass", '{"style": "good"}'],
        ["b", "x", "z", "0", '{"style": ["bad", true]}'],
        ["c", "x", "w", "", ""],
    )
    examples = load_examples(path, fields={"human.quality": "verdict"})
    assert [each.human_score("quality") for each in examples] == [1.0, 0.0, None]
    assert [each.human_score("style") for each in examples] == [1.0, 0.5, None]


# --- words of one's own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "good=Fine,bad=poor",
        ("good=fine", "bad=Poor"),
        {"good": "fine", "bad": "poor"},
        {"good": ["fine"], "bad": ("poor",)},
    ],
)
def test_words_of_ones_own_are_given_in_several_forms(given: Any) -> None:
    assert parse_labels(given) == {"good": ("fine",), "bad": ("poor",)}


def test_several_words_may_mean_the_same_and_the_usual_ones_are_still_understood() -> None:
    labels = parse_labels("good=fine,good=ok,bad=poor")
    examples = load_examples(rows("Fine", "OK", ["poor", "fine"], "pass"), labels=labels)
    assert [each.human_score("quality") for each in examples] == [1.0, 1.0, 0.5, 1.0]


def test_ones_own_meaning_of_a_usual_word_wins() -> None:
    examples = load_examples(rows("yes", "no"), labels=parse_labels("good=no,bad=yes"))
    assert [each.human_score("quality") for each in examples] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fine", "'fine' is no pair; write good=WORD,bad=WORD"),
        ("", "is no pair"),
        ("fine=good", "'fine' is neither 'good' nor 'bad'"),
        ("god=fine", "Did you mean 'good'?"),
        ("good=", "a word is needed"),
        ("good=2", "2 is a number"),
        ("good=fine,bad=Fine", "'fine' cannot be both"),
        ({"good": 7}, "in YAML put it in quotes"),
        (3, "write them as good=WORD,bad=WORD"),
    ],
)
def test_words_that_cannot_be_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_labels(given)
    assert said in str(caught.value)


def test_an_unknown_word_is_refused_with_file_line_and_field(tmp_path: Path) -> None:
    path = jsonl(tmp_path, rows("pass", "meh"))
    with pytest.raises(InputError) as caught:
        load_examples(path)
    for part in (f"{path}, line 2", "field 'human'", "'quality'", "'meh'", "--labels"):
        assert part in str(caught.value)


@pytest.mark.parametrize("word", ["half \ud83d", "x" * 5_000])
def test_odd_words_are_refused_in_a_short_sentence(word: str) -> None:
    with pytest.raises(InputError, match=r"row 1: field 'human': 'quality': '.*--labels") as caught:
        load_examples(rows(word))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("given", "number", "label"), [(("pass", 4, 0), 2, 1), ((4, "pass"), 1, 2), ((0, ["pass", 0.5]), 2, 2)]
)
def test_labels_beside_scores_on_a_scale_are_refused_with_both_places(
    tmp_path: Path, given: Any, number: int, label: int
) -> None:
    path = jsonl(tmp_path, rows(*given))
    with pytest.raises(InputError) as caught:
        load_examples(path)
    assert str(caught.value).startswith(f"{path}, line {number}: field 'human.quality'")
    assert f"{path}, line {label} has a label" in str(caught.value)


def test_labels_beside_zero_and_one_are_labels() -> None:
    examples = load_examples(rows("pass", 0, 1))
    assert are_labels(rating for each in examples for rating in each.human["quality"])


# --- answers to questions -----------------------------------------------------------------------------------------


CHECKLIST = Checklist(
    questions=[
        Question(id="facts", text="Facts?", dimension="quality"),
        Question(id="style", text="Style?", dimension="quality"),
        Question(id="tone", text="Tone?", dimension="style"),
        Question(id="overall", text="All in all?", dimension="quality"),
    ]
)
ANSWERED = Example(id="a", **TEXTS, human={"facts": "yes", "style": 3, "overall": 4, "other": 2, "tone": ["no", "yes"]})


def test_a_question_that_people_answered_is_no_dimension() -> None:
    assert human_dimensions([ANSWERED]) == ["facts", "style", "overall", "other", "tone"]
    assert human_dimensions([ANSWERED], CHECKLIST) == ["style", "overall", "other"]
    assert answered_questions([ANSWERED], CHECKLIST) == ["facts", "tone"]
    assert (ANSWERED.human_answer("facts"), ANSWERED.human_answer("tone")) == (1.0, 0.5)
    assert ANSWERED.human_answer("nothing") is None


def test_a_name_that_is_a_dimension_and_a_question_means_the_dimension() -> None:
    assert "style" in human_dimensions([ANSWERED], CHECKLIST)
    assert "style" not in answered_questions([ANSWERED], CHECKLIST)


def test_answers_can_be_left_out_and_nothing_else_is() -> None:
    assert set(without_answers(ANSWERED, CHECKLIST).human) == {"style", "overall", "other"}


# --- contradictions -----------------------------------------------------------------------------------------------


def alike(*given: Any) -> list[dict[str, Any]]:
    return [{"id": f"e{place}", **TEXTS, "human": {"quality": value}} for place, value in enumerate(given)]


def test_labels_that_contradict_each_other_are_said_once_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    given = [
        *alike("pass", "fail", "pass"),
        {"id": "x", **TEXTS, "context": "c", "human": {"quality": 0}},
    ]
    with caplog.at_level(logging.WARNING):
        examples = load_examples(given)
    assert len(examples) == 4
    [record] = caplog.records
    assert says(record.message, "1 output", "e0", "e1", "quality")


def test_many_contradictions_are_counted_and_the_first_are_named(caplog: pytest.LogCaptureFixture) -> None:
    given = [
        {"id": f"{side}{place}", "input": f"Document {place}.", "output": "y", "human": {"quality": side}}
        for place in range(5)
        for side in ("pass", "fail")
    ]
    load_examples(given)
    [record] = caplog.records
    assert "5 outputs are labelled both ways" in record.message
    assert "'pass2' and 'fail2' on quality and 2 more" in record.message


@pytest.mark.parametrize("given", [("pass", "pass"), (["pass", "fail"], "fail"), (1, 5, 1)])
def test_what_does_not_contradict_is_not_said(given: Any, caplog: pytest.LogCaptureFixture) -> None:
    load_examples(alike(*given))
    assert not caplog.records


def test_outputs_of_different_contexts_do_not_contradict() -> None:
    rated = [("a", ("in", "c1"), {"q": (True,)}), ("b", ("in", "c2"), {"q": (False,)})]
    assert contradictions(rated) == []


def test_remarks_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    load_examples(alike("pass", "fail"), remarks=False)
    assert not caplog.records
