"""The workbench in a real browser: by keyboard, no wider than the screen, names for a screen reader, hostile texts."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from askance.evaluation.judge_file import load_judge
from askance.workbench.workbench import Workbench, workbench_application

TOKEN, RUN = "token-of-the-test", "team/aligned"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
WORKS = ("button", "checkbox", "slider", "spinbutton", "combobox", "link")


@asynccontextmanager
async def opened(runs: Path, browser: Any, port: int, path: str = "", width: int = 1600) -> Any:
    """A page of the workbench in a tab."""
    runner = web.AppRunner(workbench_application(TOKEN, Workbench(runs, "anna")), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with browser(port) as tab:
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
            await tab.call("Emulation.setDeviceMetricsOverride", **size)
            await tab.open(f"http://127.0.0.1:{runner.addresses[0][1]}/{TOKEN}/{path}")
            yield tab
    finally:
        await runner.cleanup()


async def until(tab: Any, expression: str) -> None:
    for _ in range(600):
        if await tab.run(expression):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{expression}; {await tab.run('document.body.innerText')}")


async def press(tab: Any, key: str, **how: Any) -> None:
    typed = {"text": key} if len(key) == 1 else {}
    await tab.call("Input.dispatchKeyEvent", type="keyDown", key=key, **typed, **how)
    await tab.call("Input.dispatchKeyEvent", type="keyUp", key=key, **how)


async def names(tab: Any) -> list[tuple[str, str]]:
    """Role and name of everything on the page that can be worked, as a screen reader has them."""
    tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    found = [(each["role"]["value"], each.get("name", {}).get("value", "")) for each in tree if not each.get("ignored")]
    return [each for each in found if each[0] in WORKS]


async def test_a_person_changes_a_judge_by_keyboard_sees_it_tests_it_and_saves_it(
    runs: Path, port: int, browser: Any
) -> None:
    async with opened(runs, browser, port) as tab:
        await until(tab, "document.querySelectorAll('#rows tr').length === 1")
        assert all(name for _, name in await names(tab))
        await tab.run("[...document.querySelectorAll('#rows a')].find((each) => each.href.includes('judge?')).click()")
        await until(tab, "document.querySelectorAll('#questions tr').length === 2")
        assert all(name for _, name in await names(tab))
        assert await tab.run("document.getElementById('save').disabled")

        await tab.run("document.querySelector('#questions input[type=checkbox]').focus()")
        await press(tab, " ")
        await until(tab, "document.getElementById('changes').textContent.includes('turned off')")
        await until(tab, "document.querySelectorAll('#splits section').length === 1")
        await until(tab, "document.querySelector('#splits').textContent.includes('Before')")
        address = await tab.run("location.href")

        await press(tab, "ArrowDown", modifiers=1)
        assert not await tab.run("document.querySelector('#questions tr:last-child input').checked")
        await tab.run("document.getElementById('validation').click()")
        await until(tab, "document.querySelectorAll('#splits section').length === 2")
        await until(tab, "document.getElementById('looks').textContent.startsWith('1 changed')")
        await tab.run("document.getElementById('test').click()")
        await until(tab, "document.getElementById('verdict').textContent.includes('at look')")
        await tab.run("document.getElementById('save').click()")
        await until(tab, "document.getElementById('verdict').textContent.includes('judge-1.yaml')")
        assert [each.id for each in load_judge(runs / RUN / "judge-1.yaml").checklist.questions] == ["words"]

        await tab.open(address)  # a shared address has the change
        await until(tab, "document.getElementById('changes').textContent.includes('turned off')")
        await tab.run("document.getElementById('undo').click()")
        await until(tab, "document.getElementById('changes').textContent.includes('Nothing')")
        assert tab.complaints == []
        assert {each.split("/")[3] for each in tab.requests if each.startswith("http")} == {TOKEN}


@pytest.mark.parametrize("width", [390, 1600])
async def test_hostile_texts_do_nothing_and_no_page_is_wider_than_the_screen(
    runs: Path, port: int, browser: Any, width: int
) -> None:
    file = runs / RUN / "judge.yaml"
    judge = load_judge(runs / RUN)
    questions = [each.model_copy(update={"text": f"{HOSTILE} {each.text}"}) for each in judge.checklist.asked]
    hostile = judge.checklist.model_copy(update={"questions": questions, "task": HOSTILE})
    replace(judge, checklist=hostile).save(file)
    (runs / "x").mkdir()
    (runs / "x" / "config.yaml").write_text(HOSTILE)
    (runs / "x" / "journal.jsonl").write_text(HOSTILE)
    for path, there in (
        ("", "document.querySelectorAll('#rows tr').length === 2"),
        (f"judge?run={RUN}", "document.querySelectorAll('#questions tr').length === 2"),
        (f"compare?before={RUN}&after={RUN}", "document.getElementById('title').textContent"),
        ("judge?run=%3Cimg%20src=x%3E", "!document.getElementById('problem').hidden"),
    ):
        async with opened(runs, browser, port, path, width) as tab:
            await until(tab, there)
            assert await tab.run("document.title") != "taken"
            assert await tab.run("document.querySelectorAll('main img').length") == 0
            assert await tab.run("document.documentElement.scrollWidth") <= width


async def test_a_directory_without_runs_says_what_to_do_first(tmp_path: Path, port: int, browser: Any) -> None:
    async with opened(tmp_path, browser, port) as tab:
        await until(tab, "!document.getElementById('none').hidden")
        assert "askance align" in await tab.run("document.getElementById('first').textContent")
