"""The wall clock as some machines have it: it jumps ahead, back, or to and fro, while a command runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .paid import Till, difference, results_of
from .processes import CommandRunner, Jumps
from .world import WORKS, write_inputs

DAY = 86_400.0
AT = 0.4
"""Seconds after the start at which it jumps first."""
JUMPS: Mapping[str, Jumps] = {
    "an hour ahead": ((AT, 3600.0),),
    "an hour back": ((AT, -3600.0),),
    "40 days ahead": ((AT, 40 * DAY),),
    "to 1970": ((AT, -time.time()),),
    "to and fro": tuple((AT * step, DAY * (-1) ** step) for step in range(1, 20)),
}
SLOW = 0.15
"""Seconds that a call takes, so that the clock jumps while some are in flight."""


def at_jumps(folder: Path, commands: CommandRunner) -> list[dict[str, Any]]:
    """What comes of commands while the clock jumps.

    Returns:
        A row each: ``jump``, ``command``, ``twice`` (requests beyond those of a run left alone) and ``differs``.
    """
    rows: list[dict[str, Any]] = []
    for name in ("evaluate", "evaluate --engine batch", "align"):
        work, till = WORKS[name], Till()
        with till.server(work, delay=0.0 if name == "align" else SLOW / 3, looks=2) as server:
            arguments = work.command(server.url)
            write_inputs(folder / "alone")
            commands.run(arguments, folder / "alone").check(name)
            whole, alone = till.lives[-1], results_of(folder / "alone", work)
            for jump, jumps in JUMPS.items():
                place = folder / f"{name}-{jump}".replace(" ", "-")
                write_inputs(place)
                till.begin(anew=True)
                commands.run(arguments, place, clock=jumps).check(f"{name}, the clock {jump}")
                differs = difference(alone, results_of(place, work))
                rows.append({"jump": jump, "command": name, "twice": till.twice(whole, 0)[0], "differs": differs})
    return rows


def two_on_one_store(
    folder: Path, commands: CommandRunner, other: CommandRunner, which: Sequence[str] = tuple(JUMPS)
) -> list[dict[str, Any]]:
    """The same for two that share a store and run at once; rows as of :func:`at_jumps`."""
    rows: list[dict[str, Any]] = []
    work = WORKS["evaluate"]
    for jump in which:
        jumps = JUMPS[jump]
        till = Till()
        places = [folder / f"two-{each}-{jump}".replace(" ", "-") for each in "ab"]
        with till.server(work, delay=SLOW) as server:
            for each, place in zip((commands, other), places, strict=True):
                write_inputs(place)
                each.start(work.command(server.url), place, cache=places[0] / "cache", clock=jumps)
            for each in (commands, other):
                each.wait().check(f"one of two, the clock {jump}")
        twice = till.calls - len(till.lives[-1])
        differs = difference(*(results_of(place, work) for place in places))
        rows.append({"jump": jump, "command": "two evaluate on one store", "twice": twice, "differs": differs})
    return rows


def killed_with_a_batch_open(folder: Path, commands: CommandRunner) -> list[dict[str, Any]]:
    """The same for one that is killed while a batch is open, and goes on after the clock has jumped."""
    rows: list[dict[str, Any]] = []
    work = WORKS["evaluate --engine batch"]
    for jump in ("40 days ahead", "to 1970"):
        till, place = Till(), folder / f"killed-{jump}".replace(" ", "-")
        with till.server(work, looks=2) as server:
            write_inputs(place)
            looks = 0

            def second_look() -> None:
                nonlocal looks
                looks += 1
                if looks == 12:
                    commands.kill()

            till.on_call = second_look
            killed = commands.run(work.command(server.url), place)
            till.on_call = lambda: None
            till.begin()
            commands.run(work.command(server.url), place, clock=((0.0, JUMPS[jump][0][1]),)).check(jump)
        sent = sum(till.lives, start=type(till.lives[0])())
        name = "killed with a batch open" if killed.code == -9 else "not killed"
        rows.append({"jump": jump, "command": name, "twice": sent.total() - len(sent), "differs": []})
    return rows
