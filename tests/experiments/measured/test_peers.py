"""A small run of the measurement with the one client that is always there: what is counted, not how long it takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.measured.peers import __main__ as peers
from askance.experiments.measured.peers.client import TOOLS
from askance.experiments.measured.peers.runs import PACKAGES
from askance.prompts.errors import AskanceError

from ...said import naming


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return peers.run({"aiohttp": Path(sys.executable)}, 20, 1)


def test_every_figure_is_there_for_each_client_and_for_askance(result: dict[str, Any]) -> None:
    assert list(result["clients"]) == ["aiohttp", peers.OURS]
    for row in result["clients"].values():
        assert all(row[column] > 0 for column in peers.COLUMNS)
        assert row["peak_mb"] > 15 and row["installed_mb"] > 5
    assert json.loads(json.dumps(result)) == result
    text = peers.as_text(result)
    assert f"aiohttp {result['clients']['aiohttp']['version']}" in text and peers.OURS in text


def test_a_client_that_is_not_answered_is_an_error_and_no_figure() -> None:
    said = "import json; print(json.dumps({'answered': 3}))"
    with pytest.raises(AskanceError, match=naming("3 of 20 calls")):
        peers.measured([sys.executable, "-c", said], 20)
    with pytest.raises(AskanceError, match="no such tool"):
        peers.measured([sys.executable, "-c", "raise SystemExit('no such tool')"], 20)


def test_every_tool_has_a_client_and_packages() -> None:
    assert {*peers.TOOLS} == {*TOOLS} <= {*PACKAGES}


@pytest.mark.parametrize("wrong", [[], ["--directory", "d", "--calls", "25"], ["--directory", "d", "--runs", "0"]])
def test_what_cannot_be_measured_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        peers.main(wrong)
    assert ended.value.code == 2
