"""The improvement loop in a world with known truth, beside the papers' loop and without each of its guards.

Run ``python -m askance.experiments.simulated_world`` (some twenty minutes of processor time; ``--seeds 5 --arms align
paper`` is a small one). Judges, people and helpers are simulated (:class:`askance.testing.SimulatedWorld`): the judge
has six errors that the right guidance cures, the note-taker is wrong in 30 % of the cases and some of its rules do
harm. What is true of a prompt is measured on a fresh population that no run sees.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from .results_file import RESULTS, write_result
from .simulated_runs import POPULATION, RESAMPLES, ROUNDS, WORSE, Arm, Run, run_once

RESULT = RESULTS / "simulated_world.json"
SEEDS = 100
FIRST_SEED = 1_000
"""Seeds below were used to choose the settings."""
NOISE = {"curable": False}
ARMS: dict[str, Arm] = {
    "align": Arm(),
    "paper": Arm(options={"paper": True}),
    "paper, batches and one rewrite": Arm(options={"paper": True, "notes": "batched", "update": "rewrite"}),
    "no trial": Arm(options={"trial": False}, seeds=40),
    "no racing": Arm(options={"racing": False}, seeds=40),
    "no pruning": Arm(options={"prune": False}, seeds=40),
    "any gain passes": Arm(options={"accept_level": 0.999, "max_drift": 2.0}, seeds=40),
    "no trial, any gain passes": Arm(options={"trial": False, "accept_level": 0.999, "max_drift": 2.0}, seeds=40),
    "patience 1": Arm(options={"patience": 1}),
    "24 notes a round": Arm(options={"max_notes": 24}, seeds=40),
    "300 examples": Arm(world={"size": 300}, seeds=20),
    "pure noise": Arm(world=NOISE),
    "pure noise, paper": Arm(options={"paper": True}, world=NOISE),
    "pure noise, any gain passes": Arm(options={"accept_level": 0.999, "max_drift": 2.0}, world=NOISE, seeds=40),
    "migrate": Arm("migrate", seeds=40),
    "migrate, paper": Arm("migrate", options={"paper": True}, seeds=40),
}


def summarise(runs: Sequence[Run]) -> dict[str, Any]:
    """What the runs of one arm came to.

    Raises:
        ValueError: There are no runs.
    """
    if not runs:
        raise ValueError("there are no runs to summarise")
    gains = [run.end - run.start for run in runs]
    accepted = sum(run.accepted for run in runs)
    return {
        "runs": len(runs),
        "share_of_errors_fixed": _ratio(sum(run.fixed for run in runs), sum(run.errors for run in runs)),
        "new_errors_per_run": fmean(run.made for run in runs),
        "prompt_changed": sum(run.changed for run in runs),
        "truly_below_start": sum(gain < 0 for gain in gains),
        f"truly_below_start_by_{WORSE}": sum(gain < -WORSE for gain in gains),
        "below_start_on_own_test": sum(_below(run) for run in runs),
        "start": fmean(run.start for run in runs),
        "mean_gain": _interval(gains),
        "possible_gain": fmean(run.best_possible - run.start for run in runs),
        "mean_gain_on_own_test": _interval(
            [run.test_end - run.test_start for run in runs if run.test_end is not None and run.test_start is not None]
        ),
        "worst_gain": min(gains),
        "accepted": accepted,
        "falsely_accepted": sum(run.falsely for run in runs),
        "share_falsely_accepted": _ratio(sum(run.falsely for run in runs), accepted),
        "candidates_per_run": fmean(run.tried for run in runs),
        "iterations": fmean(run.iterations for run in runs),
        "calls": fmean(run.calls for run in runs),
        "test_calls": fmean(run.test_calls for run in runs),
        "exhaustive_calls": fmean(run.exhaustive for run in runs),
        "calls_of_exhaustive": _ratio(sum(run.calls for run in runs), sum(run.exhaustive for run in runs)),
        "calls_outside_test_of_exhaustive": _ratio(
            sum(run.calls - run.test_calls for run in runs), sum(run.exhaustive for run in runs)
        ),
        "chars_added": fmean(run.chars for run in runs),
        "chars_added_median": median(run.chars for run in runs),
        "finish": {reason: sum(run.finish == reason for run in runs) for reason in sorted({r.finish for r in runs})},
        "cpu_s": fmean(run.cpu_s for run in runs),
    }


def measure(names: Sequence[str], seeds: int, first: int = FIRST_SEED) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the arms, each on the same worlds, and summarise them one after the other."""
    for name in names:
        arm = ARMS[name]
        began = time.perf_counter()
        runs = [run_once(arm, seed) for seed in range(first, first + min(seeds, arm.seeds or seeds))]
        row = summarise(runs) | {"arm": asdict(arm), "gains": [round(run.end - run.start, 4) for run in runs]}
        print(f"{name}: {time.perf_counter() - began:.0f} s\n{line(name, row)}", flush=True)
        yield name, row


def line(name: str, row: Mapping[str, Any]) -> str:
    """One arm as a row of the table in the documentation."""
    gain = row["mean_gain"]
    falsely = f"{row['falsely_accepted']} of {row['accepted']}"
    cells = [
        name,
        f"{100 * row['share_of_errors_fixed']:.0f} %",
        f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})",
        f"{row['truly_below_start']} of {row['runs']}",
        f"{row['below_start_on_own_test']}",
        falsely,
        f"{row['calls']:,.0f}",
        *(
            "–" if row[share] is None else f"{row[share]:.2f}"
            for share in ("calls_of_exhaustive", "calls_outside_test_of_exhaustive")
        ),
        f"{row['chars_added']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the arms and keep what they came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="worlds an arm")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=list(ARMS), metavar="ARM")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    command = f"python -m askance.experiments.simulated_world --seeds {given.seeds} --first-seed {given.first_seed}"
    if list(given.arms) != list(ARMS):
        command += " --arms " + " ".join(f"'{name}'" for name in given.arms)
    header = {
        "command": command,
        "seeds": [given.first_seed, given.first_seed + given.seeds - 1],
        "population": POPULATION,
        "resamples": RESAMPLES,
        "exhaustive": f"Algorithm 1 in {ROUNDS} rounds, counted by formula (experiments/simulated_runs.py)",
    }
    found: dict[str, Any] = {}
    for name, row in measure(given.arms, given.seeds, given.first_seed):
        found[name] = row
        write_result(given.out, header | {"arms": found})


def _below(run: Run) -> bool:
    return run.test_end is not None and run.test_start is not None and run.test_end < run.test_start


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _interval(values: Sequence[float], resamples: int = 2_000) -> dict[str, float]:
    """The mean with its 95 % bootstrap interval over the seeds."""
    chance = np.random.default_rng(0)
    data = np.asarray(values, dtype=float)
    means = data[chance.integers(0, len(data), (resamples, len(data)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": float(data.mean()), "low": float(low), "high": float(high)}


if __name__ == "__main__":
    main()
