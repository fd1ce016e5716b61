"""A headless browser for tests of pages, driven over its own protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --remote-debugging-port=0"


class Tab:
    """One page of the browser; what it complained about and asked for is kept."""

    def __init__(self, socket):
        self._socket, self._count = socket, 0
        self.complaints, self.requests = [], []

    async def call(self, method, **parameters):
        self._count += 1
        await self._socket.send_json({"id": self._count, "method": method, "params": parameters})
        while True:
            told = await self._socket.receive_json(timeout=20)
            if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.complaints.append(json.dumps(told["params"]))
            elif told.get("method") == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"]["url"])
            elif told.get("id") == self._count:
                return told["result"]

    async def run(self, expression):
        """The value of a JavaScript expression."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def open(self, address):
        await self.call("Page.navigate", url="about:blank")
        await self.call("Page.navigate", url=address)
        for _ in range(200):
            if await self.run("document.readyState === 'complete' && performance.timing.loadEventEnd > 0"):
                return
            await asyncio.sleep(0.03)
        raise AssertionError(f"{address} did not load")

    async def processor_time(self, address):
        """Seconds that the page's thread was busy until the page was open, whatever else the machine is doing."""
        await self.call("Performance.enable", timeDomain="threadTicks")
        await self.open(address)
        metrics = (await self.call("Performance.getMetrics"))["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


@contextmanager
def started_browser(profile):
    """A browser with its files in a folder; gives the port that it listens on."""
    command = [BROWSER, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    told = profile / "DevToolsActivePort"
    try:
        for _ in range(400):
            if told.exists() and len(told.read_text().splitlines()) > 1:
                break
            time.sleep(0.05)
        yield int(told.read_text().splitlines()[0])
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="session")
def port(tmp_path_factory):
    """A browser for all tests here, and the port that it listens on."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    with started_browser(tmp_path_factory.mktemp("profile")) as port:
        yield port


@asynccontextmanager
async def _browser(port):
    """A fresh page."""
    async with aiohttp.ClientSession() as session:
        async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
            page = await answer.json()
        async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                await tab.call(f"{domain}.enable")
            yield tab
        async with session.get(f"http://127.0.0.1:{port}/json/close/{page['id']}"):
            pass


@pytest.fixture
def browser():
    """Opens a fresh page in the browser at a port."""
    return _browser
