"""What people wrote about an output: the reason behind their score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .checklist import Checklist
from .text import sendable, sentences, shorten

LONG = 4_000
"""Characters from which a comment is called long."""
MOST_TOLD = 600
"""Characters of the comments on one question that a model is told."""
WHOLE = "overall"
"""The name of the whole output, where it is no dimension of the checklist."""


@dataclass(frozen=True, slots=True)
class Comment:
    """One remark."""

    text: str
    about: str | None = None
    """The dimension or the id of the question that it is about; None where it is about the output as a whole."""


def read_comments(value: Any, about: str | None = None) -> tuple[Comment, ...]:
    """Comments from a text, an object from dimension or question id to text (or texts), or a list of these.

    Empty ones are dropped, and the space around a text is.

    Raises:
        ValueError: It is none of these.
    """
    if value is None:
        return ()
    if isinstance(value, Comment):
        return read_comments(value.text, value.about if about is None else about)
    if isinstance(value, str):
        return (Comment(sendable(value).strip(), about),) if value.strip() else ()
    if isinstance(value, (list, tuple)):
        return tuple(comment for each in value for comment in read_comments(each, about))
    if isinstance(value, Mapping) and about is None:
        return tuple(
            comment for name, each in value.items() for comment in read_comments(each, str(name).strip() or None)
        )
    raise ValueError(
        "a text, a list of texts, or an object from dimension or question id to text is needed, not "
        f"{type(value).__name__}"
    )


def dump_comments(comments: Sequence[Comment]) -> Any:
    """The simplest value from which :func:`read_comments` makes the same comments."""
    if not comments:
        return ()
    if len(comments) == 1 and comments[0].about is None:
        return comments[0].text
    names = [each.about for each in comments]
    if all(names) and len(set(names)) == len(names):
        return {each.about: each.text for each in comments}
    return [each.text if each.about is None else {each.about: each.text} for each in comments]


def comments_on(comments: Sequence[Comment], question: str, checklist: Checklist) -> list[str]:
    """The comments that speak of one question: on itself first, then on its dimension, then on the whole.

    A name that is a dimension of the checklist and a question's id too means the dimension.

    Args:
        comments: Of one example.
        question: An id.
        checklist: That has it.
    """
    if not comments:
        return []
    names = checklist.dimensions
    dimension = checklist.question(question).dimension
    own = [each.text for each in comments if each.about == question and question not in names]
    of_dimension = [each.text for each in comments if each.about == dimension]
    whole = [
        each.text
        for each in comments
        if each.about is None or (each.about == WHOLE and WHOLE not in names and question != WHOLE)
    ]
    return [*own, *of_dimension, *whole]


def one_line(comment: str) -> str:
    """A comment as it is shown and compared with others: every run of white space is one space."""
    return " ".join(comment.split())


def told(comments: Iterable[str], most_chars: int = MOST_TOLD) -> str:
    """Comments in one line for a model: cut after the last sentence, or else word, that fits, with "…"."""
    lines = [one_line(comment) for comment in comments]
    ended = [line if line.endswith((".", "!", "?", "…")) else f"{line}." for line in lines]
    text = " ".join([*ended[:-1], *lines[-1:]])
    if len(text) <= most_chars:
        return text
    kept = ""
    for sentence in sentences(text[: most_chars - 2])[:-1]:
        kept = f"{kept} {sentence}".strip()
    return f"{kept} …" if len(kept) > most_chars // 2 else shorten(text, most_chars)


def stray_comments_said(
    comments: Mapping[str, Sequence[Comment]], checklist: Checklist, rated: Sequence[str] = ()
) -> str | None:
    """What is said of comments about something that nobody asks about, which nobody is told; None where there are none.

    Args:
        comments: By example id.
        checklist: Whose dimensions and questions comments may be about.
        rated: Further names that are known.
    """
    known = {*checklist.dimensions, *(each.id for each in checklist.questions), WHOLE, *rated}
    stray = {each.about: example for example, given in comments.items() for each in given if each.about not in known}
    stray.pop(None, None)
    if not stray:
        return None
    few = ", ".join(f"'{name}' (as in example '{example}')" for name, example in list(stray.items())[:3])
    return (
        f"There are comments about {few}{' and others' if len(stray) > 3 else ''}: that is no dimension and no question "
        "of the checklist, so they are not used."
    )


def long_comments_said(comments: Mapping[str, Sequence[Comment]]) -> str | None:
    """What is said of comments, by example id, that are too long to be told whole; None where there are none."""
    found = [example for example, given in comments.items() if any(len(each.text) > LONG for each in given)]
    if not found:
        return None
    few = ", ".join(f"'{each}'" for each in found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
    return (
        f"the comments on {few} have more than {LONG:,} characters. They are kept whole, but a model is told their "
        "beginning only."
    )
