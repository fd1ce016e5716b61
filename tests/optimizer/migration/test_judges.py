"""A prompt that judges moves to several targets: a run each, one certificate, the source asked once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import askance
from askance.memory.certificate_file import read_certificate
from askance.memory.journal import read_events
from askance.models.base import Request
from askance.optimizer.migration.certificate import MigrationResult
from askance.prompts.errors import BudgetExceededError, InputError
from tests.said import naming
from tests.worlds import World, useful

TARGETS = ("world/a", "world/b")


def move(
    world: World, run: Path, before: Callable[[str, Request], None] | None = None, **given: Any
) -> askance.RunResult | MigrationResult:
    def model(name: str) -> Any:
        return world.model(name, None if before is None else lambda request: before(name, request))

    targets = given.pop("targets", TARGETS)
    return askance.migrate(
        world.rows,
        checklist=world.checklist,
        source=model("world/source"),
        target=[model(name) for name in targets],
        prompt=world.prompt,
        source_prompt=world.source_prompt,
        run=run,
        **useful(world.options | {"max_iterations": 1} | given),
    )


def moved(world: World, run: Path, before: Any = None, **given: Any) -> MigrationResult:
    done = move(world, run, before, **given)
    assert isinstance(done, MigrationResult)
    return done


class Asked:
    """Counts requests by model, and stops at one of them."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.by: dict[str, list[bytes]] = {}
        self.stop_at = stop_at

    def __call__(self, name: str, request: Request) -> None:
        if self.stop_at is not None and sum(map(len, self.by.values())) == self.stop_at:
            raise KeyboardInterrupt
        self.by.setdefault(name, []).append(request.key)

    @property
    def every(self) -> int:
        return sum(map(len, self.by.values()))


def test_each_target_has_a_run_and_the_root_their_certificate(world: Any, tmp_path: Path) -> None:
    done = moved(world, tmp_path / "run")
    names = {each.name for each in (tmp_path / "run").iterdir()}
    assert names >= {"config.yaml", "inputs", "verdicts.db", "certificate.json", "report.html", "targets"}
    assert not names & {"result.json", "prompt.md", "judge.yaml", "journal.jsonl"}
    assert set(done.certificate.targets) == set(done.runs) == set(TARGETS)
    for name, run in done.runs.items():
        record = done.certificate.targets[name]
        assert (record.tokens_per_output or 0) > 10, "what judging one output takes"
        assert run.directory == tmp_path / "run" / "targets" / name.replace("/", "__")
        assert (tmp_path / "run" / record.prompt).read_text() == run.prompt
        word = {"not_yet": "keep"}.get(record.decision, record.decision)
        assert askance.load_judge(run.directory).decision == word
    assert len(done.certificate.power) == 3, "assumed, and measured for each target"
    assert read_certificate(tmp_path / "run") == done.certificate


def test_all_targets_have_the_same_splits(world: Any, tmp_path: Path) -> None:
    done = moved(world, tmp_path / "run")
    splits = [
        [{part: event[part] for part in ("development", "validation", "test")} for event in events if "test" in event]
        for events in (read_events(each.directory / "journal.jsonl") for each in done.runs.values())
    ]
    assert splits[0][0] == splits[1][0]


def test_the_source_is_asked_once_for_all_targets(world: Any, tmp_path: Path) -> None:
    asked = Asked()
    done = moved(world, tmp_path / "run", asked, explain="never")
    source = asked.by["world/source"]
    assert len(source) == len(set(source)), "no request is bought twice"
    ledgers = [each.result["roles"]["source"] for each in done.runs.values()]
    assert ledgers[0]["calls"] == (12 + 16) * 2 and ledgers[1]["calls"] == 0
    assert sum(each.result["calls"] for each in done.runs.values()) == asked.every


