"""What every command needs while it runs: models, the gateway, and one event loop for all of it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..models.budget import Budget
from ..models.gateway import Gateway, RetryPolicy
from ..models.resolve import Models

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from ..models.gateway import AnswerStore
    from .options import ModelOptions

Result = TypeVar("Result")


@asynccontextmanager
async def session(
    options: ModelOptions,
    store: AnswerStore | None,
    say: Callable[[str], None] | None = None,
    *,
    stored_answers_are_ours: bool = False,
) -> AsyncIterator[tuple[Models, Gateway]]:
    """Open models and gateway; connections and embedded servers are gone afterwards, whatever happens.

    ``say`` is told when a call failed and is made again.
    """
    prices = options.max_cost is not None
    async with Models(api_base=options.api_base, timeout=options.timeout, need_prices=prices) as models:
        gateway = Gateway(
            store,
            Budget(options.max_calls, options.max_tokens, options.max_cost),
            retry=RetryPolicy(options.retries + 1),
            max_concurrency=options.max_concurrency,
            stored_answers_are_ours=stored_answers_are_ours,
        )
        if say is not None:
            gateway.on_wait = lambda why, seconds: say(f"{why} Asking again in {seconds:.1f} s.")
        yield models, gateway


@dataclass(frozen=True, slots=True)
class _Box(Generic[Result]):
    """A result that is not written out: asyncio.run takes the repr of its task, and that of every verdict in it."""

    value: Result = field(repr=False)


async def _boxed(work: Coroutine[Any, Any, Result]) -> _Box[Result]:
    return _Box(await work)


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also from within a running event loop (a notebook's): then in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_boxed(work)).value
    result: list[Result] = []
    errors: list[BaseException] = []
    cancel: list[Callable[[], object]] = []
    begun, ended = threading.Event(), threading.Event()

    async def cancellable() -> _Box[Result]:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        begun.set()
        return await _boxed(work)

    def target() -> None:
        try:
            result.append(asyncio.run(cancellable()).value)
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=target, name="askance", daemon=True).start()
    try:
        ended.wait()  # not join(): one that is interrupted takes the thread for ended
    except BaseException:  # the notebook's user interrupts: the work must end before its store is closed
        begun.wait()
        with suppress(RuntimeError):
            cancel[0]()
        ended.wait()
        raise
    if errors:
        raise errors[0]
    return result[0]
