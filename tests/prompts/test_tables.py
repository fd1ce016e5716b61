"""Files as they are exported: separators, byte order marks, empty cells, several raters, Excel, Parquet, data frames."""

from __future__ import annotations

import csv
import json
import logging
import zipfile
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from askance.prompts import errors
from askance.prompts.csv_tables import CSV_SUFFIXES
from askance.prompts.errors import InputError, MissingExtraError
from askance.prompts.examples import load_examples
from askance.prompts.field_map import parse_field_map
from askance.prompts.tables import as_written, plain
from tests.said import naming, says

GOOD = {"id": "a", "input": "x", "output": "y"}


def refusal(source: Any, **named: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_examples(source, **named)
    return str(caught.value)


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


# --- separators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_found_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mark: str, name: str
) -> None:
    text = f'id{mark}input{mark}output{mark}human.tone\na{mark}"x, y{mark} z"{mark}fine, thanks{mark}3\n'
    [example] = load_examples(written(tmp_path, "data.csv", text))
    assert (example.input, example.output, example.human) == (f"x, y{mark} z", "fine, thanks", {"tone": (3.0,)})
    assert caplog.messages == [f"{tmp_path / 'data.csv'}: read with {name} between the cells."]


def test_commas_and_the_tabs_of_a_tsv_file_are_no_news(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_examples(written(tmp_path, "a.csv", "id,input,output\na,x,y\n"))[0].output == "y"
    assert load_examples(written(tmp_path, "a.tsv", "id\tinput\toutput\na\tx\ty, z\n"))[0].output == "y, z"
    assert caplog.messages == []


def test_separators_within_a_quoted_name_do_not_count(tmp_path: Path) -> None:
    text = 'id,input,output,"How good (1;2;3;4;5)?"\na,x,y,4\n'
    [example] = load_examples(written(tmp_path, "a.csv", text), fields={"human.overall": "How good (1;2;3;4;5)?"})
    assert example.human == {"overall": (4.0,)}


def test_the_line_in_which_excel_names_the_separator_is_followed(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "sep=|\r\nid|input|output\r\na|x|y\r\na|x|z\r\n")
    assert "line 4: the id 'a' was used before" in refusal(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_says_the_encoding(tmp_path: Path, encoding: str) -> None:
    assert load_examples(written(tmp_path, "a.csv", "id,input,output\na,Grüße,y\n", encoding))[0].input == "Grüße"


def test_another_encoding_is_refused_with_what_to_do(tmp_path: Path) -> None:
    latin = refusal(written(tmp_path, "a.csv", "id,input,output\na,Grüße,y\n", "latin-1"))
    assert says(latin, "a.csv", "line 2", "UTF-8", "CSV UTF-8")
    assert "Excel's old format" in refusal(written(tmp_path, "a.xls", "x"))


def test_a_file_with_the_name_of_another_kind_says_which_it_is(tmp_path: Path) -> None:
    lines = written(tmp_path, "a.csv", '{"id": "a", "input": "x", "output": "y"}\n')
    assert says(refusal(lines), "a.csv", "JSON Lines", ".jsonl")
    sheet = book(tmp_path, ["id", "input", "output"], ["a", "x", "y"]).rename(tmp_path / "b.csv")
    assert says(said := refusal(sheet), "Excel", ".xlsx") and "UTF-8" not in said


def test_empty_rows_and_empty_columns_of_a_spreadsheet_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "id,input,output,,\na,x,y,,\n,,,,\n\nb,x,z,,\n")
    assert [each.output for each in load_examples(path)] == ["y", "z"]
    [example] = load_examples(written(tmp_path, "b.csv", ",id,input,output\n0,a,x,y\n"))  # a data frame's index
    assert example.metadata == {"column 1": "0"}


def test_a_json_list_is_read_like_lines(tmp_path: Path) -> None:
    rows = [GOOD, GOOD | {"id": "b"}]
    assert load_examples(written(tmp_path, "a.json", json.dumps(rows, indent=1))) == load_examples(rows)
    assert says(refusal(written(tmp_path, "b.json", json.dumps([GOOD, 3]))), "b.json", "row 2", "int")
    assert "not valid JSON" in refusal(written(tmp_path, "c.json", "[{]"))


# --- the same table in every format -------------------------------------------------------------------------------

FORMATS = [".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".parquet"]


def stored(folder: Path, suffix: str, header: list[str], *rows: list[Any]) -> Path:
    """A table as a file of a format; None is an empty cell."""
    path = folder / f"data{suffix}"
    records = [dict(zip(header, row, strict=False)) for row in rows]
    if suffix == ".json":
        path.write_text(json.dumps(records))
    elif suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
    elif suffix == ".xlsx":
        book(folder, header, *rows).rename(path)
    elif suffix == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = [[row[place] for row in rows] for place in range(len(header))]
        parquet.write_table(arrow.table(columns, names=header), path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter=CSV_SUFFIXES[suffix]).writerows([header, *rows])
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_of_any_format_names_the_file_the_place_and_the_field(tmp_path: Path, suffix: str) -> None:
    """The place is that which a person sees: the line of a text with its header, the row of a sheet or of records."""
    first = {".json": 1, ".jsonl": 1, ".parquet": 1}.get(suffix, 2)
    unit = "row" if suffix in (".json", ".xlsx", ".parquet") else "line"
    header = ["id", "input", "output", "human.tone"]
    for number in range(3):
        rows: list[list[Any]] = [[f"e{n}", "x", "y", "superb" if n == number else "pass"] for n in range(3)]
        path = stored(tmp_path, suffix, header, *rows)
        assert says(refusal(path), path.name, f"{unit} {number + first}", "human", "tone", "superb")
    path = stored(tmp_path, suffix, header, ["a", "x", "y", "pass"], ["a", "x", "y", "pass"])
    assert says(refusal(path), f"{unit} {first + 1}", "id", "a", f"{unit} {first}")
    path = stored(tmp_path, suffix, header, ["a", None, "y", "pass"])
    assert says(refusal(path), path.name, f"{unit} {first}", "input")


@pytest.mark.parametrize("suffix", [each for each in FORMATS if each not in (".json", ".jsonl")])
def test_two_columns_of_one_name_are_refused_in_every_format_that_can_have_them(tmp_path: Path, suffix: str) -> None:
    path = stored(tmp_path, suffix, ["id", "input", "output", "note", "note"], ["a", "x", "y", "n", "m"])
    assert says(refusal(path), path.name, "two columns", "note")
    if suffix != ".parquet":
        path = stored(tmp_path, suffix, ["id", "input", "output", "note", " note "], ["a", "x", "y", "n", "m"])
        assert says(refusal(path), "two columns", "note"), "blanks around a name are no part of it"
        path = stored(tmp_path, suffix, ["id", "input", "output", "", ""], ["a", "x", "y", "n", "m"])
        assert load_examples(path)[0].metadata == {"column 4": "n", "column 5": "m"}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("value", "shown"), [(True, "TRUE"), (False, "FALSE"), (42.0, "42"), (0.5, "0.5"), (-7, "-7"), ("true", "true")]
)
def test_a_text_column_holds_what_the_cell_shows(tmp_path: Path, suffix: str, value: Any, shown: str) -> None:
    if suffix in (".json", ".jsonl"):
        return  # a text is one there, and nothing else
    given = value if suffix in (".xlsx", ".parquet") else shown
    path = stored(tmp_path, suffix, ["id", "input", "output"], ["a", "x", given])
    assert load_examples(path)[0].output == shown


@pytest.mark.parametrize("value", [True, 42.0, Decimal("0.25"), date(2026, 1, 2)])
def test_a_data_frame_and_a_file_show_the_same_text(tmp_path: Path, value: Any) -> None:
    frame = pytest.importorskip("pandas").DataFrame([GOOD | {"output": value}])
    shown = {True: "TRUE", 42.0: "42", Decimal("0.25"): "0.25"}.get(value, "2026-01-02")
    if not isinstance(value, Decimal):
        assert load_examples(frame)[0].output == shown
    assert as_written(plain(value)) == shown


@pytest.mark.parametrize("cell", ["TRUE", "true", "True", "FALSE", "false"])
def test_a_truth_value_is_a_label_however_it_is_written(tmp_path: Path, cell: str) -> None:
    path = stored(tmp_path, ".csv", ["id", "input", "output", "human.ok"], ["a", "x", "y", cell])
    assert load_examples(path)[0].human == {"ok": (cell.lower() == "true",)}


@pytest.mark.parametrize("suffix", FORMATS)
def test_json_stays_text_in_a_text_column_and_is_read_in_others(tmp_path: Path, suffix: str) -> None:
    held = '{"a": [1, 2]}'
    path = stored(tmp_path, suffix, ["id", "input", "output", "more"], ["a", held, "[1]", held])
    [found] = load_examples(path)
    assert (found.input, found.output) == (held, "[1]")
    parsed = suffix in (".csv", ".tsv", ".xlsx")
    assert found.metadata["more"] == (json.loads(held) if parsed else held)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("cells", [3, 5, 6])
def test_a_row_has_no_more_cells_than_the_header_and_its_line_is_counted_from_the_top(
    tmp_path: Path, named: bool, cells: int
) -> None:
    """``sep=;`` is a line of the file as any other."""
    text = "sep=;\n" * named + "id;input;output;note\na;x;y;n\n" + ";".join("bxyzuv"[:cells]) + "\n"
    path = written(tmp_path, "a.csv", text)
    if cells > 4:
        assert says(refusal(path), "a.csv", f"line {3 + named}")
    else:
        assert [each.metadata for each in load_examples(path)] == [{"note": "n"}, {}]


@pytest.mark.parametrize(
    ("suffix", "header", "separator"),
    [
        (".csv", "id,input,output,n;m", ","),
        (".csv", "id;input;output;n,m", ";"),
        (".csv", "id,input,output,k;l;m;n", ","),
        (".tsv", "id\tinput\toutput\tn", "\t"),
        (".tsv", "id,input,output,n", ","),
        (".tsv", "id\tinput\toutput\tk,l,m,n", "\t"),
        (".csv", 'id;input;output;"a,b,c,d,e"', ";"),
    ],
)
def test_the_separator_is_the_one_that_the_header_has_most_of_and_at_a_tie_that_of_the_name(
    tmp_path: Path, suffix: str, header: str, separator: str
) -> None:
    cells = separator.join("axyz")
    [found] = load_examples(written(tmp_path, f"a{suffix}", f"{header}\n{cells}\n"))
    assert (found.id, found.input) == ("a", "x")


def test_numbers_that_are_none_are_nothing_at_any_depth() -> None:
    value = {"a": [float("nan"), Decimal("NaN"), Decimal("1.5")], 3: (timedelta(seconds=61), time(1, 2))}
    assert plain(value) == {"a": [None, None, 1.5], "3": ["0:01:01", "01:02:00"]}


# --- empty outputs ------------------------------------------------------------------------------------------------


def test_rows_without_an_output_are_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "id,input,Agent reply\na,x,y\nb,x,\nc,x,  \nd,x,z\n"
    found = load_examples(written(tmp_path, "a.csv", text), fields={"output": "Agent reply"})
    assert [each.id for each in found] == ["a", "d"]
    said = "2 of 4 rows have no output and are left out (line 3, line 4)."
    assert caplog.messages == [f"{tmp_path / 'a.csv'}: {said}"]
    rows: list[dict[str, Any]] = [GOOD, {"id": "b", "input": "x", "output": None}]
    assert len(load_examples(rows)) == 1
    assert len(load_examples(rows, need_output=False)) == 2


def test_a_blank_cell_is_empty_in_a_data_frame_and_in_parquet_too(tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame([GOOD, GOOD | {"id": "b", "output": " "}, GOOD | {"id": "c", "output": ""}])
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, polars.from_pandas(frame), tmp_path / "a.parquet"):
        assert [each.id for each in load_examples(source)] == [GOOD["id"]]
    assert [each.output for each in load_examples([GOOD | {"output": ""}])] == [""], "in JSON it is what was written"


def test_a_limit_counts_the_rows_that_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "id,input,output\na,x,\nb,x,y\nc,x,z\n")
    assert [each.id for each in load_examples(path, limit=2)] == ["b", "c"]


