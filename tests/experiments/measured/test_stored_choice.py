"""The choice among questions on stored answers: nothing is asked, and what tells joins."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.progress import Silent
from askance.experiments.measured import stored_choice
from askance.experiments.measured.learned_questions import MADE_UP, examples_of
from askance.experiments.measured.stored_choice import (
    STORED,
    Stored,
    crossed_areas,
    folds,
    kept,
    measured,
    read_stored,
)
from askance.memory.run_directory import RunDirectory
from askance.optimizer.modes import align
from askance.optimizer.questions.candidates import Candidate
from askance.optimizer.runner import run_job
from askance.prompts.checklist import dump_checklist
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.testing import SimulatedJudge, SimulatedWorld

FILES = sorted(STORED.glob("*.json"))


def labelled(count: int) -> list[Example]:
    return [
        Example(id=f"e{number}", input="A review.", output=f"reply {number}", human={"overall": number % 3 > 0})
        for number in range(count)
    ]


def stored(tells: float) -> Stored:
    """A question that tells accepted outputs by so many deviations, of one that tells nothing."""
    examples = labelled(90)
    failed = [each.id for each in examples if not each.human_score("overall")]
    noise = {each.id: (number * 37 % 90) / 90 for number, each in enumerate(examples)}
    fault = {name: value + tells * (name in failed) for name, value in noise.items()}
    start = {each.id: (number * 53 % 90) / 90 for number, each in enumerate(examples)}
    candidates = {
        "fault": Candidate("Does the reply quote a price?", "overall", "comment", tuple(failed[:4]), ("a price!",))
    }
    return Stored("made", MADE_UP / "guest_reviews", examples, candidates, {"fault": fault, "good_to_publish": start})


def test_a_question_that_tells_joins_and_one_that_does_not_stays_out() -> None:
    before, after, joined = asyncio.run(crossed_areas(stored(4.0), 0))
    assert after > 0.9 > before + 0.2 and joined >= 1
    before, after, joined = asyncio.run(crossed_areas(stored(0.0), 0))
    assert (before, joined) == (after, 1)


def test_folds_are_all_examples_once_with_as_many_accepted_and_drawn_anew() -> None:
    examples = labelled(60)
    parts = folds(examples, 1)
    assert Counter(each.id for part in parts for each in part) == Counter(each.id for each in examples)
    assert {sum(each.human_score("overall") or 0 for each in part) for part in parts} <= {6, 7}
    assert [[each.id for each in part] for part in parts] != [[each.id for each in part] for part in folds(examples, 2)]


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_a_file_has_no_test_output_and_what_was_answered_of_most(path: Path) -> None:
    found = read_stored(path)
    row = json.loads(path.read_text())
    whole = examples_of(row["data"], None, more=True)[1]
    assert len(found.examples) == len({each.id for each in found.examples}) == 0.6 * len(whole)
    assert len(found.candidates) >= 20
    assert all(len(found.logits[each]) >= len(found.examples) / 2 for each in found.candidates)
    assert measured(path, 1)["questions"] > 1


def test_a_finished_run_is_gone_through_without_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = SimulatedWorld(
        seed=1003, comment_share=2 / 3, kinds=1, blind=4, punished=0, fault_rate=0.15, pass_fail=True
    )
    (tmp_path / "checklist.yaml").write_text(dump_checklist(there.checklist), encoding="utf-8")
    (tmp_path / "prompt.md").write_text(there.prompt.text, encoding="utf-8")
    usual = {"update": "questions", "max_iterations": 1, "embedder": "words", "resamples": 200}
    monkeypatch.setattr(stored_choice, "SETTINGS", usual)
    monkeypatch.setattr(stored_choice, "examples_of", lambda *_, **__: (tmp_path, there.rows))
    judge: Any = SimulatedJudge(there)
    job = align.prepare(
        there.rows, tmp_path / "checklist.yaml", judge, tmp_path / "prompt.md", usual | {"seed": 3, "no_cache": True}
    )
    done = run_job(job, RunDirectory(tmp_path / "run"), Silent())
    found = kept(tmp_path / "run", "world", 3, judge)
    texts = {each["text"] for each in found["candidates"]}
    assert {each.text for each in done.record.learned} <= texts
    assert len(found["examples"]) == len(found["candidates"][0]["logits"]) == 0.6 * len(there.rows)
    with pytest.raises(BudgetExceededError):
        kept(tmp_path / "run", "world", 4, judge)
