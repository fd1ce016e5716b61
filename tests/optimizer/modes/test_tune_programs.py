"""``tune`` with a program as its generator, with checks alone, and with a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, ComputedCheck
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel

ROWS = [{"id": f"e{n}", "input": f"item {n}"} for n in range(40)]
GREETS = Checklist(
    questions=(),
    checks=(
        ComputedCheck(id="greets", kind="begins", value="Hello"),
        ComputedCheck(id="short", kind="length", value="at most 5 words"),
    ),
)
APP = """
CALLS = []

def write(example, prompts):
    CALLS.append(example.id)
    if example.id == "e7":
        raise ValueError("no weather today")
    return ("Hello! " if "begin with" in prompts["writer"].lower() else "") + f"About {example.input}"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("writer.md").write_text("Write about the item.\n")
    return tmp_path


def tuned(**more: Any) -> Any:
    how: dict[str, Any] = {
        "prompt": "writer.md",
        "checklist": GREETS,
        "run": "run",
        "max_iterations": 1,
        "no_cache": True,
    }
    return askance.tune(ROWS, **{**how, **more})


def test_what_a_check_wants_is_stated_tried_and_accepted_without_a_call_to_any_model(here: Path) -> None:
    Path("tuned_app.py").write_text(APP)
    done = tuned(generator="tuned_app.py:write")
    assert 'Begin with "Hello".' in (here / "run" / "prompt.md").read_text()
    assert done.result["best"]["test"]["mean"] == 1.0 and done.result["baseline"]["test"]["mean"] == 0.5
    rows = [each for file in (here / "run" / "verdicts").glob("*-test.jsonl") for each in file.read_text().splitlines()]
    assert rows and all(
        ('"model": null' in each and '"p_yes_from": "computed"' in each) or "not generated" in each for each in rows
    )
    assert done.result["instructions"][0]["requirement"] == "greets"


def test_a_run_of_a_program_is_resumed_by_its_name_and_pays_nothing_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("resumed_app.py").write_text(APP)
    with pytest.raises(askance.AskanceError):
        tuned(generator="resumed_app.py:write", call_budget=5)
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = askance.resume(here / "run", call_budget=1000)
    calls = done.result["calls"]
    assert done.result["best"]["test"]["mean"] == 1.0
    again = askance.resume(here / "run")
    assert again.result["calls"] == calls


def test_a_program_that_was_changed_is_not_gone_on_with(here: Path) -> None:
    Path("changed_app.py").write_text(APP)
    tuned(generator="changed_app.py:write")
    Path("changed_app.py").write_text(APP + "# another\n")
    with pytest.raises(InputError, match=r"changed.*began"):
        askance.resume("run")


def test_a_schema_beside_the_prompt_is_found_sent_and_checked(here: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("writer.schema.json").write_text('{"type": "object"}')
    sent: list[Request] = []

    def reply(request: Request) -> str:
        sent.append(request)
        return "{}" if "follow" in request.messages[0][1].lower() else "no JSON"

    done = tuned(generator=ScriptedModel(reply), checklist=None)
    assert "writer.schema.json" in caplog.text
    assert {str(each.parameters.schema) for each in sent if each.messages[-1][1].startswith("item")} == {
        "{'type': 'object'}"
    }
    assert done.result["baseline"]["validation"]["mean"] == 0.0
    assert (here / "run" / "inputs" / "checklist.yaml").read_text().count("kind: schema") == 1


def test_nothing_to_look_at_outputs_is_refused_and_checks_alone_need_no_judge(here: Path) -> None:
    with pytest.raises(InputError, match="checks"):
        tuned(generator=ScriptedModel([]), checklist=None)
    with pytest.raises(InputError, match="The judge has nothing to ask"):
        tuned(generator=ScriptedModel([]), judge=ScriptedModel([]))


def test_of_several_prompts_each_line_goes_into_the_one_in_which_it_mends_most(here: Path) -> None:
    def write(example: askance.Example, prompts: dict[str, str]) -> str:
        greeting = "Hello! " if "begin with" in prompts["plan"].lower() else ""
        return f"{greeting}About {example.input}{' Bye.' if 'end with' in prompts['answer'].lower() else ''}"

    both = Checklist(
        questions=(),
        checks=(
            ComputedCheck(id="greets", kind="begins", value="Hello"),
            ComputedCheck(id="ends", kind="ends", value="Bye."),
        ),
    )
    prompts = {"plan": "Plan it for {company}.", "answer": "Answer {{ it }}."}
    done = tuned(generator=write, prompt=prompts, checklist=both)
    assert (here / "run" / "program" / "plan.md").read_text() == 'Plan it for {company}.\n- Begin with "Hello".'
    assert (here / "run" / "program" / "answer.md").read_text() == 'Answer {{ it }}.\n- End with "Bye.".'
    assert done.result["best"]["test"]["mean"] == 1.0
    assert str(Path("run") / "program") in str(done)
    again = tuned(generator=write, prompt=prompts, checklist=both)
    assert again.result["calls"] == done.result["calls"]


def test_a_model_has_one_prompt(here: Path) -> None:
    with pytest.raises(InputError, match="one prompt"):
        tuned(generator=ScriptedModel([]), prompt={"a": "x", "b": "y"})