def test_a_column_that_is_not_there_is_still_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "id,input,Agent reply\na,x,y\n")
    said = "there is no column 'Agent repl' (field map: output=Agent repl). Did you mean 'Agent reply'?"
    assert said in refusal(path, fields={"output": "Agent repl"})
    assert says(refusal(written(tmp_path, "b.csv", "id,input,output\na,,y\n")), "b.csv", "line 2", "nothing", "input")


# --- several raters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pairs",
    [
        ["human.overall=anna,ben,cem"],
        ["human.overall=anna", "human.overall=ben", "human.overall=cem"],
        ["human.overall=anna,ben", "human.overall=cem"],
    ],
)
def test_several_raters_in_several_columns_add_up(tmp_path: Path, pairs: list[str]) -> None:
    text = "id,input,output,anna,ben,cem\na,x,y,Pass,fail,TRUE\nb,x,z,,No,\n"
    one, two = load_examples(written(tmp_path, "a.csv", text), fields=parse_field_map(pairs))
    assert (one.human, two.human) == ({"overall": (True, False, True)}, {"overall": (None, False, None)})
    assert one.metadata == {}


def test_a_configuration_may_list_the_columns_and_a_column_may_have_a_comma_in_its_name() -> None:
    row = GOOD | {"anna": 1, "ben": 2, "tone, overall": 3}
    [example] = load_examples([row], fields={"human.a": ["anna", "ben"], "human.b": "tone, overall"})
    assert example.human == {"a": (1.0, 2.0, None), "b": (None, None, 3.0)}
    assert example.raters == ("anna", "ben", "")


