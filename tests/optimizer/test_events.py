"""One typed event for everything that happens, told to the journal, to who watches and to callbacks."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from askance.memory.journal import Journal, read_events
from askance.memory.records import CriterionRecord, PrunedRecord, QuestionWordings, TriedRecord, WordingTried
from askance.models.budget import Budget
from askance.optimizer import events as events_module
from askance.optimizer.events import (
    Advanced,
    DisagreementsFound,
    EditProposed,
    EditPruned,
    Event,
    ExamplesSplit,
    LessonLearned,
    LoopStopped,
    PhaseBegan,
    QuestionJudged,
    QuestionWorded,
    RunBegan,
    RunWritten,
    StartMeasured,
    Teller,
    VersionDecided,
    sentence_of,
)
from askance.prompts.lessons import Disagreement, Edit, Lesson
from askance.stats.differences import Difference
from tests.said import says

NOT_IN_JOURNAL = (PhaseBegan, StartMeasured, Advanced, RunBegan, RunWritten)
LESSON = Lesson(id="L1", text="Answer no.", direction="stricter", dimension="d", evidence=("e/q", "f/q"))
DISAGREEMENT = Disagreement(example="e", question="q", target=True, reference=False, gap=0.5)


class Notebook:
    """Watches, and writes down what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def watch(self, budget: Budget) -> None:
        self.told.append("watch")

    def phase(self, text: str, total: int | None = None) -> None:
        self.told.append(f"phase {text} {total}")

    def advance(self, done: int, total: int) -> None:
        self.told.append(f"{done}/{total}")

    def say(self, text: str) -> None:
        self.told.append(text)


def test_an_event_goes_to_the_journal_to_the_watcher_and_to_every_callback(tmp_path: Path) -> None:
    watcher, first, second = Notebook(), list[Event](), list[Event]()
    events = Teller(Journal(tmp_path / "j"), watcher, [first.append, second.append])
    event = DisagreementsFound(2, 7, 24, [DISAGREEMENT])
    events.emit(event)
    [row] = read_events(tmp_path / "j")
    assert (row["event"], row["iteration"], row["found"]) == ("disagreements", 2, 7)
    assert row["read"] == [DISAGREEMENT.model_dump(mode="json")]
    assert len(watcher.told) == 1 and says(
        watcher.told[0], "iteration 2", "7 disagreements", "24 verdicts", "reading 1"
    )
    assert first == second == [event]


def test_records_within_an_event_are_written_in_full(tmp_path: Path) -> None:
    events = Teller(Journal(tmp_path / "j"), Notebook())
    gain = Difference(0.1, 12, 0.0, 0.2, 0.04, None)
    edit = Edit(old="a", new="b", lessons=("L1",))
    tried = TriedRecord(edits=(edit,), accepted=True, reason="better", gain=gain, judged=12, iteration=1)
    events.emit(VersionDecided(1, 0, tried))
    events.emit(LessonLearned(LESSON))
    decision, learned = read_events(tmp_path / "j")
    assert (decision["gain"]["value"], decision["gain"]["p_value"], decision["lessons"]) == (0.1, 0.04, ["L1"])
    assert Lesson.model_validate(learned["lesson"]) == LESSON


def test_what_a_person_would_find_too_much_is_not_said(tmp_path: Path) -> None:
    watcher = Notebook()
    Teller(Journal(tmp_path / "j"), watcher).emit(LoopStopped("no_gain", 2))
    assert watcher.told == []


def test_a_callback_that_fails_is_logged_and_disturbs_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("no network")

    events = Teller(Journal(tmp_path / "j"), Notebook(), [broken, heard.append])
    with caplog.at_level(logging.ERROR):
        events.emit(LoopStopped("no_gain", 2))
    assert [event.kind for event in heard] == ["stopped"]
    assert len(read_events(tmp_path / "j")) == 1
    assert says(caplog.text, "callback failed", "stopped")
    assert "no network" in caplog.text


def test_a_run_that_is_repeated_tells_callbacks_only_what_is_new(tmp_path: Path) -> None:
    first = Teller(Journal(tmp_path / "j"), Notebook())
    first.emit(ExamplesSplit(["a"], ["b"], ["c"]))
    first.emit(LessonLearned(LESSON))

    heard: list[Event] = []
    again = Teller(Journal(tmp_path / "j"), Notebook(), [heard.append])
    again.phase("from the store", 3)
    again.advance(1, 3)
    again.emit(ExamplesSplit(["a"], ["b"], ["c"]))
    again.emit(LessonLearned(LESSON))
    assert heard == []
    again.phase("bought", 3)
    again.advance(1, 3)
    again.emit(LoopStopped("no_gain", 1))
    assert heard == [PhaseBegan("bought", 3), Advanced(1, 3), LoopStopped("no_gain", 1)]


def test_an_event_that_comes_out_differently_the_second_time_is_new(tmp_path: Path) -> None:
    Teller(Journal(tmp_path / "j"), Notebook()).emit(LoopStopped("max_calls", 1))
    heard: list[Event] = []
    Teller(Journal(tmp_path / "j"), Notebook(), [heard.append]).emit(LoopStopped("no_gain", 3))
    assert heard == [LoopStopped("no_gain", 3)]
    assert [row["reason"] for row in read_events(tmp_path / "j")] == ["no_gain"]


