"""A finished run whose people passed or failed, for the pages about its judge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import askance
from askance.testing import StandInServer
from tests.optimizer.questions.conftest import MuteDesk
from tests.report.conftest import browser, port  # noqa: F401
from tests.worlds import World, example_ids, useful


class PassFailWorld(World):
    """People pass an output or fail it."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [{**row, "human": {"quality": row["human"]["quality"] > 3.0}} for row in super().rows]


FURTHER = "Does the summary say what the document says?"
"""A question that the world below knows beside its own; any other one it answers in words that are no answer."""


class AskedWorld(PassFailWorld):
    """A world whose judge can be asked a further question."""

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        everything = "\n".join(content for _, content in messages)
        if FURTHER in everything:
            return 0.9 if self.flaw(sorted(example_ids(messages))[0], "facts") is None else 0.1
        return super().reply(messages, schema)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, StandInServer]]:
    """A run whose model still answers, at a server; copy the run before anything is written."""
    world, run = AskedWorld(120), tmp_path_factory.mktemp("served") / "aligned"
    with pytest.MonkeyPatch.context() as patch, StandInServer(world.serve) as server:
        patch.setenv("ASKANCE_CACHE", str(run.parent / "cache"))
        patch.setenv("OPENAI_API_KEY", "none")
        options = useful(world.options | {"max_iterations": 1})
        askance.align(
            world.rows,
            checklist=world.checklist,
            model="openai/judge",
            prompt=world.prompt,
            run=run,
            api_base=server.url,
            **options,
        )
        yield run, server


@pytest.fixture
def asked_runs(served: tuple[Path, StandInServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with that run in ``team/aligned``."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    shutil.copytree(served[0], tmp_path / "asked" / "team" / "aligned")
    return tmp_path / "asked"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ``align``; copy it before anything is written."""
    run = tmp_path_factory.mktemp("workbench") / "aligned"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASKANCE_CACHE", str(run.parent / "cache"))
        PassFailWorld(120).align(run)
    return run


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> Path:
    """A directory with the run in ``team/aligned``."""
    shutil.copytree(finished, tmp_path / "runs" / "team" / "aligned")
    return tmp_path / "runs"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with data, a checklist, a prompt and a settings file, and a server that answers slowly."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    world, folder = PassFailWorld(60), tmp_path / "project"
    world.write(folder)
    with StandInServer(world.serve, delay=0.05) as server:
        settings = {"api_base": server.url, "embedder": "words", "resamples": 200, "update": "edits"}
        settings |= {"max_iterations": 1, "max_concurrency": 2, "trial": False, "alpha": 0.2}
        (folder / "askance.yaml").write_text(yaml.safe_dump(settings))
        yield folder


@pytest.fixture(scope="session")
def commented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ``align`` whose people wrote comments, and whose judge has no question about prices; copy it first."""
    run = tmp_path_factory.mktemp("workbench") / "desk"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASKANCE_CACHE", str(run.parent / "cache"))
        MuteDesk(120).align(run, learn_from="development")
    return run


@pytest.fixture
def desks(commented: Path, tmp_path: Path) -> Path:
    """A directory with that run in ``desk``."""
    shutil.copytree(commented, tmp_path / "desks" / "desk")
    return tmp_path / "desks"
