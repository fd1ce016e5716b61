"""Settings, models and gateway that every command needs while it runs.

A command opens a :func:`session`. For callers that are not async (DSPy, GEPA), a :func:`background_session` keeps
models and gateway on a loop in its own thread, so that many threads share one gateway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from ..prompts.formatting import count
from ..settings import KEPT, Heading, Idle, idle_settings, where
from .base import AnswerStore
from .batches.open_batches import keys_in_batches
from .budget import Budget
from .direct import check_address
from .event_loops import BackgroundLoop
from .gateway import Gateway, RetryPolicy
from .named import NamedModel, read_named
from .resolve import Models


class ModelOptions(BaseModel):
    """Access to models, and caps on spending."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    api_base: Annotated[str | None, Heading.MODELS.at(-2)] = Field(
        None, description="Address of an OpenAI-compatible server, for openai/NAME."
    )
    engine: Annotated[Literal["direct", "batch", "ray"], Heading.MODELS] = Field(
        "direct",
        description="Ask one by one, in batches at half the price that may take a day (openai/NAME), or from the "
        "machines of a Ray cluster.",
    )
    workers: Annotated[int | None, Heading.MODELS] = Field(
        None, ge=1, description="Workers of engine ray; by default one a machine."
    )
    timeout: Annotated[float, Heading.MODELS] = Field(120.0, gt=0, description="Seconds that one call may take.")
    retries: Annotated[int, Heading.MODELS] = Field(5, ge=0, description="Further attempts after a failed call.")
    models: dict[str, NamedModel] = Field(
        {}, description="Models by a name of your own: model, api_base, api_key_env, thinking, price and more."
    )
    max_concurrency: Annotated[int, Heading.MODELS] = Field(
        16, ge=1, description="Calls under way at once, per endpoint."
    )
    call_budget: Annotated[int | None, Heading.BUDGET] = Field(
        None, ge=0, description="Cap on bought calls, over all roles."
    )
    token_budget: Annotated[int | None, Heading.BUDGET] = Field(
        None, ge=0, description="Cap on tokens, over all roles."
    )
    cost_budget: Annotated[float | None, Heading.BUDGET] = Field(
        None, ge=0, description="Cap on US dollars, over all roles."
    )
    seed: Annotated[int, Heading.MODELS] = Field(42, ge=0, description="Seed of everything random.")

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

    @field_validator("models", mode="before")
    @classmethod
    def _named(cls, values: Any) -> dict[str, NamedModel]:
        return read_named(values or {})

    @field_validator("api_base")
    @classmethod
    def _can_be_kept(cls, address: str | None) -> str | None:
        return check_address(address) if address else address


WAITS_EVERY = 15.0  # seconds between two messages about calls that are repeated


class _Waits:
    """Tells the user about repeated calls: the first one at once, the others together in one message."""

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
        """Tell the user the number of waits that were not mentioned."""
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
    """Open models and gateway; connections and embedded servers are closed afterwards, whatever happens. ``say`` gets
    messages for the user, e.g. about repeated calls. ``stored_answers_are_ours`` and ``brought`` are as for
    :class:`~askance.models.gateway.Gateway`."""
    prices = options.cost_budget is not None
    retry, waits = RetryPolicy(options.retries + 1), _Waits(say) if say is not None else None
    batches = None
    if options.engine == "batch":
        from .batches.batch_model import BatchModel

        batches = partial(BatchModel, retry=retry, say=say, on_wait=waits)
    pool = None
    if options.engine == "ray":
        from .ray_pool import RayPool

        pool = RayPool(options.api_base, options.timeout, options.workers, say, options.models)
    models = Models(
        api_base=options.api_base,
        timeout=options.timeout,
        named=options.models,
        need_prices=prices,
        batches=batches,
        reach=None if pool is None else pool.reach,
    )
    keeps = stored_answers_are_ours or not getattr(options, "no_cache", False)  # a run has its own store
    async with models:
        gateway = Gateway(
            store,
            Budget(options.call_budget, options.token_budget, options.cost_budget, keeps_answers=keeps),
            retry=retry,
            max_concurrency=options.max_concurrency,
            stored_answers_are_ours=stored_answers_are_ours,
            brought=brought,
        )
        gateway.on_wait, gateway.on_notice = waits, say
        if options.engine != "batch":
            gateway.in_batches = keys_in_batches
        try:
            yield models, gateway
        finally:
            if pool is not None:
                await pool.close()
            if waits is not None:
                waits.tell_rest()


@contextmanager
def background_session(
    options: ModelOptions, store: AnswerStore | None
) -> Iterator[tuple[BackgroundLoop, Models, Gateway]]:
    """Open models and gateway on a background loop for a ``with`` block. At its end, calls under way are waited for;
    after an error they are cancelled. Raises InputError if a setting cannot be used."""
    loop, last, cancel = BackgroundLoop(), None, True
    try:
        opened = session(options, store)
        models, gateway = loop.run(opened.__aenter__())
        last = opened.__aexit__(None, None, None)
        yield loop, models, gateway
        cancel = False
    finally:
        loop.close(last, cancel=cancel)
