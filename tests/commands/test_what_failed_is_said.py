"""What the commands say where something failed or is undefined, and how they end."""

from __future__ import annotations

import json

import pytest

from askance.testing import StandInServer

from ..said import says


@pytest.fixture
def run(sandbox, cli):
    rows = [{"id": str(n), "input": f"i{n}", "output": f"o{n}", "human": {"d": n % 5}} for n in range(12)]
    (sandbox / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    checklist = "task: t\nquestions:\n  - {id: facts, text: 'Right?', dimension: d}\n"
    (sandbox / "checklist.yaml").write_text(checklist, encoding="utf-8")
    (sandbox / "writer.md").write_text("Write.", encoding="utf-8")
    (sandbox / "checks.py").write_text("def f(example):\n    return example.nothing\n", encoding="utf-8")
    return cli


def test_a_run_without_one_verdict_is_no_success_and_says_what_failed(run):
    with StandInServer(lambda body: "A text.") as server:
        code, _, err = run(
            *("tune", "data.jsonl", "--prompt", "writer.md", "--generator", "openai/g", "--checker", "checks.py:f"),
            *("--api-base", server.url, "--run", "run"),
        )
    assert code == 4
    assert "'Example' object has no attribute 'nothing' (in checks.py:f, line 2)" in err
    assert says(err, "Not one verdict")
    assert "askance resume run" in err


def test_a_missing_calibration_is_told_before_a_call_is_bought(run):
    with StandInServer(lambda body: 0.7) as server:
        code, _, err = run(
            *("evaluate", "data.jsonl", "--checklist", "checklist.yaml", "--model", "openai/j"),
            *("--api-base", server.url, "--calibration", "no.json"),
        )
    assert code == 2
    assert says(err, "no such calibration")
    assert server.bodies == []


def test_why_a_correlation_is_undefined_stands_under_the_table_once(run):
    with StandInServer(lambda body: 0.7) as server:
        code, out, _ = run(
            *("evaluate", "data.jsonl", "--checklist", "checklist.yaml", "--model", "openai/j"),
            *("--api-base", server.url, "--limit", 2),
        )
    assert code == 0
    assert out.count("fewer than 3 items") == 1
    assert says(out, "d, spearman; d, kendall; d, pearson", "fewer than 3", "are 2")


def test_watching_a_run_that_is_not_there_says_how_to_wait_for_it(run):
    code, _, err = run("watch", "run")
    assert code == 2
    assert "askance watch run --wait" in err


def test_human_scores_that_nobody_gave_are_asked_for_in_the_form_that_they_need(run, sandbox):
    (sandbox / "bare.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "input": "i", "output": "o"}) + "\n" for n in range(12)), encoding="utf-8"
    )
    code, _, err = run(
        *("align", "bare.jsonl", "--checklist", "checklist.yaml", "--model", "openai/j"),
        *("--api-base", "http://127.0.0.1:9/v1", "--run", "run"),
    )
    assert code == 2
    assert says(err, "No example", '"human": {"d": 4}')


def test_a_column_that_looks_like_peoples_scores_is_proposed_where_no_example_has_any(run, sandbox):
    rows = [{"id": str(n), "input": "i", "output": f"o{n}", "rating": n % 5} for n in range(12)]
    (sandbox / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, _, err = run(
        *("align", "bare.jsonl", "--checklist", "checklist.yaml", "--model", "openai/j"),
        *("--api-base", "http://127.0.0.1:9/v1", "--run", "run"),
    )
    assert code == 2
    assert says(err, "--field human.overall=rating")
