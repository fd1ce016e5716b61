"""Adaptive asking: the bound is exact, and nothing is asked that cannot matter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.evaluation.adaptive import evaluate_adaptively
from askance.evaluation.scoring import score_examples
from askance.memory.verdict_store import VerdictStore
from askance.models.base import ModelError
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel


def make(
    facts: Any, script: Any = None, budget: Budget | None = None, checklist: Checklist | None = None, **judging: Any
) -> Any:
    model = facts.model(script)
    gateway = Gateway(VerdictStore(":memory:"), budget, retry=RetryPolicy(1))
    questions, how = checklist or weighted(facts), Judging(**judging)
    return Evaluator(gateway, model, Prompt("{output} {question}"), questions, how), model


def weighted(facts: Any) -> Checklist:
    questions = [
        question.model_copy(update={"weight": float(8 - place)})
        for place, question in enumerate(facts.candidates.questions)
    ]
    return Checklist(questions=questions)


@pytest.fixture
def examples(facts: Any) -> list[Example]:
    return [Example(**row) for row in facts.rows()[:30]]


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.2, 0.5])
async def test_no_score_is_further_off_than_the_tolerance(
    facts: Any, examples: list[Example], tolerance: float, soft: bool
) -> None:
    evaluator, model = make(facts)
    found = await evaluate_adaptively(evaluator, examples, tolerance=tolerance, soft=soft)
    bought = len(model.requests)
    full = score_examples(examples, evaluator.checklist, await evaluator.judge(examples), soft=soft)
    for score, whole in zip(found.scores, full, strict=True):
        assert score.low - 1e-9 <= whole.overall <= score.high + 1e-9
        assert abs(score.score - whole.overall) <= score.error + 1e-9
        assert score.error <= tolerance + 1e-9
    assert found.largest_error is not None and found.largest_error <= tolerance + 1e-9
    assert found.asked + found.saved == 30 * 8
    assert bought == found.asked == len(found.verdicts)
    assert (found.saved > 0) == (tolerance > 0)


async def test_repeated_questions_count_as_often_as_they_are_asked(facts: Any, examples: list[Example]) -> None:
    evaluator, model = make(facts, repeat=3)
    found = await evaluate_adaptively(evaluator, examples, tolerance=0.2)
    assert found.asked == len(found.verdicts) == len(model.requests) == 3 * sum(each.asked for each in found.scores)
    assert found.saved == found.not_asked == 3 * 30 * 8 - found.asked > 0


async def test_a_cut_is_settled_for_sure_and_examples_differ(facts: Any, examples: list[Example]) -> None:
    evaluator, _ = make(facts)
    found = await evaluate_adaptively(evaluator, examples, cuts=[0.5])
    full = score_examples(examples, evaluator.checklist, await evaluator.judge(examples), soft=True)
    for score, whole in zip(found.scores, full, strict=True):
        assert (score.score >= 0.5) == (whole.overall >= 0.5)
    assert len({score.asked for score in found.scores}) > 1
    assert found.saved > 0


async def test_weights_of_the_section_count_and_a_weight_of_0_is_not_asked(facts: Any) -> None:
    checklist = weighted(facts)
    ids = [question.id for question in checklist.questions]
    only = {each: float(each == ids[3]) for each in ids}
    checklist = checklist.model_copy(update={"section_weights": {"letters": only}})
    evaluator, _ = make(facts, checklist=checklist)
    examples = [Example(**row, metadata={"section": "letters"}) for row in facts.rows()[:4]]
    found = await evaluate_adaptively(evaluator, examples, tolerance=0.0)
    full = score_examples(examples, checklist, await evaluator.judge(examples))
    assert [score.score for score in found.scores] == pytest.approx([each.overall for each in full])
    assert (found.asked, found.saved) == (4, 0)


async def test_a_missing_answer_gives_no_score_and_no_saving(facts: Any, examples: list[Example]) -> None:
    def script(request: Any) -> Any:
        missing = "e003" in request.messages[-1][1] and "short (way 1)" in request.messages[-1][1]
        return ModelError("down") if missing else facts.reply(request)

    evaluator, _ = make(facts, script)
    found = await evaluate_adaptively(evaluator, examples, tolerance=0.05)
    score = found.scores[3]
    assert (score.score, score.error, score.ended, score.asked) == (None, None, "missing", 3)
    assert found.missing == 1
    assert found.saved == sum(8 - each.asked for each in found.scores if each.ended != "missing")


async def test_an_example_that_the_model_refuses_is_missing_also_where_it_is_the_first(
    facts: Any, examples: list[Example]
) -> None:
    evaluator, _ = make(
        facts, lambda request: ModelError("down") if "e000" in request.messages[-1][1] else facts.reply(request)
    )
    found = await evaluate_adaptively(evaluator, examples, tolerance=0.05)
    assert [score.ended for score in found.scores].index("missing") == 0
    assert found.missing == 1 and {each.p_yes_from for each in found.verdicts} == {None, "logprob"}


async def test_as_many_examples_are_asked_about_at_once_as_calls_may_be_under_way(
    facts: Any, examples: list[Example]
) -> None:
    """Every call but the first, by which it is settled where P(yes) comes from, waits until 24 are under way."""
    under_way, most, enough = 0, 0, asyncio.Event()

    class Slow(ScriptedModel):
        async def answer(self, request: Any) -> Any:
            nonlocal under_way, most
            if not self.requests:
                return await super().answer(request)
            under_way += 1
            most = max(most, under_way)
            if under_way == 24:
                enough.set()
            await enough.wait()
            await asyncio.sleep(0.01)  # time for one more
            under_way -= 1
            return await super().answer(request)

    gateway = Gateway(VerdictStore(":memory:"), max_concurrency=30)
    model = Slow(facts.reply, name="slow", slots=24)
    evaluator = Evaluator(gateway, model, Prompt("{output} {question}"), weighted(facts))
    async with asyncio.timeout(60):
        await evaluate_adaptively(evaluator, examples, tolerance=0.2)
    assert most == 24


async def test_what_was_bought_is_not_bought_again(facts: Any, examples: list[Example]) -> None:
    evaluator, model = make(facts)
    await evaluate_adaptively(evaluator, examples, tolerance=0.2)
    asked = len(model.requests)
    await evaluate_adaptively(evaluator, examples, tolerance=0.2)
    assert len(model.requests) == asked
    await evaluator.judge(examples)
    assert len(model.requests) == 30 * 8


async def test_a_cap_ends_it(facts: Any, examples: list[Example]) -> None:
    evaluator, model = make(facts, budget=Budget(call_budget=10))
    with pytest.raises(BudgetExceededError):
        await evaluate_adaptively(evaluator, examples, tolerance=0.2)
    assert len(model.requests) == 10


@pytest.mark.parametrize("given", [{}, {"tolerance": -0.1}, {"tolerance": 1.5}, {"cuts": [2.0]}])
async def test_without_a_rule_or_with_an_impossible_one_it_does_not_begin(
    facts: Any, examples: list[Example], given: dict[str, Any]
) -> None:
    evaluator, model = make(facts)
    with pytest.raises(InputError):
        await evaluate_adaptively(evaluator, examples, **given)
    assert isinstance(model, ScriptedModel) and not model.requests


@pytest.mark.parametrize("weights", [(0.1, 0.1, 0.1), (0.4, 0.3, 0.2)])
@pytest.mark.parametrize("soft", [True, False])
async def test_no_rounding_of_weights_settles_a_mark_at_the_very_top(
    facts: Any, examples: list[Example], weights: tuple[float, ...], soft: bool
) -> None:
    questions = facts.candidates.questions[: len(weights)]
    weighed = [each.model_copy(update={"weight": weight}) for each, weight in zip(questions, weights, strict=True)]
    last = questions[-1].text
    evaluator, _ = make(
        facts,
        lambda request: "No" if last in request.messages[-1][1] else "Yes",
        checklist=Checklist(questions=weighed),
    )
    [found] = (await evaluate_adaptively(evaluator, examples[:1], cuts=[1.0], soft=soft)).scores
    assert found.asked == len(weights)
    assert found.score == pytest.approx(sum(weights[:-1]) / sum(weights))


async def test_a_score_that_reaches_the_mark_but_for_rounding_is_settled(facts: Any, examples: list[Example]) -> None:
    questions = [each.model_copy(update={"weight": 0.9}) for each in facts.candidates.questions]
    evaluator, _ = make(facts, lambda request: "Yes", checklist=Checklist(questions=questions))
    [found] = (await evaluate_adaptively(evaluator, examples[:1], cuts=[0.75], soft=False)).scores
    assert (found.asked, found.ended) == (6, "cuts")
