"""What --dry-run says of a run, against what the run then takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.job import Job
from askance.optimizer.loop import run_job
from askance.optimizer.modes import align, migrate, tune
from askance.run_estimate import RunEstimate, estimate_run
from askance.testing import SimulatedJudge, SimulatedWorld, StandInServer
from tests.measured.simulated_world import COMMENTED, UNSEEN
from tests.optimizer.questions.conftest import Desk
from tests.worlds import useful

WHOLE = {"trial": True, "prune": True}


def migration(world: Any, letters: Any, folder: Path) -> Job:
    models = world.model("world/source"), world.model("world/target")
    given = world.options | WHOLE
    return migrate.prepare(world.rows, world.checklist, *models, world.prompt, world.source_prompt, given)


def alignment(world: Any, letters: Any, folder: Path) -> Job:
    return align.prepare(world.rows, world.checklist, world.model("world/target"), world.prompt, world.options | WHOLE)


def learning(world: Any, letters: Any, folder: Path) -> Job:
    there = SimulatedWorld(seed=1000, comment_share=2 / 3)
    given = {"update": "auto", "embedder": "words", "resamples": 200}
    return align.prepare(there.rows, there.checklist, SimulatedJudge(there), there.prompt, given)


def judged(world: Any, letters: Any, folder: Path) -> Job:
    models = letters.model("letters/writer"), letters.model("letters/judge")
    return tune.prepare(letters.rows, letters.checklist, *models, letters.prompt, None, None, letters.options)


def checked(world: Any, letters: Any, folder: Path) -> Job:
    writer, checker = letters.model("letters/writer"), letters.checker(folder)
    return tune.prepare(letters.rows, None, writer, None, letters.prompt, None, checker, letters.options)


def take(job: Job, folder: Path) -> tuple[RunEstimate, int]:
    estimate = estimate_run(job)
    return estimate, run_job(job, RunDirectory(folder / "run"), Silent()).result["calls"]


@pytest.mark.parametrize("prepare", [migration, alignment, learning, judged, checked])
def test_a_run_takes_what_is_certain_and_never_more_than_was_said(
    prepare: Callable[..., Job], world: Any, letters: Any, tmp_path: Path
) -> None:
    job = prepare(world, letters, tmp_path)
    estimate, calls = take(job, tmp_path)
    assert estimate.fixed.calls / 2 <= calls <= estimate.most(job.options.max_iterations)


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (30, {}),
        (30, {"max_iterations": 1}),
        (120, {}),
        (120, {"learn_from": "development"}),
        (120, {"max_questions": 2}),
    ],
)
def test_what_learning_from_few_different_comments_takes_was_said(
    size: int, options: dict[str, Any], tmp_path: Path
) -> None:
    desk = Desk(size)
    given = {"embedder": "words", "resamples": 400, "update": "questions", "mode": "each"} | options
    job = align.prepare(desk.rows, desk.checklist, desk.model(), desk.prompt, given)
    estimate, calls = take(job, tmp_path)
    assert estimate.fixed.calls < calls <= estimate.most(job.options.max_iterations)


@pytest.mark.parametrize(
    ("more", "options"),
    [({}, {}), ({"comment_vague": 1.0}, {}), ({}, {"mode": "each"})],
    ids=["telling", "useless", "one by one"],
)
def test_what_learning_house_rules_takes_was_said(
    more: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    """Comments in many words, useless ones too; see ``tests/measured/simulated_world.py``."""
    there = SimulatedWorld(seed=1000, **COMMENTED | UNSEEN | more)
    given = {"update": "auto", "embedder": "words", "resamples": 200, "seed": 1000} | options
    job = align.prepare(there.rows, there.checklist, SimulatedJudge(there), there.prompt, given)
    estimate, calls = take(job, tmp_path)
    assert calls <= estimate.most(job.options.max_iterations)
    low, high = estimate.typical[-1].calls
    assert low / 2 < calls < 2 * high


def test_learning_questions_never_takes_more_than_is_said(tmp_path: Path) -> None:
    """Where no prompt is edited and nothing is taken out again, all but judging everything once is learning."""
    there = SimulatedWorld(
        seed=1003, comment_share=2 / 3, kinds=1, blind=4, punished=0, fault_rate=0.15, pass_fail=True
    )
    given = {"update": "questions", "embedder": "words", "resamples": 200, "max_iterations": 1}
    estimate, calls = take(
        align.prepare(there.rows, there.checklist, SimulatedJudge(there), there.prompt, given), tmp_path
    )
    judging_again = 4 * round(0.7 * len(there.rows))
    assert estimate.fixed.calls + judging_again < calls <= estimate.fixed.calls + estimate.last_calls


def test_a_run_with_nothing_to_improve_takes_what_is_certain(world: Any, tmp_path: Path) -> None:
    world.p_yes = lambda prompt, example, question: 0.1 if world.flaw(example, question) else 0.9
    estimate, calls = take(migration(world, None, tmp_path), tmp_path)
    assert calls == estimate.fixed.calls


def test_what_a_calibration_takes_is_known_exactly(world: Any, tmp_path: Path) -> None:
    job = align.prepare(
        world.rows,
        world.checklist,
        world.model("world/target"),
        world.prompt,
        useful(world.options | {"calibrate": True}),
    )
    estimate, calls = take(job, tmp_path)
    assert calls == estimate.fixed.calls == estimate.most(job.options.max_iterations)


def test_outputs_that_are_still_to_be_written_are_each_judged(letters: Any) -> None:
    alone = [each.model_copy(update={"sees": "output"}) for each in letters.checklist.questions]
    checklist = letters.checklist.model_copy(update={"questions": tuple(alone)})
    models = letters.model("letters/writer"), letters.model("letters/judge")
    fixed = estimate_run(
        tune.prepare(letters.rows, checklist, *models, letters.prompt, None, None, letters.options)
    ).fixed
    assert (fixed.calls, fixed.stored) == (len(letters.rows) * (1 + len(alone)), 0)


def test_only_what_was_said_of_the_outputs_that_a_generator_will_write_is_there_already(
    letters: Any, tmp_path: Path, sandbox: Path
) -> None:
    rows = [row | {"output": f"An earlier letter for {row['id']}."} for row in letters.rows]
    with StandInServer(letters.serve) as server:
        given = letters.options | {"api_base": server.url, "generator_temperature": 0.5}
        askance.evaluate(rows, checklist=letters.checklist, model="openai/judge", api_base=server.url)
        models = "openai/writer", "openai/judge"
        job = tune.prepare(rows, letters.checklist, *models, letters.prompt, None, None, given)
        before = estimate_run(job).fixed
        run_job(job, RunDirectory(tmp_path / "run"), Silent())
        after = estimate_run(job).fixed
    every = len(rows) * (1 + len(letters.checklist.questions))
    assert (before.calls, before.stored) == (every, 0)
    assert (after.calls, after.stored) == (0, every)
