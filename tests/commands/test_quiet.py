"""``--quiet``: no progress, no messages and no warnings."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from askance.cli import main
from askance.prompts.checklist import load_checklist
from askance.testing import StandInServer

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("command", ["evaluate", "diagnose"])
def test_quiet_says_nothing_of_the_file_that_was_written(
    world: Any, sandbox: Path, capsys: pytest.CaptureFixture[str], command: str, quiet: bool
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]
    with StandInServer(lambda body: 0.9) as server:
        judge = ["--model", "openai/judge", "--api-base", server.url, "-o", "verdicts.jsonl"]
        with pytest.raises(SystemExit) as ended:
            main([command, data, *checklist, *judge, *(["--quiet"] if quiet else [])])
    said = capsys.readouterr().err
    assert ended.value.code == 0 and Path("verdicts.jsonl").exists()
    assert said == "" if quiet else "verdicts are in verdicts.jsonl" in said


def test_quiet_keeps_warnings_about_weights_back_and_only_while_it_lasts(
    world: Any, sandbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, *checklist = world.write(sandbox / "files")[:3]
    weights = {each.id: 1.0 for each in load_checklist(checklist[1]).questions}
    Path("weights.json").write_text(json.dumps({"scores": "hard", "weights": weights}), encoding="utf-8")
    judge = ["--model", "openai/judge", "--api-base", "http://127.0.0.1:1", "--weights", "weights.json", "--dry-run"]

    def evaluate(*more: str) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", data, *checklist, *judge, *more])
        assert ended.value.code == 0

    before = logging.getLogger("askance").level
    evaluate("--quiet")
    assert not caplog.records
    assert logging.getLogger("askance").level == before
    evaluate()
    assert "learned from hard scores" in caplog.text
