"""The generator: a model plus the prompt that makes it write outputs, y = G(x; P_G) (BinEval §3.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..models.base import Answer, Model, ModelError, Parameters, Request, make_request
from ..models.budget import reserved_tokens
from ..models.gateway import Gateway
from ..prompts.examples import Example
from ..prompts.prompt import Prompt, generator_messages
from .buying import Estimate, all_together


@dataclass(frozen=True)
class Generated:
    """One example with what the generator wrote for it, or with the reason why it wrote nothing."""

    example: Example
    """``output`` is the text as it came, nothing stripped; None where there is an error."""
    error: str | None = None
    cut_off: bool = False
    """Whether the output ends where ``max_tokens`` ended it."""


@dataclass(frozen=True)
class Generator:
    """A model with a prompt that writes the outputs of examples."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    max_tokens: int = 1024
    """Of one output."""
    temperature: float = 0.0
    seed: int | None = None
    role: str = "generator"
    """The ledger that its calls are booked under."""

    async def generate(
        self, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> list[Generated]:
        """Write an output for every example; one that it has already is replaced.

        Returns one record per example, in input order, whatever the order of completion. ``on_done`` is told how many
        of how many are there.

        Raises:
            BudgetExceededError: A cap was reached; calls under way were let end, and their answers are in the store.
            ModelError: The endpoint refuses every call (wrong key, unknown model) or is down.
        """
        return await all_together(examples, self._write, self.gateway.concurrency(self.model), on_done)

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What :meth:`generate` would buy now; there are no verdicts."""
        requests = [self._request(example) for example in examples]
        keys = [request.key for request in requests]
        store = self.gateway.store
        found = store.get_many(keys) if store is not None else {}
        to_buy = {request.key: request for request in requests if request.key not in found}
        tokens = sum(reserved_tokens(request) for request in to_buy.values())
        written = self.max_tokens * len(to_buy)
        return Estimate.priced(
            0, len(to_buy), len(requests) - len(to_buy), tokens - written, written, self.model, self.gateway
        )

    def foreseen(self, examples: Sequence[Example]) -> list[Example]:
        """The examples with the outputs that are in the store already, which :meth:`generate` would give; where one is
        still to be written, with a text in its place that no answer in the store is about."""
        keys = [self._request(example).key for example in examples]
        store = self.gateway.store
        found = store.get_many(keys) if store is not None else {}
        return [
            example.model_copy(
                update={
                    "output": found[key].text if key in found else f"{key.hex()} {example.output or ''}",
                    "comment": (),
                }
            )
            for key, example in zip(keys, examples, strict=True)
        ]

    def _request(self, example: Example) -> Request:
        parameters = Parameters(self.max_tokens, self.temperature, self.seed)
        return make_request(self.model.identity, generator_messages(self.prompt, example), parameters)

    async def _write(self, example: Example) -> Generated:
        request = self._request(example)
        example = example.model_copy(update={"output": None, "comment": ()})  # which were about another output
        try:
            answer: Answer = await self.gateway.ask(self.role, self.model, request)
        except ModelError as error:
            if error.fatal:
                raise
            return Generated(example, str(error))
        if not _is_text(answer.text):
            await self.gateway.forget([request.key])
            return Generated(
                example,
                f"{self.model.name}: the output holds half a surrogate pair, which is no text.",
            )
        return Generated(example.model_copy(update={"output": answer.text}), cut_off=answer.finish == "length")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
