"""The report in a real browser, driven over its own protocol: it opens, drills down, and asks nobody anything."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from askance.memory.decision import decide
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.loop import run_job
from askance.optimizer.modes import align
from askance.prompts.verdicts import Verdict
from askance.report.run_data import Kept, Scored, read_run
from askance.report.run_page import render_report, write_report
from askance.testing import SimulatedJudge, SimulatedWorld

from ..said import says

NOTE = "document.getElementById('explorer-note').textContent"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def report(make_world, tmp_path):
    make_world(60).migrate(tmp_path / "run", trial=True)
    return write_report(tmp_path / "run")


async def test_a_report_opens_without_a_complaint_or_a_request_and_drills_down(report, port, browser):
    async with browser(port) as tab:
        await tab.open(report.as_uri())
        result = RunDirectory(report.parent).read_result()
        assert await tab.run("document.querySelector('h1').textContent") == decide(result).headline

        # from a mark in the prompt to its edit, its lesson and a disagreement with both answers
        await tab.run("document.querySelector('.prompt a.mark').click()")
        assert (await tab.run("location.hash")).startswith("#edit-")
        await tab.run("document.querySelector('.edit details.lesson summary').click()")
        shown = await tab.run("document.querySelector('.edit details[open] .case').innerText")
        assert "Document [e" in shown
        assert "The source" in shown
        assert "Words of" in shown or "decide" in shown

        # a link into a closed part opens it
        await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
        await tab.run("location.hash = '#lesson-1'")
        await asyncio.sleep(0.1)
        assert await tab.run("document.getElementById('lesson-1').getBoundingClientRect().height > 0")

        # the examples: sort, open one, search
        rows = "document.querySelectorAll('#explorer-rows > tr').length"
        assert await tab.run(rows) == 24
        await tab.run("document.querySelector('#explorer-head button').click()")
        assert await tab.run("document.querySelector('[aria-sort=ascending]').textContent") == "Example"
        await tab.run("document.querySelector('button.open').click()")
        opened = await tab.run("document.querySelector('tr.detail').innerText")
        assert "Are the facts right?" in opened
        assert "Summary [e" in opened
        await tab.run(
            "(() => { const box = document.getElementById('find'); box.value = document.querySelector('button.open')"
            ".textContent; box.dispatchEvent(new Event('input')); })()"
        )
        assert await tab.run(rows) == 1

        # lessons by status
        await tab.run("[...document.querySelectorAll('button[data-status]')].at(-1).click()")
        kinds = "new Set([...document.querySelectorAll('.lesson-row:not([hidden])')].map((each) => each.dataset.status)).size"
        assert await tab.run(kinds) == 1

        assert tab.complaints == []
        assert {each.split(":")[0] for each in tab.requests} <= {"file", "data", "about"}


@pytest.mark.parametrize("width", [390, 700, 1280])
async def test_a_report_is_no_wider_than_the_screen(report, port, browser, width):
    async with browser(port) as tab:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
        )
        await tab.open(report.as_uri())
        await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        await tab.run("document.querySelector('button.open').click()")
        assert await tab.run("document.documentElement.scrollWidth") <= width
        assert (
            await tab.run("[...document.querySelectorAll('table')].filter((each) => !each.closest('.scroll')).length")
            == 0
        )


BROKEN = """(() => {
  const lines = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size;
  };
  const cells = [...document.querySelectorAll("td.n, td.term")];
  const words = cells.flatMap((cell) => [...cell.childNodes]).filter((node) => /^[^ ]+$/.test(node.textContent.trim()));
  return words.filter((node) => lines(node) > 1).map((node) => node.textContent);
})()"""
"""The figures and words in tables that go on in the next line."""
BROKEN_WORDS = """(() => {
  const range = document.createRange(), found = [];
  for (const cell of document.querySelectorAll("#learned td")) {
    for (const node of [...cell.childNodes].filter((each) => each.nodeType === Node.TEXT_NODE)) {
      for (const word of node.data.matchAll(/[A-Za-z]+/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) found.push(word[0]);
      }
    }
  }
  return found;
})()"""
"""The words in the tables of what was learned that are broken in two."""
OVERLAPPING = """[...document.querySelectorAll("svg")].flatMap((drawing) => {
  const places = [...drawing.querySelectorAll("text")].map((each) => each.getBoundingClientRect());
  const touch = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return places.filter((a, at) => places.slice(at + 1).some((b) => touch(a, b)));
}).length"""
"""How many labels of drawings lie on others."""


async def test_on_a_narrow_screen_no_figure_is_broken_and_an_opened_example_is_no_wider_than_its_table(
    report, port, browser
):
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        await tab.open(report.as_uri())
        await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        await tab.run("document.querySelector('button.open').click()")
        assert await tab.run("document.querySelectorAll('td.n').length") > 20
        assert await tab.run(BROKEN) == []
        examples = "document.querySelector('#explorer .scroll')"
        assert await tab.run(f"{examples}.scrollWidth") <= await tab.run(f"{examples}.clientWidth")


async def test_on_a_narrow_screen_no_word_of_a_question_that_was_not_taken_is_broken(tmp_path, port, browser):
    world = SimulatedWorld(seed=1000, size=60, comment_share=2 / 3)
    options = {"update": "questions", "embedder": "words", "resamples": 100, "max_iterations": 1}
    job = align.prepare(world.rows, world.checklist, SimulatedJudge(world), world.prompt, options)
    run_job(job, RunDirectory(tmp_path / "run"), Silent())
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        await tab.open(write_report(tmp_path / "run").as_uri())
        await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert await tab.run("document.querySelectorAll('#learned tbody tr').length") > 5
        assert await tab.run(BROKEN_WORDS) == []


@pytest.mark.parametrize("width", [390, 780])
async def test_no_label_of_a_drawing_lies_on_another(report, port, browser, width):
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        await tab.open(report.as_uri())
        assert await tab.run(OVERLAPPING) == 0


async def test_what_an_instruction_did_stands_beside_it_however_long_it_is(make_letters, tmp_path, port, browser):
    make_letters(40).tune(tmp_path / "run")
    table = "[...document.querySelectorAll('.scroll')].find((each) => each.ariaLabel.startsWith('Outputs that pass'))"
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
        await tab.open(write_report(tmp_path / "run").as_uri())
        await tab.run(f"{table}.querySelector('tbody th').className = 'wide'")  # as a long text is
        await tab.run(
            f"{table}.querySelector('tbody th bdi').firstChild.data = 'Name every part that was asked for. '.repeat(9)"
        )
        assert await tab.run(f"{table}.scrollWidth <= {table}.clientWidth")
        assert "100\u00a0%" in await tab.run(f"{table}.textContent")


async def test_everything_that_can_be_used_can_be_reached_and_worked_by_keyboard(report, port, browser):
    async with browser(port) as tab:
        await tab.open(report.as_uri())
        unreachable = (
            "[...document.querySelectorAll('a, button, input, summary')].filter((each) => each.tabIndex < 0).length"
        )
        assert await tab.run(unreachable) == 0
        await tab.run("document.querySelector('button.open').focus()")
        for kind in ("keyDown", "keyUp"):
            await tab.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )
        assert await tab.run("document.querySelectorAll('tr.detail').length") == 1
        assert await tab.run("document.activeElement.getAttribute('aria-expanded')") == "true"


async def test_hostile_text_in_the_examples_does_nothing(make_world, tmp_path, port, browser):
    class Hostile(make_world):
        @property
        def rows(self):
            return [row | {"output": f"{row['output']} {HOSTILE}"} for row in super().rows]

    Hostile(60).migrate(tmp_path / "run")
    async with browser(port) as tab:
        await tab.open(write_report(tmp_path / "run").as_uri())
        await tab.run("document.querySelector('button.open').click()")
        assert HOSTILE in await tab.run("document.querySelector('tr.detail').textContent")
        assert "taken" not in await tab.run("document.title")
        assert await tab.run("document.images.length") == 0
        assert tab.complaints == []


async def test_a_report_on_a_hundred_thousand_verdicts_loads_within_a_second(make_world, tmp_path, port, browser):
    make_world(60).migrate(tmp_path / "run")
    data = read_run(tmp_path / "run")
    names, examples = [f"q{number}" for number in range(10)], [f"e{number}" for number in range(10_000)]

    def verdicts(prompt):
        return [
            Verdict(example, name, "m", prompt, (place + at) % 3 > 0, (place * 7 + at) % 100 / 100, "logprob")
            for place, example in enumerate(examples)
            for at, name in enumerate(names)
        ]

    kept = Kept(
        0,
        2,
        {(0, "test"): verdicts("a"), (2, "test"): verdicts("b")},
        scored=[Scored(each, place % 10 / 10, place % 7 / 7, place % 5 / 5) for place, each in enumerate(examples)],
    )
    file = tmp_path / "large.html"
    file.write_text(render_report(dataclasses.replace(data, kept=kept)), encoding="utf-8")
    assert file.stat().st_size < 3_000_000
    async with browser(port) as tab:
        assert 0 < await tab.processor_time(file.as_uri()) < 1
        assert says(await tab.run(NOTE), "10,000 of 10,000 examples", "100,000 verdicts")
        assert await tab.run("document.querySelectorAll('*').length") < 6000
        assert tab.complaints == []
