from __future__ import annotations

import csv
import errno
import io
import json
import os
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.prompts import examples
from askance.prompts.checklist import Checklist, Question
from askance.prompts.conversations import record
from askance.prompts.conversations.record import SpilledBytes
from askance.prompts.errors import InputError, did_you_mean
from askance.prompts.examples import (
    Example,
    ExampleTable,
    answered_questions,
    document_of,
    documents,
    human_dimensions,
    load_examples,
    named_document,
    without_answers,
)
from askance.prompts.field_map import parse_field_map
from tests.said import naming, says

GOOD = {"id": "a", "input": "A document.", "output": "A summary."}


def jsonl(folder: Path, *rows: object, name: str = "data.jsonl") -> Path:
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_examples(source, **options)
    return str(caught.value)


# --- files --------------------------------------------------------------------------------------------------------


def test_a_line_that_is_no_json_is_named_with_file_line_and_column(tmp_path: Path) -> None:
    path = jsonl(tmp_path, GOOD, "", '{"id": "b", "input": }')
    message = refusal(path)
    assert f"{path}, line 3" in message
    assert "column 22" in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "[1, 2]",
            "a JSON object is needed, not list. A list of objects is read from a file whose name ends in .json.",
        ),
        ("[", "Each line must be one JSON object. A list of objects is read from a file whose name ends in .json."),
        ('"text"', "a JSON object is needed, not str"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "too long"),
        ('{"id": "b", "input": "x"}', "the field 'output' is missing"),
        ('{"id": "b", "output": "x"}', "the field 'input' is missing"),
        ('{"id": ["b"], "input": "x", "output": "y"}', "field 'id'"),
        ('{"id": true, "input": "x", "output": "y"}', "field 'id'"),
        ('{"id": "b", "input": "x", "output": "y", "metadata": 1}', "field 'metadata'"),
        ('{"id": "b", "input": "x", "output": "half \\ud83d"}', "half a surrogate pair at character 6"),
        ('{"id": "b", "input": "x", "output": "y", "human": 3}', "dimension to number"),
        ('{"id": "b", "input": "x", "output": "y", "human": {"d": "3"}}', "'d' must be a number"),
        ('{"id": "b", "input": "x", "output": "y", "human": {"d": "superb"}}', "'superb' is no label that is known"),
        ('{"id": "b", "input": "x", "output": "y", "human": {"d": {"a": 1}}}', "'d' must be a number"),
        ('{"id": "b", "input": "x", "output": "y", "human": {"d": [1, Infinity]}}', "entry 2 of 'human.d'"),
        ('{"id": "a", "input": "x", "output": "y"}', "the id 'a' was used before, in"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str, said: str) -> None:
    message = refusal(jsonl(tmp_path, GOOD, line))
    assert said in message
    assert "line 2" in message


def test_a_missing_field_with_a_similar_name_nearby_gets_a_hint(tmp_path: Path) -> None:
    message = refusal(jsonl(tmp_path, {"id": "a", "input": "x", "Ouput": "y"}))
    assert says(message, "Did you mean", "Ouput", "field map")


def test_the_hint_does_not_depend_on_capitals() -> None:
    assert did_you_mean("id", ["ID", "text"]) == " Did you mean 'ID'?"
    assert did_you_mean("zebra", ["id"]) == ""


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    assert says(refusal(path), "empty.jsonl", "no examples")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nowhere.jsonl")
    assert "directory" in refusal(tmp_path)
    (tmp_path / "latin.jsonl").write_bytes('{"id": "é"}'.encode("latin-1"))
    assert "not UTF-8" in refusal(tmp_path / "latin.jsonl")


def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert load_examples(path)[0].id == "a"
    path.write_bytes(json.dumps(GOOD).encode("utf-16"))  # which begins with one
    assert load_examples(path)[0].id == "a"


def test_line_separators_inside_a_text_do_not_end_the_line(tmp_path: Path) -> None:
    text = "one\u2028two\x85three\x0bfour"
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(GOOD | {"output": text}, ensure_ascii=False) + "\r\n", encoding="utf-8", newline="")
    assert load_examples(path)[0].output == text


