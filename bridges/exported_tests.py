"""Tests of outputs against requirements: a share of the outputs keeps each one, as ``LEAST`` says.

Run ``pytest THIS_FILE``. The outputs are in ``outputs.jsonl`` beside this file, or in the file that the variable
OUTPUTS of the environment names: an object a line with ``output`` and perhaps ``id``, ``input``, ``context`` and
``reference``. ``askance generate`` writes such a file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ..bridges.exported_checks import check

OUTPUTS = Path(os.environ.get("OUTPUTS") or Path(__file__).parent / "outputs.jsonl").absolute()
LEAST: dict[str, float] = {}
"""Share of the outputs that keeps a requirement, at least; 1.0 for every output."""
QUESTIONS: str = ""
"""The judge of the questions, as a ``judge.yaml`` has it."""
HELD_TO: dict[str, Any] = {}
"""Bounds that its scores are held to, see ``askance_check`` of askance's plug-in."""
MOST_TOLD = 5
"""Outputs that are told of where a test fails."""


def outputs() -> list[dict[str, Any]]:
    """The rows of the file; the test fails where one is no row, or has no output."""
    rows = []
    if not OUTPUTS.is_file():
        pytest.fail(f"There is no file {OUTPUTS}; OUTPUTS=FILE names another.", pytrace=False)
    for number, line in enumerate(OUTPUTS.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            texts = {name: row.get(name) or "" for name in ("input", "context", "reference", "metadata")}
            output = row["output"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            pytest.fail(f"{OUTPUTS}, line {number}: no row with an output ({error!r}).", pytrace=False)
        if output is not None and not isinstance(output, str):
            reason = f"line {number}: the output is no text, and askance, which reads messages, is not installed"
            output = pytest.importorskip("askance.prompts.messages", reason=reason).told(output)
            texts["reply"] = pytest.importorskip("askance.prompts.conversations.chat").reply_text(output or "")
        if output is None:
            pytest.fail(f"{OUTPUTS}, line {number}: there is no output.", pytrace=False)
        rows.append({"id": row.get("id", f"line {number}"), "output": output, **texts})
    if not rows:
        pytest.fail(f"{OUTPUTS} has no rows.", pytrace=False)
    return rows


@pytest.mark.parametrize("requirement", LEAST)
def test_outputs_keep(requirement: str) -> None:
    """Test an output against one requirement that code decides."""
    rows, failed = outputs(), []
    for row in rows:
        verdict = check(requirement, **{name: value for name, value in row.items() if name != "id"})
        if not verdict["for_the_output"]:
            failed.append(f"{row['id']}: {verdict['found'] or verdict['text']}")
    share = 1 - len(failed) / len(rows)
    if share < LEAST[requirement] - 1e-9:
        listed = "\n  ".join([*failed[:MOST_TOLD], *(["…"] if len(failed) > MOST_TOLD else [])])
        least = f"{share:.1%} of {len(rows)} outputs keep it, and {LEAST[requirement]:.1%} should"
        fault = " (yes = fault)" if verdict["answer"] != verdict["for_the_output"] else ""
        pytest.fail(f"{verdict['text']}{fault} {least}. These do not:\n  {listed}", pytrace=False)


def test_outputs_pass_the_questions(request: pytest.FixtureRequest) -> None:
    """A model decides; askance asks it, and must be installed."""
    reason = "askance is not installed, which asks the questions"
    judge = pytest.importorskip("askance.evaluation.judge_file", reason=reason).parse_judge(QUESTIONS, "QUESTIONS")
    request.getfixturevalue("askance_check")(data=OUTPUTS, judge=judge, **HELD_TO)
