"""The page Prompt: outputs side by side, the certificate, and a prompt saved without the changes that a person vetoed."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from askance.memory.run_directory import RunDirectory, prompt_file
from askance.prompts.errors import AskanceError, InputError
from askance.workbench.prompt_page import HISTORY_FILE, MOST_OUTPUT, AskedPrompt, PromptPage
from askance.workbench.workbench import Workbench

from ..doubles.machine_speed import cpu_time, machine_slowness
from ..letters import Letters
from ..migrated import KEPT_ALL, START, TESTS, Target, Written, write_migration
from ..said import says


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ``tune`` that accepted two lines; copy it first."""
    run = tmp_path_factory.mktemp("prompts") / "tuned"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASKANCE_CACHE", str(run.parent / "cache"))
        world = Letters(60)
        world.tune(run, judge=world.model("letters/judge"), checklist=world.checklist)
    return run


@pytest.fixture
def folder(letters: Path, tmp_path: Path) -> Path:
    """A run of ``tune`` in ``tuned``, and a migration to two targets in ``moved``."""
    shutil.copytree(letters, tmp_path / "runs" / "tuned")
    line = "Write one short sentence.\nNever copy a sentence."
    targets = [Target("vendor/a", TESTS), Target("vendor/b", TESTS, "not_yet", "Not yet: worse.", line=line)]
    write_migration(tmp_path / "runs" / "moved", targets)
    return tmp_path / "runs"


@pytest.fixture
def page(folder: Path) -> PromptPage:
    return PromptPage(Workbench(folder, "anna").folder, "anna")


def asked(page: PromptPage, *vetoed: int, run: str = "tuned", target: str = "", **fields: Any) -> AskedPrompt:
    of = page.prompts(run, target)["of"]
    return AskedPrompt.model_validate({"run": run, "target": target, "vetoed": vetoed, "of": of} | fields)


def test_a_vetoed_line_is_taken_out_exactly_and_the_history_says_who_and_what(page: PromptPage, folder: Path) -> None:
    run = folder / "tuned"
    told, before = page.prompts("tuned", ""), prompt_file(run).read_text()
    start = RunDirectory(run).read_start().text
    first, second = (each["words"].strip("“”") for each in told["changes"])
    assert first in before and second in before and told["changes"][0]["causes"][0]["failures"]
    saved = page.save(asked(page, 1))
    assert (run / saved["file"]).read_text() == before.replace(f"{first}\n", "").replace(f"\n{first}", "")
    assert second in (run / saved["file"]).read_text() and prompt_file(run).read_text() == before
    [row] = saved["history"]
    assert (row["file"], row["by"], row["of"]) == ("prompt-1.md", "anna", told["of"])
    assert says(row["what"][0], "took out change 1", first)
    assert not {"gain", "figures", "decision", "score"} & row.keys(), "figures are of the unchanged prompt"
    for vetoed, what in (((), "nothing to save"), ((1, 2), "began with"), ((7,), "no change 7")):
        with pytest.raises(InputError, match=what):
            page.save(asked(page, *vetoed))
    with pytest.raises(InputError, match="another prompt"):
        page.save(asked(page, 1, of="0" * 16))
    assert start != before and {each.name for each in run.glob("prompt-*")} == {HISTORY_FILE, "prompt-1.md"}


def test_windows_that_save_at_once_get_a_file_and_a_line_each(page: PromptPage, folder: Path) -> None:
    first, second = asked(page, 1), asked(page, 2)
    threads = [Thread(target=page.save, args=(each,)) for each in (first, second) * 3]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    rows = page.prompts("tuned", "")["history"]
    assert [each["file"] for each in rows] == [f"prompt-{number}.md" for number in range(1, 7)]
    texts = {each["what"][0]: (folder / "tuned" / each["file"]).read_text() for each in rows}
    assert len(texts) == len({*texts.values()}) == 2
    for each in rows:
        assert (folder / "tuned" / each["file"]).read_text() == texts[each["what"][0]]


