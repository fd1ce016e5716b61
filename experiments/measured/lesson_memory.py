"""Processor time of a lesson memory as it grows to 20,000 lessons, each held against the others.

Run ``python -m askance.experiments.measured.lesson_memory`` (a minute). The lessons are **made up**, of three dimensions and both
directions; each is held against what is alike and against what may be its opposite, then added, and every tenth is
reworded. The embedder is the one that counts words: the default one takes 5 ms a lesson whatever the memory does.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path

from ...memory.embedders import embedder
from ...memory.lesson_memory import LessonMemory
from ...prompts.lessons import Lesson
from ..command_line import write_result

WORDS = [f"w{number}" for number in range(3000)]


def made_up_lessons(count: int) -> list[Lesson]:
    """Rules of nine random words, the same ones for the same number."""
    chance = random.Random(1)
    return [
        Lesson(
            id=f"L{number}",
            text=f"Answer no if the output {' '.join(chance.choices(WORDS, k=9))}.",
            direction=chance.choice(["stricter", "more lenient"]),
            dimension=chance.choice("abc"),
            evidence=(f"e{number}/q",),
        )
        for number in range(count)
    ]


def remember(memory: LessonMemory, lessons: Sequence[Lesson]) -> float:
    """Put lessons into a memory one after the other; the processor seconds that it took."""
    began = time.process_time()
    for number, each in enumerate(lessons):
        memory.nearest(each)
        memory.opposed(each)
        memory.add(each)
        if number % 10 == 0:
            memory.merge(each.id, each.model_copy(update={"evidence": ("x/q",)}), f"{each.text} And more.")
    return time.process_time() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.lesson_memory", description=__doc__)
    parser.add_argument("--lessons", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    for count in options.lessons:
        seconds = remember(LessonMemory(embedder("words")), made_up_lessons(count))
        rows.append({"lessons": count, "cpu_s": round(seconds, 1)})
    write_result(options.output, {"rows": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
