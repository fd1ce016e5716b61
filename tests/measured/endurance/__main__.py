"""Commands under kills, faults, a full disk and a clock that jumps: nothing may be lost or paid twice.

Run ``python -m tests.measured.endurance`` (nightly; a hundred kills of each command take some twenty
minutes of processor time; ``--kills N --calls N`` is a shorter one). The model is a server that plays every role, the
data are **made up** (:mod:`.world`), the commands are those of the command line in processes of their own. Ends with
code 1 where something was lost, was paid twice that was not in flight, or came out different from a run that was left
alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askance.experiments.command_line import machine, says_errors, write_result

from .faults import at_faults, at_final_faults
from .kills import killed
from .machine_faults import at_full_disks, at_jumps, killed_with_a_batch_open, two_on_one_store
from .processes import CommandRunner
from .world import WORKS

PARTS = ("kills", "faults", "disk", "clock")
ENDS = "faults that end a run"


def run(folder: Path, part: str, commands: CommandRunner, *, kills: int, calls: int, steps: int) -> dict[str, Any]:
    """Do a part, in a folder; the figures by their name in the result."""
    match part:
        case "kills":
            return {part: {each.name: killed(each, kills, folder, commands) for each in WORKS.values()}}
        case "faults":
            return {part: at_faults(calls, folder, commands), ENDS: at_final_faults(folder, commands)}
        case "disk":
            return {part: at_full_disks(folder, commands, steps)}
    with CommandRunner() as other:
        rows = at_jumps(folder, commands) + two_on_one_store(folder, commands, other)
    return {part: rows + killed_with_a_batch_open(folder, commands)}


def broken(found: dict[str, Any]) -> list[str]:
    """Describe in a line each what was lost, differs, or was paid twice although it was not in flight."""
    lines = []
    for name, row in found.get("kills", {}).items():
        if row["beyond"] or row["differs"] or row["refused"]:
            lines.append(f"{name}, killed: {row['beyond']} twice, differs {row['differs']}, refused {row['refused']}")
    if (row := found.get("faults")) and (row["wrong"] or row["missing_then"] or row["twice"]):
        lines.append(f"faults: {row['wrong']} wrong, {row['missing_then']} lost, {row['twice']} twice")
    for row in found.get(ENDS, ()):
        if row["code"] != 1 or row["code_then"] or row["twice"]:
            lines.append(f"{row['fault']}: codes {row['code']}, then {row['code_then']}, {row['twice']} twice")
    for row in found.get("disk", ()):
        if row["beyond"] or row["differs"] or row["refused"] or row["unsaid"]:
            lines.append(f"{row['command']}, {row['limit']}: {row}")
    for row in found.get("clock", ()):
        if row["differs"] or row["twice"]:
            lines.append(f"{row['command']}, the clock {row['jump']}: {row['twice']} twice, differs {row['differs']}")
    return lines


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Do all parts, print and write the figures; return 1 where something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.measured.endurance", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="of each command (default: %(default)s)")
    parser.add_argument("--calls", type=int, default=10_000, help="at the endpoint of faults (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="sizes of each full disk (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be given several times")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file of the figures")
    chosen = parser.parse_args(arguments)
    if min(chosen.kills, chosen.calls, chosen.steps) < 1:
        parser.error("--kills, --calls and --steps: 1 at least")
    parts = chosen.only or PARTS
    command = f"python -m {__package__} --kills {chosen.kills} --calls {chosen.calls} --steps {chosen.steps}"
    command += "".join(f" --only {part}" for part in chosen.only or ())
    found: dict[str, Any] = {}
    with CommandRunner() as commands, tempfile.TemporaryDirectory() as folder:
        for part in parts:
            place = Path(folder) / part
            place.mkdir()
            done = run(place, part, commands, kills=chosen.kills, calls=chosen.calls, steps=chosen.steps)
            found |= done
            write_result(None, done)
            if chosen.output:  # after each part: they are long
                header = {"command": command, "machine": machine()}
                write_result(chosen.output, {**header, **found, "did_not_hold": broken(found)})
    wrong = broken(found)
    print("\n".join(("DID NOT HOLD", *wrong)) if wrong else "nothing lost, nothing paid twice but what was in flight")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
