"""The page Prompt in a real browser: a line is vetoed by keyboard and saved, addresses, narrow screens, hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..migrated import START, Target, Written, write_migration
from .test_workbench_browser import HOSTILE, TOKEN, names, opened, press, until

LINES = "Write one short sentence.\nNever copy a sentence."
FIRST = "document.querySelector('#changes input')"


def written(text: str) -> list[Written]:
    """Outputs that got worse, more than are shown at once."""
    return [
        Written(f"t{place}", text, f"{text} shut", f"{text} open", {"short": (True, False)}, text) for place in range(7)
    ]


async def test_a_person_takes_a_line_out_by_keyboard_saves_the_prompt_and_reads_what_got_worse(
    tmp_path: Path, port: int, browser: Any
) -> None:
    targets = [Target("vendor/a", written("The bridge is")), Target("vendor/b", written("The mill is"), line=LINES)]
    write_migration(tmp_path / "moved", targets)
    async with opened(tmp_path, browser, port) as tab:
        await until(tab, "document.querySelectorAll('#rows tr').length === 1")
        await tab.run(
            "[...document.querySelectorAll('#rows a')].find((each) => each.href.includes('prompts?')).click()"
        )
        await until(tab, "document.querySelectorAll('#certificate article').length === 2")
        await tab.run("[...document.querySelectorAll('#targets a')][1].click()")
        await until(tab, "document.querySelectorAll('#changes li').length === 2")
        assert all(name for _, name in await names(tab))
        assert await tab.run("document.getElementById('other').hidden && document.getElementById('save').disabled")

        await tab.run(f"{FIRST}.focus()")
        await press(tab, " ")
        await until(tab, "!document.getElementById('other').hidden")
        assert "own prompt" in await tab.run("document.getElementById('other').textContent")
        address = await tab.run("location.href")
        await tab.run("document.getElementById('save').click()")
        await until(tab, "document.getElementById('verdict').textContent.includes('prompt-1.md')")
        saved = tmp_path / "moved" / "targets" / "vendor__b" / "prompt-1.md"
        assert saved.read_text() == f"{START}\nNever copy a sentence."
        assert await tab.run("document.querySelectorAll('#history li').length") == 1

        await until(tab, "document.querySelectorAll('#cases article').length === 5")
        assert await tab.run("document.querySelector('#cases del').textContent") == "shut"
        await tab.run("document.getElementById('after').click()")
        await until(tab, "document.querySelectorAll('#cases article').length === 2")
        await tab.run("history.back()")
        await until(tab, "document.querySelectorAll('#cases article').length === 5")
        await tab.open(address)  # as another person opens it
        await until(tab, f"{FIRST}?.checked === false")
        await tab.run("document.getElementById('undo').click()")
        await until(tab, f"{FIRST}.checked && document.getElementById('save').disabled")
        assert tab.complaints == []
        assert {each.split("/")[3] for each in tab.requests if each.startswith("http")} == {TOKEN}


@pytest.mark.parametrize("width", [390, 1600])
async def test_hostile_texts_do_nothing_and_the_page_is_no_wider_than_the_screen(
    tmp_path: Path, port: int, browser: Any, width: int
) -> None:
    text = f"{HOSTILE} {'x' * 300}"
    target = Target(f"{HOSTILE[:30]}", written(text), reason=text, line=f"{text}\n{text}")
    folder = "moved"
    write_migration(tmp_path / folder, [target, Target("vendor/b", written(text), line=f"{text}\n{HOSTILE}")])
    (tmp_path / folder / "targets" / "vendor__b" / "prompt-history.jsonl").write_text(
        json.dumps({"file": text, "by": text, "time": text, "of": text, "what": [text]}) + "\n"
    )
    async with opened(tmp_path, browser, port, f"prompts?run={folder}&target=vendor/b&veto=1&veto=99", width) as tab:
        await until(tab, "document.querySelectorAll('#cases article').length === 5")
        assert await tab.run("document.querySelectorAll('#changes li').length") == 2
        assert await tab.run("document.title") != "taken"
        assert await tab.run("document.querySelectorAll('main img').length") == 0
        assert await tab.run("document.documentElement.scrollWidth") <= width
        assert tab.complaints == []
