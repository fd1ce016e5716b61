"""Pairs of outputs with people's preference: as ``output_a``, ``output_b`` and ``preferred``, or as ``chosen`` and
``rejected``, with texts or chat messages, as in Hugging Face's TRL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .errors import InputError
from .examples import named_document
from .field_map import id_of_texts
from .human_feedback import PAIR_SIDES, Labels, is_missing
from .json_documents import at
from .mapping.published import LETTERS, PAIR_INPUTS, PAIR_OUTPUT, PAIR_PREFERRED
from .messages import Message, as_text, conversation, messages_of
from .rows import validate_row
from .tables import plain
from .text import sendable

SIDES = ("chosen", "rejected")
_FIELDS = (
    "id input output_a output_b preferred section dataset group document metadata comment comment_a comment_b "
    "prompt chosen rejected scores_a scores_b"
)
KNOWN_FIELDS = tuple(_FIELDS.split())
"""Our fields to which ``--field`` can give a column."""
_SIDE = re.compile(
    r"(?:(?:model|outputs?|response|answer|assistant|option|completion|candidate|system)[ _-]?)?(a|b|1|2)(?:\.0)?"
)
_ORDER = re.compile(r"\[*(a|b|1|2)\]*\s*(>+|<+|=+|~)\s*\[*(a|b|1|2)\]*")
_TIE = re.compile(r"(?:tie|draw|both|equal|same|neither)\b.*|1\.5")
_HUMAN, _ASSISTANT = "\n\nHuman:", "\n\nAssistant:"


class Preference(BaseModel):
    """Two outputs for one input, and the preferred one. Columns that are not ours are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    input: str
    output_a: str
    output_b: str
    preferred: Literal["a", "b", "tie"]
    section: str | None = None
    dataset: str | None = None
    group: str | None = None
    """Pairs of one group are never divided between learning and testing."""
    document: str | None = None
    """Pairs of one document are never divided either, if no group is named."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    comment: tuple[str, ...] = ()
    """People's words on the pair; a text or a list of texts."""
    comment_a: tuple[str, ...] = ()
    comment_b: tuple[str, ...] = ()

    @property
    def comments(self) -> tuple[str, ...]:
        """People's comments on the pair and on either output, each once."""
        return tuple(dict.fromkeys((*self.comment, *self.comment_a, *self.comment_b)))

    @field_validator("comment", "comment_a", "comment_b", mode="before")
    @classmethod
    def _is_several(cls, value: Any) -> Any:
        several = [value] if isinstance(value, str) else value
        is_texts = isinstance(several, (list, tuple)) and all(isinstance(each, str) for each in several)
        return tuple(each.strip() for each in several if each.strip()) if is_texts else value

    @field_validator("input", "output_a", "output_b")
    @classmethod
    def _is_text(cls, value: str) -> str:
        return sendable(value)

    @model_validator(mode="before")
    @classmethod
    def _labels_may_be_metadata(cls, row: Any) -> Any:
        """Take ``section``, ``dataset``, ``group`` and ``document`` also from ``metadata``."""
        if not isinstance(row, dict):
            return row
        metadata = row.get("metadata")
        labels = metadata if isinstance(metadata, dict) else {}
        named = {name: labels[name] for name in ("section", "dataset", "group") if name in labels}
        return named | row | {"document": document_in(row)}


def document_in(row: Mapping[str, Any]) -> str | None:
    """Return the document that a row names, under ``metadata`` or beside it; None if it names none."""
    metadata = row.get("metadata")
    return named_document({"document": row.get("document"), **(metadata if isinstance(metadata, dict) else {})})


def has_chosen(row: Mapping[str, Any]) -> bool:
    """Whether a row is a pair of ``chosen`` and ``rejected``."""
    return any(row.get(side) is not None for side in SIDES)


