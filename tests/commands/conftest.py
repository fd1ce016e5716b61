"""A model behind a server, and the command line in this process."""

from __future__ import annotations

from collections.abc import Callable

from askance.testing import StandInServer


class CommandLine:
    """Calls it with a server and some data at hand: exit code, standard output, standard error."""

    def __init__(self, cli: Callable[..., tuple[int, str, str]], server: StandInServer, data: str) -> None:
        self.cli, self.server, self.data = cli, server, data

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        return self.cli(*arguments)
