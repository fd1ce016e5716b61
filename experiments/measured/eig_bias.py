"""How far off are estimates of information on few examples, and do they choose the right questions? Known truth.

Run ``python -m askance.experiments.measured.eig_bias`` (two minutes). Worlds are drawn at random: a rating with five levels and
twelve questions whose answers depend on it. *Single* questions have 2, 3 or 5 answers; true information from the joint
table. For *sets*, yes/no questions come in four kinds asked three times each with slips, or are twelve different ones;
the true information of any set is summed up over all answer patterns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...optimizer.selection.information import Correction, Floats, mutual_information, one_hot, pooled_information
from ...optimizer.selection.joint import (
    HardAnswers,
    best_alone,
    chained_information,
    exchange,
    greedy_order,
    joint_order,
)
from ...stats.correlation import kendall
from ..command_line import RESULTS, write_result

RESULT = RESULTS / "eig_bias.json"
LEVELS, QUESTIONS, K = 5, 12, 5
SIZES = (30, 60, 120, 300, 1000)
CORRECTIONS: tuple[Correction, ...] = ("none", "miller-madow", "shuffle")
Codes = NDArray[np.int64]


def singles(options: int, size: int, seed: int) -> tuple[Floats, Codes, Codes]:
    """True bits (questions,), answers (examples, questions) and ratings (examples,) of one random world."""
    rng = np.random.default_rng([seed, options])
    p_rating = rng.dirichlet(np.full(LEVELS, 2.0))
    strength = rng.uniform(0.0, 1.0, QUESTIONS) ** 2
    plain = rng.dirichlet(np.ones(options), QUESTIONS)
    told = rng.dirichlet(np.full(options, 0.5), (QUESTIONS, LEVELS))
    p_answer = (1 - strength)[:, None, None] * plain[:, None, :] + strength[:, None, None] * told
    truth = mutual_information(
        (p_answer * p_rating[None, :, None]).transpose(0, 2, 1), np.ones(QUESTIONS, dtype=np.int64)
    )
    ratings = rng.choice(LEVELS, size, p=p_rating)
    draws = rng.random((size, QUESTIONS, 1))
    answers = (draws > np.cumsum(p_answer, axis=2)[:, ratings].transpose(1, 0, 2)[:, :, :-1]).sum(axis=2)
    return truth, answers.astype(np.int64), ratings.astype(np.int64)


def measure_singles(options: int, size: int, worlds: int) -> dict[str, Any]:
    """Bias, error and ranking of each correction."""
    rows: dict[str, list[list[float]]] = {each: [] for each in CORRECTIONS}
    for seed in range(worlds):
        truth, answers, ratings = singles(options, size, seed)
        best = np.sort(truth)[-K:].sum()
        for correction in CORRECTIONS:
            bits = pooled_information(one_hot(answers, options), one_hot(ratings, LEVELS), correction=correction).bits
            tau = kendall(bits, truth).value
            kept = truth[np.argsort(-bits, kind="stable")[:K]].sum() / best
            off = bits - truth
            rows[correction].append([off.mean(), (off**2).mean(), tau if tau is not None else 0.0, kept])
    return {
        "answers": options,
        "examples": size,
        **{name: _row(np.array(values), ("bias", "rmse", "tau", "top_share")) for name, values in rows.items()},
    }


class Sets:
    """A world of yes/no questions: facts that depend on the rating, asked about with slips."""

    def __init__(self, copies: int, seed: int) -> None:
        rng = np.random.default_rng([seed, copies])
        facts = QUESTIONS // copies
        slope, middle = rng.normal(0, 1.2, (facts, 1)), rng.uniform(0, LEVELS - 1, (facts, 1))
        self.p_yes = 1 / (1 + np.exp(-slope * (np.arange(LEVELS) - middle)))
        self.slips = rng.uniform(0.02, 0.25, (facts, copies))
        self.slips[:, 0] = 0.0
        self.p_rating = rng.dirichlet(np.full(LEVELS, 2.0))
        self.copies = copies
        self._rng = rng

    def draw(self, size: int) -> HardAnswers:
        """Answers and ratings of so many examples."""
        ratings = self._rng.choice(LEVELS, size, p=self.p_rating)
        facts = self._rng.random((size, len(self.p_yes))) < self.p_yes[:, ratings].T
        slips = self._rng.random((size, *self.slips.shape)) < self.slips
        answers = (facts[:, :, None] ^ slips).reshape(size, -1).astype(np.int64)
        return HardAnswers(answers, ratings.astype(np.int64), 2, LEVELS)

    def truth(self, chosen: Sequence[int]) -> float:
        """Bits that these questions tell together."""
        table = np.ones((1, LEVELS))
        for fact in sorted({question // self.copies for question in chosen}):
            slips = [self.slips[fact, question % self.copies] for question in chosen if question // self.copies == fact]
            patterns = (np.arange(2 ** len(slips))[:, None] >> np.arange(len(slips))) & 1
            under = [np.prod(np.where(patterns == value, 1 - np.array(slips), slips), axis=1) for value in (0, 1)]
            p = under[0][:, None] * (1 - self.p_yes[fact]) + under[1][:, None] * self.p_yes[fact]
            table = (table[:, None, :] * p[None, :, :]).reshape(-1, LEVELS)
        return float(mutual_information((table * self.p_rating)[None], np.ones(1, dtype=np.int64))[0])


def measure_sets(copies: int, size: int, worlds: int) -> dict[str, Any]:
    """Error of each estimate for a set of five, and what the sets chosen by each method truly tell."""
    estimates: dict[str, list[list[float]]] = {}
    chosen: dict[str, list[list[float]]] = {}
    for seed in range(worlds):
        world = Sets(copies, seed)
        data = world.draw(size)
        some = np.random.default_rng(seed).choice(QUESTIONS, K, replace=False).tolist()
        truth = world.truth(some)
        ways: dict[str, Callable[[Sequence[int]], float]] = {
            **{each: _whole_table(data, each) for each in CORRECTIONS},
            "chained": lambda order, data=data: float(chained_information(data, order)[-1]),  # type: ignore[misc]
        }
        for name, way in ways.items():
            off = way(some) - truth
            estimates.setdefault(name, []).append([off, off**2])
        bits = pooled_information(one_hot(data.answers, 2), one_hot(data.ratings, LEVELS)).bits
        sets = {
            "top": best_alone(bits)[:K],
            "joint": joint_order(data, bits, K)[0][:K],
            "greedy": greedy_order(data, bits, steps=K)[0],
            "any exchange": exchange(data, joint_order(data, bits, K)[0][:K], least=0.0),
            **{f"greedy on the whole table, {name}": _greedy(way) for name, way in ways.items() if name != "none"},
        }
        for name, questions in sets.items():
            chosen.setdefault(name, []).append([world.truth(questions)])
    return {
        "questions": f"{QUESTIONS // copies} facts asked {copies} times" if copies > 1 else "12 different ones",
        "examples": size,
        "estimates": {name: _row(np.array(values), ("bias", "rmse")) for name, values in estimates.items()},
        "true_bits_of_chosen": {name: round(float(np.mean(values)), 4) for name, values in chosen.items()},
    }


def _whole_table(data: HardAnswers, correction: Correction) -> Callable[[Sequence[int]], float]:
    def estimate(order: Sequence[int]) -> float:
        cells = data.answers[:, list(order)] @ (1 << np.arange(len(order)))
        table = one_hot(cells[:, None], 1 << len(order))
        return float(pooled_information(table, one_hot(data.ratings, LEVELS), correction=correction).bits[0])

    return estimate


def _greedy(estimate: Callable[[Sequence[int]], float]) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < K:
        left = [question for question in range(QUESTIONS) if question not in chosen]
        chosen.append(max(left, key=lambda question: estimate([*chosen, question])))
    return chosen


def _row(values: Floats, names: Sequence[str]) -> dict[str, float]:
    means = values.mean(axis=0)
    row = dict(zip(names, means.tolist(), strict=True))
    row["rmse"] = row["rmse"] ** 0.5
    return {name: round(value, 4) for name, value in row.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.eig_bias", description=__doc__)
    parser.add_argument("--worlds", type=int, default=60, help="random worlds for each row; sets get a third of them")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {
        "command": f"python -m askance.experiments.measured.eig_bias --worlds {options.worlds}",
        "note": "Bits. bias and rmse: estimate less truth, over questions (or sets) and worlds. tau: Kendall's tau with "
        "the true ranking. top_share: true information of the five best by the estimate over that of the true five.",
        "singles": [measure_singles(answers, size, options.worlds) for answers in (2, 3, 5) for size in SIZES],
        "sets": [measure_sets(copies, size, max(1, options.worlds // 3)) for copies in (3, 1) for size in SIZES],
    }
    write_result(options.output, result)
    for part in ("singles", "sets"):
        for row in result[part]:
            print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
