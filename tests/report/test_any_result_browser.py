"""Reports of results in a real browser: they open, sort, filter and drill down, and ask nobody anything."""

from __future__ import annotations

import asyncio
import json

import pytest

from askance.prompts.verdicts import Verdict, save_verdicts
from askance.report.any_result import write_report_of
from askance.report.verdicts_page import Beside

from ..said import says

NOTE = "document.getElementById('explorer-note').textContent"
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>"
NAMES = ("facts", "style", HOSTILE)


def verdicts(examples):
    return [
        Verdict(example, name, "m", "p", None, status="api_error", error=f"It is down. {HOSTILE}")
        if (place, at) == (3, 0)
        else Verdict(example, name, "m", "p", p >= 0.5, p, "logprob", f"Because {HOSTILE}")
        for place, example in enumerate(examples)
        for at, name in enumerate(NAMES)
        for p in [((place * 7 + at * 3) % 100) / 100]
    ]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    place = tmp_path_factory.mktemp("evaluated")
    ids = [f"e{number:02d}" for number in range(40)]
    save_verdicts(place / "verdicts.jsonl", verdicts(ids))
    rows = [
        {"id": name, "input": f"In {name} {HOSTILE}", "output": "o", "human": {"overall": number % 5}}
        for number, name in enumerate(ids)
    ]
    (place / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return write_report_of(place / "verdicts.jsonl", beside=Beside(data=place / "data.jsonl"))


def comparison():
    """What compare -o writes of two judges, as little as there can be."""

    def stat(value):
        return {"value": value, "n": 30, "low": value - 0.1, "high": value + 0.1}

    def judge(name, value, tokens):
        pooled = {each: stat(value) for each in ("spearman", "kendall", "pearson")}
        spread = {each: stat(0.1) for each in ("distance", "severity", "at_maximum", "human_at_maximum", "ceiling")}
        on = {"mean": 0.5, "pooled": pooled, "observed_agreement": stat(0.5), "qwk": stat(0.5)}
        on |= {"distribution": spread, "kappa_self": {"value": None, "n": 0, "low": None, "high": None}}
        spent = {"calls": 1, "tokens": tokens, "cost_usd": 0.0}
        cost = {"upfront": spent, "per_example": spent, "amortised_tokens": tokens, "amortised_cost_usd": 0.0}
        seen = {"asked": 30, "scored": 30, "abstained": 0, "parse_errors": 0, "api_errors": 0, "share": 1.0}
        return {"judge": name, "coverage": seen, "average": dict.fromkeys(pooled, value), "dimensions": {"q": on}} | {
            "cost": cost | {"equivalent_examples": 0, "break_even": 1}
        }

    ids = [f"e{number}" for number in range(30)]
    names = {"binary": 0.4, f"b{HOSTILE}": 0.6}
    difference = {"judge": f"b{HOSTILE}", "dimension": "q", "value": 0.2, "n": 30, "low": 0.1, "high": 0.3}
    return {
        "model": HOSTILE,
        "examples": 30,
        "compared_on": 30,
        "dimensions": ["q"],
        "points": 5,
        "tolerance": 1,
        "repeat": 1,
        "temperature": 0.0,
        "among_people": {},
        "calls": 1,
        "cached_calls": 0,
        "tokens": 9,
        "judges": [judge(name, value, 100 * value) for name, value in names.items()],
        "differences": [difference | {"p_value": 0.01, "p_holm": 0.01}],
        "cost_usd": 0.0,
        "common": ids,
        "human": {name: {"q": place % 5 / 4} for place, name in enumerate(ids)},
        "ratings": {
            name: [
                {"example": each, "dimension": "q", "score": place % 7 / 6, "status": "ok"}
                for place, each in enumerate(ids)
            ]
            for name in names
        },
    }


async def test_examples_may_be_called_what_every_object_of_the_page_s_language_has(tmp_path, port, browser):
    save_verdicts(
        tmp_path / "v.jsonl", [Verdict(each, "q", "m", "p", True, 0.9) for each in ("constructor", "toString", "e1")]
    )
    page = write_report_of(tmp_path / "v.jsonl")
    async with browser(port) as tab:
        await tab.open(page.as_uri())
        await tab.run("document.querySelector('#explorer-rows button.open').click()")
        assert "yes" in await tab.run("document.querySelector('#explorer-rows .detail').textContent")
        await tab.run(
            "(() => { const box = document.getElementById('find'); box.value = 'e1'; box.dispatchEvent(new Event('input')); })()"
        )
        assert says(await tab.run(NOTE), "1 of 3")
        assert tab.complaints == []


async def test_verdicts_open_sort_filter_and_drill_down_without_a_complaint_or_a_request(evaluated, port, browser):
    async with browser(port) as tab:
        await tab.open(evaluated.as_uri())
        first = "document.querySelector('#explorer-rows button.open').textContent"
        note = "document.getElementById('explorer-note').textContent"
        assert (await tab.run(note)).startswith("40 of 40 examples, 120 verdicts.")

        # by the score, up and down
        head = "[...document.querySelectorAll('#explorer-head button')][1]"
        await tab.run(f"{head}.click()")
        lowest = await tab.run(first)
        await tab.run(f"{head}.click()")
        assert await tab.run(first) != lowest
        assert await tab.run("document.querySelector('#explorer-head [aria-sort=descending]').textContent") == "Score"

        # those with a missing verdict; the row opens texts, answers and the reason
        await tab.run(
            "(() => { const pick = document.getElementById('only'); pick.value = 'missing'; "
            "pick.dispatchEvent(new Event('change')); })()"
        )
        assert (await tab.run(note)).startswith("1 of 40 examples")
        await tab.run("document.querySelector('#explorer-rows button.open').click()")
        opened = await tab.run("document.querySelector('tr.detail').innerText")
        assert "In e03" in opened
        assert "missing" in opened
        assert "It is down." in opened
        assert "Because" in opened

        # from a question to the examples that were answered no
        await tab.run("document.querySelector('button[data-only=\"1\"]').click()")
        assert await tab.run("document.getElementById('only').value") == "1"
        nos = sum(each.question == "style" and each.answer is False for each in verdicts([f"e{n}" for n in range(40)]))
        assert (await tab.run(note)).startswith(f"{nos} of 40 examples")

        # the table of questions
        await tab.run(
            "[...document.querySelectorAll('table.sortable th button')].find((each) => each.textContent === 'Yes').click()"
        )
        rates = await tab.run(
            "[...document.querySelectorAll('#questions tbody tr')].map((row) => parseFloat(row.querySelector('td.n').textContent))"
        )
        assert rates == sorted(rates, reverse=True)

        assert tab.complaints == []
        assert {each.split(":")[0] for each in tab.requests} <= {"file", "data", "about"}


async def test_hostile_text_in_verdicts_stays_text(evaluated, port, browser):
    async with browser(port) as tab:
        await tab.open(evaluated.as_uri())
        await tab.run("document.querySelector('#explorer-rows button.open').click()")
        assert HOSTILE in await tab.run("document.querySelector('tr.detail').textContent")
        assert "taken" not in await tab.run("document.title")
        assert await tab.run("document.images.length") == 0
        assert tab.complaints == []


async def test_a_comparison_sorts_its_judges_and_keeps_hostile_names_as_text(tmp_path, port, browser):
    (tmp_path / "c.json").write_text(json.dumps(comparison()), encoding="utf-8")
    async with browser(port) as tab:
        await tab.open(write_report_of(tmp_path / "c.json").as_uri())
        assert HOSTILE in await tab.run("document.querySelector('h1').textContent")
        top = "document.querySelector('#judges tbody th').textContent"
        assert await tab.run(top) == "binary"
        await tab.run("[...document.querySelectorAll('#judges thead button')][1].click()")
        assert await tab.run(top) == f"b{HOSTILE}"
        assert await tab.run("document.querySelectorAll('#explorer-rows > tr').length") == 25
        assert await tab.run("document.title") != "taken"
        assert tab.complaints == []


@pytest.mark.parametrize("width", [390, 1280])
async def test_pages_are_no_wider_than_the_screen(evaluated, tmp_path, port, browser, width):
    (tmp_path / "c.json").write_text(json.dumps(comparison()), encoding="utf-8")
    async with browser(port) as tab:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
        )
        for page in (evaluated, write_report_of(tmp_path / "c.json")):
            await tab.open(page.as_uri())
            await tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            await tab.run("document.querySelector('#explorer-rows button.open')?.click()")
            await asyncio.sleep(0.05)
            assert await tab.run("document.documentElement.scrollWidth") <= width


