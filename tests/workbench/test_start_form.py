"""Runs begun from the page: the ordinary command, files under the directory alone, nothing through a shell."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from askance.memory.run_directory import RunDirectory
from askance.prompts.errors import InputError
from askance.workbench.start_form import LOG_FILE, NewRun, OneRun, StartedRuns, StartForm
from askance.workbench.workbench import Workbench

from ..said import says

INPUTS = {"data": "data.jsonl", "checklist": "checklist.yaml", "prompt": "prompt.md", "model": "openai/judge"}


def form_of(root: Path) -> StartForm:
    """The form as the workbench has it."""
    bench = Workbench(root, "anna")
    return StartForm(root, lambda: list(bench.runs()["runs"]))


def asked(**fields: Any) -> NewRun:
    given = {"command": "align", "run": "r1", "settings": "askance.yaml", "call_budget": 5000, "inputs": INPUTS}
    return NewRun.model_validate(given | fields)


def until_ended(form: StartForm, run: str) -> dict[str, Any]:
    for _ in range(1200):
        if not (told := form.state(OneRun(run=run)))["works"]:
            return told
        time.sleep(0.05)
    raise AssertionError(told)


def test_what_is_chosen_becomes_the_arguments_of_the_command(project: Path) -> None:
    form = form_of(project)
    assert form.arguments(asked()) == (
        *("align", "--checklist=checklist.yaml", "--prompt=prompt.md", "--model=openai/judge"),
        *("--config=askance.yaml", "--run=r1", "--", "data.jsonl"),
    )
    assert OneRun(run="r", call_budget=9, cost_budget=0.5, yes=True).limits() == [
        *("--call-budget=9", "--cost-budget=0.5", "--yes")
    ]
    choices = form.choices(OneRun(run="any"))
    assert choices["settings"] == "askance.yaml"
    assert choices["choices"]["data"] == ["data.jsonl"] and "global" in choices["choices"]["checklist"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inputs": {"data": "../outside.jsonl"}}, "no such file"),
        ({"inputs": {"data": "/etc/passwd"}}, "no such file"),
        ({"inputs": {"data": "led-out.jsonl"}}, "no such file"),
        ({"inputs": {"data": ".hidden.jsonl"}}, "no such file"),
        ({"inputs": {"data": "askance.yaml"}}, "no such file"),
        ({"inputs": {"data": "--config=x.jsonl"}}, "no such file"),
        ({"inputs": {"checklist": "x; touch taken"}}, "no such file"),
        ({"inputs": {"config": "askance.yaml"}}, "no field 'config'"),
        ({"inputs": {"no-cache": "1"}}, "no field"),
        ({"inputs": {"model": "$(touch taken)"}}, "a model is needed"),
        ({"inputs": {"model": "openai/judge --yes"}}, "a model is needed"),
        ({"inputs": {"model": "-c"}}, "a model is needed"),
        ({"inputs": {"model": "../../etc"}}, "a model is needed"),
        ({"inputs": {"model": "/etc"}}, "a model is needed"),
        ({"inputs": {"model": "openai/judge\n--yes"}}, "a model is needed"),
        ({"inputs": {"from": "../r0"}}, "no finished run"),
        ({"command": "tune", "inputs": {"generator": "command:touch taken"}}, "settings file"),
        ({"command": "tune", "inputs": {"generator": "program.py:write"}}, "settings file"),
        ({"command": "tune", "inputs": {"generator": "url:http://127.0.0.1"}}, "settings file"),
        ({"settings": "../askance.yaml"}, "no such file"),
        ({"run": "../r1"}, "run: the name"),
        ({"run": "/tmp/r1"}, "run: the name"),
        ({"run": "led-out/r1"}, "run: the name"),
        ({"run": "--yes"}, "run: the name"),
        ({"run": ".git"}, "run: the name"),
        ({"run": "a/../../b"}, "run: the name"),
        ({"run": "r0/inputs"}, "is a run itself"),
    ],
)
def test_what_is_not_below_the_directory_or_is_no_model_cannot_be_chosen(
    project: Path, fields: dict[str, Any], said: str
) -> None:
    (project.parent / "outside.jsonl").write_text("{}")
    (project / "led-out.jsonl").symlink_to(project.parent / "outside.jsonl")
    (project / "led-out").symlink_to(project.parent)
    (project / ".hidden.jsonl").write_text("{}")
    (project / "r0").mkdir()
    (project / "r0" / "config.yaml").write_text("{}")
    before = sorted(project.parent.rglob("*"))
    form, wrong = form_of(project), asked(**fields)
    for act in (form.estimate, form.begin):
        with pytest.raises(InputError) as refused:
            act(wrong)
        assert says(str(refused.value), said)
    assert sorted(project.parent.rglob("*")) == before


@pytest.mark.parametrize("wrong", [{"call_budget": 0}, {"cost_budget": -1}, {"cost_budget": float("inf")}, {"x": 1}])
def test_a_wrong_message_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        asked(**wrong)


def test_nothing_begins_without_an_estimate_and_a_cap(project: Path) -> None:
    form = form_of(project)
    with pytest.raises(InputError, match="Ask first"):
        form.begin(asked())
    assert says(form.estimate(asked())["said"], "120 calls", "openai/judge")
    with pytest.raises(InputError, match="cap is needed"):
        form.begin(asked(call_budget=None))
    with pytest.raises(InputError, match="Ask first"):
        form.begin(asked(run="r2"))
    assert not (project / "r1").exists()


def test_the_error_of_the_command_is_shown(project: Path) -> None:
    (project / "data.jsonl").write_text('{"id": "1"}\n{')
    with pytest.raises(InputError) as refused:
        form_of(project).estimate(asked())
    assert says(str(refused.value), "data.jsonl", "line")


def test_a_run_is_begun_stopped_and_gone_on_with_also_by_a_workbench_that_was_opened_later(project: Path) -> None:
    form = form_of(project)
    form.estimate(asked())
    assert form.begin(asked())["works"]
    with pytest.raises(InputError, match="running already"):
        form.begin(asked())
    for _ in range(600):  # until it has something to lose
        if (project / "r1" / "verdicts.db").is_file() and "judging" in form.state(OneRun(run="r1"))["log"]:
            break
        time.sleep(0.05)
    later = form_of(project)
    assert later.state(OneRun(run="r1"))["works"]
    later.stop(OneRun(run="r1"))
    ended = until_ended(form, "r1")
    assert ended["code"] == 130 and says(ended["log"], "Interrupted") and not ended["finished"]
    with pytest.raises(InputError, match="not running"):
        later.stop(OneRun(run="r1"))
    assert later.choices(OneRun(run="any"))["stopped"] == ["r1"]
    with pytest.raises(InputError, match="cap is needed"):
        later.resume(OneRun(run="r1"))
    later.resume(OneRun(run="r1", call_budget=5000))
    ended = until_ended(later, "r1")
    assert ended["finished"] and ended["judge"] and RunDirectory(project / "r1").finished, ended["log"]


def test_a_cap_ends_a_run_and_what_it_bought_is_kept(project: Path) -> None:
    form = form_of(project)
    form.estimate(asked())
    form.begin(asked(call_budget=20))
    ended = until_ended(form, "r1")
    assert ended["code"] == 3 and says(ended["log"], "20 calls", "resume") and not ended["finished"]


def test_a_damaged_note_of_a_process_stops_nothing(project: Path) -> None:
    runs, folder = StartedRuns(project), project / "r1"
    folder.mkdir()
    (folder / "started.json").write_text('{"pid": -1}')
    (folder / LOG_FILE).write_text("")
    with pytest.raises(InputError, match="not running"):
        runs.stop(folder)
