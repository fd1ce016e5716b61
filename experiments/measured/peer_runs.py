"""Another tool's run: an environment of its own, a script in it, and a server that counts what it asks."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...prompts.errors import AskanceError, InputError
from .counting_server import LEARN, TEST, CountingServer

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)
HERE = Path(__file__).parent
PACKAGES = {
    "mlflow": (
        *("mlflow-skinny==3.17.2", "dspy==3.4.1", "gepa==0.1.4", "litellm==1.104.5"),
        *("jinja2", "pandas", "alembic<2", "sqlalchemy<2.1"),
    ),
    "autochecklist": ("autochecklist==0.2.3", "numpy", "networkx"),
    "aiohttp": ("aiohttp==3.14.5",),
    "openai": ("openai==3.54.0",),
    "litellm": ("litellm==1.106.2",),
    "dspy": ("dspy==3.4.1",),
    "deepeval": ("deepeval==4.3.1",),
    "autorubric": ("autorubric==1.6.1",),
}
"""What is installed for each environment."""


def environment(directory: Path, name: str) -> Path:
    """The Python of an environment, which is made where it is not there or was made for other packages.

    Raises:
        AskanceError: pip could not install what it needs.
    """
    home, wanted = directory / "environments" / name, "\n".join(PACKAGES[name])
    python, mark = home / "bin" / "python", home / "packages.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return python
    logger.info("Making the environment %s", home)
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "-q", *PACKAGES[name]],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise AskanceError(f"The environment {home} could not be made: {said[-1] if said else 'no word why'}")
    mark.write_text(wanted, encoding="utf-8")
    return python


def peer_run(
    python: Path, script: Path, upstream: str, folder: Path, task: Mapping[str, Any], *, embeddings: str = "minilm"
) -> dict[str, Any]:
    """Let a peer learn and judge, or read what it did before.

    Args:
        python: That of its environment.
        script: What it runs, with the files of task and result.
        upstream: Address of the model's server, with ``/v1``.
        folder: Where the task, the calls, the result and what it printed are kept.
        task: As of :func:`task_file`.
        embeddings: Who answers a peer that asks for embeddings.

    Returns:
        The script's result, and ``counts`` by phase.

    Raises:
        InputError: The folder holds another task.
        AskanceError: The script failed; says where its last words are.
    """
    kept, result = folder / "task.json", folder / "result.json"
    if kept.is_file() and json.loads(kept.read_text(encoding="utf-8")) != task:
        raise InputError(
            f"{folder} holds a run with other data or settings; give another directory, or take this one away."
        )
    if result.is_file():
        return dict(json.loads(result.read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(task, indent=1), encoding="utf-8")
    found, counts = asyncio.run(
        _run(python, script, CountingServer(upstream, folder / "calls.jsonl", embeddings=embeddings), folder, task)
    )
    found |= {"counts": counts}
    result.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


async def _run(
    python: Path, script: Path, counting: CountingServer, folder: Path, task: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    asked, answered, log = (folder / name for name in ("asked.json", "answered.json", "log.txt"))
    for left in (folder / "mlflow.db", answered):  # of an earlier attempt
        left.unlink(missing_ok=True)
    async with counting as server:
        asked.write_text(json.dumps({**task, "server": server.url}), encoding="utf-8")
        with log.open("wb") as said:
            child = await asyncio.create_subprocess_exec(
                *(str(each) for each in (python, script, asked, answered)), stdout=said, stderr=said, cwd=folder
            )
            try:
                code = await child.wait()
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if code or not answered.is_file():
            raise AskanceError(f"{script.name} ended with code {code}; what it said last is in {log}.")
        return json.loads(answered.read_text(encoding="utf-8")), {each: server.counted(each) for each in (LEARN, TEST)}
