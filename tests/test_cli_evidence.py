"""Labels and comments through the command line: what is understood everywhere, and what is refused, with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askance.testing import StandInServer

from .said import says

LABELS = "good=FINE,bad=poor"


@pytest.fixture
def commands(world: Any, sandbox: Path, server: StandInServer) -> dict[str, list[str]]:
    """Arguments of the commands that read examples; the data are in ``words.jsonl``."""
    arguments = world.write(sandbox / "files")
    checklist, reached = arguments[1:3], ["--api-base", server.url]
    model = ["--model", "openai/target", *reached]
    mine = ["--prompt", str(sandbox / "files" / "prompt.md"), "--run", "run"]
    loop = ["--embedder", "words", "--resamples", "200", "--max-iterations", "1", "--run", "run"]
    return {
        "evaluate": ["evaluate", "words.jsonl", *checklist, *model],
        "diagnose": ["diagnose", "words.jsonl", *checklist, *model],
        "compare": ["compare", "words.jsonl", *checklist, *model, "--judge", "binary,direct"],
        "select": ["select", "words.jsonl", "--candidates", arguments[2], "-k", "1", *model],
        "weigh": ["weigh", "--ratings", "words.jsonl", *checklist, *model],
        "align": ["align", "words.jsonl", *checklist, *model, *loop],
        "migrate": ["migrate", "words.jsonl", *arguments[1:], *reached, "--max-iterations", "1", "--run", "run"],
        "tune": ["tune", "words.jsonl", *checklist, "--generator", "openai/g", "--judge", "openai/j", *reached, *mine],
    }


def write(rows: list[dict[str, Any]], name: str = "words.jsonl") -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def worded(world: Any, good: str = "Fine", bad: str = "POOR") -> list[dict[str, Any]]:
    return [row | {"human": {"quality": good if row["human"]["quality"] > 3 else bad}} for row in world.rows]


COMMANDS = ("evaluate", "diagnose", "compare", "select", "weigh", "align", "migrate", "tune")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_examples_takes_words_of_ones_own(
    world: Any, cli: Any, commands: dict[str, list[str]], name: str
) -> None:
    write(worded(world))
    code, _, err = cli(*commands[name], "--dry-run")
    assert code == 2
    for part in ("words.jsonl, line 1", "field 'human'", "'quality'", "--labels"):
        assert part in err
    assert cli(*commands[name], "--labels", LABELS, "--dry-run")[0] == 0


def test_labels_are_correlated_like_ones_and_zeros(world: Any, cli: Any, commands: dict[str, list[str]]) -> None:
    found = []
    for given in (worded(world), worded(world, "Pass", "fail"), worded(world, True, False), worded(world, 1, 0)):
        write(given)
        code, out, _ = cli(*commands["evaluate"], "--labels", LABELS, "--json")
        assert code == 0
        found.append(json.loads(out)["agreement"])
    assert found[0]["quality"]["pooled"]["n"] == len(world.rows)
    assert found[0]["quality"]["pooled"]["spearman"] is not None
    assert found[1:] == found[:1] * 3


def test_a_config_file_and_two_options_hold_labels_too(world: Any, cli: Any, commands: dict[str, list[str]]) -> None:
    write(worded(world))
    for text in ("labels: good=fine,bad=poor", "labels: {good: fine, bad: [poor, dull]}"):
        Path("askance.yaml").write_text(text + "\n")
        assert cli(*commands["evaluate"], "--config", "askance.yaml", "--dry-run")[0] == 0
    assert cli(*commands["evaluate"], "--labels", "good=fine", "--labels", "bad=poor", "--dry-run")[0] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fine", "'fine' is no pair"),
        ("goood=fine", "Did you mean 'good'?"),
        ("good=fine,bad=fine", "cannot be both"),
        ("good=5,bad=4", "5 is a number"),
    ],
)
def test_labels_that_cannot_be_are_a_sentence_and_2(
    world: Any, cli: Any, commands: dict[str, list[str]], given: str, said: str
) -> None:
    write(worded(world))
    code, _, err = cli(*commands["evaluate"], "--labels", given)
    assert (code, said in err) == (2, True)


def test_labels_beside_scores_are_refused_with_file_line_and_field(
    world: Any, cli: Any, commands: dict[str, list[str]]
) -> None:
    rows = worded(world, "pass", "fail")
    rows[4]["human"] = {"quality": 3.5}
    write(rows)
    for name in ("evaluate", "align", "weigh"):
        code, _, err = cli(*commands[name])
        assert code == 2
        assert says(err, "words.jsonl", "line 5", "human.quality", 3.5)


def test_a_comment_on_no_output_is_refused_with_file_line_and_field(
    world: Any, cli: Any, commands: dict[str, list[str]]
) -> None:
    rows = [row | {"comment": "Too long."} for row in world.rows]
    rows[2].pop("output")
    write(rows)
    code, _, err = cli(*commands["tune"])
    assert code == 2
    assert says(err, "words.jsonl", "line 3", "comment", "no output")
    for name in ("align", "migrate", "evaluate"):
        code, _, err = cli(*commands[name])
        assert code == 2
        assert "words.jsonl, line 3: the field 'output' is missing" in err


@pytest.mark.parametrize("given", [7, {"quality": {"deep": "x"}}, [["fine", 3]]])
def test_what_is_no_comment_is_refused_with_file_line_and_field(
    world: Any, cli: Any, commands: dict[str, list[str]], given: Any
) -> None:
    write([*world.rows[:1], world.rows[1] | {"comment": given}])
    code, _, err = cli(*commands["evaluate"])
    assert code == 2
    assert "words.jsonl, line 2: field 'comment': a text" in err


def with_a_contradiction(world: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first example again, with the other label and a long comment."""
    first, other = rows[0], next(row for row in rows if row["human"] != rows[0]["human"])
    return [*rows, first | {"id": "x", "human": other["human"], "comment": "word " * 4_000}]


