"""Unit tests put to a judge in several forms at once: one session, one store, output by output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...agents.asking import LEAST_MASS, shown
from ...agents.evaluator import Evaluator
from ...agents.example_questions import ExampleQuestions
from ...agents.expected_score import ExpectedScoreAsking
from ...agents.judging import Judging
from ...evaluation.options import GatewayOptions, parse_options
from ...evaluation.scoring import complete_mean, score_examples
from ...memory.verdict_store import VerdictStore
from ...models.base import Answer
from ...models.budget import Budget
from ...models.gateway import Gateway
from ...models.probabilities import score_masses
from ...models.session import run_sync, session
from ...prompts.checklist import Checklist, Question
from ...prompts.default import default_prompt
from ...prompts.examples import Example, documents
from ...stats.correlation import correlate, statistic_dict

if TYPE_CHECKING:
    from ...models.base import Model
    from ...prompts.verdicts import Verdict


Kind = Literal["expected", "said", "soft", "hard"]
KINDS: Mapping[Kind, str] = {
    "expected": "expected score, 1 to 5 (weighted)",
    "said": "likeliest score, 1 to 5 (greedy)",
    "soft": "P(yes)",
    "hard": "yes or no",
}
"""What a test's score is. The first two read the same calls, and so do the last two."""
SCALE = (1, 5)
TESTS_PER_INPUT = 8
"""Query-level tests written for an input at most (LMUnit, Table 15)."""
_FEW_SLOTS = 4


@dataclass(frozen=True)
class Asked:
    """Examples, the tests put to them, and in what form."""

    examples: Sequence[Example]
    checklist: Checklist
    kind: Kind


@dataclass(frozen=True)
class Buyer:
    """The judge, and how it is reached and paid."""

    model: str | Model
    options: GatewayOptions


def buyer(model: str | Model, **options: Any) -> Buyer:
    """A buyer with settings as in :class:`~askance.evaluation.options.GatewayOptions`.

    Raises:
        InputError: A setting is unknown or out of range.
    """
    return Buyer(model, parse_options(GatewayOptions, options))


@dataclass(frozen=True)
class Bought:
    """Verdicts, one list for each :class:`Asked`, and what this run paid."""

    verdicts: Sequence[Sequence[Verdict]]
    budget: Budget


def judge(asked: Sequence[Asked], by: Buyer) -> Bought:
    """Put all tests to the judge; whatever is asked about one output is asked close together.

    Raises:
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down, refuses every call, or gives no log-probabilities for scores from 1 to 5.
    """

    async def work(store: VerdictStore) -> Bought:
        async with session(by.options, store) as (models, gateway):
            judges = [_evaluator(each, gateway, models.get(by.model), by.options.seed) for each in asked]
            found: list[list[Verdict]] = [[] for _ in asked]
            slots = gateway.concurrency(models.get(by.model))
            block = slots if slots < _FEW_SLOTS else _FEW_SLOTS * slots
            most = max(len(each.examples) for each in asked)
            for start in range(0, most, block):
                for place, each in enumerate(asked):
                    if part := each.examples[start : start + block]:
                        found[place] += await judges[place].judge(part)
                print(f"\r{min(start + block, most)} of {most} outputs", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            return Bought(found, gateway.budget)

    with by.options.store() as store:
        return run_sync(work(store))


def calls_needed(asked: Sequence[Asked], by: Buyer) -> int:
    """Calls that :func:`judge` would buy now; two forms that read the same calls count once."""
    once: dict[tuple[str, str, str], Asked] = {}
    for each in asked:
        form = "number" if each.kind in ("expected", "said") else "yes or no"
        once.setdefault((form, each.examples[0].id, each.checklist.model_dump_json()), each)

    async def work(store: VerdictStore) -> int:
        async with session(by.options, store) as (models, _):
            nothing_bought = Gateway(store, Budget(max_calls=0))
            model, seed = models.get(by.model), by.options.seed
            return sum(
                _evaluator(each, nothing_bought, model, seed).estimate(each.examples).calls for each in once.values()
            )

    with by.options.store(to_estimate=True) as store:
        return run_sync(work(store))


def write_tests(examples: Sequence[Example], by: Buyer, writer: str | Model) -> tuple[dict[str, Checklist], list[str]]:
    """Tests for each input by itself (LMUnit §4.3.4), and in words what could not be had.

    Raises:
        BudgetExceededError: A cap was reached; the answers so far are kept.
        AskanceError: The endpoint is down or refuses every call.
    """
    failed: list[str] = []

    async def work(store: VerdictStore) -> dict[str, Checklist]:
        async with session(by.options, store) as (models, gateway):
            author = ExampleQuestions(gateway, models.get(writer), max_questions=TESTS_PER_INPUT, seed=by.options.seed)
            return await author.write(examples, lambda name, why: failed.append(f"{name}: {why}"))

    with by.options.store() as store:
        return run_sync(work(store)), failed


def _evaluator(asked: Asked, gateway: Gateway, model: Model, seed: int) -> Evaluator:
    numbers = asked.kind in ("expected", "said")
    judging = Judging(explain="never", seed=seed, score_scale=SCALE if numbers else None)
    made = SaidScoreEvaluator if asked.kind == "said" else Evaluator
    return made(gateway, model, default_prompt(asked.examples), asked.checklist, judging)


class SaidScoreAsking(ExpectedScoreAsking):
    """The same requests; what is read is the likeliest number of the scale, mapped to [0, 1]."""

    def _expected(self, alternatives: Sequence[tuple[str, float]], answer: Answer) -> float:
        low, high = self.scale
        masses = score_masses(alternatives, low, high)
        if sum(masses) < LEAST_MASS:
            raise ValueError(f"{shown(answer.text)} is no number from {low} to {high}")
        return masses.index(max(masses)) / (high - low)


class SaidScoreEvaluator(Evaluator):
    """The evaluator with :class:`SaidScoreAsking`; after expected scores from the same store it buys nothing."""

    def _asking_for_scores(
        self, questions: tuple[Question, ...], scale: tuple[int, int], *, explained: bool
    ) -> SaidScoreAsking:
        judging = self._judging
        return SaidScoreAsking(self.prompt, questions, explained, judging.temperature, judging.seed, scale)


def direct_row(
    name: str,
    examples: Sequence[Example],
    asked: Asked,
    verdicts: Sequence[Verdict],
    dimensions: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Pearson's correlation of the mean test score with the human score, by dimension.

    ``all`` is the mean over the dimensions where there are several (without interval), else the one.
    """
    scores = score_examples(examples, asked.checklist, verdicts, soft=asked.kind != "hard")
    groups = documents(examples)
    by_dimension = {}
    for dimension in dimensions:
        ours = [each.dimensions.get(dimension) for each in scores]
        human = [example.human_score(dimension) for example in examples]
        by_dimension[dimension] = statistic_dict(correlate(ours, human, groups=groups, seed=seed).pearson)
    if len(dimensions) == 1:
        every = by_dimension[dimensions[0]]
    else:
        mean = complete_mean([each["value"] for each in by_dimension.values()])
        every = {"value": mean, "low": None, "high": None, "n": len(examples)}
        if mean is None:
            every["reason"] = "a dimension is undefined"
    return {"technique": name, "all": every, "sections": by_dimension}
