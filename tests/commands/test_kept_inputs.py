"""No command writes its result over what it reads, and what cannot be written is said before anything is bought."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine

CHECKLIST = "task: t\nquestions:\n- {id: a, text: 'Right?'}\n- {id: b, text: 'Kind?'}\n"


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(lambda body: 0.7) as one:
        yield one


@pytest.fixture
def askance(sandbox: Path, cli: Any, server: StandInServer) -> CommandLine:
    rows = [{"id": str(n), "input": f"i{n}", "output": f"o{n}", "human": {"overall": n % 5}} for n in range(12)]
    for name in ("data.jsonl", "data #1.jsonl"):
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("checklist.yaml").write_text(CHECKLIST, encoding="utf-8")
    Path("pairs.jsonl").write_text(
        '{"id": "1", "input": "i", "output_a": "x", "output_b": "y", "preferred": "a"}\n', encoding="utf-8"
    )
    Path("task.md").write_text("Answer.", encoding="utf-8")
    Path("folder").mkdir()
    return CommandLine(cli, server, "data.jsonl")


JUDGED = ("--model", "openai/j", "--checklist", "checklist.yaml")


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("evaluate", "data.jsonl", *JUDGED), "data.jsonl"),
        (("evaluate", "data.jsonl", *JUDGED), "checklist.yaml"),
        (("evaluate", "data.jsonl", *JUDGED), "link.jsonl"),
        (("evaluate", "data #1.jsonl", *JUDGED), "data #1.jsonl"),
        (("diagnose", "data.jsonl", *JUDGED), "./data.jsonl"),
        (("compare", "data.jsonl", *JUDGED, "--judge", "binary"), "data.jsonl"),
        (("weigh", "pairs.jsonl", *JUDGED), "pairs.jsonl"),
        (("select", "data.jsonl", "--model", "openai/j", "--candidates", "checklist.yaml"), "checklist.yaml"),
        (("questions", "task.md", "--model", "openai/j"), "task.md"),
        (("evaluate", "data.jsonl", *JUDGED), "to_be_made/../data.jsonl"),
    ],
)
def test_what_a_command_reads_is_not_written_over(askance: CommandLine, words: tuple[str, ...], target: str) -> None:
    Path("link.jsonl").symlink_to("data.jsonl")
    before = Path(target).resolve().read_bytes()
    code, _, err = askance(*words, "--api-base", askance.server.url, "-o", target)
    assert (code, askance.server.bodies) == (2, [])
    assert says(err, target, "never written")
    assert Path(target).resolve().read_bytes() == before


def test_neither_is_it_by_the_numbers_that_select_writes_beside_its_checklist(askance: CommandLine) -> None:
    checklist = {"task": "t", "questions": [{"id": name, "text": f"Is it {name}?"} for name in ("right", "kind")]}
    Path("selection.json").write_text(json.dumps(checklist), encoding="utf-8")
    asked = ("select", "data.jsonl", "--model", "openai/j", "--candidates", "selection.json", "-o", "chosen.yaml")
    code, _, err = askance(*asked, "--api-base", askance.server.url)
    assert (code, askance.server.bodies) == (2, [])
    assert "selection.json: this is what 'candidates' names" in err
    assert json.loads(Path("selection.json").read_text(encoding="utf-8")) == checklist


@pytest.mark.parametrize(
    ("words", "target"),
    [(("report", "verdicts.jsonl"), "verdicts.jsonl"), (("import", "traces.json"), "traces.json")],
)
def test_neither_is_it_where_nothing_is_bought(askance: CommandLine, words: tuple[str, ...], target: str) -> None:
    askance("evaluate", "data.jsonl", *JUDGED, "--api-base", askance.server.url, "-o", "verdicts.jsonl")
    Path("traces.json").write_text('[{"id": "t", "timestamp": "2026-01-01T00:00:00Z", "input": "i", "output": "o"}]')
    before = Path(target).read_bytes()
    code, _, err = askance(*words, "-o", target)
    assert code == 2 and says(err, "never written")
    assert Path(target).read_bytes() == before


@pytest.mark.parametrize("file", ["judge.yaml", "scorer.json", "inputs/examples.jsonl"])
def test_nor_is_a_file_of_a_folder_that_is_read(askance: CommandLine, file: str) -> None:
    place = Path("run", file)
    Path("run/inputs").mkdir(parents=True)
    Path("run/judge.yaml").write_text(
        f"schema: askance.judge/1\nmodel: openai/j\nprompt: '{{output}}'\nchecklist:\n  {CHECKLIST.replace(chr(10), chr(10) + '  ')}\n",
        encoding="utf-8",
    )
    if not place.exists():
        place.write_text("kept", encoding="utf-8")
    before = place.read_bytes()
    judging = ("evaluate", "data.jsonl", "--judge", "run", "--api-base", askance.server.url)
    graph = [("show", "run", "--graph", f"{place}")] if place.suffix == ".json" else []
    writing = [("report", "run"), ("export", "run", "--to", "python"), judging]
    for words in [*graph, *((*each, "-o", f"{place}") for each in writing)]:
        code, _, err = askance(*words)
        assert code == 2 and says(err, "never written"), (words, err)
        assert place.read_bytes() == before
    for _ in range(2):
        assert askance(*judging, "-o", "run/verdicts.jsonl")[0] == 0, "a file of one's own may lie there"


def test_where_nothing_is_bought_a_folder_is_no_file_either(askance: CommandLine) -> None:
    Path("folder/g.json").mkdir()
    for words in (
        ("report", "run", "-o", "folder"),
        ("export", "run", "--to", "python", "-o", "folder"),
        ("show", "run", "--graph", "folder/g.json"),
    ):
        code, _, err = askance(*words)
        assert code == 2 and says(err, "folder", "one file", words[-2])


def test_a_project_may_write_and_read_its_verdicts_under_one_name(askance: CommandLine) -> None:
    settings = "data: data.jsonl\nchecklist: checklist.yaml\nmodel: openai/j\noutput: v.jsonl\nverdicts: v.jsonl\n"
    Path("askance.yaml").write_text(settings, encoding="utf-8")
    assert askance("evaluate", "--config", "askance.yaml", "--api-base", askance.server.url)[0] == 0
    before = Path("v.jsonl").read_bytes()
    assert askance("diagnose", "--config", "askance.yaml")[0] == 0
    assert Path("v.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "target", "said"),
    [
        ("evaluate", "folder", "this is a folder"),
        ("evaluate", "task.md/verdicts.jsonl", "is no folder"),
        ("evaluate", "verdicts.csv", "name it .jsonl or .parquet"),
        ("diagnose", "verdicts.xlsx", "name it .jsonl or .parquet"),
        ("select", "selection.json", "the numbers go to a file of this name"),
    ],
)
def test_what_cannot_be_written_is_said_before_a_call_is_bought(
    askance: CommandLine, command: str, target: str, said: str
) -> None:
    how = ("--candidates", "checklist.yaml") if command == "select" else ("--checklist", "checklist.yaml")
    words = (command, "data.jsonl", "--model", "openai/j", *how, "--api-base", askance.server.url, "--no-cache")
    code, _, err = askance(*words, "-o", target)
    assert (code, askance.server.bodies) == (2, [])
    assert f"{target}: " in err and said in err
