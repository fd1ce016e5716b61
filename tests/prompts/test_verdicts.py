from __future__ import annotations

import io
import json

from askance.prompts.templates import render, template
from askance.prompts.verdicts import Verdict, write_verdicts


def test_a_verdict_without_an_answer_has_no_score() -> None:
    failed = Verdict("e", "q", "m", "p", None, status="parse_error", error="why")
    assert failed.score(soft=True) is None
    assert failed.score(soft=False) is None


def test_soft_scores_are_probabilities_and_hard_ones_are_not() -> None:
    verdict = Verdict("e", "q", "m", "p", False, 0.4, "logprob")
    assert (verdict.score(soft=True), verdict.score(soft=False)) == (0.4, 0.0)


def test_verdicts_are_written_one_a_line_in_order_with_the_fields_of_the_interface() -> None:
    file = io.StringIO()
    write_verdicts(
        [Verdict("é", "q", "m", "p", True, 1.0, "hard"), Verdict("b", "q", "m", "p", None, replicate=2)], file
    )
    first, second = map(json.loads, file.getvalue().splitlines())
    assert list(first) == (
        ["example", "question", "model", "prompt", "answer", "p_yes", "p_yes_from", "explanation", "status", "error"]
    )
    assert "é" in file.getvalue()
    assert second["replicate"] == 2


def test_templates_are_filled_once() -> None:
    lesson = "use {listed} and {{braces}}"
    assert render("deduplicator_case", lesson=lesson, listed="1. x").startswith(f"New lesson: {lesson}\n")
    assert not template("evaluator").endswith("\n")