def test_one_target_in_a_list_is_a_run_as_it_was(world: Any, tmp_path: Path) -> None:
    done = move(world, tmp_path / "run", targets=("world/target",))
    assert isinstance(done, askance.RunResult)
    assert {"result.json", "judge.yaml", "certificate.json"} <= {each.name for each in (tmp_path / "run").iterdir()}
    assert not (tmp_path / "run" / "targets").exists()


@pytest.mark.parametrize("at", [30, 130, 250])
def test_an_interrupted_migration_goes_on_and_repeats_no_call(world: Any, tmp_path: Path, at: int) -> None:
    alone = Asked()
    whole = moved(world, tmp_path / "whole", alone)
    assert alone.every > at
    first, then = Asked(stop_at=at), Asked()
    with pytest.raises(KeyboardInterrupt):
        move(world, tmp_path / "run", first)
    assert not (tmp_path / "run" / "certificate.json").exists()
    done = moved(world, tmp_path / "run", then)
    assert first.every + then.every <= alone.every + 16, "calls that were under way may be made again"
    assert done.certificate == whole.certificate


def test_caps_are_of_all_targets_together_and_resume_takes_more(world: Any, tmp_path: Path) -> None:
    whole = moved(world, tmp_path / "whole")
    calls = [each.result["calls"] for each in whole.runs.values()]
    asked = Asked()
    with pytest.raises(BudgetExceededError, match=naming("world/b", "askance resume", "--call-budget")):
        move(world, tmp_path / "run", asked, call_budget=calls[0] + calls[1] // 2)
    assert asked.every == calls[0] + calls[1] // 2
    assert not (tmp_path / "run" / "certificate.json").exists()
    done = moved(world, tmp_path / "run", asked, call_budget=sum(calls))
    assert done.certificate == whole.certificate
    assert asked.every == sum(calls)


def test_resume_takes_up_all_targets_by_their_names(world: Any, tmp_path: Path) -> None:
    moved(world, tmp_path / "run")
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["config"]
    assert config["targets"] == [*TARGETS] and "target" not in config
    with pytest.raises(InputError, match=naming("max_iterations", "targets")):
        askance.resume(tmp_path / "run", max_iterations=3)
    with pytest.raises(InputError, match=naming("alpha")):
        askance.resume(tmp_path / "run", alpha=0.5)  # type: ignore[call-arg]


def test_the_same_directory_takes_no_other_targets(world: Any, tmp_path: Path) -> None:
    moved(world, tmp_path / "run")
    with pytest.raises(InputError, match=naming("other settings (targets)")):
        move(world, tmp_path / "run", targets=("world/a", "world/c"))


def test_a_directory_of_several_judges_is_no_judge_and_names_them(world: Any, tmp_path: Path) -> None:
    moved(world, tmp_path / "run")
    with pytest.raises(InputError, match=naming("targets/world__a", "targets/world__b")):
        askance.load_judge(tmp_path / "run")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"targets": ("world/a", "world/a")}, ("world/a", "twice")),
        ({"targets": ("world/a", "world__a")}, ("world__a", "folder")),
        ({"targets": ()}, ("--target",)),
        ({"memory": "memory"}, ("memory", "one target")),
    ],
)
def test_targets_that_cannot_be_told_apart_are_refused(
    world: Any, tmp_path: Path, given: Any, said: tuple[str, ...]
) -> None:
    with pytest.raises(InputError, match=naming(*said)):
        move(world, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_an_unknown_second_target_shows_before_anything_is_bought(world: Any, tmp_path: Path) -> None:
    source, target = world.model("world/source"), world.model("world/a")
    with pytest.raises(InputError, match=naming("nonsense")):
        askance.migrate(
            world.rows,
            checklist=world.checklist,
            source=source,
            target=[target, "nonsense"],
            source_prompt=world.source_prompt,
            run=tmp_path / "run",
            **useful(world.options),
        )
    assert source.requests == target.requests == []
    assert not (tmp_path / "run" / "config.yaml").exists()
