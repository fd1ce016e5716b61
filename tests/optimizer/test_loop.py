"""When the loop stops, what it keeps, and what it does not ask twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.memory.result_file import FINISH_SENTENCES
from askance.models.base import Answer, Request
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel, as_answer
from tests.worlds import RULES, World, share

PLAIN_STYLE = "is written in a plain style"


def decisions(run: Path) -> list[dict[str, Any]]:
    return [event for event in read_events(run / "journal.jsonl") if event["event"] == "decision"]


def note_requests(seen: Sequence[Request]) -> list[Request]:
    return [
        each for each in seen if "answer_no_if" in each.messages[-1][1] or "answer_yes_even" in each.messages[-1][1]
    ]


# --- every reason to stop ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason", "iterations"),
    [
        ({"differing": 0.99}, "converged", 1),
        ({}, "no_disagreements", 3),
        ({"alpha": 0.001, "patience": 1}, "no_gain", 1),
        ({"alpha": 0.001, "patience": 2}, "no_gain", 2),
        ({"max_iterations": 1}, "max_iterations", 1),
        ({"max_iterations": 2, "patience": 5}, "max_iterations", 2),
        ({"max_lessons": 1}, "max_lessons", 1),
        ({"call_budget": 100}, "max_calls", 1),
        ({"token_budget": 12_000}, "max_tokens", 1),
    ],
)
def test_the_loop_stops_for_each_of_its_reasons(
    world: Any, tmp_path: Path, options: dict[str, Any], reason: str, iterations: int
) -> None:
    done = world.migrate(tmp_path / "run", **options)
    assert done.finish_reason == reason
    assert done.result["iterations"] == iterations
    assert reason in FINISH_SENTENCES
    stopped = [event for event in read_events(tmp_path / "run" / "journal.jsonl") if event["event"] == "stopped"]
    assert [event["reason"] for event in stopped] == [reason]


def test_a_budget_of_money_ends_the_run(world: Any, tmp_path: Path) -> None:
    def priced(request: Request) -> Answer:
        reply = as_answer(world.reply(request.messages, request.parameters.schema), request)
        return Answer(reply.text, reply.logprobs, reply.prompt_tokens, reply.completion_tokens, 0.001)

    done = askance.migrate(
        world.rows,
        checklist=world.checklist,
        source=ScriptedModel(priced, name="world/source", slots=1),
        target=ScriptedModel(priced, name="world/target", slots=1),
        source_prompt=world.source_prompt,
        run=tmp_path / "run",
        cost_budget=0.1,
        **world.options,
    )
    assert done.finish_reason == "max_cost"
    assert done.result["cost_usd"] == pytest.approx(0.1, abs=0.0015)


def test_a_loop_that_has_converged_buys_no_notes(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    world.migrate(tmp_path / "run", seen.append, differing=0.99)
    assert note_requests(seen) == []


def test_a_full_prompt_buys_no_further_notes(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    done = world.migrate(tmp_path / "run", seen.append, max_lessons=1)
    assert done.finish_reason == "max_lessons"
    assert len(note_requests(seen)) == 8, "those of the first iteration"
    assert sum(len(each["edits"]) for each in done.result["accepted_edits"]) == 1


def test_the_note_taker_reads_no_more_than_max_notes_and_nothing_twice_with_one_prompt(
    world: Any, tmp_path: Path
) -> None:
    done = world.migrate(tmp_path / "run", max_notes=3, alpha=0.001, patience=5)
    assert done.result["accepted_edits"] == [], "so the prompt stays the same"
    rounds = [
        [f"{each['example']}/{each['question']}" for each in event["read"]]
        for event in read_events(tmp_path / "run" / "journal.jsonl")
        if event["event"] == "disagreements"
    ]
    assert len(rounds[0]) == 3
    assert all(len(each) <= 3 for each in rounds)
    read = [key for each in rounds for key in each]
    assert len(read) == len(set(read))


class HalfHeeded(World):
    """The target heeds a rule on most examples alone, and the updater says every lesson in words of its own."""

    def p_yes(self, prompt: str, example: str, question: str) -> float:
        flaw = self.flaw(example, question)
        deaf = "strict" not in prompt and flaw is not None and share("deaf", example, question) < 0.4
        return super().p_yes(prompt.replace(RULES[flaw], "") if deaf and flaw else prompt, example, question)

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        reply = super().reply(messages, schema)
        said = "part" in (schema or {}).get("properties", {})
        return reply.replace("the output", "the summary") if said and isinstance(reply, str) else reply


def test_a_lesson_that_the_prompt_says_in_other_words_is_not_written_into_it_again(tmp_path: Path) -> None:
    done = HalfHeeded(60).migrate(tmp_path / "run")
    [applied] = [each["id"] for each in done.result["lessons"] if RULES["name"] in each["text"]]
    events = read_events(tmp_path / "run" / "journal.jsonl")
    further = [each for each in events if each["event"] == "lesson" and each["kept_as"] == applied]
    assert "the summary gives a wrong name" in done.prompt and len(further) > 1, "it gets further evidence"
    written = [each["event"] for each in events if each["event"] in ("edit", "no_edit") and applied in each["lessons"]]
    assert written == ["edit"]


# --- what a user gets ----------------------------------------------------------------------------------------------


def test_a_harmful_edit_is_rejected_and_the_best_version_is_what_the_user_gets(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    assert PLAIN_STYLE not in done.prompt
    assert (tmp_path / "run" / "prompt.md").read_text() == done.prompt == done.result["best"]["prompt"]
    tried = decisions(tmp_path / "run")
    assert tried[-1]["accepted"] is False, "the last thing that was tried was worse"
    harmful = {lesson["id"] for lesson in done.result["lessons"] if PLAIN_STYLE in lesson["text"]}
    assert harmful
    assert not any(harmful & set(each["lessons"]) for each in tried if each["accepted"])
    assert done.result["best"]["validation"]["spearman"] > (done.result["baseline"]["validation"]["spearman"])


def test_every_accepted_version_is_better_on_validation_than_the_one_before(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    gains = [each["gain"]["value"] for each in done.result["accepted_edits"]]
    assert len(gains) == 2
    assert all(gain > 0 for gain in gains)
    total = done.result["best"]["validation"]["spearman"] - done.result["baseline"]["validation"]["spearman"]
    assert sum(gains) == pytest.approx(total)


@pytest.mark.parametrize("cap", [200, 240, 280])
def test_what_was_accepted_before_a_budget_ended_the_run_is_kept(world: Any, tmp_path: Path, cap: int) -> None:
    done = world.migrate(tmp_path / "run", call_budget=cap)
    assert done.finish_reason == "max_calls"
    accepted = [each for each in decisions(tmp_path / "run") if each["accepted"]]
    assert accepted
    for each in done.result["accepted_edits"]:
        for edit in each["edits"]:
            assert edit["new"].splitlines()[-1] in done.prompt
    assert (tmp_path / "run" / "prompt.md").read_text() == done.prompt


def test_nothing_accepted_leaves_the_prompt_as_it_was(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run", alpha=0.001)
    assert done.result["accepted_edits"] == []
    assert done.prompt == done.result["baseline"]["prompt"] == (tmp_path / "run" / "prompt.md").read_text()
    assert (tmp_path / "run" / "changes.diff").read_text() == ""
    assert done.result["gain"] == {"validation": None, "test": None}
    assert {lesson["status"] for lesson in done.result["lessons"]} == {"rejected"}


def test_an_edit_that_was_rejected_is_not_judged_again(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run", alpha=0.001, patience=5)
    judged = [frozenset((edit["old"], edit["new"]) for edit in each["edits"]) for each in done.result["rejected_edits"]]
    assert len(judged) >= 3
    assert len(judged) == len(set(judged)), "no candidate comes twice"
    style = next(lesson for lesson in done.result["lessons"] if PLAIN_STYLE in lesson["text"])
    assert len(style["evidence"]) > 2, "its evidence grew in the second iteration"


def test_edits_with_a_gain_within_noise_wait_and_are_rejected_at_the_end_with_what_the_gate_said(
    world: Any, tmp_path: Path
) -> None:
    done = world.migrate(tmp_path / "run", alpha=0.001, patience=5)
    waited = [each for each in done.result["rejected_edits"] if each["reason"].startswith("a gain within noise")]
    grown = [len(each["edits"]) for each in waited]
    assert len(grown) >= 2 and grown == sorted(grown), "the next lessons were tried with those that waited"
    ids = {lesson for edit in waited[-1]["edits"] for lesson in edit["lessons"]}
    rows = {lesson["id"]: lesson for lesson in done.result["lessons"]}
    assert {(rows[each]["status"], rows[each]["reason"]) for each in ids} == {("rejected", waited[-1]["reason"])}


def test_lessons_say_what_became_of_them_and_why(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    for lesson in done.result["lessons"]:
        assert lesson["status"] in ("applied", "rejected")
        assert lesson["reason"]
        assert (lesson["text"] in done.prompt) == (lesson["status"] == "applied")


def test_every_version_that_was_judged_is_kept(world: Any, tmp_path: Path) -> None:
    world.migrate(tmp_path / "run")
    versions = sorted(path.name for path in (tmp_path / "run" / "prompts").iterdir())
    assert len(versions) == 1 + len(decisions(tmp_path / "run"))
    for name in versions:
        text = (tmp_path / "run" / "prompts" / name).read_text()
        assert name.endswith(f"-{Prompt(text).hash}.md")


def test_no_version_is_longer_than_max_prompt_chars(world: Any, tmp_path: Path) -> None:
    start = world.migrate(tmp_path / "start", differing=0.99).prompt
    limit = len(start) + 60
    done = world.migrate(tmp_path / "run", max_prompt_chars=limit)
    lengths = [len(path.read_text()) for path in (tmp_path / "run" / "prompts").iterdir()]
    assert max(lengths) <= limit
    assert len(done.result["accepted_edits"]) == 1
    assert any(f"more than {limit}" in (lesson["reason"] or "") for lesson in done.result["lessons"])


# --- helpers that fail ---------------------------------------------------------------------------------------------


class Unhelpful:
    """A world in which one helper talks prose."""

    def __init__(self, world: Any, field: str) -> None:
        self.reply = world.reply
        self.field = field

    def __call__(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        if self.field in (schema or {}).get("properties", {}):
            return "Well, let me think about that."
        reply: str | float = self.reply(messages, schema)
        return reply


def test_notes_that_cannot_be_used_are_left_out(world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "reply", Unhelpful(world, "answer_no_if"))
    done = world.migrate(tmp_path / "run")
    assert {lesson["direction"] for lesson in done.result["lessons"]} == {"more lenient"}


def test_lessons_that_cannot_be_compared_are_kept_as_new(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "reply", Unhelpful(world, "relation"))
    done = world.migrate(tmp_path / "run", max_iterations=1)
    texts = [lesson["text"] for lesson in done.result["lessons"]]
    assert len(texts) == len(set(texts)) == 4, "the same words are the same lesson, whatever the model says"
    assert sum(len(lesson["evidence"]) for lesson in done.result["lessons"]) == 8


def test_a_lesson_without_an_edit_is_rejected_with_the_reason(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "reply", Unhelpful(world, "part"))
    done = world.migrate(tmp_path / "run")
    assert done.finish_reason == "no_gain"
    assert done.result["rejected_edits"] == []
    assert all(lesson["reason"].startswith("no edit: ") for lesson in done.result["lessons"])


class Contradicting:
    """A world in which brevity and wrong numbers are held to contradict each other."""

    def __init__(self, world: Any) -> None:
        self.reply = world.reply

    def __call__(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        if "contradicts" in (schema or {}).get("properties", {}):
            case = messages[-1][1]
            opposite = RULES["brief"] in case and RULES["number"] in case
            return json.dumps({"reason": "opposite orders", "contradicts": opposite})
        reply: str | float = self.reply(messages, schema)
        return reply


def test_a_rewrite_is_written_anew_without_the_lesson_that_contradicts_another_one(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "reply", Contradicting(world))
    done = world.migrate(tmp_path / "run", update="rewrite", max_iterations=1)
    (tried,) = [*done.result["accepted_edits"], *done.result["rejected_edits"]]
    rows = {lesson["id"]: lesson for lesson in done.result["lessons"]}
    (retired,) = [name for name, row in rows.items() if row["status"] == "retired"]
    assert RULES["number"] in rows[retired]["text"]
    assert set(tried["edits"][0]["lessons"]) == set(rows) - {retired}
    assert all(row["reason"] for row in rows.values())


class Merging:
    """A world in which the harmful rule comes up again in other words once the others are in the prompt, and is merged into one of them."""

    def __init__(self, world: Any) -> None:
        self.reply = world.reply
        self.p_yes = world.p_yes
        self.later = False

    def judge(self, prompt: str, *asked: str) -> float:
        self.later = self.later or RULES["number"] in prompt
        p_yes: float = self.p_yes(prompt, *asked)
        return p_yes

    def __call__(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields, last = (schema or {}).get("properties", {}), messages[-1][1]
        if "relation" in fields and "or a loud one" in last.partition("On the list:")[0]:
            listed = last.partition("On the list:\n")[2].splitlines()
            place = next((each.split(".")[0] for each in listed if RULES["number"] in each), None)
            if place is not None:
                both = f"Answer no if the output {RULES['number']} or {RULES['style']}."
                return json.dumps({"relation": "merge", "of": int(place), "merged": both})
        reply: str | float = self.reply(messages, schema)
        if "answer_no_if" in fields and self.later:
            return str(reply).replace(RULES["style"], f"{RULES['style']} or a loud one")
        return reply


def test_a_lesson_in_the_prompt_that_a_merge_made_harmful_stays_there_as_it_was(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging = Merging(world)
    monkeypatch.setattr(world, "p_yes", merging.judge)
    monkeypatch.setattr(world, "reply", merging)
    done = world.migrate(tmp_path / "run")
    (row,) = [each for each in done.result["lessons"] if RULES["number"] in each["text"]]
    assert row["text"] in done.prompt and RULES["style"] not in done.prompt
    assert row["status"] == "applied"
    assert f'or {RULES["style"]}." was given up: ' in row["reason"]


# --- several edits together ----------------------------------------------------------------------------------------

PROMPT = Prompt("One.\nTwo.")


@pytest.mark.parametrize("sure", [0.0, 0.25])
def test_a_judge_that_is_wholly_too_lenient_is_read(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sure: float
) -> None:
    """The source says no to everything and the target yes: the difference of their levels explains all of it."""
    monkeypatch.setattr(world, "p_yes", lambda prompt, *_: sure if "strict" in prompt else 1 - sure)
    world.migrate(tmp_path / "run", max_iterations=1)
    events = read_events(tmp_path / "run" / "journal.jsonl")
    (found,) = [each for each in events if each["event"] == "disagreements"]
    assert found["found"] == 2 * len(next(each for each in events if each["event"] == "split")["development"])
    assert len(found["read"]) == 8, "as many as --max-notes"


def test_what_leniency_explains_is_read_last(world: Any, tmp_path: Path) -> None:
    world.migrate(tmp_path / "run", max_notes=3)
    rounds = [
        each["read"] for each in read_events(tmp_path / "run" / "journal.jsonl") if each["event"] == "disagreements"
    ]
    beyond = [[row["gap"] > 0 for row in each] for each in rounds]
    assert any(map(all, beyond))
    assert not [each for each in beyond if any(each) and not all(each)], "one kind or the other"