def test_outputs_of_a_run_of_tune_stand_side_by_side_and_the_test_stays_shut(page: PromptPage, folder: Path) -> None:
    told = page.prompts("tuned", "")
    events = (folder / "tuned" / "journal.jsonl").read_text().splitlines()
    split = next(row for row in map(json.loads, events) if row["event"] == "split")
    rows = page.outputs("tuned", "", "all", "0")
    assert told["split"] == "development" and rows["count"] == told["outputs"]["all"] == len(split["development"])
    assert {each["id"] for each in rows["outputs"]} <= {*split["development"]}
    case = rows["outputs"][0]
    assert any(kind == "added" for kind, _ in case["new"]) and all(kind == "same" for kind, _ in case["old"])
    assert page.outputs("tuned", "", "all", "5")["outputs"][0]["id"] != case["id"]


def test_a_migration_has_its_certificate_and_what_got_worse_first(page: PromptPage) -> None:
    told = page.prompts("moved", "vendor/b")
    assert told["targets"] == ["vendor/a", "vendor/b"] and "1 of 2 targets" in told["answer"]
    [first, second] = told["certificate"]["targets"]
    assert (first["word"], second["word"]) == ("adopt", "not yet") and second["reason"] == "Not yet: worse."
    assert first["regressions"] == 1 and first["figures"][0]["name"] == "Pass rate"
    rows = page.outputs("moved", "vendor/b", "failing", "0")["outputs"]
    assert [each["id"] for each in rows] == ["t1", "t3"]
    assert rows[0]["failed"] == [{"text": "Is the summary at most 15 words?", "worse": True, "why": "It says open."}]
    assert ["removed", "shut"] in rows[0]["old"] and ["added", "open"] in rows[0]["new"]
    saved = page.save(asked(page, 1, run="moved", target="vendor/b"))
    assert Path(saved["path"]).read_text() == f"{START}\nNever copy a sentence."
    assert Path(saved["path"]).parent.name == "vendor__b"


def test_a_full_disk_leaves_no_prompt_without_its_history(
    page: PromptPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("askance.workbench.prompt_page.append_line", full)
    with pytest.raises(AskanceError, match="No space left"):
        page.save(asked(page, 1))
    assert not [*(folder / "tuned").glob("prompt-*")]


def test_a_damaged_run_is_named_and_the_others_work(page: PromptPage, folder: Path) -> None:
    (folder / "moved" / "certificate.json").write_text("{")
    with pytest.raises(InputError, match=r"certificate\.json: damaged"):
        page.prompts("moved", "")
    assert page.prompts("tuned", "")["changes"]
    (folder / "tuned" / HISTORY_FILE).write_text("{\n")
    with pytest.raises(InputError, match=f"{HISTORY_FILE}, line 1"):
        page.prompts("tuned", "")
    write_migration(folder / "without", [Target("vendor/a", TESTS, has_run=False)])
    with pytest.raises(InputError, match="vendor/a is not there"):
        page.prompts("without", "")
    write_migration(folder / "other", [Target("vendor/a", TESTS)])
    with pytest.raises(InputError, match="no target 'vendor/z'"):
        page.prompts("other", "vendor/z")


def test_ten_thousand_outputs_are_answered_within_a_fifth_of_a_second(folder: Path) -> None:
    long = "The bridge over the river is shut from today on. " * (MOST_OUTPUT // 40)
    tests = [
        Written(f"t{place}", "in", long, long.replace("shut", "open"), KEPT_ALL | {"short": (True, place % 3 > 0)})
        for place in range(10_000)
    ]
    write_migration(folder / "large", [Target("vendor/a", tests)])
    page = PromptPage(Workbench(folder, "anna").folder, "anna")
    assert page.prompts("large", "")["outputs"]["all"] == 10_000
    took = {}
    for start in ("0", "3000", "9990"):
        rows = page.outputs("large", "", "all", start)
        assert rows["count"] == 10_000 and rows["outputs"]
        took[start] = cpu_time(lambda start=start: page.outputs("large", "", "all", start))
    assert max(took.values()) < 0.2 * machine_slowness(), took
