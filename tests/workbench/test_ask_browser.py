"""A question asked in a real browser, and a judge without a run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from askance.evaluation.judge_file import load_judge

from .conftest import FURTHER
from .test_accessibility import AXE, faults, settled
from .test_workbench_browser import HOSTILE, RUN, names, opened, until

SAID = "document.getElementById('ask-said').textContent"


async def word(tab: Any, text: str, instead_of: str = "") -> None:
    """Write the question as a person does."""
    await tab.run(
        f"wording('instead_of').value = {instead_of!r};"
        "wording('instead_of').dispatchEvent(new Event('input', {bubbles: true}));"
        f"wording('text').value = {text!r}; wording('text').dispatchEvent(new Event('input', {{bubbles: true}})); 0"
    )


async def test_a_person_words_a_question_anew_asks_it_and_then_asks_it_on_validation(
    asked_runs: Path, port: int, browser: Any
) -> None:
    async with opened(asked_runs, browser, port, f"judge?run={RUN}") as tab:
        await until(tab, "document.querySelectorAll('#questions tr').length === 2")
        assert all(name for _, name in await names(tab))
        await word(tab, FURTHER, "facts")
        await tab.run("document.getElementById('ask-estimate').click()")
        await until(tab, f"{SAID}.includes('36 calls')")
        await word(tab, f"{FURTHER} ", "words")
        assert await tab.run("document.getElementById('ask-it').disabled")  # that was another question's estimate
        await word(tab, FURTHER, "facts")
        await tab.run("document.getElementById('ask-estimate').click()")
        await until(tab, "!document.getElementById('ask-it').disabled")
        await tab.run("document.getElementById('ask-it').click()")
        await until(tab, "document.querySelectorAll('#questions tr').length === 3")
        await until(tab, "document.getElementById('changes').textContent.includes('facts_2')")
        assert await tab.run("document.querySelectorAll('#questions tr.off').length") == 1

        await tab.run("document.getElementById('validation').click()")
        await until(tab, "document.querySelectorAll('#splits button').length === 1")
        assert (await tab.run("document.getElementById('looks').textContent")).startswith("0")
        await tab.run("document.querySelector('#splits button').click()")
        await until(tab, "document.querySelector('#splits button').textContent === 'Ask on validation'")
        await tab.run("document.querySelector('#splits button').click()")
        await until(tab, "document.getElementById('looks').textContent.startsWith('1')")
        await until(tab, "document.querySelectorAll('#splits .confusion').length === 2")
        await tab.run("document.getElementById('save').click()")
        await until(tab, "document.getElementById('verdict').textContent.includes('judge-1.yaml')")
        assert FURTHER in [each.text for each in load_judge(asked_runs / RUN / "judge-1.yaml").checklist.questions]
        assert tab.complaints == []
        await tab.run((AXE / "axe.min.js").read_text("utf-8") + ";0")
        await settled(tab)
        assert not await faults(tab, "asked")


async def test_what_goes_wrong_is_said_on_the_page_and_a_hostile_question_does_nothing(
    asked_runs: Path, port: int, browser: Any
) -> None:
    async with opened(asked_runs, browser, port, f"judge?run={RUN}", 390) as tab:
        await until(tab, "document.querySelectorAll('#questions tr').length === 2")
        await word(tab, HOSTILE)
        await tab.run("document.getElementById('ask-estimate').click()")
        await until(tab, "!document.getElementById('ask-it').disabled")
        await tab.run("document.getElementById('ask-it').click()")
        await until(tab, f"{SAID}.includes('Nothing is shown')")
        assert await tab.run("document.querySelectorAll('#questions tr').length") == 2
        await word(tab, f"{FURTHER} {HOSTILE}")
        await tab.run("document.getElementById('ask-estimate').click()")
        await until(tab, "!document.getElementById('ask-it').disabled")
        await tab.run("document.getElementById('ask-it').click()")
        await until(tab, "document.querySelectorAll('#questions tr').length === 3")
        assert await tab.run("document.title") != "taken"
        assert await tab.run("document.querySelectorAll('main img').length") == 0
        assert await tab.run("document.documentElement.scrollWidth") <= 390


async def test_a_judge_without_a_run_is_looked_at_changed_and_saved(
    runs: Path, tmp_path: Path, port: int, browser: Any
) -> None:
    alone = tmp_path / "alone"
    (alone / "mine").mkdir(parents=True)
    shutil.copy(runs / RUN / "judge.yaml", alone / "mine" / "judge.yaml")
    async with opened(alone, browser, port) as tab:
        await until(tab, "document.querySelectorAll('#rows tr').length === 1")
        await tab.run("document.querySelector('#rows a').click()")
        await until(tab, "document.querySelectorAll('#questions tr').length === 2")
        assert "without a run" in await tab.run("document.getElementById('splits').textContent")
        assert await tab.run("document.getElementById('test').hidden && document.getElementById('ask-part').hidden")
        await tab.run("document.querySelector('#questions input[type=checkbox]').click()")
        await until(tab, "!document.getElementById('save').disabled")
        await tab.run("document.getElementById('save').click()")
        await until(tab, "document.getElementById('verdict').textContent.includes('judge-1.yaml')")
        assert len(load_judge(alone / "mine" / "judge-1.yaml").checklist.questions) == 1
        await tab.run((AXE / "axe.min.js").read_text("utf-8") + ";0")
        assert not await faults(tab, "alone")
