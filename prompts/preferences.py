"""Pairs of outputs of which people liked one better: as ``output_a``, ``output_b`` and ``preferred``, or as ``chosen``
and ``rejected``, with texts or chat messages, as Hugging Face's TRL has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .errors import InputError
from .examples import named_document
from .messages import Message, conversation, messages_of
from .rows import validate_row
from .text import sendable

SIDES = ("chosen", "rejected")
_HUMAN, _ASSISTANT = "\n\nHuman:", "\n\nAssistant:"


class Preference(BaseModel):
    """Two outputs for one input, and which one was preferred. Columns that are not ours are passed over."""

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
    """Neither are those of one document, where no group is named."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("input", "output_a", "output_b")
    @classmethod
    def _is_text(cls, value: str) -> str:
        return sendable(value)

    @model_validator(mode="before")
    @classmethod
    def _labels_may_be_metadata(cls, row: Any) -> Any:
        """Find ``section``, ``dataset``, ``group`` and ``document`` under ``metadata``, too."""
        if not isinstance(row, dict):
            return row
        metadata = row.get("metadata")
        labels = metadata if isinstance(metadata, dict) else {}
        named = {name: labels[name] for name in ("section", "dataset", "group") if name in labels}
        return named | row | {"document": document_in(row)}


def document_in(row: Mapping[str, Any]) -> str | None:
    """The document that a row names, under ``metadata`` or beside it; None where it names none."""
    metadata = row.get("metadata")
    return named_document({"document": row.get("document"), **(metadata if isinstance(metadata, dict) else {})})


def has_chosen(row: Mapping[str, Any]) -> bool:
    """Whether a row is a pair of ``chosen`` and ``rejected``."""
    return any(row.get(side) is not None for side in SIDES)


def preference_of(row: Mapping[str, Any], where: str, *, seed: int) -> Preference:
    """The pair of a row; ``where`` is its place, for errors.

    Which of ``chosen`` and ``rejected`` is a comes from a hash of the seed and the id, so that a judge cannot tell the
    better output from its place. Without an id, the pair is called after a hash of its texts. A conversation that both
    begin with is the input, after the ``prompt`` where that is another text.

    Raises:
        InputError: Names the field that is missing or wrong.
    """
    given = {name: value for name, value in row.items() if value is not None}
    if not has_chosen(given):
        return validate_row(Preference, given, where)
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
    others = {
        name: value for name, value in given.items() if name in ("section", "dataset", "group", "document", "metadata")
    }
    return validate_row(Preference, others | pair, where)


def _texts(row: Mapping[str, Any], where: str) -> tuple[str, str, str]:
    prompt = row.get("prompt", row.get("input"))
    chosen, rejected = (row[side] for side in SIDES)
    if isinstance(chosen, str) and isinstance(rejected, str):
        if prompt is None and chosen.startswith(_HUMAN) and rejected.startswith(_HUMAN):
            return _transcripts(chosen, rejected, where)
        if prompt is None:
            raise InputError(f"{where}: the field 'prompt' is missing: what was 'chosen' and 'rejected' for?")
        return _input(prompt, where), chosen, rejected
    both = [_conversation(row[side], side, where) for side in SIDES]
    shared = 0
    while shared < min(map(len, both)) - 1 and both[0][shared] == both[1][shared]:
        shared += 1
    if prompt is None and not shared:
        raise InputError(
            f"{where}: the field 'prompt' is missing, and 'chosen' and 'rejected' do not begin with the same messages."
        )
    before = both[0][:shared]
    known = {text for _, text in before}
    asked = [] if prompt is None else messages_of(prompt) or [("user", _input(prompt, where))]
    said = [each for each in asked if each[1] not in known] + before
    outputs = [conversation(each[shared:]) for each in both]
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
        raise InputError(
            f"{where}: field '{side}': a text or a list of chat messages ('role' and 'content') is needed, not "
            f"{type(value).__name__}."
        )
    return messages


def _transcripts(chosen: str, rejected: str, where: str) -> tuple[str, str, str]:
    """Input, chosen and rejected output of texts of ``Human:`` and ``Assistant:`` that begin alike."""
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
