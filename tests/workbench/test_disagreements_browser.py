"""The page Disagreements in a real browser: by keyboard, with addresses to go back to, narrow, and with hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.memory.by_hand import read_wanted
from askance.workbench.saved_judges import ValidationLooks

from ..optimizer.questions.conftest import RULES
from .test_workbench_browser import HOSTILE, TOKEN, names, opened, press, until

RUN = "desk"
PRICE, ASKED = RULES["price"]


async def test_a_person_finds_a_group_makes_its_comment_a_candidate_rewords_it_and_takes_it_back(
    desks: Path, port: int, browser: Any
) -> None:
    async with opened(desks, browser, port) as tab:
        await until(tab, "document.querySelectorAll('#rows tr').length === 1")
        await tab.run(
            "[...document.querySelectorAll('#rows a')].find((each) => each.href.includes('disagree')).click()"
        )
        await until(tab, "document.querySelectorAll('#list li').length > 1")
        assert "differ on" in await tab.run("document.getElementById('said').textContent")
        await tab.run("[...document.querySelectorAll('#tabs a')][1].focus()")
        await press(tab, "Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        await until(tab, "document.querySelectorAll('#list .remark').length > 2")
        assert await tab.run("document.activeElement.textContent.startsWith('By comment')")
        await tab.run("document.querySelector('#list .row a').click()")
        await until(tab, "document.querySelectorAll('#cases article').length > 0")
        assert await tab.run("document.activeElement.id") == "outputs-title"
        assert all(name for _, name in await names(tab))
        address = await tab.run("location.href")

        await tab.run("document.querySelector('#list .remark button').focus()")
        await press(tab, " ", code="Space", windowsVirtualKeyCode=32)
        await until(tab, "document.getElementById('done').textContent.includes('The next run tries')")
        assert await tab.run("document.activeElement.textContent") == "Reword"
        assert PRICE in read_wanted(desks / RUN)
        await tab.run("document.activeElement.click()")
        await until(tab, "document.querySelector('form.wanted input')?.value.startsWith('Would a reader')")
        await tab.run(f"document.querySelector('form.wanted input').value = {json.dumps(ASKED)}")
        await tab.run("document.querySelector('form.wanted button').click()")
        await until(tab, f"document.getElementById('done').textContent.includes({json.dumps(ASKED)})")
        assert read_wanted(desks / RUN)[PRICE].text == ASKED

        await tab.run("history.back()")
        await until(tab, f"location.href === {json.dumps(address)} && !document.getElementById('outputs').hidden")
        await tab.open(address)  # as another person opens it
        await until(tab, "document.querySelectorAll('#cases article').length > 0")
        await tab.run("[...document.querySelectorAll('#tabs a')][2].click()")
        await until(tab, "document.querySelectorAll('form.wanted').length === 1")
        await tab.run("document.querySelectorAll('form.wanted button')[1].click()")
        await until(tab, "document.querySelectorAll('form.wanted').length === 0")
        assert read_wanted(desks / RUN) == {}
        await tab.run("[...document.querySelectorAll('#tabs a')][3].click()")
        await until(tab, "document.querySelector('#list pre')?.textContent.includes('askance label')")
        assert tab.complaints == []
        assert {each.split("/")[3] for each in tab.requests if each.startswith("http")} == {TOKEN}


@pytest.mark.parametrize("width", [390, 1600])
async def test_hostile_texts_do_nothing_and_the_page_is_no_wider_than_the_screen(
    desks: Path, port: int, browser: Any, width: int
) -> None:
    file = desks / RUN / "inputs" / "examples.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for each in rows:
        each |= {"input": HOSTILE, "output": HOSTILE, "comment": f"{HOSTILE} {'x' * 300}"}
    file.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    for by in ("question", "comment", "wanted", "labels"):
        async with opened(desks, browser, port, f"disagreements?run={RUN}&group=all&by={by}", width) as tab:
            await until(tab, "document.querySelectorAll('#cases article').length > 0")
            await tab.run("document.querySelector('.remark button')?.click()")
            assert await tab.run("document.title") != "taken"
            assert await tab.run("document.querySelectorAll('main img').length") == 0
            assert await tab.run("document.documentElement.scrollWidth") <= width


async def test_a_damaged_run_is_named_and_the_others_work(desks: Path, port: int, browser: Any) -> None:
    (desks / RUN / "wanted-questions.jsonl").write_text("{\n")
    async with opened(desks, browser, port, f"disagreements?run={RUN}") as tab:
        await until(tab, "document.getElementById('problem').textContent.includes('wanted-questions.jsonl, line 1')")
    async with opened(desks, browser, port, f"judge?run={RUN}") as tab:
        await until(tab, "document.querySelectorAll('#questions tr').length > 0")


async def test_validation_is_opened_by_one_look_that_is_counted(runs: Path, port: int, browser: Any) -> None:
    async with opened(runs, browser, port, "disagreements?run=team/aligned") as tab:
        await until(tab, "!document.getElementById('shut').hidden")
        before = await tab.run("document.getElementById('said').textContent")
        await tab.run("document.getElementById('open-validation').click()")
        await until(tab, "document.getElementById('about').textContent.includes('and validation')")
        assert await tab.run("document.getElementById('said').textContent") != before
        assert len(ValidationLooks(runs / "team" / "aligned").judges()) == 1
