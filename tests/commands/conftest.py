"""A model behind a server, and the command line in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from askance.cli import main
from askance.testing import StandInServer


@pytest.fixture
def server(world: Any) -> Iterator[StandInServer]:
    with StandInServer(world.serve) as one:
        yield one


class CommandLine:
    """Calls it with a server and some data at hand: exit code, standard output, standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str], server: StandInServer, data: str) -> None:
        self.capsys, self.server, self.data = capsys, server, data

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        return int(ended.value.code or 0), said.out, said.err
