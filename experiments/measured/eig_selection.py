"""Do questions chosen together tell more than the best ones one by one? Real scores as answers, people as ratings.

Run ``python -m askance.experiments.measured.eig_selection DATA_FOLDER`` (two minutes). Candidates are made from scores that come
with the data: "is the score on this dimension above this quantile?", asked at several quantiles of every dimension,
so that many candidates ask nearly the same thing, as proposed questions do.

* ``topical_chat.jsonl``: the published UniEval scores on five dimensions; rating: people's ``overall``.
* ``qags_cnndm.jsonl``: the published UniEval consistency; rating: people's ``consistency``.
* ``summeval_6systems.jsonl``: the first expert's scores on four dimensions; rating: the mean of the other two.
* simulated: 5 facts asked about four times each, of which the rating is the (noisy) sum; and 20 independent questions.

In each of many random halvings the questions are chosen on one half, and what the chosen set tells about the rating is
estimated on the other half (chain rule, corrected inside each combination of answers). Outputs for one input are never
on both sides.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...optimizer.selection.analysis import (
    SampleTables,
    equal_groups,
    halvings,
    measure_questions,
    question_orders,
    rows_of,
)
from ...optimizer.selection.information import DEFAULT_CORRECTION, Floats, one_hot
from ...optimizer.selection.joint import chained_information, exchange, greedy_order
from ...prompts.errors import AskanceError, InputError
from ...prompts.rows import read_rows
from ..command_line import RESULTS, write_result

RESULT = RESULTS / "eig_selection.json"
QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)
LEVELS = 5
LARGEST_K = 8
COMPARED = (2, 3, 5)
"""Sizes at which the greedy set alone, and one improved by every exchange that seems to gain, stand beside."""


def evidence_of(scores: Floats, ratings: Floats, groups: Sequence[str], quantiles: Sequence[float]) -> SampleTables:
    """Thresholded scores as answers, and ratings in groups of about equal size.

    Args:
        scores: Shape (outputs, dimensions).
        ratings: Shape (outputs,).
        groups: The input of each output.
        quantiles: Where each dimension is cut.
    """
    cuts = np.quantile(scores, quantiles, axis=0)
    above = (scores[:, None, :] > cuts[None, :, :]).reshape(len(scores), -1)
    varied = above[:, (above.mean(axis=0) > 0) & (above.mean(axis=0) < 1)]
    return evidence_from(varied.astype(np.int64), ratings, groups)


def evidence_from(answers: Any, ratings: Floats, groups: Sequence[str]) -> SampleTables:
    """Yes/no answers as codes, shape (outputs, questions), with ratings."""
    codes = equal_groups(ratings, LEVELS)
    table = one_hot(codes, int(codes.max()) + 1)
    return SampleTables(one_hot(answers, 2), answers.astype(np.float64), table, codes, ratings, groups=groups)


def topical_chat(folder: Path) -> SampleTables:
    """UniEval's five dimensions, people's overall."""
    rows = _rows(folder / "topical_chat.jsonl")
    names = sorted(rows[0]["unieval"])
    scores = np.array([[row["unieval"][name] for name in names] for row in rows])
    ratings = np.array([row["human"]["overall"] for row in rows])
    return evidence_of(scores, ratings, [f"{row['input']}{row['context']}" for row in rows], QUANTILES)


def qags(folder: Path) -> SampleTables:
    """UniEval's consistency, people's consistency."""
    rows = _rows(folder / "qags_cnndm.jsonl")
    scores = np.array([[row["unieval"]["consistency"]] for row in rows])
    ratings = np.array([row["human"]["consistency"] for row in rows])
    return evidence_of(scores, ratings, [row["input"] for row in rows], [each / 12 for each in range(1, 12)])


def summeval(folder: Path) -> SampleTables:
    """The first expert's four dimensions, the mean of the others over all dimensions."""
    rows = _rows(folder / "summeval_6systems.jsonl")
    names = sorted(rows[0]["human"])
    experts = np.array([[[one[name] for name in names] for one in row["human_experts"]] for row in rows], dtype=float)
    ratings = experts[:, 1:].mean(axis=(1, 2))
    first = experts[:, 0]
    above = np.stack([first > cut for cut in np.unique(first)[:-1]], axis=1).reshape(len(rows), -1)
    return evidence_from(above.astype(np.int64), ratings, [str(row["document"]) for row in rows])


