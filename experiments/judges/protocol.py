"""What a judge is: something that gives an example a score in [0, 1] on each dimension, or says why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...models.base import Model
    from ...models.gateway import Gateway
    from ...prompts.checklist import Checklist
    from ...prompts.examples import Example
    from ...prompts.prompt import Prompt
    from ...prompts.verdicts import Status
    from ..compare_options import CompareOptions
    from .criteria import Criterion

OnDone = Callable[[int, int], None]
"""Told how many calls of how many are settled."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What a judge says about one example on one dimension. A failure is a status, never a score."""

    example: str
    dimension: str
    score: float | None
    """In [0, 1], 1 the best; None unless the status is ``ok``."""
    status: Status = "ok"
    error: str | None = None
    replicate: int = 0
    reasons: str | None = None
    """What a free-form judge said before its score."""


@dataclass(frozen=True)
class Setup:
    """What every judge of a comparison is given: the same model, store, examples' layout and task."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    """Of the judges that ask a checklist's questions."""
    layout: Prompt
    """Of the judges that rate: the example as in ``prompt``, then ``{question}``."""
    task: str
    criteria: tuple[Criterion, ...]
    """One for each dimension that is compared."""
    options: CompareOptions
    checklist: Checklist | None = None
    candidates: Checklist | None = None
    """The pool that ``random_k`` draws from; the checklist where there is none."""
    panel: tuple[Model, ...] = ()
    """The models of ``poll``; none: several members of the one model."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of the dimensions that are compared."""
        return tuple(criterion.dimension for criterion in self.criteria)


class Judge(Protocol):
    """A judge. Its calls are booked under its name."""

    @property
    def name(self) -> str:
        """As on the command line."""
        ...

    async def prepare(self) -> None:
        """Buy what is needed once, however many examples there are; its cost is the upfront cost.

        Raises:
            AskanceError: It cannot be had.
        """
        ...

    async def rate(self, examples: Sequence[Example], on_done: OnDone | None = None) -> list[Rating]:
        """One rating per example, replicate and dimension, in that order.

        Raises:
            BudgetExceededError: A cap was reached; what was bought is in the store.
            ModelError: The endpoint refuses every call or is down.
        """
        ...

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What :meth:`prepare` and :meth:`rate` would buy now, as far as that can be known."""
        ...
