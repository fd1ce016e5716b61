"""What the two ways of fetching a model have in common: how progress is told and how a source fails."""

from __future__ import annotations

from collections.abc import Callable

from ..prompts.errors import AskanceError

Progress = Callable[[str, int, int], None]
"""Called as ``progress(what is being done, bytes done, bytes in all)``."""


class SourceFailedError(AskanceError):
    """One source of a model could not give it; the next one may. The message is a clause, not a sentence."""
