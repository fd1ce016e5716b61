"""The pool of candidates: proposed from sampled examples until hardly anything new comes (EIG §3.2 and §4.3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...agents.question_writer import ProposedQuestion, QuestionProposer, name_questions
from ...evaluation.options import SelectOptions
from ...memory.embedders import ROUNDING, Embedder
from ...models.base import CallError
from ...prompts.checklist import Question
from ...prompts.errors import AskanceError
from ...prompts.examples import Example

QUIET = 1
"""A round that brings no more new questions than this is a quiet one."""
_UNUSABLE = 3
"""After so many rounds at the beginning that brought no usable reply, proposing is given up."""


@dataclass(frozen=True)
class Round:
    """One round of proposing."""

    examples: tuple[str, ...]
    """Ids of the examples that were shown."""
    proposed: int
    new: int
    pool: int
    """Questions in the pool after it."""
    error: str | None = None
    """Why the round brought nothing, where it failed."""


@dataclass(frozen=True)
class Pool:
    """The candidates, and how they came together."""

    questions: tuple[Question, ...]
    growth: tuple[Round, ...]
    settled: bool
    """Whether proposing ended because hardly anything new came, and not at a limit."""

    def to_dict(self) -> dict[str, Any]:
        """As in ``selection.json``."""
        return {"settled": self.settled, "growth": [asdict(each) for each in self.growth]}


async def propose_pool(
    proposer: QuestionProposer,
    examples: Sequence[Example],
    embedder: Embedder,
    settings: SelectOptions,
    on_progress: Callable[[str], None] | None = None,
) -> Pool:
    """Have questions proposed, a few examples a round, until ``quiet_rounds`` rounds in a row bring hardly any.

    A question whose cosine with one that is there reaches ``same_question`` is the same. That finds like wording and
    close paraphrase; what is left of redundancy is for the selection to see in the answers.

    Args:
        proposer: Who is asked.
        examples: To be sampled from; no score of theirs is shown.
        embedder: Finds questions that are there already.
        settings: Limits and the seed.
        on_progress: Told what is being done.

    Raises:
        AskanceError: No round brought a usable reply.
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call.
    """
    batches = _batches(examples, settings.shown, settings.seed)
    kept: list[ProposedQuestion] = []
    vectors = np.zeros((0, 0), dtype=np.float32)
    growth: list[Round] = []
    quiet = 0
    while quiet < settings.quiet_rounds and len(growth) < settings.max_rounds and len(kept) < settings.max_candidates:
        batch = next(batches)
        ids = tuple(example.id for example in batch)
        if on_progress:
            on_progress(f"proposing questions, round {len(growth) + 1}: {len(kept)} so far")
        try:
            proposals = await proposer.propose(batch, [each.text for each in kept])
        except CallError as error:
            if error.fatal:
                raise
            growth.append(Round(ids, 0, 0, len(kept), str(error)))
            if not kept and len(growth) == min(_UNUSABLE, settings.max_rounds):
                raise AskanceError(
                    f"No usable question came in {len(growth)} rounds, the last time because: {error} Use another "
                    "model for proposing (--writer), or bring candidates (--candidates)."
                ) from None
            continue
        before = len(kept)
        for proposal, vector in zip(proposals, embedder.embed([each.text for each in proposals]), strict=True):
            same = len(kept) and float((vectors @ vector).max()) >= settings.same_question - ROUNDING
            if not same and len(kept) < settings.max_candidates:
                kept.append(proposal)
                vectors = vector[None, :] if not len(vectors) else np.vstack([vectors, vector])
        new = len(kept) - before
        growth.append(Round(ids, len(proposals), new, len(kept)))
        quiet = quiet + 1 if new <= QUIET else 0
    if not kept:
        raise AskanceError("No usable question was proposed. Use another model (--writer), or bring --candidates.")
    return Pool(tuple(name_questions(kept)), tuple(growth), quiet >= settings.quiet_rounds)


def _batches(examples: Sequence[Example], size: int, seed: int) -> Iterator[list[Example]]:
    """A few examples at a time in random order, over and over, in another order each time."""
    rng = random.Random(seed)
    while True:
        order = rng.sample(examples, len(examples))
        for start in range(0, len(order), size):
            yield order[start : start + size]