def test_lines_behind_the_limit_are_not_looked_at(tmp_path: Path) -> None:
    path = jsonl(tmp_path, GOOD, GOOD | {"id": "b"}, "not JSON")
    assert [example.id for example in load_examples(path, limit=2)] == ["a", "b"]


# --- CSV ----------------------------------------------------------------------------------------------------------


def table(folder: Path, *rows: list[str]) -> Path:
    path = folder / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_csv_texts_stay_texts_whatever_they_look_like(tmp_path: Path) -> None:
    text = '{"a": [1]}'
    path = table(tmp_path, ["id", "input", "output", "human"], ["7", "[1, 2]", text, '{"fluency": [4, 5]}'])
    example = load_examples(path)[0]
    assert (example.id, example.input, example.output) == ("7", "[1, 2]", text)
    assert example.human == {"fluency": (4.0, 5.0)}


def test_csv_texts_stay_texts_under_another_name_too(tmp_path: Path) -> None:
    path = table(tmp_path, ["id", "doc", "summary"], ["7", "[1, 2]", "{}"])
    example = load_examples(path, fields={"input": "doc", "output": "summary"})[0]
    assert (example.input, example.output) == ("[1, 2]", "{}")


def test_an_empty_csv_cell_is_a_field_that_is_not_there(tmp_path: Path) -> None:
    path = table(
        tmp_path, ["id", "input", "output", "context", "flow"], ["a", "x", "y", "", "3"], ["b", "x", "y", "c", ""]
    )
    first, second = load_examples(path, fields={"human.fluency": "flow"})
    assert first.context is None
    assert first.human == {"fluency": (3.0,)}
    assert second.human == {}


def test_csv_cells_may_be_longer_than_the_csv_module_likes_and_have_several_lines(tmp_path: Path) -> None:
    long = "word\n" * 50_000
    assert load_examples(table(tmp_path, ["id", "input", "output"], ["a", long, "y"]))[0].input == long


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,input,output\na,x,y,z\n", "line 2: more cells than the header"),
        ("id,input,output,output\na,x,y,z\n", "two columns are called 'output'"),
        ('id,input,output\na,x,"y\n', "line 2: not valid CSV"),
        ("id,input,output\na,x\n", "no row has an output"),
        ("id,input,output\n", "no examples"),
    ],
)
def test_a_bad_csv_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert said in refusal(path)


# --- rows ---------------------------------------------------------------------------------------------------------


class Dataset:
    """Iterates like a Hugging Face dataset: fields that a row does not have are None, at every depth."""

    def __iter__(self) -> Any:
        yield {"id": 1, "input": "x", "output": "y", "context": None, "human": {"a": 3, "b": None}, "split": None}
        yield {"id": 2, "input": "x", "output": "y", "context": "c", "human": None, "split": "train"}


def test_a_hugging_face_dataset_is_read_and_its_none_means_not_there() -> None:
    first, second = load_examples(Dataset())
    assert (first.id, first.human, second.human) == ("1", {"a": (3.0,)}, {})
    assert second.metadata == {"split": "train"}


def test_numbers_as_ids_become_text_and_still_have_to_be_unique() -> None:
    assert load_examples([GOOD | {"id": 7}])[0].id == "7"
    assert says(refusal([GOOD | {"id": 7}, GOOD | {"id": "7"}]), "row 1", "row 2", "id", 7)


@pytest.mark.parametrize("rows", [["abc"], {"train": []}, [None], [[1, 2]]])
def test_rows_that_are_no_mappings_are_refused(rows: Any) -> None:
    assert says(refusal(rows), "row 1", "mapping")


def test_one_row_in_place_of_a_list_of_rows_is_not_said_to_be_no_mapping() -> None:
    assert says(refusal(GOOD), "row 1", "id", "[row]")


def test_columns_that_are_not_ours_are_kept_as_metadata() -> None:
    example = load_examples([GOOD | {"source": "news", "metadata": {"page": 3}}])[0]
    assert example.metadata == {"source": "news", "page": 3}


def test_examples_are_taken_as_they_are() -> None:
    example = Example(**GOOD)
    assert load_examples([example]) == [example]


