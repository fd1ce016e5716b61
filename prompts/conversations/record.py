"""Texts of an example as they are given: a plain text, or messages, a list or an object, which stay beside the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from ..messages import StructuredText, told
from ..tables import plain
from ..text import sendable
from .chat import images_of


def _text(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    if type(value) is str:  # as most are, and there may be many
        return sendable(value)
    if isinstance(value, (list, tuple, Mapping)):
        value = told(plain(value), passages=info.field_name == "context")
    if isinstance(value, StructuredText):  # a usual check would make a plain text of it
        images_of(value)
        return StructuredText(sendable(value), value.original)
    return sendable(check(value))


Text = Annotated[str, WrapValidator(_text)]
"""A text. One that was given as messages, a list or an object is a :class:`~askance.prompts.messages.StructuredText`,
which holds them."""


def packed(texts: tuple[str | None, ...]) -> Any:
    """Texts in a form that ``marshal`` takes: a tuple, or a list where some were made of something else.

    In a list these are pairs, of the text and what it was made of.
    """
    if not any(type(each) is StructuredText for each in texts):
        return texts
    return [(str(each), each.original) if isinstance(each, StructuredText) else each for each in texts]


def unpacked(texts: Any) -> tuple[str | None, ...]:
    """The texts that :func:`packed` was given."""
    if type(texts) is tuple:
        return texts
    return tuple(StructuredText(*each) if type(each) is tuple else each for each in texts)
