"""What every command needs while it runs: models, the gateway, and one event loop for all of it.

A command opens a :func:`session`; where callers are not async (DSPy, GEPA), a :func:`background_session` keeps models and
gateway on a loop in a thread of its own, so that many threads share one gateway.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Container, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from ..prompts.errors import AskanceError
from .budget import Budget, count
from .direct import check_address
from .gateway import AnswerStore, Gateway, RetryPolicy
from .resolve import Models
from .settings import KEPT, Idle, idle_settings, where

Result = TypeVar("Result")
_CLOSED = "This gateway is closed; ask within its 'with' block."


class ModelOptions(BaseModel):
    """How models are reached and what may be spent."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    api_base: str | None = Field(None, description="Address of an OpenAI-compatible server, for openai/NAME.")
    engine: Literal["direct", "batch", "ray"] = Field(
        "direct",
        description="Ask one by one, in batches at half the price that may take a day (openai/NAME), or from the machines of a "
        "Ray cluster.",
    )
    workers: int | None = Field(None, ge=1, description="Workers of engine ray; by default one a machine.")
    timeout: float = Field(120.0, gt=0, description="Seconds that one call may take.")
    retries: int = Field(5, ge=0, description="Further attempts after a failed call.")
    max_concurrency: int = Field(16, ge=1, description="Calls under way at once, per endpoint.")
    max_calls: int | None = Field(None, ge=0, description="Cap on bought calls, over all roles.")
    max_tokens: int | None = Field(None, ge=0, description="Cap on tokens, over all roles.")
    max_cost: float | None = Field(None, ge=0, description="Cap on US dollars, over all roles.")
    seed: int = Field(42, ge=0, description="Seed of everything random.")

    idle: ClassVar[tuple[Idle, ...]] = (
        Idle(("max_concurrency",), where(engine="batch"), "a batch is asked as a whole (engine batch)"),
        Idle(("workers",), where(engine=("direct", "batch")), "only engine ray has workers"),
    )
    """Settings without use beside others."""

    @model_validator(mode="after")
    def _all_is_used(self, info: ValidationInfo) -> ModelOptions:
        if info.context == KEPT:
            return self
        for name, why in idle_settings(type(self), vars(self)).items():
            raise ValueError(f"{name}: {why}")
        return self

    @field_validator("api_base")
    @classmethod
    def _can_be_kept(cls, address: str | None) -> str | None:
        return check_address(address) if address else address


WAITS_EVERY = 15.0
"""Seconds between two lines about calls that are made again."""


class _Waits:
    """Says that calls are made again: the first at once, the others together, so that many are one line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._quiet_until = 0.0
        self._unsaid = 0

    def __call__(self, why: str, seconds: float) -> None:
        if monotonic() < self._quiet_until:
            self._unsaid += 1
            return
        others = f" Since the last such line {count(self._unsaid, 'other call')} had to wait." if self._unsaid else ""
        self._say(f"{why} Asking again in {seconds:.1f} s.{others}")
        self._quiet_until, self._unsaid = monotonic() + WAITS_EVERY, 0

    def tell_rest(self) -> None:
        """How many were not spoken of."""
        if self._unsaid:
            self._say(f"{count(self._unsaid, 'further call')} had to be made again.")


@asynccontextmanager
async def session(
    options: ModelOptions,
    store: AnswerStore | None,
    say: Callable[[str], None] | None = None,
    *,
    stored_answers_are_ours: bool = False,
    brought: Container[bytes] = (),
) -> AsyncIterator[tuple[Models, Gateway]]:
    """Open models and gateway; connections and embedded servers are gone afterwards, whatever happens.

    ``say`` is told when a call failed and is made again; ``stored_answers_are_ours`` and ``brought`` are as of the
    gateway.
    """
    prices = options.max_cost is not None
    retry, waits = RetryPolicy(options.retries + 1), _Waits(say) if say is not None else None
    batches = None
    if options.engine == "batch":
        from .batches.batch_model import BatchModel

        batches = partial(BatchModel, retry=retry, say=say, on_wait=waits)
    pool = None
    if options.engine == "ray":
        from .cluster.ray_pool import RayPool

        pool = RayPool(options.api_base, options.timeout, options.workers, say)
    models = Models(
        api_base=options.api_base,
        timeout=options.timeout,
        need_prices=prices,
        batches=batches,
        reach=None if pool is None else pool.reach,
    )
    async with models:
        gateway = Gateway(
            store,
            Budget(options.max_calls, options.max_tokens, options.max_cost),
            retry=retry,
            max_concurrency=options.max_concurrency,
            stored_answers_are_ours=stored_answers_are_ours,
            brought=brought,
        )
        gateway.on_wait, gateway.on_notice = waits, say
        try:
            yield models, gateway
        finally:
            if pool is not None:
                await pool.close()
            if waits is not None:
                waits.tell_rest()


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

        Raises:
            AskanceError: The loop is closed, or this is its own thread, which cannot wait for itself.
        """
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
