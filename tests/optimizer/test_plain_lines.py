"""What fails is tried in its own words first; a note-taker is asked for what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from askance.agents.generator import RequirementWriter
from askance.memory.embedders import embedder
from askance.memory.journal import Journal, read_events
from askance.memory.lesson_memory import LessonMemory
from askance.memory.provenance import build_graph
from askance.memory.why import why
from askance.models.base import Request
from askance.models.gateway import Gateway
from askance.models.progress import Silent
from askance.optimizer.events import Teller
from askance.optimizer.steps.edits import PlainLines
from askance.optimizer.subject import Observation
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.lessons import Disagreement
from askance.prompts.verdicts import Verdict
from askance.testing import ScriptedModel
from tests.said import says

BOTH = ("greeting", "signature")


def notes_in(seen: list[Request]) -> list[Request]:
    """Requests for notes: an instruction, or in the papers' loop lessons."""
    return [
        each for each in seen if {"instruction", "lessons"} & set((each.parameters.schema or {}).get("properties", {}))
    ]


def tune(letters: Any, run: Path, kind: str = "checklist", **options: Any) -> tuple[Any, list[Request]]:
    seen: list[Request] = []
    options = ({} if options.get("paper") else {"additions": False}) | options
    if kind == "checklist":
        options |= {"judge": letters.model("letters/judge", seen.append), "checklist": letters.checklist}
    return letters.tune(run, seen.append, **options), seen


@pytest.mark.parametrize("kind", ["checklist", "checker"])
def test_where_the_requirements_own_words_do_no_note_is_taken(make_letters: Any, tmp_path: Path, kind: str) -> None:
    letters = make_letters(plain=BOTH)
    done, seen = tune(letters, tmp_path / "run", kind)
    assert done.finish_reason == "nothing_fails"
    lines = [letters.PLAIN[name][kind == "checker"] for name in BOTH]
    assert all(f"\n- {line}" in done.prompt for line in lines)
    assert not notes_in(seen)
    assert [each["id"] for each in done.result["lessons"]] == ["R1", "R2"]
    texts = [each["text"] for each in done.result["lessons"]]
    assert done.prompt.endswith("\n".join(f"- {text}" for text in texts)), "what fails most often stands first"
    [accepted] = done.result["accepted_edits"]
    assert len(accepted["edits"]) == 2, "they were tried together first"
    assert not done.result["rejected_edits"]
    found = {each["requirement"]: each for each in done.result["lessons"]}
    assert set(found) == set(BOTH)
    assert {each["status"] for each in found.values()} == {"applied"}
    stated = [row for row in read_events(tmp_path / "run" / "journal.jsonl") if row["event"] == "requirement"]
    assert {row["by"] for row in stated} == {"words" if kind == "checklist" else "model"}
    assert not [row for row in read_events(tmp_path / "run" / "journal.jsonl") if row["event"] == "trial"]


