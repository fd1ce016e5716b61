"""Events of a run, one typed record each. The journal, the watcher and callbacks receive them.

Listening to events changes nothing in the run. A callback is any function that takes an event. A callback that fails is
logged and does not disturb the run.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from ..memory.journal import Journal
from ..memory.records import CriterionRecord, PrunedRecord, QuestionWordings, TriedRecord
from ..models.base import CallError
from ..models.budget import Budget
from ..models.progress import Watcher
from ..prompts.errors import InputError
from ..prompts.lessons import Disagreement, Edit, Lesson
from ..prompts.text import shorten
from .subject import TrialResult

logger = logging.getLogger(__name__)

Found = TypeVar("Found")
QUOTED = 60
"""Most characters of a comment in a sentence."""


@dataclass(frozen=True)
class Event:
    """One event of a run."""

    kind: ClassVar[str]
    """Name of the event in ``journal.jsonl``."""
    told: ClassVar[tuple[str, ...]] = ()
    """Fields of the event's record that the journal has beside the event's own fields; empty: the whole record."""

    def row(self) -> dict[str, Any]:
        """Return the event's fields as JSON."""
        fields: dict[str, Any] = {}
        for name, value in vars(self).items():
            in_parts = self.told and isinstance(value, BaseModel)
            fields |= {each: getattr(value, each) for each in self.told} if in_parts else {name: value}
        row: dict[str, Any] = to_jsonable_python(fields, by_alias=False)
        return row

    @property
    def sentence(self) -> str | None:
        """A sentence for people; None for events that are too small to tell."""
        return sentence_of({"event": self.kind, **self.row()})


Callback = Callable[[Event], object]
"""A function that receives every event of a run. A resumed run sends only new events."""


@dataclass(frozen=True)
class ExamplesSplit(Event):
    """The ids of the examples of each split."""

    kind = "split"
    development: Sequence[str]
    validation: Sequence[str]
    test: Sequence[str]


@dataclass(frozen=True)
class QuestionWorded(Event):
    """Other wordings of a question were tried on the development examples."""

    kind = "wordings"
    result: QuestionWordings


@dataclass(frozen=True)
class DisagreementsFound(Event):
    """The development examples were judged and compared with the reference."""

    kind = "disagreements"
    iteration: int
    found: int
    verdicts: int
    read: Sequence[Disagreement]
    """Disagreements that the note-taker reads, unless failing requirements, added to the prompt in their own words,
    gain something first."""


@dataclass(frozen=True)
class ReasonsGiven(Event):
    """Explanations by disagreement key."""

    kind = "reasons"
    target: Mapping[str, str]
    reference: Mapping[str, str]


@dataclass(frozen=True)
class RequirementStated(Event):
    """A failing requirement became a lesson, before any note was taken."""

    kind = "requirement"
    lesson: Lesson
    by: Literal["words", "model", "quotation"]
    """Source of its words: the requirement turned into an order, a model's sentence, or the requirement quoted."""


@dataclass(frozen=True)
class LessonRecalled(Event):
    """A lesson of an earlier run is tried, word for word, before notes are taken."""

    kind = "recalled"
    lesson: Lesson


@dataclass(frozen=True)
class LessonKept(Event):
    """A note became a new lesson, or evidence for a known one."""

    kind = "lesson"
    id: str
    text: str
    evidence: Sequence[str]
    relation: str
    """``new``, ``duplicate`` or ``merge``."""
    kept_as: str
    kept_text: str


@dataclass(frozen=True)
class LessonLearned(Event):
    """A lesson after all notes of an iteration are in."""

    kind = "learned"
    lesson: Lesson


@dataclass(frozen=True)
class LessonRetired(Event):
    """A lesson was given up, e.g. for one that says the opposite on more evidence."""

    kind = "retired"
    id: str
    reason: str


@dataclass(frozen=True)
class NoteFailed(Event):
    """A disagreement from which no lesson could be drawn."""

    kind = "no_note"
    disagreement: str
    reason: str
    unread: bool = False
    """Whether the call failed, so that the disagreement will be read again."""


@dataclass(frozen=True)
class EditProposed(Event):
    """An edit was proposed and passed the prompt's guards."""

    kind = "edit"
    told = ("old", "new", "lessons")
    edit: Edit


@dataclass(frozen=True)
class EditRefused(Event):
    """No edit that may be tried was found for some lessons."""

    kind = "no_edit"
    lessons: Sequence[str]
    reason: str


@dataclass(frozen=True)
class LessonTried(Event):
    """An edit was tried on its lessons' own evidence and on controls."""

    kind = "trial"
    lessons: Sequence[str]
    result: TrialResult


