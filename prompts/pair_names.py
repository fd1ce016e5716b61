"""Pairs as others publish them: their columns and their words for which output is preferred."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .human_feedback import PAIR_SIDES, Labels
from .json_documents import at
from .messages import as_text, messages_of

FIELDS = ("id", "input", "output_a", "output_b", "preferred", "section", "dataset", "group", "document", "metadata")
"""Ours that ``--field`` gives a column; beside ``chosen``, ``rejected``, ``scores_a`` and ``scores_b``."""
ALSO = (*FIELDS, "prompt", "chosen", "rejected", "scores_a", "scores_b")
_OUTPUT = re.compile(
    r"(?:model_)?(?:outputs?|responses?|answers?|completions?|generations?|repl(?:y|ies)|texts?|summar(?:y|ies)|conversations?)"
    r"[ _-]?(a|b|1|2)"
)
_INPUTS = ("prompt", "question", "instruction", "query")
_PREFERRED = ("preference", "winner", "label", "preferred_output", "better", "better_answer", "betteranswer", "choice")
_SIDE = re.compile(r"(?:(?:model|outputs?|response|answer|assistant|option|completion|candidate|system)[ _-]?)?(a|b|1|2)(?:\.0)?")
_ORDER = re.compile(r"\[*(a|b|1|2)\]*\s*(>+|<+|=+|~)\s*\[*(a|b|1|2)\]*")
_TIE = re.compile(r"(?:tie|draw|both|equal|same|neither)\b.*|1\.5")
_LETTERS = {"1": "a", "2": "b", "a": "a", "b": "b"}


def with_our_names(row: Mapping[str, Any], fields: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """A pair's row with our names for its columns and our words for what is preferred; what is not known stays as it is.

    Args:
        row: As it is in the table.
        fields: Our names to its columns, or paths.
        labels: Further words for ``a``, ``b`` and ``tie``.
    """
    found = dict(row)
    for ours, column in fields.items():
        if (value := at(row, str(column))) is not None:
            if column in row and column not in fields:
                found.pop(column, None)
            found[ours] = value
    if not any(found.get(name) is not None for name in ("chosen", "rejected")):
        _know(found)
    if "preferred" in found:
        found["preferred"] = side_of(found["preferred"], row, labels)
    return found


def _know(row: dict[str, Any]) -> None:
    """Give columns of usual names ours, where no column has it."""
    usual = {str(name).casefold(): name for name in row if row[name] is not None}
    for name, given in list(usual.items()):
        if match := _OUTPUT.fullmatch(name):
            row.setdefault(f"output_{_LETTERS[match[1]]}", row[given])
    for ours, names in (("input", ("input", *_INPUTS)), ("preferred", ("preferred", *_PREFERRED)), ("id", ("id",))):
        if (column := next((usual[name] for name in names if name in usual), None)) is not None:
            row.setdefault(ours, row[column])
    if row.get("input") and isinstance(instruction := row.get("instruction"), str) and "input" in usual:
        row["input"] = f"{instruction}\n\n{row['input']}"
    elif row.get("input") == "" and isinstance(row.get("instruction"), str):
        row["input"] = row["instruction"]
    if "input" not in row:
        _split_conversations(row)


def _split_conversations(row: dict[str, Any]) -> None:
    """The messages that both conversations begin with are the input."""
    both = [row.get("output_a"), row.get("output_b")]
    if not all(isinstance(each, list) and messages_of(each) for each in both):
        return
    a, b = both
    shared = 0
    while shared < min(len(a), len(b)) - 1 and a[shared] == b[shared]:
        shared += 1
    if shared:
        row |= {"input": a[:shared], "output_a": a[shared:], "output_b": b[shared:]}


def side_of(value: Any, row: Mapping[str, Any], labels: Labels) -> Any:
    """``a``, ``b`` or ``tie``, for one of the usual ways to say so; anything else as it is.

    Numbers count from 1, as 0 is the first in some sets and no preference in others.
    """
    if value is None or isinstance(value, (list, dict)):
        return value
    word = f"{value:g}" if isinstance(value, float) else str(value).strip().casefold()
    for side in PAIR_SIDES:
        if word in labels.get(side, ()):
            return side
    names = {side: str(row.get(f"model_{side}") or "").strip().casefold() for side in ("a", "b")}
    if names["a"] != names["b"] and word in names.values() and word:
        return "a" if word == names["a"] else "b"
    if isinstance(value, bool):
        return value
    if match := _SIDE.fullmatch(word):
        return _LETTERS[match[1]]
    if (match := _ORDER.fullmatch(word)) and _LETTERS[match[1]] != _LETTERS[match[3]]:
        if match[2][0] in "=~":
            return "tie"
        return _LETTERS[match[1] if match[2][0] == ">" else match[3]]
    return "tie" if _TIE.fullmatch(word) else value


def pair_text(value: Any) -> Any:
    """A pair's text, where it is no string."""
    return value if isinstance(value, str) else as_text(value)
