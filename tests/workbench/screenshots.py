"""Two pictures of the workbench for the README, of runs on the demo's data that a scripted judge makes; no model is fetched.

``make screenshots`` writes ``docs/workbench-runs.png`` and ``docs/workbench-judge.png`` anew. It needs Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import askance
from askance.prompts.checklist import Checklist
from askance.prompts.examples import load_examples

from ..report.conftest import _browser, started_browser
from ..worlds import Answering, help_with, share
from .test_workbench_browser import opened, until

ROOT = Path(askance.__file__).resolve().parent
DEMO = ROOT / "prompts" / "demo" / "align"
MOST_BYTES = 120_000
WIDTH, SCALE = 1440, 0.75
FAULTS = ("names_price", "gives_away", "promises_day", "repair_yourself")
"""Questions of which each failed reply has one fault."""
QUESTIONS = [
    {"id": "gives_away", "text": "Does the reply give something away or lower a price?", "good": "no"},
    {"id": "promises_day", "text": "Does the reply promise a day or a time?", "good": "no"},
    {"id": "names_price", "text": "Does the reply name a price?", "good": "no"},
    {"id": "repair_yourself", "text": "Does the reply tell the customer to repair it himself?", "good": "no"},
    {"id": "answers_all", "text": "Does the reply answer everything that the customer asked?", "good": "yes"},
    {"id": "friendly", "text": "Is the reply friendly?", "good": "yes"},
]
RULE = "names a sum before anyone has seen the bicycle"


class Workshop(Answering):
    """A judge that finds most faults of the replies that people failed, and prices once a lesson names them."""

    def __init__(self) -> None:
        self.failed = {each.output: each.human["overall"] != (1.0,) for each in load_examples(DEMO / "examples.jsonl")}

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields = (schema or {}).get("properties", {})
        last = messages[-1][1]
        if "part" in fields and "The lesson that it must say: " not in last:
            return "none"
        if (helped := help_with(messages, fields)) is not None:
            return json.dumps(helped)
        told = "\n".join(content for _, content in messages)
        question = next((each["id"] for each in QUESTIONS if each["text"] in told), None)
        output = next((each for each in self.failed if each in told), "")
        note = {"quote": "these words", "fact": "the reply differs", "kind": RULE}
        if any(name.startswith("answer_") for name in fields):
            if question != "names_price":
                return "none"
            return json.dumps(note | {name: RULE for name in fields if name.startswith("answer_")})
        if question is None:
            return "none"
        if "what in the output decides" in messages[-1][1]:
            return "The words of the reply decide."
        p_yes = self.p_yes(question, output, RULE in told)
        if "explanation" in fields:
            return json.dumps({"answer": "yes" if p_yes >= 0.5 else "no", "explanation": "The words of the reply."})
        return p_yes

    def p_yes(self, question: str, output: str, lesson: bool) -> float:
        """What the judge thinks of an output; ``lesson`` says whether its prompt has the rule about prices."""
        noise = share("noise", output, question)
        if question not in FAULTS:
            return 0.8 + 0.15 * noise
        mine = self.failed[output] and FAULTS[int(len(FAULTS) * share("fault", output) ** 1.7)] == question
        found = 0.04 if not mine else 0.95 if lesson else 0.1 if question == "names_price" else 0.9
        return (0.75 + 0.2 * noise) if share("found", output, question) < found else 0.03 + 0.15 * noise


def make_runs(folder: Path) -> None:
    """Two finished runs and one that was stopped."""
    world, checklist = (
        Workshop(),
        Checklist.model_validate({"task": "Answer a customer's mail.", "questions": QUESTIONS}),
    )
    usual: dict[str, Any] = {
        "embedder": "words",
        "update": "edits",
        "trial": False,
        "max_iterations": 2,
        "mode": "each",
    }
    for name, options in {"july/house-rules": {}, "august/house-rules": {"alpha": 0.3, "seed": 5}}.items():
        askance.align(
            DEMO / "examples.jsonl",
            checklist=checklist,
            model=world.model("scripted/judge"),
            run=folder / name,
            **(usual | options),
        )
    shutil.copytree(folder / "august" / "house-rules", folder / "august" / "stricter")
    (folder / "august" / "stricter" / "result.json").unlink()


async def picture(folder: Path, port: int, path: str, there: str, height: int) -> bytes:
    """One page as PNG."""

    @asynccontextmanager
    async def light(port: int) -> Any:
        async with _browser(port) as tab:
            await tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
            yield tab

    async with opened(folder, light, port, path, WIDTH) as tab:
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": SCALE, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        await until(tab, there)
        await tab.run("if (document.getElementById('place')) document.getElementById('place').hidden = true; 0")
        await asyncio.sleep(1)
        return base64.b64decode((await tab.call("Page.captureScreenshot", format="png"))["data"])


def write(name: str, data: bytes) -> None:
    """Write a picture. Raises ValueError where it is too large for a README."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"{name}: {len(data):,} bytes, and {MOST_BYTES:,} are the most.")
    (ROOT / "docs" / name).write_bytes(data)
    print(f"docs/{name}: {len(data):,} bytes")


def main() -> None:
    """Make the runs and both pictures."""
    with tempfile.TemporaryDirectory() as place, started_browser(Path(place)) as port:
        folder = Path(place) / "runs"
        make_runs(folder)
        run = "august/house-rules"
        rows = "document.querySelectorAll('#rows tr').length === 3"
        write("workbench-runs.png", asyncio.run(picture(folder, port, "", rows, 580)))
        questions = [{"id": each["id"], "on": each["id"] != "friendly", "good": each["good"]} for each in QUESTIONS]
        edit = quote(json.dumps({"questions": [{**each, "weight": 1} for each in questions], "threshold": 0.8}))
        shown = "document.querySelector('#splits').textContent.includes('Before')"
        write("workbench-judge.png", asyncio.run(picture(folder, port, f"judge?run={quote(run)}#{edit}", shown, 720)))


if __name__ == "__main__":
    main()
