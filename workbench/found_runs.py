"""Runs under a directory: the command, the decision, the gain, the cost and the progress of each run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..evaluation.judge_file import load_judge
from ..memory.certificate_file import CERTIFICATE_FILE, TARGETS, is_migration, read_certificate
from ..memory.decision import decide, measured_name
from ..memory.run_directory import JUDGE_FILE, RunDirectory
from ..optimizer.following import RunProgress
from ..prompts.errors import AskanceError, InputError
from ..prompts.formatting import money
from ..stats.differences import difference_dict

MOST_DEEP = 6
"""Most levels of folders below the directory that are searched."""
PARTS_OF_A_RUN = ("inputs", "prompts", "verdicts", TARGETS)
LOCK_EVERY = 5.0
"""Seconds between two checks whether a process works on a run. Each check takes the run's lock."""
WAITS = 10.0
"""Most seconds that a save waits for another save."""
RUN_FILES = ("config.yaml", "journal.jsonl", "result.json", CERTIFICATE_FILE)
JUDGE_ALONE = "A judge without a run: it can be looked at, changed and saved, and nothing was measured."


@dataclass
class FoundRuns:
    """The runs under a directory. Data of a finished run are kept in memory until its files change."""

    root: Path
    _named: dict[str, Path] = field(default_factory=dict)
    _kept: dict[Path, tuple[tuple[float, ...], dict[str, Any]]] = field(default_factory=dict)
    _progress: dict[Path, tuple[RunProgress, float, bool]] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """Return every run as JSON for the page, the newest first. A damaged run has a ``problem`` in words."""
        self._named = {self._name(each): each for each in run_folders(self.root)}
        rows = [self._row(folder) for folder in self._named.values()]
        return sorted(rows, key=lambda row: row["when"], reverse=True)

    def folder(self, name: str) -> Path:
        """Return the directory of a run by its name in :meth:`rows`. Raises InputError if there is no such run."""
        if name not in self._named:  # the run may be new since the page was shown
            self._named = {self._name(each): each for each in run_folders(self.root)}
        if (found := self._named.get(name)) is None:
            raise InputError(f"There is no run '{name}' under {self.root}.")
        return found

    def _name(self, folder: Path) -> str:
        return folder.relative_to(self.root).as_posix()

    def _row(self, folder: Path) -> dict[str, Any]:
        stamp = tuple(changed_at(folder / name) for name in (*RUN_FILES, JUDGE_FILE))
        if folder in self._kept and self._kept[folder][0] == stamp:
            return self._kept[folder][1]
        # The time of the judge's file counts only if there is no run.
        when = datetime.fromtimestamp(max(stamp[:-1]) or stamp[-1] or changed_at(folder), UTC).isoformat(
            timespec="seconds"
        )
        row: dict[str, Any] = {"run": self._name(folder), "name": folder.resolve().name, "when": when, "judge": False}
        try:
            row |= self._told(folder)
        except (AskanceError, InputError, OSError, ValueError, KeyError, TypeError) as error:
            text = str(error) if isinstance(error, AskanceError) else f"damaged ({type(error).__name__}: {error})"
            return row | {"state": "damaged", "problem": text}
        if row["state"] in ("finished", "judge"):
            self._kept[folder] = stamp, row
        return row

    def _told(self, folder: Path) -> dict[str, Any]:
        if is_migration(folder):
            return _migration(folder)
        directory = RunDirectory(folder)
        if not directory.config_file.is_file() and (folder / JUDGE_FILE).is_file():
            return {
                "command": "",
                "model": load_judge(folder).asked,
                "state": "judge",
                "line": JUDGE_ALONE,
                "judge": True,
            }
        config = directory.read_config()["config"]
        asked = {"command": str(config.get("command", "run")), "model": _model(config)}
        if not directory.finished:
            return asked | self._unfinished(folder)
        result = directory.read_result()
        advice, tested = decide(result), result.gain.test is not None and result.gain.test.value is not None
        gain = result.gain.test if tested else result.gain.validation
        return asked | {
            "state": "finished",
            "decided": advice.choice,
            "headline": advice.headline,
            "gain": None if gain is None else difference_dict(gain),
            "gain_of": f"{measured_name(result)}, on {'test' if tested else 'validation'}",
            "calls": result.calls,
            "cost": None if result.cost_usd is None else money(result.cost_usd),
            "judge": result.is_judge,
        }

    def _unfinished(self, folder: Path) -> dict[str, Any]:
        progress, asked_at, works = self._progress.get(folder, (RunProgress(folder), 0.0, False))
        progress.look()
        if (now := time.monotonic()) - asked_at > LOCK_EVERY or not asked_at:
            asked_at, works = now, progress.worked_on()
        self._progress[folder] = progress, asked_at, works
        return {"state": "running" if works else "stopped", "line": progress.line()}


