"""Ratings on K levels by a judge: of the whole output, p(y|I), also given an answer; or the degree of one criterion.

If the endpoint gives log-probabilities, p(y|I) is the share of each number among the likely first tokens. Otherwise it
is the stated number, or the shares among several samples. :class:`Filler` buys the rating of the whole output and all
answers to a questionnaire in one reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..models.base import Answer, Model, ModelError, Parameters, Request, make_request, refuse_images
from ..models.budget import reserved_tokens
from ..models.gateway import Gateway
from ..models.replies.answer_words import number_masses, number_said, scale_of, score_masses
from ..models.replies.yes_no import LEAST_MASS, token_of_field
from ..prompts.checklist import Question
from ..prompts.errors import InputError
from ..prompts.examples import Example
from ..prompts.prompt import Prompt, frame
from ..prompts.templates import render
from ..prompts.verdicts import Provenance, Status, Verdict, VerdictColumns
from .buying import NO_LOGPROBS, all_together
from .evaluator import Evaluator
from .judging import Judging
from .measures.nearest import in_view
from .replies import Reading, in_quotes, json_object
from .requests import TOKENS, TOP_LOGPROBS, Ask, BatchedAsking, object_schema, opening, question_block, shows_images


@dataclass(frozen=True, slots=True)
class ToRate:
    """A thing to rate: the whole output, the whole output given an answer, or the criterion of one question."""

    example: Example
    question: Question | None = None
    given: bool | None = None
    """Answer to ``question``, given before the whole is rated; None asks for the degree of its criterion."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A distribution over K levels, or the reason why there is none. A failure is a status, never a rating."""

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
    """Number of levels, 2 to 10. The judge is asked for 1, 2, ...; with ten levels for 0 to 9
    (:func:`~askance.models.replies.answer_words.scale_of`)."""
    role: str = "rater"

    async def rate(
        self, wanted: Sequence[ToRate], on_ratings: Callable[[int, int], None] | None = None
    ) -> list[Rating]:
        """Rate all things wanted. Returns one rating each, in their order. Raises BudgetExceededError if a cap is
        reached; the answers bought so far are in the store."""
        shown = (each for each in wanted if shows_images(self.prompt, each.example))
        refuse_images(self.model, (each.example.id for each in shown))
        return await all_together(wanted, self._rating, self.gateway.concurrency(self.model), on_ratings)

    def estimate(self, wanted: Iterable[ToRate]) -> tuple[int, int, int]:
        """Return the calls that :meth:`rate` would buy, the number of stored answers, and the tokens of the calls."""
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
        """Return the source of the numbers. Until it is settled, log-probabilities are asked for."""
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
        """Buy one rating. An unreadable reply is deleted from the store, so that the next run asks for it again."""
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
        """Read the distribution of a reply from its likely first numbers, else from its stated number. Raises
        ValueError if there is none."""
        low, high = scale_of(self.levels)
        masses = number_masses(answer.logprobs or (), low, high)
        if sum(masses) >= LEAST_MASS:
            return tuple(mass / sum(masses) for mass in masses), "logprob"
        number = number_said(answer.text)
        if number is None or not low <= number <= high:
            raise ValueError(f"{in_quotes(answer.text)} is no number from {low} to {high}")
        one = tuple(float(number == each) for each in range(low, high + 1))
        return one, "sampled" if provenance == "sampled" else "hard"


WHOLE = "overall_rating"
"""Key of the rating in a filled questionnaire."""
Filled = dict[tuple[str, int], tuple[tuple[float, ...], Provenance]]
"""Ratings in filled questionnaires with their source, by example id and replicate."""