def test_comments_of_several_columns_are_all_kept() -> None:
    row = GOOD | {"anna": "Rude.", "ben": "Too long."}
    [example] = load_examples([row], fields={"comment.tone": "anna,ben"})
    assert [(each.about, each.text) for each in example.comment] == [("tone", "Rude."), ("tone", "Too long.")]


def test_a_field_with_one_column_cannot_be_given_two() -> None:
    with pytest.raises(InputError, match="--field output is given twice \\('a' and 'b'\\)"):
        parse_field_map(["output=a", "output=b"])
    assert says(refusal([GOOD], fields={"output": ["a", "b"]}), "output", "one column", 2)
    bne = refusal([GOOD | {"anna": 1, "ben": 2}], fields={"human.overall": "anna,bne"})
    assert says(bne, "bne", "ben") and not says(bne, "anna")


def test_columns_with_our_names_and_a_dot_need_no_map(tmp_path: Path) -> None:
    text = "id,input,output,human.tone,comment.tone,comment,metadata.shop\na,x,y,Fail,Rude.,Hm.,Bonn\n"
    [example] = load_examples(written(tmp_path, "a.csv", text))
    assert example.human == {"tone": (False,)}
    assert {(each.about, each.text) for each in example.comment} == {("tone", "Rude."), (None, "Hm.")}
    assert example.metadata == {"shop": "Bonn"}


