"""Asynchronous work for callers that are not: run to its end from anywhere, or by many threads on one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ..prompts.errors import AskanceError

Result = TypeVar("Result")
_CLOSED = "This gateway is closed; ask within its 'with' block."


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


class BackgroundLoop:
    """Runs coroutines of many threads on one event loop, to which a gateway and its connections belong.

    It is there from when it is made until :meth:`close`.
    """

    def __init__(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closing = False
        self._under_way: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="askance-gateway", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Wait, in any other thread, until a coroutine is done; an interrupt of the waiting cancels it.
        Raises AskanceError where the loop is closed, or this is its own thread, which cannot wait for itself."""
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            raise AskanceError(_CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    async def wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Like :meth:`run`, from another event loop, which goes on meanwhile."""
        return await asyncio.wrap_future(self._submit(work))

    def close(self, last: Coroutine[Any, Any, object] | None = None, *, cancel: bool = False) -> None:
        """Take no more work, let what is under way end, run ``last``, and end the thread.

        Calls under way are paid for, so they are waited for; ``cancel`` ends them instead.
        """
        with self._lock:
            if self._closing:
                if last is not None:
                    last.close()
                return
            self._closing = True
            left = list(self._under_way)
        try:
            for future in left if cancel else ():
                future.cancel()
            wait(left)
        finally:
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        own = threading.current_thread() is self._thread
        with self._lock:
            if not self._closing and not own:
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
                self._under_way.add(future)
                future.add_done_callback(self._under_way.discard)
                return future
        work.close()
        text = "A call that waits was made on the gateway's own event loop; await it there instead."
        raise AskanceError(text if own else _CLOSED)


async def _end(last: Coroutine[Any, Any, object] | None) -> None:
    """End what has been left behind, and do the last piece of work."""
    try:
        if last is not None:
            await last
    finally:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
