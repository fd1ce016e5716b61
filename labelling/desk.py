"""The desk at which one rater labels: the outputs to label, the labels so far, and the labelled data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..prompts.checklist import Question
from ..prompts.conversations.chat import pictures_of
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.human_feedback import Comment, known_ratings
from ..prompts.raters import by_place
from ..prompts.rows import column
from .label_options import LabelSteps, half
from .labels_file import AllSaid, Entry, LabelsFile, Why, texts_of
from .next_output import WORDS, Queue


@dataclass(frozen=True)
class RaterCount:
    """Counts of one rater's labels so far."""

    labelled: int
    """Number of outputs with a label, an answer or a comment."""
    passed: int
    """Number of outputs that passed; with ordinal labels, those in the better half of the steps."""
    failed: int
    answers: int
    """Number of answers to single questions."""
    comments: int
    skipped: int


class Desk:
    """Chooses the outputs to label, keeps labels in a file that only grows, and makes the labelled data."""

    def __init__(
        self,
        examples: Sequence[Example],
        entries: Sequence[Entry],
        file: LabelsFile,
        queue: Queue,
        rater: str,
        dimension: str,
        questions: Sequence[Question],
        steps: LabelSteps | None = None,
    ) -> None:
        """Set up the desk. ``examples`` are the whole data; examples without an output are kept, but not labelled.
        ``file`` is open. ``queue`` was made for the examples with an output, in their order. ``steps`` are the steps of
        an ordinal label; None for pass or fail."""
        self.examples = examples
        self.asked = [each for each in examples if each.output is not None]
        self.said = AllSaid.of(entries)
        self.rater, self.dimension, self.questions = rater, dimension, questions
        self.steps = steps
        self._file, self._queue = file, queue
        self._known = {dimension, *(each.id for each in questions)}
        """The dimension and question ids that are labelled here; labels on any other name stay as they are."""
        self._places = {each.id: place for place, each in enumerate(self.asked)}
        self._texts = {each.id: texts_of(each) for each in self.asked}
        self._rows: dict[str, str] = {}
        self._named = False
        self._back: str | None = None
        """Id of the example whose label was taken back last; it is shown again."""

    def seat(self, rater: str) -> Desk:
        """Return this desk for another rater; both desks share all labels."""
        other = copy(self)
        other.rater, other._back = rater, None
        return other

    def as_now(self) -> Desk:
        """Return a copy that later labels do not change, for figures that take a while."""
        other = copy(self)
        other.said = AllSaid({name: [*each] for name, each in self.said.history.items()}, {**self.said.drafts})
        return other

    # what is asked

    def next(self) -> tuple[Example, Why] | None:
        """Return the next output to label, and why; None if this rater has labelled all outputs. An output whose label
        was taken back comes first, then outputs without any label, then outputs that only other raters have labelled,
        then skipped ones."""
        done = self._done()
        if self._back is not None:
            draft = self.draft(self._back)
            return self.asked[self._places[self._back]], draft.why if draft else "file"
        here = np.array([each.id not in done for each in self.asked], dtype=np.bool_)
        labelled = self.labelled
        fresh = np.flatnonzero(here & ~labelled)
        open_places = fresh if len(fresh) else np.flatnonzero(here)
        if not len(open_places):
            skipped = next((name for name, each in done.items() if each.kind == "skip"), None)
            return None if skipped is None else (self.asked[self._places[skipped]], "skipped")
        place, why = self._queue.pick(open_places, labelled, Counter(each.why for each in done.values()))
        return self.asked[place], why

    def _done(self) -> dict[str, Entry]:
        """Return this rater's entries on finished outputs. An output with a label on another dimension only is open."""
        return {
            name: each
            for name, each in self.said.standing(self.rater).items()
            if each.kind == "skip" or self.dimension in each.human or self._known >= set(each.human)
        }

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each output has a label of any rater; shape (outputs,)."""
        theirs = self._labels()
        return np.array(
            [self.dimension in each.human or bool(theirs.get(each.id)) for each in self.asked], dtype=np.bool_
        )

    def _labels(self, *, blind: bool = False) -> dict[str, list[Entry]]:
        """Return the entries with a label on the dimension, by example."""
        entries = self.entries(blind=blind)
        found = {name: [each for each in theirs if self.dimension in each.human] for name, theirs in entries.items()}
        return {name: theirs for name, theirs in found.items() if theirs}

    def entries(self, *, blind: bool = False) -> dict[str, list[Entry]]:
        """Return the current labels, answers and comments of all raters, by example. ``blind`` leaves out examples that
        this rater has not labelled yet: raters do not see each other's labels before their own."""
        mine, found = self.labelled_by(self.rater), dict[str, list[Entry]]()
        for rater in self.said.raters:
            for name, entry in self.said.standing(rater).items():
                if entry.kind == "label" and (name in mine or not blind):
                    found.setdefault(name, []).append(entry)
        return found

    def labelled_by(self, rater: str) -> set[str]:
        """Return the ids of the examples with a label, an answer or a comment of a rater."""
        return {name for name, entry in self.said.standing(rater).items() if entry.kind == "label"}

    def people(self, *, blind: bool = False) -> list[float | None]:
        """Return people's label of each output, by majority: 1 for pass, 0 for fail, None without labels or for a tie.
        With ordinal labels, a mean in the better half of the steps passes. ``blind`` is as in :meth:`entries`."""
        theirs = self._labels(blind=blind)
        found: list[float | None] = []
        for each in self.asked:
            given = [float(entry.human[self.dimension]) for entry in theirs.get(each.id, ())]
            ratings = [*known_ratings(each.human.get(self.dimension, ())), *given]
            said = half(sum(ratings) / len(ratings), self.steps) if ratings else None
            found.append(None if said is None else float(said))
        return found

    def at_random(self) -> NDArray[np.bool_]:
        """Return whether each output was labelled because it was drawn at random; shape (outputs,)."""
        drawn = {name for name, theirs in self._labels().items() if any(each.why == "random" for each in theirs)}
        return np.array([each.id in drawn for each in self.asked], dtype=np.bool_)

    def said_first(self) -> list[str]:
        """Return the ids of the outputs that were labelled here, in the order of their earliest standing labels."""
        times = {name: min(each.time for each in theirs) for name, theirs in self._labels().items()}
        return sorted(times, key=lambda name: times[name])

    def count(self) -> RaterCount:
        """Count this rater's labels."""
        entries = [each for each in self.said.standing(self.rater).values() if each.kind == "label"]
        labels = [
            half(float(each.human[self.dimension]), self.steps) for each in entries if self.dimension in each.human
        ]
        return RaterCount(
            labelled=len(entries),
            passed=labels.count(True),
            failed=labels.count(False),
            answers=sum(len(each.human) - (self.dimension in each.human) for each in entries),
            comments=sum(bool(each.comment) for each in entries),
            skipped=sum(each.kind == "skip" for each in self.said.standing(self.rater).values()),
        )

    def draft(self, example: str) -> Entry | None:
        """Return this rater's unfinished label of an output; None without one."""
        return self.said.drafts.get((self.rater, example))

    # what is said

    def save(self, example: str, human: Mapping[str, bool | float], comment: str, *, kind: str = "label") -> None:
        """Save this rater's label, draft or skip of an output; when this returns, it is on the disk. Raises InputError
        if there is no such output or question, a value is wrong, or the label is empty. Raises AskanceError if it could
        not be written."""
        if example not in self._places:
            raise InputError(f"There is no output '{example}' in the data.")
        for name in human:
            if name not in self._known:
                raise InputError(f"There is no question '{name}'.")
            if self.steps is not None and name == self.dimension:
                if self.steps.value(human[name]) is None:
                    raise InputError(f"'{name}': {human[name]} is no step of {', '.join(self.steps.names)}.")
            elif not isinstance(human[name], bool):
                raise InputError(f"'{name}': {human[name]} is neither true nor false.")
        if kind == "label" and not human and not comment.strip():
            raise InputError("There is nothing to save: pass it or fail it, answer a question, or write a comment.")
        before = self.draft(example)
        asked = self.next()
        reason: Why = before.why if before else asked[1] if asked and asked[0].id == example else "file"
        if reason == "skipped":
            reason = next(
                (each.why for each in self.said.history.get(self.rater, ()) if each.example == example), "file"
            )
        earlier = self.said.standing(self.rater).get(example)
        others = {name: each for name, each in earlier.human.items() if name not in self._known} if earlier else {}
        if kind == "skip":  # labels on other dimensions, and the comment, stay
            human, comment = {}, earlier.comment if earlier else ""
        self._add(kind, example, reason, {**others, **human}, comment.strip())
        if kind != "draft" and self._back == example:
            self._back = None

    def undo(self) -> bool:
        """Take back this rater's last label or skip; its output is shown again. Returns False if there is none."""
        mine = self.said.history.get(self.rater)
        if not mine:
            return False
        last = mine[-1]
        self._add("undo", last.example, last.why, {}, "")
        self._back = last.example
        return True

    @property
    def can_undo(self) -> bool:
        """Whether this rater has a label or skip to take back."""
        return bool(self.said.history.get(self.rater))

    def _add(self, kind: str, example: str, why: Why, human: Mapping[str, Any], comment: str) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = {"example": example, "rater": self.rater, "texts": self._texts[example], "time": now, "why": why}
        entry = Entry.model_validate({**row, "kind": kind, "human": human, "comment": comment})
        self._file.append(entry)
        self.said.add(entry)
        self._rows.pop(example, None)

    # what comes of it

    def to_jsonl(self) -> str:
        """Return the labelled data: all examples, with the labels and comments given here after those of the data.
        Raters are named as soon as there are several, or the data name raters."""
        named = len(self.said.raters) > 1 or any(column(self.examples, "raters"))
        standing = [(rater, self.said.standing(rater)) for rater in self.said.raters]
        if named != self._named:
            self._named = named
            for name in {name for _, theirs in standing for name in theirs}:
                self._rows.pop(name, None)
        for example in self.examples:
            if example.id not in self._rows:
                entries = [theirs[example.id] for _, theirs in standing if example.id in theirs]
                said = [entry for entry in entries if entry.kind == "label" or entry.human or entry.comment]
                labelled = labelled_example(example, said, named=named)
                row = labelled.model_dump(exclude_defaults=True)
                if example.output is None:
                    row["output"] = None  # other commands leave out such a row and refuse one that has no such field
                self._rows[example.id] = json.dumps(row, ensure_ascii=False, default=str) + "\n"
        return "".join(self._rows[example.id] for example in self.examples)

    def item(self) -> dict[str, Any] | None:
        """Return the next output to label in the form for the page; None if there is none."""
        asked = self.next()
        return None if asked is None else self.shown(asked[0]) | {"why": WORDS[asked[1]]}

    def shown(self, example: Example) -> dict[str, Any]:
        """Return an example with this rater's label and comment in the form for the page."""
        draft = self.draft(example.id) or self.said.standing(self.rater).get(example.id)
        return shown_texts(example) | {
            "human": {name: said for name, said in draft.human.items() if name in self._known} if draft else {},
            "comment": draft.comment if draft else "",
        }


