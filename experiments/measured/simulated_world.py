"""The improvement loop in a world with known truth, beside the papers' loop and without each of its guards.

Run ``python -m askance.experiments.measured.simulated_world`` (some twenty minutes of processor time; ``--seeds 5 --arms
align paper`` is a small one). Judges, people and helpers are simulated (:class:`askance.testing.SimulatedWorld`): the
judge has six errors that the right guidance cures, the note-taker is wrong in 30 % of the cases and some of its rules
do harm. What is true of a prompt is measured on a fresh population that no run sees.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from ...agents.asking import EachAsking
from ...evaluation.progress import Silent
from ...memory.run_directory import RunDirectory
from ...optimizer.events import DisagreementsFound, Event, VersionDecided
from ...optimizer.modes import align, migrate
from ...optimizer.runner import RunResult, run_job
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...stats.correlation import spearman
from ...testing import SimulatedJudge, SimulatedWorld
from ...testing.simulated_judge import read_request
from ...testing.simulated_texts import TOPICS
from ..command_line import RESULTS, write_result

RESULT = RESULTS / "simulated_world.json"
SEEDS = 100
FIRST_SEED = 1_000
"""Seeds below were used to choose the settings."""
NOISE = {"curable": False}
POPULATION = 1_500
"""Fresh examples on which the true correlation of a prompt is measured."""
ROUNDS = 5
"""Iterations of the papers' loop (BinEval App. B)."""
KEPT = 10
"""Lessons that it keeps in each, every one of which is written into the prompt."""
RESAMPLES = 400
WORSE = 0.01
"""Loss of true Spearman from which a prompt is worse beyond what the size of the population leaves open."""


@dataclass(frozen=True)
class Arm:
    """A way to run the loop."""

    mode: str = "align"
    options: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    """Seeds at most; None for all."""


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


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    seed: int
    errors: int
    """Of the judge, at the start."""
    fixed: int
    made: int
    """Signs that it misjudges at the end and did not at the start."""
    start: float
    """True Spearman with people of the starting prompt, on the population."""
    end: float
    best_possible: float
    """The same with the right rule for every error, in the first wording."""
    test_start: float | None
    test_end: float | None
    changed: bool
    chars: int
    """Characters that the prompt grew by."""
    accepted: int
    falsely: int
    """Accepted candidates whose true Spearman is not above that of the version that they replaced."""
    tried: int
    iterations: int
    finish: str
    calls: int
    test_calls: int
    """Those of them that the untouched test took; Algorithm 1 has none."""
    exhaustive: int
    """Calls of Algorithm 1 in five rounds, by formula."""
    cpu_s: float


class Truth:
    """The population of a world."""

    def __init__(self, world: SimulatedWorld, size: int = POPULATION) -> None:
        """Draw it; its examples are none of those that a run sees."""
        self._world = world
        self._judge = SimulatedJudge(world)
        rows = world.make_rows(size, "fresh")
        self._human = [row["human"]["quality"] for row in rows]
        self._cases = [(row["id"], world.signs(row["id"])) for row in rows]
        self._shown = Example(**{name: rows[0][name] for name in ("id", "input", "output")})
        self._known: dict[str, float] = {}

    def spearman(self, prompt: str) -> float:
        """The correlation of the judge's scores with people's, over the whole population.

        Raises:
            ValueError: The judge gives all examples one score.
        """
        if prompt not in self._known:
            asking = EachAsking(Prompt(prompt), self._world.checklist.questions, False, True, 0.0, 0)
            told = [read_request(ask.request()).told for ask in asking.asks(self._judge.identity, self._shown, 0, 0)]
            scores = [
                sum(self._world.p_yes(example, signs, topic, text) for topic, text in zip(TOPICS, told, strict=True))
                for example, signs in self._cases
            ]
            found = spearman(scores, self._human).value
            if found is None:
                raise ValueError("the judge gives every example the same score")
            self._known[prompt] = found
        return self._known[prompt]


