"""The verdicts that a run kept of its first and its best version, as ``verdicts/`` in its directory has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError
from ..prompts.rows import read_rows
from ..prompts.verdicts import read_verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..prompts.verdicts import Verdict

Pair = tuple[str, str]
"""Example id and question id."""


@dataclass(frozen=True)
class Scored:
    """One test example."""

    example: str
    before: float | None
    after: float | None
    """None where a verdict is missing, or where the prompt did not change."""
    wanted: float | None
    """People's or the source's score; None where a generator is improved."""

    @property
    def better(self) -> float | None:
        """How much nearer to the wanted score it came, or where there is none, how much its score rose."""
        if self.before is None or self.after is None:
            return None
        if self.wanted is None:
            return self.after - self.before
        return abs(self.before - self.wanted) - abs(self.after - self.wanted)


@dataclass(frozen=True)
class Kept:
    """What versions did; empty where the run did not keep it."""

    first: int = 0
    best: int = 0
    verdicts: Mapping[tuple[int, str], Sequence[Verdict]] = field(default_factory=dict)
    """By version and split (``development`` or ``test``)."""
    wanted: Mapping[Pair, float] = field(default_factory=dict)
    """What P(yes) should have been, as far as anybody knows."""
    outputs: Mapping[tuple[int, str], str | None] = field(default_factory=dict)
    """What a generator wrote, by version and example."""
    questions: Mapping[Pair, tuple[str, str]] = field(default_factory=dict)
    """Text and dimension of questions that only one example has."""
    scored: Sequence[Scored] = ()
    """The test examples."""

    def of(self, version: int, split: str) -> Sequence[Verdict]:
        """A version's verdicts; empty where they were not kept."""
        return self.verdicts.get((version, split), ())


def read_kept(run: Path, best: int) -> Kept:
    """Read what a run kept; runs of older versions kept nothing.

    Raises:
        InputError: A file is damaged.
    """
    folder = run / "verdicts"
    if not folder.is_dir():
        return Kept(best=best)
    verdicts = {}
    for version in {0, best}:
        for split in ("development", "test"):
            file = folder / f"{version:03d}-{split}.jsonl"
            if file.exists() and file.stat().st_size:
                verdicts[version, split] = read_verdicts(file)
    return Kept(
        0,
        best,
        verdicts,
        {(row["example"], row["question"]): row["p_yes"] for row in _rows(folder, "reference", "question", "p_yes")},
        {(row["version"], row["example"]): row["output"] for row in _rows(folder, "outputs", "version", "output")},
        {
            (row["example"], row["id"]): (row["text"], row["dimension"])
            for row in _rows(folder, "questions", "id", "text", "dimension")
        },
        _scored(_rows(folder, "scores", "version", "score", "wanted"), best),
    )


def _scored(rows: Sequence[Mapping[str, Any]], best: int) -> list[Scored]:
    after = {row["example"]: row["score"] for row in rows if row["version"] == best and best != 0}
    return [
        Scored(row["example"], row["score"], after.get(row["example"]), row["wanted"])
        for row in rows
        if row["version"] == 0
    ]


def _rows(folder: Path, name: str, *fields: str) -> list[dict[str, Any]]:
    file = folder / f"{name}.jsonl"
    if not file.exists():
        return []
    rows = [row for _, row in read_rows(file)]
    for row in rows:
        lacking = next((each for each in ("example", *fields) if each not in row), None)
        if lacking is not None:
            raise InputError(f"{file}: a row without '{lacking}'; not written by askance, or damaged.")
    return rows