async def test_a_figure_is_not_cut_off_where_its_tile_is_narrower_than_it(tmp_path, port, browser):
    (tmp_path / "c.json").write_text(json.dumps(comparison()), encoding="utf-8")
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=900, height=800, deviceScaleFactor=1, mobile=False)
        await tab.open(write_report_of(tmp_path / "c.json").as_uri())
        figures = "[...document.querySelectorAll('.figure')]"
        await tab.run(f"{figures}[1].textContent = '78.7% \u2192 75.7%'")  # as the page of weights has it
        assert await tab.run(f"{figures}.filter((each) => each.scrollWidth > each.clientWidth).length") == 0


async def test_on_paper_no_column_is_cut_off(tmp_path, port, browser):
    ids = [f"e{number:02d}" for number in range(40)]
    save_verdicts(tmp_path / "verdicts.jsonl", (each for each in verdicts(ids) if each.question != HOSTILE))
    rows = [{"id": each, "input": "In.", "human": {"overall": number % 5}} for number, each in enumerate(ids)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "c.json").write_text(json.dumps(comparison()), encoding="utf-8")
    of_verdicts = write_report_of(tmp_path / "verdicts.jsonl", beside=Beside(data=tmp_path / "data.jsonl"))
    hidden = "[...document.querySelectorAll('.scroll')].filter((each) => getComputedStyle(each).overflowX !== 'visible').length"
    async with browser(port) as tab:
        await tab.call("Emulation.setEmulatedMedia", media="print")
        await tab.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)
        for page in (of_verdicts, write_report_of(tmp_path / "c.json")):
            await tab.open(page.as_uri())
            assert await tab.run(hidden) == 0
        await tab.open(of_verdicts.as_uri())
        assert await tab.run("document.documentElement.scrollWidth") <= 718


