"""The workbench's server: its pages alone use it, wrong messages are said, and a report is in a box of its own."""

from __future__ import annotations

import errno
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import askance
from askance.workbench.workbench import PAGES, Workbench, workbench_application

from ..said import says

TOKEN, RUN = "token-of-the-test", "team/aligned"
SVG = "http://www.w3.org/2000/svg"


@pytest.fixture
async def send(runs: Path) -> AsyncIterator[Callable[..., Any]]:
    runner = web.AppRunner(workbench_application(TOKEN, Workbench(runs, "anna")), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:

        async def call(method: str, path: str, **how: Any) -> Any:
            async with session.request(method, f"http://127.0.0.1:{port}/{path}", **how) as answer:
                text = await answer.text()
                is_json = answer.content_type == "application/json"
                return answer.status, await answer.json() if is_json else text, answer.headers

        yield call
    await runner.cleanup()


async def test_every_file_of_the_pages_is_served_under_the_token_with_a_policy_and_names_no_other_place(
    send: Any,
) -> None:
    folder = Path(askance.__file__).parent / "workbench" / "page"
    parts = [each.name for each in folder.iterdir() if each.suffix in (".css", ".js")]
    for file in [*PAGES, *parts]:
        status, text, headers = await send("GET", f"{TOKEN}/{file}")
        assert status == 200 and text
        assert "http://" not in text.replace(SVG, "") and "https://" not in text
        assert "unsafe" not in headers["Content-Security-Policy"] and "script-src 'self'" in str(headers)
        assert "style=" not in text and "innerHTML" not in text
    for path in ("", "judge", f"{TOKEN}x/", f"{TOKEN}/workbench.py", f"{TOKEN}/api/nothing", "wrong/api/runs"):
        status, _, headers = await send("GET", path)
        assert status == 404 and "Content-Security-Policy" in headers
    status, _, _ = await send("GET", f"{TOKEN}/api/runs", headers={"Sec-Fetch-Site": "cross-site"})
    assert status == 403


async def test_what_the_pages_ask_for_is_answered(send: Any) -> None:
    status, told, _ = await send("GET", f"{TOKEN}/api/runs")
    assert status == 200 and [each["run"] for each in told["runs"]] == [RUN]
    status, judge, _ = await send("GET", f"{TOKEN}/api/judge", params={"run": RUN, "file": "judge.yaml"})
    assert status == 200 and judge["development"]["now"]["kappa"]["low"] is not None
    edit = judge["edit"] | {"threshold": 0.7}
    status, told, _ = await send("POST", f"{TOKEN}/api/figures", json={"run": RUN, "edit": edit})
    assert status == 200 and told["validation"] is None and told["looks"] == 0 and len(told["what"]) == 1
    status, told, _ = await send("POST", f"{TOKEN}/api/test", json={"run": RUN, "edit": edit})
    assert status == 200 and told["look"] == 1 and told["reason"] and told["figures"]["n"] > 0
    status, told, _ = await send("POST", f"{TOKEN}/api/save", json={"run": RUN, "edit": edit})
    assert status == 200 and told["file"] == "judge-1.yaml"
    status, told, _ = await send("GET", f"{TOKEN}/api/compare", params={"before": RUN, "after": RUN})
    assert status == 200 and told["tables"]


@pytest.mark.parametrize(
    ("path", "body", "says_what"),
    [
        ("figures", {"run": RUN}, "edit"),
        ("figures", {"run": "../..", "edit": {"questions": []}}, "There is no run"),
        ("figures", {"run": RUN, "edit": {"questions": []}}, "other questions"),
        ("figures", {"run": RUN, "edit": {"questions": [], "threshold": 2}}, "threshold"),
        ("save", {"run": RUN, "file": "../config.yaml", "edit": {"questions": []}}, "There is no judge"),
        ("save", {"run": RUN, "file": "inputs/checklist.yaml", "edit": {"questions": []}}, "There is no judge"),
        ("test", {"run": RUN, "edit": {"questions": [{"id": "facts", "weight": -1}]}}, "weight"),
    ],
)
async def test_what_is_wrong_is_said(send: Any, path: str, body: Any, says_what: str) -> None:
    status, told, _ = await send("POST", f"{TOKEN}/api/{path}", json=body)
    assert status == 400 and says_what in told["error"]


async def test_a_full_disk_keeps_validation_shut(send: Any, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, judge, _ = await send("GET", f"{TOKEN}/api/judge", params={"run": RUN})

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("askance.prompts.text_files.os.fsync", full)
    edit = judge["edit"] | {"threshold": 0.9}
    status, told, _ = await send("POST", f"{TOKEN}/api/figures", json={"run": RUN, "edit": edit, "validation": True})
    assert status == 507 and says(told["error"], "No space left", "shut")


async def test_a_report_is_made_anew_and_cannot_use_the_workbench(send: Any, runs: Path) -> None:
    (runs / RUN / "report.html").write_text("<script>alert(1)</script>")
    status, text, headers = await send("GET", f"{TOKEN}/report", params={"run": RUN})
    policy = headers["Content-Security-Policy"]
    assert status == 200 and "alert(1)" not in text
    assert policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy and "sha256-" in policy


def test_the_command_prints_the_address_and_ends_with_ctrl_c(askance_command: Any, runs: Path) -> None:
    process = askance_command.start("ui", runs)
    line = process.stdout.readline()
    assert "http://127.0.0.1:" in line
    process.send_signal(signal.SIGINT)
    assert askance_command.finish(process).returncode == 0


def test_a_directory_that_is_not_there_is_bad_input(cli: Any, tmp_path: Path) -> None:
    code, _, err = cli("ui", tmp_path / "nothing")
    assert code == 2 and says(err, "no such directory")
    assert cli("ui", tmp_path, "--by", " ").code == 2
