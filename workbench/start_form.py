"""The form of the page Start: it turns a person's choices into arguments of the ordinary command line.

Only files under the workbench's directory and names of models can be chosen. A program that writes outputs must be
named in the settings file. The arguments are a list, which no shell reads.

A run is the ordinary command as a child process, which may end before or after the workbench. The child writes its
messages to ``started.log`` in the run's directory, and holds a lock on that file while it works. By this lock, a
workbench that is opened later knows whether the process still works.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from ..labelling.local_server import PageMessage, add_act
from ..memory.run_directory import JUDGE_FILE
from ..models.programs import is_program
from ..optimizer.following import RunProgress
from ..prompts.checklist import READY
from ..prompts.errors import AskanceError, InputError, as_typed
from ..prompts.text_files import write_whole
from .found_runs import shown_folders

Command = Literal["align", "migrate", "tune"]
Kind = Literal["data", "text", "checklist", "model", "run", "judge"]
FIELDS: dict[Command, dict[str, Kind]] = {
    "align": {"data": "data", "checklist": "checklist", "model": "model", "prompt": "text", "from": "run"},
    "migrate": {
        "data": "data",
        "prompt": "text",
        "source": "model",
        "target": "model",
        "judge": "judge",
        "checklist": "checklist",
        "requirements": "checklist",
    },
    "tune": {
        "data": "data",
        "prompt": "text",
        "generator": "model",
        "judge": "judge",
        "checklist": "checklist",
        "from": "run",
    },
}
"""Options of each command that the page offers; all others can be given in the settings file."""
SETTINGS_FILE = "askance.yaml"
SUFFIXES: dict[str, tuple[str, ...]] = {
    "data": (".jsonl", ".csv", ".tsv", ".json", ".xlsx", ".parquet"),
    "text": (".md", ".txt", ".jinja", ".json", ".yaml", ".yml", ".prompty"),
    "checklist": (".yaml", ".yml", ".json"),
    "settings": (".yaml", ".yml"),
}
MOST_FILES = 2_000
"""Most files that are offered for choice; the search ends there."""
MODEL = re.compile(r"[A-Za-z0-9][\w.@:+-]*(/[\w@:+-][\w.@:+-]*)*", re.ASCII)
FOLDER = re.compile(r"\w[\w .-]*(/\w[\w .-]*)*")
CAPS = ("call_budget", "cost_budget")
ASKANCE = (sys.executable, "-P", "-m", "askance")  # -P: no module is taken from the directory that it works in
LOG_FILE, STARTED_FILE = "started.log", "started.json"
ESTIMATED_IN = 600.0
"""Most seconds that an estimate may take."""
MOST_SHOWN = 20_000
"""Most bytes at the end of the log that the page shows."""


class OneRun(PageMessage):
    """A message of the page about a run."""

    run: str = Field(min_length=1, max_length=200)
    """Directory of the run, below the workbench's directory."""
    call_budget: int | None = Field(None, ge=1)
    cost_budget: float | None = Field(None, gt=0)
    yes: bool = False
    """Whether the requirements that a migration proposes are accepted."""

    def limits(self) -> list[str]:
        """Return the caps, and ``--yes``, as options. Raises InputError if there is no cap."""
        given = [(name, value) for name in CAPS if (value := getattr(self, name)) is not None]
        if not given:
            raise InputError("A cap is needed: the most calls, or the most dollars, that the run may take.")
        return [*(f"--{name.replace('_', '-')}={value}" for name, value in given), *(["--yes"] if self.yes else [])]


class NewRun(OneRun):
    """A message of the page to estimate or begin a run, with the person's choices."""

    command: Command
    inputs: dict[str, str] = Field(default_factory=dict)
    """Chosen values by option name; ``data`` is the command's argument."""
    settings: str | None = None


