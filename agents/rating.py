"""Ratings on K levels by a judge: p(y|I) of the whole output, given an answer, or the degree of one criterion.

From log-probabilities where the endpoint gives some, p(y|I) is the share of each number among the likely first tokens;
otherwise it is what was said, or the shares among several samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..models.base import Answer, Model, ModelError, Parameters, Request, make_request, refuse_images
from ..models.budget import reserved_tokens
from ..models.gateway import Gateway
from ..models.replies.numbers import number_masses, number_said, scale_of
from ..models.replies.yes_no import LEAST_MASS
from ..prompts.checklist import Question
from ..prompts.examples import Example
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render
from ..prompts.verdicts import Provenance, Status
from .buying import NO_LOGPROBS, all_together
from .judging import Judging
from .measures.nearest import in_view
from .replies import in_quotes
from .requests import TOKENS, TOP_LOGPROBS, opening, question_block, shows_images


@dataclass(frozen=True, slots=True)
class ToRate:
    """A thing to be rated: an output as a whole, given an answer, or one question's criterion."""

    example: Example
    question: Question | None = None
    given: bool | None = None
    """The answer to ``question`` under which the whole is rated; None asks for the degree of the question itself."""


@dataclass(frozen=True, slots=True)
class Rating:
    """The distribution over K levels, or why there is none. A failure is a status, never a rating."""

    example: str
    question: str | None
    given: bool | None
    distribution: tuple[float, ...] | None
    """Probability of level 1, 2, ..., K; sums to 1. None unless the status is ``ok``."""
    source: Provenance | None = None
    status: Status = "ok"
    error: str | None = None

    @property
    def expected(self) -> float | None:
        """Σ y p(y), in [1, K]."""
        if self.distribution is None:
            return None
        return sum(level * p for level, p in enumerate(self.distribution, 1))


@dataclass(frozen=True)
class Rater:
    """A model with a prompt that gives numbers on ``levels`` levels."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    judging: Judging
    levels: int = 5
    """2 to 10. They are asked for as 1, 2, ...; ten levels as 0 to 9 (:func:`~askance.models.replies.numbers.scale_of`)."""
    role: str = "rater"

    def __post_init__(self) -> None:
        """Check the levels; raises ValueError where they are not 2 to 10."""
        if not 2 <= self.levels <= 10:
            raise ValueError(f"A rating has 2 to 10 levels, not {self.levels}.")

    async def rate(
        self, wanted: Sequence[ToRate], on_ratings: Callable[[int, int], None] | None = None
    ) -> list[Rating]:
        """Rate everything wanted; one rating each, in that order. Raises BudgetExceededError where a cap was reached;
        the answers bought so far are in the store."""
        shown = (each for each in wanted if shows_images(self.prompt, each.example))
        refuse_images(self.model, (each.example.id for each in shown))
        return await all_together(wanted, self._rating, self.gateway.concurrency(self.model), on_ratings)

    def estimate(self, wanted: Iterable[ToRate]) -> tuple[int, int, int]:
        """Calls that :meth:`rate` would buy now, answers that are there already, and tokens of the calls."""
        calls = stored = tokens = 0
        store = self.gateway.store
        counted: set[bytes] = set()
        for rate in wanted:
            for request in self._requests(rate, self._provenance()):
                if request.key in counted or (store is not None and store.get_many([request.key])):
                    stored += 1
                else:
                    calls += 1
                    counted.add(request.key)
                    tokens += reserved_tokens(request)
        return calls, stored, tokens

    def _provenance(self) -> Provenance:
        """Where numbers come from, as far as it is settled; log-probabilities are asked for until it is."""
        asked = self.judging.p_yes
        return self.gateway.provenance.get(self.model.identity, "logprob") if asked == "auto" else asked

    def _requests(self, rate: ToRate, provenance: Provenance) -> Iterator[Request]:
        judging = self.judging
        sees = "all" if rate.question is None else rate.question.shown
        framing = frame(self.prompt, in_view(rate.example, sees), sees)
        messages = opening(framing, framing.before + self._block(rate) + framing.after)
        temperature, top = judging.temperature_of(provenance), TOP_LOGPROBS if provenance == "logprob" else 0
        for replicate in range(judging.draws(provenance)):
            parameters = Parameters(TOKENS, temperature, judging.seed + replicate, top)
            yield make_request(self.model.identity, messages, parameters, replicate, framing=framing)

    def _block(self, rate: ToRate) -> str:
        low, high = map(str, scale_of(self.levels))
        if rate.question is None:
            return render("rate_overall", low=low, high=high)
        if rate.given is None:
            return render("rate_question", question=question_block(rate.question), low=low, high=high)
        answer = "yes" if rate.given else "no"
        return render("rate_given", question=rate.question.text, answer=answer, low=low, high=high)

    async def _rating(self, rate: ToRate) -> Rating:
        """Buy one rating; an unreadable reply is not kept, so that it is asked for again next time."""
        name = (rate.example.id, rate.question.id if rate.question else None, rate.given)
        provenance = self._provenance()
        requests = list(self._requests(rate, provenance))
        read = []
        try:
            for request in requests:
                answer = await self.gateway.ask(self.role, self.model, request)
                if provenance == "logprob" and not answer.logprobs:
                    return await self._without_logprobs(rate, request)
                distribution, source = self._read(answer, provenance)
                read.append(distribution)
        except ModelError as error:
            if error.fatal:
                raise
            return Rating(*name, None, status="api_error", error=str(error))
        except ValueError as error:
            await self.gateway.forget([request.key])
            return Rating(*name, None, status="parse_error", error=f"{self.model.name}: {error}")
        mean = tuple(sum(column) / len(read) for column in zip(*read, strict=True))
        return Rating(*name, mean, source)

    async def _without_logprobs(self, rate: ToRate, request: Request) -> Rating:
        without = self.judging.without_logprobs(thinks=False)
        if self.judging.p_yes != "auto" or self.gateway.settle(self.model, without) != without:
            await self.gateway.forget([request.key])
            raise ModelError(
                f"{self.model.name}: an answer came without log-probabilities, although numbers are taken from them in "
                f"this run. {NO_LOGPROBS}"
            )
        return await self._rating(rate)

    def _read(self, answer: Answer, provenance: Provenance) -> tuple[tuple[float, ...], Provenance]:
        """Read a reply: the numbers that were likely as its first word, else the number said; else ValueError."""
        low, high = scale_of(self.levels)
        masses = number_masses(answer.logprobs or (), low, high)
        if sum(masses) >= LEAST_MASS:
            return tuple(mass / sum(masses) for mass in masses), "logprob"
        number = number_said(answer.text)
        if number is None or not low <= number <= high:
            raise ValueError(f"{in_quotes(answer.text)} is no number from {low} to {high}")
        one = tuple(float(number == each) for each in range(low, high + 1))
        return one, "sampled" if provenance == "sampled" else "hard"
