"""``select``: get answers and ratings, and choose the questions whose answers tell most about the rating (EIG §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from ...agents.buying import NOTHING, Estimate
from ...agents.evaluator import Evaluator
from ...agents.question_writer import QuestionProposer
from ...agents.rating import Filler, Rater, Rating, ToRate
from ...agents.requests import TOKENS
from ...evaluation.options import SelectOptions
from ...memory.embedders import DEFAULT_EMBEDDER, embedder
from ...models.base import AnswerStore, Model
from ...models.budget import Budget, estimate_tokens
from ...models.event_loops import awaited, run_sync
from ...models.gateway import Gateway
from ...models.named import ModelLike, named_models
from ...models.progress import Watcher, watching
from ...models.session import session
from ...prompts.checklist import Checklist, Question
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.prompt import Prompt
from ...prompts.verdicts import Verdict
from ...setting_types import SelectSettings
from ...settings import parse_options, refuse_idle
from .inputs import (
    EXAMPLES_PER_ROUND,
    QUESTIONS_PER_ROUND,
    Bought,
    Inputs,
    Pool,
    load_given,
    load_select_inputs,
    propose_pool,
)
from .selected import Selection, build_selection

_USUAL_QUESTION = "x" * 160
"""Text of the usual length of a question with its violation, for estimates made before there are questions."""


def select(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    model: ModelLike | None = None,
    candidates: str | Path | Checklist | None = None,
    verdicts: str | Path | Iterable[Verdict] | None = None,
    writer: ModelLike | None = None,
    prompt: str | Path | Prompt | None = None,
    task: str = "",
    dimensions: Sequence[str] = (),
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[SelectSettings],
) -> Selection:
    """Choose the few questions whose answers tell most about the overall rating.

    Args:
        data: JSONL or CSV file, or rows; human scores are not needed.
        model: The judge: ``provider/model``, or an object that can be asked. Where verdicts are given, only those of
            this model are used.
        candidates: Checklist to choose from. If None, candidates are proposed from the examples.
        verdicts: Verdicts on the candidates, as ``askance evaluate -o`` writes them. Then nothing is bought, people's
            scores are the ratings, and all examples with verdicts are the sample.
        writer: Model that proposes candidates; the judge by default.
        prompt: The judge's prompt; askance's own neutral one by default.
        task: What the generator is asked to do, for the proposing model and the checklist.
        dimensions: Allowed dimensions of proposed questions; free where empty.
        watcher: Told how the work goes on.
        progress: Show how the work goes on; by default in notebooks only.
        options: Settings of :class:`~askance.evaluation.options.SelectOptions`, among them ``store`` and ``no_cache``.

    Raises:
        InputError: Bad data, candidates, prompt, model name or setting, or no human score where they were asked for.
        BudgetExceededError: A cap was reached; what was bought is kept, and the same call goes on from there.
        AskanceError: The endpoint is down or refuses every call, or nothing usable was proposed.
    """
    asked, proposer, given = named_models(options, model, writer)
    if verdicts is not None:
        settings = parse_options(SelectOptions, given)
        refuse_idle(settings, candidates=candidates, verdicts=verdicts, writer=proposer)
        inputs, bought, judge = load_given(data, candidates, verdicts, asked, prompt, task, settings)
        return build_selection(inputs, bought, settings, {"judge": judge}, Budget())
    if asked is None:
        raise InputError("Selecting needs a model to ask, or verdicts on the candidates that are there already.")
    return prepare(data, asked, candidates, prompt, task, dimensions, given, proposer).run(watcher, progress)


aselect = awaited(select)


def prepare(
    data: str | Path | Iterable[Example | Mapping[str, Any]],
    model: str | Model,
    candidates: str | Path | Checklist | None,
    prompt: str | Path | Prompt | None,
    task: str,
    dimensions: Sequence[str],
    options: Mapping[str, Any],
    writer: str | Model | None = None,
) -> SelectionJob:
    """Load and check the arguments of :func:`select` where answers are to be bought; nothing is bought here. Raises
    InputError, which names the file, line and field at fault."""
    settings = parse_options(SelectOptions, options)
    writer = writer or settings.writer
    refuse_idle(settings, candidates=candidates, writer=writer)
    inputs = load_select_inputs(data, candidates, prompt, task, dimensions, settings)
    return SelectionJob(inputs, model, writer, settings)


@dataclass(frozen=True)
class SelectionJob:
    """Checked inputs of a selection for which answers are to be bought."""

    inputs: Inputs
    model: str | Model
    writer: str | Model | None
    settings: SelectOptions

    @property
    def exact(self) -> bool:
        """Whether the estimate is exact. Without given candidates it is an upper limit."""
        return self.inputs.candidates is not None

    def estimate(self) -> Estimate:
        """Estimate what :meth:`run` would buy; nothing is bought."""

        async def estimate(store: AnswerStore) -> Estimate:
            async with session(self.settings, store) as (models, gateway):
                judge = models.get(self.model)
                writer = judge if self.writer is None else models.get(self.writer)
                return _estimate(self.inputs, judge, writer, gateway, self.settings)

        with self.settings.open_store(to_estimate=True) as store:
            return run_sync(estimate(store))

    def run(self, watcher: Watcher | None = None, progress: bool | None = None) -> Selection:
        """Buy the missing answers and choose the questions. Raises as :func:`select`."""
        with watching(watcher, progress) as shown, self.settings.open_store() as store:
            return run_sync(self._run(store, shown))

    async def _run(self, store: AnswerStore, watcher: Watcher) -> Selection:
        inputs, settings = self.inputs, self.settings
        async with session(settings, store, watcher.say) as (models, gateway):
            watcher.watch(gateway.budget)
            judge = models.get(self.model)
            names = {"judge": judge.name}
            pool = None
            candidates = inputs.candidates
            if candidates is None:
                proposer = models.get(self.writer) if self.writer is not None else judge
                names["writer"] = proposer.name
                pool = await _propose(inputs, proposer, gateway, settings, watcher)
                candidates = Checklist(task=inputs.task, questions=(*pool.questions, *inputs.measures))
            bought = await _buy(inputs, candidates, pool, judge, gateway, settings, watcher)
        watcher.phase("measuring information")
        return build_selection(inputs, bought, settings, names, gateway.budget)


async def _propose(
    inputs: Inputs, proposer: Model, gateway: Gateway, settings: SelectOptions, watcher: Watcher
) -> Pool:
    agent = QuestionProposer(
        gateway, proposer, task=inputs.task, dimensions=inputs.dimensions, most=QUESTIONS_PER_ROUND, seed=settings.seed
    )
    pool = await propose_pool(
        agent, inputs.examples, embedder(settings.embedder or DEFAULT_EMBEDDER), settings, watcher.phase
    )
    if len(pool.questions) < settings.k:
        watcher.say(f"Only {len(pool.questions)} questions were proposed, fewer than -k {settings.k}; all are kept.")
    return pool


async def _buy(
    inputs: Inputs,
    candidates: Checklist,
    pool: Pool | None,
    judge: Model,
    gateway: Gateway,
    settings: SelectOptions,
    watcher: Watcher,
) -> Bought:
    examples = inputs.examples
    verdicts: Sequence[Verdict] = ()
    degrees: Sequence[Rating] = ()
    if settings.filling == "together":
        total = len(examples) * len(candidates.asked) * settings.repeat
        watcher.phase(f"having {judge.name} fill {len(candidates.asked)} questions", total)
        filler = _filler(inputs, judge, candidates, gateway, settings)
        verdicts, filled = await filler.fill(examples, watcher.advance)
        return Bought(candidates, pool, verdicts, (), filled, ())
    if settings.answer_levels == 2:
        total = len(examples) * len(candidates.asked) * settings.repeat
        watcher.phase(f"asking {judge.name} {len(candidates.asked)} questions", total)
        evaluator = Evaluator(gateway, judge, inputs.prompt, candidates, settings.judging)
        verdicts = await evaluator.judge(examples, watcher.advance)
    else:
        wanted = [ToRate(example, question) for example in examples for question in candidates.questions]
        watcher.phase(f"asking {judge.name} to what degree", len(wanted))
        degrees = await _rater(inputs, judge, gateway, settings, settings.answer_levels).rate(wanted, watcher.advance)
    rater = _rater(inputs, judge, gateway, settings, settings.rating_levels)
    ratings: Sequence[Rating] = ()
    if not inputs.by_people:
        watcher.phase(f"asking {judge.name} for overall ratings", len(examples))
        ratings = await rater.rate([ToRate(example) for example in examples], watcher.advance)
    given: Sequence[Rating] = ()
    if settings.estimate == "per-example":
        wanted = _given(examples, candidates)
        watcher.phase(f"asking {judge.name} for ratings given each answer", len(wanted))
        given = await rater.rate(wanted, watcher.advance)
    return Bought(candidates, pool, verdicts, degrees, ratings, given)


def _rater(inputs: Inputs, judge: Model, gateway: Gateway, settings: SelectOptions, levels: int) -> Rater:
    return Rater(gateway, judge, inputs.prompt, settings.judging, levels=levels)


def _filler(inputs: Inputs, judge: Model, candidates: Checklist, gateway: Gateway, settings: SelectOptions) -> Filler:
    return Filler(gateway, judge, inputs.prompt, candidates, settings.judging, levels=settings.rating_levels)


def _given(examples: Sequence[Example], candidates: Checklist) -> list[ToRate]:
    return [
        ToRate(example, question, answer)
        for example in examples
        for question in candidates.questions
        for answer in (False, True)
    ]


def _estimate(inputs: Inputs, judge: Model, writer: Model, gateway: Gateway, settings: SelectOptions) -> Estimate:
    candidates = inputs.candidates
    found = NOTHING
    if candidates is None:
        made_up = (Question(id=f"q{n}", text=f"{n} {_USUAL_QUESTION}") for n in range(settings.max_candidates))
        candidates = Checklist(questions=tuple(made_up))
        longest = max(
            estimate_tokens(f"{each.context or ''}{each.input}{each.output or ''}") for each in inputs.examples
        )
        # tokens of the examples shown in a round, of the questions so far, and of the instructions
        asked = EXAMPLES_PER_ROUND * min(longest, 5000) + settings.max_candidates * 40 + 500
        calls = settings.max_rounds
        written = calls * 120 * QUESTIONS_PER_ROUND
        found += Estimate.priced(0, calls, 0, calls * asked, written, writer, gateway)
    examples, questions = inputs.examples, candidates.questions
    if settings.filling == "together":
        return found + _filler(inputs, judge, candidates, gateway, settings).estimate(examples)
    rater = _rater(inputs, judge, gateway, settings, settings.rating_levels)
    if settings.answer_levels == 2:
        found += Evaluator(gateway, judge, inputs.prompt, candidates, settings.judging).estimate(examples)
    else:
        degrees = _rater(inputs, judge, gateway, settings, settings.answer_levels)
        wanted = [ToRate(example, question) for example in examples for question in questions]
        found += _rated(degrees, wanted, len(wanted))
    if not inputs.by_people:
        found += _rated(rater, [ToRate(example) for example in examples])
    if settings.estimate == "per-example":
        found += _rated(rater, _given(examples, candidates))
    return found


def _rated(rater: Rater, wanted: Sequence[ToRate], verdicts: int = 0) -> Estimate:
    calls, stored, tokens = rater.estimate(wanted)
    sent, written = tokens - calls * TOKENS, calls * TOKENS
    return Estimate.priced(verdicts, calls, stored, sent, written, rater.model, rater.gateway)
