"""The evaluator: a model with the prompt that makes it answer questions (BinEval §3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ..models.base import Answer, Model, ModelError, make_request, refuse_images
from ..models.gateway import Gateway
from ..models.replies.yes_no import FIRST, tell_apart
from ..prompts.checklist import Checklist, Question
from ..prompts.examples import Example
from ..prompts.prompt import Prompt
from ..prompts.rows import column
from ..prompts.templates import template
from ..prompts.verdicts import Provenance, Told, Verdict, VerdictColumns, fields_of
from .buying import NO_LOGPROBS, TURN, Estimate, VerdictBuyer, all_together, estimate_asks, in_blocks, work_together
from .checks import computed_verdicts, make_ready
from .judging import DEFAULT, Judging
from .measures.nearest import refuse_missing_texts
from .own_words import OwnWordsAsking
from .replies import NOTHING_QUOTED, Answers, quote_in, words_read
from .requests import Ask, Asking, BatchedAsking, EachAsking, ExpectedScoreAsking, illustrated, shows_images

REASON_TOKENS = 80
"""Most tokens of a reason that is bought after an answer."""
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
    """Role in the ledger of calls."""
    tally: Callable[[Sequence[Verdict]], None] | None = None
    """Called with all verdicts."""
    states: ClassVar[bool] = True
    """Whether a reply can have stated probabilities, and answers to several questions."""

    def __post_init__(self) -> None:
        """Load the functions and models of checks. Raises InputError if one of them is not known, or if the words for
        yes and no are swapped."""
        words_read(self.prompt, (), self.answers)
        make_ready(self.checklist.computed)

    async def judge(
        self, examples: Sequence[Example], on_verdicts: Callable[[int, int], None] | None = None
    ) -> VerdictColumns:
        """Ask every question about every example, and compute every check and measure.

        Returns the verdicts in the order of the examples: for each example first one verdict per replicate and
        question, then one verdict per check and measure. ``on_verdicts`` is called with the number of finished verdicts
        and the number of all. Raises BudgetExceededError if a cap is reached; the answers bought so far are in the
        store. Raises ModelError if the endpoint refuses every call (wrong key, unknown model) or is down.
        """
        if not examples:
            return VerdictColumns()
        self._refuse_what_cannot_be_shown(examples)
        # checks come first, so that an error in a user's function ends the command before anything is bought
        criteria, store = self.checklist.computed, self.gateway.store
        computed = computed_verdicts(criteria, examples, self.prompt.hash, store=store) if criteria else []
        verdicts = VerdictColumns()
        if self.checklist.asked:
            provenance = await self.settle(examples)
            draws = self.judging.draws(provenance)
            verdicts = await self._collect(examples, provenance, draws, on_verdicts)
            if draws > 1:
                verdicts = _merge_draws(verdicts, draws, len(self.checklist.asked))
        if computed:
            verdicts = _example_by_example(verdicts, computed, len(examples))
        if self.tally:
            self.tally(verdicts)
        return verdicts

    async def explain(self, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[tuple[str, str], str]:
        """Buy explanations of some verdicts, each in a further call that continues the conversation after the answer.

        Returns them by example id and question id. An explanation that a verdict already has is kept. Other verdicts
        are left out if they have no answer or were computed.
        """
        by_id = {example.id: example for example in examples}
        explained: dict[tuple[str, str], str] = {}
        for verdict in verdicts:
            key = (verdict.example, verdict.question)
            if verdict.explanation is not None:
                explained[key] = verdict.explanation
            elif verdict.answer is not None and verdict.model is not None:
                explained[key] = await self._explanation(verdict, by_id[verdict.example])
        return explained

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate the calls, tokens and money of :meth:`judge`, if no answer has to be asked again. If ``p_yes`` is
        ``auto`` and not settled yet, log-probabilities are assumed."""
        checked = len(examples) * len(self.checklist.computed)
        if not self.checklist.asked:
            return Estimate(checked, 0, 0, 0, 0.0)
        self._refuse_what_cannot_be_shown(examples)
        asked = self._p_yes
        assumed: Provenance = self.gateway.provenance.get(self.model.identity, "logprob")
        provenance = assumed if asked == "auto" else asked
        asking = self._asking(provenance)
        self._recall_room(asking, examples)
        asks = self._all_asks(asking, examples, self.judging.draws(provenance))
        verdicts = len(examples) * len(self.checklist.asked) * self.judging.repeat + checked
        return estimate_asks(asks, verdicts, self.model, self.gateway)

    def _refuse_what_cannot_be_shown(self, examples: Sequence[Example]) -> None:
        refuse_missing_texts(self.checklist.asked, examples)
        views = {each.shown for each in self.checklist.asked}
        seen = (each for each in illustrated(examples) if any(shows_images(self.prompt, each, sees) for sees in views))
        refuse_images(self.model, (each.id for each in seen))

    def _recall_room(self, asking: Asking, examples: Sequence[Example]) -> None:
        """Find out from the first stored answer whether the other answers were asked for with more tokens."""
        store, first = self.gateway.store, next(self._all_asks(asking, examples[:1], 1), None)
        if store is None or first is None:
            return
        answer = store.get_many([first.key]).get(first.key)
        if answer is not None and asking.wants_room(first, answer):
            self.gateway.give_room(self.model)

    async def settle(self, examples: Sequence[Example]) -> Provenance:
        """Return the source of P(yes). The model's first answers settle, once and for all, whether it thinks and, if
        ``p_yes`` is ``auto``, the source. Raises ModelError, which is fatal, if expected scores are wanted and the
        endpoint gives no log-probabilities; other errors are those of :meth:`judge`."""
        asked = self._p_yes
        expected = self.judging.score_scale is not None
        if asked != "auto" and not expected:
            await self._settle_thinking(examples)
            return asked
        settled = self.gateway.provenance.get(self.model.identity)
        if settled is None:
            answer = await self._settle_thinking(examples)
            if self._is_thinking and not expected:
                settled = self.gateway.settle(self.model, await self._of_first_answers(examples))
            else:
                answer = answer or await self._first_answer(self._asking("logprob"), examples)
                found: Provenance = "logprob" if answer.logprobs else self.judging.without_logprobs(thinks=False)
                settled = self.gateway.settle(self.model, found)
        if expected and settled != "logprob":
            said = "the endpoint gives no log-probabilities, which expected scores are read from. "
            said += "Choose --scores soft or hard, or another model."
            raise ModelError(f"{self.model.name}: {said}", fatal=True)
        return settled

    @property
    def _p_yes(self) -> Literal["auto"] | Provenance:
        """Wanted source of P(yes). A judge in people's own words always states its score."""
        return self.judging.p_yes if self.judging.reads is None else "stated"

    async def _settle_thinking(self, examples: Sequence[Example]) -> Answer | None:
        """Find out whether the model thinks, if thinking changes the way of asking. Returns the answer to the probe, if
        one was made.

        The probe is the first ask in the usual form. It is not made if the store knows that the model thinks. But if
        the store has the probe's answer, it is read again: a resumed run then finds the same as at first.
        """
        judging, identity, gateway = self.judging, self.model.identity, self.gateway
        together = judging.mode == "auto" and len(self.checklist.asked) > 1
        is_asked = judging.score_scale is None and judging.reads is None
        matters = self.states and is_asked and (judging.p_yes == "auto" or together)
        if not matters or identity in gateway.thinkers:
            return None
        known, gathers = gateway.room.thinks(self.model), getattr(self.model, "gathers", 0)
        answer: Answer | None = None
        asking = self._plain("logprob" if judging.p_yes == "auto" else judging.p_yes)
        probe = next(self._all_asks(asking, examples, 1))
        tried = await gateway.has(probe.key)
        if judging.p_yes == "auto" and (tried or not known):
            answer = await self._first_answer(asking, examples)
        elif tried or not (known or gathers):  # a model in batches is not probed: the probe would wait for a batch
            with suppress(ModelError):  # the ask is repeated with the others, and its error is reported then
                answer = await self._first_answer(asking, examples[:1])
        gateway.thinkers[identity] = known if answer is None else answer.reasoning_tokens > 0
        return answer

    async def _of_first_answers(self, examples: Sequence[Example]) -> Provenance:
        """Find the source of P(yes) of a model that thinks: log-probabilities, unless they tell nothing in the first
        verdicts, in the order of the data. The answers also have stated probabilities, so they can be used in both
        cases."""
        asking, first, due = self._asking("logprob"), list[Ask](), 0
        for ask in self._all_asks(asking, examples, 1):
            first.append(ask)
            due += len(ask.questions)
            if due >= FIRST:
                break

        async def read(ask: Ask) -> list[float]:
            try:
                answer = await self.gateway.probe(self.role, self.model, ask.request())
                return [each.p_yes for each in asking.read(ask, answer).values() if each.p_yes is not None]
            except ValueError:
                return []
            except ModelError as error:
                if error.fatal:
                    raise
                return []

        found = await all_together(first, read, self.gateway.concurrency(self.model))
        if tell_apart([p for some in found for p in some][:FIRST]):
            return "logprob"
        return self.judging.without_logprobs(thinks=True)

    async def _first_answer(self, asking: Asking, examples: Sequence[Example]) -> Answer:
        """Return the answer to the first ask on the first example for which the model gives an answer."""
        for place, example in enumerate(examples, 1):
            probe = next(self._all_asks(asking, [example], 1))
            try:
                answer = await self.gateway.probe(self.role, self.model, probe.request())
                if answer.logprobs and asking.wants_room(probe, answer):
                    self.gateway.give_room(self.model)
                    return answer
                try:
                    in_full = answer.logprobs or not probe.parameters.top_logprobs
                    (asking if in_full else self._plain("hard")).read(probe, answer)
                except ValueError:  # the answer may be the beginning of a thought
                    return await self.gateway.with_room(self.role, self.model, probe.request(), answer)
                return answer
            except ModelError as error:
                if error.fatal or place == len(examples):
                    raise
        raise AssertionError("the last example returns or raises")

    @property
    def _is_thinking(self) -> bool:
        return self.states and self.gateway.thinkers.get(self.model.identity, self.gateway.room.thinks(self.model))

    def _asking(self, provenance: Provenance) -> Asking:
        return self._asking_as(provenance, thinks=self._is_thinking)

    def _plain(self, provenance: Provenance) -> Asking:
        return self._asking_as(provenance, thinks=False) if self.states else self._asking(provenance)

    def _asking_as(self, provenance: Provenance, *, thinks: bool) -> Asking:
        judging = self.judging
        if judging.score_scale is not None:
            return self._asking_for_scores(self.checklist.asked, explained=judging.explain == "always")
        if judging.reads is not None:
            return OwnWordsAsking(self.prompt, self.checklist.asked[:1], judging)
        form = judging.form(provenance, len(self.checklist.asked), thinks=thinks)
        temperature = judging.temperature_of(provenance)
        asked = (self.prompt, self.checklist.asked, form.explained, form.logprobs, temperature, judging.seed)
        how = (*asked, self.answers, form.stated, form.by_number)
        return BatchedAsking(*how, form.most) if form.together else EachAsking(*how)

    @property
    def answers(self) -> Answers | None:
        """The given words for yes and no: from the settings, else from the checklist; None if none are given."""
        return self.judging.answer_words or self.checklist.answers

    def _asking_for_scores(self, questions: tuple[Question, ...], *, explained: bool) -> ExpectedScoreAsking:
        judging = self.judging
        assert judging.score_scale is not None, "only a judge that is asked for numbers has a scale"
        how = (explained, judging.temperature, judging.seed, judging.score_scale)
        return ExpectedScoreAsking(self.prompt, questions, *how)

    def _alone(self, question: Question, *, explained: bool) -> EachAsking:
        """Return the way to ask a question on its own, without log-probabilities."""
        how = (explained, False, self.judging.temperature, self.judging.seed, self.answers)
        return EachAsking(self.prompt, (question,), *how)

    def _all_asks(self, asking: Asking, examples: Sequence[Example], draws: int) -> Iterator[Ask]:
        questions = len(self.checklist.asked)
        position = 0
        for example in examples:
            for replicate in range(self.judging.repeat * draws):
                asks = asking.asks(self.model.identity, example, position, replicate)
                if self.model.identity in self.gateway.need_room:
                    asks = (ask.with_room(self.model.identity) if ask.is_short else ask for ask in asks)
                yield from asks
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
        ids, questions = list(column(examples, "id")), [each.id for each in self.checklist.asked]
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
            """Keep the verdicts whose answers are in the store; yield the other asks as workers become free."""
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
            if self.judging.score_scale is None and (reply := await self._quotation(verdict, question, example)):
                return reply
            question = question.model_copy(update={"sees": question.shown})
        asking, reply = self._asking_that_led_to(verdict, question)
        ask = next(asking.asks(self.model.identity, example, 0, verdict.replicate))
        messages = [*ask.messages, ("assistant", reply), ("user", template("explain_answer"))]
        parameters = replace(ask.parameters, max_tokens=REASON_TOKENS)
        request = make_request(self.model.identity, messages, parameters, verdict.replicate, framing=ask.framing)
        answer = await self.gateway.ask(self.role, self.model, request)
        return " ".join(answer.text.split())

    async def _quotation(self, verdict: Verdict, question: Question, example: Example) -> str | None:
        """Quote the words that made the answer yes; ``NOTHING_QUOTED`` for a no, None if a yes has no quote."""
        if not verdict.answer:
            return NOTHING_QUOTED
        asking = self._alone(question, explained=True)
        ask = next(asking.asks(self.model.identity, example, 0, verdict.replicate))
        quote = quote_in(await self.gateway.ask(self.role, self.model, ask.request()), example.output or "")
        return None if quote == NOTHING_QUOTED else quote

    def _asking_that_led_to(self, verdict: Verdict, question: Question) -> tuple[Asking, str]:
        """Return the way to ask the question alone, with the answer that stands for the judge's verdict."""
        judging = self.judging
        if judging.reads is not None:
            own = OwnWordsAsking(self.prompt, (question,), judging)
            return own, own.nearest(verdict.p_yes or 0.0)
        if judging.score_scale is None or verdict.p_yes is None:
            yes, no = self.answers or ("Yes", "No")
            return self._alone(question, explained=False), yes if verdict.answer else no
        asking = self._asking_for_scores((question,), explained=False)
        return asking, asking.nearest(verdict.p_yes)


def _example_by_example(asked: Sequence[Verdict], computed: Sequence[Verdict], examples: int) -> VerdictColumns:
    """Merge two lists of verdicts by example. Each list has the same number of verdicts for every example."""
    whole = VerdictColumns()
    for place in range(examples):
        for some in (asked, computed):
            each = len(some) // examples
            for verdict in some[place * each : (place + 1) * each]:
                whole.append(fields_of(verdict))
    return whole


def _merge_draws(verdicts: Sequence[Verdict], draws: int, questions: int) -> VerdictColumns:
    """Merge ``draws`` verdicts on a question into one; P(yes) is the share of yes. One failure fails them all."""
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
