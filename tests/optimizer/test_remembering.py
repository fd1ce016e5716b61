"""A lesson memory that outlives runs: the next one profits, a killed one goes on, and what people removed stays out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.memory.memory_directory import MemoryDirectory, contents_of_run
from askance.memory.provenance import build_graph
from askance.memory.run_directory import RunDirectory
from askance.models.base import Request
from askance.models.progress import watching
from askance.optimizer.loop import take_up
from askance.optimizer.modes.align import prepare
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.run_estimate import estimate_run
from askance.runs import run_and_report
from tests.said import naming, says

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
OTHERS = [f"e{number:03d}" for number in range(500, 540)]
"""Examples that no other run has."""
NAME = "Answer no if the output gives a wrong name."
OTHER_WORDS = "Answer no if the output has a wrong name."


class Crash(BaseException):
    """The process is gone."""


class Counting:
    """Told every request; ends the process at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.keys: list[bytes] = []

    def __call__(self, request: Request) -> None:
        if len(self.keys) == self.at:
            raise Crash
        self.keys.append(request.key)


@pytest.fixture(autouse=True)
def no_power_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk is most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def other(make_world: Any) -> Any:
    world = make_world()
    world.ids = OTHERS
    return world


@pytest.fixture
def memory(world: Any, tmp_path: Path) -> Path:
    """What one run has learned, on examples of its own."""
    world.align(tmp_path / "first", memory=str(tmp_path / "memory"))
    return tmp_path / "memory"


def held(memory: Path) -> Any:
    return askance.load_memory(memory).read()


def ids(memory: Path) -> dict[str, str]:
    return {each.text: each.id for each in held(memory).lessons}


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    return [each for each in read_events(run / "journal.jsonl") if each["event"] == kind]


def what_came_of(run: Path) -> dict[str, Any]:
    rows = [{key: each[key] for key in each if key != "time"} for each in read_events(run / "journal.jsonl")]
    return {
        "events": rows,
        **{name: (run / name).read_text() for name in ("result.json", "lessons.jsonl", "prompt.md")},
    }


def test_a_run_adds_its_lessons_with_where_they_came_from(memory: Path) -> None:
    found = {each.text: each for each in held(memory).lessons}
    (run,) = found[NAME].runs
    assert (run.run, run.command, run.models, run.status) == ("first", "align", {"model": "world/target"}, "applied")
    assert run.iteration == 1 and run.evidence and set(run.asked) <= {"facts", "words"}
    assert [edit.new.splitlines()[-1] for edit in run.edits] == [f"- {NAME}"]
    assert {each.runs[0].status for each in found.values()} == {"applied", "rejected"}


def test_the_next_run_profits_and_learns_nothing_twice(other: Any, memory: Path, tmp_path: Path) -> None:
    before = ids(memory)
    alone = other.align(tmp_path / "alone").record
    done = other.align(tmp_path / "second", memory=str(memory)).record
    assert done.gain.test.value > alone.gain.test.value + 0.3
    assert done.calls < alone.calls and done.roles["note_taker"].calls < alone.roles["note_taker"].calls
    tried = [each["lesson"]["id"] for each in events(tmp_path / "second", "recalled")]
    assert NAME in {text for text, name in before.items() if name in tried}
    now = ids(memory)
    assert before.items() <= now.items() and len(set(now)) == len(now)
    known = next(each for each in held(memory).lessons if each.text == NAME)
    assert [each.run for each in known.runs] == ["first", "second"]
    assert build_graph(tmp_path / "second").nodes[f"lesson:{known.id}"]["text"] == NAME


def test_lessons_that_a_run_had_nothing_to_do_with_are_not_in_its_result(
    other: Any, memory: Path, tmp_path: Path, letters: Any
) -> None:
    letters.tune(tmp_path / "tuned", memory=str(memory), plain_first=False)
    assert {each.about for each in held(memory).lessons} == {"judge", "generator"}
    done = other.align(tmp_path / "second", memory=str(memory), max_iterations=1).record
    listed = {each.id for each in done.lessons}
    assert listed & set(ids(memory).values())
    assert not listed & {each.id for each in held(memory).lessons if each.about == "generator"}
    assert {each.text for each in contents_of_run(RunDirectory(tmp_path / "second")).lessons} == {
        each.text for each in done.lessons
    }


