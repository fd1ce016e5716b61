from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from askance.prompts.checklist import (
    READY,
    Checklist,
    Question,
    asking,
    dump_checklist,
    load_checklist,
    parse_checklist,
)
from askance.prompts.errors import InputError
from tests.said import naming

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
WORDS = """1 010 1.10 yes No null ~ on 12:30 2024-01-01 # ' " | > &a *a !x % @ ` {a} [a] ... --- << \\n é😀"""
LINES = ["a: b", "- x", "# no", " x ", "x\ny", "x\n\n y\n", "\n", "\t", "a\n  b\n c", "x" * 300, "word " * 60]
AWKWARD = st.sampled_from([*WORDS.split(), *LINES, "\u00a0x", "a\u2028b", "a\x85b", "a\rb", "\ufeff"])
QUESTIONS = st.lists(
    st.builds(
        Question,
        id=TEXT | AWKWARD,
        text=TEXT | AWKWARD,
        dimension=TEXT | AWKWARD,
        violation=st.none() | TEXT | AWKWARD,
        weight=st.floats(1e-6, 1e6),
        rubric=st.none() | AWKWARD,
        reference=st.none() | AWKWARD,
        good=st.sampled_from(["yes", "no"]),
        sees=st.sampled_from(["all", "output", "quote"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda question: question.id,
)


def refusal(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_checklist(text, "c.yaml")
    return str(caught.value)


@given(st.text(st.characters(codec="utf-8")) | AWKWARD, QUESTIONS)
@example("a\n\nb", [Question(id="yes", text="no", violation="no: it is 'not'", weight=2)])
def test_what_is_written_is_read_back(task: str, questions: list[Question]) -> None:
    checklist = Checklist(task=task, questions=questions)
    assert parse_checklist(dump_checklist(checklist), "c.yaml") == checklist


def test_a_file_keeps_every_character(tmp_path: Path) -> None:
    checklist = Checklist(task="Über\nzwei Zeilen", questions=[Question(id="1", text="Größe: »5«?")])
    (tmp_path / "c.yaml").write_text(dump_checklist(checklist), encoding="utf-8")
    assert load_checklist(tmp_path / "c.yaml") == checklist


def test_the_file_is_pleasant_to_edit() -> None:
    questions = [
        Question(id="facts", text="Are the facts right?", dimension="consistency", violation="The year is wrong."),
        Question(id="short", text="Is it short?", weight=2),
    ]
    assert dump_checklist(Checklist(task="Summarise.\n\nBe brief.", questions=questions)) == (
        "task: |-\n"
        "  Summarise.\n"
        "\n"
        "  Be brief.\n"
        "\n"
        "questions:\n"
        "  - id: facts\n"
        "    text: Are the facts right?\n"
        "    dimension: consistency\n"
        "    violation: The year is wrong.\n"
        "\n"
        "  - id: short\n"
        "    text: Is it short?\n"
        "    dimension: overall\n"
        "    weight: 2.0\n"
        "\n"
    )


def test_plain_words_that_yaml_takes_for_something_else_stay_words() -> None:
    text = "questions:\n- id: 010\n  text: 12:30\n  violation: No\n  rubric: 2024-01-01\n  reference: 1.10\n"
    question = parse_checklist(text, "c.yaml").questions[0]
    assert (question.id, question.text, question.violation) == ("010", "12:30", "No")
    assert (question.rubric, question.reference) == ("2024-01-01", "1.10")


@pytest.mark.parametrize("word", ["no", "'no'", '"no"', "No", "false"])
def test_no_is_the_good_answer_however_it_is_written(word: str) -> None:
    question = parse_checklist(f"questions:\n- id: a\n  text: b\n  good: {word}\n", "c").questions[0]
    assert question.is_fault
    assert (question.p_good(0.25), question.p_good(None), question.is_good(True), question.is_good(None)) == (
        0.75,
        None,
        False,
        None,
    )


@pytest.mark.parametrize(("value", "good"), [(False, "no"), (True, "yes"), ("no", "no"), ("yes", "yes")])
def test_json_may_say_true_and_false(value: Any, good: str) -> None:
    data = {"questions": [{"id": "a", "text": "b", "good": value}]}
    assert parse_checklist(json.dumps(data), "c.json").questions[0].good == good


def test_good_is_written_only_where_it_is_no() -> None:
    fault, merit = Question(id="a", text="Is it rude?", good="no", weight=2), Question(id="b", text="Is it short?")
    text = dump_checklist(Checklist(questions=[fault, merit]))
    assert "  - id: a\n    text: Is it rude?\n    good: no\n    dimension: overall\n    weight: 2.0\n" in text
    assert text.count("good") == 1
    assert "good" not in merit.model_dump() and "good" not in merit.model_dump_json()
    assert fault.model_dump()["good"] == "no"


def test_what_a_question_sees_is_written_only_where_it_is_the_output_alone() -> None:
    whole, alone = Question(id="a", text="Are the facts right?"), Question(id="b", text="Is it rude?", sees="output")
    text = dump_checklist(Checklist(questions=[whole, alone]))
    assert text.count("sees") == 1
    assert "  - id: b\n    text: Is it rude?\n    dimension: overall\n    sees: output\n" in text
    assert "sees" not in whole.model_dump() and "sees" not in whole.model_dump_json()
    assert [each.sees for each in parse_checklist(text, "c.yaml").questions] == ["all", "output"]
    assert parse_checklist(ONE + "  sees: all\n", "c.yaml").questions[0] == Question(id="a", text="x")
    assert parse_checklist(ONE + "  sees: quote\n", "c.yaml").questions[0].sees == "quote"


def test_an_empty_or_null_field_is_one_that_is_not_there() -> None:
    question = parse_checklist("questions:\n- id: a\n  text: b\n  violation:\n  rubric: null\n", "c").questions[0]
    assert (question.violation, question.rubric) == (None, None)


def test_json_is_read_with_tabs_and_numbers() -> None:
    data = {"task": "t", "questions": [{"id": 1, "text": "a", "weight": 0.5}, {"id": "b", "text": "true"}]}
    checklist = parse_checklist(json.dumps(data, indent="\t"), "c.json")
    assert [(each.id, each.text, each.weight) for each in checklist.questions] == [("1", "a", 0.5), ("b", "true", 1.0)]


def test_dimensions_come_in_order_and_questions_by_id() -> None:
    checklist = Checklist(questions=[Question(id=str(n), text="x", dimension=d) for n, d in enumerate("bab")])
    assert checklist.dimensions == ["b", "a"]
    assert checklist.question("1").dimension == "a"
    with pytest.raises(KeyError, match="no question '9'"):
        checklist.question("9")


ONE = "questions:\n- id: a\n  text: x\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE + "- id: a\n  text: y\n", "the id 'a' is used again by question 2"),
        (ONE + "- id: b\n  txt: y\n", "entry 2 of 'questions': the field 'txt' is not known"),
        (ONE + "- [a]\n", "entry 2 of 'questions': a mapping from field to value is needed, not ['a']."),
        (ONE + "- id: b\n", "entry 2 of 'questions': the field 'text' is missing"),
        (ONE + "  weight: -1\n", "field 'weight'"),
        (ONE + "  weight: .nan\n", "field 'weight'"),
        (ONE + "  weight: heavy\n", "field 'weight'"),
        (ONE + "  weight: 0\n", "every weight is 0"),
        (ONE + "- id: b\n  text: y\n  good: maybe\n", "entry 2 of 'questions': field 'good': it is yes or no"),
        (ONE + "  good:\n", "entry 1 of 'questions': field 'good': it is yes or no"),
        (ONE + "  good: [no]\n", "entry 1 of 'questions': field 'good': it is yes or no"),
        (ONE + "- id: b\n  text: y\n  sees: inputs\n", "entry 2 of 'questions': field 'sees'"),
        (ONE + "  sees:\n", "entry 1 of 'questions': field 'sees'"),
        (ONE + "  text: twice\n", "line 4: not valid YAML ('text' stands here twice)"),
        (ONE + "questions: []\n", "line 4: not valid YAML ('questions' stands here twice)"),
        (ONE + "  violation: 'open\n", "not valid YAML"),
        (ONE + "  violation: a: b\n", "line 4: not valid YAML"),
        (ONE + "  violation: a: b\n", "Put a text with a colon and a blank in it in quotes."),
        (
            "questions:\n- {id: a, text: Is it so?}\n",
            "Put a text with a question mark in quotes where it stands between",
        ),
        (
            ONE + "  violation: !!set {a, b}\n",
            "line 4: not valid YAML (a value: '!!set' makes no text, list or mapping",
        ),
        (ONE + "tasks: x\n", "the field 'tasks' is not known"),
        ("questions: []\n", "field 'questions'"),
        ("questions: a\n", "field 'questions': input should be a list."),
        ("task: x\n", "the field 'questions' is missing"),
        ("", "has the keys 'task' and 'questions'"),
        ("- 3: a\n", "entry 1 of 'questions'"),
        ("just words", "has the keys 'task' and 'questions'"),
        ("a: \x00", "not valid YAML"),
        ('{"questions": [{"id": "a", "text": "x", "text": "y"}]}', "c.yaml: 'text' stands twice in one object"),
        ('{"questions": [{"id": "a", "text": "x", "weight": true}]}', "field 'weight': a number is needed, not true"),
        (
            '{"questions": [{"id": "a", "text": "x"}], "section_weights": {"s": {"a": true}}}',
            "a number is needed, not true",
        ),
        ("[" * 1200, "c.yaml"),
        ("? [a, b]\n: c\n", "c.yaml"),
    ],
)
def test_a_bad_checklist_is_refused_with_its_place(text: str, said: str) -> None:
    message = refusal(text)
    assert said in message
    assert message.startswith("c.yaml")


def test_a_checklist_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    for path, said in [("nowhere", "no such checklist"), ("latin", "UTF-8"), (".", "cannot be read")]:
        with pytest.raises(InputError, match=said):
            load_checklist(tmp_path / path)


@pytest.mark.parametrize("blank", [" ", "\n", "\t \u3000"])
def test_a_blank_question_is_refused_in_a_file_and_as_an_object(tmp_path: Path, blank: str) -> None:
    checklist = Checklist(questions=[Question(id="a", text="x"), Question(id="b", text=blank)])
    (tmp_path / "c.yaml").write_text(dump_checklist(checklist), encoding="utf-8")
    (tmp_path / "c.json").write_text(checklist.model_dump_json(), encoding="utf-8")
    for source in (checklist, tmp_path / "c.yaml", tmp_path / "c.json"):
        with pytest.raises(InputError, match=naming("entry 2 of 'questions'", "text", "blank", "b")):
            load_checklist(source)


@given(QUESTIONS, st.lists(TEXT | AWKWARD, max_size=3, unique=True), st.floats(1e-6, 1e6))
def test_the_weights_of_sections_are_written_and_read_back(
    questions: list[Question], sections: list[str], weight: float
) -> None:
    weights = {section: {question.id: weight for question in questions} for section in sections}
    checklist = Checklist(questions=questions, section_weights=weights)
    assert parse_checklist(dump_checklist(checklist), "c.yaml") == checklist


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("{s: {b: 1}}", "section_weights.s: there is no weight for the question 'a'"),
        ("{s: {a: 1, aa: 1}}", "section_weights.s: there is no question 'aa'. Did you mean 'a'?"),
        ("{s: {a: 0}}", "section_weights.s: every weight is 0"),
        ("{s: {a: -1}}", "section_weights"),
        ("{s: {a: .nan}}", "section_weights"),
        ("{s: 1}", "section_weights"),
    ],
)
def test_weights_of_sections_that_cannot_be_used_are_refused(weights: str, said: str) -> None:
    assert said in refusal(ONE + f"section_weights: {weights}\n")


