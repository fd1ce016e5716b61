"""Processes that are killed again and again, and then left to come to their end."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path
from typing import Any

from .paid import Till, difference, left_alone, results_of
from .processes import CommandRunner, Ended
from .world import Work, write_inputs

A_RUN = 10
"""A process is killed at most so often before the run may end, and the next one begins."""


def killed(work: Work, kills: int, folder: Path, commands: CommandRunner, seed: int = 0) -> dict[str, Any]:
    """Kill a command ``kills`` times, half of them at a call, and compare it with a run that was left alone.

    Returns:
        ``kills``, ``runs``, ``calls`` of a run left alone, ``twice`` (requests asked again), ``beyond`` (of them those
        not in flight), ``differs`` (what is not as in the run left alone) and ``refused`` (ends other than by a kill).

    Raises:
        AskanceError: The run that is left alone fails.
    """
    till, chance = Till(), random.Random(f"{work.name}/{seed}")
    row: dict[str, Any] = {"kills": 0, "runs": 0, "calls": 0, "twice": 0, "beyond": 0, "differs": [], "refused": []}
    with till.server(work) as server:
        arguments = work.command(server.url)
        alone, ended = left_alone(arguments, work, folder / "alone", commands)
        whole, row["calls"] = till.lives[-1], till.calls
        while row["kills"] < kills:
            place = folder / "killed"
            shutil.rmtree(place, ignore_errors=True)
            write_inputs(place)
            till.begin(anew=True)
            wanted = min(A_RUN, kills - row["kills"])
            while (
                last := _run(arguments, place, commands, till, _moment(chance, row["calls"], ended) if wanted else None)
            ).code == -9:
                server.settle()  # what the dead process had sent is its own, not the next one's
                row["kills"] += 1
                wanted -= 1
                till.begin()
            row["runs"] += 1
            if last.code:
                row["refused"].append(last.said[-300:])
            twice, beyond = till.twice(whole, work.in_flight)
            row["twice"] += twice
            row["beyond"] += beyond
            row["differs"] += difference(alone, results_of(place, work))
    return row


def _moment(chance: random.Random, calls: int, alone: Ended) -> int | float:
    """Draw the moment of a kill: the number of a call, from 1, or seconds."""
    return chance.randint(1, max(2, calls // A_RUN * 2)) if chance.random() < 0.5 else chance.uniform(0, alone.seconds)


def _run(arguments: list[str], place: Path, commands: CommandRunner, till: Till, kill: int | float | None) -> Ended:
    timer = threading.Timer(kill, commands.kill) if isinstance(kill, float) else None
    left = kill if isinstance(kill, int) else 0

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            commands.kill()

    till.on_call = count
    commands.start(arguments, place)
    if timer is not None:
        timer.start()
    ended = commands.wait()
    till.on_call = lambda: None
    if timer is not None:
        timer.cancel()
        timer.join()
    return ended
