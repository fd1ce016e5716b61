from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from askance.prompts.verdicts import read_verdicts


def rows(file: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_verdicts_of_the_first_and_the_best_version_are_kept_as_a_verdicts_file(world: Any, tmp_path: Any) -> None:
    done = world.align(tmp_path / "run")
    test = next(
        json.loads(line)["test"]
        for line in (tmp_path / "run" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        if json.loads(line)["event"] == "split"
    )
    for side in ("baseline", "best"):
        [file] = [
            each
            for each in (tmp_path / "run" / "verdicts").glob("*-test.jsonl")
            if read_verdicts(each)[0].prompt == done.result[side]["hash"]
        ]
        verdicts = read_verdicts(file)
        assert {each.example for each in verdicts} == set(test)
        assert len(verdicts) == len(test) * len(world.checklist.questions)


def test_scores_stand_beside_the_wanted_ones(world: Any, tmp_path: Any) -> None:
    world.align(tmp_path / "run")
    kept = rows(tmp_path / "run" / "verdicts" / "scores.jsonl")
    human = {row["id"]: row["human"]["quality"] for row in world.rows}
    low, high = min(human.values()), max(human.values())
    assert all(row["wanted"] == pytest.approx((human[row["example"]] - low) / (high - low)) for row in kept)
    assert all(0 <= row["score"] <= 1 for row in kept)
    assert len({row["version"] for row in kept}) == 2


def test_what_the_source_said_is_the_reference_of_a_migration(world: Any, tmp_path: Any) -> None:
    world.migrate(tmp_path / "run")
    kept = rows(tmp_path / "run" / "verdicts" / "reference.jsonl")
    assert kept
    for row in kept:
        wanted = world.p_yes("strict", row["example"], row["question"])
        assert row["p_yes"] == pytest.approx(wanted, abs=1e-4)


def test_what_a_generator_wrote_and_what_it_was_asked_are_kept(letters: Any, tmp_path: Any) -> None:
    letters.tune(tmp_path / "run")
    kept = tmp_path / "run" / "verdicts"
    written = rows(kept / "outputs.jsonl")
    assert {row["output"][:9] for row in written} == {"This is ["}
    assert 0 in {row["version"] for row in written}
    assert {row["dimension"] for row in rows(kept / "questions.jsonl")} == {"checks"}


def test_outputs_that_are_as_the_data_have_them_are_kept_too(make_letters: Any, tmp_path: Any) -> None:
    class Again(make_letters):  # type: ignore[misc]
        @property
        def rows(self) -> list[dict[str, Any]]:
            return [row | {"output": self.letter(self.prompt.text, row["input"])} for row in super().rows]

    Again().tune(tmp_path / "run")
    written = rows(tmp_path / "run" / "verdicts" / "outputs.jsonl")
    per_version = Counter(row["version"] for row in written)
    assert per_version[0] == 28 and set(per_version.values()) == {28}  # development and test


def test_a_run_that_a_budget_ended_before_the_test_keeps_no_test_verdicts(world: Any, tmp_path: Any) -> None:
    done = world.align(tmp_path / "run", call_budget=150)
    assert done.result["best"]["test"] is None
    assert not list((tmp_path / "run" / "verdicts").glob("*-test.jsonl"))
    assert not (tmp_path / "run" / "verdicts" / "scores.jsonl").exists()
