"""A session for callers that are not async: models and gateway live on a loop of their own while a block runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..models.background_loop import BackgroundLoop
from .session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..models.gateway import AnswerStore, Gateway
    from ..models.resolve import Models
    from .options import ModelOptions


@contextmanager
def background_session(
    options: ModelOptions, store: AnswerStore | None, *, stored_answers_are_ours: bool = False
) -> Iterator[tuple[BackgroundLoop, Models, Gateway]]:
    """Open models and gateway on a background loop for the time of a ``with`` block.

    At its end calls under way are waited for, as they are paid for; an error in the block cancels them.

    Raises:
        InputError: A setting cannot be used.
    """
    loop, last, cancel = BackgroundLoop(), None, True
    try:
        opened = session(options, store, stored_answers_are_ours=stored_answers_are_ours)
        models, gateway = loop.run(opened.__aenter__())
        last = opened.__aexit__(None, None, None)
        yield loop, models, gateway
        cancel = False
    finally:
        loop.close(last, cancel=cancel)
