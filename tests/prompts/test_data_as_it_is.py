"""Files as people have them: without ids, with texts that are no strings, and with values that are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from askance.prompts.errors import InputError
from askance.prompts.examples import load_examples
from askance.prompts.human_feedback import parse_label_scale, parse_labels
from askance.prompts.messages import as_text
from askance.prompts.raters import rater_columns
from tests.said import says

PAIR = {"input": "a", "output": "b"}


def rated(*given: Any) -> list[dict[str, Any]]:
    return [{"id": str(place), **PAIR, "human": {"q": value}} for place, value in enumerate(given)]


def refusal(rows: Any, **named: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_examples(rows, **named)
    return str(caught.value)


# --- ids ----------------------------------------------------------------------------------------------------------


def test_rows_without_ids_are_called_after_their_texts_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    rows: list[dict[str, Any]] = [PAIR, {"input": "a", "output": "c"}, PAIR | {"id": None}, PAIR | {"id": "NA"}]
    first, other, second, third = (each.id for each in load_examples(rows))
    assert first != other and [second, third] == [f"{first}-2", f"{first}-3"]
    assert [each.id for each in load_examples(reversed(rows[:2]))] == [other, first]
    assert caplog.text.count("had none") == 2  # once a source


def test_labels_and_metadata_say_nothing_about_an_id() -> None:
    assert load_examples([PAIR])[0].id == load_examples([PAIR | {"human": {"q": 1}, "shop": "x"}])[0].id


def test_numbers_and_uuids_are_ids() -> None:
    name = UUID("12345678123456781234567812345678")
    rows = [{"id": each} | PAIR for each in (1, 2.0, 2.5, name)]
    assert [each.id for each in load_examples(rows)] == ["1", "2", "2.5", str(name)]


def test_an_id_that_repeats_by_design_may_be_a_document() -> None:
    rows = [PAIR | {"id": "d"}, {"id": "d", "input": "a", "output": "c"}]
    assert says(refusal(rows), "row 2", "'d'", "--field metadata.document=id")
    examples = load_examples(rows, fields={"metadata.document": "id"})
    assert [each.metadata["document"] for each in examples] == ["d", "d"] and examples[0].id != examples[1].id


def test_a_column_of_ids_that_was_named_and_is_not_there_is_an_error() -> None:
    assert says(refusal([PAIR], fields={"id": "key"}), "row 1", "no column 'key'")


# --- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4, "4"),
        (2.5, "2.5"),
        (True, "true"),
        (["One.", "Two."], "One.\n\nTwo."),
        ({"answer": "The Elbe."}, "The Elbe."),
        ({"city": "Bonn"}, '{\n  "city": "Bonn"\n}'),
        ({"a": 1, "b": ["x"]}, '{\n  "a": 1,\n  "b": [\n    "x"\n  ]\n}'),
        ([{"role": "assistant", "content": "The Elbe."}], "The Elbe."),
        (
            [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "A river?"}]},
            ],
            "System: Be brief.\n\nUser: A river?",
        ),
        (
            [
                {"role": "user", "content": "Rain?"},
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}],
                },
                {"role": "tool", "content": "Dry."},
            ],
            'User: Rain?\n\nAssistant: Calls weather({"city": "Bonn"})\n\nTool: Dry.',
        ),
        (
            [
                {"role": "assistant", "content": [{"type": "tool_use", "name": "weather", "input": {"city": "Bonn"}}]},
                {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "Dry."}]}]},
            ],
            'Assistant: Calls weather({"city": "Bonn"})\n\nUser: Result: Dry.',
        ),
    ],
)
def test_a_value_that_is_no_text_is_read_as_one(value: Any, text: str) -> None:
    for field in ("input", "output", "reference"):
        assert getattr(load_examples([{"id": "1"} | PAIR | {field: value}])[0], field) == text


def test_a_context_that_is_a_list_is_numbered_passages() -> None:
    passages = ["Open from nine.", None, {"text": "Closed on Monday."}]
    assert load_examples([PAIR | {"context": passages}])[0].context == "[1] Open from nine.\n\n[2] Closed on Monday."
    assert load_examples([PAIR | {"context": ["Alone."]}])[0].context == "Alone."
    for nothing in (None, [], {}, float("nan"), [None]):
        assert load_examples([PAIR | {"context": nothing}])[0].context is None


def test_texts_are_read_alike_in_frames_and_parquet(tmp_path: Path) -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    rows = [{"id": "1", "input": [{"role": "user", "content": "Hi."}], "output": 4, "context": ["x", "y"]}]
    frame = pandas.DataFrame(rows)
    frame.to_parquet(tmp_path / "a.parquet")
    assert arrow is not None
    expected = load_examples(rows)
    assert expected[0].context == "[1] x\n\n[2] y"
    assert load_examples(frame) == expected and load_examples(tmp_path / "a.parquet") == expected


def test_a_message_without_content_is_refused_with_its_number() -> None:
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant"}]
    assert says(refusal([PAIR | {"input": messages}]), "row 1", "input", "message 2", "content")


def test_words_that_say_missing_are_texts_where_a_text_is_wanted() -> None:
    example = load_examples([{"id": "1", "input": "NA", "output": "null", "context": "-", "comment": "None"}])[0]
    assert (example.input, example.output, example.context, example.comment[0].text) == ("NA", "null", "-", "None")
    assert as_text("") == ""


# --- what is missing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["NA", "N/A", "NaN", "null", "None", "-", "na", "", " ", [], float("nan"), None])
def test_what_stands_for_nothing_is_no_label(nothing: Any) -> None:
    assert [each.human for each in load_examples(rated(4, nothing))] == [{"q": (4.0,)}, {}]
    assert load_examples(rated([4, nothing, 5]))[0].human == {"q": (4.0, None, 5.0)}


def test_what_is_missing_is_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    load_examples(rated("NA", "NA", [1, None], float("nan"), 3))
    assert says(caplog.text, "NA (2)", "null (1)")


def test_a_third_side_of_labels_is_none() -> None:
    labels = parse_labels("none=unrated,none=-99")
    assert [each.human for each in load_examples(rated("Unrated", -99, 2), labels=labels)] == [{}, {}, {"q": (2.0,)}]


def test_json_of_python_with_nan_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": "1", **PAIR, "context": float("nan"), "human": {"q": float("nan")}}))
    example = load_examples(path)[0]
    assert example.context is None and example.human == {}


# --- labels ---------------------------------------------------------------------------------------------------------


def test_ones_own_meaning_of_true_and_false_holds_for_truth_values_and_for_0_and_1() -> None:
    labels = parse_labels("good=false,bad=true")
    for given in ((True, False, False), (1, 0, 0), ("true", "false", "FALSE"), (True, 0, [0, False])):
        assert [each.human_score("q") for each in load_examples(rated(*given), labels=labels)] == [0, 1, 1]
    assert parse_labels({"good": [False], "bad": True}) == labels


def test_0_and_1_on_a_scale_stay_scores() -> None:
    assert [each.human["q"] for each in load_examples(rated(0, 1, 5), labels=parse_labels("good=0,bad=1"))] == [
        (0,),
        (1,),
        (5,),
    ]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("4/5", 4),
        ("4 / 5", 4),
        ("3.5 out of 5", 3.5),
        ("4 stars", 4),
        ("1 star", 1),
        ("80 %", 80),
        ("80%", 80),
        ("★★★☆☆", 3),
    ],
)
def test_numbers_with_what_they_are_out_of(written: str, number: float) -> None:
    assert load_examples(rated(written))[0].human == {"q": (number,)}


def test_shares_of_different_wholes_are_refused() -> None:
    assert says(refusal(rated("4/5", "8/10")), "row 2", "human.q", "8/10", "10", "row 1", "5")


def test_words_on_a_scale_count_from_the_worst() -> None:
    scale = parse_label_scale("Bad,Could be improved,Acceptable,Excellent")
    examples = load_examples(rated("bad", ["Excellent", "could be improved"], "NA"), label_scale=scale)
    assert [each.human for each in examples] == [{"q": (1,)}, {"q": (4, 2)}, {}]
    turned = load_examples(rated("bad"), label_scale=("Excellent", "Acceptable", "Could be improved", "Bad"))
    assert turned[0].human == {"q": (4,)}
    assert says(refusal(rated("Meh"), label_scale=scale), "row 1", "Meh", "--label-scale")


@pytest.mark.parametrize("given", ["Bad", "Bad,bad", ["Bad", 3], "Bad,,Good"])
def test_a_scale_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="label_scale"):
        parse_label_scale(given)


# --- columns --------------------------------------------------------------------------------------------------------


def test_a_field_map_takes_paths_and_a_column_of_the_whole_name_wins() -> None:
    row = {"id": "1", "inputs": {"question": "Where?"}, "outputs": {"messages": [{"content": "Here."}]}}
    fields = {"input": "inputs.question", "output": "outputs.messages.0.content", "human.q": "scores.Q"}
    first = load_examples([row | {"scores": {"q": "pass"}}], fields=fields)[0]
    assert (first.input, first.output, first.human) == ("Where?", "Here.", {"q": (True,)})
    assert load_examples([row | {"inputs.question": "Who?"}], fields={**fields, "human.q": "id"})[0].input == "Who?"
    assert says(refusal([row], fields={**fields, "input": "inputs.query"}), "row 1", "inputs.query", "inputs.question")


def test_columns_are_found_in_any_case_where_none_has_the_name() -> None:
    example = load_examples([{"ID": 1, "Input": "a", "OUTPUT": "b", "Context": "c", "Shop": "d"}])[0]
    assert (example.id, example.input, example.output, example.context) == ("1", "a", "b", "c")
    assert example.metadata == {"Shop": "d"}
    assert load_examples([PAIR | {"Question": "x"}], fields={"context": "question"})[0].context == "x"
    exact = load_examples([{"id": "1"} | PAIR | {"Context": "c"}])[0]
    assert exact.context is None and exact.metadata == {"Context": "c"}


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"question": "a", "answer": "b"}, "--field input=question --field output=answer"),
        (
            {"inputs": {"Question": "a"}, "outputs": {"answer": "b"}},
            "--field input=inputs.Question --field output=outputs.answer",
        ),
        (
            {"user_input": "a", "response": "b", "retrieved_contexts": []},
            "--field input=user_input --field output=response",
        ),
    ],
)
def test_the_first_error_about_a_file_gives_the_line_that_reads_it(row: dict[str, Any], line: str) -> None:
    assert line in refusal([row])
    fields = dict(each.split("=") for each in line.replace("--field ", "").split())
    example = load_examples([row], fields=fields)[0]
    assert (example.input, example.output) == ("a", "b")


# --- texts that went through JSON twice -----------------------------------------------------------------------------


def test_texts_that_went_through_json_twice_are_read_without_its_marks(caplog: pytest.LogCaptureFixture) -> None:
    texts = [("Where?", 'In "Bonn".\nYes'), ("Who?", "Me."), ("When?", '"Now", he said.')]
    rows = [{"id": str(place), "input": json.dumps(a), "output": json.dumps(b)} for place, (a, b) in enumerate(texts)]
    rows += [
        {
            "id": "3",
            "input": json.dumps(json.dumps({"question": "Why?"})),
            "output": json.dumps([{"role": "user", "content": "x"}]),
        }
    ]
    rows += [{"id": "4", "input": '"Never?"', "output": "null"}]
    assert [(each.input, each.output) for each in load_examples(rows)] == [*texts, ("Why?", "x")]
    assert says(caplog.text, "JSON", "without its marks") and says(caplog.text, "1 of 5 rows")


@pytest.mark.parametrize(
    "rows",
    [
        [('"Hello"', '"Bonjour"')],
        [('"Hello"', '"Bonjour\\n"'), ("Hello", '"Bonjour"')],
        [('{"a": 1}', '{"b": "x\\n"}')],
        [("Say it", '"x\\ny"')],
    ],
)
def test_marks_that_may_be_meant_stay(rows: list[tuple[str, str]]) -> None:
    found = load_examples([{"id": str(place), "input": a, "output": b} for place, (a, b) in enumerate(rows)])
    assert [(each.input, each.output) for each in found] == rows


def test_an_error_is_still_that_of_the_first_row_that_has_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "output": "b"}\nnothing\n')
    assert says(refusal(path), "line 1", "input")


# --- raters --------------------------------------------------------------------------------------------------------


def test_a_rater_who_gave_nothing_keeps_the_place(tmp_path: Path) -> None:
    one, none = load_examples(rated([4, None, 2], [None, None]))
    [words] = load_examples(rated(["pass", "NA", "fail"]))
    assert one.human == {"q": (4, None, 2)} and one.human_score("q") == 3 and none.human == {}
    assert words.human == {"q": (True, None, False)} and words.human_score("q") == 0.5
    for each in (one, words):
        assert load_examples([json.loads(each.model_dump_json())])[0].human == each.human


def test_several_columns_are_raters_in_their_order_with_empty_cells_in_their_places(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,input,output,anna,ben,cem\n1,a,b,4,,2\n2,a,c,,,\n3,a,d,,5,\n")
    read = load_examples(path, fields={"human.overall": "anna,ben,cem"})
    assert [each.human.get("overall") for each in read] == [(4, None, 2), None, (None, 5, None)]
    columns = rater_columns(read, "overall")
    assert columns == {"anna": [4, None, None], "ben": [None, None, 5], "cem": [2, None, None]}
