"""A small run of the measurement: what is counted, not how long it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.models.direct import read_logprobs
from askance.models.replies.yes_no import p_yes_at
from tests.measured import overhead
from tests.measured.overhead import AIMS, QUESTIONS, STARTED, Size, as_text, run
from tests.measured.overhead_processes import answer

SMALL = Size(calls=30, runs=1, examples=12, starts=1)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run(SMALL)


def test_cold_run_buys_every_verdict_once_and_warm_runs_buy_none(result: dict[str, Any]) -> None:
    verdicts = SMALL.examples * QUESTIONS
    runs = result["large"]["runs"]
    counts = {name: (row["verdicts"], row["calls"], row["reused"]) for name, row in runs.items()}
    assert counts == {
        "cold": (verdicts, verdicts, 0),
        "warm": (verdicts, 0, verdicts),
        "warm, human scores": (verdicts, 0, verdicts),
    }
    assert [row["correlations"] for row in runs.values()] == [0, 0, 2]


def test_every_aim_is_compared_and_every_figure_is_there(result: dict[str, Any]) -> None:
    assert list(result["aims"]) == list(AIMS)
    assert all(row["reached"] > 0 for row in result["aims"].values())
    assert len(result["question"]["askance_cpu_ms"]) == len(result["question"]["aiohttp_cpu_ms"]) == SMALL.runs
    assert list(result["start_up"]) == list(STARTED)
    assert result["large"]["store_bytes_per_verdict"] > 0


def test_import_and_help_load_no_large_package(result: dict[str, Any]) -> None:
    assert result["start_up"]["import askance"]["heavy_packages"] == []
    assert result["start_up"]["askance --help"]["heavy_packages"] == []


def test_result_can_be_written_and_shown(result: dict[str, Any]) -> None:
    assert json.loads(json.dumps(result)) == result
    assert list(result["start_up"]) == list(STARTED)
    text = as_text(result)
    assert all(name in text for name in AIMS)


def test_command_writes_the_result_where_it_is_told(
    result: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(overhead, "run", lambda size: result)
    assert overhead.main(["--quick", "-o", str(tmp_path / "new" / "overhead.json")]) == 0
    assert json.loads((tmp_path / "new" / "overhead.json").read_text()) == result
    assert "help_wall_s" in capsys.readouterr().out


def test_stand_in_answers_the_same_question_alike_with_as_many_alternatives_as_asked_for() -> None:
    body = {"messages": [{"role": "user", "content": "Is it so?"}], "logprobs": True, "top_logprobs": 20}
    assert answer(body) == answer(body)
    choice = answer(body)["choices"][0]
    top = choice["logprobs"]["content"][0]["top_logprobs"]
    assert len(top) == 20
    assert all(each["logprob"] < 0 for each in top)
    kept = read_logprobs(choice["logprobs"])
    assert kept is not None
    assert p_yes_at(kept[0][1]) == p_yes_at([(each["token"], round(each["logprob"], 4)) for each in top])
