"""The difference of two runs' judges or generators, and of their scores on shared test examples; no model is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ...memory.run_directory import RunDirectory
from ...prompts.checklist import marked
from ...prompts.errors import InputError
from ...prompts.examples import documents
from ...prompts.formatting import Figure, number
from ...prompts.rows import validate_row
from ...prompts.tables import read_rows
from ...prompts.text import prompt_diff
from ...stats.correlation import spearman
from ...stats.differences import Difference, mean_difference, paired_difference
from ...stats.resampling import Resampling, fields_dict
from ..evaluation_result import SMALL, slice_row, slice_values
from ..view import Shown, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...memory.records import SideRecord
    from ...prompts.examples import Example
    from ..view import Rows

ALL = "all"
"""Name of the slice that holds every shared example."""


class _Score(BaseModel):
    """A line of ``verdicts/scores.jsonl``."""

    version: int
    example: str
    score: float | None
    wanted: float | None = None


@dataclass(frozen=True)
class Side:
    """A judge or generator of a run, with its scores of the test examples."""

    name: str
    mode: str
    model: str | None
    prompt: str
    questions: Mapping[str, Mapping[str, Any]]
    """Questions by id, as they are written in a checklist."""
    threshold: float | None
    scores: Mapping[str, float | None]
    """Scores in [0, 1], by example."""
    wanted: Mapping[str, float | None]
    """Scores of people or of the source on the same examples."""
    reference: str | None
    """Origin of the wanted scores: ``human`` or ``source``."""
    examples: Mapping[str, Example]


@dataclass(frozen=True)
class SliceChange:
    """Change on the examples with one value of a field."""

    value: str
    n: int
    before: float
    """Mean score in [0, 1]."""
    after: float
    difference: Difference
    spearman: tuple[float | None, float | None] | None = None
    """Correlation with people or the source, before and after; None if the two sides have different wanted scores."""
    spearman_difference: Difference | None = None


@dataclass(frozen=True, repr=False)
class RunDifference(Shown):
    """Everything that differs between two runs, or between the start of a run and what it accepted."""

    before: str
    after: str
    patch: str
    """Unified diff of the prompts, for ``patch``; empty where they are the same."""
    questions: tuple[dict[str, Any], ...]
    """Rows: ``id``, ``change`` (added, left out, reworded, turned round, weighted), ``text``, and ``before``."""
    settings: Mapping[str, Mapping[str, Any]]
    """Model and threshold ``before`` and ``after``, where they differ."""
    field: str | None
    slices: tuple[SliceChange, ...]
    """Changes by slice; the first slice holds all examples that were test examples of both."""
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the difference for ``--json``."""
        return fields_dict(self)

    def _view(self) -> View:
        lines = [f"{name}: {_said(each['before'])} → {_said(each['after'])}" for name, each in self.settings.items()]
        lines.append(self.patch.rstrip() if self.patch else "The prompt is the same.")
        tables = {"questions": self._question_rows, "slices": self._slice_rows}
        captions = {
            "questions": "questions that changed",
            "slices": "test examples that both were measured on, 95% intervals",
        }
        asked = f"{len(self.questions)} questions changed" if self.questions else "the questions are the same"
        prompt = "another prompt" if self.patch else "the same prompt"
        return View(
            f"{self.before} → {self.after}",
            [*lines, *self.remarks],
            tables,
            brief=f"{asked}, {prompt}",
            captions=captions,
        )

    def _question_rows(self) -> Rows:
        return [
            {"question": each["id"], "change": each["change"], "text": each["text"], "before": each["before"]}
            for each in self.questions
        ]

    def _slice_rows(self) -> Rows:
        return [
            slice_row(
                self.field or "examples",
                each.value,
                {
                    "n": each.n,
                    "score": f"{number(each.before)} → {number(each.after)}",
                    "difference": Figure.of(each.difference, "+.3f"),
                    "Spearman": None if each.spearman is None else " → ".join(map(number, each.spearman)),
                    "gain": each.spearman_difference and Figure.of(each.spearman_difference, "+.3f"),
                    "": "small" if each.n < SMALL else None,
                },
            )
            for each in self.slices
        ]


def run_difference(before: str | Path, after: str | Path | None = None, *, by: str | None = None) -> RunDifference:
    """Compare two finished runs, or the start of one run with what it accepted.

    Scores are compared on the examples that were test examples of both runs, with the same texts: neither learned from
    them. ``by`` is a metadata field whose values are compared one by one, too.

    Raises:
        InputError: A run is not finished, or is of another kind than the other; no example has the field; or a file is
            damaged.
    """
    first = side_of_run(RunDirectory(before), accepted=after is not None)
    second = side_of_run(RunDirectory(before if after is None else after), accepted=True)
    if (first.mode == "tune") != (second.mode == "tune"):
        raise InputError(
            f"{before} is a run of {first.mode} and {after} one of {second.mode}: a judge and a generator have "
            "nothing in common."
        )
    shared = [name for name in first.scores if name in second.scores and _same(first, second, name)]
    shared = [name for name in shared if first.scores[name] is not None and second.scores[name] is not None]
    examples = [second.examples[name] for name in shared]
    slices, remarks = _slices(first, second, examples, by), []
    if not shared:
        remarks.append("No example was a test example of both, so nothing can be said of what the change does.")
    elif after is not None and len(shared) < max(len(first.scores), len(second.scores)):
        remarks.append(
            f"{len(shared)} examples were test examples of both runs ({len(first.scores)} and {len(second.scores)}). "
            "The others are not compared: one of the runs has learned from them, or has no score of them, or not of "
            "these texts."
        )
    pairs = {"model": (first.model, second.model), "threshold": (first.threshold, second.threshold)}
    return RunDifference(
        first.name,
        second.name,
        prompt_diff(first.prompt, second.prompt),
        tuple(_changes(first.questions, second.questions)),
        {name: {"before": old, "after": new} for name, (old, new) in pairs.items() if old != new},
        by,
        tuple(slices),
        tuple(remarks),
    )


