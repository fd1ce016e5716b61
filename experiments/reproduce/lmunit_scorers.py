"""Scorers trained for the tables of LMUnit's losses: the losses, how one is trained, and what that took."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...models.base import Model
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...stats.resampling import Resampling
from ...training.train import train

ARMS = {
    "cross-entropy": (1.0, 0.0, 0.0),
    "squared error": (0.0, 1.0, 0.0),
    "preference": (0.0, 0.0, 1.0),
    "all three": (1.0, 1.0, 1.0),
}
ALL = "all three"


def train_scorer(
    given: argparse.Namespace,
    examples: Sequence[Example],
    checklist: Checklist,
    folder: Path,
    seed: int,
    weights: tuple[float, float, float],
    verdicts: Any = None,
    pairs: Any = None,
    author: Model | None = None,
) -> Any:
    """Train a scorer with the options of the command line and these loss weights.

    An ``author`` writes contrasts, where the preference loss has a weight, and judges them.
    """
    names = ("epochs", "batch_size", "learning_rate", "longest", "levels", "precision", "patience", "resamples")
    settings = {name: getattr(given, name) for name in names}
    if author is not None and weights[2]:
        settings |= {"writer": author, "judge_model": author, "contrasts": given.contrasts, "no_cache": True}
    return train(
        examples,
        checklist=checklist,
        output=folder,
        base=given.base,
        verdicts=verdicts,
        preferences=pairs,
        seed=seed,
        loss_weights=weights,
        trust_verdicts=True,  # with and without them is compared here
        **settings,
    )


def training_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Summarise the cost of a training and its course on validation."""
    curve, items = found["curve"], Counter[str]()
    for row in found["mixture"]["rows"]:
        items[row["kind"]] += row["training"]
    return {
        "training_items": dict(items),
        "cpu_seconds": curve["cpu_seconds"],
        "cpu_ms_a_verdict": found["speed"]["cpu_ms"],
        "mean_tokens": found["speed"]["mean_tokens"],
        "cut_share": found["cut"]["share"],
        "best_epoch": curve["best_epoch"],
        "validation": [each["loss"] for each in curve["validation"]],
    }


def by_document(examples: Sequence[Example]) -> Resampling:
    """Documents drawn anew, each with all of its outputs."""
    return Resampling([each.metadata["document"] for each in examples])
