"""What changed from one run to another: the patch, the questions, and the scores on what both were tested on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from askance.evaluation.compare.run_difference import ALL, run_difference
from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import InputError
from askance.prompts.text import prompt_diff
from tests.said import naming, says

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("sandbox")


def applied(text: str, patch: str) -> str:
    """A text after a unified diff that has all its lines as context or in place of others."""
    lines, place, found = text.splitlines(), 0, []
    for line in patch.splitlines()[2:]:
        if line.startswith("@@"):
            first = int(line.split()[1][1:].split(",")[0]) - 1
            found += lines[place:first]
            place = first
        elif line[0] in " -":
            assert lines[place] == line[1:]
            place += 1
            found += [line[1:]] if line[0] == " " else []
        elif line[0] == "+":
            found.append(line[1:])
    return "\n".join(found + lines[place:])


@pytest.mark.parametrize("sign", ["\f", "\v", "\x85", "\u2028", "\r"])
def test_a_patch_has_lines_where_patch_has_them(sign: str) -> None:
    before, after = f"Judge.{sign}Be fair.\nSee {{output}}\n", f"Judge.{sign}Be fair.\nRead {{output}}"
    assert prompt_diff(before, after).split("\n")[3:] == [
        f" Judge.{sign}Be fair.",
        "-See {output}",
        "+Read {output}",
        "\\ No newline at end of file",
        "",
    ]


@pytest.fixture
def runs(world: Any, sandbox: Path) -> tuple[Path, Path]:
    world.migrate(sandbox / "one")
    world.migrate(sandbox / "two", seed=7)
    return sandbox / "one", sandbox / "two"


def test_of_one_run_it_is_the_start_and_what_was_accepted(world: Any, runs: tuple[Path, Path]) -> None:
    found, result = run_difference(runs[0]), RunDirectory(runs[0]).read_result()
    assert found.before.endswith("at its start") and result.changed
    assert applied(result.baseline.prompt, found.patch) == result.best.prompt.rstrip("\n")
    assert found.questions == () and found.settings == {} and found.remarks == ()
    whole = found.slices[0]
    assert (whole.value, whole.n) == (ALL, result.best.test.n)
    assert whole.spearman == (result.baseline.test.spearman, result.best.test.spearman)
    assert whole.spearman_difference is not None and whole.spearman_difference.value == pytest.approx(
        result.gain.test.value
    )
    kept = [json.loads(line) for line in (runs[0] / "verdicts" / "scores.jsonl").read_text().splitlines()]
    means = [
        np.mean([row["score"] for row in kept if row["version"] == version])
        for version in (0, max(r["version"] for r in kept))
    ]
    assert (whole.before, whole.after) == pytest.approx(tuple(means))
    assert whole.difference.value == pytest.approx(means[1] - means[0])


def test_two_runs_are_held_on_what_was_test_in_both(runs: tuple[Path, Path]) -> None:
    found = run_difference(*runs)
    tests = [
        {json.loads(line)["example"] for line in (run / "verdicts" / "scores.jsonl").read_text().splitlines()}
        for run in runs
    ]
    assert tests[0] != tests[1]
    assert found.slices[0].n == len(tests[0] & tests[1]) > 0
    assert says(found.remarks[0], f"{found.slices[0].n} examples", "both runs")


@pytest.mark.parametrize(("field", "named"), [("place", "place"), ("score", "metadata.score")])
def test_slices_hold_every_example_once(world: Any, runs: tuple[Path, Path], field: str, named: str) -> None:
    for run in runs:
        file = run / "inputs" / "examples.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for place, row in enumerate(rows):
            row["metadata"] = {field: "even" if place % 2 == 0 else "odd"}
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = run_difference(*runs, by=field)
    whole, *parts = found.slices
    assert [row[named] for row in found.view().tables["slices"]()] == [each.value for each in found.slices]
    assert {each.value for each in parts} <= {"even", "odd"}
    assert sum(each.n for each in parts) == whole.n
    assert sum(each.n * each.after for each in parts) == pytest.approx(whole.n * whole.after)
    with pytest.raises(InputError, match=naming("no example", "'palce'")):
        run_difference(*runs, by="palce")


def test_questions_that_changed_are_named(world: Any, runs: tuple[Path, Path]) -> None:
    file = runs[1] / "result.json"
    result = json.loads(file.read_text())
    result["best"]["checklist"] = {
        "task": "",
        "questions": [
            {"id": "facts", "text": "Are the facts right?", "dimension": "quality", "good": "no"},
            {"id": "new", "text": "Is it long?", "dimension": "quality", "good": "no"},
        ],
    }
    file.write_text(json.dumps(result))
    found = {each["id"]: each for each in run_difference(*runs).questions}
    assert {name: each["change"] for name, each in found.items()} == {
        "facts": "turned round",
        "new": "added",
        "words": "left out",
    }
    assert found["facts"]["text"] == "Are the facts right? (yes = fault)"
    assert found["facts"]["before"] == "Are the facts right?"


def test_of_examples_that_one_run_did_not_have_it_is_not_said_to_have_learned(runs: tuple[Path, Path]) -> None:
    both = run_difference(*runs).slices[0].n
    names = {json.loads(line)["example"] for line in (runs[0] / "verdicts" / "scores.jsonl").read_text().splitlines()}
    file = runs[1] / "verdicts" / "scores.jsonl"
    kept = [line for line in file.read_text().splitlines() if json.loads(line)["example"] in names]
    file.write_text("".join(f"{line}\n" for line in kept))
    [said] = run_difference(*runs).remarks
    assert says(said, f"{both} examples", "both runs", f"{len(names)} and {both}")
    assert says(said, "learned from them", "no score")


@pytest.mark.parametrize("field", ["output", "context"])
def test_an_example_of_which_a_text_is_another_is_not_the_same(runs: tuple[Path, Path], field: str) -> None:
    file = runs[1] / "inputs" / "examples.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row | {field: "Something else."}) + "\n" for row in rows))
    found = run_difference(*runs)
    assert found.slices == ()
    assert says(found.remarks[0], "No example", "both")


def test_the_command_prints_tables_json_or_the_patch_alone(runs: tuple[Path, Path], cli: Any, sandbox: Path) -> None:
    code, out, _ = cli("diff", *runs)
    assert code == 0 and says(out, "test examples", "both")
    code, out, err = cli("diff", runs[0], "--patch", "--json")
    assert (code, out) == (2, "") and says(err, "--patch", "--json", "not")
    code, out, _ = cli("diff", runs[0], "--patch")
    assert code == 0 and out == (runs[0] / "changes.diff").read_text()
    code, out, _ = cli("diff", *runs, "--json")
    assert code == 0 and json.loads(out)["slices"][0]["value"] == ALL
    scores = runs[1] / "verdicts" / "scores.jsonl"
    scores.write_text(scores.read_text() + '{"version": "x", "example": "e"}\n')
    lines = len(scores.read_text().splitlines())
    code, _, err = cli("diff", *runs)
    assert code == 2 and f"scores.jsonl, line {lines}" in err and "version" in err
    assert cli("diff", sandbox / "gone").code == 2
