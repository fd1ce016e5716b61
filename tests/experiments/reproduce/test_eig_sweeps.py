"""The sweeps of the EIG paper run from end to end on scripted judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.reproduce import eig_sweeps
from askance.models.base import Request
from askance.prompts.errors import InputError
from askance.testing import Reply, ScriptedModel

from ...said import naming
from .test_bineval_and_eig import summaries


def obliging(request: Request) -> Reply:
    text, schema = request.messages[-1][1], request.parameters.schema
    if schema is not None and "overall_rating" in schema["properties"]:
        answers = dict.fromkeys(schema["properties"], "yes" if "...." in text else "no")
        return json.dumps(answers | {"overall_rating": 4 if "...." in text else 2})
    if schema is not None:
        texts = ("Is it right?", "Is it short?")
        new = [{"text": each, "violation": "It is not.", "dimension": "consistency"} for each in texts]
        return json.dumps({"questions": new})
    number = 1 + (len(text) + (request.parameters.seed or 0)) % (2 if "to 2" in text else 3)
    return str(number) if "number from" in text else ("no", "yes")["...." in text]


def sweep(tmp_path: Path, name: str, *options: str, models: Any = None) -> list[dict[str, Any]]:
    data, out = tmp_path / "s.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in summaries(5)), encoding="utf-8")
    given = eig_sweeps._parser().parse_args(
        [name, "summeval", "--data", str(data), "--resamples", "100", "-o", str(out), "--model", "m", *options]
    )
    model = ScriptedModel(obliging, slots=1)
    how: dict[str, Any] = {"no_cache": True}
    eig_sweeps.run(given, models or {"m": model}, **how)
    rows: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))["rows"]
    return rows


def test_a_row_for_each_size_and_judge_with_kappa_self_and_agreement(tmp_path: Path) -> None:
    rows = sweep(tmp_path, "k", "--sizes", "1,3", "--judges", "binary,questionnaire,filled")
    cells = [(row["k"], row["judge"]) for row in rows]
    assert cells == [(k, judge) for k in (1, 3) for judge in ("binary", "questionnaire", "filled")]
    assert [len(row["questions"]) for row in rows] == [1] * 3 + [3] * 3
    assert rows[0]["questions"] == rows[3]["questions"][:1], "the first questions of one order"
    assert all({"kappa_self", "observed_agreement"} <= set(row) for row in rows)
    with pytest.raises(InputError, match=naming("only", "candidates")):
        sweep(tmp_path, "k", "--sizes", "99")


def test_a_row_for_each_proposer_and_each_judge(tmp_path: Path) -> None:
    models = {name: ScriptedModel(obliging, name=name, slots=1) for name in ("a", "b", "c")}
    rows = sweep(
        tmp_path, "grid", "--proposers", "a,b", "--evaluators", "b,c", "-k", "2", "--judges", "binary", models=models
    )
    assert [(row["proposer"], row["model"]) for row in rows] == [("a", "b"), ("a", "c"), ("b", "b"), ("b", "c")]
    assert all(len(row["questions"]) == 2 for row in rows)
    asked_to_propose = {
        name for name, model in models.items() if any(each.parameters.schema is not None for each in model.requests)
    }
    assert asked_to_propose == {"a", "b"}


def test_a_row_for_each_kind_of_answers_says_how_stable_the_ranking_is(tmp_path: Path) -> None:
    rows = sweep(tmp_path, "levels", "--levels", "2,3", "-k", "2")
    assert [row["levels"] for row in rows] == [2, 3]
    assert all(row["ranking"][-1]["m"] == 15 and row["bits"] is not None for row in rows)


def test_both_ways_to_fill_stand_beside_each_other(tmp_path: Path) -> None:
    apart, together = sweep(tmp_path, "filling", "-k", "2")
    assert (apart["filling"], together["filling"]) == ("apart", "together")
    assert together["calls"] < apart["calls"] / 2
    assert 0 <= together["same"] <= 1 and "same" not in apart


def test_the_command_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert eig_sweeps.main(["levels", "qags", "--data", "missing.jsonl"]) == 2
    assert "missing.jsonl" in capsys.readouterr().err
