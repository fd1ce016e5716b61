"""The note-taker fails: what was not read stays unread, and a run that could read nothing is no run that found nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.memory.journal import read_events
from askance.models.base import ModelError
from askance.models.progress import Silent
from askance.optimizer.earlier import _disputed
from askance.testing import StandInServer
from tests.said import says
from tests.worlds import World, example_ids


class Failing(World):
    """Notes on some examples fail: no reply comes, or none that can be used."""

    def __init__(self) -> None:
        super().__init__()
        self.how: str | None = "down"
        self.fails: set[str] | None = None
        """None: on all of them."""
        self.asked: list[set[str]] = []
        """Examples that notes were asked about."""

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields = (schema or {}).get("properties", {})
        if {"answer_no_if", "answer_yes_even_if", "lessons"} & set(fields):
            about = example_ids(messages)
            self.asked.append(about)
            if self.how and (self.fails is None or about & self.fails):
                if self.how == "down":
                    raise ModelError("HTTP 503: no capacity", status=503)
                return "I would rather not say."
        return super().reply(messages, schema)

    def serve(self, body: Mapping[str, Any]) -> Any:
        try:
            return super().serve(body)
        except ModelError:
            return 503, {"error": {"message": "no capacity"}}


@pytest.fixture
def failing() -> Failing:
    return Failing()


def read(run: Path) -> list[str]:
    rows = [each["read"] for each in read_events(run / "journal.jsonl") if each["event"] == "disagreements"]
    return [f"{each['example']}/{each['question']}" for row in rows for each in row]


@pytest.mark.parametrize("how", ["down", "unusable"])
@pytest.mark.parametrize("more", [{}, {"paper": True, "update": "rewrite"}], ids=str)
def test_where_every_note_fails_no_test_is_looked_at_and_the_run_goes_on_later(
    failing: Failing, tmp_path: Path, how: str, more: dict[str, Any]
) -> None:
    failing.how = how
    done = failing.migrate(tmp_path / "run", retries=0, **more)
    assert (done.finish_reason, done.prompt) == ("notes_failed", failing.prompt.text)
    assert done.result["test_looked_at"] is False and done.result["best"]["test"] is None
    assert says(done.result["best"]["reason"], "no disagreement", "be read")
    events = [each["event"] for each in read_events(tmp_path / "run" / "journal.jsonl")]
    assert "test" not in events and events[-1] == "finished"
    failing.how, failing.asked = None, []
    went_on = failing.migrate(tmp_path / "run", retries=0, **more)
    assert failing.asked, "what was not read is read"
    never_failed = World().migrate(tmp_path / "other", **more)
    assert went_on.finish_reason == never_failed.finish_reason and went_on.prompt == never_failed.prompt
    assert went_on.result["best"] == never_failed.result["best"] and went_on.result["test_looked_at"]


def test_what_one_note_in_two_fails_on_is_read_in_the_next_iteration_and_the_rest_counts(
    failing: Failing, tmp_path: Path
) -> None:
    World().migrate(tmp_path / "other", max_iterations=1)
    failing.fails = {each.split("/")[0] for each in read(tmp_path / "other")[::2]}
    said: list[str] = []
    watcher = Silent()
    watcher.say = said.append  # type: ignore[method-assign]
    done = failing.migrate(tmp_path / "run", retries=0, max_iterations=2, alpha=0.001, patience=5, watcher=watcher)
    events = read_events(tmp_path / "run" / "journal.jsonl")
    lost = [each for each in events if each["event"] == "no_note"]
    assert done.finish_reason == "max_iterations" and done.result["lessons"], "what was read counts"
    assert lost and all(each["unread"] and "no capacity" in each["reason"] for each in lost)
    first, second = _rounds(events)
    unread = set(first) & {each["disagreement"] for each in lost}
    assert unread and unread == set(first) & set(second)
    assert says(said, f"{len(unread)} disagreements", "tried again", "HTTP 503", "no capacity")


def _rounds(events: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [
        [f"{each['example']}/{each['question']}" for each in event["read"]]
        for event in events
        if event["event"] == "disagreements"
    ]


def test_a_reply_that_cannot_be_used_is_read_where_others_can(failing: Failing, tmp_path: Path) -> None:
    World().migrate(tmp_path / "other", max_iterations=1)
    failing.how, failing.fails = "unusable", {read(tmp_path / "other")[0].split("/")[0]}
    done = failing.migrate(tmp_path / "run", alpha=0.001, patience=5)
    assert done.finish_reason == "no_disagreements"
    read_in_all = read(tmp_path / "run")
    assert len(read_in_all) == len(set(read_in_all))


def test_a_run_that_goes_on_from_another_does_not_take_for_read_what_a_note_failed_on() -> None:
    def disagreements(number: int, *names: str) -> dict[str, Any]:
        rows = [{"example": name, "question": "q"} for name in names]
        return {"event": "disagreements", "iteration": number, "read": rows}

    def failed(name: str, **unread: bool) -> dict[str, Any]:
        return {"event": "no_note", "disagreement": f"{name}/q", "reason": "", **unread}

    events = [disagreements(1, "e1", "e2", "e3", "e4"), failed("e2", unread=True), failed("e3", unread=False)]
    events += [failed("e4"), disagreements(2, "e5"), {"event": "stopped", "reason": "notes_failed", "iteration": 2}]
    assert _disputed(events, ()) == (("e1", "q"), ("e3", "q"), ("e4", "q"))


def test_the_command_ends_with_1_says_why_and_how_to_go_on(failing: Failing, cli: Any, sandbox: Path) -> None:
    with StandInServer(failing.serve) as server:
        inputs = [*failing.write(Path("in")), "--api-base", server.url, "--retries", "0"]
        done = cli("migrate", *inputs, "--run", "run", "--json")
        assert done.code == 1
        assert "HTTP 503" in done.err and "askance resume run" in done.err
        assert json.loads(done.out)["finish_reason"] == "notes_failed"
        failing.how = None
        assert cli("resume", "run").code == 0
    assert json.loads(Path("run/result.json").read_text())["finish_reason"] != "notes_failed"
