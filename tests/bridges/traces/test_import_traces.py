"""What holds for every format: finding it out, spans, what is said, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance import import_traces, load_examples
from askance.cli import main
from askance.prompts.errors import InputError
from askance.prompts.messages import text_of
from tests.said import says

MESSAGES = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Here."}]
RUN = {"id": "r1", "name": "chain", "run_type": "chain", "inputs": {"q": "Where?"}, "outputs": {"a": "Here."}}


def refusal(*files: Path, **named: Any) -> str:
    with pytest.raises(InputError) as caught:
        import_traces(list(files), **named)
    return str(caught.value)


def test_a_file_of_no_known_format_is_told_what_there_is(write: Any) -> None:
    path = write("rows.jsonl", [{"question": "Where?", "answer": "Here."}])
    message = refusal(path)
    assert f"{path}, row 1: no export of langfuse, langsmith" in message
    assert "it has: question, answer" in message and "--field" in message
    assert "not as mlflow exports it" in refusal(path, source="mlflow")


def test_a_format_that_could_be_two_has_to_be_named(write: Any) -> None:
    both = RUN | {"messages": MESSAGES}
    path = write("rows.jsonl", [both])
    assert says(refusal(path), "langsmith", "openai", "--from")
    assert import_traces(path, source="langsmith").format == "langsmith"


def test_rows_of_another_kind_are_left_out_and_said(write: Any) -> None:
    path = write("rows.jsonl", [RUN, {"something": "else"}])
    assert f"Left out: 1 row not of langsmith ({path}, line 2)." in import_traces(path).notes


def test_files_that_cannot_be_read_are_refused(write: Any, tmp_path: Path) -> None:
    assert says(refusal(tmp_path / "no.json"), "no.json", "no such file")
    assert says(refusal(write("bad.json", '{"id": 1,\n')), "bad.json", "line 1", "JSON")
    assert says(refusal(write("empty.jsonl", [])), "empty.jsonl", "nothing")
    assert says(refusal(write("list.json", [RUN, 3])), "list.json", "row 2", "JSON object")
    assert "Did you mean 'langsmith'?" in refusal(write("a.jsonl", [RUN]), source="langsmth")


def test_a_wrong_span_or_score_is_answered_with_those_there_are(write: Any) -> None:
    path = write("a.jsonl", [RUN | {"feedback_stats": {"helpful": {"n": 1, "avg": 1}}}])
    assert says(refusal(path, span="chian"), "chian", "chain")
    assert says(refusal(path, scores=["helpfull"]), "--score helpfull", "helpful")


def test_several_spans_of_a_name_are_several_examples(write: Any) -> None:
    steps = [RUN | {"id": f"s{place}", "name": "step", "parent_run_id": "r1", "trace_id": "r1"} for place in (1, 2)]
    found = import_traces(write("a.jsonl", [RUN | {"trace_id": "r1"}, *steps]), span="step")
    assert [row["id"] for row in found.rows] == ["r1/s1", "r1/s2"]


def test_where_no_root_has_an_output_the_spans_that_have_are_named(write: Any) -> None:
    child = RUN | {"id": "s1", "name": "step", "parent_run_id": "r1", "trace_id": "r1"}
    path = write("a.jsonl", [RUN | {"outputs": None}, child])
    message = refusal(path)
    assert says(message, "1 trace", "output") and says(message, "step", "--span NAME")


def test_the_command_writes_examples_and_says_what_it_did(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("a.jsonl", [RUN, RUN | {"id": "r2", "outputs": None}])
    with pytest.raises(SystemExit) as ended:
        main(["import", str(path), "-o", str(tmp_path / "examples.jsonl")])
    said = capsys.readouterr()
    assert ended.value.code == 0 and said.out == ""
    assert "2 traces of langsmith: 1 example." in said.err and "Left out: 1 trace without an output." in said.err
    assert load_examples(tmp_path / "examples.jsonl")[0].output == "Here."
    with pytest.raises(SystemExit):
        main(["import", str(path), "--from", "langsmith", "--quiet"])
    said = capsys.readouterr()
    assert json.loads(said.out)["id"] == "r1" and said.err == ""
    with pytest.raises(SystemExit) as ended:
        main(["import", str(tmp_path / "no.json")])
    assert ended.value.code == 2


def test_the_command_prints_what_it_would_write_where_a_text_holds_half_a_surrogate_pair(
    write: Any, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = write("a.jsonl", [RUN | {"outputs": "Here \ud83d."}])
    for place in ([], ["-o", str(tmp_path / "examples.jsonl")]):
        with pytest.raises(SystemExit) as ended:
            main(["import", str(path), "--quiet", *place])
        assert ended.value.code == 0
    printed = capsysbinary.readouterr().out
    assert printed == (tmp_path / "examples.jsonl").read_bytes() and json.loads(printed)["output"] == "Here \ud83d."


@pytest.mark.parametrize("name", ["examples.csv", "examples.xlsx", "examples.parquet"])
def test_examples_are_not_written_under_a_name_by_which_they_would_be_read_as_something_else(
    write: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["import", str(write("a.jsonl", [RUN])), "-o", str(tmp_path / name)])
    assert ended.value.code == 2
    assert says(capsys.readouterr().err, "JSONL", ".jsonl")
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        ("  ", None),
        ({}, None),
        (MESSAGES, "User: Where?\n\nAssistant: Here."),
        ([MESSAGES], "User: Where?\n\nAssistant: Here."),
        ({"messages": MESSAGES[:1], "model": "m"}, "Where?"),
        ({"type": "human", "content": "Where?"}, "Where?"),
        ({"type": "ai", "data": {"content": "Here."}}, "Here."),
        ([{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "Here."}], "User: Where?\n\nAssistant: Here."),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}, "a\n[image_url]"),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Here."}]}, "Here."),
        ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "A=="}]}, None),
        ({"output": {"answer": "Here."}, "history": []}, "Here."),
        ({"a": 1}, '{\n  "a": 1\n}'),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}, '[{"id": "c"}]'),
        ({"role": "assistant", "content": None, "refusal": "I cannot."}, "I cannot."),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot."),
    ],
)  # fmt: skip
def test_the_text_of_what_applications_log(value: Any, text: str | None) -> None:
    assert text_of(value) == text


def chat(name: str, asked: str, answered: str) -> dict[str, Any]:
    said = (("user", asked), ("assistant", answered))
    return {"id": name, "messages": [{"role": role, "content": content} for role, content in said]}


def test_what_two_exports_both_hold_is_read_once(write: Any) -> None:
    score = {
        "id": "s1",
        "name": "quality",
        "value": 4,
        "dataType": "NUMERIC",
        "source": "ANNOTATION",
        "comment": "fine",
    }
    trace = {"id": "t1", "timestamp": "2026-01-01", "userId": None, "input": "q", "output": "a"}
    whole = {**trace, "scores": [score]}
    for files in ([whole], [whole, whole], [trace, score | {"traceId": "t1"}, whole]):
        [row] = import_traces(write("l.jsonl", files)).rows
        assert (row["human"], row["comment"]) == ({"quality": 4}, {"quality": "fine"})
    found = import_traces([write("a.jsonl", [whole]), write("b.jsonl", [score | {"id": "s2", "traceId": "t1"}, whole])])
    assert found.rows[0]["human"] == {"quality": [4, 4]}, "two people who said the same are two"
    found = import_traces([write("a.jsonl", [chat("1", "Hi", "Hello")]), write("b.jsonl", [chat("1", "Hi", "Hello")])])
    assert [(row["input"], row["output"]) for row in found.rows] == [("Hi", "Hello")]
    assert not any("twice" in note for note in found.notes)


def test_two_traces_of_one_id_are_not_mixed_and_it_is_said(write: Any) -> None:
    found = import_traces(
        write("a.jsonl", [chat("1", "2+2?", "4"), chat("1", "Capital?", "Paris"), chat("2", "Hi", "Ho")])
    )
    assert [(row["input"], row["output"]) for row in found.rows] == [("2+2?", "4"), ("Hi", "Ho")]
    assert [note for note in found.notes if says(note, "twice", "1 trace", "1")]
