"""Ways to find the nearest lessons: our exact product, the same in blocks, and FAISS's flat and HNSW indexes.

Run ``OMP_NUM_THREADS=1 python -m tests.measured.neighbours`` with ``faiss-cpu`` installed. All ways look up the same vectors in
one process; each time is processor time, and ``ratio`` is to our lookups one by one. A run looks lessons up one by one,
because a model decides on each before the next is kept; blocks would serve an import alone. Every second vector is a
near copy (cosine about .9) of an earlier one; ``found`` is the share of copies whose original is among ten neighbours.

``--memory 20000`` measures the whole lesson memory instead: made-up rules, each held against what is alike and what may be
its opposite, then added, every tenth reworded; the embedder counts words. That needs no FAISS.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.experiments.command_line import RESULTS, machine, says_errors, write_result
from askance.memory.embedders import DEFAULT_EMBEDDER, NeighbourIndex, blocking_similarity, embedder
from askance.memory.lesson_memory import LessonMemory
from askance.prompts.errors import InputError
from askance.prompts.lessons import Lesson

RESULT, MEMORY = RESULTS / "neighbours.json", RESULTS / "lesson_memory.json"
Vectors = NDArray[np.float32]
NEIGHBOURS, BLOCK = 10, 128
Found = list[Sequence[int]]


def vectors_with_copies(size: int, dimension: int, seed: int = 1) -> Vectors:
    """Unit vectors, shape (size, dimension); row 2k + 1 is a near copy of row 2k."""
    rng = np.random.default_rng(seed)
    rows = _unit(rng.normal(size=(size, dimension)))
    rows[1::2] = _unit(rows[0 : 2 * (size // 2) : 2] + 0.48 * rows[1::2])
    return rows


def _unit(rows: NDArray[Any]) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def ours_one_by_one(rows: Vectors) -> Found:
    """Look each vector up among the earlier ones, then add it."""
    index, found, least = NeighbourIndex(rows.shape[1]), [], blocking_similarity(DEFAULT_EMBEDDER)
    for place, row in enumerate(rows):
        found.append([int(each) for each in index.search(row, NEIGHBOURS, least)] if place else [])
        index.add(str(place), row)
    return found


def ours_in_blocks(rows: Vectors) -> Found:
    """Neighbours by one matrix product for each block."""
    found: Found = []
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        near = block @ rows[: start + len(block)].T
        for place in range(len(block)):
            row = near[place, : start + place]
            top = np.argpartition(-row, min(NEIGHBOURS, len(row)) - 1)[:NEIGHBOURS] if len(row) else row
            found.append([int(each) for each in top])
    return found


def faiss_one_by_one(index: Any) -> Callable[[Vectors], Found]:
    """Lookups one by one in a FAISS index."""

    def run(rows: Vectors) -> Found:
        found: Found = []
        for place, row in enumerate(rows):
            found.append(index.search(row[None], NEIGHBOURS)[1][0].tolist() if place else [])
            index.add(row[None])
        return found

    return run


def faiss_in_blocks(index: Any) -> Callable[[Vectors], Found]:
    """Lookups in blocks; a block itself is looked at by a product."""

    def run(rows: Vectors) -> Found:
        found: Found = []
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            outside = index.search(block, NEIGHBOURS) if start else None
            inside = block @ block.T
            for place in range(len(block)):
                near = [(float(inside[place, each]), start + each) for each in range(place)]
                if outside is not None:
                    near += zip(outside[0][place].tolist(), outside[1][place].tolist(), strict=True)
                found.append([each for _, each in sorted(near, reverse=True)[:NEIGHBOURS]])
            index.add(block)
        return found

    return run


def measured(rows: Vectors) -> list[dict[str, Any]]:
    """Processor seconds of each way, and the share of copies that it finds. Raises InputError without FAISS."""
    try:
        faiss = import_module("faiss")
    except ModuleNotFoundError:
        raise InputError("FAISS is not installed. Install it with: pip install faiss-cpu") from None
    faiss.omp_set_num_threads(1)
    dimension = rows.shape[1]

    def hnsw() -> Any:
        return faiss.IndexHNSWFlat(dimension, 32, faiss.METRIC_INNER_PRODUCT)

    ways: dict[str, Callable[[Vectors], Found]] = {
        "ours, one by one": ours_one_by_one,
        "FAISS flat, one by one": faiss_one_by_one(faiss.IndexFlatIP(dimension)),
        "FAISS HNSW, one by one": faiss_one_by_one(hnsw()),
        "ours, in blocks": ours_in_blocks,
        "FAISS flat, in blocks": faiss_in_blocks(faiss.IndexFlatIP(dimension)),
    }
    table: list[dict[str, Any]] = []
    for name, way in ways.items():
        began = time.process_time()
        found = way(rows)
        seconds = time.process_time() - began
        copies = [place - 1 in found[place] for place in range(1, len(rows), 2)]
        table.append({"way": name, "cpu_s": round(seconds, 2), "found": round(float(np.mean(copies)), 4)})
    first = table[0]["cpu_s"]
    return [row | {"ratio": round(row["cpu_s"] / first, 2)} for row in table]


def made_up_lessons(count: int) -> list[Lesson]:
    """Rules of nine random words, the same ones for the same number."""
    chance, words = random.Random(1), [f"w{number}" for number in range(3000)]
    return [
        Lesson(
            id=f"L{number}",
            text=f"Answer no if the output {' '.join(chance.choices(words, k=9))}.",
            direction=chance.choice(["stricter", "more lenient"]),
            dimension=chance.choice("abc"),
            evidence=(f"e{number}/q",),
        )
        for number in range(count)
    ]


def remembered(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Processor seconds of a memory that the lessons go through, one after the other."""
    memory = LessonMemory(embedder("words"))
    began = time.process_time()
    for number, each in enumerate(lessons):
        memory.nearest(each)
        memory.opposed(each)
        memory.add(each)
        if number % 10 == 0:
            memory.merge(each.id, each.model_copy(update={"evidence": ("x/q",)}), f"{each.text} And more.")
    return {"lessons": len(lessons), "cpu_s": round(time.process_time() - began, 1)}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the table."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--sizes", type=int, nargs="+", default=[10_000, 20_000])
    made.add_argument("--dimension", type=int, default=384, help="as MiniLM's")
    made.add_argument("--memory", type=int, nargs="+", help="measure the whole memory with so many lessons instead")
    made.add_argument("-o", "--output", type=Path)
    given = made.parse_args(arguments)
    if given.memory:
        rows = [remembered(made_up_lessons(count)) for count in given.memory]
        write_result(given.output or MEMORY, {"machine": machine(), "rows": rows})
        return 0
    rows = [
        {"lessons": size, **row} for size in given.sizes for row in measured(vectors_with_copies(size, given.dimension))
    ]
    write_result(given.output or RESULT, {"machine": machine(), "dimension": given.dimension, "rows": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
