"""Whatever stands in a file, its reader gives a value or a sentence, in bounded time and memory; never a traceback."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askance.bridges.trace_examples import import_traces
from askance.commands.command_options import load_dotenv, read_task
from askance.commands.command_options import settings as merged_settings
from askance.commands.show_run import show_command as show
from askance.evaluation.calibration import load_calibration
from askance.evaluation.judge_file import load_judge
from askance.evaluation.options import EvaluateOptions
from askance.evaluation.weights_file import weighted_by
from askance.labelling.labels_file import LabelsFile
from askance.memory.certificate_file import CERTIFICATE_FILE
from askance.memory.journal import read_events
from askance.memory.memory_directory import read_memory
from askance.memory.provenance import build_graph
from askance.memory.run_directory import RunDirectory
from askance.models.batches.open_batches import BatchJournal, BatchRecord
from askance.models.files import cache_directory
from askance.models.trained.scorer_file import read_scorer
from askance.optimizer.following import RunProgress
from askance.optimizer.weights.score_tables import load_preferences
from askance.prompts.checklist import Checklist, Question, load_checklist
from askance.prompts.errors import AskanceError, InputError
from askance.prompts.examples import load_examples
from askance.prompts.prompt import load_prompt
from askance.prompts.text_files import read_yaml
from askance.report.any_result import write_report_of
from askance.settings import load_config, parse_options

from .migrated import Target, write_migration
from .said import naming

RELEASED = Path(__file__).parent / "data" / "released_run"
SCORER = RELEASED.with_name("onnx_scorer")
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
TEXTS: dict[str, bytes] = {
    name: text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    for name, text in {
        "many zeros": '{"q": 1' + "0" * 400 + "}",
        "a number of 5,000 digits": '{"q": ' + "9" * 5000 + "}",
        "infinity": '{"weights": {"a": 1e999}}',
        "not a number": '{"weights": {"a": NaN}}',
        "brackets": "[" * 1200,
        "braces": '{"a":' * 1200,
        "deep and whole": "[" * 1200 + "]" * 1200,
        "a mapping for a model": "model: {a: 1}\n",
        "a number for a checklist": "checklist: 5\n",
        "a NUL in a path": 'data: "a\\0b"\n',
        "aliases of aliases": BOMB + "task: t\nquestions: *a9\n",
        "itself": "&a {task: *a}\n",
        "no UTF-8": b"\x9c\xff",
        "nothing": b"",
        "null": "null",
        "a number": "5",
        "a list": "[1, 2]",
        "an empty object": "{}",
        "a date that is none": "task: 2020-99-99\n",
        "hexadecimal without digits": "task: 0x_\n",
        "a tag": "task: !!timestamp x\n",
        "a tag of Python": "!!python/object/apply:os.system [ls]\n",
        "half a pair": '{"a": "\\ud800"}',
        "half a pair in a name": 'data: "a\\ud800b"\nchecklist: "a\\ud800b"\n',
        "a control character": "task: \x01\n",
        "an alias of nothing": "task: *nothing\n",
        "a key that is a list": "? [1, 2]\n: 3\n",
    }.items()
}


def whole_configuration(path: Path) -> None:
    inputs = dict.fromkeys(("data", "model", "checklist", "prompt"))
    options, _ = merged_settings(EvaluateOptions, path, inputs)
    parse_options(EvaluateOptions, options)


CHECKLIST = Checklist(questions=[Question(id="a", text="Is it?")])

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "configuration": ("c.yaml", load_config),
    "configuration of a command": ("c.yaml", whole_configuration),
    "checklist": ("c.yaml", load_checklist),
    "judge": ("judge.yaml", load_judge),
    "examples": ("e.jsonl", load_examples),
    "examples in columns": ("e.csv", load_examples),
    "prompt": ("p.md", load_prompt),
    "calibration": ("c.json", load_calibration),
    "weights": ("w.json", lambda path: weighted_by(CHECKLIST, path)),
    "preferences": ("p.jsonl", load_preferences),
    "memory": ("memory.jsonl", read_memory),
    "labels": ("l.jsonl", lambda path: LabelsFile(path).open()),
    "workbook": ("e.xlsx", load_examples),
    "columns": ("e.parquet", load_examples),
    "a list": ("e.json", load_examples),
    "traces": ("t.jsonl", import_traces),
    "traces in a document": ("t.json", import_traces),
    "task": ("t.md", read_task),
    "any result": ("r.json", lambda path: write_report_of(path, path.with_name("out.html"))),
}


def read_bounded(read: Callable[[Path], object], path: Path, seconds: float = 20.0) -> None:
    began = time.process_time()
    with suppress(AskanceError):
        read(path)
    assert time.process_time() - began < seconds, "it took too long"


@pytest.mark.parametrize("reader", READERS)
def test_no_file_of_others_ends_in_a_traceback(reader: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    for text in (each + end for each in TEXTS.values() for end in (b"", b"\n")):
        (tmp_path / name).write_bytes(text)
        read_bounded(read, tmp_path / name)


@pytest.mark.parametrize(
    "reader", [name for name, (file, _) in READERS.items() if not file.endswith((".xlsx", ".parquet"))]
)
@pytest.mark.parametrize("spread", ["together", "beyond a buffer"])
def test_a_byte_that_cannot_be_is_named_by_file_and_line(reader: str, spread: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    beginning = b"\n" * (1 if spread == "together" else 200_000)
    if reader == "labels":
        beginning = b'{"example": "a", "rater": "r", "time": "2026-01-01T00:00:00+00:00", "texts": "x"}\n'
    lines = beginning.count(b"\n") + 1
    (tmp_path / name).write_bytes(beginning + b'{"id": "caf\xe9"}\n')
    with pytest.raises(InputError, match=rf"{re.escape(name)}, line {lines}\b.*UTF-8"):
        read(tmp_path / name)


def test_a_byte_that_cannot_be_is_named_by_its_line_in_utf_16(tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_bytes("output\nfür\n".encode("utf-16") + b"\x00\xdc\x00\xdc")  # halves of pairs without their first
    with pytest.raises(InputError, match="line 3: not UTF-16 text"):
        load_examples(file)


@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "result.json",
        "journal.jsonl",
        "inputs/checklist.yaml",
        "inputs/prompt.md",
        "inputs/examples.jsonl",
    ],
)
def test_a_byte_that_cannot_be_in_a_run_is_named_by_file_and_line(name: str, tmp_path: Path) -> None:
    shutil.copytree(RELEASED, tmp_path / "run")
    file = tmp_path / "run" / name
    lines = file.read_bytes().split(b"\n")
    place = min(1, len(lines) - 2) if len(lines) > 2 else 0
    lines[place] += b"\xe9"
    file.write_bytes(b"\n".join(lines))
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(InputError, match=rf"{re.escape(name)}, line {place + 1}\b"):
        run.read_config(), run.read_result(), run.read_inputs(), read_events(run.path / "journal.jsonl")


def test_a_byte_that_cannot_be_in_a_file_of_variables_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(b"# first\nA=\xe9\n")
    with pytest.raises(InputError, match=r"\.env, line 2: not UTF-8"):
        load_dotenv()


@pytest.mark.parametrize("text", [*TEXTS.values(), b"=x", b"A=\0", b"A\0B=c"])
def test_no_file_of_variables_ends_in_a_traceback(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(text)
    before = set(os.environ)
    try:
        read_bounded(lambda _: load_dotenv(), tmp_path)
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]


@pytest.mark.parametrize("text", [b"OK=1\n=x", b"OK=1\nA=\0", b"OK=1\nA\0B=c"])
def test_a_variable_that_cannot_be_is_named_by_its_line(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OK", "0")
    Path(".env").write_bytes(text)
    with pytest.raises(InputError, match=naming("line 2", "NAME=value")):
        load_dotenv()


@pytest.mark.parametrize(
    "name", ["config.yaml", "result.json", "journal.jsonl", "lessons.jsonl", "inputs/checklist.yaml", "changes.diff"]
)
def test_no_damaged_file_of_a_run_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(RELEASED, run)
    directory = RunDirectory(run)
    readers = (
        lambda _: directory.read_config(),
        lambda _: directory.read_inputs(),
        lambda _: directory.read_result(),
        lambda _: RunProgress(run).look(),
        lambda _: read_events(run / "journal.jsonl"),
        lambda _: show.main(["--diff", str(run)], standalone_mode=False),
        build_graph,
        write_report_of,
    )
    for text in (each + end for each in TEXTS.values() for end in (b"", b"\n")):
        (run / name).write_bytes(text)
        for read in readers:
            read_bounded(read, run)


def test_a_version_that_is_no_number_is_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(RELEASED, run)
    journal = run / "journal.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8").replace('"version": 1', '"version": true'), encoding="utf-8")
    with pytest.raises(InputError, match=r"journal\.jsonl: event \d+ \('decision'\).*True is no version"):
        build_graph(run)


def test_an_event_whose_table_is_a_number_is_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(RELEASED, run)
    with (run / "journal.jsonl").open("a", encoding="utf-8") as journal:
        journal.write('{"event": "reasons", "target": 5.0, "reference": {}}\n')
    with pytest.raises(InputError, match=r"journal\.jsonl: event \d+ \('reasons'\)"):
        build_graph(run)


@pytest.mark.parametrize("name", ["data", "checklist", "prompt"])
def test_half_a_surrogate_pair_in_a_setting_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f'{name}: "a\\ud800b"\n', encoding="utf-8")
    with pytest.raises(InputError, match=naming("s.yaml", name, "surrogate")):
        load_config(file)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: 1\nb: 2020-99-99\n", 2), ("a: 1\n\nb: 0x_\n", 3), ("a: &a [*a]\n", 1), ("a: " + "9" * 5000, 1)],
)
def test_a_value_that_cannot_be_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(InputError, match=rf"^c\.yaml, line {line}: not valid YAML \("):
        read_yaml(text, "c.yaml", "configuration")


def test_what_aliases_repeat_is_counted_before_it_is_made() -> None:
    began = time.process_time()
    with pytest.raises(InputError, match=naming("aliases", "1,000,000 values")):
        read_yaml(BOMB, "c.yaml", "configuration")
    assert time.process_time() - began < 5
    assert read_yaml("a: &a [1, 2]\nb: *a\n", "c.yaml", "configuration") == {"a": [1, 2], "b": [1, 2]}


REMOVED = "(removed)"
VALUES = st.one_of(
    st.sampled_from([5e8, -1, 1e308, 10**400, None, "x", "\ud800", [], {}, True, float("nan"), 0, REMOVED]),
    st.recursive(st.none() | st.integers() | st.floats() | st.text(max_size=5), st.lists, max_leaves=4),
)


def places_in(value: Any, deepest: int = 3) -> list[tuple[Any, ...]]:
    """The places of a value and its parts, as keys and numbers from the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [(key, *place) for key, each in items for place in (places_in(each, deepest - 1) if deepest else [()])]
    return [(), *inner]