@pytest.mark.parametrize("at", [60, 130])
def test_a_killed_run_goes_on_as_if_the_memory_had_stayed_as_it_was(
    other: Any, memory: Path, tmp_path: Path, at: int
) -> None:
    copy = shutil.copytree(memory, tmp_path / "copy")
    whole = Counting()
    other.align(tmp_path / "whole", whole, memory=str(copy))
    asked = Counting(at)
    with pytest.raises(Crash):
        other.align(tmp_path / "killed", asked, memory=str(memory))
    MemoryDirectory(memory).remove(ids(memory)[NAME])
    shutil.rmtree(tmp_path / "first")
    asked.at = None
    other.align(tmp_path / "killed", asked, memory=str(memory))
    assert what_came_of(tmp_path / "killed") == what_came_of(tmp_path / "whole")
    assert asked.keys == whole.keys, "no answered request was repeated, and no other was made"
    assert NAME not in ids(memory) and len(held(memory).removed) == 1
    added = {each.text: len(each.runs) for each in held(memory).lessons}
    assert added == {each.text: len(each.runs) for each in held(copy).lessons if each.text != NAME}


def test_what_was_learned_before_a_kill_is_there_and_not_there_twice_afterwards(world: Any, tmp_path: Path) -> None:
    memory, asked = tmp_path / "memory", Counting()

    def dies(request: Request) -> None:
        asked(request)
        if events(tmp_path / "run", "disagreements")[1:]:  # the second iteration has begun
            raise Crash

    with pytest.raises(Crash):
        world.align(tmp_path / "run", dies, memory=str(memory))
    early = ids(memory)
    assert early and not (tmp_path / "run" / "result.json").exists()
    for _ in range(2):
        world.align(tmp_path / "run", memory=str(memory))
        assert early.items() <= ids(memory).items()
        assert all(len(each.runs) == 1 for each in held(memory).lessons)


def test_what_people_removed_is_neither_tried_nor_learned_again_until_they_say_so(
    other: Any, memory: Path, tmp_path: Path
) -> None:
    name = ids(memory)[NAME]
    MemoryDirectory(memory).remove(name)
    done = other.align(tmp_path / "second", memory=str(memory)).record
    assert NAME not in {each.text for each in done.lessons} | set(ids(memory))
    said = [each["reason"] for each in events(tmp_path / "second", "no_note")]
    assert says(said, "people removed", "memory", name)
    MemoryDirectory(memory).forget_removal(name)
    again = other.align(tmp_path / "third", memory=str(memory), max_iterations=9, patience=9).record
    assert NAME in {each.text for each in again.lessons}
    assert ids(memory)[NAME] == name


def test_a_run_whose_memory_is_gone_says_so_and_comes_to_the_same(
    other: Any, memory: Path, tmp_path: Path, capsys: Any
) -> None:
    first = other.align(tmp_path / "second", memory=str(memory))
    memory.rename(tmp_path / "elsewhere")
    moved = first.directory.rename(tmp_path / "moved")
    job = replace(take_up(RunDirectory(moved), {}), models={"model": other.model("world/target")})
    with watching(None, True) as watcher:
        done = run_and_report(job, moved, watcher)
    assert done.record == first.record and not memory.exists()
    assert says(capsys.readouterr().err, "not there")


