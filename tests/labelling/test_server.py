"""The page's server: nobody but the page can use it, and what it is sent is checked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from askance.labelling.label_options import LabelOptions
from askance.labelling.label_session import LabelSession, open_session
from askance.labelling.labels_file import Entry
from askance.labelling.local_server import new_token
from askance.prompts.errors import AskanceError
from askance.prompts.examples import Example
from askance.workbench.label import MOST_BYTES, label_application

TOKEN = new_token()
SVG = "http://www.w3.org/2000/svg"
LABEL = {"example": "a", "human": {"overall": True}, "comment": "Fine."}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabelSession:
    """Labels of two outputs; the disk is full for one of them."""
    data = [Example(id=name, input="i", output="o") for name in ("a", "full")]
    found = open_session(data, tmp_path / "out.jsonl", LabelOptions(order="file"), None, None)
    append = found.file.append

    def write(entry: Entry) -> None:
        if entry.example == "full":
            raise AskanceError("x.labels.jsonl: cannot be written (No space left on device).")
        append(entry)

    monkeypatch.setattr(found.file, "append", write)
    return found


def kept(session: LabelSession) -> list[dict[str, Any]]:
    """The lines of the labels file."""
    return (
        [json.loads(line) for line in session.file.path.read_text().splitlines()] if session.file.path.exists() else []
    )


@pytest.fixture
async def send(session: LabelSession) -> AsyncIterator[Callable[..., Any]]:
    runner = web.AppRunner(label_application(TOKEN, session), access_log=None, shutdown_timeout=0.1)
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


async def test_the_page_and_its_parts_are_served_under_the_token_alone(send: Any, session: LabelSession) -> None:
    for file, kind in (("", "text/html"), ("examples.js", "text/javascript"), ("examples.css", "text/css")):
        status, text, headers = await send("GET", f"/{TOKEN}/{file}")
        assert status == 200 and headers["Content-Type"].startswith(kind) and text
        assert "http://" not in text.replace(SVG, "") and "https://" not in text
        policy = dict(each.split(maxsplit=1) for each in headers["Content-Security-Policy"].split("; "))
        assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    for path in (
        "/",
        "/examples.js",
        f"/{TOKEN[:-1]}/",
        f"/{TOKEN}x/",
        "/%00/",
        f"/{TOKEN}/../",
        f"/{TOKEN}/server.py",
    ):
        status, text, headers = await send("GET", path)
        assert status == 404 and TOKEN not in text
        assert "Content-Security-Policy" in headers
    status, _, _ = await send("POST", "/wrong/api/label", json=LABEL)
    assert status == 404
    assert kept(session) == []


async def test_what_is_said_is_kept(send: Any, session: LabelSession) -> None:
    for action in ("draft", "label", "skip"):
        assert (await send("POST", f"/{TOKEN}/api/{action}", json=LABEL))[0] == 200
    assert (await send("POST", f"/{TOKEN}/api/undo", json={}))[0] == 200
    assert (await send("GET", f"/{TOKEN}/api/state"))[0] == 200
    rows = kept(session)
    assert [each.get("kind", "label") for each in rows] == ["draft", "label", "skip", "undo"]
    assert (rows[1]["example"], rows[1]["human"], rows[1]["comment"]) == ("a", {"overall": True}, "Fine.")


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
async def test_other_hosts_and_other_sites_are_refused(
    send: Any, session: LabelSession, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "api/state"), ("POST", "api/label"), ("GET", "")):
        status, _, _ = await send(method, f"/{TOKEN}/{path}", headers=headers, json=LABEL if method == "POST" else None)
        assert status == 403
    assert kept(session) == []


@pytest.mark.parametrize(
    "headers", [{"Host": "localhost:PORT"}, {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"}]
)
async def test_the_page_itself_is_heard(send: Any, session: LabelSession, headers: dict[str, str]) -> None:
    assert (await send("POST", f"/{TOKEN}/api/label", headers=headers, json=LABEL))[0] == 200
    assert len(kept(session)) == 1


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
        ({"json": {"example": "full", "comment": "x"}}, 507, "No space left"),
        ({"json": {"example": "a", "comment": "x" * MOST_BYTES}}, 413, "Too Large"),
    ],
    ids=lambda each: None,
)
async def test_what_is_wrong_is_said(send: Any, how: Any, status: int, says: str) -> None:
    found, text, headers = await send("POST", f"/{TOKEN}/api/label", **how)
    assert found == status
    assert says in text and "error" in text
    assert headers["Content-Type"].startswith("application/json")