@dataclass(frozen=True)
class VersionDecided(Event):
    """A candidate went through the acceptance test."""

    kind = "decision"
    told = ("lessons", "accepted", "reason", "gain", "judged", "iteration", "shows")
    version: int
    parent: int
    tried: TriedRecord


@dataclass(frozen=True)
class QuestionJudged(Event):
    """A question was proposed and judged on examples."""

    kind = "question"
    told = ("id", "text", "good", "origin", "sources", "comments", "effect", "problem", "iteration")
    question: CriterionRecord
    """The question; with a ``reason`` if it does not join. The others go to the acceptance test together."""


@dataclass(frozen=True)
class EditPruned(Event):
    """An accepted edit was taken out again, or had to stay."""

    kind = "pruning"
    told = ("lessons", "removed", "reason", "gain")
    version: int
    pruned: PrunedRecord


@dataclass(frozen=True)
class LoopStopped(Event):
    """The loop ended; the test was not looked at yet."""

    kind = "stopped"
    reason: str
    iteration: int


@dataclass(frozen=True)
class TestOpened(Event):
    """The test examples are looked at now, once, with these versions."""

    kind = "test"
    versions: Sequence[int]


@dataclass(frozen=True)
class RunFinished(Event):
    """Everything is measured; only the result is not written yet."""

    kind = "finished"
    reason: str
    best: int


@dataclass(frozen=True)
class PhaseBegan(Event):
    """A new piece of work; not in the journal."""

    kind = "phase"
    text: str
    total: int | None = None


@dataclass(frozen=True)
class StartMeasured(Event):
    """How good the starting prompt is on validation; not in the journal."""

    kind = "measured"
    score: float | None
    """The figure; None where it is undefined."""
    yardstick: str
    """Name of the figure, e.g. ``Spearman``."""


@dataclass(frozen=True)
class Advanced(Event):
    """Progress of the present piece of work, in steps; not in the journal."""

    kind = "advanced"
    done: int
    total: int


@dataclass(frozen=True)
class RunBegan(Event):
    """A run begins or is resumed in this directory; not in the journal."""

    kind = "began"
    directory: Path
    config: Mapping[str, Any]
    """Settings that the result depends on, as in ``config.yaml``."""
    fingerprint: str
    """Hash of the settings and all inputs."""


@dataclass(frozen=True)
class RunWritten(Event):
    """All files of the run are written, including ``result.json``; not in the journal."""

    kind = "written"
    directory: Path


KINDS: dict[str, type[Event]] = {
    each.kind: each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Event) and each is not Event
}
"""Event classes by their name in the journal."""


def sentence_of(row: Mapping[str, Any]) -> str | None:
    """Return a line of the journal as a sentence for people; None for events that are too small to tell. For an unknown
    kind of event, or one with other fields, return only the name of the kind."""
    kind = str(row["event"])
    if kind == "diverged":
        return "the run was taken up again and goes another way from here"
    if kind not in KINDS:
        return kind
    try:
        return _sentence(kind, row)
    except (KeyError, TypeError, AttributeError, ValidationError):
        return kind


def _sentence(kind: str, row: Mapping[str, Any]) -> str | None:
    match kind:
        case "split":
            counts = [len(row[part]) for part in ("development", "validation", "test")]
            return "{} development, {} validation and {} test examples".format(*counts)
        case "wordings":
            return QuestionWordings.model_validate(row["result"]).sentence
        case "disagreements":
            found = f"{row['found']} disagreements on {row['verdicts']} verdicts, reading {len(row['read'])}"
            return f"iteration {row['iteration']}: {found}"
        case "requirement" | "recalled" | "learned":
            return _of_lesson(kind, Lesson.model_validate(row["lesson"]))
        case "retired":
            return f"lesson {row['id']} is retired: {row['reason']}"
        case "no_note":
            return f"no note on {row['disagreement']}: {row['reason']}"
        case "no_edit":
            return f"no edit for {', '.join(row['lessons'])}: {row['reason']}"
        case "trial":
            passed, reason = row["result"]["passed"], row["result"]["reason"].removeprefix("failed its trial: ")
            return f"{', '.join(row['lessons'])} {'passed' if passed else 'failed'} its trial: {reason}"
        case "decision":
            verb, shows = "accepted" if row["accepted"] else "rejected", row.get("shows")
            what = ", ".join(row["lessons"]) or shows or "a changed checklist"
            return f"version {row['version']} with {what} {verb}: {row['reason']}"
        case "question":
            return _of_question(CriterionRecord.model_validate(row))
        case "pruning":
            verb = "is taken out again" if row["removed"] else "stays"
            return f"the edit of {', '.join(row['lessons'])} {verb}: {row['reason']}"
    return None


