"""Two ways to fill a questionnaire in ``select`` where the truth is known: a call an answer, or one reply an example.

Run ``python -m tests.measured.filling_world --seeds 20``. Outputs have six properties that count for something and six
that count for nothing. The judge's impression of an output colours its answers where they stand in one reply with the
rating; ``halo`` is by how many log-odds a standard deviation of the impression does so. That a judge has a halo is an
assumption, and its size is unknown: ``experiments.reproduce.eig_sweeps filling`` measures a real one.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.experiments.reproduce.eig_sweeps import filling_rows
from askance.models.base import Answer, Request
from askance.optimizer.selection.select import select
from askance.prompts.checklist import Checklist, Question
from askance.testing import ScriptedModel
from tests.worlds import share

RESULT = RESULTS / "filling_world.json"
IMPORTANCE = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0, 0, 0, 0, 0, 0)
KEPT = 4
HALOS = (0.0, 0.5, 1.0, 2.0)
_SURE, _SLIP, _NOISE = 2.0, 0.8, 0.5
"""Log-odds of an answer, and the noise of an answer and of an impression in standard deviations."""
_SPREAD = math.sqrt(sum(weight**2 for weight in IMPORTANCE)) / 2
"""Standard deviation of the quality."""


class World:
    """Examples with known properties, and a judge of them."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed, self.halo = seed, 0.0
        self.ids = [f"e{number:04d}" for number in range(size)]
        asked = (Question(id=f"p{place}", text=f"Has it property {place}?") for place in range(len(IMPORTANCE)))
        self.candidates = Checklist(questions=tuple(asked))

    def has(self, example: str, place: int) -> bool:
        return share(self.seed, "has", example, place) < 0.5

    def quality(self, example: str) -> float:
        """In standard deviations from the mean."""
        whole = sum(weight * (self.has(example, place) - 0.5) for place, weight in enumerate(IMPORTANCE))
        return whole / _SPREAD

    def normal(self, *names: object) -> float:
        return NormalDist().inv_cdf(min(max(share(self.seed, *names), 1e-9), 1 - 1e-9))

    def impression(self, example: str) -> float:
        return self.quality(example) + _NOISE * self.normal("impression", example)

    def p_yes(self, example: str, place: int, halo: float) -> float:
        odds = _SURE * (2 * self.has(example, place) - 1) + _SLIP * self.normal("slip", example, place)
        return 1 / (1 + math.exp(-odds - halo * self.impression(example)))

    def level(self, example: str) -> int:
        return min(max(round(3 + 1.2 * self.impression(example)), 1), 5)

    def reply(self, request: Request) -> Any:
        text = request.messages[-1][1]
        example = re.findall(r"\[(e\d+)\]", text)[0]
        if "overall_rating" in text:
            return self.filled(request, example)
        if "on the whole" in text:
            return _token(str(self.level(example)))
        return self.p_yes(example, int(re.findall(r"property (\d+)", text)[0]), 0.0)

    def filled(self, request: Request, example: str) -> Answer:
        tokens: list[Any] = [("{", ())]
        for place, name in enumerate(request.parameters.schema["properties"]):  # type: ignore[index]
            tokens.append((f'{", " * (place > 0)}"{name}": ', ()))
            if name == "overall_rating":
                tokens += _token(str(self.level(example))).logprobs or ()
                continue
            p = self.p_yes(example, int(name[1:]), self.halo)
            words = sorted((("yes", math.log(p)), ("no", math.log(1 - p))), key=lambda pair: -pair[1])
            tokens += [('"', ()), (words[0][0], tuple(words)), ('"', ())]
        tokens.append(("}", ()))
        return Answer("".join(token for token, _ in tokens), tuple(tokens), 200, 60)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "id": each,
                "input": "A task.",
                "output": f"[{each}]",
                "human": {"overall": self.quality(each) + _NOISE * self.normal("people", each)},
            }
            for each in self.ids
        ]


def _token(text: str) -> Answer:
    return Answer(text, ((text, ((text, 0.0),)),), 20, 1)


def measured(seed: int, size: int, halos: Sequence[float] = HALOS) -> list[dict[str, Any]]:
    """Both ways in one world: calls, the share of the best questions' importance that is kept, and bits of empty ones.

    Answers in a call each have no halo, so they are asked for once.
    """
    world = World(seed, size)
    judge = ScriptedModel(world.reply)
    how: dict[str, Any] = {"k": KEPT, "rated_by": "judge", "sample": size, "no_cache": True, "embedder": "words"}
    how |= {"ranking_resamples": 2, "halves": 1, "progress": False, "choice": "top"}
    apart = select(world.rows(), model=judge, candidates=world.candidates, filling="apart", **how)
    rows = []
    for world.halo in halos:
        together = select(world.rows(), model=judge, candidates=world.candidates, filling="together", **how)
        for row, found in zip(filling_rows(apart, together), (apart, together), strict=True):
            weight = sum(IMPORTANCE[int(name[1:])] for name in row.pop("kept"))
            empty = [each.bits or 0.0 for each in found.questions if not IMPORTANCE[int(each.id[1:])]]
            own = {"importance": weight / sum(sorted(IMPORTANCE)[-KEPT:]), "empty_bits": fmean(empty)}
            rows.append({"seed": seed, "halo": world.halo, **row, **own})
    return rows


def summary(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the worlds, a row for each halo and way."""
    rows = []
    for halo, way in dict.fromkeys((each["halo"], each["filling"]) for each in found):
        cells = [each for each in found if (each["halo"], each["filling"]) == (halo, way)]
        names = ("calls", "importance", "empty_bits", "spearman", *(("tau", "same") if way == "together" else ()))
        means = {name: round(fmean(cell[name] for cell in cells), 4) for name in names}
        rows.append({"halo": halo, "filling": way} | means)
    return rows


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the worlds and write their means."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--size", type=int, default=200)
    made.add_argument("-o", "--output", type=Path, default=RESULT)
    given = made.parse_args(arguments)
    found = [row for seed in range(given.seeds) for row in measured(seed, given.size)]
    write_result(given.output, {"seeds": given.seeds, "size": given.size, "means": summary(found)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