def with_our_names(row: Mapping[str, Any], fields: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """Rename the columns of a pair's row to ours, and turn its preference into our word; unknown values stay.
    ``fields`` maps our names to columns or paths; ``labels`` holds more words for ``a``, ``b`` and ``tie``."""
    found = dict(row)
    for field, column in fields.items():
        if (value := at(row, str(column))) is not None:
            if column in row and column not in fields:
                found.pop(column, None)
            found[field] = value
    needed = ("input", "output_a", "output_b", "preferred")
    if not has_chosen(found) and not all(found.get(name) is not None for name in needed):
        _know(found)
    if "preferred" in found:
        found["preferred"] = side_of(found["preferred"], row, labels)
    return found


def _know(row: dict[str, Any]) -> None:
    """Copy columns with usual names to our names, if no column has our name yet."""
    usual = {str(name).casefold(): name for name in row if row[name] is not None}
    for name, given in list(usual.items()):
        if match := PAIR_OUTPUT.fullmatch(name):
            row.setdefault(f"output_{LETTERS[match[1]]}", row[given])
    for field, names in (
        ("input", ("input", *PAIR_INPUTS)),
        ("preferred", ("preferred", *PAIR_PREFERRED)),
        ("id", ("id",)),
    ):
        if (column := next((usual[name] for name in names if name in usual), None)) is not None:
            row.setdefault(field, row[column])
    if row.get("input") and isinstance(instruction := row.get("instruction"), str) and "input" in usual:
        row["input"] = f"{instruction}\n\n{row['input']}"
    elif row.get("input") == "" and isinstance(row.get("instruction"), str):
        row["input"] = row["instruction"]
    if "input" not in row:
        _split_conversations(row)


def _split_conversations(row: dict[str, Any]) -> None:
    """Move the messages that both conversations begin with into the input."""
    a, b = row.get("output_a"), row.get("output_b")
    if isinstance(a, list) and messages_of(a) and isinstance(b, list) and messages_of(b) and (shared := _shared(a, b)):
        row |= {"input": a[:shared], "output_a": a[shared:], "output_b": b[shared:]}


def _shared(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Count the messages that two conversations begin with; the last message of each is never counted."""
    alike = takewhile(lambda both: both[0] == both[1], zip(one[:-1], other[:-1], strict=False))
    return sum(1 for _ in alike)


def side_of(value: Any, row: Mapping[str, Any], labels: Labels) -> Any:
    """Return ``a``, ``b`` or ``tie`` for one of the usual words for it; any other value stays as it is.

    Numbers count from 1, because 0 means the first output in some data sets, and no preference in others.
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
        return LETTERS[match[1]]
    if (match := _ORDER.fullmatch(word)) and LETTERS[match[1]] != LETTERS[match[3]]:
        if match[2][0] in "=~":
            return "tie"
        return LETTERS[match[1] if match[2][0] == ">" else match[3]]
    return "tie" if _TIE.fullmatch(word) else value


def preference_of(row: Mapping[str, Any], where: str, *, seed: int) -> Preference:
    """Make the pair of a row; ``where`` is its place, for errors.

    A hash of the seed and the id decides whether ``chosen`` or ``rejected`` is a, so that a judge cannot tell the
    better output by its place. A pair without an id gets a hash of its texts. A conversation that both outputs begin
    with becomes the input, after the ``prompt`` if that is another text. Raises InputError, which names the field that
    is missing or wrong.
    """
    given = {name: value for name, value in row.items() if value is not None}
    if is_missing(given.get("id")):
        given.pop("id", None)
    if not has_chosen(given):
        return _with_sides(given, where)
    for name in ("output_a", "output_b", "preferred"):
        if name in given:
            raise InputError(f"{where}: a pair has 'chosen' and 'rejected', or '{name}', not both.")
    if "prompt" in given and "input" in given:
        raise InputError(f"{where}: the input is given twice, as 'prompt' and as 'input'.")
    for side in SIDES:
        if side not in given:
            raise InputError(f"{where}: the field '{side}' is missing.")
    prompt, chosen, rejected = _texts(given, where)
    texts = json.dumps([prompt, chosen, rejected]).encode()
    identity = str(given["id"]) if "id" in given else f"pair-{sha256(texts).hexdigest()[:12]}"
    first = sha256(f"{seed}:{identity}".encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0
    a, b = (chosen, rejected) if first else (rejected, chosen)
    pair = {"id": identity, "input": prompt, "output_a": a, "output_b": b, "preferred": "a" if first else "b"}
    named = ("section", "dataset", "group", "document", "metadata", "comment")
    other_fields = {name: value for name, value in given.items() if name in named}
    for side, letter in (("chosen", pair["preferred"]), ("rejected", "b" if first else "a")):
        if (said := given.get(f"comment_{side}")) is not None:
            other_fields[f"comment_{letter}"] = said
    return validate_row(Preference, other_fields | pair, where)


def _with_sides(given: dict[str, Any], where: str) -> Preference:
    """Make the pair of a row with ``output_a`` and ``output_b``."""
    for name in ("input", "output_a", "output_b"):
        if name in given and not isinstance(given[name], str):
            try:
                given[name] = as_text(plain(given[name]))
            except ValueError as error:
                raise InputError(f"{where}: field '{name}': {error}.") from None
    for name in ("input", "output_a", "output_b", "preferred"):
        if given.get(name) is None:
            there = ", ".join(map(str, given))
            raise InputError(
                f"{where}: the field '{name}' is missing (there are: {there}; --field {name}=COLUMN names the one that "
                "it is)."
            )
    if given["preferred"] not in ("a", "b", "tie"):
        raise InputError(
            f'{where}: field \'preferred\': {given["preferred"]!r:.60} is not "a", "b" or "tie"; say what your words '
            "mean with --labels a=WORD,b=WORD,tie=WORD."
        )
    given.setdefault("id", id_of_texts(given, ("input", "output_a", "output_b"), "pair"))
    return validate_row(Preference, given, where)


def _texts(row: Mapping[str, Any], where: str) -> tuple[str, str, str]:
    prompt = row.get("prompt", row.get("input"))
    chosen, rejected = (row[side] for side in SIDES)
    if isinstance(chosen, str) and isinstance(rejected, str):
        if prompt is None and chosen.startswith(_HUMAN) and rejected.startswith(_HUMAN):
            return _transcripts(chosen, rejected, where)
        if prompt is None:
            raise InputError(f"{where}: the field 'prompt' is missing: what was 'chosen' and 'rejected' for?")
        return _input(prompt, where), chosen, rejected
    conversations = [_conversation(row[side], side, where) for side in SIDES]
    shared = _shared(*conversations)
    if prompt is None and not shared:
        raise InputError(
            f"{where}: the field 'prompt' is missing, and 'chosen' and 'rejected' do not begin with the same messages."
        )
    opening = conversations[0][:shared]
    known = {text for _, text in opening}
    asked = [] if prompt is None else messages_of(prompt) or [("user", _input(prompt, where))]
    said = [each for each in asked if each[1] not in known] + opening
    outputs = [conversation(each[shared:]) for each in conversations]
    return conversation(said), outputs[0], outputs[1]


def _input(prompt: Any, where: str) -> str:
    if isinstance(prompt, str):
        return prompt
    messages = messages_of(prompt)
    if messages is None:
        raise InputError(f"{where}: field 'prompt': a text or a list of chat messages is needed.")
    return conversation(messages)


def _conversation(value: Any, side: str, where: str) -> list[Message]:
    messages = [("assistant", value)] if isinstance(value, str) else messages_of(value)
    if messages is None:
        try:
            as_text(value)  # its error names the message that is wrong
        except ValueError as error:
            raise InputError(f"{where}: field '{side}': {error}.") from None
        raise InputError(
            f"{where}: field '{side}': a text or a list of chat messages ('role' and 'content') is needed, not "
            f"{type(value).__name__}."
        )
    return messages


def _transcripts(chosen: str, rejected: str, where: str) -> tuple[str, str, str]:
    """Split two transcripts of ``Human:`` and ``Assistant:`` into shared input, chosen output and rejected output."""
    letters = enumerate(zip(chosen, rejected, strict=False))
    alike = next((place for place, (one, other) in letters if one != other), min(len(chosen), len(rejected)))
    cut = chosen[:alike].rfind(_ASSISTANT)
    if cut < 0:
        raise InputError(
            f"{where}: 'chosen' and 'rejected' do not begin with the same conversation; give the 'prompt'."
        )
    end = cut + len(_ASSISTANT)
    asked = chosen[:cut].strip()
    asked = asked if _ASSISTANT in chosen[:cut] else asked.removeprefix(_HUMAN.strip()).strip()
    return asked, chosen[end:].strip(), rejected[end:].strip()