def run_folders(root: Path) -> Iterator[Path]:
    """Yield the directories of runs, and of judges without a run, under a directory, itself included."""
    return (here for here, names, is_run in shown_folders(root) if is_run or JUDGE_FILE in names)


def shown_folders(root: Path) -> Iterator[tuple[Path, list[str], bool]]:
    """Yield the folders under a directory, itself included: path, names of files, and whether the folder is a run's.
    Parts of a run and hidden folders are left out. Links are not followed."""
    depth = len(root.parts)
    for place, folders, names in os.walk(root):
        folder = Path(place)
        is_run = _is_run(folder, folders, names)
        hidden = [each for each in folders if each.startswith((".", "__")) or each == "node_modules"]
        left_out = {*hidden, *(PARTS_OF_A_RUN if is_run else ())}
        folders[:] = [] if len(folder.parts) - depth >= MOST_DEEP else sorted(set(folders) - left_out)
        yield folder, names, is_run


def _is_run(here: Path, folders: list[str], names: list[str]) -> bool:
    if "config.yaml" in names or "result.json" in names:
        return "journal.jsonl" in names or "inputs" in folders
    return is_migration(here)


def _migration(folder: Path) -> dict[str, Any]:
    """Return the row of a migration to several targets, or of a generator's prompt."""
    found = read_certificate(folder)
    decided = {name: each.decision.replace("_", " ") for name, each in found.targets.items()}
    differences = [each.difference.model_dump() for each in found.targets.values() if each.difference.value is not None]
    measure = "pass rate" if found.measure is None else "agreement"
    return {
        "command": "migrate",
        "model": ", ".join(found.targets),
        "state": "finished",
        "decided": ", ".join(dict.fromkeys(decided.values())),
        "headline": "; ".join(f"{name}: {word}" for name, word in decided.items()),
        "gain": differences[0] if len(differences) == len(found.targets) == 1 else None,
        "gain_of": f"{measure} on test, new less old",
        "calls": found.calls,
        "cost": None if found.cost_usd is None else money(found.cost_usd),
    }


def _model(config: dict[str, Any]) -> str:
    names = ("model", "target", "targets", "generator")
    found = next((config[name] for name in names if config.get(name)), "")
    return ", ".join(map(str, found)) if isinstance(found, (list, tuple)) else str(found)


def changed_at(path: Path) -> float:
    """Return when a file or folder changed last, in seconds since 1970; 0 if there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@contextmanager
def saving(folder: Path, lock: str) -> Iterator[None]:
    """Lock a folder while a numbered file is saved in it, so that two windows that save at once get a file each. Raises
    AskanceError if another save takes too long, or nothing can be written."""
    try:
        folder.mkdir(exist_ok=True)
        with FileLock(folder / lock, timeout=WAITS):
            yield
    except Timeout:
        raise AskanceError(f"{folder}: another window has been saving for {WAITS:g} seconds. Save again.") from None
    except OSError as error:
        raise AskanceError(f"{folder}: cannot be written ({error.strerror}).") from None
