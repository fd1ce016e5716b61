"""What every command needs while it runs: models, the gateway, and one event loop for all of it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ..models.budget import Budget
from ..models.gateway import Gateway, RetryPolicy
from ..models.resolve import Models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from ..models.gateway import AnswerStore
    from .options import ModelOptions

Result = TypeVar("Result")


@asynccontextmanager
async def session(
    options: ModelOptions, store: AnswerStore | None, *, stored_answers_are_ours: bool = False
) -> AsyncIterator[tuple[Models, Gateway]]:
    """Open models and gateway; connections and embedded servers are gone afterwards, whatever happens."""
    async with Models(api_base=options.api_base, timeout=options.timeout) as models:
        yield (
            models,
            Gateway(
                store,
                Budget(options.max_calls, options.max_tokens, options.max_cost),
                retry=RetryPolicy(options.retries + 1),
                max_concurrency=options.max_concurrency,
                stored_answers_are_ours=stored_answers_are_ours,
            ),
        )


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also from within a running event loop (a notebook's): then in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: list[Result] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="askance", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return result[0]
