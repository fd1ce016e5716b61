"""Every page of the workbench under axe: names, roles, focus order and contrast, light and dark, narrow and wide."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from askance.memory.by_hand import WantedQuestion, add_wanted
from askance.workbench.workbench import PAGES as SERVED

from ..migrated import TESTS, Target, write_migration
from .test_workbench_browser import RUN, opened, until

AXE = Path(__file__).parent.parent / "vendor" / "axe-core"
PAGES = sorted(SERVED)
WIDTHS, SCHEMES = (390, 1600), ("light", "dark")
STATES = {
    "judge": "document.querySelector('#questions input').click(); document.getElementById('validation').click();"
    "document.getElementById('threshold').value = .9;"
    "document.getElementById('threshold').dispatchEvent(new Event('input'))",
    "examples": "document.querySelector('[data-why]').click(); document.querySelector('#questions .mine button').click()",
}
"""What a person does on a page before it is looked at again."""
CHECKED = """axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations.map(
  (each) => [each.id, each.help, ...each.nodes.slice(0, 5).map((node) => [node.target.join(' '), node.failureSummary])])))"""


async def settled(tab: Any) -> None:
    """Wait until the page changes no more."""
    before, same = None, 0
    for _ in range(200):
        now = await tab.run("document.body.innerHTML")
        same = same + 1 if now == before else 0
        if same == 6:
            return
        before = now
        await asyncio.sleep(0.05)


async def faults(tab: Any, where: str) -> list[str]:
    """What axe finds, at every width and in both colour schemes."""
    found = []
    for width in WIDTHS:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        for scheme in SCHEMES:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            await tab.call("Emulation.setEmulatedMedia", features=features)
            await settled(tab)
            told = json.loads(await tab.run(CHECKED))
            found += [f"{where}, {width} px, {scheme}: {each}" for each in told]
            if await tab.run("document.documentElement.scrollWidth") > width:
                found.append(f"{where}, {width} px: wider than the screen")
    return found


def test_axe_is_as_its_authors_published_it() -> None:
    told = (AXE / "README.md").read_text("utf-8")
    assert hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest() in told


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_has_names_roles_and_contrast(page: str, runs: Path, port: int, browser: Any) -> None:
    told = urlencode({"run": RUN, "file": "judge.yaml", "before": RUN, "after": RUN})
    async with opened(runs, browser, port, f"{page}?{told}") as tab:
        await settled(tab)
        assert await tab.run("document.getElementById('problem').textContent") == ""
        await tab.run((AXE / "axe.min.js").read_text("utf-8") + ";0")
        found = await faults(tab, page or "runs")
        if page in STATES:
            await tab.run(STATES[page] + ";0")
            await settled(tab)
            found += await faults(tab, f"{page}, changed")
        assert not found, "\n".join(found)
        assert {each.split("/")[2].split(":")[0] for each in tab.requests if each.startswith("http")} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("address", "there"),
    [
        ("disagreements?run=desk&group=all&by=comment", "document.querySelectorAll('.remark button').length > 1"),
        ("disagreements?run=desk&by=wanted", "document.querySelectorAll('form.wanted').length"),
        ("disagreements?run=desk&by=labels", "document.querySelectorAll('#list pre').length"),
        ("prompts?run=moved&target=vendor/b&veto=1&show=failing", "document.querySelectorAll('#cases article').length"),
    ],
)
async def test_pages_with_much_on_them_have_names_roles_and_contrast(
    address: str, there: str, desks: Path, port: int, browser: Any
) -> None:
    lines = "Write one short sentence.\nNever copy a sentence."
    write_migration(desks / "moved", [Target("vendor/a", TESTS), Target("vendor/b", TESTS, line=lines)])
    wanted = {"text": "Is it short?", "dimension": "overall", "examples": ("e001",), "by": "anna", "time": "2026-01-01"}
    add_wanted(desks / "desk", WantedQuestion.model_validate({"comment": "fine with me", **wanted}))
    async with opened(desks, browser, port, address) as tab:
        await until(tab, there)
        await settled(tab)
        await tab.run("for (const each of document.querySelectorAll('details')) each.open = true")
        await tab.run((AXE / "axe.min.js").read_text("utf-8") + ";0")
        found = await faults(tab, address)
        assert not found, "\n".join(found)