def test_an_output_is_needed_only_where_there_is_no_generator() -> None:
    row = {"id": "a", "input": "x"}
    assert load_examples([row], need_output=False)[0].output is None
    assert "row 1: the field 'output' is missing" in refusal([row])


@pytest.mark.parametrize("name", ["page", "document"])
def test_what_the_metadata_say_goes_before_a_column_of_the_same_name(tmp_path: Path, name: str) -> None:
    row = {name: "of the column", "metadata": {name: "of the metadata", "more": 1}, "other": 2}
    wanted = {name: "of the metadata", "more": 1, "other": 2}
    in_csv = table(tmp_path, [*GOOD, *row], [*GOOD.values(), "of the column", json.dumps(row["metadata"]), "2"])
    for source in ([GOOD | row], jsonl(tmp_path, GOOD | row), [Example(**GOOD, **row)]):
        assert load_examples(source)[0].metadata == wanted
    assert load_examples(in_csv)[0].metadata == wanted | {"other": "2"}
    assert load_examples([GOOD | row | {"metadata": None}])[0].metadata == {name: "of the column", "other": 2}
    again = load_examples(jsonl(tmp_path, load_examples([GOOD | row])[0].model_dump()))
    assert again[0].metadata == wanted, "what was written is read again"


# --- documents ----------------------------------------------------------------------------------------------------


def of_documents(*names: Any) -> list[Example]:
    return [Example(**GOOD | {"id": f"e{n}"}, metadata={"document": name}) for n, name in enumerate(names)]


def test_examples_that_name_no_document_are_each_their_own() -> None:
    nothing = of_documents("", None, "", None)
    nothing.append(Example(**GOOD | {"id": "e4"}))
    assert documents(nothing) is None
    assert [document_of(each) for each in nothing] == ["e0", "e1", "e2", "e3", "e4"]
    some = [*of_documents("", "d", "", "d", 0, 0)]
    assert documents(some) == ["e0", "d", "e2", "d", "0", "0"] == [document_of(each) for each in some]
    assert documents(ExampleTable(some)) == documents(some)
    names = [named_document(each.metadata) for each in [*some, nothing[-1]]]
    assert names == [None, "d", None, "d", "0", "0", None]


@pytest.mark.parametrize("shared", [True, False])
def test_documents_matter_only_where_two_examples_share_one(shared: bool) -> None:
    some = of_documents("a", "b", "c", "a" if shared else "d")
    assert documents(some) == (["a", "b", "c", "a"] if shared else None)
    own = [Example(**GOOD | {"id": "x"}), Example(**GOOD | {"id": "y"}, metadata={"document": "x"})]
    assert documents(own) == ["x", "x"], "one that is called like another example belongs to it"


@pytest.mark.parametrize("cell", ["", "  "])
def test_an_empty_cell_for_the_document_is_no_document(tmp_path: Path, cell: str) -> None:
    rows = [[f"e{n}", "x", "y", document] for n, document in enumerate([cell, cell, "d", "d"])]
    found = load_examples(table(tmp_path, ["id", "input", "output", "document"], *rows))
    assert documents(found) == ["e0", "e1", "d", "d"]


# --- ratings and answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratings", [[0.1] * 3, [1, 2, 4], [True, False, False], [5], [1e16, 1.0, 1.0]])
def test_a_mean_rating_is_the_mean_and_never_beyond_the_ratings(ratings: list[float]) -> None:
    score = Example(**GOOD, human={"a": ratings}).human_score("a")
    assert score == pytest.approx(float(np.mean(ratings))) and min(ratings) <= score <= max(ratings)


