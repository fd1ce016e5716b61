"""Every request that reached a server and everything that a command has written, to be compared."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askance.memory.journal import read_events
from askance.testing import ServerReply, StandInServer
from tests.doubles import BatchServer

from .processes import CommandRunner, Ended
from .world import Work, reply, write_inputs

_COSTS = re.compile(rb'"(cost_usd|cached_calls|calls|tokens|seconds|retries|failures)": [^,}\n]+')
_RUN = ("result.json", "judge.yaml", "prompt.md", "changes.diff", "lessons.jsonl", "config.yaml")


class Till:
    """Counts the requests of each process in turn. Every request that arrives counts as paid."""

    def __init__(self) -> None:
        self.lives: list[Counter[str]] = [Counter()]
        """Requests of each process in turn, each with how often."""
        self.on_call: Callable[[], None] = lambda: None
        """Called at each call, before it is answered."""

    def script(self, body: Mapping[str, Any]) -> ServerReply:
        """The model; what it is asked is written down."""
        self.lives[-1][json.dumps(body, sort_keys=True)] += 1
        self.on_call()
        return reply(body)

    def server(self, work: Work, *, delay: float = 0.0, looks: int = 1) -> StandInServer:
        """Make a server for a command. ``delay``: seconds a call; ``looks``: at a batch until it is done."""
        if not work.in_batches:
            return StandInServer(self.script, delay=delay)
        server = BatchServer(self.script, looks=looks)

        def call(method: str, path: str) -> None:
            self.on_call()

        server.before = server.after = call
        return server

    def begin(self, *, anew: bool = False) -> None:
        """Another process from now on; ``anew``: nothing before it counts."""
        self.lives = [Counter()] if anew else [*self.lives, Counter()]

    @property
    def calls(self) -> int:
        """Requests since the last new beginning."""
        return sum(each.total() for each in self.lives)

    def twice(self, whole: Counter[str], in_flight: int) -> tuple[int, int]:
        """Count the requests that came more often than in a run left alone, and those of them that were not in flight.

        A repeat is the loss of the last process that had asked before; of each process as many as were in flight may be
        lost.
        """
        seen: Counter[str] = Counter()
        last: dict[str, int] = {}
        lost: Counter[int] = Counter()
        for life, asked in enumerate(self.lives):
            for request, times in asked.items():
                again = max(0, seen[request] + times - max(whole[request], seen[request]))
                lost[last.get(request, life)] += again
                seen[request] += times
                last[request] = life
        return lost.total(), sum(max(0, each - in_flight) for each in lost.values())


def results_of(folder: Path, work: Work) -> dict[str, Any]:
    """Everything that a command has written, but for what it cost: by name."""
    place = folder / work.output
    if work.output != "run":
        return {place.name: _COSTS.sub(b"", place.read_bytes()) if place.is_file() else None}
    files = [place / name for name in _RUN]
    files += [*(place / "prompts").glob("*.md"), *(place / "verdicts").glob("*")]
    found: dict[str, Any] = {each.name: each.read_bytes() for each in files if each.is_file()}  # tune has no judge.yaml
    journal = place / "journal.jsonl"
    events = read_events(journal) if journal.is_file() else []
    found["journal"] = [{name: value for name, value in each.items() if name != "time"} for each in events]
    return found


def left_alone(
    arguments: Sequence[str], work: Work, place: Path, commands: CommandRunner
) -> tuple[dict[str, Any], Ended]:
    """Run a command that nothing happens to, in a folder that is made anew; its results and its end.

    Raises:
        AskanceError: It fails.
    """
    shutil.rmtree(place, ignore_errors=True)
    write_inputs(place)
    ended = commands.run(arguments, place)
    ended.check(f"{work.name}, left alone,")
    return results_of(place, work), ended


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of what differs or is not there in both."""
    return sorted(name for name in {*one, *other} if one.get(name) is None or one.get(name) != other.get(name))
