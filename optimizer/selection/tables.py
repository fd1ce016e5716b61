"""From verdicts, ratings and human scores to the tables that information is computed from.

What is missing stays missing: NaN in a table of probabilities, -1 in one of codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ...evaluation.verdict_table import tabulate
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import human_dimensions
from ...stats.resampling import tied
from .information import Floats, one_hot
from .joint import Codes, HardAnswers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...agents.rating import Rating
    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict

Kind = Literal["soft", "hard", "split"]


def answers_from_verdicts(
    verdicts: Sequence[Verdict], examples: Sequence[Example], candidates: Checklist, kind: Kind
) -> tuple[Floats, Floats]:
    """Yes/no answers as probabilities, and what each counts for in a score.

    Args:
        verdicts: Replicates are averaged; one missing replicate makes the answer missing.
        examples: In this order.
        candidates: Questions, in this order.
        kind: ``soft``: P(yes); ``hard``: the answer; ``split``: whether P(yes) is above the question's median.

    Returns:
        p(a|q,I) with no first and yes second, shape (examples, questions, 2), and the scores in [0, 1] from P(yes)
        (from the answers where ``kind`` is hard), shape (examples, questions); NaN where missing.
    """
    scores = tabulate(examples, candidates, verdicts).scores(soft=kind != "hard")
    if kind == "split":
        codes = np.stack([equal_groups(column, 2) for column in scores.T], axis=1)
        return one_hot(codes, 2), scores
    return np.stack([1.0 - scores, scores], axis=2), scores


def answers_from_ratings(
    ratings: Sequence[Rating], examples: Sequence[Example], questions: Sequence[str], levels: int, *, hard: bool
) -> tuple[Floats, Floats]:
    """Answers on a scale, as :func:`answers_from_verdicts`; the score is the expected level mapped to [0, 1]."""
    table = np.full((len(examples), len(questions), levels), np.nan)
    rows = {example.id: row for row, example in enumerate(examples)}
    columns = {question: column for column, question in enumerate(questions)}
    for rating in ratings:
        if rating.distribution is not None and rating.question is not None:
            table[rows[rating.example], columns[rating.question]] = rating.distribution
    if hard:
        missing = np.isnan(table[:, :, 0])
        table = one_hot(np.where(missing, -1, np.nan_to_num(table).argmax(axis=2)), levels)
    scores: Floats = table @ np.arange(levels) / (levels - 1)
    return table, scores


def conditional_table(
    ratings: Sequence[Rating], examples: Sequence[Example], questions: Sequence[str], levels: int
) -> Floats:
    """p(y|I,q,a) for a = no, yes; shape (examples, questions, 2, levels), NaN where missing."""
    table = np.full((len(examples), len(questions), 2, levels), np.nan)
    rows = {example.id: row for row, example in enumerate(examples)}
    columns = {question: column for column, question in enumerate(questions)}
    for rating in ratings:
        if rating.distribution is not None and rating.question is not None and rating.given is not None:
            table[rows[rating.example], columns[rating.question], int(rating.given)] = rating.distribution
    return table


def judged_ratings(ratings: Sequence[Rating], levels: int) -> tuple[Floats, Floats]:
    """p(y|I), shape (examples, levels), and the expected rating, shape (examples,); NaN where missing."""
    table = np.full((len(ratings), levels), np.nan)
    for row, rating in enumerate(ratings):
        if rating.distribution is not None:
            table[row] = rating.distribution
    return table, table @ np.arange(1, levels + 1)


def human_scores(
    examples: Sequence[Example], dimension: str | None = None, scale: tuple[float, float] | None = None
) -> tuple[str, Floats]:
    """What people said of the whole: one dimension, or the mean of all with each on [0, 1].

    Args:
        examples: In this order.
        dimension: By default ``overall`` where it was rated, else the mean of all.
        scale: Lowest and highest score; the observed ones of each dimension by default.

    Returns:
        What it is in words, and the scores, shape (examples,), NaN where one is missing.

    Raises:
        InputError: Nobody rated the dimension.
    """
    rated = human_dimensions(examples)
    if dimension is not None and dimension not in rated:
        have = ", ".join(rated) or "none"
        raise InputError(
            f"--rating-dimension {dimension}: no example has human scores on it (rated: {have})."
            f"{did_you_mean(dimension, rated)}"
        )
    one = dimension or ("overall" if "overall" in rated else rated[0] if len(rated) == 1 else None)
    if one is not None:
        return one, _column(examples, one)
    parts = []
    for each in rated:
        column = _column(examples, each)
        low, high = scale or (float(np.nanmin(column)), float(np.nanmax(column)))
        parts.append((column - low) / (high - low if high > low else 1.0))
    mean: Floats = np.mean(parts, axis=0) if parts else np.full(len(examples), np.nan)
    return f"mean of {', '.join(rated)}", mean


def equal_groups(values: Floats, groups: int) -> Codes:
    """Codes of at most ``groups`` groups of about equal size, in ascending order of value, shape (values,).

    Equal values stay together, each in the group that the middle of their ranks falls into. With no more distinct
    values than groups, each value is a group. A missing value (NaN) gets -1.
    """
    codes = np.full(len(values), -1, dtype=np.int64)
    there = ~np.isnan(values)
    if not there.any():
        return codes
    _, inverse, counts = np.unique(tied(values[there]), return_inverse=True, return_counts=True)
    if len(counts) <= groups:
        codes[there] = inverse
        return codes
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    _, group = np.unique(np.minimum((middle * groups).astype(np.int64), groups - 1), return_inverse=True)
    codes[there] = group[inverse]
    return codes


def hard_answers(answers: Floats, ratings: Codes, levels: int) -> HardAnswers:
    """The likeliest answers as codes; of equally likely ones the higher, as a verdict does at one half."""
    options = answers.shape[2]
    missing = np.isnan(answers[:, :, 0])
    highest = options - 1 - np.nan_to_num(answers)[:, :, ::-1].argmax(axis=2)
    return HardAnswers(np.where(missing, -1, highest).astype(np.int64), ratings, options, levels)


def _column(examples: Sequence[Example], dimension: str) -> Floats:
    scores = [example.human_score(dimension) for example in examples]
    return np.array([np.nan if score is None else score for score in scores], dtype=np.float64)
