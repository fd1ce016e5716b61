"""What a person sees while a command works."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..evaluation.progress import Silent, on_standard_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    import click

    from ..evaluation.progress import Watcher


@contextmanager
def console(quiet: bool) -> Iterator[Watcher]:
    """Somebody who watches a command, fit for what standard error is."""
    if quiet:
        yield Silent()
    else:
        with on_standard_error() as watcher:
            yield watcher


def hush(context: click.Context, parameter: click.Parameter, quiet: bool) -> bool:
    """Behind ``--quiet``: while the command lasts, askance logs errors and no warnings."""
    if quiet:
        logger = logging.getLogger(__name__.partition(".")[0])
        context.call_on_close(partial(logger.setLevel, logger.level))
        logger.setLevel(logging.ERROR)
    return quiet
