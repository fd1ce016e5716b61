"""Do learned weights beat uniform ones on real pairs? Topical-Chat: dimension scores predicting the overall
rating.

Run ``python -m askance.experiments.measured.weights_topical_chat DATA`` with ``topical_chat.jsonl`` (360 responses,
six to each of 60 dialogue contexts; 900 pairs within contexts). The tests are the five dimensions, once as
people scored them and once as the UniEval model did; what is predicted is the human ``overall``. Contexts
never straddle development and test.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...optimizer.weights import (
    RatingScores,
    learn_from_pairs,
    learn_from_ratings,
    rating_report,
    rating_scores,
    ratings_to_pairs,
    weights_report,
)
from ...prompts.errors import InputError
from ...prompts.rows import read_rows
from ..command_line import RESULTS, says_errors, write_result
from .weights_all_learners import split_with_slow_learners

RESULT = RESULTS / "weights_topical_chat.json"
DIMENSIONS = ("naturalness", "coherence", "engagingness", "groundedness", "understandability")
SPLIT_SEEDS = (0,)
"""Seeds of the single splits on which the slow learners run as well."""


def read_scores(path: Path, scorer: str) -> RatingScores:
    """Dimension scores by ``scorer`` (``human`` or ``unieval``), scaled to [0, 1] by their range, and the
    overall rating.

    Raises:
        InputError: The file lacks a field.
    """
    rows = [row for _, row in read_rows(path)]
    try:
        raw = np.array([[row[scorer][dimension] for dimension in DIMENSIONS] for row in rows], dtype=np.float64)
        overall = [float(row["human"]["overall"]) for row in rows]
        contexts = [f"{row['input']}\n{row['context']}" for row in rows]
        ids = [row["id"] for row in rows]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: a line lacks {error}; this experiment reads topical_chat.jsonl.") from None
    low, high = raw.min(axis=0), raw.max(axis=0)
    return rating_scores(ids, DIMENSIONS, (raw - low) / (high - low), overall, groups=contexts)


def measure_scorer(path: Path, scorer: str, *, slow: bool) -> dict[str, Any]:
    """Pairs, ratings, and both, with the dimension scores of one scorer."""
    ratings = read_scores(path, scorer)
    pairs = ratings_to_pairs(ratings)
    cross_validated = learn_from_pairs(pairs)
    forced = learn_from_pairs(pairs, method="robust", compare=())
    result: dict[str, Any] = {
        "cross_validated": weights_report(cross_validated),
        "robust_without_the_choice": weights_report(forced),
        "from_ratings": rating_report(learn_from_ratings(ratings)),
        "from_ratings_and_pairs": rating_report(learn_from_ratings(ratings, pairs=pairs)),
    }
    if slow:
        result["single_splits_with_slow_learners"] = [split_with_slow_learners(pairs, seed) for seed in SPLIT_SEEDS]
    return result


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result file."""
    parser = argparse.ArgumentParser(
        prog="python -m askance.experiments.measured.weights_topical_chat", description=__doc__
    )
    parser.add_argument("data", type=Path, help="topical_chat.jsonl")
    parser.add_argument("--quick", action="store_true", help="leave out the slow learners")
    parser.add_argument("-o", "--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    result = {
        "command": "python -m askance.experiments.measured.weights_topical_chat topical_chat.jsonl",
        "note": "Scores of each dimension are scaled to [0, 1] by their observed range. bayes and optuna-tpe run "
        "on a single split only, with the others beside them; optuna-gp needs PyTorch and is not run.",
        **{scorer: measure_scorer(options.data, scorer, slow=not options.quick) for scorer in ("human", "unieval")},
    }
    write_result(options.output, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
