"""The evaluator: a model plus the prompt that makes it answer questions (BinEval §3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..models.base import Answer, Model, ModelError, make_request
from ..models.gateway import Gateway
from ..prompts.checklist import Checklist, Question
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..prompts.rows import column
from ..prompts.templates import template
from ..prompts.verdicts import Provenance, Told, Verdict, VerdictColumns, fields_of
from .asking import (
    NO_LOGPROBS,
    NOTHING_QUOTED,
    TURN,
    Answers,
    Ask,
    Asking,
    BatchedAsking,
    EachAsking,
    in_blocks,
    quote_in,
    words_read,
)
from .buying import Estimate, VerdictBuyer, estimate_asks, work_together
from .expected_score import ExpectedScoreAsking
from .judging import DEFAULT, Judging

REASON_TOKENS = 80
"""Most tokens of the reason that is asked for after an answer."""
NO_LOGPROBS_FOR_SCORES = "Use --scores soft or hard if the endpoint gives none."


@dataclass(eq=False)
class Evaluator:
    """A model with a prompt that answers a checklist's questions."""

    gateway: Gateway
    model: Model
    prompt: Prompt
    checklist: Checklist
    judging: Judging = DEFAULT
    role: str = "evaluator"
    """The ledger that its calls are booked under."""
    tally: Callable[[Sequence[Verdict]], None] | None = None
    """Shown all verdicts."""

    def __post_init__(self) -> None:
        """Check the words for yes and no.

        Raises:
            InputError: They are the wrong way round.
        """
        words_read(self.prompt, (), self.answers)

    async def judge(
        self, examples: Sequence[Example], on_verdicts: Callable[[int, int], None] | None = None
    ) -> VerdictColumns:
        """Ask every question about every example.

        Returns one verdict per example, question and replicate, in that order, whatever the order of completion.
        ``on_verdicts`` is told how many verdicts of how many are there.

        Raises:
            BudgetExceededError: A cap was reached; the answers bought so far are in the store.
            ModelError: The endpoint refuses every call (wrong key, unknown model) or is down.
        """
        if not examples:
            return VerdictColumns()
        provenance = await self.settle(examples)
        draws = self.judging.draws(provenance)
        verdicts = await self._collect(examples, provenance, draws, on_verdicts)
        if draws > 1:
            verdicts = _merge_draws(verdicts, draws, len(self.checklist.questions))
        if self.tally:
            self.tally(verdicts)
        return verdicts

    async def explain(self, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[tuple[str, str], str]:
        """Buy the explanations of some verdicts, each in a further call that goes on from its own answer.

        Returns explanations by (example id, question id); verdicts without an answer are left out.
        """
        by_id = {example.id: example for example in examples}
        explained: dict[tuple[str, str], str] = {}
        for verdict in verdicts:
            key = (verdict.example, verdict.question)
            if verdict.explanation is not None:
                explained[key] = verdict.explanation
            elif verdict.answer is not None:
                explained[key] = await self._explanation(verdict, by_id[verdict.example])
        return explained

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """What :meth:`judge` would buy now, if every answer can be read and is kept.

        Where p_yes is ``auto`` and no answer has settled it yet, log-probabilities are assumed.
        """
        asked = self.judging.p_yes
        settled = self.gateway.provenance.get(self.model.identity, "logprob")
        provenance: Provenance = settled if asked == "auto" else asked
        asks = self._all_asks(self._asking(provenance), examples, self.judging.draws(provenance))
        verdicts = len(examples) * len(self.checklist.questions) * self.judging.repeat
        return estimate_asks(asks, verdicts, self.gateway.store, getattr(self.model, "price", None))

    async def settle(self, examples: Sequence[Example]) -> Provenance:
        """Where p_yes comes from: settled by the first answer of this model and never changed after."""
        asked = self.judging.p_yes
        expected = self.judging.score_scale is not None
        if asked != "auto" and not expected:
            return asked
        settled = self.gateway.provenance.get(self.model.identity)
        if settled is None:
            answer = await self._first_answer(examples)
            found: Provenance = "logprob" if answer.logprobs else self.judging.without_logprobs
            settled = self.gateway.settle(self.model, found)
        if expected and settled != "logprob":
            raise ModelError(
                f"{self.model.name}: the endpoint gives no log-probabilities, which expected scores are read from. "
                "Choose --scores soft or hard, or another model.",
                fatal=True,
            )
        return settled

    async def _first_answer(self, examples: Sequence[Example]) -> Answer:
        """The first ask of the first example on which the model gives an answer at all."""
        asking = self._asking("logprob")
        for place, example in enumerate(examples, 1):
            probe = next(self._all_asks(asking, [example], 1))
            try:
                answer = await self.gateway.probe(self.role, self.model, probe.request())
                if answer.logprobs and asking.wants_room(probe, answer):
                    self.gateway.need_room.add(self.model.identity)
                return answer
            except ModelError as error:
                if error.fatal or place == len(examples):
                    raise
        raise AssertionError("the last example returns or raises")

    def _asking(self, provenance: Provenance) -> Asking:
        judging = self.judging
        explained, logprobs = judging.explain == "always", provenance == "logprob"
        if judging.score_scale is not None:
            return self._asking_for_scores(self.checklist.questions, judging.score_scale, explained=explained)
        temperature = judging.temperature_of(provenance)
        common = (self.prompt, self.checklist.questions, explained, logprobs, temperature, judging.seed)
        if judging.mode == "each":
            return EachAsking(*common, self.answers)
        return BatchedAsking(*common, judging.seed, self.answers)

    @property
    def answers(self) -> Answers | None:
        """The words for yes and no that are asked for, where some were given: the setting's, else the checklist's."""
        return self.judging.answer_words or self.checklist.answers

    def _asking_for_scores(
        self, questions: tuple[Question, ...], scale: tuple[int, int], *, explained: bool
    ) -> ExpectedScoreAsking:
        judging = self.judging
        return ExpectedScoreAsking(self.prompt, questions, explained, judging.temperature, judging.seed, scale)

    def _all_asks(self, asking: Asking, examples: Sequence[Example], draws: int) -> Iterator[Ask]:
        questions = len(self.checklist.questions)
        position = 0
        for example in examples:
            for replicate in range(self.judging.repeat * draws):
                yield from asking.asks(self.model.identity, example, position, replicate)
                position += questions

    async def _collect(
        self,
        examples: Sequence[Example],
        provenance: Provenance,
        draws: int,
        on_verdicts: Callable[[int, int], None] | None,
    ) -> VerdictColumns:
        asking = self._asking(provenance)
        no_logprobs = NO_LOGPROBS if self.judging.score_scale is None else NO_LOGPROBS_FOR_SCORES
        buyer = VerdictBuyer(self.gateway, self.role, self.model, asking, provenance, no_logprobs)
        ids, questions = list(column(examples, "id")), [each.id for each in self.checklist.questions]
        results = VerdictColumns.due(ids, questions, self.model.name, self.prompt.hash, self.judging.repeat * draws)
        done = 0

        def tell() -> None:
            if on_verdicts:
                on_verdicts(done, len(results))

        def keep(ask: Ask, said: list[Told]) -> None:
            nonlocal done
            for place, each in enumerate(said, ask.index):
                results.put(place, each)
            done += len(said)

        async def to_buy() -> AsyncIterator[tuple[Ask, Answer | None]]:
            """Settle what the store can; the rest is handed out one by one, as workers become free."""
            for block in in_blocks(self._all_asks(asking, examples, draws)):
                found = await self.gateway.stored(self.role, [ask.key for ask in block])
                for turn in in_blocks(block, TURN):
                    for ask in turn:
                        answer = found.get(ask.key)
                        said = buyer.stored(ask, answer) if answer else None
                        if said:
                            keep(ask, said)
                        else:
                            yield ask, answer
                    tell()
                    await asyncio.sleep(0)

        async def buy(waiting: tuple[Ask, Answer | None]) -> None:
            ask, answer = waiting
            keep(ask, await buyer.bought(ask, answer))
            tell()

        await work_together(to_buy(), buy, min(len(results), self.gateway.concurrency(self.model)))
        tell()
        return results

    async def _explanation(self, verdict: Verdict, example: Example) -> str:
        question = self.checklist.question(verdict.question)
        if question.sees == "quote":
            if self.judging.score_scale is None and (said := await self._quotation(verdict, question, example)):
                return said
            question = question.model_copy(update={"sees": question.shown})
        asking, said = self._asking_that_led_to(verdict, question)
        ask = next(asking.asks(self.model.identity, example, 0, verdict.replicate))
        messages = [*ask.messages, ("assistant", said), ("user", template("explain_answer"))]
        parameters = replace(ask.parameters, max_tokens=REASON_TOKENS)
        request = make_request(self.model.identity, messages, parameters, verdict.replicate, framing=ask.framing)
        answer = await self.gateway.ask(self.role, self.model, request)
        return " ".join(answer.text.split())

    async def _quotation(self, verdict: Verdict, question: Question, example: Example) -> str | None:
        """The words that made the answer yes, written to their end, or that there are none; None where a yes has no such words."""
        if not verdict.answer:
            return NOTHING_QUOTED
        how = (True, False, self.judging.temperature, self.judging.seed, self.answers)
        asking = EachAsking(self.prompt, (question,), *how)
        ask = next(asking.asks(self.model.identity, example, 0, verdict.replicate))
        quote = quote_in(await self.gateway.ask(self.role, self.model, ask.request()), example.output or "")
        return None if quote == NOTHING_QUOTED else quote

    def _asking_that_led_to(self, verdict: Verdict, question: Question) -> tuple[Asking, str]:
        """The question asked alone, and what the judge as good as said."""
        judging = self.judging
        if judging.score_scale is None or verdict.p_yes is None:
            yes, no = self.answers or ("Yes", "No")
            how = (False, False, judging.temperature, judging.seed, self.answers)
            return EachAsking(self.prompt, (question,), *how), yes if verdict.answer else no
        asking = self._asking_for_scores((question,), judging.score_scale, explained=False)
        return asking, asking.nearest(verdict.p_yes)


def _merge_draws(verdicts: Sequence[Verdict], draws: int, questions: int) -> VerdictColumns:
    """One verdict from ``draws`` of the same question: p_yes is the share of yes. Any failure fails the whole."""
    merged = VerdictColumns()
    for start in range(0, len(verdicts), questions * draws):
        for offset in range(questions):
            group = verdicts[start + offset : start + questions * draws : questions]
            replicate = group[0].replicate // draws
            failed = next((verdict for verdict in group if verdict.answer is None), None)
            if failed is not None:
                merged.append(fields_of(replace(failed, replicate=replicate)))
                continue
            p_yes = sum(bool(verdict.answer) for verdict in group) / draws
            answer = group[0].answer if p_yes == 0.5 else p_yes > 0.5
            one = next(verdict for verdict in group if verdict.answer == answer)
            merged.append(fields_of(replace(one, p_yes=p_yes, p_yes_from="sampled", replicate=replicate)))
    return merged
