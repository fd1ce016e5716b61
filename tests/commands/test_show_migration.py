"""``askance show`` and ``askance report`` of a migration's directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..migrated import TESTS, Target, write_migration
from ..said import says


def test_show_prints_a_line_a_target_and_the_decisions(cli: Any, tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("vendor/a", TESTS), Target("b", TESTS, "not_yet", "Not yet: it lost.")])
    done = cli("show", tmp_path)
    assert done.code == 0
    assert says(done.out, "vendor/a", "adopt", "0.840")
    assert says(done.out, "b", "not yet", "0.840")
    assert says(done.out, "b: Not yet", "it lost")


def test_show_prints_the_certificate_as_json(cli: Any, tmp_path: Path) -> None:
    found = write_migration(tmp_path, [Target("vendor/a", TESTS)])
    assert json.loads(cli("show", tmp_path, "--json").out) == found.model_dump(mode="json")
    assert "from" in json.loads(cli("show", tmp_path, "--json").out)["requirements"][0]


def test_show_of_a_target_is_that_of_its_run(cli: Any, tmp_path: Path) -> None:
    write_migration(tmp_path, [Target("vendor/a", TESTS)])
    done = cli("show", tmp_path / "targets" / "vendor__a")
    assert done.code == 0
    assert says(done.out, "tune in", tmp_path / "targets" / "vendor__a")


def test_report_writes_the_page_where_it_is_told(cli: Any, tmp_path: Path) -> None:
    write_migration(tmp_path / "run", [Target("vendor/a", TESTS)])
    assert cli("report", tmp_path / "run").out.split() == [str(tmp_path / "run" / "report.html")]
    assert cli("report", tmp_path / "run", "-o", tmp_path / "page.html").code == 0
    assert "vendor/a" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [["--diff"], ["--why", "Be brief."], ["--graph", "graph.json"]])
def test_what_only_a_target_can_answer_is_refused_with_its_folder(cli: Any, tmp_path: Path, options: list[str]) -> None:
    write_migration(tmp_path, [Target("vendor/a", TESTS)])
    done = cli("show", tmp_path, *options)
    assert done.code == 2
    assert str(tmp_path / "targets" / "vendor__a") in done.err


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_migration_that_is_not_finished_says_how_to_go_on(cli: Any, tmp_path: Path, command: str) -> None:
    write_migration(tmp_path, [Target("vendor/a", TESTS)])
    (tmp_path / "certificate.json").unlink()
    done = cli(command, tmp_path)
    assert done.code == 2
    assert f"askance resume {tmp_path}" in done.err


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_damaged_certificate_is_an_error_of_the_input(cli: Any, tmp_path: Path, command: str) -> None:
    write_migration(tmp_path, [Target("vendor/a", TESTS)])
    (tmp_path / "certificate.json").write_text('{"kind": "generator"}')
    done = cli(command, tmp_path)
    assert done.code == 2
    assert says(done.err, "certificate.json", "damaged")
