"""The page's server: nobody but the page can use it, and what it is sent is checked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from askance.labelling.label import MOST_BYTES, application, new_token
from askance.prompts.errors import AskanceError, InputError

TOKEN = new_token()
SVG = "http://www.w3.org/2000/svg"
LABEL = {"example": "a", "human": {"overall": True}, "comment": "Fine."}


class Desk:
    """Keeps what it is told, and refuses two ids."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def __call__(self, action: str, said: Any) -> dict[str, Any]:
        self.told.append((action, said))
        if said is not None and said.example == "unknown":
            raise InputError("There is no output 'unknown' in the data.")
        if said is not None and said.example == "full":
            raise AskanceError("x.labels.jsonl: cannot be written (No space left on device).")
        return {"item": None, "heard": action}


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def send(desk: Desk) -> AsyncIterator[Callable[..., Any]]:
    runner = web.AppRunner(application(TOKEN, desk), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:

        async def call(method: str, path: str, **how: Any) -> tuple[int, str, Any]:
            headers = {name: value.replace("PORT", str(port)) for name, value in how.pop("headers", {}).items()}
            async with session.request(method, f"http://127.0.0.1:{port}{path}", headers=headers, **how) as answer:
                return answer.status, await answer.text(), answer.headers

        yield call
    await runner.cleanup()


async def test_the_page_and_its_parts_are_served_under_the_token_alone(send: Any, desk: Desk) -> None:
    for file, kind in (("", "text/html"), ("label.js", "text/javascript"), ("label.css", "text/css")):
        status, text, headers = await send("GET", f"/{TOKEN}/{file}")
        assert status == 200 and headers["Content-Type"].startswith(kind) and text
        assert "http://" not in text.replace(SVG, "") and "https://" not in text
        policy = dict(each.split(maxsplit=1) for each in headers["Content-Security-Policy"].split("; "))
        assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    for path in ("/", "/label.js", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "/%00/", f"/{TOKEN}/../", f"/{TOKEN}/server.py"):
        status, text, headers = await send("GET", path)
        assert status == 404 and TOKEN not in text
        assert "Content-Security-Policy" in headers
    status, _, _ = await send("POST", "/wrong/api/label", json=LABEL)
    assert status == 404
    assert desk.told == []


async def test_what_is_said_is_handed_on(send: Any, desk: Desk) -> None:
    for action in ("label", "draft", "skip"):
        assert (await send("POST", f"/{TOKEN}/api/{action}", json=LABEL))[0] == 200
    assert (await send("POST", f"/{TOKEN}/api/undo", json={}))[0] == 200
    assert (await send("GET", f"/{TOKEN}/api/state"))[0] == 200
    assert [action for action, _ in desk.told] == ["label", "draft", "skip", "undo", "state"]
    assert desk.told[0][1].model_dump() == LABEL
    assert [said for _, said in desk.told[3:]] == [None, None]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:PORT"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=lambda each: " ".join(next(iter(each.items()))),
)
async def test_other_hosts_and_other_sites_are_refused(send: Any, desk: Desk, headers: dict[str, str]) -> None:
    for method, path in (("GET", "api/state"), ("POST", "api/label"), ("GET", "")):
        status, _, _ = await send(method, f"/{TOKEN}/{path}", headers=headers, json=LABEL if method == "POST" else None)
        assert status == 403
    assert desk.told == []


@pytest.mark.parametrize(
    "headers", [{"Host": "localhost:PORT"}, {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"}]
)
async def test_the_page_itself_is_heard(send: Any, desk: Desk, headers: dict[str, str]) -> None:
    assert (await send("POST", f"/{TOKEN}/api/label", headers=headers, json=LABEL))[0] == 200
    assert len(desk.told) == 1


@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ({"data": b'{"example": "a"}', "headers": {"Content-Type": "text/plain"}}, 415, "JSON is needed"),
        ({"data": b"{", "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
        ({"json": {}}, 400, "'example' is missing"),
        ({"json": {"example": "a", "human": {"overall": "1"}}}, 400, "human.overall"),
        ({"json": {"example": "a", "human": {"overall": None}}}, 400, "human.overall"),
        ({"json": {"example": "a", "rater": "ben"}}, 400, "rater"),
        ({"json": {"example": "a", "comment": "x" * 100_001}}, 400, "comment"),
        ({"json": {"example": "unknown"}}, 400, "no output 'unknown'"),
        ({"json": {"example": "full"}}, 507, "No space left"),
        ({"json": {"example": "a", "comment": "x" * MOST_BYTES}}, 413, "Too Large"),
    ],
    ids=lambda each: None,
)
async def test_what_is_wrong_is_said(send: Any, how: Any, status: int, says: str) -> None:
    found, text, headers = await send("POST", f"/{TOKEN}/api/label", **how)
    assert found == status
    assert says in text and "error" in text
    assert headers["Content-Type"].startswith("application/json")
