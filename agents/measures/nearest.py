"""Sentences of an output and of another text that speak of the same: the view of a question about a relation.

A small model that is shown two long texts answers by what it read last. It is shown as little of them as the question
needs: the shorter text, and the sentences of the longer one that lie nearest to it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ...prompts.checklist import TEXTS, Question, Sees
from ...prompts.conversations.chat import reply_text
from ...prompts.criteria.question import Against
from ...prompts.errors import InputError
from ...prompts.text import with_gaps
from .similarity import Vectors, can_embed, kept_vectors, sentences_of
from .values import text_of
from .words import words_of

if TYPE_CHECKING:
    from ...prompts.examples import Example

logger = logging.getLogger(__name__)

SHOWN = 6
"""Sentences of the shorter text that are shown; of a longer one, the sentences that the other text supports least."""
NEAREST = 2
"""Sentences of the longer text that are shown for each of these."""
BY_WORDS = (
    "questions about a relation: the nearest sentences are found by their words, as the extra memory is not installed "
    "(pip install 'askance[memory]')"
)


def in_view(example: Example, sees: Sees) -> Example:
    """Return the example with the part of its texts that a question about a relation is asked of.

    Any other view is laid out by :func:`~askance.prompts.prompt.frame`, and the example comes back as it is.
    """
    if sees not in TEXTS:
        return example
    by_words = not can_embed()
    if by_words:
        _say_once(BY_WORDS)
    output, text = nearest(reply_text(example.output or ""), text_of(example, sees), by_words=by_words)
    return example.model_copy(update={"context": None, "reference": None, sees: text, "output": output})


def texts_of_all(examples: Collection[Example]) -> list[Against]:
    """Return the names of the texts that every example has, beside its output."""
    return [each for each in TEXTS if examples and all(text_of(one, each).strip() for one in examples)]


def refuse_missing_texts(questions: Sequence[Question], examples: Collection[Example]) -> None:
    """Raise InputError where a question is about a relation to a text that an example lacks."""
    for question in questions:
        for example in examples if question.is_relation else ():
            if not text_of(example, question.sees).strip():  # type: ignore[arg-type]
                raise InputError(
                    f"Question '{question.id}' holds the output against the {question.sees} (sees: {question.sees}), "
                    f"and the example '{example.id}' has none."
                )


@lru_cache(maxsize=20_000)
def nearest(output: str, text: str, *, by_words: bool = False) -> tuple[str, str]:
    """Return the sentences of an output and of another text that lie nearest to each other.

    Sentences keep their order; "…" stands for those left out. A text without a word comes back whole.

    Args:
        output: The output; long sentences are taken in pieces.
        text: The other text, likewise.
        by_words: Whether words in common say what is near; else the sentence embedder does.

    Raises:
        MissingExtraError: The embedder is wanted and not installed.
    """
    mine, theirs = sentences_of(output), sentences_of(text)
    if not mine or not theirs:
        return output, text
    near = _by_words(mine, theirs) if by_words else kept_vectors().of(mine) @ kept_vectors().of(theirs).T
    if len(theirs) <= len(mine):
        shorter, longer = _places(near.T)
        return with_gaps(mine, longer), with_gaps(theirs, shorter)
    shorter, longer = _places(near)
    return with_gaps(mine, shorter), with_gaps(theirs, longer)


def _places(near: Vectors) -> tuple[set[int], set[int]]:
    """Rows and columns that are shown, of the shorter text's sentences by those of the longer one."""
    rows = np.argsort(near.max(axis=1), kind="stable")[:SHOWN]
    columns = np.argsort(-near[rows], axis=1, kind="stable")[:, :NEAREST]
    return set(rows.tolist()), set(columns.ravel().tolist())


def _by_words(mine: Sequence[str], theirs: Sequence[str]) -> Vectors:
    """Cosines of sentences by their words, shape (n, m); a word counts more the fewer sentences have it."""
    bags = [set(words_of(each)) for each in (*mine, *theirs)]
    held = Counter(word for bag in bags for word in bag)

    def weight(bag: set[str]) -> float:
        return sum(log(1 + len(bags) / held[word]) for word in bag)

    own, others = bags[: len(mine)], bags[len(mine) :]
    found = [[weight(one & other) / sqrt(weight(one) * weight(other) or 1.0) for other in others] for one in own]
    return np.array(found, dtype=np.float32)


@cache
def _say_once(sentence: str) -> None:
    logger.warning("%s", sentence)
