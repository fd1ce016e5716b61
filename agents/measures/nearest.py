"""Nearest sentences of an output and another text: the part that a judge sees with a question about a relation.

A small model that sees two long texts answers by the text that it read last. So it sees only what the question needs:
the shorter text, and the sentences of the longer text that are nearest to it.
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
"""Most sentences of the shorter text that are shown: those that the other text supports least."""
NEAREST = 2
"""Number of sentences of the longer text that are shown for each of these."""
BY_WORDS = (
    "questions about a relation: the nearest sentences are found by their words, as the extra memory is not installed "
    "(pip install 'askance[memory]')"
)


def in_view(example: Example, sees: Sees) -> Example:
    """Return the example with only those parts of its texts that a question about a relation needs.

    For other views the example is returned unchanged; :func:`~askance.prompts.prompt.frame` selects their texts.
    """
    if sees not in TEXTS:
        return example
    by_words = not can_embed()
    if by_words:
        _say_once(BY_WORDS)
    output, text = nearest(reply_text(example.output or ""), text_of(example, sees), by_words=by_words)
    return example.model_copy(update={"context": None, "reference": None, sees: text, "output": output})


def texts_of_all(examples: Collection[Example]) -> list[Against]:
    """Return the names of the texts, besides the output, that every example has."""
    return [each for each in TEXTS if examples and all(text_of(one, each).strip() for one in examples)]


def refuse_missing_texts(questions: Sequence[Question], examples: Collection[Example]) -> None:
    """Raise InputError if a question is about a relation to a text that an example lacks."""
    for question in questions:
        for example in examples if question.is_relation else ():
            if not text_of(example, question.sees).strip():  # type: ignore[arg-type]
                raise InputError(
                    f"Question '{question.id}' holds the output against the {question.sees} (sees: {question.sees}), "
                    f"and the example '{example.id}' has none."
                )


@lru_cache(maxsize=20_000)
def nearest(output: str, text: str, *, by_words: bool = False) -> tuple[str, str]:
    """Return the sentences of an output and of another text that are nearest to each other.

    Sentences keep their order; "…" stands for omitted sentences. If one text has no words, both are returned whole.

    Args:
        output: The output. Long sentences are split.
        text: The other text. Long sentences are split.
        by_words: Whether nearness is measured by common words and not by the sentence embedder.

    Raises:
        MissingExtraError: The embedder is needed and not installed.
    """
    output_sentences, text_sentences = sentences_of(output), sentences_of(text)
    if not output_sentences or not text_sentences:
        return output, text
    nearness = (
        _by_words(output_sentences, text_sentences)
        if by_words
        else kept_vectors().of(output_sentences) @ kept_vectors().of(text_sentences).T
    )
    if len(text_sentences) <= len(output_sentences):
        shorter, longer = _places(nearness.T)
        return with_gaps(output_sentences, longer), with_gaps(text_sentences, shorter)
    shorter, longer = _places(nearness)
    return with_gaps(output_sentences, shorter), with_gaps(text_sentences, longer)


def _places(near: Vectors) -> tuple[set[int], set[int]]:
    """Return the shown rows (sentences of the shorter text) and columns (sentences of the longer text)."""
    rows = np.argsort(near.max(axis=1), kind="stable")[:SHOWN]
    columns = np.argsort(-near[rows], axis=1, kind="stable")[:, :NEAREST]
    return set(rows.tolist()), set(columns.ravel().tolist())


def _by_words(mine: Sequence[str], theirs: Sequence[str]) -> Vectors:
    """Return the cosines of sentences by their words, shape (n, m). Rare words have larger weights."""
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
