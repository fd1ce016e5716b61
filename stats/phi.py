"""The phi matrix: how similarly pairs of yes/no questions are answered, and its summary (BinEval §5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..prompts.errors import InputError
from .resampling import MINIMUM_ITEMS

Matrix = NDArray[np.float64]

WEAK = 0.3
"""Two questions with |phi| below this are weakly related (BinEval §5.6)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions and their phi: how similarly they are answered."""

    first: str
    second: str
    phi: float
    """Phi in [-1, 1]; 1 means always the same answer."""
    n: int
    """Examples (times replicates) on which both have an answer."""


@dataclass(frozen=True, slots=True)
class PhiMatrix:
    """Phi of every pair of questions, over the examples on which both have an answer."""

    questions: tuple[str, ...]
    values: Matrix
    """Shape (questions, questions); NaN where undefined, 1 on the diagonal of a question that varies."""
    together: NDArray[np.int64]
    """Number of answers that each pair has in common; shape (questions, questions)."""
    examples: NDArray[np.int64]
    """Number of examples that each pair has in common; replicates count as one."""

    def of(self, first: str, second: str) -> float | None:
        """Phi of two questions; None if it is undefined (:meth:`reason`)."""
        value = self.values[self.questions.index(first), self.questions.index(second)]
        return None if np.isnan(value) else float(value)

    def reason(self, first: str, second: str) -> str | None:
        """Why phi is undefined; None if it is defined."""
        if self.of(first, second) is not None:
            return None
        n = int(self.together[self.questions.index(first), self.questions.index(second)])
        if n < MINIMUM_ITEMS:
            both = "" if first == second else " to both"
            return f"fewer than {MINIMUM_ITEMS} answers{both} (there are {n})"
        if first == second:
            return f"every answer of {n} is the same"
        return f"one of the two is answered alike every time, among the {n} answers that they have in common"

    def only(self, questions: Sequence[str]) -> PhiMatrix:
        """Return the part of the matrix for some of the questions."""
        places = [self.questions.index(question) for question in questions]
        cut = np.ix_(places, places)
        return PhiMatrix(tuple(questions), self.values[cut], self.together[cut], self.examples[cut])

    def pairs(self) -> list[Pair]:
        """Return every pair with a defined phi, the largest phi first."""
        rows, columns = np.triu_indices(len(self.questions), 1)
        values = self.values[rows, columns]
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.argsort(-values[known], kind="stable")]
        return [
            Pair(
                self.questions[rows[place]],
                self.questions[columns[place]],
                float(values[place]),
                int(self.together[rows[place], columns[place]]),
            )
            for place in order
        ]


def phi_matrix(questions: Sequence[str], answers: Matrix, replicates: int = 1) -> PhiMatrix:
    """Pairwise-complete phi coefficients: Pearson's correlation of 0/1 answers; a missing answer is NaN.

    A measure has a share in [0, 1] instead of an answer. ``answers`` has the shape (examples * replicates, questions),
    with the replicates of an example next to each other. Raises InputError for another shape.
    """
    if answers.ndim != 2 or answers.shape[1] != len(questions) or len(answers) % replicates:
        raise InputError(
            f"The answers have shape {answers.shape}; (examples times {replicates}, {len(questions)}) is needed."
        )
    known = ~np.isnan(answers)
    has_answer = known.astype(np.float64)
    yes = np.where(known, answers, 0.0)
    together = has_answer.T @ has_answer
    both_yes = yes.T @ yes
    first = yes.T @ has_answer  # yes to the row's question, where the column's has an answer too
    second = first.T
    own = together * ((yes * yes).T @ has_answer) - first * first
    spread = own * own.T
    defined = (spread > 1e-9) & (together >= MINIMUM_ITEMS)
    values = np.full(both_yes.shape, np.nan)
    covariance = together * both_yes - first * second
    values[defined] = np.clip(covariance[defined] / np.sqrt(spread[defined]), -1.0, 1.0)
    once = has_answer if replicates == 1 else has_answer.reshape(-1, replicates, len(questions)).max(axis=1)
    examples = together if replicates == 1 else once.T @ once
    return PhiMatrix(tuple(questions), values, together.astype(np.int64), examples.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Relatedness:
    """Summary of a phi matrix."""

    pairs: int
    """Number of pairs with a defined phi."""
    mean: float | None
    """Mean phi of the pairs; None without pairs."""
    weak_share: float | None
    """Share of the pairs with |phi| < 0.3, in [0, 1]."""
    effective: float | None
    """Effective number of independent questions, from 1 to the number of questions that vary."""
    reason: str | None
    """Why a figure is None; None if all figures are there."""


def relatedness(matrix: PhiMatrix) -> Relatedness:
    """Mean phi, share of weak pairs and effective number of independent questions.

    The effective number is the participation ratio of the eigenvalues, (Σλ)² / Σλ² (Bretherton et al., J. Climate 12,
    1999, eq. 5), which for q questions with unit diagonal is q² / Σ phi². It runs from 1 (all answered alike) to q
    (uncorrelated). Questions that never vary are not among the q. Chance alone makes the phi of unrelated questions
    differ from 0: of 200 independent questions with 60 examples, 46 would be left. So the share that chance adds is
    subtracted, as in the adjusted R²: phi² - (1 - phi²) / (n - 2), where n is the number of examples.
    """
    varying = int(np.count_nonzero(~np.isnan(np.diagonal(matrix.values))))
    rows, columns = np.triu_indices(len(matrix.questions), 1)
    values, n = matrix.values[rows, columns], matrix.examples[rows, columns]
    known = ~np.isnan(values)
    values, n = values[known], n[known]
    if varying == 0:
        return Relatedness(0, None, None, None, "no question varies")
    if len(values) == 0:
        effective, reason = (1.0, "only one question varies") if varying == 1 else (None, "no two have a phi")
        return Relatedness(0, None, None, effective, reason)
    squared = values**2
    adjusted = squared - (1 - squared) / np.maximum(n - 2, 1)
    common = min(max(float(adjusted.mean()), 0.0), 1.0)
    effective = varying / (1 + (varying - 1) * common)
    weak = float(np.mean(np.abs(values) < WEAK))
    return Relatedness(len(values), float(values.mean()), weak, effective, None)