def test_a_memory_that_was_named_from_one_directory_is_found_from_another(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for each in (here, elsewhere / "memory"):
        each.mkdir(parents=True)
    monkeypatch.chdir(here)
    with pytest.raises(Crash):
        world.align(tmp_path / "run", Counting(60), memory="memory")
    before = ids(here / "memory")
    monkeypatch.chdir(elsewhere)
    job = replace(take_up(RunDirectory(tmp_path / "run"), {}), models={"model": world.model("world/target")})
    with watching(None, False) as watcher:
        done = run_and_report(job, tmp_path / "run", watcher)
    assert {each.text for each in done.record.lessons} <= ids(here / "memory").keys() - before.keys()
    assert not any((elsewhere / "memory").iterdir())


def test_a_run_may_go_on_from_another_and_have_its_memory_too(world: Any, make_world: Any, memory: Path) -> None:
    more, run = make_world(60), memory.parent / "more"
    before = ids(memory)
    done = askance.align(
        more.rows,
        from_run=memory.parent / "first",
        model=world.model("world/target"),
        run=run,
        memory=str(memory),
        **world.options,
    )
    assert not events(run, "recalled"), "what the earlier judge has is not tried once more"
    assert len({each.text for each in done.record.lessons}) == len(done.record.lessons)
    assert before.items() <= ids(memory).items()


def test_another_memory_for_the_same_run_is_refused_and_so_is_one_in_its_directory(
    world: Any, memory: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"other settings \(memory\)"):
        world.align(tmp_path / "first", memory=str(tmp_path / "other"))
    with pytest.raises(InputError, match="a directory each"):
        world.align(tmp_path / "new", memory=str(tmp_path / "new"))
    with pytest.raises(InputError, match=naming("first", "a run")):
        world.align(tmp_path / "new", memory=str(tmp_path / "first"))
    (memory / "memory.jsonl").write_text("{\n")
    asked = Counting(0)
    with pytest.raises(InputError, match=r"memory\.jsonl, line 1"):
        world.align(tmp_path / "new", asked, memory=str(memory))


def test_an_estimate_counts_what_trying_lessons_may_take_and_makes_nothing(world: Any, tmp_path: Path) -> None:
    settings = world.options | {"memory": str(tmp_path / "memory")}
    jobs = (
        prepare(world.rows, world.checklist, world.model("world/target"), world.prompt, options)
        for options in (world.options, settings)
    )
    without, beside = map(estimate_run, jobs)
    assert beside.last_calls > without.last_calls and beside.fixed == without.fixed
    assert not (tmp_path / "memory").exists()


def test_requirements_in_their_own_words_are_remembered_for_the_same_requirement(
    make_letters: Callable[..., Any], tmp_path: Path
) -> None:
    letters = make_letters(plain=("greeting", "signature"))
    how: dict[str, Any] = {
        "checklist": letters.checklist,
        "judge": letters.model("letters/judge"),
        "memory": str(tmp_path / "memory"),
    }
    letters.tune(tmp_path / "first", **how)
    stated = {each.requirement: each for each in held(tmp_path / "memory").lessons if each.requirement}
    assert stated["greeting"].requirement_text == "Does the letter greet?"
    letters.ids = OTHERS
    done = letters.tune(tmp_path / "second", **how).record
    lines = [each for each in done.lessons if each.requirement == "greeting"]
    assert [each.id for each in lines] == [stated["greeting"].id] and lines[0].status == "applied"
    assert stated["greeting"].text in done.best.prompt
    assert not events(tmp_path / "second", "requirement")
    MemoryDirectory(tmp_path / "memory").remove(stated["greeting"].id)
    letters.ids = [f"e{number:03d}" for number in range(600, 640)]
    done = letters.tune(tmp_path / "third", **how).record
    assert stated["greeting"].text not in done.best.prompt
    assert json.loads((tmp_path / "third" / "result.json").read_text())["best"]["prompt"] == done.best.prompt


def test_what_people_removed_is_not_taken_over_from_an_earlier_run_either(
    world: Any, make_world: Any, memory: Path
) -> None:
    name, more, run = ids(memory)[NAME], make_world(60), memory.parent / "more"
    MemoryDirectory(memory).remove(name)
    how: dict[str, Any] = {"from_run": memory.parent / "first", "model": world.model("world/target")}
    done = askance.align(more.rows, run=run, memory=str(memory), **how, **world.options)
    assert NAME not in {each.text for each in done.record.lessons} | set(ids(memory))


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_run_goes_on_from_one_that_had_the_memory_whatever_became_of_that(
    other: Any, memory: Path, tmp_path: Path, is_removed: bool
) -> None:
    name = ids(memory)[NAME]
    other.align(tmp_path / "second", memory=str(memory))
    if is_removed:
        MemoryDirectory(memory).remove(name)
    else:
        file = memory / "memory.jsonl"
        said = file.read_text()
        file.write_text(said.replace(f'"text": "{NAME}"', f'"text": "{OTHER_WORDS}"', 1))
        assert NAME not in ids(memory)
    how: dict[str, Any] = {"from_run": tmp_path / "second", "model": other.model("world/target")}
    done = askance.align(other.rows, run=tmp_path / "more", memory=str(memory), **how, **other.options)
    found = {each.id: each.text for each in done.record.lessons}
    assert found.get(name) in (None, OTHER_WORDS)


def test_what_was_learned_about_checks_is_tried_beside_a_checklist_too(letters: Any, tmp_path: Path) -> None:
    memory = str(tmp_path / "memory")
    letters.tune(tmp_path / "first", memory=memory)
    letters.ids = OTHERS
    question = Question(id="letter", text="Is it a letter?", dimension="letter")
    checker, judge = letters.checker(tmp_path), letters.model("letters/judge")
    checklist = Checklist(task="Write letters.", questions=[question])
    letters.tune(tmp_path / "second", memory=memory, checklist=checklist, judge=judge, checker=checker)
    tried = {each["lesson"]["text"] for each in events(tmp_path / "second", "recalled")}
    assert {letters.CURES["greeting"], letters.CURES["signature"]} <= tried


@pytest.mark.parametrize("trial", [True, False])
def test_an_edit_that_was_refused_is_not_tried_again_on_the_same_prompt_with_the_same_models(
    make_letters: Any, tmp_path: Path, trial: bool
) -> None:
    letters = make_letters(harm=1.0)
    given = {"memory": str(tmp_path / "memory"), "plain_first": False, "additions": False, "trial": trial}
    checker = letters.checker(tmp_path)
    first = letters.tune(tmp_path / "first", checker=checker, **given).record
    (kept,) = [each for entry in held(tmp_path / "memory").lessons for run in entry.runs for each in run.refused]
    assert letters.CURES["brief"] in kept.new
    second = letters.tune(tmp_path / "second", checker=checker, **given).record
    assert not second.rejected_edits and not events(tmp_path / "second", "trial")
    assert second.calls < first.calls
    (lesson,) = [each for each in second.lessons if each.text == letters.CURES["brief"]]
    assert lesson.status == "rejected"
    assert says(lesson.reason, "first", "same prompt") and kept.reason in lesson.reason
    assert not any(each.was_tried for each in held(tmp_path / "memory").lessons[0].runs[1:])


def test_a_refused_edit_is_tried_again_on_another_prompt_and_with_another_model(
    make_letters: Any, tmp_path: Path
) -> None:
    letters = make_letters(harm=1.0)
    given = {"memory": str(tmp_path / "memory"), "plain_first": False, "additions": False, "trial": False}
    checker = letters.checker(tmp_path)
    letters.tune(tmp_path / "first", checker=checker, **given)
    model = letters.model("letters/other")
    options = letters.options | given | {"checker": checker, "run": tmp_path / "model"}
    done = askance.tune(letters.rows, generator=model, prompt=letters.prompt, **options)
    assert done.record.rejected_edits
    letters.prompt = askance.Prompt("Write what is asked for, please.")
    assert letters.tune(tmp_path / "prompt", checker=checker, **given).record.rejected_edits


def test_an_edit_whose_gain_may_be_noise_is_not_remembered_as_refused(world: Any, tmp_path: Path) -> None:
    world.align(tmp_path / "run", memory=str(tmp_path / "memory"), alpha=1e-9)
    runs = [run for entry in held(tmp_path / "memory").lessons for run in entry.runs]
    assert any("within noise" in (each.reason or "") for each in runs)
    assert not any("within noise" in refused.reason for each in runs for refused in each.refused)