def shown_texts(example: Example) -> dict[str, Any]:
    """Return the id, the texts and the images of an example in the form for the page."""
    shown = {name: getattr(example, name) for name in ("id", "input", "context", "output", "reference")}
    images = {name: found for name, text in shown.items() if (found := pictures_of(text))}
    return shown | ({"images": images} if images else {})


def majority(ratings: Sequence[float]) -> bool | None:
    """Return the majority of ratings (0 or 1); None without ratings, or for a tie."""
    return half(sum(ratings) / len(ratings), None) if ratings else None


def labelled_example(example: Example, entries: Sequence[Entry], *, named: bool = False) -> Example:
    """Return the example with raters' entries, one per rater; ``named`` keeps their names. With names, an entry
    replaces what the same rater has in the data, name by name; the other ratings stay."""
    if not entries:
        return example
    if not named:
        human: dict[str, tuple[float | None, ...]] = dict(example.human)
        for entry in entries:
            for name, value in entry.human.items():
                human[name] = (*human.get(name, ()), value if isinstance(value, bool) else float(value))
        comments = (*example.comment, *(Comment(entry.comment) for entry in entries if entry.comment))
        return example.model_copy(update={"human": human, "comment": comments})
    row = example.model_dump(include={"human", "raters", "comment"})
    ratings = dict(row.get("raters") or {})
    for entry in entries:
        before = ratings.get(entry.rater, {})
        mine = {**before.get("human", {}), **entry.human}
        ratings[entry.rater] = {"human": mine, "comment": entry.comment or before.get("comment")}
    placed = by_place({**row, "raters": ratings})
    return Example.model_validate({**{name: getattr(example, name) for name in example.model_fields_set}, **placed})
