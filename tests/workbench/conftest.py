"""A finished run whose people passed or failed, for the pages about its judge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.testing import StandInServer
from tests.optimizer.questions.conftest import MuteDesk
from tests.report.conftest import browser, port  # noqa: F401
from tests.worlds import World


class PassFailWorld(World):
    """People pass an output or fail it."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [{**row, "human": {"quality": row["human"]["quality"] > 3.0}} for row in super().rows]


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
    with StandInServer(world.serve, delay=0.01) as server:
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
