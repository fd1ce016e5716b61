"""Rows of a data set on the Hugging Face hub, through the package ``datasets``."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from .errors import AskanceError, InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "hf:"
_NAME = re.compile(r"(?P<path>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<name>[\w.-]+))?:(?P<split>[\w.%\[\]:+-]+)")


def is_on_hub(source: object) -> bool:
    """Whether this names a data set on the hub: ``hf:OWNER/NAME[/CONFIG]:SPLIT``."""
    return isinstance(source, str) and source.startswith(PREFIX)


def rows_of_name(source: str) -> Iterable[Mapping[str, Any]]:
    """The rows of ``hf:OWNER/NAME[/CONFIG]:SPLIT``; the split may be a slice, such as ``test[:100]``.

    Raises:
        InputError: The name is not of this form.
        MissingExtraError: ``datasets`` is not installed.
        AskanceError: The hub cannot be reached, or has no such data set.
    """
    match = _NAME.fullmatch(source.removeprefix(PREFIX))
    if match is None:
        raise InputError(f"{source}: write hf:OWNER/NAME:SPLIT or hf:OWNER/NAME/CONFIG:SPLIT, e.g. hf:owner/data:test.")
    return hub_rows(match["path"], match["name"], match["split"])


def hub_rows(path: str, name: str | None, split: str) -> Iterable[Mapping[str, Any]]:
    """The rows of one split; ``name`` is the configuration, where the data set has several.

    Raises:
        MissingExtraError: ``datasets`` is not installed.
        AskanceError: The hub cannot be reached, or has no such data set.
    """
    try:
        package: Any = importlib.import_module("datasets")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "datasets":
            raise
        hint = f"; or download {path} yourself and name the file."
        raise MissingExtraError("datasets", "datasets", hint) from None
    try:
        rows: Iterable[Mapping[str, Any]] = package.load_dataset(path, name, split=split)
    except (OSError, ValueError) as error:  # what is not found, cannot be reached or has no such split
        said = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise AskanceError(
            f"{path}: cannot be had from the Hugging Face hub ({said}). Download the file yourself and name it."
        ) from None
    return rows
