"""Judges that a person changed, saved beside the judge of their run: ``judge-1.yaml``, ``judge-2.yaml`` and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from ..memory.judge_history import JudgeChange
from ..memory.run_directory import JUDGE_FILE
from ..prompts.errors import AskanceError, InputError

if TYPE_CHECKING:
    from ..evaluation.kept_judge import KeptJudge

SAVED = re.compile(r"judge-(\d+)\.yaml")
WAITS = 10.0
"""Seconds that a save waits for another one."""


def judge_files(run: Path) -> list[str]:
    """Names of the judges' files in the directory of a run, its own first."""
    saved = [(int(found[1]), each.name) for each in run.glob("judge-*.yaml") if (found := SAVED.fullmatch(each.name))]
    return [JUDGE_FILE, *(name for _, name in sorted(saved))]


def save_changed_judge(
    run: Path, before: KeptJudge, changed: KeptJudge, what: Sequence[str], by: str, looked_at: Sequence[str]
) -> Path:
    """Save a changed judge as a new file, whose history says what was changed; returns the file.

    Every save has a file of its own, also of two windows at once.

    Args:
        run: Directory of the run.
        before: The judge that was changed.
        what: Sentences, one a change.
        by: Name of the person.
        looked_at: Hashes of the changed judges whose validation was looked at (:class:`.ValidationLooks`).

    Raises:
        InputError: Nothing was changed.
        AskanceError: It could not be written.
    """
    if not what:
        raise InputError("Nothing is changed, so there is nothing to save.")
    change = JudgeChange(
        by=by,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        of=before.hash,
        what=tuple(what),
        looks=len(looked_at),
        shaped_on_validation=any(each != changed.hash for each in looked_at),
    )
    judge = replace(changed, history=(*before.history, change))
    try:
        with FileLock(run / ".judges.lock", timeout=WAITS):
            numbers = [int(found[1]) for each in judge_files(run) if (found := SAVED.fullmatch(each))]
            file = run / f"judge-{max(numbers, default=0) + 1}.yaml"
            judge.save(file)
    except Timeout:
        raise AskanceError(f"{run}: another window has been saving for {WAITS:g} seconds. Save again.") from None
    except OSError as error:
        raise AskanceError(f"{run}: cannot be written ({error.strerror}).") from None
    return file