def run_once(arm: Arm, seed: int) -> Run:
    """Run the loop in a world of its own, in a directory that is gone afterwards."""
    world = SimulatedWorld(seed=seed, **arm.world)
    truth = Truth(world)
    events: list[Event] = []
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = _run(arm, world, Path(folder), events)
        seconds = time.process_time() - began
        test_calls = sum(
            len(file.read_text(encoding="utf-8").splitlines()) for file in Path(folder).glob("verdicts/*-test.jsonl")
        )
        texts = {int(file.name[:3]): file.read_text(encoding="utf-8") for file in Path(folder).glob("prompts/*.md")}
    decided = [each for each in events if isinstance(each, VersionDecided)]
    accepted = [each for each in decided if each.accepted]
    found = result.result
    cured = world.prompt.text + "".join(map(world.right_rule, world.errors))
    return Run(
        seed=seed,
        errors=len(world.errors),
        fixed=len(world.errors) - len(world.errors_in(result.prompt)),
        made=len(world.misjudged(result.prompt) - set(world.errors)),
        start=truth.spearman(world.prompt.text),
        end=truth.spearman(result.prompt),
        best_possible=truth.spearman(cured),
        test_start=found["baseline"]["test"]["spearman"],
        test_end=found["best"]["test"]["spearman"],
        changed=result.prompt != world.prompt.text,
        chars=len(result.prompt) - len(world.prompt.text),
        accepted=len(accepted),
        falsely=sum(truth.spearman(texts[each.version]) <= truth.spearman(texts[each.parent]) for each in accepted),
        tried=len(decided),
        iterations=found["iterations"],
        finish=result.finish_reason,
        calls=found["calls"],
        test_calls=test_calls,
        exhaustive=exhaustive_calls(world, arm.mode, [each for each in events if isinstance(each, DisagreementsFound)]),
        cpu_s=seconds,
    )


def exhaustive_calls(world: SimulatedWorld, mode: str, found: Sequence[DisagreementsFound]) -> int:
    """Calls of the papers' Algorithm 1 in the same world, by formula.

    In each of five rounds every judge answers every question on every example, with its explanation in the same call;
    every disagreement is read by the note-taker, every note compared with the memory, and ten lessons are written into
    the prompt. Disagreements are counted as the run found them on its development examples, scaled to all examples;
    rounds that it did not go take the last count.
    """
    questions = len(world.checklist.questions)
    judges = 2 if mode == "migrate" else 1
    shares = [each.found / each.verdicts for each in found] or [0.0]
    shares += [shares[-1]] * (ROUNDS - len(shares))
    verdicts = world.size * questions
    return sum(judges * verdicts + 2 * round(share * verdicts) + KEPT for share in shares[:ROUNDS])


def _run(arm: Arm, world: SimulatedWorld, folder: Path, events: list[Event]) -> RunResult:
    shared = {"embedder": "words", "resamples": RESAMPLES, "seed": world.seed}
    settings: dict[str, Any] = {"update": "edits", **shared, **arm.options}  # its helpers write no questions
    judge, prompt = SimulatedJudge(world), world.prompt
    if arm.mode == "migrate":
        source = SimulatedJudge(world, perfect=True)
        job = migrate.prepare(world.rows, world.checklist, source, judge, prompt, None, settings)
    else:
        job = align.prepare(world.rows, world.checklist, judge, prompt, settings)
    return run_job(job, RunDirectory(folder), Silent(), [events.append]).require_coverage()


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
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    command = (
        f"python -m askance.experiments.measured.simulated_world --seeds {given.seeds} --first-seed {given.first_seed}"
    )
    if list(given.arms) != list(ARMS):
        command += " --arms " + " ".join(f"'{name}'" for name in given.arms)
    header = {
        "command": command,
        "seeds": [given.first_seed, given.first_seed + given.seeds - 1],
        "population": POPULATION,
        "resamples": RESAMPLES,
        "exhaustive": f"Algorithm 1 in {ROUNDS} rounds, counted by formula (experiments/measured/simulated_world.py)",
    }
    found: dict[str, Any] = {}
    for name, row in measure(given.arms, given.seeds, given.first_seed):
        found[name] = row
        write_result(given.output, header | {"arms": found})


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
