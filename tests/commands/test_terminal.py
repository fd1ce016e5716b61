"""No text of a file or a model is markup or an order where it is printed."""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.commands import terminal
from askance.commands.make_run import _errors_in
from askance.commands.output import print_rows
from askance.models.progress import Lines
from askance.prompts.formatting import Figure
from askance.testing import StandInServer

COMMANDS = Path(askance.__file__).parent / "commands"
CONTROLS = "\x1b[2J\x07\x9b31m\x7f"


def rows() -> list[dict[str, Any]]:
    human = {"tone [formal]": 1, "facts [/5]": 2}
    return [
        {
            "id": f"e{place} [red]",
            "input": "i",
            "output": f"{place * 'o'}\u2028x",
            "human": {name: (place * each) % 5 for name, each in human.items()},
            "metadata": {"lang [/b]": CONTROLS if place % 2 else "[bold]"},
        }
        for place in range(12)
    ]


@pytest.fixture
def files(sandbox: Path) -> list[str]:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows()]
    (sandbox / "words.jsonl").write_text("".join(lines), encoding="utf-8")
    asked = [{"id": name, "text": "Fine [/x]?", "dimension": name} for name in ("facts [/5]", "tone [formal]")]
    (sandbox / "checklist.yaml").write_text(json.dumps({"task": "t", "questions": asked}), encoding="utf-8")
    return ["words.jsonl", "--checklist", "checklist.yaml"]


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(lambda body: len(str(body["messages"])) % 10 / 10) as one:
        yield one


def test_brackets_are_brackets_and_controls_are_signs(cli: Any, files: list[str], server: StandInServer) -> None:
    model = ["--model", "openai/target", "--api-base", server.url]
    done = cli("evaluate", *files, *model, "--by", "lang [/b]", "-o", "verdicts.jsonl")
    assert done.code == 0
    for name in ("facts [/5]", "tone [formal]", "lang [/b]", "[bold]", "\u241b[2J\u2407"):
        assert name in done.out
    assert not {"\x1b", "\x07", "\x9b", "\x7f"} & {*done.out, *done.err}
    found = cli("evaluate", *files, *model, "--by", "lang [/b]", "--json").out
    assert not {"\x1b", "\x07", "\x9b", "\x7f"} & {*found}
    assert {row["value"] for row in json.loads(found)["by"]["slices"]} == {CONTROLS, "[bold]"}
    assert cli("diagnose", *files, "--verdicts", "verdicts.jsonl").code == 0
    assert cli("compare", *files, *model, "--judge", "binary").code == 0


def test_half_a_surrogate_pair_ends_no_command_that_prints_it(
    cli: Any, files: list[str], server: StandInServer, sandbox: Path
) -> None:
    halves = [{"id": str(place), "input": "i", "output": "o" * place, "team": "a\ud83d"} for place in range(4)]
    (sandbox / "halves.jsonl").write_text("".join(json.dumps(row) + "\n" for row in halves), encoding="utf-8")
    asked = (
        "evaluate",
        "halves.jsonl",
        *files[1:],
        "--model",
        "openai/target",
        "--api-base",
        server.url,
        "--by",
        "team",
    )
    done = cli(*asked)
    assert done.code == 0 and "a\ufffd" in done.out
    assert json.loads(cli(*asked, "--json").out)["by"]["slices"][0]["value"] == "a\ud83d"


def test_errors_warnings_and_progress_hold_no_order(
    cli: Any, sandbox: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = cli("evaluate", f"no{CONTROLS}.jsonl", "--checklist", "global", "--model", "openai/m")
    assert code == 2 and "\x1b" not in err and "\u241b" in err
    terminal.log_visibly()
    record = logging.LogRecord("askance", logging.WARNING, "", 0, "%s", (CONTROLS,), None)
    assert logging.lastResort is not None
    logging.lastResort.emit(record)
    Lines().say(CONTROLS)
    assert not {"\x1b", "\x07"} & {*capsys.readouterr().err}


def test_a_line_break_of_another_alphabet_in_an_explanation_ends_no_line(tmp_path: Path) -> None:
    (tmp_path / "verdicts").mkdir()
    kept = {"example": "a", "explanation": "one\u2028two\x85three", "error": "why"}
    file = tmp_path / "verdicts" / "000-test.jsonl"
    file.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
    assert list(_errors_in(tmp_path)) == ["why"]


def test_a_table_of_more_columns_than_fit_is_printed_in_parts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sections = {f"section-{place}": Figure(0.5, 0.25, 0.75) for place in range(23)}
    print_rows([{"test": test} | sections for test in ("facts", "style")])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("facts") for line in lines) == 3 and max(map(len, lines)) <= 80
    assert sum(line.count("0.500") for line in lines) == 46


def test_a_long_first_column_breaks_no_word_of_the_other_headings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rest = {
        "old": "1.000",
        "before": "0.878",
        "after": "0.972",
        "decision": "not yet",
        "contract": "81%",
        "price": "$0",
    }
    print_rows([{"target": "local/qwen2.5-coder-0.5b-instruct-in-many-bits"} | rest])
    heading = capsys.readouterr().out.splitlines()[0].split()
    assert heading == ["target", *rest]


def test_what_is_undefined_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = Figure(None, reason="it scored nothing")
    print_rows([{"judge": judge, "dimension": each, "value": nothing} for judge in "ab" for each in "xyz"])
    assert "Undefined (a, value; b, value): it scored nothing." in capsys.readouterr().out


def test_why_a_figure_has_no_interval_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    alone = Figure(0.9, reason="no interval: only 1 group to resample")
    print_rows([{"judge": judge, "value": alone, "beside": Figure(0.5, 0.4, 0.6)} for judge in "ab"])
    assert "No interval (a, value; b, value): only 1 group to resample." in capsys.readouterr().out


def test_commands_print_through_the_terminal_alone() -> None:
    """Whatever echoes text of others does it in one way; JSON has its own escapes, and a file is what it is."""
    other = []
    for path in COMMANDS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "print", "Console"):
                other.append(f"{path.name}: {ast.unparse(node)}")
    assert sorted(other) == [
        "exchange.py: click.echo(line.encode('utf-8', 'backslashreplace'), nl=False)",
        "exchange.py: click.echo(made.text, nl=False)",
        "output.py: click.echo(dump_json(value), nl=False)",
        "show_run.py: click.echo(found.patch, nl=False)",
        "terminal.py: click.echo(visible(str(text)), err=err, nl=nl)",
        "watch.py: click.echo(json.dumps(row))",
    ]
