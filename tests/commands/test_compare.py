"""``askance compare`` against a stand-in server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click.testing
import pytest

from askance.commands.compare import command
from askance.prompts.errors import AskanceError, CoverageError, InputError
from askance.testing import StandInServer

from ..said import naming, says

SIZE = 12


def script(body: Mapping[str, Any]) -> str | float:
    text = body["messages"][-1]["content"]
    number = int(re.findall(r"<(\d+)>", body["messages"][0]["content"])[0])
    if "number from" in text:
        return "perhaps" if number == 5 else str(1 + number % 5)
    return 0.1 + 0.2 * (number % 4)


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(script) as server:
        yield server


@pytest.fixture
def arguments(sandbox: Path, server: StandInServer) -> list[str]:
    rows = [
        {"id": f"e{n}", "input": f"In {n}.", "output": f"<{n}>", "human": {"quality": n % 5, "wit": n % 3}}
        for n in range(SIZE)
    ]
    (sandbox / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (sandbox / "c.yaml").write_text(
        "task: Write\nquestions:\n  - {id: a, text: Good?, dimension: quality}\n  - {id: b, text: Fun?, dimension: wit}\n".replace(
            "Good?", '"Is it good?"'
        ).replace("Fun?", '"Is it fun?"')
    )
    return [
        "data.jsonl",
        "--model",
        "openai/m",
        "--api-base",
        server.url,
        "--checklist",
        "c.yaml",
        "--resamples",
        "100",
    ]


def run(arguments: list[str]) -> click.testing.Result:
    result = click.testing.CliRunner().invoke(command, arguments, catch_exceptions=True)
    if isinstance(result.exception, AskanceError):
        raise result.exception
    return result


def test_the_tables_name_every_judge_the_number_of_examples_and_the_corrected_differences(arguments: list[str]) -> None:
    shown = run([*arguments, "--judge", "binary,direct", "--quiet", "--min-coverage", "0.9"])
    assert shown.exit_code == 0, shown.output
    assert "2 judges on 12 examples" in shown.output
    assert says(shown.output, "11 examples", "every judge")
    assert "direct 22/24" in shown.output
    for words in ("Spearman", "agreement", "QWK", "upfront", "p (Holm)", "Spearman against binary", "always"):
        assert words in shown.output


def test_json_goes_to_standard_output_and_every_score_to_the_file(arguments: list[str], sandbox: Path) -> None:
    shown = run([*arguments, "--judge", "binary,unieval", "--json", "--quiet", "-o", "out.json"])
    said = json.loads(shown.stdout)
    kept = json.loads((sandbox / "out.json").read_text())
    assert said["compared_on"] == SIZE
    assert "ratings" not in said
    assert len(kept["ratings"]["binary"]) == 2 * SIZE
    assert kept["judges"] == said["judges"]


def test_where_the_comparison_is_is_said(arguments: list[str]) -> None:
    assert "is in out.json." in run([*arguments, "--judge", "binary", "-o", "out.json"]).stderr


def test_a_second_run_asks_nothing(arguments: list[str], server: StandInServer) -> None:
    run([*arguments, "--judge", "binary,unieval", "--quiet"])
    asked = len(server.bodies)
    again = json.loads(run([*arguments, "--judge", "unieval,binary", "--quiet", "--json"]).stdout)
    assert len(server.bodies) == asked
    assert again["calls"] == 0
    assert again["judges"][1]["cost"]["per_example"]["calls"] == 2


def test_a_dry_run_names_the_calls_of_each_judge_and_makes_none(arguments: list[str], server: StandInServer) -> None:
    shown = run([*arguments, "--judge", "binary,poll,geval", "--dry-run"])
    assert not server.bodies
    assert re.search(rf"poll +\d+ +{2 * 3 * SIZE}\b", shown.output)
    data = json.loads(run([*arguments, "--judge", "binary,poll,geval", "--dry-run", "--json"]).stdout)
    assert data["geval"]["calls"] == 2 * SIZE + 2


def test_candidates_that_no_judge_asks_are_refused(arguments: list[str], server: StandInServer) -> None:
    with pytest.raises(InputError, match=naming("--candidates", "random_k", "all_candidates")):
        run([*arguments, "--judge", "binary,direct", "--candidates", "c.yaml"])
    assert not server.bodies


def test_models_and_prompts_may_be_given_several_times(arguments: list[str], sandbox: Path) -> None:
    for name in ("strict", "kind"):
        (sandbox / f"{name}.md").write_text(f"{{input}} {{output}}\nBe {name}.\n{{question}}\n")
    more = [
        "--model",
        "openai/n",
        "--prompt",
        "strict.md",
        "--prompt",
        "kind.md",
        "--judge",
        "binary,direct",
        "--min-coverage",
        "0.9",
        "--quiet",
    ]
    planned = json.loads(run([*arguments, *more, "--dry-run", "--json"]).stdout)
    assert {name: each["calls"] for name, each in planned.items()} == {
        **{f"binary · openai/{model} · {name}.md": 2 * SIZE for model in "mn" for name in ("strict", "kind")},
        **{f"direct · openai/{model}": 2 * SIZE for model in "mn"},
    }
    shown = run([*arguments, *more])
    assert shown.exit_code == 0, shown.output
    assert "6 judges on 12 examples by openai/m, openai/n" in shown.output
    assert "binary · openai/n · kind.md" in shown.output
    (sandbox / "askance.yaml").write_text("model: [openai/m, openai/n]\nprompt: [strict.md, kind.md]\n")
    rest = [each for each in arguments if each not in ("--model", "openai/m")]
    again = run([*rest, "--config", "askance.yaml", "--judge", "binary", "--quiet", "--json"])
    data = json.loads(again.stdout)
    assert [row["judge"] for row in data["judges"]] == [
        f"openai/{model} · {name}.md" for model in "mn" for name in ("strict", "kind")
    ]
    assert data["calls"] == 0


def test_one_dimension_may_be_chosen(arguments: list[str]) -> None:
    shown = run([*arguments, "--judge", "binary", "--dimension", "wit", "--json", "--quiet"])
    assert json.loads(shown.stdout)["dimensions"] == ["wit"]


def test_settings_may_stand_in_a_file(arguments: list[str], sandbox: Path, server: StandInServer) -> None:
    (sandbox / "askance.yaml").write_text(
        f"data: data.jsonl\nmodel: openai/m\napi_base: {server.url}\nchecklist: c.yaml\nresamples: 100\n"
        "judges: [binary, unieval]\npoints: 3\n"
    )
    data = json.loads(run(["--config", "askance.yaml", "--json", "--quiet"]).stdout)
    assert [row["judge"] for row in data["judges"]] == ["binary", "unieval"]
    assert data["points"] == 3


def test_a_data_set_is_read_as_its_authors_publish_it(arguments: list[str], sandbox: Path) -> None:
    rows = [
        {
            "article": f"In <{n}>.",
            "summary_sentences": [{"sentence": f"<{n}>", "responses": [{"response": "yes" if n % 2 else "no"}]}],
        }
        for n in range(SIZE)
    ]
    (sandbox / "mturk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = run(["mturk.jsonl", *arguments[1:5], "--dataset", "qags", "--judge", "unieval", "--json", "--quiet"])
    assert json.loads(shown.stdout)["dimensions"] == ["consistency"]


def test_what_is_missing_is_named(arguments: list[str]) -> None:
    with pytest.raises(InputError, match="--judge is needed"):
        run(arguments)
    with pytest.raises(InputError, match="--model is needed"):
        run([each for each in [*arguments, "--judge", "direct"] if each not in ("--model", "openai/m")])
    with pytest.raises(InputError, match="openai/m is named twice"):
        run([*arguments, "--model", "openai/m", "--judge", "direct"])
    with pytest.raises(InputError, match="DATA is needed"):
        run(["--model", "openai/m", "--judge", "direct"])
    with pytest.raises(InputError, match="no judge 'best'"):
        run([*arguments, "--judge", "best"])
    with pytest.raises(InputError, match=naming("'binary'", "checklist's questions")):
        run(["data.jsonl", "--model", "openai/m", "--api-base", arguments[4], "--judge", "binary"])


def test_too_few_scores_are_an_error_of_their_own(arguments: list[str]) -> None:
    with pytest.raises(CoverageError, match=r"'direct' gave only 91\.7%"):
        run([*arguments, "--judge", "binary,direct", "--min-coverage", "0.95", "--quiet"])
