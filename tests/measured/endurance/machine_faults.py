"""A machine that fails: its disk fills, or its wall clock jumps, while a command runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .paid import Till, difference, left_alone, results_of
from .processes import CommandRunner, Ended, Jumps
from .world import WORKS, write_inputs

_IN_A_SMALL_ONE = (
    'cp -a "$1" "$1.in" && mount -t tmpfs -o size="$2"k none "$1" && cp -a "$1.in/." "$1" && mkdir "$1.out" && '
    'place="$1"; shift 2; cd "$place"; ASKANCE_CACHE="$place/cache" "$@" >"$place.out/said.txt" 2>&1; code=$?; '
    'cp -a "$place/." "$place.out"; exit $code'
)
"""Mounts over a folder, runs a command there, and keeps what it left: the mount is gone with the process."""
_UNSHARE = ("unshare", "--map-root-user", "--mount")


def can_mount() -> bool:
    """Return True if a small file system can be made here without an administrator's rights."""
    try:
        done = subprocess.run([*_UNSHARE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


def at_full_disks(
    folder: Path, commands: CommandRunner, steps: int, works: Sequence[str] = ("evaluate", "align")
) -> list[dict[str, Any]]:
    """Let a command run into limits that leave it from nearly nothing to nearly all of what it wants, then without.

    Returns:
        A row for each command and kind of limit: ``stopped`` (runs that did not end, of ``steps``), ``unsaid`` (of
        those the ones that did not say in a sentence what is full), ``twice`` and ``beyond`` (requests asked again, and
        of them those not in flight), ``differs`` (what is not as in the run left alone) and ``refused`` (that could not
        go on).
    """
    rows = []
    kinds = ["file-size limit", *(["full file system"] if can_mount() else [])]
    for name in works:
        work, till = WORKS[name], Till()
        with till.server(work) as server:
            arguments = work.command(server.url)
            wanted, _ = left_alone(arguments, work, folder / "alone", commands)
            whole = till.lives[-1]
            sizes = [each.stat().st_size for each in (folder / "alone").rglob("*") if each.is_file()]
            for kind in kinds:
                row: dict[str, Any] = {"command": name, "limit": kind, "steps": steps, "stopped": 0, "unsaid": []}
                row |= {"twice": 0, "beyond": 0, "differs": [], "refused": []}
                most = max(sizes) if kind == kinds[0] else sum(sizes) * 3
                for step in range(steps):
                    till.begin(anew=True)
                    limit = 4096 + most * step // steps
                    place = folder / "full"
                    shutil.rmtree(place, ignore_errors=True)
                    write_inputs(place)
                    if kind == kinds[0]:
                        ended = commands.run(arguments, place, file_limit=limit)
                    else:
                        ended = _in_a_small_one(arguments, place, limit)
                    if ended.code:
                        row["stopped"] += 1
                        if "Traceback" in ended.said or not ended.said.strip():
                            row["unsaid"].append(ended.said[-600:])
                        till.begin()
                        last = commands.run(arguments, place)
                        row["refused"] += [last.said[-300:]] if last.code else []
                    twice, beyond = till.twice(whole, work.in_flight)
                    row["twice"] += twice
                    row["beyond"] += beyond
                    row["differs"] += difference(wanted, results_of(place, work))
                rows.append(row)
    return rows


def _in_a_small_one(arguments: Sequence[str], place: Path, size: int) -> Ended:
    """Run a command in a file system of so many bytes beside its inputs, and put what it left in its place."""
    inputs = sum(each.stat().st_size for each in place.iterdir()) // 1024 + 40
    command = [sys.executable, "-m", "askance", *arguments]
    out, before = Path(f"{place}.out"), Path(f"{place}.in")
    for each in (out, before):
        shutil.rmtree(each, ignore_errors=True)
    shell = [*_UNSHARE, "sh", "-c", _IN_A_SMALL_ONE, "sh", str(place), str(inputs + size // 1024), *command]
    done = subprocess.run(shell, env=dict(os.environ), capture_output=True, text=True, check=False)
    said = (out / "said.txt").read_text(encoding="utf-8") if (out / "said.txt").is_file() else done.stderr
    shutil.rmtree(place)
    out.rename(place)
    shutil.rmtree(before)
    return Ended(done.returncode, 0.0, said)


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
    """Run commands while the clock jumps.

    Returns:
        A row each: ``jump``, ``command``, ``twice`` (requests beyond those of a run left alone) and ``differs``.
    """
    rows: list[dict[str, Any]] = []
    for name in ("evaluate", "evaluate --engine batch", "align"):
        work, till = WORKS[name], Till()
        with till.server(work, delay=0.0 if name == "align" else SLOW / 3, looks=2) as server:
            arguments = work.command(server.url)
            alone, _ = left_alone(arguments, work, folder / "alone", commands)
            whole = till.lives[-1]
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
    """Run two commands at once on one store while the clock jumps; rows as in :func:`at_jumps`."""
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
    """Kill a command while a batch is open and go on after the clock has jumped; rows as in :func:`at_jumps`."""
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
