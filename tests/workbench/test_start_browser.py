"""A run begun, watched, stopped and gone on with in a real browser, while the page Runs follows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.memory.run_directory import RunDirectory

from .test_workbench_browser import HOSTILE, names, opened, until

TEXT = "document.getElementById('{}').textContent"


async def fill(tab: Any, **values: str) -> None:
    """Choose and type as a person does; every change is told to the page."""
    for name, value in values.items():
        field = f"document.getElementById('form').elements.namedItem('{name}')"
        await tab.run(f"{field}.value = {value!r}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}));0")


async def test_a_run_is_begun_from_the_page_watched_stopped_and_gone_on_with(
    project: Path, port: int, browser: Any
) -> None:
    async with opened(project, browser, port, "start") as tab:
        await until(tab, "!document.getElementById('new').hidden")
        assert all(name for _, name in await names(tab))
        await fill(tab, run="mine/first")
        await tab.run("document.getElementById('estimate').click()")
        await until(tab, f"{TEXT.format('said')}.includes('DATA is needed')")  # the command's own error
        files = {"input-data": "data.jsonl", "input-checklist": "checklist.yaml", "input-prompt": "prompt.md"}
        await fill(tab, **files, **{"input-model": "openai/judge", "call_budget": "5000"})
        assert await tab.run("document.getElementById('form').elements.namedItem('settings').value") == "askance.yaml"
        await tab.run("document.getElementById('estimate').click()")
        await until(tab, f"{TEXT.format('said')}.includes('Nothing was bought')")
        await fill(tab, run="mine/second")
        assert await tab.run("document.getElementById('begin').disabled")  # that was another run's estimate
        await tab.run("document.getElementById('estimate').click()")
        await until(tab, "!document.getElementById('begin').disabled")
        await tab.run("document.getElementById('begin').click()")
        await until(tab, f"{TEXT.format('line')}.startsWith('works')")
        await until(tab, f"{TEXT.format('log')}.includes('judging')")

        watched = await tab.run("location.href")
        await tab.open(watched.partition("/start")[0] + "/")
        await until(tab, "document.querySelectorAll('#rows .running').length === 1")
        before = await tab.run("document.querySelector('#rows td:nth-child(3)').textContent")
        await until(tab, f"document.querySelector('#rows td:nth-child(3)').textContent !== {before!r}")  # it follows

        await tab.open(watched)
        await until(tab, f"{TEXT.format('line')}.startsWith('works')")
        await tab.run("document.getElementById('stop').click()")
        await until(tab, f"{TEXT.format('log')}.includes('Interrupted')")
        await until(tab, "!document.getElementById('on').hidden")
        assert not RunDirectory(project / "mine" / "second").finished
        await tab.run("document.querySelector('#on button').click()")
        await until(tab, f"{TEXT.format('problem')}.includes('cap is needed')")
        await tab.run("document.querySelector('#on [name=call_budget]').value = 5000; 0")
        await tab.run("document.querySelector('#on button').click()")
        await until(tab, f"{TEXT.format('line')}.startsWith('finished')")
        assert await tab.run("document.getElementById('judge').href.includes('run=mine%2Fsecond')")
        assert RunDirectory(project / "mine" / "second").finished
        await tab.run("document.getElementById('judge').click()")
        await until(tab, "document.querySelectorAll('#questions tr').length === 2")
        assert tab.complaints == [] or all("400" in each for each in tab.complaints)  # what was refused on purpose


@pytest.mark.parametrize("width", [390, 1600])
async def test_hostile_names_do_nothing_on_the_page(project: Path, port: int, browser: Any, width: int) -> None:
    name = HOSTILE.replace("/", "⁄")
    (project / f"{name}.jsonl").write_text("{}")
    (project / "r1").mkdir()
    (project / "r1" / "started.log").write_text(HOSTILE * 3)
    async with opened(project, browser, port, "start?run=r1", width) as tab:
        await until(tab, "!document.getElementById('new').hidden")
        await until(tab, f"{TEXT.format('log')}.includes('taken')")
        await fill(tab, **{"input-data": f"{name}.jsonl", "run": HOSTILE})
        await tab.run("document.getElementById('estimate').click()")
        await until(tab, f"{TEXT.format('said')}.includes('letters')")
        assert await tab.run("document.title") != "taken"
        assert await tab.run("document.querySelectorAll('main img').length") == 0
        assert await tab.run("document.documentElement.scrollWidth") <= width
