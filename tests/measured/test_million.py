"""A small run of the measurement: what is counted, not how long it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.prompts.errors import AskanceError
from askance.prompts.verdicts import read_verdicts
from tests.measured import million


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("million")


def test_every_command_is_measured_and_every_verdict_comes_from_the_store(folder: Path) -> None:
    result = million.run(40, folder)
    assert list(result["commands"]) == list(million.commands(folder))
    assert all(row["cpu_s"] > 0 and row["peak_mb"] > 10 for row in result["commands"].values())
    verdicts = read_verdicts(folder / "verdicts.jsonl")
    assert (len(verdicts), result["verdicts"]) == (400, 400)
    assert {each.status for each in verdicts} == {"ok"}
    assert len({each.p_yes for each in verdicts}) > 300
    text = million.as_text(result)
    assert all(name in text for name in result["commands"])
    assert json.loads(json.dumps(result)) == result


def test_a_command_that_fails_is_an_error_and_no_figure(folder: Path) -> None:
    with pytest.raises(AskanceError, match="no such file"):
        million.measured(["diagnose", "absent.jsonl", "--checklist=absent.yaml", "--verdicts=absent.jsonl"], folder)
