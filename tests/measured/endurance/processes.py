"""CommandRunner in processes that can be killed, each forked from one that has imported what a command needs and done
nothing else.

``python -m tests.measured.endurance.processes`` is that one: it reads a command a line and says the
number of its process, then how it ended. So a hundred kills cost the work of a hundred commands, not of importing for
them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from askance.prompts.errors import AskanceError

Jumps = Sequence[tuple[float, float]]
"""From so many seconds after the start on the clock is so many seconds ahead."""
SAID = "said.txt"
"""In its folder: what a command printed last."""
_NEEDED = ("numpy", "scipy.stats", "aiohttp", "rich.table", "yaml", "askance.cli")
_COMMANDS = ("judge_data", "make_run", "make_checklist", "weigh", "compare")


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    """Its exit code; of a signal the negative number."""
    seconds: float
    said: str

    def check(self, what: str) -> None:
        """Stop where it did not end well.

        Raises:
            AskanceError: With what it said last.
        """
        if self.code:
            raise AskanceError(f"{what} ended with code {self.code}: {self.said[-1000:]}")


class CommandRunner:
    """Runs commands one after the other, as a context manager; :attr:`process` is the one that runs, to be killed."""

    def __init__(self) -> None:
        self.process: int | None = None
        self._began = 0.0

    def __enter__(self) -> CommandRunner:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", __spec__.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._parent.stdin.close()
        self._parent.stdout.close()
        self._parent.wait(10)

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        cache: Path | None = None,
        file_limit: int | None = None,
        clock: Jumps = (),
    ) -> None:
        """Start a command in a folder.

        Args:
            arguments: Of the command line.
            folder: Where it runs; what it prints is kept there.
            cache: Where its answers are kept; default: in its folder.
            file_limit: Bytes past which no file may grow, which is as good as a full disk.
            clock: As of :func:`jump_the_clock`.
        """
        assert self._parent.stdin is not None
        self._folder, self._began = folder, time.monotonic()
        order = {"arguments": list(arguments), "folder": str(folder), "file_limit": file_limit, "clock": list(clock)}
        order["cache"] = str(cache or folder / "cache")
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        self.process = int(self._line())

    def kill(self) -> bool:
        """Kill the one that runs; false where there is none."""
        process = self.process
        if process is None:
            return False
        try:
            os.kill(process, 9)
        except ProcessLookupError:
            return False
        return True

    def wait(self) -> Ended:
        """Wait for its end."""
        code = int(self._line())
        self.process = None
        said = (self._folder / SAID).read_text(encoding="utf-8", errors="replace")
        return Ended(code, time.monotonic() - self._began, said)

    def run(self, arguments: Sequence[str], folder: Path, **how: Any) -> Ended:
        """Start, as :meth:`start`, and wait."""
        self.start(arguments, folder, **how)
        return self.wait()

    def _line(self) -> str:
        assert self._parent.stdout is not None
        line = self._parent.stdout.readline()
        if not line:
            raise AskanceError("The process that starts commands has ended; what it said is above.")
        return line


def _serve() -> None:
    import importlib

    for name in (*_NEEDED, *(f"askance.commands.{each}" for each in _COMMANDS)):
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        process = os.fork()
        if not process:
            _command(**order)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def jump_the_clock(jumps: Jumps) -> None:
    """Have this process see another wall clock from now on; the monotonic clock goes on, as the system's does."""
    began, real = time.monotonic(), time.time

    def ahead() -> float:
        passed = time.monotonic() - began
        return next((each for after, each in reversed(jumps) if passed >= after), 0.0)

    def now() -> float:
        return real() + ahead()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Jumping:
            return cls.fromtimestamp(now(), tz)

    time.time = now
    for name, module in [*sys.modules.items()]:
        if name.startswith("askance."):
            for attribute, value in [*vars(module).items()]:
                if value is real:
                    setattr(module, attribute, now)
                elif value is datetime:
                    setattr(module, attribute, Jumping)


def _command(arguments: list[str], folder: str, cache: str, file_limit: int | None, clock: Jumps) -> Any:
    """Become a command: its folder, cache and output, then the command line."""
    import resource
    import signal

    said = os.open(Path(folder) / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for stream, place in ((null, 0), (said, 1), (said, 2)):
        os.dup2(stream, place)
    os.chdir(folder)
    os.environ["ASKANCE_CACHE"] = cache
    for name in ("ASKANCE_STORE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        os.environ.pop(name, None)
    if file_limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    if clock:
        jump_the_clock(clock)
    code = 1
    try:
        sys.modules[_NEEDED[-1]].main(arguments)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream_out in (sys.stdout, sys.stderr):
            try:
                stream_out.flush()
            except OSError:
                code = code or 1
        os._exit(code)


if __name__ == "__main__":
    _serve()
