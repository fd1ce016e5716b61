"""What is in the store is not bought again, and the estimate knows it."""

from __future__ import annotations

import pytest

from askance.agents.buying import Estimate
from askance.agents.judging import Judging
from askance.models.base import make_request
from askance.prompts.checklist import Checklist, Question

from .conftest import (
    BATCHED,
    EXAMPLES,
    HARD,
    LOGPROB,
    QUESTIONS,
    Lab,
    batched,
    by_logprob,
)


@pytest.mark.parametrize("judging", [LOGPROB, HARD, BATCHED, Judging(), Judging(repeat=2, p_yes="sampled", samples=2)])
async def test_a_second_run_makes_no_calls_and_gives_the_same(judging: Judging) -> None:
    script = batched() if judging.p_yes != "logprob" and judging != Judging() else by_logprob
    lab = Lab(script)
    verdicts = await lab.judge(judging)
    calls = lab.calls
    second = Lab([], store=lab.store)
    assert await second.judge(judging) == verdicts
    assert second.calls == 0
    assert second.gateway.budget.calls == 0
    assert second.gateway.budget.cached_calls >= calls


async def test_a_verdict_that_could_not_be_read_is_not_kept_and_is_asked_again() -> None:
    lab = Lab(lambda request: "Hm.")
    assert {each.status for each in await lab.judge(HARD)} == {"parse_error"}
    assert len(lab.store) == 0
    again = Lab(lambda request: "yes", store=lab.store)
    assert {each.status for each in await again.judge(HARD)} == {"ok"}
    assert again.calls == 12


async def test_changing_one_question_buys_only_that_question() -> None:
    lab = Lab(by_logprob)
    await lab.judge()
    changed = Question(id="new", text="Is it so 1? Really?", dimension="other", weight=3)
    checklist = Checklist(questions=[QUESTIONS[2], changed, QUESTIONS[0]])
    verdicts = await lab.evaluator(LOGPROB, checklist).judge(EXAMPLES)
    assert lab.calls == 12 + len(EXAMPLES)
    assert [each.question for each in verdicts[:3]] == ["q2", "new", "q0"]


async def test_requests_that_are_the_same_are_bought_once() -> None:
    twins = [EXAMPLES[0], EXAMPLES[0].model_copy(update={"id": "twin"})]
    lab = Lab(by_logprob, slots=1)
    evaluator = lab.evaluator()
    assert evaluator.estimate(twins).calls == 3
    verdicts = await evaluator.judge(twins)
    assert lab.calls == 3
    assert [each.example for each in verdicts] == ["e0"] * 3 + ["twin"] * 3


@pytest.mark.parametrize("judging", [LOGPROB, BATCHED, Judging(), Judging(p_yes="sampled", samples=3, repeat=2)])
async def test_the_estimate_is_what_is_then_bought(judging: Judging) -> None:
    script = by_logprob if judging in (LOGPROB, Judging()) else batched()
    lab = Lab(script)
    await lab.judge(judging, EXAMPLES[:1])
    before = lab.calls
    estimate = lab.evaluator(judging).estimate(EXAMPLES)
    assert lab.calls == before
    verdicts = await lab.judge(judging)
    assert estimate.calls == lab.calls - before
    assert estimate.verdicts == len(verdicts)
    assert estimate.stored == before
    bought = lab.model.requests[before:]
    chars = sum(sum(len(content) for _, content in request.messages) // 4 for request in bought)
    assert estimate.tokens == chars + sum(request.parameters.max_tokens for request in bought)
    assert lab.evaluator(judging).estimate(EXAMPLES) == Estimate(estimate.verdicts, 0, before + estimate.calls, 0, 0.0)


async def test_the_estimate_counts_a_character_of_japanese_as_a_token() -> None:
    outputs = ("要約" * 50, "over" * 100)
    examples = [EXAMPLES[0].model_copy(update={"output": output}) for output in outputs]
    japanese, latin = (Lab([]).evaluator().estimate([each]).tokens for each in examples)
    assert japanese == latin > len(QUESTIONS) * 100


async def test_the_estimate_knows_where_p_yes_comes_from_once_that_is_settled() -> None:
    lab = Lab(lambda request: "Yes")
    await lab.judge(Judging(samples=2), EXAMPLES[:1])
    before = lab.calls
    estimate = lab.evaluator(Judging(samples=2)).estimate(EXAMPLES)
    await lab.judge(Judging(samples=2))
    assert estimate.calls == lab.calls - before == 3 * 3 * 2


async def test_every_request_has_the_key_it_was_looked_up_by() -> None:
    lab = Lab(batched(drop="q1"))
    await lab.judge(BATCHED)
    await lab.judge(HARD)
    for request in lab.model.requests:
        made = make_request(lab.model.identity, request.messages, request.parameters, request.replicate)
        assert made.key == request.key
