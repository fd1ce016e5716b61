"""Endpoints that fail now and then, or mean harm, and people who read what would enter a prompt."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.models.gateway import RetryPolicy
from askance.testing import StandInServer

from ..said import says
from .conftest import CommandLine

SECRET = "hunter2-very-secret"
FAULTS: tuple[Any, ...] = (
    (200, ""),
    (200, '{"choices": [{"message": {"role": "assist'),
    (200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}}], "usage": {}}),
    (200, {"choices": []}),
)


class Place(CommandLine):
    """A migration and an evaluation of the same data."""

    arguments: list[str]
    evaluation: list[str]


@pytest.fixture
def place(
    world: Any,
    sandbox: Path,
    server: StandInServer,
    cli: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    monkeypatch.setattr(RetryPolicy, "wait", lambda *_: 0.0005)
    arguments = [*world.write(sandbox / "files"), "--api-base", server.url]
    here = Place(cli, server, arguments[0])
    here.arguments = arguments
    here.evaluation = [arguments[0], "--checklist", arguments[2], "--model", "openai/target", "--api-base", server.url]
    return here


def faulty(world: Any, share: float) -> Any:
    """The server, but that share of its replies is 200 and of no use."""
    dice = random.Random(1)

    def script(body: Any) -> Any:
        return dice.choice(FAULTS) if dice.random() < share else world.serve(body)

    return script


def test_at_30_percent_useless_replies_a_run_comes_to_the_same(place: Place, world: Any) -> None:
    assert place("migrate", *place.arguments, "--run", "healthy")[0] == 0
    place.server._script = faulty(world, 0.3)
    code, _, said = place("migrate", *place.arguments, "--run", "faulty")
    assert code == 0
    healthy, shaky = (json.loads(Path(each, "result.json").read_text()) for each in ("healthy", "faulty"))
    assert shaky["coverage"] == 1
    assert shaky["best"] == healthy["best"]
    assert said.count("Asking again") <= 2, "many calls that are made again are a line or two, not a line each"
    assert says(said, "made again") or "had to wait" in said


def test_what_failed_for_good_is_asked_again_on_the_next_run(place: Place, world: Any) -> None:
    place.server._script = faulty(world, 0.6)
    code, out, said = place("evaluate", *place.evaluation, "--retries", "0", "--json", "-o", "verdicts.jsonl")
    assert code == 4 and says(said, "--min-coverage 95.0%")
    assert json.loads(out)["coverage"]["api_errors"] > 0, "all that came is said"
    rows = [json.loads(line) for line in Path("verdicts.jsonl").read_text().splitlines()]
    assert {each["status"] for each in rows} == {"ok", "api_error"}, "and written"
    some = place("evaluate", *place.evaluation, "--retries", "0", "--min-coverage", "0")
    assert some[0] == 0
    place.server._script = world.serve
    code, out, _ = place("evaluate", *place.evaluation, "--json")
    assert code == 0
    assert json.loads(out)["coverage"]["share"] == 1


def test_a_run_that_lacks_verdicts_accepts_nothing_and_says_so(place: Place, world: Any) -> None:
    def mute(body: Any) -> Any:
        judged = "response_format" not in body
        return (400, "no") if judged and any(f"[e0{n}" in json.dumps(body) for n in (1,)) else world.serve(body)

    place.server._script = mute
    code, out, said = place("migrate", *place.arguments, "--run", "run")
    result = json.loads(Path("run/result.json").read_text())
    assert code == 4
    assert says(said, "--min-coverage 95.0%")
    assert says(said, "no other version")
    assert result["accepted_edits"] == []
    assert any("verdicts are there" in each["reason"] for each in result["rejected_edits"])
    assert "but only" in out
    assert place("migrate", *place.arguments, "--run", "small", "--min-coverage", "0.3")[0] == 0
    assert json.loads(Path("small/result.json").read_text())["accepted_edits"]


def test_judged_texts_follow_no_redirect(place: Place) -> None:
    with StandInServer(lambda body: "yes") as other:
        place.server._script = lambda body: (307, "", {"Location": f"{other.url}/chat/completions"})
        code, _, said = place("evaluate", *place.evaluation)
    assert (code, other.bodies) == (1, [])
    assert f"redirects (HTTP 307) to {other.url}/chat/completions" in said


@pytest.mark.parametrize("key", [True, False])
@pytest.mark.parametrize("how", ["option", "environment", "file"])
def test_a_password_in_an_address_gets_nowhere(
    place: Place, sandbox: Path, monkeypatch: pytest.MonkeyPatch, key: bool, how: str
) -> None:
    if key:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    address = place.server.url.replace("://", f"://me:{SECRET}@")
    given = place.arguments[:-2]
    if how == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", address)
    elif how == "option":
        given += ["--api-base", address]
    else:
        Path(sandbox, "mine.yaml").write_text(f"api_base: {address}\n")
        given += ["--config", "mine.yaml"]
    code, out, said = place("migrate", *given, "--run", "run")
    assert code == 2
    assert says(said, "no user's name", "password", "query")
    assert SECRET not in out + said
    kept = [each for each in sandbox.rglob("*") if each.is_file() and each.name != "mine.yaml"]
    assert not [str(each) for each in kept if SECRET.encode() in each.read_bytes()]
    assert place.server.bodies == []


@pytest.mark.parametrize("address", ["http://[x]/v1", "http://host:port/v1", "http://"])
def test_an_address_that_is_none_is_said_in_a_sentence(place: Place, address: str) -> None:
    for command in (["evaluate", *place.evaluation[:-2]], ["doctor", "--model", "openai/target"]):
        code, out, said = place(*command, "--api-base", address)
        assert code in (1, 2)
        assert "no usable address" in out + said


# --- what enters a prompt is read first ----------------------------------------------------------------------------


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answers: list[bool]) -> list[str]:
    """Whoever is asked gives these answers; returns what was asked."""
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        return answers.pop(0)

    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", confirm)
    return asked


def test_without_a_terminal_the_new_lines_are_shown_before_they_are_written_out(place: Place) -> None:
    code, _, said = place("migrate", *place.arguments, "--run", "run")
    assert code == 0
    shown = said.split("These lines are new in what was accepted:\n")[1]
    prompt, start = Path("run/prompt.md").read_text(), Path("files/prompt.md").read_text()
    new = [line for line in prompt.splitlines() if line and line not in start]
    assert new
    assert all(f"  + {line}\n" in shown for line in new)
    assert "lines are new" not in place("migrate", *place.arguments, "--run", "run")[2]


def test_at_a_terminal_nothing_is_written_out_unless_somebody_agrees(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = at_a_terminal(monkeypatch, [False, True])
    code, _, said = place("migrate", *place.arguments, "--run", "run", "--quiet")
    bought = len(place.server.bodies)
    assert code == 1
    assert "what was accepted:\n  + " in said
    assert "Nothing was written" in said and "askance resume run" in said
    assert not {"prompt.md", "judge.yaml", "result.json"} & {each.name for each in Path("run").iterdir()}
    code, _, said = place("resume", "run", "--quiet")
    assert (code, len(asked), len(place.server.bodies)) == (0, 2, bought)
    assert Path("run/prompt.md").is_file()
    assert place("resume", "run", "--quiet")[0] == 0, "what is written out already is not asked again"


def test_machines_say_yes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = at_a_terminal(monkeypatch, [])
    assert place("migrate", *place.arguments, "--run", "run", "--quiet", "--yes")[0] == 0
    assert asked == []
    assert Path("run/prompt.md").is_file()
