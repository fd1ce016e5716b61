"""Bridges between synchronous and asynchronous code: run a coroutine to its end from anywhere, run the coroutines of
many threads on one event loop, or run a function in a thread while the caller's loop goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import cleandoc
from typing import Any, Generic, ParamSpec, TypeVar

from ..prompts.errors import AskanceError

Result = TypeVar("Result")
Waited = TypeVar("Waited")
Given = ParamSpec("Given")
_CLOSED = "This gateway is closed; ask within its 'with' block."


@dataclass(frozen=True, slots=True)
class _Box(Generic[Result]):
    """A result with a short repr: asyncio.run makes the repr of its task, which would contain every verdict."""

    value: Result = field(repr=False)


async def _boxed(work: Coroutine[Any, Any, Result]) -> _Box[Result]:
    return _Box(await work)


class _Thread(Generic[Result]):
    """Work in its own thread, with its caller's context variables. The coroutines that it awaits can be cancelled."""

    def __init__(self, work: Callable[[], Result]) -> None:
        """Start the thread."""
        self.done: Future[Result] = Future()
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._waiting: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}
        context = copy_context()
        context.run(_THREAD.set, self)
        threading.Thread(target=context.run, args=(self._do, work), name="askance", daemon=True).start()

    def _do(self, work: Callable[[], Result]) -> None:
        try:
            result = work()
        except BaseException as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(result)

    def cancel(self) -> None:
        """Cancel what the work awaits, now and later. The work then closes its store and ends by itself."""
        with self._lock:
            self._is_cancelled = True
            for task, loop in self._waiting.items():
                loop.call_soon_threadsafe(task.cancel)

    async def cancellable(self, work: Coroutine[Any, Any, Waited]) -> Waited:
        """Run a coroutine of the work, so that :meth:`cancel` can cancel it."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._is_cancelled:
                work.close()
                raise asyncio.CancelledError
            self._waiting[task] = asyncio.get_running_loop()
        try:
            return await work
        finally:
            with self._lock:
                del self._waiting[task]


_THREAD: ContextVar[_Thread[Any] | None] = ContextVar("askance_thread", default=None)


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end. Within a running event loop, e.g. a notebook's, it runs in a thread."""
    if not _is_loop_running():
        thread = _THREAD.get()
        return asyncio.run(_boxed(work if thread is None else thread.cancellable(work))).value
    worker: _Thread[Result] = _Thread(partial(run_sync, work))
    try:
        return worker.done.result()
    except BaseException:  # e.g. an interrupt by the notebook's user: the work must end before its store is closed
        if not worker.done.done():
            worker.cancel()
            wait([worker.done])
        raise


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def awaited(function: Callable[Given, Result]) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """Return an awaitable version of a function. The function runs in a thread, on its own event loop, with the
    caller's context variables. Callbacks, watchers and model objects are called in that thread. Cancelling a call stops
    whatever the function waits for; the call ends when the thread has ended and its store is closed."""

    @wraps(function)
    async def apart(*arguments: Given.args, **named: Given.kwargs) -> Result:
        thread = _Thread(partial(function, *arguments, **named))
        ended = asyncio.wrap_future(thread.done)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if not ended.done():
                thread.cancel()
                await asyncio.wait([ended])
                ended.exception()  # marks the error as seen: the caller gets only the cancellation
            raise

    name = function.__name__
    apart.__name__, apart.__qualname__ = f"a{name}", function.__qualname__.replace(name, f"a{name}")
    apart.__doc__ = f"Await :func:`{name}`; the event loop goes on meanwhile.\n\n{cleandoc(function.__doc__ or '')}"
    return apart


class BackgroundLoop:
    """A loop in its own thread for coroutines of many threads, until :meth:`close`. It owns a gateway's connections."""

    def __init__(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closing = False
        self._under_way: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="askance-gateway", daemon=True)
        self._thread.start()

    @property
    def is_own_thread(self) -> bool:
        """Whether the current thread is the loop's thread, which cannot wait for the loop."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait, in another thread, until it is done. An interrupt cancels it.
        Raises AskanceError if the loop is closed, or if this is the loop's own thread."""
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            raise AskanceError(_CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    async def wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Like :meth:`run`, but awaited on another event loop, which goes on meanwhile."""
        return await asyncio.wrap_future(self._submit(work))

    def close(self, last: Coroutine[Any, Any, object] | None = None, *, cancel: bool = False) -> None:
        """Take no more work; wait for the calls under way, or ``cancel`` them; run ``last``; end the thread."""
        with self._lock:
            if self._closing:
                if last is not None:
                    last.close()
                return
            self._closing = True
            futures = list(self._under_way)
        try:
            for future in futures if cancel else ():
                future.cancel()
            wait(futures)
        finally:
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        is_own_thread = self.is_own_thread
        with self._lock:
            if not self._closing and not is_own_thread:
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
                self._under_way.add(future)
                future.add_done_callback(self._under_way.discard)
                return future
        work.close()
        text = "A call that waits was made on the gateway's own event loop; await it there instead."
        raise AskanceError(text if is_own_thread else _CLOSED)


async def _end(last: Coroutine[Any, Any, object] | None) -> None:
    """Run the last piece of work, then cancel all remaining tasks."""
    try:
        if last is not None:
            await last
    finally:
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        for task in leftovers:
            task.cancel()
        await asyncio.gather(*leftovers, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
