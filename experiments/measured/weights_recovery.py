"""Do the weight learners find weights that are known? Simulated pairs, accuracy and time against the best possible.

Run ``python -m askance.experiments.measured.weights_recovery`` (ten minutes, nearly all of it for Bayesian optimisation;
``--quick`` leaves out the slow learners, ``--keep-slow`` takes their rows from the result file as it is). Scores are
uniform on [0, 1] and independent. Three worlds: true weights from a flat Dirichlet distribution with the labels of 5
% of the pairs flipped; the same weights with labels drawn from a Bradley-Terry model, whose noise is largest where
outputs are close; and uniform true weights with Bradley-Terry labels, where learning can only lose.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import tracemalloc
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...optimizer.weights import PreferenceScores, find_learner, learn_from_pairs, learners, preference_scores
from ...optimizer.weights.pairs import PairDifferences, share_right
from ...prompts.errors import InputError
from ..command_line import RESULTS, says_errors, write_result

RESULT = RESULTS / "weights_recovery.json"
TESTS = 8
FLIPS = 0.05
SHARPNESS = 8.0
"""Bradley-Terry world: the log-odds of preferring an output are this times the difference of true scores."""
SIZES = (100, 300, 1_000, 3_000, 10_000)
SEEDS = 10
HELD_OUT = 20_000
QUICK = ("uniform", "best-single", "decay", "logistic", "robust", "local-search", "auto")
SLOW_SIZES = {"optuna-tpe": (SIZES, 5), "bayes": ((300, 3_000), 3)}
"""Sizes and seeds on which the slow learners run."""
COVERAGE_PAIRS = 1_000

World = Literal["flips", "bradley-terry", "uniform truth"]
WORLDS: tuple[World, ...] = ("flips", "bradley-terry", "uniform truth")
Floats = NDArray[np.float64]


def simulate(world: World, pairs: int, tests: int, seed: int) -> tuple[Floats, PreferenceScores]:
    """True weights (tests,), sum 1, and ``pairs`` pairs labelled by them."""
    rng = np.random.default_rng(seed)
    weights = np.full(tests, 1 / tests) if world == "uniform truth" else rng.dirichlet(np.ones(tests))
    return weights, _pairs(world, weights, pairs, rng)


def _pairs(world: World, weights: Floats, pairs: int, rng: np.random.Generator) -> PreferenceScores:
    a, b = rng.random((pairs, len(weights))), rng.random((pairs, len(weights)))
    margins = (a - b) @ weights
    if world == "flips":
        prefers_a = (margins > 0) ^ (rng.random(pairs) < FLIPS)
    else:
        prefers_a = rng.random(pairs) < 1.0 / (1.0 + np.exp(-SHARPNESS * margins))
    labels = np.where(prefers_a, "a", "b").tolist()
    names = [f"test {number + 1}" for number in range(len(weights))]
    return preference_scores([str(number) for number in range(pairs)], names, a, b, labels)


def recover(world: World, name: str, pairs: int, seeds: int) -> dict[str, Any]:
    """Mean held-out accuracy, error of the weights and processor time of one learner."""
    rows = []
    for seed in range(seeds):
        truth, development = simulate(world, pairs, TESTS, seed)
        test = _pairs(world, truth, HELD_OUT, np.random.default_rng(10_000 + seed)).differences()
        learnable = development.differences()
        began = time.process_time()
        learned = find_learner(name).learn(learnable, seed=seed)
        seconds = time.process_time() - began
        rows.append((_accuracy(test, learned), _accuracy(test, truth), np.abs(learned - truth).mean(), seconds))
    accuracy, best, error, seconds_each = np.array(rows).T
    return {
        "world": world,
        "learner": name,
        "pairs": pairs,
        "seeds": seeds,
        "accuracy": round(float(accuracy.mean()), 4),
        "accuracy_worst_seed": round(float(accuracy.min()), 4),
        "best_possible": round(float(best.mean()), 4),
        "lost_points": round(100 * float((best - accuracy).mean()), 2),
        "lost_points_standard_error": round(100 * float((best - accuracy).std(ddof=1) / np.sqrt(seeds)), 2),
        "mean_weight_error": round(float(error.mean()), 4),
        "cpu_seconds": round(float(seconds_each.mean()), 4),
    }


def _accuracy(pairs: PairDifferences, weights: Floats) -> float:
    return share_right(*pairs.decided(), weights)


def coverage(name: str) -> dict[str, Any]:
    """Share of true weights that lie in their 95 % bootstrap interval."""
    inside = []
    for seed in range(SEEDS):
        truth, pairs = simulate("flips", COVERAGE_PAIRS, TESTS, seed)
        result = learn_from_pairs(pairs, method=name, compare=(), folds=1, seed=seed)
        assert result.low is not None
        assert result.high is not None
        inside.append((result.low <= truth) & (truth <= result.high))
    return {
        "learner": name,
        "pairs": COVERAGE_PAIRS,
        "intervals": SEEDS * TESTS,
        "share_covered": round(float(np.mean(inside)), 3),
    }


def whole_time(pairs: int, tests: int, repeats: int = 3) -> dict[str, Any]:
    """Time of ``learn_from_pairs`` as it stands: held-out comparison of seven learners, choice, weights and bootstrap intervals.

    The quickest of a few repeats: other programs on the machine can only add to it.
    """
    _, prefs = simulate("flips", pairs, tests, 0)
    times = []
    for _ in range(repeats):
        began, cpu = time.perf_counter(), time.process_time()
        result = learn_from_pairs(prefs)
        times.append((time.perf_counter() - began, time.process_time() - cpu))
    return {
        "pairs": pairs,
        "tests": tests,
        "wall_seconds": round(min(wall for wall, _ in times), 2),
        "cpu_seconds": round(min(cpu for _, cpu in times), 2),
        "repeats": repeats,
        "resamples": result.resamples,
        "folds": result.folds,
        "chosen": result.learner,
    }


def peak_memory(pairs: int, tests: int) -> dict[str, Any]:
    """Peak of memory allocated by ``learn_from_pairs``, beside the size of the scores."""
    _, prefs = simulate("flips", pairs, tests, 0)
    tracemalloc.start()
    learn_from_pairs(prefs, resamples=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "pairs": pairs,
        "tests": tests,
        "scores_megabytes": round((prefs.scores_a.nbytes + prefs.scores_b.nbytes) / 1e6, 1),
        "peak_megabytes": round(peak / 1e6, 1),
    }


def measure(*, slow: bool, kept: list[dict[str, Any]]) -> dict[str, Any]:
    """Run everything; the slow learners when ``slow``, else with the rows ``kept`` in their place."""
    rows = []
    for name in QUICK:
        for world in WORLDS:
            rows += [recover(world, name, pairs, SEEDS) for pairs in SIZES]
        print(f"{name} done", file=sys.stderr, flush=True)
    rows += kept
    if slow:
        for name, (sizes, seeds) in SLOW_SIZES.items():
            rows += [recover("flips", name, pairs, seeds) for pairs in sizes]
            print(f"{name} done", file=sys.stderr, flush=True)
    return {
        "command": "python -m askance.experiments.measured.weights_recovery",
        "design": {
            "tests": TESTS,
            "flips": FLIPS,
            "bradley_terry_sharpness": SHARPNESS,
            "true_weights": "flat Dirichlet",
            "held_out_pairs": HELD_OUT,
            "note": "bayes (200 evaluations, probability of improvement, xi 0.01) runs on two sizes and three seeds, "
            "optuna-tpe on five seeds, both only with flipped labels; optuna-gp is not run, it needs PyTorch."
            + (" The rows of bayes and optuna-tpe are from an earlier run of the same command." if kept else ""),
        },
        "recovery": rows,
        "interval_coverage": [coverage(name) for name in ("logistic", "robust", "local-search")],
        "time": [whole_time(3_000, 8), whole_time(100_000, 30)],
        "memory": [peak_memory(pairs, 30) for pairs in (25_000, 50_000, 100_000)],
        "environment": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "scipy", "bayesian-optimization", "optuna")},
            "learners_known": list(learners()),
        },
    }


def _slow_rows(path: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["recovery"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: there is no earlier result to keep rows of ({error}).") from None
    return [row for row in rows if row["learner"] in SLOW_SIZES]


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(
        prog="python -m askance.experiments.measured.weights_recovery", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="leave out the slow learners")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    parser.add_argument("--keep-slow", action="store_true", help="take the slow learners' rows from the result file")
    options = parser.parse_args(arguments)
    kept = _slow_rows(options.output) if options.keep_slow else []
    result = measure(slow=not (options.quick or options.keep_slow), kept=kept)
    write_result(options.output, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
