"""What a person sees while a command works."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..optimizer.progress import Silent
from ..optimizer.progress_console import on_standard_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..optimizer.progress import Watcher


@contextmanager
def console(quiet: bool) -> Iterator[Watcher]:
    """Somebody who watches a command, fit for what standard error is."""
    if quiet:
        yield Silent()
    else:
        with on_standard_error() as watcher:
            yield watcher