def test_a_name_is_a_question_only_where_it_is_no_dimension() -> None:
    questions = (
        Question(id="polite", text="Is it polite?", dimension="tone"),
        Question(id="tone", text="Is the tone right?", dimension="tone"),
        Question(id="overall", text="Is it good?", dimension="truth"),
        Question(id="unanswered", text="Is it?", dimension="truth"),
    )
    checklist = Checklist(questions=questions)
    rated = Example(**GOOD, human={"polite": True, "tone": 3, "overall": 4, "style": 2})
    assert human_dimensions([rated], checklist) == ["tone", "overall", "style"]
    assert human_dimensions([rated]) == ["polite", "tone", "overall", "style"]
    assert answered_questions([rated], checklist) == ["polite"]
    assert without_answers(rated, checklist).human == {"tone": (3.0,), "overall": (4.0,), "style": (2.0,)}
    assert human_dimensions(ExampleTable([rated]), checklist) == ["tone", "overall", "style"]


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_texts_are_nothing_beside_the_output(blank: str) -> None:
    empty = Example(**GOOD | {"input": blank}, context=blank, reference=blank)
    assert not empty.has_more_than_output
    for field in ("input", "context", "reference"):
        assert empty.model_copy(update={field: "x"}).has_more_than_output


def test_rows_without_an_output_are_counted_and_an_empty_column_is_not_there() -> None:
    rows = [GOOD | {"flow": None}, GOOD | {"id": "b", "output": None, "flow": None}, GOOD | {"id": "c"}]
    assert load_examples(rows).without_output == 1
    assert load_examples(rows, need_output=False).without_output == 0
    assert says(refusal(rows, fields={"human.a": "flow"}), "flow")


# --- human scores -------------------------------------------------------------------------------------------------


def test_several_raters_are_averaged_and_kept_apart() -> None:
    example = Example(**GOOD, human={"fluency": [4, 5], "relevance": 2})
    assert example.human == {"fluency": (4.0, 5.0), "relevance": (2.0,)}
    assert example.human_score("fluency") == 4.5
    assert example.human_score("coherence") is None


def test_dimensions_come_in_the_order_of_their_first_rating() -> None:
    examples = [Example(**GOOD, human={"b": 1}), Example(**GOOD, human={"a": 1, "b": 2})]
    assert human_dimensions(examples) == ["b", "a"]


# --- field maps ---------------------------------------------------------------------------------------------------


def test_a_field_map_renames_columns_and_builds_human_scores() -> None:
    row = {"key": 1, "text": "x", "summary": "y", "flow": "3.5"}
    fields = {"id": "key", "input": "text", "output": "summary", "human.fluency": "flow"}
    example = load_examples([row], fields=fields)[0]
    assert (example.id, example.input, example.output, example.human) == ("1", "x", "y", {"fluency": (3.5,)})
    assert example.metadata == {}


def test_an_empty_list_of_ratings_is_none_wherever_it_stands() -> None:
    for row, fields in (({"human": {"a": []}}, {}), ({"human.a": []}, {}), ({"given": []}, {"human.a": "given"})):
        assert load_examples([GOOD | row], fields=fields)[0].human == {}


def test_a_field_map_can_swap_two_columns() -> None:
    row = {"id": "a", "input": "the output", "output": "the input"}
    example = load_examples([row], fields={"input": "output", "output": "input"})[0]
    assert (example.input, example.output) == ("the input", "the output")


def test_one_column_may_serve_as_two_fields() -> None:
    example = load_examples([{"id": "a", "text": "x"}], fields={"input": "text", "output": "text"})[0]
    assert (example.input, example.output) == ("x", "x")


def test_loading_does_not_change_the_rows() -> None:
    row = GOOD | {"human": {"a": 1}, "flow": 2}
    before = json.dumps(row)
    assert load_examples([row], fields={"human.b": "flow"})[0].human == {"a": (1.0,), "b": (2.0,)}
    assert json.dumps(row) == before


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ouput": "summary"}, "'ouput' is not one of our fields. Did you mean 'output'?"),
        ({"output.x": "summary"}, "human.NAME"),
        ({"human.": "summary"}, "human.NAME"),
        ({"output": "sumary"}, "row 1: there is no column 'sumary'"),
        ({"id": "key"}, "row 1: there is no column 'key'"),
        ({"human.fluency": "flow"}, "no example has anything in a column 'flow'"),
    ],
)
def test_a_bad_field_map_is_refused(fields: dict[str, str], said: str) -> None:
    assert said in refusal([GOOD | {"summary": "s"}], fields=fields)


