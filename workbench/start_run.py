"""Runs that the page Start begins: the ordinary command as a child process, which the page outlives or not.

The child writes what it says to ``started.log`` in the directory of its run, and holds a lock on that file while it
works: a workbench that is opened later knows by the lock whether the process is still there.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from ..optimizer.following import RunProgress
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.text_files import write_whole

ASKANCE = (sys.executable, "-P", "-m", "askance")  # -P: no module is taken from the directory that it works in
LOG_FILE, STARTED_FILE = "started.log", "started.json"
ESTIMATED_IN = 600.0
"""Seconds that an estimate may take."""
MOST_SHOWN = 20_000
"""Last bytes of the log that the page shows."""


class StartedRuns:
    """The child processes of a workbench, one a run."""

    def __init__(self, root: Path) -> None:
        """``root`` is the directory that the commands work in."""
        self.root, self._lock = root, Lock()
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}

    def estimate(self, arguments: Sequence[str]) -> str:
        """What the command says with ``--dry-run``. Raises InputError with the command's own error."""
        command = [*ASKANCE, arguments[0], "--dry-run", *arguments[1:]]
        try:
            done = subprocess.run(
                command, cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, timeout=ESTIMATED_IN, check=False
            )
        except subprocess.TimeoutExpired:
            raise AskanceError(f"The estimate was not there after {ESTIMATED_IN:g} seconds.") from None
        said = [each.decode("utf-8", "replace").strip() for each in (done.stderr, done.stdout)]
        if done.returncode:
            raise InputError("\n".join(filter(None, said)) or f"The command ended with exit code {done.returncode}.")
        return "\n".join(filter(None, said))

    def begin(self, folder: Path, arguments: Sequence[str]) -> None:
        """Start the command of a run. Raises InputError where it is running, AskanceError where the disk is full."""
        with self._lock:
            if self._works(folder):
                raise InputError(f"{self._name(folder)} is running already.")
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with (folder / LOG_FILE).open("ab") as log:
                    # the child has this open file, and the lock with it, until it ends
                    fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    log.write(f"$ askance {' '.join(map(as_typed, arguments))}\n".encode())
                    log.flush()
                    process = subprocess.Popen(
                        [*ASKANCE, *arguments],
                        cwd=self.root,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,  # Ctrl-C that ends the workbench is not for the run
                    )
                self._processes[folder] = process
                write_whole(folder / STARTED_FILE, json.dumps({"pid": process.pid, "arguments": [*arguments]}))
            except OSError as error:
                raise AskanceError(f"{folder}: the run cannot be started ({error.strerror}).") from None

    def stop(self, folder: Path) -> None:
        """Interrupt the command, as Ctrl-C does; what was bought is kept. Raises InputError where it is not running."""
        with self._lock:
            if not self._works(folder):
                raise InputError(
                    f"{self._name(folder)} is not running, or was started in a terminal: press Ctrl-C there."
                )
            mine = self._processes.get(folder)
            os.kill(_started(folder)["pid"] if mine is None else mine.pid, signal.SIGINT)

    def told(self, folder: Path) -> dict[str, Any]:
        """How far a run is: whether its command works, how it ended, where it is, and what it says."""
        with self._lock:
            works, mine = self._works(folder), self._processes.get(folder)
        code = None if works or mine is None else mine.returncode
        row: dict[str, Any] = {"works": works, "code": code, "line": None, "finished": False, "log": _log(folder)}
        if (folder / "config.yaml").is_file():
            progress = RunProgress(folder)
            progress.look()
            row |= {"line": progress.line(), "finished": (folder / "result.json").is_file() and not works}
        return row

    def _works(self, folder: Path) -> bool:
        """Whether the command that was started for a run is still there."""
        if folder in self._processes:
            return self._processes[folder].poll() is None
        try:
            with (folder / LOG_FILE).open("rb") as log:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def _name(self, folder: Path) -> str:
        return folder.relative_to(self.root).as_posix()


def _log(folder: Path) -> str:
    try:
        with (folder / LOG_FILE).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - MOST_SHOWN))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _started(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / STARTED_FILE).read_text("utf-8"))
        if found["pid"] > 1:  # 0 and below are groups of processes
            return found
        raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder / STARTED_FILE}: damaged, so the run cannot be stopped from here.") from None