def test_phases_and_steps_are_not_in_the_journal(tmp_path: Path) -> None:
    watcher, heard = Notebook(), list[Event]()
    events = Teller(Journal(tmp_path / "j"), watcher, [heard.append])
    events.phase("judging", 12)
    events.advance(3, 12)
    events.say("Waiting.")
    events.watch(Budget())
    assert watcher.told == ["phase judging 12", "3/12", "Waiting.", "watch"]
    assert heard == [PhaseBegan("judging", 12), Advanced(3, 12)]
    assert not (tmp_path / "j").exists()


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    kinds = [each for each in vars(events_module).values() if isinstance(each, type) and issubclass(each, Event)]
    names = [each.kind for each in kinds if each is not Event]
    assert len(names) == len(set(names)) >= 15


def test_a_run_tells_its_story_to_a_callback_as_it_does_to_the_journal(world: Any, tmp_path: Path) -> None:
    heard: list[Event] = []
    world.migrate(tmp_path / "run", callbacks=[heard.append])
    told = [event for event in heard if not isinstance(event, NOT_IN_JOURNAL)]
    rows = read_events(tmp_path / "run" / "journal.jsonl")
    assert [event.kind for event in told] == [row["event"] for row in rows]
    assert (heard[0].kind, heard[-1].kind) == ("began", "written")
    assert json.loads(json.dumps(told[0].row())) == {
        name: rows[0][name] for name in ("development", "validation", "test")
    }
    assert all(field.name in rows[0] for field in fields(told[0]))

    heard.clear()
    world.migrate(tmp_path / "run", callbacks=[heard.append])
    assert [event for event in heard if not isinstance(event, NOT_IN_JOURNAL)] == []


def test_a_callback_that_always_fails_changes_no_result(world: Any, tmp_path: Path) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no")

    logging.disable(logging.ERROR)
    try:
        done = world.migrate(tmp_path / "broken", callbacks=[broken])
    finally:
        logging.disable(logging.NOTSET)
    assert done.result == world.migrate(tmp_path / "whole").result


BEFORE: list[dict[str, Any]] = [
    {
        "event": "wordings",
        "result": {
            "question": "q1",
            "before": {"text": "Is it?", "good": "yes", "correlation": 0.5, "n": 12, "dropped": None, "sees": "all"},
            "reason": "better",
            "after": None,
            "gain": None,
            "bias": None,
            "tried": [],
            "accepted": False,
        },
    },
    {"event": "edit", "old": "a", "new": "b", "lessons": ["L1"]},
    {
        "event": "question",
        "id": "name-price",
        "text": "Does it name a price?",
        "good": "no",
        "origin": "comment",
        "sources": ["e1", "e2"],
        "comments": ["prices!"],
        "effect": 0.4,
        "problem": None,
        "iteration": 1,
    },
    {
        "event": "question",
        "id": "be-kind",
        "text": "Is it kind?",
        "good": None,
        "origin": "memory",
        "sources": [],
        "comments": [],
        "effect": None,
        "problem": "others promised more on the first examples",
        "iteration": 1,
    },
    {
        "event": "decision",
        "version": 1,
        "parent": 0,
        "lessons": ["L1"],
        "accepted": True,
        "reason": "better",
        "judged": 12,
        "iteration": 1,
        "shows": None,
        "gain": {
            "value": 0.1,
            "n": 12,
            "low": 0.0,
            "high": 0.2,
            "p_value": 0.04,
            "reason": None,
            "standard_error": 0.05,
        },
    },
    {"event": "pruning", "version": 2, "lessons": ["L1"], "removed": False, "reason": "worse", "gain": None},
]
"""Lines of a journal as the version before wrote them, when an event had the fields of its record."""


def test_a_journal_of_the_version_before_is_repeated_without_a_difference(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("".join(json.dumps(row) + "\n" for row in BEFORE), encoding="utf-8")
    heard: list[Event] = []
    events = Teller(Journal(tmp_path / "j"), Notebook(), [heard.append])
    asked = WordingTried(text="Is it?", correlation=0.5, n=12)
    edit, gain = Edit(old="a", new="b", lessons=("L1",)), Difference(0.1, 12, 0.0, 0.2, 0.04, None, 0.05)
    price = CriterionRecord.of("Does it name a price?", "overall", "comment", ["e1", "e2"], ["prices!"])
    kind = CriterionRecord.of("Is it kind?", "overall", "memory").but(id="be-kind", reason=BEFORE[3]["problem"])
    for event in (
        QuestionWorded(QuestionWordings(question="q1", before=asked, reason="better")),
        EditProposed(edit),
        QuestionJudged(price.but(id="name-price", good="no", effect=0.4)),
        QuestionJudged(kind),
        VersionDecided(
            1, 0, TriedRecord(edits=(edit,), accepted=True, reason="better", gain=gain, judged=12, iteration=1)
        ),
        EditPruned(2, PrunedRecord(edit=edit, removed=False, reason="worse")),
    ):
        events.emit(event)
    assert heard == [] and read_events(tmp_path / "j") == BEFORE
    assert all(
        not words or says(sentence_of(row) or "", *words)
        for row, words in zip(
            BEFORE,
            (
                ("q1", "stays", "better"),
                (),
                ("name-price", "acceptance test", "yes = fault", "2 examples"),
                ("be-kind", "promised more", "memory"),
                ("version 1", "L1", "accepted"),
                ("L1", "stays", "worse"),
            ),
            strict=True,
        )
    )