def side_of_run(run: RunDirectory, *, accepted: bool) -> Side:
    """Return a run's start, or what it accepted. Raises InputError if the run is not finished, or a file is damaged."""
    config = run.read_config()["config"]
    result = run.read_result()
    examples, checklist, _ = run.read_inputs()
    chosen: SideRecord = result.best if accepted else result.baseline
    asked = chosen.checklist or (checklist if result.mode != "tune" else None)
    file = run.path / "verdicts" / "scores.jsonl"
    numbered = read_rows(file) if file.is_file() else ()
    rows = [validate_row(_Score, row, f"{file}, line {number}") for number, row in numbered]
    version = max((row.version for row in rows), default=0) if accepted else 0
    scores = [row for row in rows if row.version == version]
    return Side(
        f"{run.path}" if accepted else f"{run.path} at its start",
        result.mode,
        next((str(config[name]) for name in ("model", "target", "generator") if config.get(name)), None),
        chosen.prompt,
        {} if asked is None else {each.id: _fields(each) for each in asked.questions},
        None if chosen.threshold is None else chosen.threshold.value,
        {row.example: row.score for row in scores},
        {row.example: row.wanted for row in scores},
        result.reference,
        {each.id: each for each in examples},
    )


def _same(first: Side, second: Side, name: str) -> bool:
    """Return whether an example is the same in both; a generator's output does not matter."""
    one, other = first.examples.get(name), second.examples.get(name)
    if one is None or other is None or (one.input, one.context) != (other.input, other.context):
        return False
    return first.mode == "tune" or one.output == other.output


def _slices(first: Side, second: Side, examples: Sequence[Example], by: str | None) -> list[SliceChange]:
    if not examples:
        return []
    held = first.reference == second.reference and all(
        first.wanted.get(each.id) == second.wanted.get(each.id) for each in examples
    )
    found = [_change(ALL, first, second, examples, held=held)]
    if by is None:
        return found
    values = slice_values(examples, by)
    parts = {value: [each for each, own in zip(examples, values, strict=True) if own == value] for value in values}
    ordered = sorted(parts.items(), key=lambda part: -len(part[1]))
    return [*found, *(_change(value, first, second, part, held=held) for value, part in ordered)]


def _change(value: str, first: Side, second: Side, examples: Sequence[Example], *, held: bool) -> SliceChange:
    """``held``: whether both have the same wanted scores of people or of the source."""
    resampling = Resampling(documents(examples))
    before, after = ([side.scores[each.id] for each in examples] for side in (first, second))
    wanted = [second.wanted.get(each.id) for each in examples]
    means = [sum(each for each in some if each is not None) / len(some) for some in (before, after)]
    change = SliceChange(value, len(examples), means[0], means[1], mean_difference(before, after, resampling))
    if not held or all(each is None for each in wanted):
        return change
    return replace(
        change,
        spearman=(spearman(before, wanted).value, spearman(after, wanted).value),
        spearman_difference=paired_difference(before, after, wanted, resampling),
    )


def _changes(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the questions that differ, in the order of the second checklist."""
    rows = []
    for name in dict.fromkeys([*after, *before]):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if old is None or new is None:
            asked = new or old or {}
            rows.append(_row(name, "left out" if new is None else "added", asked, None))
        elif old["text"] != new["text"]:
            rows.append(_row(name, "reworded", new, _text(old)))
        elif old["good"] != new["good"]:
            rows.append(_row(name, "turned round", new, _text(old)))
        else:
            other = [field for field in dict.fromkeys([*new, *old]) if old.get(field) != new.get(field)]
            said = ", ".join(f"{field} {_said(old.get(field))}" for field in other)
            rows.append(_row(name, f"other {', '.join(other)}", new, said))
    return rows


def _fields(question: BaseModel) -> dict[str, Any]:
    """Return the fields that a question has; ``good`` is ``yes`` by default."""
    return {"good": "yes"} | question.model_dump(mode="json", exclude_none=True)


def _row(name: str, change: str, asked: Mapping[str, Any], before: str | None) -> dict[str, Any]:
    return {"id": name, "change": change, "text": _text(asked), "before": before}


def _text(question: Mapping[str, Any]) -> str:
    return marked(str(question["text"]), str(question["good"]))


def _said(value: Any) -> str:
    return "none" if value is None else number(value, 3) if isinstance(value, float) else str(value)
