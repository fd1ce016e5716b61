"""Answers a second that a store takes and gives: a SQLite file beside a PostgreSQL database, in one run.

``python -m askance.experiments.measured.stores --store postgresql://NAME@HOST/DATABASE`` (half a minute). What it writes to the
database is its own and dropped again. Wall times, as waiting for a database is what costs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...agents.asking import LOOKUP_BLOCK
from ...memory.postgres_store import PostgresAddress
from ...memory.verdict_store import open_store, place_of
from ...models.answer_store import AnswerStore
from ...models.base import Answer
from ..command_line import machine, write_result

ANSWER = Answer("Yes", (("Yes", tuple((f" yes{place}", -place / 4) for place in range(20))),), 640, 1, 0.0001)
"""As a judge's that gives the 20 likeliest tokens."""


def measured(store: AnswerStore, answers: int) -> dict[str, float]:
    """Answers a second: bought (claimed, looked for, put), and read in blocks as a command reads them."""
    keys = [os.urandom(32) for _ in range(answers)]
    for key in keys[:20]:  # the tables are made, the statements known
        store.put(key, ANSWER)

    def buy() -> None:
        for key in keys[20:]:
            assert store.claim(key) and not store.get_many([key])
            store.put(key, ANSWER)

    def read() -> None:
        for start in range(0, answers, LOOKUP_BLOCK):
            block = keys[start : start + LOOKUP_BLOCK]
            assert len(store.get_many(block)) == len(block)

    try:
        return {"bought_per_s": round((answers - 20) / _seconds(buy)), "read_per_s": round(answers / _seconds(read))}
    finally:
        store.forget(keys)


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the result where it was asked for."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.stores", description=__doc__)
    parser.add_argument("--store", help="address of a database: postgresql://NAME@HOST/DATABASE")
    parser.add_argument("--answers", type=int, default=3000, help="how many (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file of the figures")
    chosen = parser.parse_args(arguments)
    if chosen.answers < 100:
        parser.error("--answers: 100 at least")
    with tempfile.TemporaryDirectory() as folder:
        places: dict[str, Any] = {"SQLite": Path(folder) / "verdicts.db"}
        if chosen.store is not None:
            places["PostgreSQL"] = place_of(chosen.store)
            if not isinstance(places["PostgreSQL"], PostgresAddress):
                parser.error("--store: an address that begins with postgresql:// is needed")
        figures = {}
        for name, place in places.items():
            with open_store(place) as store:
                figures[name] = measured(store, chosen.answers)
    print(f"{'answers a second':<20}{'bought':>10}{'read':>10}")
    for name, row in figures.items():
        print(f"{name:<20}{row['bought_per_s']:>10,}{row['read_per_s']:>10,}")
    if chosen.output:
        write_result(chosen.output, {"machine": machine(), "answers": chosen.answers, "stores": figures})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
