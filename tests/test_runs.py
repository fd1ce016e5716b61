"""A run leaves its report beside its result, however it was started."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.events import Event, RunWritten
from askance.optimizer.loop import run_job
from askance.optimizer.modes import align
from askance.prompts.errors import CoverageError

from .said import naming

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.mark.parametrize("mode", ["migrate", "align"])
def test_a_run_from_python_writes_its_report(world: Any, tmp_path: Path, mode: str) -> None:
    done = getattr(world, mode)(tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and done.directory == tmp_path / "run"


def test_so_does_one_of_a_generator_and_one_within_a_running_event_loop(letters: Any, tmp_path: Path) -> None:
    async def in_a_cell() -> None:
        letters.tune(tmp_path / "run")

    asyncio.run(in_a_cell())
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_run_that_is_gone_on_with_writes_it_again(letters: Any, tmp_path: Path) -> None:
    letters.tune(tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    letters.tune(tmp_path / "run")
    assert (tmp_path / "run" / "report.html").is_file()


def test_callbacks_find_the_report_when_they_hear_that_all_is_written(world: Any, tmp_path: Path) -> None:
    there: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, RunWritten):
            there.append((event.directory / "report.html").is_file())

    world.align(tmp_path / "run", callbacks=[listen])
    assert there == [True]


def test_too_little_coverage_is_an_error_with_a_report(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p_yes = world.p_yes
    monkeypatch.setattr(world, "p_yes", lambda *asked: "perhaps" if asked[1] == "e003" else p_yes(*asked))
    with pytest.raises(CoverageError, match=naming("--min-coverage")):
        world.align(tmp_path / "run", max_iterations=1, min_coverage=0.999, explain="never")
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_loop_alone_writes_no_report(world: Any, tmp_path: Path) -> None:
    options = {"embedder": "words", "resamples": 200, "max_iterations": 1}
    job = align.prepare(world.rows, world.checklist, world.model("world/target"), world.prompt, options)
    run_job(job, RunDirectory(tmp_path / "run"), Silent())
    assert (tmp_path / "run" / "result.json").is_file() and not (tmp_path / "run" / "report.html").exists()