def test_a_decimal_comma_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "id;input;output;human.tone\na;x;y;4,5\n")
    assert says(refusal(path), "a.csv", "line 2", "4,5", "a point")


# --- Excel and Parquet --------------------------------------------------------------------------------------------


def book(folder: Path, *rows: list[Any], others: tuple[str, ...] = ()) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.active.title = "Labels"
    for row in rows:
        made.active.append(row)
    for name in others:
        made.create_sheet(name).append(["id", "input", "output"])
        made[name].append([name, "x", "y"])
    made.save(folder / "book.xlsx")
    return folder / "book.xlsx"


def test_a_sheet_is_read_with_its_types(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = book(
        tmp_path,
        ["id", "input", "Agent reply", "verdict", "comment", "when"],
        [1, "x", 42, "Pass", None, date(2026, 1, 2)],
        [],
        [2, "x", "y", False, "Rude.", None],
        [3, "x", None, True, None, None],
    )
    fields = {"output": "Agent reply", "human.overall": "verdict"}
    one, two = load_examples(path, fields=fields)
    assert (one.id, one.output, one.human, one.metadata) == (
        "1",
        "42",
        {"overall": (True,)},
        {"when": "2026-01-02T00:00:00"},
    )
    assert (two.human, two.comment[0].text) == ({"overall": (False,)}, "Rude.")
    (message,) = caplog.messages
    assert says(message, path.name, "1 of 3", "row 5")


def test_a_sheet_is_chosen_by_its_name_and_the_first_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = book(tmp_path, ["id", "input", "output"], ["a", "x", "y"], others=("More",))
    assert load_examples(f"{path}#More")[0].id == "More"
    assert caplog.messages == []
    assert load_examples(path)[0].id == "a"
    assert says(caplog.messages[0], "Labels", "first of 2")
    assert says(refusal(f"{path}#Mor"), "Mor", "Labels, More")


def test_a_number_sign_in_a_files_own_name_names_no_sheet(tmp_path: Path) -> None:
    plain = book(tmp_path, ["id", "input", "output"], ["a", "x", "y"], others=("No. #2",))
    path = plain.rename(tmp_path / "Team #1.v2.xlsx")
    assert load_examples(path)[0].id == "a"
    assert load_examples(f"{path}#No. #2")[0].id == "No. #2"
    assert says(refusal(f"{path}#Mor"), path, "Mor")
    (folder := tmp_path / "v1.2#x").mkdir()
    assert load_examples(written(folder, "b.csv", "id,input,output\nc,x,y\n"))[0].id == "c"


def test_an_error_of_excel_is_no_text(tmp_path: Path) -> None:
    path = book(tmp_path, ["id", "input", "output"], ["a", "x", "#NAME?"])
    assert says(refusal(path), "row 2", "output", "#NAME?")


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{**GOOD, "id": 1, "human": {"tone": [1, 2]}}, {"id": 2, "input": "x", "output": None, "human": None}]
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    [example] = load_examples(tmp_path / "a.parquet")
    assert (example.id, example.human) == ("1", {"tone": (1.0, 2.0)})


