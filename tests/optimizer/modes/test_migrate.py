"""What a migration hands over, and what it looks at when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.memory.journal import read_events
from askance.models.base import ModelError, Request
from askance.prompts.errors import CoverageError, InputError
from askance.testing import ScriptedModel, StandInServer
from tests.said import naming

RESULT = {
    *("mode", "finish_reason", "iterations", "baseline", "best", "accepted_edits", "rejected_edits", "lessons"),
    *("calls", "cached_calls", "tokens", "cost_usd", "coverage"),
}
MEASURE = {"spearman", "kendall", "pearson", "n", "low", "high", "dimensions"}
NUMBERS = ("spearman", "kendall", "pearson", "low", "high")


def check_measure(measure: Mapping[str, Any]) -> None:
    """Every number is there or is null with a reason beside it."""
    assert set(measure) >= MEASURE
    for row in (measure, *measure["dimensions"].values()):
        if any(row[name] is None for name in NUMBERS):
            assert row["reason"]


def check_result(result: Mapping[str, Any]) -> None:
    """As INTERFACE promises it."""
    assert set(result) >= RESULT
    for side in ("baseline", "best"):
        assert set(result[side]) >= {"prompt", "validation", "test"}
        check_measure(result[side]["validation"])
        if result[side]["test"] is None:
            assert result[side]["reason"]
        else:
            check_measure(result[side]["test"])


# --- the result ----------------------------------------------------------------------------------------------------


def test_the_result_holds_what_interface_promises(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    check_result(done.result)
    assert done.result["mode"] == "migrate"
    assert done.result["baseline"]["test"]["n"] == 16
    assert done.result["baseline"]["validation"]["n"] == 12
    assert set(done.result["best"]["test"]["dimensions"]) == {"quality"}
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == done.result


def test_the_run_directory_holds_what_interface_promises(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    wanted = {"config.yaml", "journal.jsonl", "verdicts.db", "lessons.jsonl", "prompt.md", "prompts", "changes.diff"}
    assert names >= wanted | {"result.json", "judge.yaml", "checklist.yaml"}
    assert not [name for name in names if name.endswith(".part")]
    lessons = [json.loads(line) for line in (tmp_path / "run" / "lessons.jsonl").read_text().splitlines()]
    assert lessons == done.result["lessons"]


def test_the_diff_turns_the_starting_prompt_into_the_accepted_one(world: Any, tmp_path: Path) -> None:
    done = world.migrate(tmp_path / "run")
    lines = done.result["baseline"]["prompt"].splitlines()
    diff = (tmp_path / "run" / "changes.diff").read_text().splitlines()
    added = [line[1:] for line in diff if line.startswith("+") and not line.startswith("+++")]
    removed = [line[1:] for line in diff if line.startswith("-") and not line.startswith("---")]
    assert [line for line in lines if line not in removed] + added == done.prompt.splitlines()


def test_the_prompt_that_is_written_is_byte_for_byte_what_was_judged(world: Any, tmp_path: Path) -> None:
    world.prompt = askance.Prompt("You are a careful judge.\r\n\r\nBe just.\r\n")
    seen: list[Request] = []
    world.migrate(tmp_path / "run", seen.append)
    written = (tmp_path / "run" / "prompt.md").read_bytes().decode()
    assert written.startswith("You are a careful judge.\r\n\r\nBe just.")
    assert written in {content for request in seen for _, content in request.messages}


def test_the_ledger_of_the_roles_adds_up_to_the_calls(world: Any, tmp_path: Path) -> None:
    seen: list[Request] = []
    result = world.migrate(tmp_path / "run", seen.append).result
    assert set(result["roles"]) == {"source", "target", "note_taker", "deduplicator", "updater"}
    assert sum(role["calls"] for role in result["roles"].values()) == result["calls"] == len(seen)
    assert sum(role["cached_calls"] for role in result["roles"].values()) == result["cached_calls"]


# --- who is asked what, and when -----------------------------------------------------------------------------------


@pytest.mark.parametrize("human", [True, False])
def test_the_test_examples_are_looked_at_once_at_the_end(
    make_world: Any, tmp_path: Path, ids_in: Any, human: bool
) -> None:
    world = make_world(human=human)
    journal = tmp_path / "run" / "journal.jsonl"
    seen: list[tuple[set[str], bool]] = []

    def look(request: Request) -> None:
        seen.append((ids_in(request.messages), any(event["event"] == "test" for event in read_events(journal))))

    result = world.migrate(tmp_path / "run", look).result
    split = next(event for event in read_events(journal) if event["event"] == "split")
    test = set(split["test"])
    assert len(test) == 16
    assert test == set().union(*(ids for ids, at_the_end in seen if at_the_end))
    assert not test & set().union(*(ids for ids, at_the_end in seen if not at_the_end))
    assert sum(at_the_end for _, at_the_end in seen) == 3 * 16 * 2, "the source too: its place is to be taken"
    assert result["test_looked_at"] is True
    assert result["reference"] == ("human" if human else "source")


def test_validation_examples_reach_the_judges_only(world: Any, tmp_path: Path, ids_in: Any) -> None:
    seen: list[Request] = []
    world.migrate(tmp_path / "run", seen.append)
    split = read_events(tmp_path / "run" / "journal.jsonl")[0]
    helpers = [request for request in seen if request.parameters.schema]
    assert len(helpers) > 10
    told = set().union(*(ids_in(request.messages) for request in helpers))
    assert told
    assert told <= set(split["development"])


def test_the_source_is_not_asked_about_more_than_it_is_needed_for(world: Any, tmp_path: Path) -> None:
    result = world.migrate(tmp_path / "run", differing=0.99).result
    assert result["roles"]["source"]["calls"] == (12 + 16) * 2, "on validation nothing is held against it"


def test_explanations_are_bought_for_what_the_note_taker_reads_alone(world: Any, tmp_path: Path) -> None:
    def count(**options: Any) -> int:
        seen: list[Request] = []
        world.migrate(tmp_path / str(options), seen.append, **options)
        return sum("what in the output decides" in request.messages[-1][1] for request in seen)

    assert count(max_iterations=1, max_notes=5) == 2 * 5
    assert count(explain="never") == 0
    assert count(explain="always", max_iterations=1) == 0, "they came with the verdicts"


@pytest.mark.parametrize(("roles", "helper"), [("cross", "source"), ("self", "target")])
def test_helpers_are_the_source_or_the_target(world: Any, tmp_path: Path, roles: str, helper: str) -> None:
    asked: dict[str, set[str]] = {"source": set(), "target": set()}
    models = {}
    for name in asked:

        def note(request: Request, name: str = name) -> None:
            asked[name] |= set((request.parameters.schema or {}).get("properties", {}))

        models[name] = world.model(f"world/{name}", note)
    askance.migrate(
        world.rows,
        checklist=world.checklist,
        prompt=world.prompt,
        source_prompt=world.source_prompt,
        run=tmp_path / "run",
        roles=roles,
        **models,
        **world.options,
    )
    other = "source" if helper == "target" else "target"
    assert asked[helper] >= {"answer_no_if", "relation", "part"}
    assert asked[other] == set()


def test_every_helper_can_have_a_model_of_its_own(world: Any, tmp_path: Path) -> None:
    with StandInServer(world.serve) as server:
        done = askance.migrate(
            world.rows,
            checklist=world.checklist,
            source="openai/source",
            target="openai/target",
            prompt=world.prompt,
            source_prompt=world.source_prompt,
            note_taker="openai/notes",
            deduplicator="openai/dedup",
            updater="openai/edits",
            api_base=server.url,
            run=tmp_path / "run",
            **world.options,
        )
    fields: dict[str, set[str]] = {}
    for body in server.bodies:
        form = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        fields.setdefault(body["model"], set()).update(form.get("properties", {}))
    assert fields["source"] == fields["target"] == set()
    assert "answer_no_if" in fields["notes"]
    assert fields["dedup"] == {"relation", "of", "merged", "reason", "contradicts"}
    assert fields["edits"] == {"part", "action", "text"}
    assert done.finish_reason == "no_disagreements"


def test_the_default_prompt_can_be_improved_too(world: Any, tmp_path: Path) -> None:
    done = askance.migrate(
        world.rows,
        checklist=world.checklist,
        source=world.model("world/source"),
        target=world.model("world/target"),
        source_prompt=world.source_prompt,
        run=tmp_path / "run",
        **world.options,
    )
    assert done.result["accepted_edits"]
    assert askance.Prompt(done.prompt).check()


def test_replicates_are_judged_and_counted(world: Any, tmp_path: Path) -> None:
    once = world.migrate(tmp_path / "once", differing=0.99).result
    twice = world.migrate(tmp_path / "twice", differing=0.99, repeat=2).result
    assert twice["calls"] == 2 * once["calls"]
    assert twice["best"]["test"] == once["best"]["test"]


# --- undefined numbers and missing verdicts ------------------------------------------------------------------------


def test_a_judge_that_says_yes_to_everything_has_no_correlation_and_can_still_be_improved(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p_yes = world.p_yes

    def flat(prompt: str, example: str, question: str) -> float:
        value = p_yes(prompt, example, question)
        return value if "strict" in prompt or value < 0.3 else 0.9

    monkeypatch.setattr(world, "p_yes", flat)
    monkeypatch.setattr(world, "brief", lambda example, question: False)
    done = world.migrate(tmp_path / "run")
    check_result(done.result)
    baseline = done.result["baseline"]["validation"]
    assert baseline["spearman"] is None
    assert "constant" in baseline["reason"]
    assert done.result["accepted_edits"]
    assert done.result["best"]["validation"]["spearman"] is not None
    assert done.result["gain"]["validation"]["value"] > 0


class Mumbling:
    """Judges that talk prose about some examples."""

    def __init__(self, world: Any, about: Sequence[str]) -> None:
        self.reply = world.reply
        self.about = about

    def __call__(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        told = " ".join(content for _, content in messages)
        if schema is None and "decides" not in messages[-1][1] and any(f"[{each}]" in told for each in self.about):
            return "That is hard to say."
        reply: str | float = self.reply(messages, schema)
        return reply


def test_coverage_below_the_least_is_an_error_and_the_result_is_kept(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "reply", Mumbling(world, world.ids[3:9]))
    world.options |= {"p_yes": "hard"}
    with pytest.raises(CoverageError, match=naming("--min-coverage", "99.0%")):
        world.migrate(tmp_path / "run", min_coverage=0.99)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    check_result(result)
    assert 0.5 < result["coverage"] < 0.99
    assert result["missing"]["parse_error"] > 0
    assert result["baseline"]["validation"]["n"] + result["baseline"]["test"]["n"] < 28


def test_judges_that_never_answer_leave_everything_undefined_with_reasons(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "reply", Mumbling(world, world.ids))
    with pytest.raises(CoverageError, match=naming("Not one verdict")):
        world.migrate(tmp_path / "run", p_yes="hard")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    check_result(result)
    assert result["finish_reason"] == "no_disagreements"
    assert result["coverage"] == 0
    assert result["best"]["test"]["spearman"] is None
    assert (tmp_path / "run" / "prompt.md").read_text() == world.prompt.text


def test_an_endpoint_that_refuses_every_call_ends_the_run_at_once(world: Any, tmp_path: Path) -> None:
    refusing = ScriptedModel(lambda request: ModelError("the key is wrong", fatal=True), name="world/x", slots=1)
    with pytest.raises(ModelError, match="the key is wrong"):
        askance.migrate(
            world.rows,
            checklist=world.checklist,
            source=world.model("world/source"),
            target=refusing,
            source_prompt=world.source_prompt,
            run=tmp_path / "run",
            **world.options,
        )
    assert len(refusing.requests) == 1


# --- inputs and surroundings ---------------------------------------------------------------------------------------


def test_an_unknown_model_shows_before_anything_is_bought(world: Any, tmp_path: Path) -> None:
    source = world.model("world/source")
    with pytest.raises(InputError, match=naming("nonsense", "model name")):
        askance.migrate(
            world.rows,
            checklist=world.checklist,
            source=source,
            target=world.model("world/target"),
            updater="nonsense",
            source_prompt=world.source_prompt,
            run=tmp_path / "run",
            **world.options,
        )
    assert source.requests == []


def test_a_migration_runs_inside_a_running_event_loop(world: Any, tmp_path: Path) -> None:
    plain = world.migrate(tmp_path / "plain")

    async def notebook() -> Any:
        return world.migrate(tmp_path / "notebook")

    assert asyncio.run(notebook()).result == plain.result


def test_a_watcher_is_told_and_changes_nothing(world: Any, tmp_path: Path) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.phases: list[str] = []
            self.said: list[str] = []
            self.steps: list[tuple[int, int]] = []
            self.budget: Any = None

        def watch(self, budget: Any) -> None:
            self.budget = budget

        def phase(self, text: str, total: int | None = None) -> None:
            self.phases.append(text)

        def advance(self, done: int, total: int) -> None:
            self.steps.append((done, total))

        def say(self, text: str) -> None:
            self.said.append(text)

    watcher = Recorder()
    watched = world.migrate(tmp_path / "watched", watcher=watcher)
    assert watched.result == world.migrate(tmp_path / "alone").result
    assert watcher.budget.calls == watched.result["calls"]
    assert any("starting prompt" in each for each in watcher.phases)
    assert any("test examples" in each for each in watcher.phases)
    assert any(each.startswith("version 1 with") for each in watcher.said)
    assert all(0 <= done <= total for done, total in watcher.steps)
