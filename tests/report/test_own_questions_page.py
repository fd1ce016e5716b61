"""The page of verdicts on questions that were written for each example alone."""

from __future__ import annotations

import json
from pathlib import Path

from askance.prompts.verdicts import Verdict, save_verdicts
from askance.report.any_result import write_report_of
from askance.report.verdicts_page import Beside, read_judging

HOSTILE = "</script><script>alert(1)</script>"


def write(folder: Path) -> Path:
    def verdict(example: str, question: str, p_yes: float | None, asked: str | None) -> Verdict:
        if p_yes is None:
            return Verdict(example, question, "m/j", "p", None, status="api_error", error="no questions were written")
        return Verdict(example, question, "m/j", "p", p_yes >= 0.5, p_yes, "logprob", asked=asked)

    verdicts = [
        verdict("e0", "q1", 0.9, f"Is it red? {HOSTILE}"),
        verdict("e0", "q2", 0.5, "Is it short?"),
        verdict("e1", "q1", 0.2, "Is it blue?"),
        verdict("e2", "q1", None, None),
    ]
    save_verdicts(folder / "own.jsonl", verdicts)
    rows = [{"id": f"e{k}", "input": "in", "output": "out", "human": {"overall": 3 - k}} for k in range(3)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder / "own.jsonl"


def test_each_example_is_scored_by_its_own_questions_and_one_without_any_has_no_score(tmp_path: Path) -> None:
    found = read_judging(write(tmp_path), Beside(data=tmp_path / "data.jsonl"))
    assert [each["overall"] for each in found.data["scores"]] == [0.7, 0.2, None]
    assert found.data["agreement"]["overall"]["pooled"]["n"] == 2
    assert found.data["coverage"]["share"] == 0.75
    assert list(found.data["own_questions"]) == ["e0", "e1"]


def test_the_page_says_what_was_asked_of_each_example_and_runs_none_of_it(tmp_path: Path) -> None:
    page = write_report_of(write(tmp_path)).read_text(encoding="utf-8")
    assert "3 questions, each example&#39;s own, on 3 examples" in page
    assert "Is it blue?" in page
    assert HOSTILE not in page
    assert "that are yes" not in page
