"""Opens a gateway for DSPy programs, which are not async, and closes it behind them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..agents.dspy.lm import GatewayLM, Stopped
from ..evaluation.options import parse_options
from ..memory.verdict_store import open_store
from ..models.session import ModelOptions, background_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..models.base import Model
    from ..models.budget import Budget
    from ..models.gateway import Gateway
    from ..models.resolve import Models
    from ..models.session import BackgroundLoop


class OpenGateway:
    """One gateway, with its store, caps and ledger, for all models that DSPy programs and metrics ask."""

    def __init__(self, gateway: Gateway, models: Models, loop: BackgroundLoop) -> None:
        """Use :func:`open_gateway`."""
        self.gateway = gateway
        self.loop = loop
        self._models = models

    @property
    def budget(self) -> Budget:
        """What each role took so far."""
        return self.gateway.budget

    def model(self, model: str | Model) -> Model:
        """The model of this name."""
        return self._models.get(model)

    def lm(self, model: str | Model, *, role: str = "dspy", **options: Any) -> GatewayLM:
        """A language model for ``dspy.context(lm=…)`` or ``dspy.configure(lm=…)``, booked under ``role``.

        ``options`` are those of :class:`~askance.agents.dspy.lm.GatewayLM`, e.g. ``max_tokens``.

        Raises:
            InputError: The model is not known.
        """
        return GatewayLM(self.gateway, self.model(model), role=role, loop=self.loop, **options)


@contextmanager
def open_gateway(*, cache: str | Path | None = None, no_cache: bool = False, **options: Any) -> Iterator[OpenGateway]:
    """Open a gateway for the time of a ``with`` block.

    DSPy takes an exception within a program or a metric for a score of 0 and goes on. What must not be counted, such as
    a budget that is used up, ends the block instead and is raised here; the answers so far are kept.

    Args:
        cache: Where answers are kept; ``verdicts.db`` in the user's cache directory by default.
        no_cache: Reuse no answer of an earlier run, and keep none for a later one.
        options: Settings of :class:`~askance.models.session.ModelOptions`, e.g. ``api_base`` or ``max_calls``.

    Raises:
        InputError: A setting or the store cannot be used.
        BudgetExceededError: A cap was reached.
        ModelError: The endpoint refuses every call, or is down.
        CoverageError: A metric lacks a verdict.
    """
    settings = parse_options(ModelOptions, options)
    with open_store(cache, no_cache=no_cache) as store:
        stopped: Stopped | None = None
        with background_session(settings, store) as (loop, models, gateway):
            try:
                yield OpenGateway(gateway, models, loop)
            except Stopped as stop:  # the calls under way are waited for, as at a good end
                stopped = stop
        if stopped is not None:
            raise stopped.error from None
