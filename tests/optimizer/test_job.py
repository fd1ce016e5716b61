from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.optimizer.job import Job, SplitExamples, split_examples
from askance.optimizer.modes.migrate import MODE, prepare
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.run_estimate import estimate_run
from tests.said import naming


def job(world: Any, **options: Any) -> Job:
    return prepare(
        world.rows,
        world.checklist,
        world.model("world/source"),
        world.model("world/target"),
        world.prompt,
        world.source_prompt,
        world.options | options,
    )


def divide(made: Job) -> SplitExamples:
    return split_examples(made, MODE.strata(made))


def test_source_and_target_that_cannot_disagree_are_refused(world: Any) -> None:
    with pytest.raises(InputError, match=naming("same model", "same prompt", "--source-prompt")):
        prepare(world.rows, world.checklist, "openai/x", "openai/x", None, None, {})
    prepare(world.rows, world.checklist, "openai/x", "openai/x", None, Prompt("Be strict."), {})
    prepare(world.rows, world.checklist, "openai/x", "openai/y", None, None, {})


def test_a_prompt_object_is_checked_like_a_file(world: Any) -> None:
    with pytest.raises(InputError, match=naming("outptu", "placeholder")):
        prepare(world.rows, world.checklist, "openai/x", "openai/y", Prompt("Judge {outptu}"), None, {})


def test_the_three_parts_hold_every_example_once(world: Any) -> None:
    parts = divide(job(world))
    ids = [[example.id for example in part] for part in (parts.development, parts.validation, parts.test)]
    assert [len(part) for part in ids] == [12, 12, 16]
    assert ids[0] == sorted(ids[0])
    assert ids[2] == sorted(ids[2])
    assert ids[1] != sorted(ids[1]), "candidates are dropped on the first part of validation, so it has no order"
    assert sorted(name for part in ids for name in part) == world.ids


def test_another_seed_makes_another_split(world: Any) -> None:
    assert divide(job(world)) == divide(job(world))
    assert divide(job(world)) != divide(job(world, seed=1))


def test_examples_of_one_document_stay_together(world: Any) -> None:
    rows = [row | {"metadata": {"document": str(number % 10)}} for number, row in enumerate(world.rows)]
    made = prepare(rows, world.checklist, "openai/x", "openai/y", None, None, world.options)
    parts = divide(made)
    documents = [
        {example.metadata["document"] for example in part} for part in (parts.development, parts.validation, parts.test)
    ]
    assert sum(map(len, documents)) == 10


def test_too_few_examples_are_a_sentence(make_world: Any) -> None:
    with pytest.raises(InputError, match="too few"):
        divide(job(make_world(6)))


def test_people_are_the_measure_where_they_rated_and_the_source_where_not(make_world: Any) -> None:
    assert MODE.strata(job(make_world())) is not None
    assert MODE.strata(job(make_world(human=False))) is None
    assert MODE.strata(job(make_world(), reference="source")) is None
    with pytest.raises(InputError, match=naming("human", "score")):
        divide(job(make_world(human=False), reference="human"))


def test_limits_and_connection_settings_are_not_part_of_what_a_run_is(world: Any) -> None:
    some = job(world, call_budget=3, cost_budget=1.0, timeout=3, retries=1, max_concurrency=2)
    assert some.config == job(world).config
    assert job(world, margin=0.4).config != job(world).config


def test_the_mode_of_judging_is_kept_beside_the_command(world: Any) -> None:
    config = job(world, mode="batched").config
    assert (config["command"], config["mode"]) == ("migrate", "batched")


@pytest.mark.parametrize("human", [True, False])
def test_a_run_that_stops_at_once_buys_exactly_what_was_estimated(make_world: Any, tmp_path: Path, human: bool) -> None:
    world = make_world(human=human)
    estimate = estimate_run(job(world, differing=0.99))
    done = world.migrate(tmp_path / "run", differing=0.99)
    assert done.result["calls"] == estimate.fixed.calls


def test_a_whole_run_buys_no_more_than_was_estimated(world: Any, tmp_path: Path) -> None:
    estimate = estimate_run(job(world))
    done = world.migrate(tmp_path / "run")
    most = estimate.fixed.calls + done.result["iterations"] * estimate.iteration_calls + estimate.last_calls
    assert estimate.fixed.calls < done.result["calls"] <= most


def test_an_estimate_buys_nothing(world: Any) -> None:
    made = job(world)
    estimate_run(made)
    assert [model.requests for model in made.models.values()] == [[], []]  # type: ignore[union-attr]