@dataclass(frozen=True)
class FillingAsking(BatchedAsking):
    """One call per example: all yes/no answers, then the rating of the whole output (EIG paper, Figure 10)."""

    levels: int = 5
    filled: Filled = field(default_factory=dict)
    """Ratings of the replies that were read."""

    @property
    def form(self) -> str:
        """The sentence that asks for a JSON object keyed by question id, with the rating as its last field."""
        low, high = map(str, scale_of(self.levels))
        return render("answer_filled", format=super().form, kind=WHOLE, low=low, high=high)

    def schema(self, questions: Sequence[Question]) -> dict[str, Any]:
        """Return the JSON schema of the answers, then the rating."""
        low, high = scale_of(self.levels)
        rating = {"type": "integer", "enum": list(range(low, high + 1))}
        return object_schema(super().schema(questions)["properties"] | {WHOLE: rating})

    def read(self, ask: Ask, answer: Answer) -> dict[str, Reading]:
        """Read the answers, and keep the rating in :attr:`filled`. Raises ValueError if either is missing."""
        readings = super().read(ask, answer)
        self.filled[ask.example.id, ask.replicate] = self._rating(answer)
        return readings

    def _rating(self, answer: Answer) -> tuple[tuple[float, ...], Provenance]:
        low, high = scale_of(self.levels)
        rating = json_object(answer, [WHOLE]).get(WHOLE)
        if isinstance(rating, bool) or not isinstance(rating, int) or not low <= rating <= high:
            raise ValueError(f'"{WHOLE}" is no whole number from {low} to {high}')
        masses = score_masses(token_of_field(answer.logprobs or (), WHOLE)[1], low, high) if self.logprobs else []
        if sum(masses) >= LEAST_MASS:
            return tuple(mass / sum(masses) for mass in masses), "logprob"
        return tuple(float(rating == each) for each in range(low, high + 1)), "hard"


@dataclass(eq=False)
class Filler(Evaluator):
    """An evaluator whose replies hold the answers to all questions and the rating of the whole output.

    Replicates and samples are the paper's rounds of simulated filling. Their answers and ratings are averaged.
    """

    levels: int = 5
    filled: Filled = field(default_factory=dict)
    states: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check that one call can show what all questions see. Raises InputError if it cannot."""
        super().__post_init__()
        views = {each.sees for each in self.checklist.asked}
        if len(views) != 1 or "quote" in views:
            raise InputError(
                "filling together: all questions see the same part of an example in one reply, and none is answered "
                f"with a quote; here they see {' and '.join(sorted(views)) or 'nothing'}. Leave it out (filling apart)."
            )
        if any(each.id == WHOLE for each in self.checklist.asked):
            raise InputError(f"filling together: '{WHOLE}' is the name of the rating; give that question another id.")

    async def fill(
        self, examples: Sequence[Example], on_verdicts: Callable[[int, int], None] | None = None
    ) -> tuple[VerdictColumns, list[Rating]]:
        """Buy verdicts as :meth:`judge` does, and one rating per example, in the order of the examples."""
        verdicts = await self.judge(examples, on_verdicts)
        failed = {each.example: each for each in verdicts if each.status != "ok"}
        read: dict[str, list[tuple[tuple[float, ...], Provenance]]] = {each.id: [] for each in examples}
        for (example, _), rating in self.filled.items():
            read[example].append(rating)
        return verdicts, [self._mean_rating(name, found, failed.get(name)) for name, found in read.items()]

    def _mean_rating(
        self, example: str, read: Sequence[tuple[tuple[float, ...], Provenance]], failed: Verdict | None
    ) -> Rating:
        if not read:
            assert failed is not None, "a reply with all answers has a rating"
            return Rating(example, None, None, None, status=failed.status, error=failed.error)
        mean = tuple(sum(column) / len(read) for column in zip(*(each for each, _ in read), strict=True))
        sources: set[Provenance] = {source for _, source in read}
        source: Provenance = sources.pop() if len(sources) == 1 else "hard"
        return Rating(example, None, None, mean, "sampled" if source == "hard" and len(read) > 1 else source)

    def _asking(self, provenance: Provenance) -> FillingAsking:
        judging, asked = self.judging, self.checklist.asked
        form = judging.form(provenance, len(asked), thinks=False)
        common = (self.prompt, asked, form.explained, form.logprobs, judging.temperature_of(provenance), judging.seed)
        more = (self.answers, form.stated, form.by_number)
        return FillingAsking(*common, *more, levels=self.levels, filled=self.filled)
