"""From one ask to its verdicts: bought, read, asked again once where it cannot be read; what a batch left out, alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..models.base import Answer, ModelError
from ..prompts.verdicts import Provenance, Verdict
from .asking import Ask, Asking, BatchedAsking, Reading

if TYPE_CHECKING:
    from ..models.base import Model
    from ..models.gateway import Gateway


@dataclass(frozen=True)
class VerdictBuyer:
    """Buys the verdicts of asks, one at a time, all in one way of asking."""

    gateway: Gateway
    role: str
    """The ledger that calls are booked under."""
    model: Model
    prompt_hash: str
    asking: Asking
    provenance: Provenance
    """Where p_yes comes from."""
    advice: str
    """What to do where the endpoint gives no log-probabilities after all."""

    def stored(self, ask: Ask, answer: Answer) -> list[Verdict] | None:
        """Verdicts of a stored answer, or None where it needs a re-ask."""
        try:
            readings = self.asking.read(ask, answer)
        except ValueError:
            return None
        if len(readings) < len(ask.questions):
            return None
        return [self._verdict(ask, question.id, readings[question.id]) for question in ask.questions]

    async def bought(self, ask: Ask, answer: Answer | None) -> list[Verdict]:
        """Verdicts of an ask, with one re-ask if its answer cannot be read; missing questions are asked alone.

        Args:
            ask: The call.
            answer: What the store has for it, if anything.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: The endpoint refuses every call.
        """
        keys = [ask.key]
        try:
            if answer is None:
                answer = await self.gateway.buy(self.role, self.model, ask.request())
            readings, problem = self._readings(ask, answer)
            if problem is not None:
                again = ask.again(self.model.identity, answer, problem, self.asking.form)
                keys.append(again.key)
                answer = await self.gateway.ask(self.role, self.model, again)
                readings, problem = self._readings(ask, answer)
        except ModelError as error:
            if error.fatal:
                raise
            return [self._failed(ask, question.id, "api_error", str(error)) for question in ask.questions]
        if problem is not None:
            self.gateway.forget(keys)
            return [self._failed(ask, question.id, "parse_error", problem) for question in ask.questions]
        verdicts = []
        for question in ask.questions:
            if question.id in readings:
                verdicts.append(self._verdict(ask, question.id, readings[question.id]))
            else:
                verdicts.extend(await self._alone(ask, question.id))
        return verdicts

    async def _alone(self, ask: Ask, question_id: str) -> list[Verdict]:
        """The verdict on one question that a batched answer left out."""
        assert isinstance(self.asking, BatchedAsking), "only an answer to several questions can leave one out"
        buyer = replace(self, asking=self.asking.alone(question_id))
        alone = next(buyer.asking.asks(self.model.identity, ask.example, ask.index, ask.replicate))
        return await buyer.bought(alone, self.gateway.stored(self.role, [alone.key]).get(alone.key))

    def _readings(self, ask: Ask, answer: Answer) -> tuple[dict[str, Reading], str | None]:
        """What an answer says, or the problem with it."""
        if self.provenance == "logprob" and not answer.logprobs:
            raise ModelError(
                f"{self.model.name}: an answer came without log-probabilities, although p_yes is taken from them in "
                f"this run. {self.advice}"
            )
        try:
            return self.asking.read(ask, answer), None
        except ValueError as error:
            return {}, str(error)

    def _verdict(self, ask: Ask, question: str, reading: Reading) -> Verdict:
        if reading.answer is None:
            return self._failed(ask, question, "abstained", None, reading.explanation)
        p_yes = float(reading.answer) if reading.p_yes is None else reading.p_yes
        return Verdict(
            ask.example.id,
            question,
            self.model.name,
            self.prompt_hash,
            reading.answer,
            p_yes,
            self.provenance,
            reading.explanation,
            replicate=ask.replicate,
        )

    def _failed(
        self,
        ask: Ask,
        question: str,
        status: Literal["abstained", "parse_error", "api_error"],
        error: str | None,
        explanation: str | None = None,
    ) -> Verdict:
        return Verdict(
            ask.example.id,
            question,
            self.model.name,
            self.prompt_hash,
            None,
            explanation=explanation,
            status=status,
            error=error,
            replicate=ask.replicate,
        )
