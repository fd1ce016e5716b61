"""Who watches a call from Python: the one that was given, a notebook's cell, standard error, or nobody."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..prompts.errors import InputError
from .progress import Silent
from .progress_console import on_standard_error
from .progress_notebook import in_notebook, in_the_cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .progress import Watcher


@contextmanager
def watching(watcher: Watcher | None, progress: bool | None) -> Iterator[Watcher]:
    """Somebody who is told how the work goes on, until it ends.

    Args:
        watcher: The one; None where askance shows progress itself, or nobody does.
        progress: Whether progress is shown: in the cell of a notebook, else on standard error. None: in notebooks only.

    Raises:
        InputError: A watcher, and progress too.
    """
    if watcher is not None:
        if progress:
            raise InputError("Progress is told to the watcher that was given: leave out watcher=, or progress=True.")
        yield watcher
    elif progress is False or (progress is None and not in_notebook()):
        yield Silent()
    else:
        with in_the_cell() if in_notebook() else on_standard_error() as shown:
            yield shown
