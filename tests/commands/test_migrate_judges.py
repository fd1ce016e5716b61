"""``askance migrate`` of a prompt that judges: several targets, a recorded source, and going on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..said import says


@pytest.fixture
def several(inputs: list[str]) -> list[str]:
    """The arguments of a migration to two targets."""
    return [*inputs, "--target", "openai/other", "--max-iterations", "1"]


def test_two_targets_are_told_in_a_table_and_each_has_a_judge(cli: Any, several: list[str]) -> None:
    done = cli("migrate", *several, "--run", "run")
    assert done.code == 0
    certificate = json.loads(Path("run/certificate.json").read_text())
    assert set(certificate["targets"]) == {"openai/target", "openai/other"}
    for name, record in certificate["targets"].items():
        assert says(done.out, name, f"{record['pass_rate']['old']['value']:.3f}"), "a row of the table"
        assert f"{name}: {record['reason']}" in done.out
    shown = cli("show", "run")
    assert shown.out == done.out
    assert json.loads(cli("show", "run", "--json").out) == certificate
    assert cli("show", "run/targets/openai__other").code == 0
    page = Path("run/report.html").read_text()
    assert "openai/target" in page and "openai/other" in page and certificate["measure"].partition("'")[0] in page


def test_the_json_of_two_targets_is_the_certificate(cli: Any, several: list[str]) -> None:
    done = cli("migrate", *several, "--run", "run", "--json", "--quiet")
    assert json.loads(done.out) == json.loads(Path("run/certificate.json").read_text())


def test_a_directory_of_two_judges_is_refused_where_one_is_needed(
    cli: Any, several: list[str], inputs: list[str]
) -> None:
    cli("migrate", *several, "--run", "run", "--quiet")
    done = cli("evaluate", inputs[0], "--judge", "run")
    assert done.code == 2
    assert says(done.err, "run/targets/openai__target", "run/targets/openai__other")
    api = inputs[inputs.index("--api-base") :]
    assert cli("evaluate", inputs[0], "--judge", "run/targets/openai__other", *api, "--quiet").code == 0


def test_a_cap_of_both_ends_with_3_and_resume_goes_on_with_more(cli: Any, several: list[str]) -> None:
    assert cli("migrate", *several, "--run", "whole", "--quiet").code == 0
    calls = json.loads(Path("whole/targets/openai__target/result.json").read_text())["calls"]
    capped = cli("migrate", *several, "--run", "run", "--call-budget", calls + 50)
    assert capped.code == 3
    assert says(capped.err, "openai/other", "askance resume run --call-budget")
    assert not Path("run/certificate.json").exists()
    done = cli("resume", "run", "--call-budget", "3000", "--quiet")
    assert done.code == 0
    whole, resumed = (json.loads(Path(f"{run}/certificate.json").read_text()) for run in ("whole", "run"))
    assert resumed == whole


def test_one_target_may_go_on_for_longer_and_the_certificate_follows(cli: Any, several: list[str]) -> None:
    assert cli("migrate", *several, "--run", "run", "--quiet").code == 0
    refused = cli("resume", "run", "--max-iterations", "3")
    assert refused.code == 2 and says(refused.err, "max_iterations", "run/targets/NAME")
    assert cli("resume", "run/targets/openai__other", "--max-iterations", "3", "--quiet").code == 0
    assert cli("resume", "run", "--quiet").code == 0
    certificate = json.loads(Path("run/certificate.json").read_text())
    assert certificate["looks"] == 2
    result = json.loads(Path("run/targets/openai__other/result.json").read_text())
    assert certificate["targets"]["openai/other"]["reason"] == result["certificate"]["reason"]


def test_a_dry_run_counts_the_source_once(cli: Any, several: list[str], inputs: list[str], server: Any) -> None:
    one = json.loads(cli("migrate", *inputs, "--max-iterations", "1", "--run", "run", "--dry-run", "--json").out)
    both = json.loads(cli("migrate", *several, "--run", "run", "--dry-run", "--json").out)
    assert both["calls"] == one["calls"] + 40 * 2
    assert both["calls"] < 2 * one["calls"]
    assert server.bodies == []


def test_a_recorded_source_is_a_column_of_the_data(cli: Any, inputs: list[str], world: Any, server: Any) -> None:
    file = Path(inputs[0])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        answers = {name: world.flaw(row["id"], name) is None for name in ("facts", "words")}
        row |= {"old": answers}
        del row["human"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = [*inputs, "--max-iterations", "1"]
    place = given.index("--source")
    given[place : place + 2] = ["--source", "recorded", "--judge-scores", "old"]
    place = given.index("--source-prompt")
    del given[place : place + 2]
    done = cli("migrate", *given, "--run", "run", "--quiet")
    assert done.code == 0, done.err
    assert {body["model"] for body in server.bodies} == {"target"}
    assert json.loads(Path("run/certificate.json").read_text())["source"] == "recorded"
    again = cli("resume", "run", "--quiet")
    assert again.code == 0 and again.out == done.out
    del rows[3]["old"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    refused = cli("migrate", *given, "--run", "other")
    assert refused.code == 2
    assert says(refused.err, "row 4", "old")


def test_two_targets_of_one_name_end_with_2(cli: Any, inputs: list[str]) -> None:
    done = cli("migrate", *inputs, "--target", "openai/target", "--run", "run")
    assert done.code == 2
    assert says(done.err, "openai/target", "twice")


def test_a_configuration_may_list_the_targets(cli: Any, inputs: list[str]) -> None:
    Path("askance.yaml").write_text("target: [openai/target, openai/other]\nmax_iterations: 1\n", encoding="utf-8")
    place = inputs.index("--target")
    given = [*inputs[:place], *inputs[place + 2 :]]
    assert cli("migrate", *given, "--config", "askance.yaml", "--run", "run", "--quiet").code == 0
    assert Path("run/targets/openai__other/judge.yaml").is_file()