@pytest.mark.parametrize("held", [b"", b"PAR1", b"PAR1" + bytes(50) + b"PAR1"])
def test_what_is_no_parquet_file_is_refused_with_the_reason(tmp_path: Path, held: bytes) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(held)
    said = refusal(tmp_path / "a.parquet")
    assert says(said, "a.parquet", "Parquet file")
    assert "(None)" not in said


@pytest.mark.parametrize(("name", "package"), [("a.xlsx", "openpyxl"), ("a.parquet", "pyarrow")])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str, package: str) -> None:
    pytest.importorskip(package)
    assert "not a" in refusal(written(tmp_path, name, "id,input,output\na,x,y\n"))
    assert says(refusal(tmp_path / f"no{name}"), f"no{name}", "no such file")


@pytest.mark.parametrize(("name", "package"), [("a.xlsx", "openpyxl"), ("a.parquet", "pyarrow")])
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    def absent(module: str) -> Any:
        raise ModuleNotFoundError(module, name=module.partition(".")[0])

    monkeypatch.setattr(errors, "import_module", absent)
    with pytest.raises(MissingExtraError, match=f"package {package}.*askance\\[files\\]"):
        load_examples(written(tmp_path, name, "x"))


# --- data frames --------------------------------------------------------------------------------------------------


