"""The page in a real browser: worked by keyboard alone, no wider than the screen, and hostile text does nothing."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from ..said import says
from .test_label_command import begin  # noqa: F401

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"
CODES = {"Enter": "\r", "Escape": "\x1b"}


class Page:
    """The page in a tab, and what a rater does."""

    def __init__(self, tab):
        self.tab = tab

    async def text(self, name):
        return await self.tab.run(f"document.getElementById('{name}').textContent")

    async def press(self, key, **how):
        typed = {"text": CODES.get(key, key)} if len(key) == 1 or key == "Enter" else {}
        await self.tab.call("Input.dispatchKeyEvent", type="keyDown", key=key, **typed, **how)
        await self.tab.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def until(self, expression):
        for _ in range(400):
            if await self.tab.run(expression):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{expression} did not come true; the page says {await self.text('problem')!r}")

    async def press_and_wait(self, key):
        """A key after which another output is shown."""
        before = await self.text("id")
        await self.press(key)
        await self.until(f"document.getElementById('id').textContent !== {json.dumps(before)}")
        return before

    async def comment(self, text):
        await self.press("c")
        await self.tab.call("Input.insertText", text=text)
        await self.press("Escape")


@asynccontextmanager
async def opened(browser, port, address):
    async with browser(port) as tab:
        await tab.open(address)
        page = Page(tab)
        await page.until("!document.getElementById('desk').hidden")
        yield page


def written(place):
    return [
        json.loads(line) for line in (place / "data-labelled.labels.jsonl").read_text(encoding="utf-8").splitlines()
    ]


async def test_a_rater_labels_by_keyboard_alone(begin, place, port, browser):  # noqa: F811
    judges = ["--judge", "one.jsonl", "--judge", "two.jsonl", "--checklist", "checklist.json"]
    command = begin(place / "data.jsonl", *judges, "--rater", "anna")
    async with opened(browser, port, command.address) as page:
        await page.press("1")
        for _ in range(2):
            await page.press("2")
        await page.comment("It promises fp 12 things.")  # letters and numbers are no orders in the box
        first = await page.press_and_wait("f")
        second = await page.press_and_wait("p")
        await page.comment("Half a thou")
        third = await page.press_and_wait("s")
        await page.press("p", autoRepeat=True)  # a key that is held labels nothing
        await page.press("p", modifiers=2)  # nor does one with Control
        assert await page.text("progress") == "2 of 30 by anna: 1 pass, 1 fail, 1 with a comment, 1 skipped"
        assert "agrees on" in await page.tab.run("document.querySelector('#agreement table').innerText")
        rows = [each for each in written(place) if each.get("kind") != "draft"]
        assert [each["example"] for each in rows] == [first, second, third]
        assert rows[0]["human"] == {"promises": True, "answers": False, "overall": False}
        assert rows[0]["comment"] == "It promises fp 12 things."
        assert (rows[1]["human"], rows[2]["kind"]) == ({"overall": True}, "skip")

        assert await page.press_and_wait("u") != third
        assert await page.text("id") == third
        assert await page.tab.run("document.getElementById('comment').value") == "Half a thou"
        await page.press_and_wait("u")
        assert await page.text("id") == second
        await page.press_and_wait("u")
        assert await page.text("id") == first
        pressed = (
            "[...document.querySelectorAll('#questions [aria-pressed=true]')].map((each) => each.textContent).join()"
        )
        assert await page.tab.run(pressed) == "yes,no"
        assert await page.tab.run("document.getElementById('comment').value") == "It promises fp 12 things."
        await page.press_and_wait("Enter")  # answers and comment alone
        assert written(place)[-1]["human"] == {"promises": True, "answers": False}

        await page.press("Enter")
        await page.until("!document.getElementById('problem').hidden")
        assert "nothing to save" in await page.text("problem")
        await page.press_and_wait("p")
        assert await page.tab.run("document.getElementById('problem').hidden")
        hosts = {each.split("/")[2] for each in page.tab.requests if each.startswith("http")}
        assert hosts == {command.address.split("/")[2]}
        assert [each for each in page.tab.complaints if "400" not in each] == []  # one answer was refused, above


async def test_what_is_typed_is_there_again_and_an_end_in_the_terminal_is_said(begin, place, port, browser):  # noqa: F811
    command = begin(place / "data.jsonl")
    async with opened(browser, port, command.address) as page:
        await page.comment("half a thought")
        await page.until("document.getElementById('status').textContent === 'Draft kept.'")
        asked = await page.text("id")
        command.end()
        await page.press("p")
        await page.until("!document.getElementById('problem').hidden")
        assert says(await page.text("problem"), "ended", "terminal")
        assert await page.text("id") == asked
    again = begin(place / "data.jsonl")
    async with opened(browser, port, again.address) as page:
        assert await page.text("id") == asked
        assert await page.tab.run("document.getElementById('comment').value") == "half a thought"
        for _ in range(29):
            await page.press_and_wait("p")
        await page.press("f")
        await page.until("!document.getElementById('done').hidden")
        assert await page.tab.run("document.getElementById('desk').hidden")
        assert await page.text("progress") == "30 of 30 by me: 29 pass, 1 fail, 1 with a comment"


@pytest.mark.parametrize("width", [390, 1280])
async def test_the_page_is_no_wider_than_the_screen_and_hostile_text_does_nothing(begin, place, port, browser, width):  # noqa: F811
    row = {"id": HOSTILE, "input": HOSTILE, "output": HOSTILE + "x" * 400, "context": HOSTILE, "reference": "ref"}
    (place / "bad.jsonl").write_text(json.dumps(row))
    question = {"id": "q", "text": f"Is it {HOSTILE}?"}
    (place / "bad.json").write_text(json.dumps({"questions": [question]}))
    command = begin(place / "bad.jsonl", "--checklist", "bad.json", "--rater", HOSTILE[:60])
    async with browser(port) as tab:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500
        )
        await tab.open(command.address)
        page = Page(tab)
        await page.until("!document.getElementById('desk').hidden")
        for part in ("id", "input", "context", "output"):
            assert HOSTILE in await page.text(part)
        assert HOSTILE in await page.text("questions")
        assert await tab.run("document.documentElement.scrollWidth") <= width
        assert await tab.run("document.images.length") == 0
        assert await tab.run("document.title") == "Label · askance"
        unreachable = "[...document.querySelectorAll('button, textarea')].filter((each) => each.tabIndex < 0).length"
        assert await tab.run(unreachable) == 0
        assert tab.complaints == []


async def test_another_site_cannot_label(begin, place, port, browser):  # noqa: F811
    command, other = begin(place / "data.jsonl"), begin(place / "data.jsonl", "-o", place / "other.jsonl")
    async with browser(port) as tab:
        await tab.open(other.address)  # a page of another origin, which knows the address
        sent = (
            f"fetch('{command.address}api/label', {{method: 'POST', mode: 'no-cors', body: '{{}}'}})"
            ".then(() => 'sent', () => 'refused')"
        )
        assert await tab.run(sent) == "refused"  # by its own policy already
        await tab.call("Page.navigate", url="about:blank")
        await tab.run(sent)
    assert command.send("state")["count"]["labelled"] == 0


async def test_a_rater_sees_the_images_of_the_data_and_no_other_machine_is_asked(begin, place, port, browser):  # noqa: F811
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
    ]
    row = {"id": "a", "input": [{"role": "user", "content": parts}], "output": "A dot."}
    (place / "data.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in (row, {**row, "id": "b", "input": "Hi."}))
    )
    command = begin(place / "data.jsonl", "--order", "file")
    async with opened(browser, port, command.address) as page:
        shown = "[...document.querySelectorAll('#input img')].map((each) => each.naturalWidth)"
        await page.until(f"JSON.stringify({shown}) === '[1]'")
        assert await page.tab.run("document.querySelector('#input a').href") == "https://x.test/a.png"
        assert not [each for each in page.tab.requests if "x.test" in each] and page.tab.complaints == []
        await page.press_and_wait("p")
        assert await page.tab.run("document.querySelectorAll('#input img, #input a').length") == 0
    command.end()
    first = json.loads((place / "data-labelled.jsonl").read_text().splitlines()[0])
    assert first["input"] == row["input"] and first["human"] == {"overall": [True]}
