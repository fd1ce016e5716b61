"""Raters with names: the ratings and comments of each, and the place of each in the lists of ratings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .formatting import count
from .human_feedback import Comment, dump_comments, read_comments
from .rows import column

SAID = ("human", "comment")
"""Keys of one rater's object: ratings by dimension or question id, and comments."""
UNNAMED = ""
"""Stands for the name at the places of raters without a name."""


def with_read_ratings(raters: Any, read: Callable[[Any], Any]) -> Any:
    """Return a row's ``raters`` with each rater's ``human`` read by ``read``. The record checks all other values."""
    if not isinstance(raters, Mapping):
        return raters
    return {
        name: {**said, "human": read(said["human"])} if isinstance(said, Mapping) and "human" in said else said
        for name, said in raters.items()
    }


def by_place(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a row's object ``raters`` into lists under ``human``, and the raters' names, by place, under ``raters``.

    Raters with names come first. Ratings under the row's own ``human`` are those of raters without a name; they come
    after. A comment keeps its rater's name. Raises ValueError if a rater has no name, has other keys than ``human`` and
    ``comment``, or gave several ratings on one dimension.
    """
    feedback = {
        str(name).strip(): _checked(str(name), each) for name, each in row["raters"].items() if each is not None
    }
    given = row.get("human") or {}
    if not isinstance(given, Mapping):
        return {**row, "raters": tuple(feedback)}
    unnamed = {name: tuple(each) if isinstance(each, (list, tuple)) else (each,) for name, each in given.items()}
    places = max(map(len, unnamed.values()), default=0)
    padded = {name: (*ratings, *[None] * (places - len(ratings))) for name, ratings in unnamed.items()}
    human = {
        name: (*(each["human"].get(name) for each in feedback.values()), *padded.get(name, [None] * places))
        for name in dict.fromkeys([*(name for each in feedback.values() for name in each["human"]), *unnamed])
    }
    comments = [
        replace(comment, rater=name) for name, each in feedback.items() for comment in read_comments(each["comment"])
    ]
    return {
        **row,
        "human": human,
        "raters": (*feedback, *[UNNAMED] * places),
        "comment": (*comments, *read_comments(row.get("comment"))),
    }


def _checked(name: str, said: Any) -> dict[str, Any]:
    if not name.strip():
        raise ValueError("raters: a rater needs a name")
    if not isinstance(said, Mapping) or (unknown := [each for each in said if each not in SAID]):
        what = f"'{unknown[0]}' is not known" if isinstance(said, Mapping) else f"not {type(said).__name__}"
        raise ValueError(
            f"raters: '{name}' needs an object with 'human' (dimension to number or label) and 'comment', {what}"
        )
    human = said.get("human") or {}
    if not isinstance(human, Mapping):
        raise ValueError(f"raters: 'human' of '{name}' must be an object from dimension to number or label")
    if several := [each for each, rating in human.items() if isinstance(rating, (list, tuple))]:
        raise ValueError(f"raters: '{name}' has a list on '{several[0]}'; one rater gives one number or label")
    return {
        "human": {str(each): rating for each, rating in human.items()},
        "comment": read_comments(said.get("comment")),
    }


def by_name(
    raters: Sequence[str], human: Mapping[str, Sequence[float | None]], comments: Sequence[Comment]
) -> dict[str, Any]:
    """Return ``raters``, ``human`` and ``comment`` as files have them: the inverse of :func:`by_place`."""
    found: dict[str, Any] = {}
    for place, name in enumerate(raters):
        if name != UNNAMED:
            mine = {each: ratings[place] for each, ratings in human.items() if ratings[place] is not None}
            told = dump_comments([comment for comment in comments if comment.rater == name])
            found[name] = ({"human": mine} if mine else {}) | ({"comment": told} if told else {})
    places = [place for place, name in enumerate(raters) if name == UNNAMED]
    unnamed = {each: tuple(ratings[place] for place in places) for each, ratings in human.items()}
    row = {
        "human": {each: ratings for each, ratings in unnamed.items() if len(ratings) > ratings.count(None)},
        "raters": found,
        "comment": dump_comments([comment for comment in comments if comment.rater is None]),
    }
    return {name: value for name, value in row.items() if value}


def rater_columns(examples: Iterable[Any], dimension: str) -> dict[str, list[float | None]]:
    """Return the ratings of examples on one dimension, by rater: one per example, None if the rater gave none.

    Raters without a name are called ``rater 1``, ``rater 2`` and so on. The same place in different examples counts as
    the same person.
    """
    found: dict[str, list[float | None]] = {}
    examples_seen = 0
    for human, raters in zip(column(examples, "human"), column(examples, "raters"), strict=True):
        ratings = human.get(dimension, ())
        unnamed = itertools.count(1)
        for name, rating in zip(raters or [UNNAMED] * len(ratings), ratings, strict=bool(ratings)):
            scores = found.setdefault(name or f"rater {next(unnamed)}", [])
            scores.extend([None] * (examples_seen - len(scores)))
            scores.append(rating)
        examples_seen += 1
    for scores in found.values():
        scores.extend([None] * (examples_seen - len(scores)))
    return {name: scores for name, scores in found.items() if len(scores) > scores.count(None)}


def unnamed_said(rated: Iterable[tuple[str, Sequence[str], Mapping[str, Sequence[float | None]]]]) -> str | None:
    """Return a sentence if examples have ratings both with and without a rater's name; else None.

    ``rated`` holds each example's id, its raters' names by place, and its ratings.
    """
    found = [
        (example, name)
        for example, raters, human in rated
        if UNNAMED in raters and any(raters)
        for name, ratings in human.items()
        if len({bool(rater) for rater, each in zip(raters, ratings, strict=True) if each is not None}) > 1
    ]
    if not found:
        return None
    example, name = found[0]
    outputs = len({each for each, _ in found})
    return (
        f"{count(outputs, 'example')} {'has' if outputs == 1 else 'have'} values under 'human' beside those of raters "
        f"with names (as '{example}' on {name}). They count as raters without a name; leave them out where they are a mean of the others."
    )


def comments_in(row: Mapping[str, Any]) -> tuple[Comment, ...]:
    """Return all comments of a row of a file of examples; those of raters with names come first."""
    raters = row.get("raters")
    return by_place(row)["comment"] if isinstance(raters, Mapping) else read_comments(row.get("comment"))