def test_the_section_of_an_example_is_looked_for_from_the_narrowest_name() -> None:
    weights = {name: {"a": 1.0} for name in ("news/long", "long", "news", "None")}
    checklist = Checklist(questions=[Question(id="a", text="x")], section_weights=weights)
    for metadata, section in [
        ({"dataset": "news", "section": "long"}, "news/long"),
        ({"dataset": "web", "section": "long"}, "long"),
        ({"dataset": "news", "section": "short"}, "news"),
        ({"dataset": "web"}, None),
        ({}, None),
    ]:
        assert checklist.section_of(metadata) == section
    assert Checklist(questions=[Question(id="a", text="x", weight=2)]).weights() == {"a": 2}


def test_a_ready_checklist_is_found_by_its_name_and_a_file_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ready = load_checklist("global")
    assert len(ready.questions) == 8
    assert all(question.violation for question in ready.questions)
    (tmp_path / "global").write_text(ONE, encoding="utf-8")
    assert load_checklist("global").questions[0].id == "a"
    (tmp_path / "global").unlink()
    (tmp_path / "global").mkdir()
    assert load_checklist("global") == ready


def test_an_unknown_name_is_refused_with_the_ready_ones() -> None:
    with pytest.raises(InputError, match=naming("ready", "global", "Did you mean")):
        load_checklist("globall")


