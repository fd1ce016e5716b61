"""scipy, which comes with the extra ``weights``, looked for only when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...prompts.errors import MissingExtraError


def scipy_part(name: str) -> Any:
    """The module ``scipy.NAME``.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise MissingExtraError("weights", "scipy") from error
