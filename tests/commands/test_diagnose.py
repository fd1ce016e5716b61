"""``askance diagnose`` on the command line."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.cli import main
from askance.testing import StandInServer

from ..said import says

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.fixture
def run(cli: Any) -> Any:
    return partial(cli, "diagnose")


@pytest.fixture
def files(world: Any, sandbox: Path) -> list[str]:
    """Data and checklist."""
    arguments: list[str] = world.write(sandbox / "files")
    return arguments[:3]


@pytest.fixture
def buying(files: list[str], server: StandInServer) -> list[str]:
    return [*files, "--model", "openai/target", "--api-base", server.url]


def test_tables_are_printed_and_that_nothing_calls_for_a_change(run: Any, buying: list[str]) -> None:
    code, out, _ = run(*buying)
    assert code == 0
    assert "2 questions on 40 examples by openai/target" in out
    assert "coverage 80/80 verdicts = 100.0%" in out
    for title in (
        "the probability of yes and the answers agree with people",
        "independent",
        "least related, within a dimension",
        "80 calls",
    ):
        assert title in out
    assert "for a change.\nThe 2 questions that" in out
    assert "Worth acting on" not in out


def test_scores_from_answers_change_nothing_and_are_no_option_here(run: Any, buying: list[str], sandbox: Path) -> None:
    code, _, err = run(*buying, "--scores", "hard")
    assert code == 2 and says(err, "'hard'", "'soft'", "'expected'")
    (sandbox / "askance.yaml").write_text("scores: hard\n")
    assert run(*buying, "--config", "askance.yaml", "--quiet")[0] == 0


def test_verdicts_of_evaluate_are_diagnosed_without_a_call(
    run: Any, buying: list[str], files: list[str], server: StandInServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", *buying, "-o", "verdicts.jsonl", "--quiet"])
    asked = len(server.bodies)
    code, out, err = run(*files, "--verdicts", "verdicts.jsonl", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [question["id"] for question in found["questions"]] == ["facts", "words"]
    assert found["findings"]
    assert "calls" not in found
    assert len(server.bodies) == asked


def test_what_was_bought_can_be_kept_and_read_again(run: Any, buying: list[str], files: list[str]) -> None:
    first = run(*buying, "-o", "out/verdicts.jsonl", "--json", "--quiet")
    dry = run(*files, "--verdicts", "out/verdicts.jsonl", "-o", "other.jsonl", "--dry-run")
    assert "Nothing was bought." in dry[1] and not Path("other.jsonl").exists()
    code, _, err = run(*files, "--verdicts", "out/verdicts.jsonl", "--repeat", "2")
    assert (code, says(err, "repeat", "verdicts are there")) == (2, True)
    again = run(*files, "--verdicts", "out/verdicts.jsonl", "--json", "--quiet")
    one, two = json.loads(first[1]), json.loads(again[1])
    assert one["questions"] == two["questions"]


def test_a_dry_run_buys_nothing(run: Any, buying: list[str], server: StandInServer) -> None:
    code, out, _ = run(*buying, "--repeat", "2", "--pairs", "3", "--dry-run")
    assert code == 0
    assert "160 verdicts: 160 API calls" in out
    assert server.bodies == []


def test_repeats_show_a_column_of_flips(run: Any, buying: list[str]) -> None:
    assert "flips" not in run(*buying)[1]
    assert "flips" in run(*buying, "--repeat", "2")[1]


def test_settings_come_from_a_file_that_other_commands_use_too(run: Any, buying: list[str], sandbox: Path) -> None:
    run(*buying, "-o", "verdicts.jsonl", "--quiet")
    config = {"data": "files/data.jsonl", "checklist": "files/checklist.yaml", "pairs": 0, "max-iterations": 2}
    (sandbox / "askance.yaml").write_text(yaml.safe_dump(config | {"verdicts": "verdicts.jsonl"}), encoding="utf-8")
    code, out, _ = run("--config", "askance.yaml")
    assert code == 0
    assert "least related" not in out
    assert "2 questions on 40 examples" in out


def test_too_little_coverage_is_exit_code_4_and_names_the_errors(run: Any, files: list[str], sandbox: Path) -> None:
    row = {"example": "e000", "question": "facts", "model": "m", "prompt": "p", "answer": True}
    failed = row | {"example": "e001", "answer": None, "status": "api_error", "error": "The line was cut."}
    (sandbox / "v.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(failed) + "\n", encoding="utf-8")
    code, out, err = run(*files, "--verdicts", "v.jsonl", "--min-coverage", "0.9")
    assert code == 4
    assert "coverage 1/2 verdicts" in out
    assert says(err, "'e001'", "'facts'", "The line was cut.")
    assert says(err, "Only 50.0%", "verdicts")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model or --verdicts is needed"),
        (["--verdicts", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["--verdicts", "files/data.jsonl"], "files/data.jsonl, line 1: this is no verdict"),
    ],
)
def test_bad_input_is_exit_code_2_and_a_sentence(
    run: Any, files: list[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(*files, *arguments)
    assert (code, out) == (2, "")
    assert message in err