@pytest.mark.parametrize("name", READY)
def test_every_ready_checklist_is_there_and_has_questions_of_our_own(name: str) -> None:
    checklist = load_checklist(name)
    assert checklist.task
    assert len({question.text for question in checklist.questions}) == len(checklist.questions)


@pytest.mark.parametrize("given", [{"questions": []}, ["Is it good?"], 3])
def test_what_is_no_checklist_and_no_file_is_refused_by_name(given: Any) -> None:
    with pytest.raises(InputError, match=naming("Checklist", type(given).__name__)):
        load_checklist(given)


def test_of_a_file_of_another_kind_the_first_problems_are_told() -> None:
    with pytest.raises(InputError) as caught:
        parse_checklist(json.dumps({f"k{n}": n for n in range(40)}), "other.json")
    assert str(caught.value).count(";") == 6 and str(caught.value).endswith("; and 35 other problems.")


@pytest.mark.parametrize(
    "written",
    [
        "questions:\n  - Is it good?\n  - Is it good?\n  - id: short\n    text: Is it short?\n",
        "- Is it good?\n- Is it good?\n- {id: short, text: 'Is it short?'}\n",
    ],
)
def test_plain_questions_get_ids_made_from_their_words(written: str) -> None:
    checklist = parse_checklist(written, "plain.yaml")
    assert [each.id for each in checklist.questions] == ["is_it_good", "is_it_good_2", "short"]
    assert checklist.questions[0].text == "Is it good?"


