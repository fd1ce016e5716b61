"""The certificate of a prompt that judges: the old judge asked or recorded, with people's labels or without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.certificate_file import CertificateRecord, TargetRecord, read_certificate
from askance.prompts.errors import InputError
from askance.testing import SimulatedJudge, SimulatedWorld
from tests.said import naming

WORLD = SimulatedWorld(size=150, seed=2, judge_noise=0.3)
OPTIONS: dict[str, Any] = {"embedder": "words", "resamples": 200, "max_iterations": 1, "trial": False, "prune": False}


def without_people(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "human"} for row in rows]


def recorded(world: SimulatedWorld, *, scores: bool) -> list[dict[str, Any]]:
    """The rows with what a perfect judge said of them in the column ``old``."""
    judge = SimulatedJudge(world, perfect=True)
    found = askance.evaluate(world.rows, checklist=world.checklist, model=judge, prompt=world.prompt, no_cache=True)
    if scores:
        said: dict[str, Any] = {each.example: each.overall for each in found.scores}
    else:
        said = {each.example: {} for each in found.scores}
        for verdict in found.verdicts:
            said[verdict.example][verdict.question] = verdict.answer
    return [{**row, "old": said[row["id"]]} for row in world.rows]


def certified(run: Path) -> tuple[CertificateRecord, TargetRecord]:
    certificate = read_certificate(run)
    (target,) = certificate.targets.values()
    return certificate, target


def move(rows: Any, run: Path, world: SimulatedWorld = WORLD, **given: Any) -> askance.RunResult:
    how: dict[str, Any] = {"source": "recorded", "target": SimulatedJudge(world)} | OPTIONS | given
    return askance.migrate(rows, checklist=world.checklist, prompt=world.prompt, run=run, **how)


def test_recorded_verdicts_take_the_place_of_the_source(tmp_path: Path) -> None:
    rows = without_people(recorded(WORLD, scores=False))
    done = move(rows, tmp_path / "run", judge_scores="old", update="edits")
    roles = set(done.result["roles"])
    assert "source" not in roles and {"target", "note_taker"} <= roles
    assert done.result["reference"] == "source"
    assert done.result["lessons"], "the verdicts disagree question by question"
    certificate, target = certified(tmp_path / "run")
    assert (certificate.kind, certificate.source) == ("judge", "recorded")
    assert (target.difference.value or 0) <= 0, "nobody agrees with the old judge more than it does itself"
    assert target.pass_rate.old.value == 1.0
    assert {each.requirement for each in target.by_requirement} == {each.id for each in WORLD.checklist.questions}
    assert set(target.regressions) and not target.gains


def test_recorded_scores_are_the_reference_and_no_question_is_worded_anew(tmp_path: Path) -> None:
    rows = without_people(recorded(WORLD, scores=True))
    done = move(rows, tmp_path / "run", judge_scores="old")
    assert done.result["reference"] == "source"
    assert done.result["lessons"], "scores that are far apart are read"
    assert "parity" not in done.result and "wordings" not in done.result
    certificate, target = certified(tmp_path / "run")
    assert target.by_requirement == ()
    assert "old judge's score" in (certificate.measure or "")
    assert [each.id for each in certificate.requirements] == []


def test_with_peoples_scores_the_old_judges_agreement_with_them_is_the_measure(tmp_path: Path) -> None:
    rows = recorded(WORLD, scores=False)
    done = move(rows, tmp_path / "run", judge_scores="old", update="edits")
    assert done.result["reference"] == "human"
    certificate, target = certified(tmp_path / "run")
    assert "people's score" in (certificate.measure or "")
    assert 0.5 < (target.pass_rate.old.value or 0) < 1
    assert target.difference.n == 60
    assert target.by_requirement, "the share of same answers stands beside it"


def test_with_labels_of_pass_or_fail_each_judge_passes_by_its_own_threshold(tmp_path: Path) -> None:
    world = replace(WORLD, pass_fail=True)
    move(recorded(world, scores=True), tmp_path / "run", world, judge_scores="old", update="edits")
    certificate, target = certified(tmp_path / "run")
    assert "pass or fail" in (certificate.measure or "")
    share = target.pass_rate.old.value or 0
    assert share * target.difference.n == pytest.approx(round(share * target.difference.n))


def test_a_judge_that_is_as_good_is_adopted_and_one_that_is_not_is_kept_out(tmp_path: Path) -> None:
    world = SimulatedWorld(size=300, seed=3)
    rows = without_people(recorded(world, scores=False))
    perfect = SimulatedJudge(world, perfect=True)
    same = move(rows, tmp_path / "same", world, judge_scores="old", update="edits", target=perfect)
    assert certified(tmp_path / "same")[1].decision == "adopt"
    kept = askance.load_judge(tmp_path / "same")
    assert (kept.decision, kept.not_adopted) == ("adopt", None)
    assert same.finish_reason == "converged"
    move(rows, tmp_path / "worse", world, judge_scores="old", update="edits")
    assert certified(tmp_path / "worse")[1].decision == "not_yet"
    kept = askance.load_judge(tmp_path / "worse")
    assert kept.decision == "keep" and "not yet" in (kept.not_adopted or "")


def test_max_loss_and_level_are_the_certificates(tmp_path: Path) -> None:
    rows = without_people(recorded(WORLD, scores=False))
    move(rows, tmp_path / "run", judge_scores="old", update="edits", max_loss=0.9, certificate_level=0.2)
    certificate, target = certified(tmp_path / "run")
    assert (certificate.max_loss, certificate.level, target.decision) == (0.9, 0.2, "adopt")


def test_the_power_is_assumed_before_and_measured_after(tmp_path: Path) -> None:
    class Said:
        def __init__(self) -> None:
            self.lines: list[str] = []
            self.calls_before = 0

        def watch(self, budget: Any) -> None:
            self.budget = budget

        def phase(self, text: str, total: int | None = None) -> None: ...

        def advance(self, done: int, total: int) -> None: ...

        def say(self, text: str) -> None:
            if "8 of 10" in text:
                self.calls_before = self.budget.calls
            self.lines.append(text)

    said = Said()
    rows = without_people(recorded(WORLD, scores=False))
    move(rows, tmp_path / "run", judge_scores="old", update="edits", watcher=said)
    assert any("8 of 10" in line for line in said.lines) and said.calls_before == 0
    assumed, measured = read_certificate(tmp_path / "run").power
    assert (assumed.assumed, assumed.deviation, measured.assumed) == (True, 0.3, False)
    assert measured.deviation != 0.3


def test_a_run_with_a_recorded_source_is_resumed_for_nothing(tmp_path: Path) -> None:
    rows = without_people(recorded(WORLD, scores=False))
    first = move(rows, tmp_path / "run", judge_scores="old", update="edits")
    target = SimulatedJudge(WORLD)
    again = move(rows, tmp_path / "run", judge_scores="old", update="edits", target=target)
    assert target.calls == 0
    assert again.result == first.result


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ("--judge-scores",)),
        ({"judge_scores": "old", "source_prompt": "Judge."}, ("--source-prompt", "recorded")),
        ({"judge_scores": "old", "source": "openai/old"}, ("judge_scores", "recorded")),
        ({"judge_scale": (1, 5), "judge_scores": None}, ("judge_scale",)),
        (
            {"judge_scores": "old", "update": "questions", "trial": True, "prune": True},
            ("update questions", "scores alone"),
        ),
    ],
)
def test_what_does_not_go_with_a_recorded_source_is_refused(tmp_path: Path, given: Any, said: tuple[str, ...]) -> None:
    rows = [{**row, "old": 0.5} for row in WORLD.rows]
    with pytest.raises(InputError, match=naming(*said)):
        move(rows, tmp_path / "run", **given)
    assert not (tmp_path / "run" / "config.yaml").exists()
