"""Every snippet of the README is run, in its order, as a user would: only the models are stand-ins."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from askance.testing import StandInServer

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(bash|python|json|yaml)(?: ([\w.]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
SET_UP = ("make demo", "make test", "pip install")


def judge(body: dict) -> str | float:
    text = body["messages"][-1]["content"]
    if "response_format" not in body:
        return "Because of the words." if "In one short sentence" in text else random.Random(text).random()
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    replies = {
        "requirements": ["The summary is short."],
        "questions": [{"text": "Is the summary short?", "violation": "Ten sentences.", "dimension": "brevity"}],
        "quote": "x",
        "fact": "x",
        "kind": "some kind",
        "answer_no_if": "the output has some fault of this kind",
        "answer_yes_even_if": "the output has some oddity of this kind",
        "relation": "duplicate",
        "of": 1,
        "merged": "",
        "part": 1,
        "action": "add",
        "text": f"A new rule number {random.Random(text).random():.3f}.",
    }
    return json.dumps({name: replies[name] for name in fields})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def server():
    with StandInServer(judge) as server:
        yield server


def snippets() -> list[tuple[str, str, str]]:
    return [(match[1], match[2] or "", match[3]) for match in BLOCK.finditer(README.read_text(encoding="utf-8"))]


def stand_in(text: str, url: str) -> str:
    text = re.sub(r"\b(local|anthropic|openai)/[\w.-]+", "openai/stand-in", text)
    return re.sub(r"http://127\.0\.0\.1:8000/v1", url, text)


def test_the_set_up_is_two_commands_of_the_makefile():
    bash = [text for kind, _, text in snippets() if kind == "bash"]
    assert [line for text in bash for line in text.split("\n") if line.startswith("make ")] == [
        "make demo",
        "make test",
    ]
    makefile = README.with_name("Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)


@pytest.mark.parametrize("index", range(len(snippets())))
def test_snippet_runs(index: int, folder: Path, server: StandInServer):
    kind, name, text = snippets()[index]
    if name:
        (folder / name).write_text(text, encoding="utf-8")
        return
    assert kind in ("bash", "python"), "a data snippet needs a file name after its language"
    lines = [line for line in text.splitlines() if not line.startswith(SET_UP)]
    if not any(line.strip() and not line.startswith(("#", "askance models pull", "cd ")) for line in lines):
        return
    binaries = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_BASE_URL": server.url,
        "ASKANCE_CACHE": str(folder / "cache"),
    }
    code = stand_in("\n".join(line for line in lines if not line.startswith("askance models pull")), server.url)
    command = ["bash", "-euc", code] if kind == "bash" else [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