def damaged(whole: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The whole with another value at a place, or without it."""
    if not place:
        return None if value == REMOVED else value
    first, rest = place[0], place[1:]
    changed = whole.copy()
    if not rest and value == REMOVED:
        del changed[first]
    else:
        changed[first] = damaged(whole[first], rest, value)
    return changed


JUDGE = {
    "schema": "askance.judge/1",
    "model": "openai/m",
    "prompt": "Judge.",
    "checklist": {"task": "t", "questions": [{"id": "a", "text": "Is it?", "dimension": "d", "weight": 2.0}]},
    "origins": {"a": {"from": "reworded", "text": "Was it?", "good": "yes", "agreement": 0.7, "n": 30}},
    "settings": {"mode": "each", "p_yes": "auto", "samples": 1, "temperature": 0.0, "human_scale": [1, 5]},
    "threshold": {"value": 0.5},
    "figures": {"reference": "source", "validation": {"spearman": 0.8, "n": 30, "low": 0.6, "high": 0.9}},
}
LABEL = {
    "example": "a",
    "rater": "r",
    "texts": "x",
    "time": "2026-01-01T00:00:00+00:00",
    "why": "next",
    "human": {"d": True},
}
SENT = BatchRecord("openai/m", "file-1", ("00ff",), sent=1.0)


def objects_in(file: Path) -> list[Any]:
    """The objects of a file: one a line, or one in all."""
    text = file.read_text(encoding="utf-8")
    return [json.loads(each) for each in text.splitlines()] if file.suffix == ".jsonl" else [json.loads(text)]


def of_a_run(folder: Path, name: str, *readers: Callable[[Path], object]) -> tuple[Path, Callable[[], object]]:
    if not folder.exists():
        shutil.copytree(RELEASED, folder)
    return folder / name, lambda: [read(folder) for read in readers]


def reported(folder: Path) -> object:
    return write_report_of(folder, folder.with_name("out.html"))


def a_file(file: Path, rows: list[Any], read: Callable[[Path], object]) -> tuple[Path, Callable[[], object]]:
    if not file.exists():
        file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return file, lambda: read(file)


def a_batch(_: Path) -> tuple[Path, Callable[[], object]]:
    journal = BatchJournal(SENT.identity)
    places = cache_directory() / "batches"
    if not places.is_dir():
        journal.write(SENT)
    return next(places.glob("*.json")), journal.read


def a_scorer(folder: Path) -> tuple[Path, Callable[[], object]]:
    if not (place := folder / "scorer").exists():
        shutil.copytree(SCORER, place)
    return place / "scorer.json", lambda: read_scorer(place)


def a_certificate(folder: Path) -> tuple[Path, Callable[[], object]]:
    if not (place := folder / "migration").exists():
        write_migration(place, [Target("vendor/new")])
    return place / CERTIFICATE_FILE, lambda: reported(place)


WHOLE: dict[str, Callable[[Path], tuple[Path, Callable[[], object]]]] = {
    "result": lambda folder: of_a_run(folder / "run", "result.json", reported),
    "journal": lambda folder: of_a_run(folder / "run", "journal.jsonl", build_graph),
    "lessons": lambda folder: of_a_run(folder / "run", "lessons.jsonl", reported, build_graph),
    "judge": lambda folder: a_file(folder / "judge.json", [JUDGE], load_judge),
    "labels": lambda folder: a_file(folder / "l.jsonl", [LABEL, LABEL], lambda file: LabelsFile(file).open()),
    "batch": a_batch,
    "scorer": a_scorer,
    "certificate": a_certificate,
}
"""By name, a whole file of ours, made where it is not there, and what reads it."""


@pytest.mark.parametrize("name", WHOLE)
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_in_a_file_of_ours_or_none_ends_in_a_value_or_a_sentence(
    data: Any, name: str, tmp_path: Path, sandbox: Path
) -> None:
    file, read = WHOLE[name](tmp_path)
    whole = file.read_bytes()
    rows = objects_in(file)
    at = data.draw(st.integers(0, len(rows) - 1))
    rows[at] = damaged(rows[at], data.draw(st.sampled_from(places_in(rows[at]))), data.draw(VALUES))
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    try:
        read_bounded(lambda _: read(), file)
    finally:
        file.write_bytes(whole)


def test_a_time_that_no_float_holds_in_the_record_of_a_batch_is_named(sandbox: Path) -> None:
    file, read = a_batch(sandbox)
    (whole,) = objects_in(file)
    file.write_text(json.dumps(whole | {"sent": 10**400}), encoding="utf-8")
    with pytest.raises(InputError, match=naming(file.name, "cannot be read")):
        read()


def test_a_result_without_its_start_is_named(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(RELEASED, run)
    (whole,) = objects_in(run / "result.json")
    del whole["baseline"]
    (run / "result.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(InputError, match=naming("result.json", "baseline")):
        write_report_of(run, tmp_path / "out.html")