class StartForm:
    """Checks a person's choices, and hands them to the commands."""

    def __init__(self, root: Path, runs: Callable[[], list[dict[str, Any]]]) -> None:
        """``runs`` returns the rows of the page Runs."""
        self.root, self._runs, self._started = root, runs, StartedRuns(root)
        self._estimated: set[tuple[str, ...]] = set()

    def choices(self, _: PageMessage) -> dict[str, Any]:
        """Return the commands with their fields, and the choices for each kind of field."""
        names = self._files()
        rows = [row for row in self._runs() if row["run"] != "."]
        chosen: dict[str, list[str]] = {kind: [*_ending(names, ends)] for kind, ends in SUFFIXES.items()}
        chosen["checklist"] += READY
        chosen["run"] = [row["run"] for row in rows if row["state"] == "finished"]
        chosen["judge"] = [row["run"] for row in rows if row.get("judge")]
        return {
            "fields": FIELDS,
            "choices": chosen,
            "settings": SETTINGS_FILE if SETTINGS_FILE in chosen["settings"] else None,
            "stopped": [row["run"] for row in rows if row["state"] == "stopped"],
            "running": [row["run"] for row in rows if row["state"] == "running"],
        }

    def estimate(self, asked: NewRun) -> dict[str, Any]:
        """Return the estimate of a run. The run can be begun after that."""
        arguments = self.arguments(asked)
        said = self._started.estimate(arguments)
        self._estimated.add(arguments)
        return {"said": said}

    def begin(self, asked: NewRun) -> dict[str, Any]:
        """Start a run. Raises InputError if nobody asked for its estimate before."""
        arguments, limits = self.arguments(asked), asked.limits()
        if arguments not in self._estimated:
            raise InputError("Ask first what the run would take.")
        self._started.begin(self._folder(asked.run), (arguments[0], *limits, *arguments[1:]))
        return self.state(asked)

    def resume(self, asked: OneRun) -> dict[str, Any]:
        """Go on with a stopped run from the files in its directory, wherever the run was begun."""
        folder = self._folder(asked.run)
        self._started.begin(folder, ("resume", *asked.limits(), "--", asked.run))
        return self.state(asked)

    def stop(self, asked: OneRun) -> dict[str, Any]:
        """Interrupt a run; the answers that were bought are kept."""
        self._started.stop(self._folder(asked.run))
        return self.state(asked)

    def state(self, asked: OneRun) -> dict[str, Any]:
        """Return how far a run is. Raises InputError if there is no such run."""
        folder = self._folder(asked.run)
        if not folder.is_dir():
            raise InputError(f"There is no run '{asked.run}' under {self.root}.")
        return self._started.told(folder) | {"run": asked.run, "judge": (folder / JUDGE_FILE).is_file()}

    def arguments(self, asked: NewRun) -> tuple[str, ...]:
        """Return the command line, without its program and without caps. Raises InputError for a wrong choice."""
        fields, names = FIELDS[asked.command], self._files()
        found: list[str] = [asked.command]
        for name, value in asked.inputs.items():
            if (kind := fields.get(name)) is None:
                raise InputError(f"{asked.command} has no field '{name}' on this page.")
            self._check(name, kind, value, names)
            if name != "data":
                found.append(f"--{name}={value}")
        if asked.settings is not None:
            self._check("settings", "settings", asked.settings, names)
            found.append(f"--config={asked.settings}")
        self._folder(asked.run)
        data = ["--", asked.inputs["data"]] if "data" in asked.inputs else []
        return (*found, f"--run={asked.run}", *data)

    def _check(self, name: str, kind: str, value: str, names: list[str]) -> None:
        """Refuse a value that the page does not offer for a field. Raises InputError."""
        is_judge = kind == "judge" and value in [row["run"] for row in self._runs() if row.get("judge")]
        if kind in ("model", "judge") and not is_judge:
            if is_program(value):
                raise InputError(f"{name}: a program is named in the settings file, not on this page.")
            if MODEL.fullmatch(value) is None or ".." in value:
                raise InputError(f"{name}: a model is needed, as provider/model or a name in the settings file.")
        elif kind == "run" and value not in [row["run"] for row in self._runs() if row["state"] == "finished"]:
            raise InputError(f"{name}: there is no finished run '{value}' under {self.root}.")
        elif kind in SUFFIXES and value not in (
            *_ending(names, SUFFIXES[kind]),
            *(READY if kind == "checklist" else ()),
        ):
            raise InputError(f"{name}: there is no such file under {self.root}: '{value}'.")

    def _folder(self, run: str) -> Path:
        """Return the directory of a run, which need not exist yet. Raises InputError if it is outside the workbench's
        directory, or inside another run."""
        folder = self.root / run
        if FOLDER.fullmatch(run) is None or not folder.resolve().is_relative_to(self.root.resolve()):
            raise InputError(
                f"run: the name of a directory under {self.root} is needed, of letters, digits, blanks, '.', '-', "
                f"'_' and '/', not '{run}'."
            )
        above = [each for each in folder.parents if each.is_relative_to(self.root) and each != self.root]
        if inside := next((each for each in above if (each / "config.yaml").is_file()), None):
            raise InputError(f"run: {inside.relative_to(self.root)} is a run itself. Choose a directory beside it.")
        return folder

    def _files(self) -> list[str]:
        """List the files that can be chosen, relative to the workbench's directory."""
        found: list[str] = []
        for folder, names, _ in shown_folders(self.root):
            near = folder.relative_to(self.root)
            found += [
                (near / name).as_posix()
                for name in sorted(names)
                if not name.startswith((".", "-")) and not (folder / name).is_symlink()
            ]
            if len(found) >= MOST_FILES:
                break
        return found[:MOST_FILES]


def _ending(names: list[str], suffixes: tuple[str, ...]) -> list[str]:
    return [each for each in names if each.lower().endswith(suffixes)]


def add_start(app: web.Application, form: StartForm) -> None:
    """Have an application answer the page Start."""
    add_act(app, "start/choices", PageMessage, form.choices)
    for name, begun in (("estimate", form.estimate), ("begin", form.begin)):
        add_act(app, f"start/{name}", NewRun, begun)
    for name, on in (("resume", form.resume), ("stop", form.stop), ("state", form.state)):
        add_act(app, f"start/{name}", OneRun, on)


class StartedRuns:
    """The child processes of a workbench, one for each run."""

    def __init__(self, root: Path) -> None:
        """``root`` is the working directory of the commands."""
        self.root, self._lock = root, Lock()
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}

    def estimate(self, arguments: Sequence[str]) -> str:
        """Return the command's output with ``--dry-run``. Raises InputError with the command's own error, AskanceError
        after :data:`ESTIMATED_IN` seconds."""
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
        """Start the command of a run. Raises InputError if it is running, AskanceError if it cannot be started."""
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
        """Interrupt the command as Ctrl-C does; bought answers are kept. Raises InputError if it is not running."""
        with self._lock:
            if not self._works(folder):
                raise InputError(
                    f"{self._name(folder)} is not running, or was started in a terminal: press Ctrl-C there."
                )
            mine = self._processes.get(folder)
            os.kill(_started(folder)["pid"] if mine is None else mine.pid, signal.SIGINT)

    def told(self, folder: Path) -> dict[str, Any]:
        """Return how far a run is: whether its command works, its exit code, its progress, and its log."""
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
        """Whether the command that was started for a run still works."""
        if folder in self._processes:
            return self._processes[folder].poll() is None
        try:
            with (folder / LOG_FILE).open("rb") as log:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # a command that another workbench started holds the lock
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
