"""``--dry-run`` reads every file that the command will read: a damaged one is named before anything is bought."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.memory.memory_directory import MEMORY_FILE

from ..said import says

BROKEN = b"\x9c\xff"
"""No text in any encoding that is read."""
JUDGED = "{data} --checklist {checklist} --prompt {prompt} --model openai/m"
COMMANDS = {
    "generate": "{data} --generator openai/m --prompt {writer}",
    "evaluate": JUDGED,
    "diagnose": JUDGED,
    "select": "{data} --candidates {checklist} --prompt {prompt} --model openai/m -k 2 -o {out}",
    "align": JUDGED,
    "migrate": "{data} --checklist {checklist} --source openai/old --target openai/m --prompt {prompt}",
    "tune": "{data} --generator openai/m --prompt {writer} --judge openai/j --checklist {checklist}",
    "compare": "{data} --checklist {checklist} --prompt {prompt} --model openai/m --judge binary,random_k,own --own-prompt {own}",
    "weigh": "{pairs} --checklist {checklist} --prompt {prompt} --model openai/m -o {out}",
}
"""By command, what runs as it is."""
FURTHER = {
    "generate": ("--schema", "--config"),
    "evaluate": ("--weights", "--calibration", "--judge", "--schema", "--config"),
    "diagnose": ("--verdicts", "--config"),
    "select": ("--verdicts", "--config"),
    "align": ("--weights", "--memory", "--from", "--config"),
    "migrate": ("--source-prompt", "--weights", "--memory", "--config"),
    "tune": ("--judge-prompt", "--schema", "--memory", "--from", "--weights", "--config"),
    "compare": ("--candidates", "--weights", "--config"),
    "weigh": ("--config",),
}
CASES = [
    *((command, each[1:-1]) for command, line in COMMANDS.items() for each in line.split() if each[0] == "{"),
    *((command, option) for command, options in FURTHER.items() for option in options),
]


@pytest.fixture
def project(sandbox: Path, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A starter project, with the further files of the lines above."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert cli("init", ".").code == 0
    Path("writer.md").write_text("Write it in a sentence.", encoding="utf-8")
    Path("own.md").write_text("Rate the output from 1 to 5.\n\n{output}\n\nAnswer with the number.", encoding="utf-8")
    pair = {"id": "1", "prompt": "Where?", "chosen": "At the depot.", "rejected": "No."}
    Path("pairs.jsonl").write_text(
        "".join(json.dumps(pair | {"id": str(n), "prompt": f"Where is {n}?"}) + "\n" for n in range(40))
    )
    return sandbox


def arguments(command: str, **changed: str) -> list[str]:
    files = {"data": "examples.jsonl", "checklist": "checklist.yaml", "prompt": "prompt.md", "writer": "writer.md"}
    files |= {"own": "own.md", "pairs": "pairs.jsonl", "out": "out.yaml"}
    return [command, *COMMANDS[command].format(**files | changed).split(), "--dry-run"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_line_of_each_command_runs(command: str, project: Path, cli: Callable[..., Any]) -> None:
    done = cli(*arguments(command))
    assert done.code == 0, done


@pytest.mark.parametrize(("command", "what"), [case for case in CASES if case[1] != "out"])
def test_a_damaged_input_is_named_in_a_dry_run(command: str, what: str, project: Path, cli: Callable[..., Any]) -> None:
    name = {"data": "bad.jsonl", "pairs": "bad.jsonl", "--schema": "bad.json", "--verdicts": "bad.jsonl"}.get(what)
    broken = project / (name or ("bad.yaml" if what in ("checklist", "--judge", "--config", "--candidates") else "bad"))
    broken.write_bytes(BROKEN)
    if what == "--memory":
        broken = project / "memory"
        broken.mkdir()
        (broken / MEMORY_FILE).write_bytes(BROKEN)
    if what == "--from":
        broken = project / "run"
        shutil.copytree(Path(__file__).parents[1] / "data" / "released_run", broken)
        (broken / "config.yaml").write_bytes(BROKEN)
    given = [*arguments(command), what, str(broken)] if what[0] == "-" else arguments(command, **{what: str(broken)})
    if what == "--judge":  # in place of the judge of the line
        given = [command, "examples.jsonl", what, str(broken), "--dry-run"]
    if what == "--verdicts" and command == "select":
        given = [each for each in given if each not in ("--prompt", "prompt.md")]
    if what == "--from":
        given = [command, *(["examples.jsonl"] if command == "align" else []), what, str(broken), "--dry-run"]
    done = cli(*given)
    assert done.code == 2 and says(done.err, broken.name), done
    assert not (project / "cache" / "store.db").exists()
