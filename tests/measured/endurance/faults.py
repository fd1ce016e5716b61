"""Faulty endpoints: one fails three replies in ten, the other ends a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askance.prompts.verdicts import read_verdicts
from askance.testing import ServerReply
from tests.doubles import FINAL, FaultyServer

from .processes import CommandRunner
from .world import EVALUATE, reply, write_inputs

SHARE = 0.3
TIMEOUT = 2
"""Seconds for which the command waits for an answer."""
QUESTIONS = 3


def at_faults(calls: int, folder: Path, commands: CommandRunner) -> dict[str, Any]:
    """Evaluate at an endpoint that fails in every way there is, then once more at a sound one.

    Returns:
        ``calls``, ``faults`` by name, ``missing`` after the first run, ``wrong`` (verdicts that are not those of a
        sound endpoint), ``missing_then`` and ``twice`` (answers that had come whole and were asked for again).
    """
    examples = -(-calls // QUESTIONS)
    with FaultyServer(reply, share=0) as server:
        right = _verdicts(server, folder / "sound", commands, examples, at_once=64)
        server.answered.clear()
        server.share = SHARE
        found = _verdicts(server, folder / "faulty", commands, examples, at_once=64)
        server.share = 0
        then = _verdicts(server, folder / "faulty", commands, examples, at_once=64, again=True)
        asked = Counter(json.dumps(each, sort_keys=True) for each in server.answered)
    return {
        "calls": len(right),
        "faults": dict(sorted(server.made.items())),
        "missing": len(right) - len(found),
        "wrong": sum(right[key] != value for key, value in (*found.items(), *then.items())),
        "missing_then": len(right) - len(then),
        "twice": asked.total() - len(asked),
    }


def at_final_faults(folder: Path, commands: CommandRunner) -> list[dict[str, Any]]:
    """End a run by a fault that asking again does not mend, then go on at a sound endpoint."""
    rows = []
    for name in FINAL:
        healthy = 60

        def script(body: Mapping[str, Any]) -> ServerReply:
            nonlocal healthy
            healthy -= 1
            server.share = float(healthy < 0)
            return reply(body)

        with FaultyServer(script, kinds=[name]) as server:
            place = folder / name.replace(" ", "-")
            write_inputs(place)
            ended = commands.run(_evaluate(server, 4), place)
            healthy = 10**9
            then = commands.run(_evaluate(server, 4), place)
            asked_for = Counter(json.dumps(each, sort_keys=True) for each in server.answered)
        rows.append(
            {
                "fault": name,
                "code": ended.code,
                "said": _last_line(ended.said),
                "code_then": then.code,
                "twice": asked_for.total() - len(asked_for),
            }
        )
    return rows


def _evaluate(server: FaultyServer, at_once: int) -> list[str]:
    return f"{EVALUATE} --api-base {server.url} --max-concurrency {at_once} --timeout {TIMEOUT}".split()


def _verdicts(
    server: FaultyServer, place: Path, commands: CommandRunner, examples: int, *, at_once: int, again: bool = False
) -> dict[tuple[str, str], float | None]:
    """P(yes) by example and question, of the verdicts that are there."""
    if not again:
        write_inputs(place, examples)
    commands.run(_evaluate(server, at_once), place).check("evaluate")
    verdicts = read_verdicts(place / "verdicts.jsonl")
    return {(each.example, each.question): each.p_yes for each in verdicts if each.status == "ok"}


def _last_line(said: str) -> str:
    return next((line for line in reversed(said.splitlines()) if line.strip()), "")