def simulated(outputs: int, facts: int, copies: int, seed: int = 0) -> SampleTables:
    """A rating that is the noisy sum of facts, each asked about ``copies`` times with some slips."""
    rng = np.random.default_rng(seed)
    truth = rng.random((outputs, facts)) < rng.uniform(0.3, 0.7, facts)
    weights = np.linspace(2.0, 0.5, facts)
    ratings = truth @ weights + rng.normal(0, 0.5, outputs)
    slips = rng.random((outputs, facts, copies)) < rng.uniform(0.02, 0.15, (facts, copies))
    answers = (truth[:, :, None] ^ slips).reshape(outputs, -1)
    return evidence_from(answers.astype(np.int64), ratings, [str(number) for number in range(outputs)])


def compare(tables: SampleTables, number: int, seed: int = 42) -> dict[str, Any]:
    """Bits of k questions chosen in each way, over ``number`` halvings (both ways round), for growing k."""
    steps = min(LARGEST_K, tables.answers.shape[1])
    return {
        "outputs": len(tables.codes),
        "candidates": int(tables.answers.shape[1]),
        "halvings": number,
        "by_k": [_at_k(tables, k, number, seed) for k in range(1, steps + 1)],
    }


def _at_k(tables: SampleTables, k: int, number: int, seed: int) -> dict[str, Any]:
    chosen_there: dict[str, list[float]] = {}
    elsewhere: dict[str, list[float]] = {}
    for chosen_on, looked_at in halvings(tables, number, seed):
        here, there = rows_of(tables, chosen_on), rows_of(tables, looked_at)
        information = measure_questions(here, DEFAULT_CORRECTION, seed)
        alone, orders = information.bits, question_orders(here, information, None, k)
        sets: dict[str, list[int]] = {name: order[:k] for name, (order, _) in orders.items()}
        if k in COMPARED:
            sets["greedy"] = greedy_order(here.hard, alone, steps=k)[0]
            sets["any_exchange"] = exchange(here.hard, sets["joint"], least=0.0)
        for name, questions in sets.items():
            chosen_there.setdefault(name, []).append(_bits(here, questions))
            elsewhere.setdefault(name, []).append(_bits(there, questions))
    row: dict[str, Any] = {"k": k}
    for name, values in elsewhere.items():
        row[name] = round(float(np.mean(values)), 4)
        if name != "top":
            by_half = (np.array(values) - elsewhere["top"]).reshape(number, 2).mean(axis=1)
            low, high = np.quantile(by_half, [0.05, 0.95])
            row[f"{name}_less_top"] = [round(float(each), 4) for each in (by_half.mean(), low, high)]
            row[f"{name}_not_worse"] = round(float((by_half >= -1e-9).mean()), 3)
    where_chosen = {name: np.array(values) for name, values in chosen_there.items()}
    row["where_chosen"] = {name: round(float(values.mean()), 4) for name, values in where_chosen.items()}
    row["where_chosen"]["least_joint_less_top"] = round(float((where_chosen["joint"] - where_chosen["top"]).min()), 4)
    return row


def _bits(tables: SampleTables, questions: Sequence[int]) -> float:
    return float(chained_information(tables.hard, questions)[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(prog="python -m askance.experiments.measured.eig_selection", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the three files")
    parser.add_argument("--halvings", type=int, default=50)
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    worlds: dict[str, Callable[[], SampleTables]] = {
        "topical_chat": lambda: topical_chat(options.data),
        "qags_cnndm": lambda: qags(options.data),
        "summeval_6systems": lambda: summeval(options.data),
        "simulated, 5 facts asked 4 times, 100 outputs": lambda: simulated(100, 5, 4),
        "simulated, 5 facts asked 4 times, 400 outputs": lambda: simulated(400, 5, 4),
        "simulated, 20 independent questions, 400 outputs": lambda: simulated(400, 20, 1),
    }
    result: dict[str, Any] = {
        "command": f"python -m askance.experiments.measured.eig_selection DATA_FOLDER --halvings {options.halvings}",
        "note": "Bits about the rating (in up to 5 groups) that k questions tell on the half of the outputs that did "
        "not choose them, and under `where_chosen` on the half that did. `joint` is what the command does: the greedy "
        "set, or the k best one by one where these tell more, and then exchanges that gain more than their standard "
        "error; `greedy` is the first part alone, `any_exchange` makes every exchange that seems to gain. less_top: mean difference over halvings, with its 5 and 95 %.",
        "data": {},
    }
    try:
        for name, make in worlds.items():
            began = time.process_time()
            result["data"][name] = compare(make(), options.halvings)
            row = result["data"][name]["by_k"][min(5, len(result["data"][name]["by_k"])) - 1]
            print(f"{name}: {row} ({time.process_time() - began:.1f} s)", flush=True)
    except (AskanceError, KeyError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, AskanceError) else 2
    write_result(options.output, result)
    return 0


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = [row for _, row in read_rows(path)]
    if not rows:
        raise InputError(f"{path}: there are no rows in it.")
    return rows


if __name__ == "__main__":
    sys.exit(main())