def test_a_pandas_data_frame_is_taken_and_nan_means_not_there(caplog: pytest.LogCaptureFixture) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"key": [1, 2, 3], "input": ["x"] * 3, "output": ["y", None, "z"], "rating": [4, 5, float("nan")]}
    )
    one, two = load_examples(frame.set_index("key"), fields={"id": "key", "human.tone": "rating"})
    assert (one.id, one.human, two.id, two.human) == ("1", {"tone": (4.0,)}, "3", {})
    (message,) = caplog.messages
    assert says(message, "the data", "1 of 3", "row 2")


def test_rows_of_a_data_frame_are_read_as_the_frame_is() -> None:
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    frame = pandas.DataFrame(
        {
            "id": ["1", "2"],
            "input": ["x", "x"],
            "output": ["y", "z"],
            "context": ["c", None],
            "human.tone": [numpy.float32(4), float("nan")],
            "votes": pandas.array([3, None], dtype="Int64"),
            "when": pandas.to_datetime(["2024-01-02", None]),
        }
    )
    for rows in (frame, frame.to_dict("records"), [dict(row) for _, row in frame.iterrows()]):
        one, two = load_examples(rows)
        assert (one.human, one.metadata) == ({"tone": (4.0,)}, {"votes": 3, "when": "2024-01-02T00:00:00"})
        assert (two.context, two.human, two.metadata) == (None, {}, {})
    [one] = load_examples(
        [GOOD | {"id": numpy.int64(7), "human": {"tone": numpy.array([1, 2]), "ok": numpy.bool_(True)}}]
    )
    assert (one.id, one.human) == ("7", {"tone": (1.0, 2.0), "ok": (True,)})


def test_a_data_frame_with_the_id_as_index_and_as_column_is_taken() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([GOOD, GOOD | {"id": "b"}])
    assert [each.id for each in load_examples(frame.set_index("id", drop=False))] == [GOOD["id"], "b"]


def test_columns_of_one_name_are_refused_where_one_would_have_been_lost(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table([["a"], ["x"], ["y"], ["z"]], names=["id", "input", "output", "output"])
    parquet.write_table(table, tmp_path / "a.parquet")
    frame = pytest.importorskip("pandas").DataFrame([["a", "x", "y", "z"]], columns=table.column_names)
    for source in (table, tmp_path / "a.parquet", frame):
        with pytest.raises(InputError, match=naming("two columns", "output")):
            load_examples(source)


def test_polars_frames_and_arrow_tables_are_taken() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [1, 2], "input": ["x", "x"], "output": ["y", "z"], "ok": [True, None]})
    for source in (frame, frame.lazy()):
        one, two = load_examples(source, fields={"human.overall": "ok"})
        assert (one.id, one.human, two.human) == ("1", {"overall": (True,)}, {})
    pytest.importorskip("pyarrow")
    assert [each.output for each in load_examples(frame.to_arrow())] == ["y", "z"]


def test_what_was_found_out_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    load_examples(written(tmp_path, "a.csv", "id;input;output\na;x;y\n"), remarks=False)
    assert caplog.messages == []


def test_a_workbook_that_unpacks_to_a_gigabyte_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl")
    monkeypatch.setattr("openpyxl.load_workbook", None)
    monkeypatch.setattr("askance.prompts.tables.LARGEST_BOOK", 2**20)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", b" " * (2**20 + 1))
    assert says(refusal(tmp_path / "bomb.xlsx"), "bomb.xlsx", "unpacks", "0.0 GiB")
