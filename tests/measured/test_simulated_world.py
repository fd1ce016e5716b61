"""In a small simulated world the loop cures errors and gains; the experiment's figures are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from askance.testing import SimulatedWorld
from tests.measured import simulated_world
from tests.measured.simulated_world import (
    ARMS,
    Arm,
    Run,
    Truth,
    line,
    main,
    run_once,
    summarise,
)

RUN = Run(
    seed=1, errors=6, fixed=2, made=0, start=0.4, end=0.5, best_possible=0.8, test_start=0.4, test_end=0.45,
    changed=True, chars=200, questions=1, accepted=2, falsely=1, tried=3, iterations=2, finish="no_gain",
    calls=1000, test_calls=400, cpu_s=1.0, phases={"test": 400, "race": 600},
)  # fmt: skip

ALGORITHM_1 = 4_088
"""Calls of the papers' Algorithm 1 in such a world, counted once: docs/results/simulated.md."""


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [run_once(Arm(), seed) for seed in range(8)]


def test_the_loop_fixes_errors_and_ends_above_the_start_on_average(runs: list[Run]) -> None:
    assert sum(run.fixed for run in runs) >= 0.2 * sum(run.errors for run in runs)
    assert fmean(run.end - run.start for run in runs) > 0.05


def test_no_run_ends_truly_below_its_start(runs: list[Run]) -> None:
    assert all(run.end >= run.start - 0.01 for run in runs)


def test_it_takes_fewer_calls_than_the_exhaustive_algorithm(runs: list[Run]) -> None:
    assert max(run.calls for run in runs) < ALGORITHM_1


def test_the_test_takes_one_call_an_example_with_each_of_the_prompts(runs: list[Run]) -> None:
    once = round(0.4 * SimulatedWorld(seed=0).size)
    assert [run.test_calls for run in runs] == [once * (1 + run.changed) for run in runs]
    assert [sum(run.phases.values()) for run in runs] == [run.calls for run in runs]


def test_asked_one_by_one_it_takes_one_verdict_a_question() -> None:
    world, run = SimulatedWorld(seed=0), run_once(Arm(options={"mode": "each"}), 0)
    once = round(0.4 * world.size) * len(world.checklist.questions)
    assert run.test_calls == once * (1 + run.changed)


def test_a_run_is_the_same_each_time(runs: list[Run]) -> None:
    assert replace(run_once(Arm(), 0), cpu_s=0.0) == replace(runs[0], cpu_s=0.0)


def test_the_truth_of_a_prompt_rises_with_every_error_that_it_cures() -> None:
    world = SimulatedWorld(seed=3)
    truth = Truth(world, 600)
    prompt, values = world.prompt.text, [truth.spearman(world.prompt.text)]
    for sign in world.errors:
        prompt += world.right_rule(sign)
        values.append(truth.spearman(prompt))
    assert values[-1] > values[2] > values[0]


def test_where_people_comment_a_run_learns_questions_and_the_truth_of_its_whole_judge_is_measured() -> None:
    arm = ARMS["house rules: auto"]
    run = next(run for seed in range(1000, 1010) if (run := run_once(arm, seed)).questions)
    assert run.end > run.start + 0.05
    assert run.fixed == 0


def test_where_nothing_can_be_learned_nothing_is_gained() -> None:
    runs = [run_once(ARMS["house rules: auto, nothing to learn"], seed) for seed in range(3)]
    assert fmean(run.end - run.start for run in runs) < 0.05


def test_wrong_guidance_is_replaced_where_a_lesson_contradicts_it() -> None:
    careful = {"note_taker_wrong": 0.0, "updater_wrong": 0.0, "judge_noise": 0.5, "punished": 0}
    run = run_once(Arm(world={"misguided": 4} | careful), 0)
    assert run.fixed >= 2, "all four errors are behind a line that orders the opposite"
    assert run.end > run.start


def test_a_summary_counts_runs_below_their_start_and_false_acceptances() -> None:
    worse = replace(RUN, end=0.395, test_end=0.3, fixed=0, falsely=2)
    far_worse = replace(RUN, end=0.3, test_end=None)
    row = summarise([RUN, worse, far_worse])
    assert row["share_of_errors_fixed"] == pytest.approx(4 / 18)
    assert row["truly_below_start"] == 2
    assert row["truly_below_start_by_0.01"] == 1
    assert row["below_start_on_own_test"] == 1
    assert row["share_falsely_accepted"] == pytest.approx(4 / 6)
    assert (row["calls"], row["test_calls"]) == (1000, 400)
    assert row["calls_by_phase"] == {"race": 600, "test": 400}
    assert row["mean_gain"]["low"] <= row["mean_gain"]["mean"] <= row["mean_gain"]["high"]
    assert row["captured"]["share"] == pytest.approx((0.1 - 0.005 - 0.1) / 1.2)
    assert line("x", row).startswith("| x | -0% (")
    with pytest.raises(ValueError, match="no runs"):
        summarise([])


def test_where_nothing_was_accepted_there_is_no_share_of_false_acceptances() -> None:
    assert summarise([replace(RUN, accepted=0, falsely=0)])["share_falsely_accepted"] is None


def test_the_command_keeps_its_figures_and_how_to_get_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_world, "run_once", lambda arm, seed: replace(RUN, seed=seed))
    main(["--seeds", "2", "--first-seed", "7", "--arms", "align", "--out", str(tmp_path / "out.json")])
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["command"].endswith("--seeds 2 --first-seed 7 --arms 'align'")
    assert kept["seeds"] == [7, 8]
    assert kept["arms"]["align"]["gains"] == [0.1, 0.1]
