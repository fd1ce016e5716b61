"""A judge with checks in ``align`` and ``migrate``: they count, cost nothing, and no lesson is drawn from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import askance
from askance.memory.journal import read_events
from askance.prompts.checklist import Checklist, ComputedCheck
from askance.testing import SimulatedJudge, SimulatedWorld


def with_checks(world: Any) -> Checklist:
    dimension = world.checklist.dimensions[0]
    checks = (
        ComputedCheck(id="short", kind="length", value="at most 12 words", dimension=dimension),
        ComputedCheck(id="no_link", kind="matches", value="https?://", good="no"),
    )
    return world.checklist.model_copy(update={"questions": (*world.checklist.questions, *checks)})


def test_a_judge_with_checks_is_aligned_kept_and_used_again(tmp_path: Path) -> None:
    world, run = SimulatedWorld(seed=3, size=60), tmp_path / "run"
    asked = with_checks(world)
    judge = SimulatedJudge(world)
    rows = list(world.rows)
    how: dict[str, Any] = {"max_iterations": 1, "no_cache": True, "update": "edits"}
    done = askance.align(rows, checklist=asked, model=judge, prompt=world.prompt, run=run, **how)
    found = [
        each for event in read_events(run / "journal.jsonl") for each in event.get("read", []) if isinstance(each, str)
    ]
    assert not any(each.endswith(("/short", "/no_link")) for each in found)
    kept = askance.load_judge(run)
    assert kept.checklist == asked and not kept.edited
    verdicts = kept.evaluate(rows[:3], model=judge, no_cache=True).verdicts
    assert {each.question for each in verdicts if each.model is None} == {"short", "no_link"}
    again = askance.align(rows, checklist=asked, model=judge, prompt=world.prompt, run=run, **how)
    assert again.result["calls"] == done.result["calls"]


def test_checks_are_the_same_for_the_source_and_the_target(tmp_path: Path) -> None:
    world = SimulatedWorld(seed=3, size=60)
    asked, target = with_checks(world), SimulatedJudge(world)
    source = SimulatedJudge(world, perfect=True)
    how: dict[str, Any] = {
        "max_iterations": 1,
        "no_cache": True,
        "update": "edits",
        "prompt": world.prompt,
        "reference": "source",
    }
    done = askance.migrate(list(world.rows), checklist=asked, source=source, target=target, run=tmp_path / "run", **how)
    assert done.result["parity"]["test"]["baseline"]["questions"]["short"]["same"]["value"] == 1.0
