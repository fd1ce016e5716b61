"""What a judge is: something that gives an example a score in [0, 1] on each dimension, or says why it cannot.

All judges of a comparison lay the example out in the same way and before what they ask, so that it stays in the model's
prompt cache (docs/results/machine.md, "Where the example stands in the prompt"); each has a meter that counts what it would cost
by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from ...models.base import Answer, Model, Request
from ...models.budget import Budget
from ...models.gateway import Gateway
from ...prompts.examples import Example
from ...prompts.prompt import Prompt, default_prompt

if TYPE_CHECKING:
    from ...agents.buying import Estimate
    from ...prompts.checklist import Checklist
    from ...prompts.verdicts import Status
    from ..options import CompareOptions
    from .criteria import Criterion


@dataclass(frozen=True, slots=True)
class JudgeScore:
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

    @property
    def stored_only(self) -> Setup:
        """The same with a gateway that gives what is in the store and refuses to buy (`BudgetExceededError`)."""
        return replace(self, gateway=Gateway(self.gateway.store, Budget(call_budget=0)))


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

    async def rate(self, examples: Sequence[Example]) -> list[JudgeScore]:
        """One rating per example, replicate and dimension, in that order.

        Raises:
            BudgetExceededError: A cap was reached; what was bought is in the store.
            ModelError: The endpoint refuses every call or is down.
        """
        ...

    async def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What :meth:`prepare` and :meth:`rate` would buy now, as far as that can be known."""
        ...


_SHOWN = re.compile(r"(?<!\{)\{(?:input|context|output|reference)\}(?!\})")
LONGEST_LABEL = 60
"""A prompt that begins with more than this before its first text begins with guidance, not with a label."""


def layout_of(prompt: Prompt, examples: Sequence[Example]) -> Prompt:
    """The part of a prompt that shows the example, followed by ``{question}``.

    A prompt that has guidance before the example, or no placeholders, gives nothing to share; then the example is laid
    out as in askance's own prompt.
    """
    shown = _shown_first(prompt)
    if shown is None:
        shown = _shown_first(default_prompt(examples))
    assert shown is not None, "askance's own prompt shows the example first"
    return Prompt(f"{shown}\n\n{{question}}\n")


def _shown_first(prompt: Prompt) -> str | None:
    """The text up to the last part of the example, where the example is what the prompt begins with."""
    places = list(_SHOWN.finditer(prompt.text))
    question = prompt.text.find("{question}")
    if not places or places[0].start() > LONGEST_LABEL or (question != -1 and question < places[-1].start()):
        return None
    text = prompt.text[: places[-1].end()]
    gaps = [text[before.end() : after.start()] for before, after in pairwise(places)]
    return text if all(len(gap) <= LONGEST_LABEL for gap in gaps) else None


class Meter(Gateway):
    """Passes everything on to the common gateway and counts each answer once, bought or stored.

    The common gateway keeps the caps and says what this run paid. The meter says what the judge would have cost by
    itself, so that a judge whose answers were in the store already, or were bought by another one, is not free.
    """

    def __init__(self, common: Gateway) -> None:
        """``common`` is shared by all judges of a comparison."""
        super().__init__(common.store, Budget(), max_concurrency=common.max_concurrency)
        self.provenance = common.provenance
        self._probed = common._probed
        self._common = common
        self._met: set[bytes] = set()

    async def stored(self, role: str, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Those answers that need no call."""
        found = await self._common.stored(role, keys)
        for key in keys:
            if key in found:
                self._meet(role, key, found[key])
        return found

    async def buy(self, role: str, model: Model, request: Request) -> Answer:
        """Buy through the common gateway.

        Raises:
            ModelError: No answer after all attempts.
            BudgetExceededError: The call would pass a cap; it was not made.
        """
        answer = await self._common.buy(role, model, request)
        self._meet(role, request.key, answer)
        return answer

    def _meet(self, role: str, key: bytes, answer: Answer) -> None:
        if key not in self._met:
            self._met.add(key)
            self.budget.paid(role, answer)