def test_a_field_map_is_read_from_pairs() -> None:
    assert parse_field_map(["output=summary", "human.a=b=c"]) == {"output": "summary", "human.a": "b=c"}
    with pytest.raises(InputError, match=naming("output", "our_name=column")):
        parse_field_map(["output"])


def test_texts_of_many_examples_are_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "IN_MEMORY", 200)
    many = [Example(id=str(n), input=f"né {n} " * n, output=f"out {n}", context="c" * n) for n in range(60)]
    table = ExampleTable(many)
    assert table == many == table[:]
    assert list(table.column("context")) == [each.context for each in many]
    assert [table[place] for place in (59, 0, 31)] == [many[place] for place in (59, 0, 31)]
    table.append(many[7].model_copy(update={"id": "more"}))
    assert (table[60].input, table[3]) == (many[7].input, many[3])


def test_examples_in_a_file_are_read_in_a_copy_and_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "IN_MEMORY", 200)
    table = ExampleTable(Example(id=str(n), input=f"in {n} " * n, output=f"out {n}") for n in range(60))
    assert pickle.loads(pickle.dumps(table)) == table == deepcopy(table)
    same = False
    child = os.fork()  # it has the same open file, with one place in it for both
    try:
        same = all([each.output for each in table] == [f"out {n}" for n in range(60)] for _ in range(200))
    finally:
        if child == 0:
            os._exit(not same)
    assert os.waitpid(child, 0)[1] == 0 and same


def test_texts_stay_in_memory_where_no_file_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Full(io.FileIO):
        """A file on a disk with room for 30 bytes."""

        def write(self, data: Any) -> int:
            if (room := 30 - self.tell()) <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(bytes(data)[:room])

    def none(**_: Any) -> io.FileIO:
        raise OSError(errno.EACCES, "Permission denied")

    for make in (lambda **_: Full(tmp_path / "full", "w+"), none):
        monkeypatch.setattr(record.tempfile, "TemporaryFile", make)
        held = SpilledBytes(12)
        places = [held.append(f"{number:04d}".encode()) for number in range(20)]
        assert [held.read(place, 4) for place in places] == [f"{number:04d}".encode() for number in range(20)]


def test_metadata_of_numpy_stay_what_they_say() -> None:
    given = {
        "n": np.int64(3),
        "share": np.float64(0.5),
        "word": np.str_("w"),
        "both": np.array([1, 2]),
        "no": float("nan"),
    }
    made = Example(**GOOD, metadata=given)
    assert ExampleTable([made])[0].metadata == {"n": 3, "share": 0.5, "word": "w", "both": [1, 2], "no": None}
    assert load_examples([GOOD | given])[0].metadata == {"n": 3, "share": 0.5, "word": "w", "both": [1, 2]}


def test_null_and_an_empty_text_name_no_document() -> None:
    names: list[Any] = [None, None, "", "", 0, 0]
    rows = [Example(id=f"e{place}", input="in", metadata={"document": name}) for place, name in enumerate(names)]
    assert documents(rows) == ["e0", "e1", "e2", "e3", "0", "0"]
    assert documents(rows[:4]) is None


def test_a_table_of_examples_is_read_as_the_list_of_them() -> None:
    many = [
        Example(id="é", input="in", output="out \N{SNOWMAN}", metadata={"document": 1, "tags": ["a", None]}),
        Example(
            id="b", input="", human={"fluency": (True, 0.5), "overall": (3.0,)}, system="s", context="c", reference="r"
        ),
        Example(id="c", input="in", output="out", comment=("too long",)),
        Example(id="d", input="in", metadata={"when": Path("no JSON")}),
    ]
    table = ExampleTable(many)
    assert list(table) == many == table
    assert [each.model_dump() for each in table] == [each.model_dump() for each in many]
    assert [each.model_fields_set for each in table] == [each.model_fields_set for each in many]
    assert [type(rating) for rating in table[1].human["fluency"]] == [bool, float]
    assert (table[-1], table[1:3]) == (many[-1], many[1:3])
    assert table.only([3, 0]) == [many[3], many[0]]
    for field in Example.model_fields:
        assert list(table.column(field)) == [getattr(each, field) for each in many]