def _of_lesson(kind: str, lesson: Lesson) -> str:
    if kind == "requirement":
        stated = f"stated as {lesson.id}: {lesson.text}"
        return f"requirement {lesson.requirement} fails {lesson.support} times; {stated}"
    if kind == "recalled":
        return f"lesson {lesson.id} of the memory is tried ({lesson.direction}): {lesson.text}"
    about = "" if lesson.promptable else ", the prompt cannot fix it"
    return f"lesson {lesson.id} ({lesson.direction}, support {lesson.support}{about}): {lesson.text}"


def _of_question(question: CriterionRecord) -> str:
    fate = f"is set aside, as {question.reason}" if question.reason else "goes to the acceptance test"
    return f"question {question.id} {fate}: {question.criterion}{_origin(question)}"


def _origin(question: CriterionRecord) -> str:
    """Return the origin of a question in words: its comments, or the lesson memory."""
    sources, comments = question.sources, question.comments
    if not sources:
        return " (from the lesson memory)" if question.origin == "memory" else ""
    said = [f"“{shorten(' '.join(text.split()), QUOTED)}”" for text in comments[:1]]
    said += [f"{len(comments) - 1} more"] if comments[1:] else []
    on = f" on {len(sources)} example{'s' if len(sources) > 1 else ''}"
    return f" (from {' and '.join(said)}{on})" if said else f" (from{on.removeprefix(' on')})"


@runtime_checkable
class EventWatcher(Protocol):
    """A watcher that also receives the events themselves, in a resumed run the old ones too."""

    def on_event(self, event: Event) -> object:
        """Receive an event."""


def as_callbacks(given: Iterable[Callback]) -> list[Callback]:
    """Return the given callbacks as a list. Raises InputError if they are no list, or one of them is no function."""
    found = [*given] if isinstance(given, Iterable) else None
    wrong = given if found is None else next((each for each in found if not callable(each)), None)
    if found is None or wrong is not None:
        raise InputError(f"callbacks: a list of functions is needed (callbacks=[tell]), not {type(wrong).__name__}.")
    return found


class Teller:
    """Sends events to the journal, the watcher and callbacks. It can itself serve as a watcher."""

    def __init__(self, journal: Journal, watcher: Watcher, callbacks: Iterable[Callback] = ()) -> None:
        """Keep the receivers. The journal receives events first: what is not written down did not happen."""
        self.journal = journal
        self._watcher = watcher
        self._callbacks = list(callbacks)

    def emit(self, event: Event) -> None:
        """Send an event to all receivers. Raises AskanceError where the journal cannot be written."""
        row = {"event": event.kind, **event.row()}
        new = self.journal.write(**row)
        if isinstance(self._watcher, EventWatcher):
            self._watcher.on_event(event)
        if (sentence := sentence_of(row)) is not None:
            self._watcher.say(sentence)
        if new:
            self.tell(event)

    def watch(self, budget: Budget) -> None:
        """Give the watcher the budget that counts calls, tokens and money from now on."""
        self._watcher.watch(budget)

    def measured(self, score: float | None, yardstick: str) -> None:
        """Send the starting prompt's figure on validation."""
        event = StartMeasured(score, yardstick)
        if isinstance(self._watcher, EventWatcher):
            self._watcher.on_event(event)
        if not self.journal.replaying:
            self.tell(event)

    def phase(self, text: str, total: int | None = None) -> None:
        """Tell that a new piece of work begins."""
        self._watcher.phase(text, total)
        if not self.journal.replaying:
            self.tell(PhaseBegan(text, total))

    def advance(self, done: int, total: int) -> None:
        """Tell how many steps of the present work are done."""
        self._watcher.advance(done, total)
        if not self.journal.replaying:
            self.tell(Advanced(done, total))

    def say(self, text: str) -> None:
        """Tell people something that is no event of the run, e.g. that a call has to wait."""
        self._watcher.say(text)

    def tell(self, event: Event) -> None:
        """Send an event to the callbacks only, even while a resumed run repeats itself."""
        for callback in self._callbacks:
            try:
                callback(event)
            except Exception:
                logger.exception("A callback failed on the event '%s'; the run goes on.", event.kind)


async def answer_or_none(asked: Awaitable[Found], otherwise: str, events: Teller) -> Found | None:
    """Wait for a call; returns None if it failed, and tells people what happens instead (``otherwise``). Raises
    CallError where every further call would fail too."""
    try:
        return await asked
    except CallError as error:
        if error.fatal:
            raise
        events.say(f"{otherwise}: {error}")
        return None
