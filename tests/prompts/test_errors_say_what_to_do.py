"""What errors say where a user has mistaken a name, a file or a form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.evaluation.options import ScoreOptions
from askance.evaluation.weights_file import weighted_by
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import InputError, like_named
from askance.prompts.examples import load_examples
from askance.prompts.verdicts import read_verdicts
from askance.settings import load_config, parse_options
from tests.said import says

CHECKLIST = "task: t\nquestions:\n  - {id: facts, text: 'Right?', dimension: d}\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(function, *arguments, **named):
    with pytest.raises(InputError) as caught:
        function(*arguments, **named)
    return str(caught.value)


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_missing_file_is_answered_with_the_name_of_the_one_beside_it(here):
    write("examples.jsonl", "")
    assert "Did you mean 'examples.jsonl'?" in said(load_examples, "exmples.jsonl")
    write("checklist.yaml", CHECKLIST)
    assert "Did you mean 'checklist.yaml'?" in said(load_checklist, "cheklist.yaml")
    write("askance.yaml", "")
    assert "Did you mean 'askance.yaml'?" in said(load_config, "askanse.yaml")
    assert like_named("nowhere/examples.jsonl") == ""


def test_a_missing_field_is_answered_with_the_columns_that_there_are(here):
    write("rows.csv", "id,text,summary\n1,a,b\n")
    message = said(load_examples, "rows.csv")
    assert says(message, "input", "id, text, summary", "--field input=COLUMN")


def test_a_mistyped_field_of_a_question_is_answered_with_the_right_one(here):
    message = said(load_checklist, write("c.yaml", CHECKLIST.replace("dimension", "dimnsion")))
    assert "entry 1 of 'questions': the field 'dimnsion' is not known (Did you mean 'dimension'?)" in message
    assert "at least" not in message  # there is a question, it is only wrong


def test_a_checklist_without_questions_is_told_so_in_words(here):
    message = said(load_checklist, write("c.yaml", "task: t\nquestions: []\n"))
    assert says(message, "c.yaml", "questions", "at least 1")


def test_broken_yaml_is_named_by_its_line_alone(here):
    assert said(load_config, write("c.yaml", "limit: 3\na: [1\n")).startswith("c.yaml, line 3: not valid YAML (")


def test_a_setting_out_of_range_is_said_with_its_value():
    assert says(said(parse_options, ScoreOptions, {"limit": -3}), "options", "limit", 1, -3)


def test_a_file_of_other_records_is_no_file_of_verdicts(here):
    write("examples.jsonl", '{"id": "1", "input": "a", "output": "b"}\n')
    message = said(read_verdicts, "examples.jsonl")
    assert says(message, "examples.jsonl", "line 1", "askance evaluate -o")


def test_weights_of_another_checklist_are_named_by_their_file(here):
    write("w.json", json.dumps({"weights": {"style": 1.0}}))
    message = said(weighted_by, load_checklist(write("c.yaml", CHECKLIST)), "w.json")
    assert says(message, "w.json", "facts")
    assert says(message, "learned", "checklist")


def test_a_directory_that_lacks_something_is_not_proposed_for_itself(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    assert like_named(tmp_path / "memory") == ""
    (tmp_path / "memory2").mkdir()
    assert like_named(tmp_path / "memory") == " Did you mean 'memory2'?"