@pytest.mark.parametrize("name", ["evaluate", "diagnose", "align"])
def test_contradictions_and_long_comments_are_said_once_and_can_be_hushed(
    world: Any, cli: Any, commands: dict[str, list[str]], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(with_a_contradiction(world, worded(world, "pass", "fail")))
    more = ["--calibrate"] if name == "align" else []
    assert cli(*commands[name], *more)[0] == 0
    said = [record.getMessage() for record in caplog.records if record.name.startswith("askance")]
    assert len(said) == 2
    assert says(said[0], "words.jsonl", "1 output", "both ways")
    assert says(said[1], "words.jsonl", "comments", "x", "4,000 characters")
    caplog.clear()
    assert cli(*commands[name], *more, "--quiet")[0] == 0
    assert not [record for record in caplog.records if record.name.startswith("askance")]


def test_verdicts_that_are_there_are_diagnosed_with_labels_and_what_is_odd_is_said_once(
    world: Any, cli: Any, commands: dict[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    write(with_a_contradiction(world, worded(world)))
    assert cli(*commands["evaluate"], "--labels", LABELS, "-o", "verdicts.jsonl")[0] == 0
    caplog.clear()
    given = [*commands["diagnose"][:4], "--verdicts", "verdicts.jsonl", "--labels", LABELS]
    assert cli(*given)[0] == 0
    assert sum("labelled both ways" in record.getMessage() for record in caplog.records) == 1
    shown = ["report", "verdicts.jsonl", "--data", "words.jsonl", *commands["evaluate"][2:4]]
    assert cli(*shown)[0] == 2
    assert cli(*shown, "--labels", LABELS)[0] == 0


def test_peoples_answers_to_questions_alone_are_evaluated_without_agreement_and_diagnosed(
    world: Any, cli: Any, commands: dict[str, list[str]]
) -> None:
    write([row | {"human": {"facts": world.flaw(row["id"], "facts") is None}} for row in world.rows])
    code, out, _ = cli(*commands["evaluate"], "--json")
    assert (code, json.loads(out)["agreement"]) == (0, {})
    code, out, _ = cli(*commands["diagnose"], "--json")
    found = {each["id"]: each["human_dimension"] for each in json.loads(out)["questions"]}
    assert (code, found) == (0, {"facts": "facts", "words": None})
    code, _, err = cli(*commands["align"])
    assert code == 2
    assert says(err, "facts", "no dimension")


def test_comments_and_labels_in_columns_of_a_csv_file_are_found_by_field(
    world: Any, cli: Any, commands: dict[str, list[str]]
) -> None:
    lines = ["id,input,output,verdict,note"]
    lines += [
        f"{row['id']},{row['input']},{row['output']},{'Fine' if place % 2 else 'poor'},"
        for place, row in enumerate(world.rows)
    ]
    Path("words.csv").write_text("\n".join(lines) + "Dull\n")
    arguments = ["evaluate", "words.csv", *commands["evaluate"][2:], "--field", "human.quality=verdict"]
    code, out, _ = cli(*arguments, "--field", "comment=note", "--labels", LABELS, "--json")
    assert code == 0
    assert json.loads(out)["agreement"]["quality"]["pooled"]["n"] == len(world.rows)
    code, _, err = cli(*arguments)
    assert code == 2
    assert "words.csv, line 2: field 'human': 'quality': 'poor'" in err


def test_the_words_are_in_the_help() -> None:
    from askance.commands.make_run import align_command as align

    assert "--labels good=WORD,bad=WORD" in CliRunner().invoke(align, ["--help"]).output
