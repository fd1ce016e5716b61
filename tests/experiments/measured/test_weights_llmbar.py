from __future__ import annotations

import json
import re
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.experiments.command_line import write_result
from askance.experiments.measured import weights_llmbar
from askance.experiments.measured.weights_all_learners import accuracy_of_each_test
from askance.experiments.measured.weights_llmbar import Design, as_text, main, measure
from askance.models.base import Answer, Request
from askance.optimizer.weights import preference_scores
from askance.prompts.checklist import load_checklist
from askance.testing import Reply, ScriptedModel

pytestmark = pytest.mark.usefixtures("sandbox")
PAIRS = 24


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = []
    for n in range(PAIRS):
        a = n % 9
        b = (a + 1 + n % 7) % 9
        row = {"id": str(n), "input": f"Ask {n}.", "output_a": f"secret <{a}>", "output_b": f"secret <{b}>"}
        rows.append(row | {"preferred": "a" if a > b else "b"})
    path = tmp_path / "llmbar_natural.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def likely(masses: dict[str, float]) -> Answer:
    said = max(masses, key=lambda token: masses[token])
    return Answer(said, ((said, tuple((token, round(log(mass), 4)) for token, mass in masses.items())),))


def script(request: Request) -> Reply:
    text = request.messages[-1][1]
    shown = [int(each) for each in re.findall(r"secret <(\d)>", text)]
    if len(shown) == 2:
        p = min(max(0.55 + (shown[0] - shown[1]) / 20, 0.05), 0.95)
        return likely({"1": p, "2": 1 - p})
    p = (shown[0] + 0.5) / 10
    return likely({"5": p, "1": 1 - p}) if "from 1 to 5" in text else p


def test_every_kind_of_score_is_bought_and_every_learner_is_shown(data: Path, tmp_path: Path) -> None:
    model = ScriptedModel(script)
    result = measure(Design(data, model, expected=True, pairwise=True, slow=False))
    assert list(result["scores"]) == ["soft", "hard", "expected 1 to 5", "pairwise, both orders"]
    assert len(model.requests) == result["verdicts"] == 3 * 2 * 8 * PAIRS
    soft = result["scores"]["soft"]
    assert [row["test"] for row in soft["each_test"]] == [each.id for each in load_checklist("global").questions]
    assert soft["each_test"][0]["right"] + soft["each_test"][0]["score_ties"] == PAIRS
    assert {row["name"] for row in soft["cross_validated"]["learners"]} >= {"auto", "uniform", "logistic", "robust"}
    assert result["beats_uniform"]["soft"] == []
    assert result["scores"]["pairwise, both orders"]["position_bias"]["mean_p_first"] == pytest.approx(0.55, abs=0.03)
    write_result(tmp_path / "results" / "r.json", result)
    assert "secret" not in (tmp_path / "results" / "r.json").read_text(encoding="utf-8")
    assert "24 pairs of llmbar_natural.jsonl" in as_text(result)


def test_more_pairs_buy_only_what_is_new(data: Path) -> None:
    model = ScriptedModel(script)
    assert measure(Design(data, model, limit=10, slow=False))["pairs"] == 10
    assert len(model.requests) == 160
    measure(Design(data, model, limit=12, slow=False))
    assert len(model.requests) == 192


def test_where_time_is_up_the_pairs_judged_so_far_are_used(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(script)
    result = measure(Design(data, model, minutes=0.0, slow=False))
    assert (result["pairs"], len(model.requests)) == (5, 80)
    assert measure(Design(data, model, minutes=5.0, slow=False))["pairs"] == PAIRS
    assert len(model.requests) == 16 * PAIRS
    assert "5 pairs judged" in capsys.readouterr().err


def test_the_command_writes_the_result_with_itself_in_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Design] = []

    def fake(design: Design) -> dict[str, Any]:
        seen.append(design)
        return measure(Design(design.data, ScriptedModel(script), limit=design.limit, slow=False))

    monkeypatch.setattr(weights_llmbar, "measure", fake)
    output = tmp_path / "r.json"
    given = [
        str(data),
        "--model",
        "openai/q",
        "--api-base",
        "http://x/v1",
        "--limit",
        "12",
        "--quick",
        "-o",
        str(output),
    ]
    assert main(given) == 0
    assert (seen[0].api_base, seen[0].slow, seen[0].max_concurrency) == ("http://x/v1", False, 1)
    command = json.loads(output.read_text(encoding="utf-8"))["command"]
    assert (
        command
        == "python -m askance.experiments.measured.weights_llmbar llmbar_natural.jsonl --model MODEL --limit 12 --quick"
    )
    assert "soft:" in capsys.readouterr().out


def test_bad_input_is_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.jsonl").write_text("{}", encoding="utf-8")
    assert main([str(tmp_path / "p.jsonl"), "--model", "openai/q"]) == 2
    assert "line 1" in capsys.readouterr().err


def test_each_test_is_counted_on_decided_pairs_with_ties_as_halves() -> None:
    a = [[1.0, 0.5], [1.0, 0.5], [0.0, 0.5], [0.3, 1.0]]
    b = [[0.0, 0.5], [0.5, 0.5], [1.0, 0.0], [0.3, 0.0]]
    pairs = preference_scores(["1", "2", "3", "4"], ["q", "r"], a, b, ["a", "a", "a", "tie"])
    first, second = accuracy_of_each_test(pairs)
    assert (first["accuracy"], first["right"], first["score_ties"], first["wrong"]) == (pytest.approx(2 / 3), 2, 0, 1)
    assert (second["accuracy"], second["right"], second["score_ties"]) == (pytest.approx(2 / 3), 1, 2)
    assert first["low"] <= first["accuracy"] <= first["high"]


def test_a_number_that_is_none_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path / "r.json", {"x": float(np.nan)})
