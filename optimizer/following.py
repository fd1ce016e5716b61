"""Following a run from another process, as ``askance watch`` does: its progress, read from its journal and store."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..memory.journal import JournalTail, has_ended
from ..memory.run_directory import RunDirectory
from ..prompts.errors import AskanceError, InputError

DOING = {
    "split": "judging with the starting prompt",
    "wordings": "wording questions",
    "disagreements": "asking for reasons",
    "reasons": "drawing lessons",
    "requirement": "judging validation examples",
    "recalled": "judging validation examples",
    "no_note": "drawing lessons",
    "lesson": "drawing lessons",
    "learned": "writing edits",
    "retired": "writing edits",
    "edit": "writing edits",
    "no_edit": "writing edits",
    "trial": "trying lessons",
    "question": "judging with new questions",
    "decision": "judging validation examples",
    "pruning": "trying to take edits out again",
    "stopped": "ending",
    "test": "looking at the test examples",
    "finished": "writing the result",
}
"""Usual work of a run after an event of each kind."""
LEARNING = "judging with the start, then reading comments and trying questions"
"""Work at the start of a run that learns questions. The journal has no event before the questions are judged."""


@dataclass(frozen=True, slots=True)
class InStore:
    """Answers in the run's store that the run bought; answers from other commands do not count."""

    answers: int
    tokens: int
    cost_usd: float


@dataclass
class RunProgress:
    """Progress of a run by its events so far; :meth:`look` reads on."""

    path: Path
    events: list[dict[str, Any]] = field(default_factory=list)
    """Valid events so far, without those that a resumed run replaced."""

    def __post_init__(self) -> None:
        """Check that there is a run; raises InputError."""
        self._run = RunDirectory(self.path)
        self.config: dict[str, Any] = dict(self._run.read_config()["config"])
        self._tail = JournalTail(self.path / "journal.jsonl")

    def look(self) -> list[dict[str, Any]]:
        """Read on, and return the new rows. Raises InputError where the journal is damaged."""
        rows = self._tail.read()
        for row in rows:
            if row["event"] == "diverged":
                del self.events[row["at"] :]
            else:
                self.events.append(row)
        return rows

    @property
    def iteration(self) -> int:
        """The present iteration, from 1; 0 before the first."""
        return max((int(row.get("iteration") or 0) for row in self.events), default=0)

    @property
    def doing(self) -> str:
        """The probable present work. It is a guess, because the journal has what is done, not what is begun."""
        if self.written:
            return "finished"
        last = self.events[-1]["event"] if self.events else "split"
        learns = self.config.get("command") == "align" and self.config.get("update") in ("auto", "questions")
        if learns and last == "split" and not self.config.get("calibrate"):
            return LEARNING
        return DOING.get(last, "working")

    @property
    def decided(self) -> tuple[int, int]:
        """Numbers of accepted and rejected candidates."""
        decisions = [bool(row["accepted"]) for row in self.events if row["event"] == "decision"]
        return sum(decisions), len(decisions) - sum(decisions)

    @property
    def questions(self) -> tuple[int, int]:
        """Numbers of proposed questions, and of those that went to the acceptance test."""
        problems = {row["id"]: row["problem"] for row in self.events if row["event"] == "question"}
        return len(problems), list(problems.values()).count(None)

    @property
    def gain(self) -> float | None:
        """Gain of the accepted version over the starting one, on validation; None before anything was accepted."""
        kept = [row.get("gain") or {} for row in self.events if row.get("accepted") or row.get("removed")]
        gains = [gain["value"] for gain in kept if gain.get("value") is not None]
        return sum(gains) if gains else None

    @property
    def written(self) -> bool:
        """Whether everything is measured and the result is written."""
        return has_ended(self.events) and (self.path / "result.json").is_file()

    @property
    def silent_for(self) -> float | None:
        """Seconds since the last event; None before the first."""
        if not self.events or "time" not in self.events[-1]:
            return None
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.events[-1]["time"])).total_seconds())

    def worked_on(self) -> bool:
        """Whether a process works on the run.

        The check takes the run's lock for some microseconds, so do not call it all the time. If the lock cannot be
        taken because the directory belongs to another user, the run counts as worked on until its result is written.
        """
        lock = self.path / ".lock"
        if not os.access(lock if lock.exists() else self.path, os.W_OK):
            return not self.written
        try:
            with self._run.lock():
                return False
        except InputError:
            raise
        except AskanceError:
            return True

    def bought(self) -> InStore | None:
        """Count the answers in the run's store; None where there is no store yet, or it cannot be read now."""
        file = self.path / "verdicts.db"
        if not file.is_file():
            return None
        try:
            db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
            try:
                total = "count(*), coalesce(sum(prompt_tokens + completion_tokens), 0), coalesce(sum(cost_usd), 0)"
                brought = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'brought'").fetchone()
                own = " WHERE key NOT IN (SELECT key FROM brought)" if brought else ""
                return InStore(*db.execute(f"SELECT {total} FROM answers{own}").fetchone())
            finally:
                db.close()
        except sqlite3.Error:
            return None

    def line(self) -> str:
        """Return the progress of the run in one line."""
        accepted, rejected = self.decided
        most = self.config.get("max_iterations")
        parts = [f"iteration {self.iteration}{f' of {most}' if most else ''}" if self.iteration else "at the start"]
        proposed, tried = self.questions
        asked = [f"{proposed} questions proposed, {tried} to the acceptance test"] if proposed else []
        gain = "" if self.gain is None else f", validation {self.gain:+.3f}"
        parts += [self.doing, *asked, f"{accepted} accepted, {rejected} rejected{gain}"]
        bought = self.bought()
        if bought is not None:
            money = f", ${bought.cost_usd:.4f}" if bought.cost_usd else ""
            parts.append(f"{bought.answers:,} answers, {bought.tokens:,} tokens{money}")
        return " · ".join(parts)