async def test_everything_in_verdicts_can_be_reached_and_worked_by_keyboard(evaluated, port, browser):
    async with browser(port) as tab:
        await tab.open(evaluated.as_uri())
        unreachable = "[...document.querySelectorAll('a, button, input, select, summary')].filter((each) => each.tabIndex < 0).length"
        assert await tab.run(unreachable) == 0
        await tab.run("document.querySelector('table.sortable th button').focus()")
        for kind in ("keyDown", "keyUp"):
            await tab.call(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r"
            )
        assert await tab.run("document.activeElement.parentElement.getAttribute('aria-sort')") != "none"


async def test_a_hundred_thousand_verdicts_open_within_a_second(tmp_path, port, browser):
    ids = [f"e{number}" for number in range(10_000)]
    questions = [f"q{number}" for number in range(10)]
    save_verdicts(
        tmp_path / "v.jsonl",
        (
            Verdict(each, name, "m", "p", p >= 0.5, p, "logprob", f"Because of a reason that is about so long, {p}.")
            for place, each in enumerate(ids)
            for at, name in enumerate(questions)
            for p in [((place * 7 + at * 13) % 101) / 101]
        ),
    )
    page = write_report_of(tmp_path / "v.jsonl")
    assert page.stat().st_size < 6_000_000
    async with browser(port) as tab:
        assert 0 < await tab.processor_time(page.as_uri()) < 1
        assert says(await tab.run(NOTE), "10,000 of 10,000 examples", "100,000 verdicts")
        assert await tab.run("document.querySelectorAll('*').length") < 6000
        assert tab.complaints == []


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_images_of_data_are_shown_and_those_elsewhere_are_links_that_are_not_followed(tmp_path, port, browser):
    urls = (
        PIXEL,
        "https://x.test/a.png?b='\"><img src=y>",
        "data:image/svg+xml;base64,PHN2Zz4=",
        f"{PIXEL[:22]}{'A' * 3_000_000}",
    )
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    row = {
        "id": "e1",
        "input": [{"role": "user", "content": [{"type": "text", "text": "Look."}, *parts]}],
        "output": "o",
    }
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    save_verdicts(tmp_path / "v.jsonl", [Verdict("e1", "q", "m", "p", True, 0.9)])
    page = write_report_of(tmp_path / "v.jsonl", beside=Beside(data=tmp_path / "data.jsonl"))
    assert len(page.read_bytes()) < 1_000_000
    async with browser(port) as tab:
        await tab.open(page.as_uri())
        await tab.run("document.querySelector('#explorer-rows button.open').click()")
        field = "document.querySelectorAll('#explorer-rows .detail .field')[0]"
        assert await tab.run(f"[...{field}.querySelectorAll('img')].map((each) => each.naturalWidth)") == [1]
        assert await tab.run(f"[...{field}.querySelectorAll('a')].map((each) => each.textContent)") == [urls[1]]
        said = await tab.run(f"{field}.textContent")
        assert "of another kind" in said and "2.3 MB" in said
        assert tab.complaints == [] and not [each for each in tab.requests if "x.test" in each]
