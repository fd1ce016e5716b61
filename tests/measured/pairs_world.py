"""Questions that ``align PAIRS`` learns where the truth is known, and on pairs of real people.

Run ``python -m tests.measured.pairs_world --seeds 20`` for the simulated world: pairs of its outputs, of which people
prefer the one that they score higher, with comments on rejected ones. A row a seed, then their means; ``null`` is the
share of worlds without anything to learn in which the acceptance test accepted a judge.

``--pairs FILE --model MODEL --checklist CHECKLIST`` measures pairs of one's own in the same way, e.g. those of LLMBar.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import askance
from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.testing import SimulatedJudge, SimulatedWorld

RESULT = RESULTS / "pairs_world.json"
HOW: dict[str, Any] = {"resamples": 500, "embedder": "words", "max_iterations": 1, "explain": "never"}


def pairs_of(world: SimulatedWorld) -> list[dict[str, Any]]:
    """Pairs of the world's outputs; people prefer the one that they score higher, and comment on the other."""
    pairs = []
    for one, other in zip(world.rows[::2], world.rows[1::2], strict=True):
        better, worse = sorted((one, other), key=lambda row: -row["human"]["quality"])
        row = {"id": one["id"], "prompt": one["input"], "chosen": better["output"], "rejected": worse["output"]}
        pairs.append(row | ({"comment": worse["comment"]} if worse.get("comment") else {}))
    return pairs


def shuffled(pairs: Sequence[dict[str, Any]], world: SimulatedWorld) -> list[dict[str, Any]]:
    """The pairs with sides drawn at random: nothing can be learned from them."""
    turned = {"chosen": "rejected", "rejected": "chosen"}
    return [
        {turned.get(name, name): value for name, value in row.items()}
        if world.share("turned", row["id"]) < 0.5
        else row
        for row in pairs
    ]


def measured(pairs: Any, checklist: Any, model: Any, **further: Any) -> dict[str, Any]:
    """The share of test pairs told before and after, and what was asked for it."""
    with tempfile.TemporaryDirectory() as folder:
        result = askance.align(
            pairs, checklist=checklist, model=model, run=Path(folder, "run"), **HOW, **further
        ).result
    before, after = (result[side]["test"]["mean"] for side in ("baseline", "best"))
    joined = [each["text"] for each in result["questions"] if each["joined"]]
    gain = {"before": before, "after": after, "pairs": result["best"]["test"]["n"], "calls": result["calls"]}
    return {**gain, "proposed": len(result["questions"]), "joined": joined}


def in_simulated_worlds(seeds: int, size: int, *, null: bool = False) -> dict[str, Any]:
    """A row a seed, and the means; with ``null`` people's choices are drawn at random."""
    rows = []
    for seed in range(seeds):
        world = SimulatedWorld(size=2 * size, seed=seed, kinds=1, blind=3, comment_share=0.7)
        pairs = pairs_of(world)
        rows.append(measured(shuffled(pairs, world) if null else pairs, world.checklist, SimulatedJudge(world)))
    means = {name: round(fmean(row[name] for row in rows), 4) for name in ("before", "after", "calls")}
    return {**means, "accepted": round(fmean(bool(row["joined"]) for row in rows), 4), "rows": rows}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--size", type=int, default=200, help="pairs of a simulated world")
    parser.add_argument("--pairs", help="pairs of one's own, in place of simulated ones")
    parser.add_argument("--model", help="their judge")
    parser.add_argument("--checklist", default="global", help="the questions that it begins with")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if given.pairs:
        found = measured(given.pairs, given.checklist, given.model)
    else:
        found = in_simulated_worlds(given.seeds, given.size)
        found["null"] = in_simulated_worlds(given.seeds, given.size, null=True)
    write_result(given.output, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
