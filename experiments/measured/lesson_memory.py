"""Processor time of a lesson memory as it grows to 20,000 lessons, with and without looking them up together.

Run ``python -m askance.experiments.measured.lesson_memory`` (a minute). The lessons are **made up**, of three dimensions and both
directions; each is held against what is alike and against what may be its opposite, then added, and every tenth is
reworded. The embedder is the one that counts words: the default one takes 5 ms a lesson whatever the memory does.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
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


def remember(memory: LessonMemory, lessons: Sequence[Lesson], together: bool) -> list[list[str]]:
    """Put lessons into a memory one after the other; returns what was found for each, by id."""
    found = []
    with memory.expecting(lessons) if together else nullcontext():
        for number, each in enumerate(lessons):
            found.append([near.id for near in (*memory.nearest(each), *memory.opposed(each))])
            memory.add(each)
            if number % 10 == 0:
                memory.merge(each.id, each.model_copy(update={"evidence": ("x/q",)}), f"{each.text} And more.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both ways on the same lessons, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.lesson_memory", description=__doc__)
    parser.add_argument("--lessons", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    for count in options.lessons:
        lessons = made_up_lessons(count)
        found, seconds = [], []
        for together in (False, True):
            memory, began = LessonMemory(embedder("words")), time.process_time()
            found.append(remember(memory, lessons, together))
            seconds.append(round(time.process_time() - began, 1))
        alike = found[0] == found[1]
        rows.append({"lessons": count, "alone_cpu_s": seconds[0], "together_cpu_s": seconds[1], "same_found": alike})
    write_result(options.output, {"rows": rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