def test_each_instruction_has_its_effect_on_its_own_requirement(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(plain=BOTH)
    done, _ = tune(letters, tmp_path / "run")
    effects = {each["requirement"]: each for each in done.result["instructions"]}
    assert set(effects) == set(BOTH)
    for name, row in effects.items():
        assert row["text"] == letters.PLAIN[name][0]
        assert row["asked"] == letters.WANTS[name][1]
        for split in ("validation", "test"):
            file = tmp_path / "run" / "verdicts" / "000-test.jsonl"
            rates = row[split]
            assert rates["after"] == 1.0
            assert rates["gain"]["value"] == pytest.approx(rates["after"] - rates["before"])
            assert rates["n"] == done.result["baseline"][split]["n"]
        verdicts = [json.loads(line) for line in file.read_text().splitlines()]
        mine = [each["answer"] for each in verdicts if each["question"] == name]
        assert row["test"]["before"] == pytest.approx(sum(mine) / len(mine))
        assert row["test"]["before"] < 0.7


def test_a_note_is_taken_of_what_its_own_words_do_not_cure(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(60, plain=["greeting"])
    done, seen = tune(letters, tmp_path / "run")
    assert letters.PLAIN["greeting"][0] in done.prompt
    assert letters.CURES["signature"] in done.prompt
    assert letters.CURES["greeting"] not in done.prompt
    asked = [each.messages[-1][1] for each in notes_in(seen)]
    assert asked
    assert all(letters.WANTS["signature"][1] in each for each in asked)
    effects = {(each["lesson"][0], each["requirement"]): each for each in done.result["instructions"]}
    assert effects["R", "greeting"]["test"]["after"] == 1.0
    assert effects["L", "signature"]["test"]["after"] == 1.0, "a note-taker's instruction has its effect too"


def test_lines_that_gain_nothing_are_tried_once_and_stay_out(letters: Any, tmp_path: Path) -> None:
    done, seen = tune(letters, tmp_path / "run")
    assert not any(line in done.prompt for lines in letters.PLAIN.values() for line in lines)
    assert done.finish_reason == "nothing_fails"
    mine = [each for each in done.result["lessons"] if each["requirement"]]
    assert {each["status"] for each in mine} == {"rejected"}
    rejected = [
        [lesson for edit in row["edits"] for lesson in edit["lessons"]] for row in done.result["rejected_edits"]
    ]
    assert sorted(map(sorted, rejected)) == [["R1"], ["R1", "R2"], ["R2"]], (
        "the bundle, then its halves, and never again"
    )
    assert notes_in(seen)


@pytest.mark.parametrize("options", [{"plain_first": False}, {"paper": True}])
def test_nothing_is_stated_where_it_is_not_wanted(make_letters: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    done, seen = tune(make_letters(plain=BOTH), tmp_path / "run", **options)
    assert notes_in(seen)
    assert not any(each["requirement"] for each in done.result["lessons"])


def failures(name: str, asked: int, failed: int) -> tuple[list[Verdict], list[Disagreement]]:
    """Of ten examples, ``asked`` are asked the question and the first ``failed`` of them fail."""
    verdicts = [Verdict(f"e{n}", name, "judge", "p", n >= failed) for n in range(asked)]
    found = [Disagreement(example=f"e{n}", question=name, target=False, reference=True, gap=1.0) for n in range(failed)]
    return verdicts, found


async def test_only_what_is_asked_of_most_and_fails_more_than_once_is_stated(tmp_path: Path) -> None:
    cases = {"often": (10, 2), "once": (10, 1), "for few": (4, 4), "most": (9, 5)}
    questions = [Question(id=name, text=f"Does the reply name the {name}?") for name in cases]
    verdicts, found = zip(*(failures(name, *case) for name, case in cases.items()), strict=True)
    examples = [Example(id=f"e{n}", input="i", output="o") for n in range(10)]
    seen = Observation(examples, [each for group in verdicts for each in group], [], Checklist(questions=questions))
    memory, events = LessonMemory(embedder("words")), Teller(Journal(tmp_path / "j"), Silent())
    writer = RequirementWriter(Gateway(), ScriptedModel(lambda _: "never asked"))
    plain = PlainLines(writer, seen.checklist, memory, events)
    failed = [each for group in found for each in group]
    first = await plain.learn(seen, failed, ())
    assert [(each.id, each.requirement, each.support) for each in first] == [("R1", "most", 5), ("R2", "often", 2)]
    assert first[0].text == "Name the most."
    assert await plain.learn(seen, failed, {"R2"}) == first[:1], "what waits has its place in a later candidate"
    memory.mark(["R1"], "rejected", "no gain")
    assert await plain.learn(seen, failed, {"R2"}) == []


def test_questions_that_belong_to_one_example_are_never_stated(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(plain=BOTH)
    done = letters.tune(tmp_path / "run", judge=letters.model("letters/judge"), own_questions=True)
    assert not any(each["requirement"] for each in done.result["lessons"])


def test_a_model_that_cannot_state_a_check_leaves_it_quoted(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(plain=BOTH)
    letters.PLAIN = {name: (line, "What is it?") for name, (line, _) in letters.PLAIN.items()}
    done, _ = tune(letters, tmp_path / "run", "checker")
    texts = {each["requirement"]: each["text"] for each in done.result["lessons"] if each["requirement"]}
    assert says(texts["greeting"], "must pass", "check", "greeting")


def test_the_provenance_says_that_a_line_states_its_requirement(make_letters: Any, tmp_path: Path) -> None:
    letters = make_letters(plain=BOTH)
    done, _ = tune(letters, tmp_path / "run")
    line = letters.PLAIN["greeting"][0]
    [edit] = why(build_graph(tmp_path / "run"), done.prompt, line).edits
    [lesson] = edit.lessons
    assert lesson.requirement == "greeting"
    assert lesson.cases
    for case in lesson.cases:
        assert case.question_text == letters.WANTS["greeting"][1]
        assert case.input


def test_comments_on_an_earlier_output_are_told_to_the_note_taker(letters: Any, tmp_path: Path) -> None:
    class Commented(type(letters)):
        rows: ClassVar = [
            row | {"output": "This is it.", "comment": {"letter": "It sounds cold."}} for row in letters.rows
        ]

    letters.__class__ = Commented
    _, seen = tune(letters, tmp_path / "run", plain_first=False)
    notes = notes_in(seen)
    assert notes
    assert all(says(each.messages[-1][1], "People said", "earlier output", '"It sounds cold."') for each in notes)
    judged = [each for each in seen if each not in notes]
    assert not any("It sounds cold." in json.dumps(each.messages) for each in judged)
