"""The result of a run as people get it: the prompt, and what there is to see, in a notebook and as data frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..evaluation.shown import Shown, View
from ..memory.decision import decide
from ..memory.result_file import RunRecord
from ..memory.result_parts import GainRecord, LearnedRecord, MeasureRecord, TriedRecord
from ..prompts.errors import CoverageError, as_typed
from ..prompts.formatting import Figure, count, coverage_text, number_text
from ..prompts.text import shorten
from .events import QUOTED


@dataclass(frozen=True, repr=False)
class RunResult(Shown):
    """The result of a run: the prompt, and everything in ``result.json``."""

    directory: Path
    record: RunRecord

    @property
    def prompt(self) -> str:
        """The accepted prompt; the starting prompt where nothing was accepted."""
        return self.record.best.prompt

    @cached_property
    def result(self) -> dict[str, Any]:
        """``result.json``."""
        return self.record.to_dict()

    @property
    def finish_reason(self) -> str:
        """Why the run ended."""
        return self.record.finish_reason

    def require_coverage(self) -> RunResult:
        """Return this result if it has ``min_coverage``, and any verdict at all.

        Raises:
            CoverageError: It has not.
        """
        seen, least = self.record.coverage, self.record.min_coverage
        if not seen:
            raise CoverageError(
                f"Not one verdict is there, so nothing was learned and nothing measured. Mend what failed and go on: "
                f"askance resume {as_typed(self.directory)}"
            )
        if seen < least:
            raise CoverageError(
                f"Only {coverage_text(seen)} of the verdicts are there, less than --min-coverage {least:.1%}. The result so far "
                f"is in {self.directory}; resuming the run asks for the missing ones again."
            )
        return self

    def _view(self) -> View:
        """What was learned, the measures, the edits and the lessons of ``result.json``."""
        result = self.record
        measured = [("at the start", each.split, each.before) for each in result.splits]
        measured += [("accepted", each.split, each.after) for each in result.splits]
        scores = [
            _score(version, split, dimension, row)
            for version, split, whole in measured
            if whole is not None
            for dimension, row in {"overall": whole, **whole.dimensions}.items()
        ]
        accepted, rejected = result.accepted_edits, result.rejected_edits
        edits = [_edits(row, True) for row in accepted] + [_edits(row, False) for row in rejected]
        lessons = [
            lesson.model_dump(include={"id", "text", "direction", "dimension", "status", "reason"})
            | {"support": lesson.support}
            for lesson in result.lessons
        ]
        questions = [_question(each) for each in result.questions]
        report = self.directory / "report.html"
        gains = [_gain(result.yardstick, each.split, each.gain) for each in result.splits if each.gain]
        counted = f"{count(len(accepted), 'candidate')} accepted, {len(rejected)} rejected"
        lines = [
            *(each.sentence for each in result.revised_questions),
            *_learning(result),
            *([result.asked_both_ways.sentence] if result.asked_both_ways else []),
            f"It ended because {result.why_it_ended}.",
            result.decision_reason or decide(result).sentence,
            f"{counted}; {count(len(lessons), 'lesson')}.",
            *gains,
            f"{result.spending}; coverage {coverage_text(result.coverage)}",
            *([f"The whole story: {report}"] if report.is_file() else []),
        ]
        overall = [row for row in scores if row["dimension"] == "overall"]
        tables = {
            "scores": lambda: scores,
            "edits": lambda: edits,
            "lessons": lambda: lessons,
            "questions": lambda: questions,
            "learned": lambda: [_learned(each) for each in result.learned],
            "overall": lambda: overall,
        }
        gain = gains[-1] if gains else "Nothing was accepted"
        shown = ("learned", "overall", "edits")
        return View(f"{result.mode} in {self.directory}", lines, tables, shown, f"{gain}; {counted}.")


def _learning(result: RunRecord) -> list[str]:
    """What became of questions from comments, in a sentence; none where the run was not to learn any."""
    learned, proposed = result.learned, len(result.questions)
    if result.shown is not None and not learned:
        return [f"The judge is now shown {result.shown.name} that people judged: what to keep is the judge."]
    if learned:
        same = " Its prompt is what it was: what to keep is the judge." if result.same_prompt else ""
        listed = ", ".join(each.id for each in learned)
        return [
            f"The judge has learned {count(len(learned), 'question')} from comments, of {proposed}: {listed}.{same}"
        ]
    if proposed:
        return [f"No question was learned from comments: of {count(proposed, 'question')} none joined the judge."]
    return [f"No question was learned, as {result.why_no_questions}."] if result.why_no_questions else []


def _learned(row: LearnedRecord) -> dict[str, Any]:
    """A question that joined, as people are to see it."""
    split, worth = row.worth.last or (None, None)
    said = shorten(" ".join(row.comments[0].split()), QUOTED) if row.comments else None
    return {
        "question": row.criterion,
        "worth": worth and Figure.of(worth, "+.3f"),
        "on": split,
        "examples": len(row.sources),
        "comment": said,
    }


def _question(row: LearnedRecord) -> dict[str, Any]:
    """``worth`` with its interval is that on ``split``: test, or where that was not judged, validation."""
    split, worth = row.worth.last or (None, None)
    return {
        "id": row.id,
        "text": row.text,
        "good": row.good,
        "joined": row.joined,
        "worth": worth and worth.value,
        "low": worth and worth.low,
        "high": worth and worth.high,
        "split": split,
        "n": worth and worth.n,
        "effect": row.effect,
        "comments": list(row.comments),
        "examples": list(row.sources),
        "reason": row.reason,
    }


def _score(version: str, split: str, dimension: str, row: MeasureRecord) -> dict[str, Any]:
    names = ("spearman", "kendall", "pearson", "mean", "n", "low", "high", "reason")
    return {"version": version, "split": split, "dimension": dimension} | {name: getattr(row, name) for name in names}


def _edits(row: TriedRecord, accepted: bool) -> dict[str, Any]:
    return {
        "accepted": accepted,
        "iteration": row.iteration,
        "lessons": row.lessons,
        "gain": row.gain and row.gain.value,
        "low": row.gain and row.gain.low,
        "high": row.gain and row.gain.high,
        "judged": row.judged,
        "reason": row.reason,
    }


def _gain(yardstick: str, split: str, gain: GainRecord) -> str:
    said = number_text(gain.value, gain.low, gain.high)
    return f"Gain on {split} ({yardstick}): {said}{f' ({gain.reason})' if gain.reason else ''}"