def test_questions_by_their_ids() -> None:
    assert parse_checklist("questions:\n  a: Is it good?\n  b: Is it short?\n", "plain.yaml").questions[1].id == "b"


@pytest.mark.parametrize(
    "written", ["[]", "questions: []", "questions: ['']", "questions: [3.5, {a: b}]", "just a text"]
)
def test_what_is_no_list_of_questions_is_refused(written: str) -> None:
    with pytest.raises(InputError, match=r"plain\.yaml"):
        asking(parse_checklist(written, "plain.yaml"), "plain.yaml")


CHECKS = """
task: Summarise.
checks:
  - id: form
    kind: schema
    value:
      type: object
      properties: {title: {type: string, maxLength: 8}}
  - id: no_link
    kind: matches
    value: https?://
    good: no
    weight: 2
"""


def test_checks_are_criteria_after_the_questions_and_are_written_back_as_they_were() -> None:
    checklist = parse_checklist(CHECKS + 'questions: ["Is it good?"]\n', "c.yaml")
    assert [each.id for each in checklist.questions] == ["is_it_good", "form", "no_link"]
    assert [each.id for each in checklist.asked] == ["is_it_good"]
    assert checklist.weights() == {"is_it_good": 1, "form": 1, "no_link": 2} and list(checklist.faults) == ["no_link"]
    assert json.loads(checklist.checks[0].value)["properties"]["title"]["maxLength"] == 8  # a number, not a text
    again = parse_checklist(dump_checklist(checklist), "again")
    assert again == checklist and Checklist.model_validate(checklist.model_dump(mode="json")) == checklist
    assert checklist.asked_alone.questions == checklist.asked
    assert parse_checklist(CHECKS, "c.yaml").asked_alone is None


def test_a_checklist_with_other_criteria_keeps_each_of_its_kind() -> None:
    checklist = parse_checklist(CHECKS + 'questions: ["Is it good?", "Is it short?"]\n', "c.yaml")
    kept = checklist.model_copy(update={"questions": checklist.questions[1:3]})
    assert [each.id for each in kept.asked] == ["is_it_short"] and [each.id for each in kept.checks] == ["form"]
    assert Checklist(questions=checklist.questions).checks == checklist.checks


def test_a_schema_may_be_a_file_beside_the_checklist(tmp_path) -> None:
    (tmp_path / "s.json").write_text('{"type": "array"}')
    (tmp_path / "c.yaml").write_text("checks: [{id: form, kind: schema, value: s.json}]")
    assert json.loads(load_checklist(tmp_path / "c.yaml").checks[0].value) == {"type": "array"}


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("{id: a, kind: json, value: x}", "a check of the kind json takes none"),
        ("{id: a, kind: begins}", "needs the text that an output begins with"),
        ("{id: a, kind: length, value: short}", "a number of words"),
        ("{id: a, kind: length, value: 9 to 3 words}", "the smaller number comes first"),
        ("{id: a, kind: matches, value: '(('}", "no regular expression"),
        ("{id: a, kind: schema, value: {type: strin}}", "no JSON schema: at $.type"),
        ("{id: a, kind: schema, value: '{'}", "not valid JSON"),
        ("{id: a, kind: schema, value: {$ref: '#/x'}}", "leads nowhere"),
        ("{id: a, kind: schema, value: {$ref: 'https://example.org/s.json'}}", "leads nowhere"),
        ("{id: a, kind: schema, value: none.json}", "there is no schema file none.json"),
        ("{id: a, kind: jsn}", "field 'kind'"),
        ("{id: a, kind: json, rubric: x}", "field 'rubric': nobody is asked"),
        ("{id: is_it_good, kind: json}", "the id 'is_it_good' is used again by check 1"),
    ],
)
def test_a_check_that_cannot_be_computed_is_refused_with_its_place(check: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_checklist(f'questions: ["Is it good?"]\nchecks:\n  - {check}\n', "c.yaml")
    assert str(caught.value).startswith("c.yaml") and said in str(caught.value)
