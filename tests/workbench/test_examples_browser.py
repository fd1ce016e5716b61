"""The page Examples in a real browser: by keyboard, by its address, blind, and with hostile texts in every field."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.evaluation.judge_file import load_judge
from askance.workbench.examples_runs import splits_of

from .test_accessibility import AXE, faults
from .test_workbench_browser import HOSTILE, RUN, names, opened, press, until

LABELS = "examples-labelled.labels.jsonl"


def written(runs: Path) -> list[dict[str, Any]]:
    """The lines that are no drafts."""
    rows = [json.loads(line) for line in (runs / RUN / LABELS).read_text("utf-8").splitlines()]
    return [each for each in rows if each.get("kind") != "draft"]


async def text(tab: Any, name: str) -> str:
    return str(await tab.run(f"document.getElementById('{name}').textContent"))


async def other(tab: Any, key: str) -> str:
    """A key after which another example is shown; its id."""
    before = await text(tab, "id")
    await press(tab, key)
    await until(tab, f"document.getElementById('id').textContent !== {json.dumps(before)}")
    return await text(tab, "id")


async def test_a_person_finds_labels_and_comments_by_keyboard_and_the_address_holds_it(
    runs: Path, port: int, browser: Any
) -> None:
    async with opened(runs, browser, port, f"examples?run={RUN}") as tab:
        await until(tab, "document.querySelectorAll('#questions [data-why]').length === 2")
        assert all(name for _, name in await names(tab))
        assert (await text(tab, "id"), await text(tab, "total")) == ("e000", "120 of 120 examples")
        await press(tab, "d")
        await until(tab, "document.getElementById('total').textContent.startsWith('6 of')")
        first = await text(tab, "id")
        second = await other(tab, "j")
        address = await tab.run("location.href")
        assert f"id={second}" in address and "disagree=1" in address
        assert await other(tab, "k") == first
        await tab.run("history.back()")
        await until(tab, f"document.getElementById('id').textContent === '{second}'")

        await press(tab, "w")
        await until(tab, "Boolean(document.querySelector('.story p'))")
        assert "began with" in await tab.run("document.querySelector('.story').textContent")
        await press(tab, "1")
        await press(tab, "c")
        await tab.call("Input.insertText", text="It promises jk 12 things.")  # no orders in the box
        await press(tab, "Escape")
        third = await other(tab, "f")
        [row] = written(runs)
        assert (row["example"], row["human"]) == (second, {"facts": True, "quality": False})
        assert row["comment"] == "It promises jk 12 things." and third != second
        await tab.open(address)  # what is shared shows the same, with what was said of it
        await until(tab, f"document.getElementById('id').textContent === '{second}'")
        assert await tab.run("document.getElementById('comment').value") == "It promises jk 12 things."
        assert await tab.run("document.getElementById('fail').getAttribute('aria-pressed')") == "true"
        await tab.run("document.getElementById('clear').click()")
        await until(tab, "document.getElementById('total').textContent.startsWith('120 of')")
        assert tab.complaints == []
        assert {each.split("/")[3] for each in tab.requests if each.startswith("http")} == {"token-of-the-test"}


async def test_blind_one_by_one_shows_no_verdict_and_the_splits_stay_shut(runs: Path, port: int, browser: Any) -> None:
    splits = splits_of(runs / RUN)
    validation, test = (
        next(name for name, each in splits.items() if each == split) for split in ("validation", "test")
    )
    async with opened(runs, browser, port, f"examples?run={RUN}&id={test}") as tab:
        await until(tab, "!document.getElementById('shut').hidden")
        assert "stay shut" in await text(tab, "shut")
        assert await tab.run("document.getElementById('open-validation').hidden")
        assert await tab.run("document.querySelectorAll('[data-why]').length") == 0
        await tab.run(f"document.getElementById('later').hidden || go({{id: '{validation}'}}), 1")
        await until(tab, "!document.getElementById('open-validation').hidden")
        await tab.run("document.getElementById('open-validation').click()")
        await until(tab, "document.querySelectorAll('[data-why]').length === 2")
        assert len((runs / RUN / "validation-looks.jsonl").read_text().splitlines()) == 1

        await press(tab, "b")
        await until(tab, "document.body.classList.contains('single')")
        await until(tab, "document.getElementById('enough').textContent")
        assert await tab.run("document.querySelectorAll('[data-why], #people li').length") == 0
        await tab.run((AXE / "axe.min.js").read_text("utf-8") + ";0")
        assert not await faults(tab, "blind")
        first = await text(tab, "id")
        await other(tab, "p")
        assert (await text(tab, "progress")).startswith("1 of 120 by anna: 1 pass")
        await tab.run("history.back()")
        await until(tab, f"document.getElementById('id').textContent === '{first}'")
        await until(tab, "document.querySelectorAll('#people li').length > 0")  # once it is labelled
        assert tab.complaints == []


async def test_another_person_in_another_window_sees_labels_after_giving_one(
    runs: Path, port: int, browser: Any
) -> None:
    async with opened(runs, browser, port, f"examples?run={RUN}&id=e003") as tab:
        await until(tab, "!document.getElementById('desk').hidden")
        await other(tab, "f")
        await tab.run(
            "document.getElementById('rater').value = 'ben'; "
            "document.getElementById('rater').dispatchEvent(new Event('change')); go({id: 'e003'}), 1"
        )
        await until(tab, "document.getElementById('people').textContent.includes('1 rater has')")
        await tab.run("document.getElementById('pass').click()")
        await until(tab, "document.getElementById('id').textContent !== 'e003'")
        await tab.run("go({id: 'e003'}), 1")
        await until(tab, "document.getElementById('people').textContent.includes('anna: fail')")
    assert [(each["rater"], each["human"]) for each in written(runs)] == [
        ("anna", {"quality": False}),
        ("ben", {"quality": True}),
    ]


@pytest.mark.parametrize("width", [390, 1600])
async def test_hostile_texts_in_every_field_do_nothing_and_the_page_is_no_wider_than_the_screen(
    runs: Path, port: int, browser: Any, width: int
) -> None:
    hostile = f"{HOSTILE}{'x' * 400}"
    file = runs / RUN / "inputs" / "examples.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    texts = dict.fromkeys(("input", "output", "context", "reference"), hostile)
    human = {name: ratings[0] for name, ratings in rows[0].pop("human").items()}
    rows[0] |= texts | {"raters": {HOSTILE: {"human": human, "comment": hostile}}}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = load_judge(runs / RUN)
    asks = [each.model_copy(update={"text": f"{hostile}?"}) for each in judge.checklist.asked]
    replace(judge, checklist=judge.checklist.model_copy(update={"questions": asks})).save(runs / RUN / "judge.yaml")
    for path in (
        f"examples?run={RUN}&id=e000",
        f"examples?run={RUN}",
        f"examples?run={RUN}&one=1",
        "examples?run=%3Cimg%20src=x%3E",
    ):
        async with opened(runs, browser, port, path, width) as tab:
            await until(tab, "!document.getElementById('problem').hidden || document.body.matches('.listed, .single')")
            if "id=" in path:
                await until(tab, "document.getElementById('people').textContent.includes('script')")
                for name in ("input", "context", "reference", "output", "questions", "people"):
                    assert HOSTILE in await text(tab, name)
            assert "taken" not in await tab.run("document.title")
            assert await tab.run("document.images.length") == 0
            assert await tab.run("document.documentElement.scrollWidth") <= width
            assert [each for each in tab.complaints if "400" not in each] == []
