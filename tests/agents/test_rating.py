"""Ratings from 1 to K: from log-probabilities, from what was said, from samples; failures are no ratings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from askance.agents.judging import Judging
from askance.agents.rating import Rater, ToRate
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Question
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel
from tests.said import says

PROMPT = Prompt("Judge {output} for {input}. {question}")
EXAMPLES = [Example(id=f"e{number}", input="a question", output=f"an answer {number}") for number in range(4)]
QUESTION = Question(id="q", text="Is it polite?")


def number(**shares: float) -> Answer:
    """A reply of one token with these probabilities, named n1, n2, ..."""
    pairs = tuple((name[1:], math.log(share)) for name, share in shares.items())
    return Answer(pairs[0][0], ((pairs[0][0], pairs),), 10, 1)


def rater(script: object, *, budget: Budget | None = None, **judging: object) -> tuple[Rater, ScriptedModel]:
    model = ScriptedModel(script, slots=1)  # type: ignore[arg-type]
    gateway = Gateway(VerdictStore(":memory:"), budget, retry=RetryPolicy(1))
    return Rater(gateway, model, PROMPT, Judging(**judging)), model  # type: ignore[arg-type]


async def test_log_probabilities_give_the_distribution() -> None:
    one, model = rater(lambda _: number(n4=0.5, n5=0.25, nfour=0.05, n2=0.2))
    (found,) = await one.rate([ToRate(EXAMPLES[0])])
    assert found.distribution == pytest.approx((0, 0.2 / 0.95, 0, 0.5 / 0.95, 0.25 / 0.95))
    assert found.expected == pytest.approx((2 * 0.2 + 4 * 0.5 + 5 * 0.25) / 0.95)
    assert (found.source, found.status) == ("logprob", "ok")
    shown = model.requests[0].messages[-1][1]
    assert "an answer 0" in shown
    assert "from 1 (very poor) to 5 (excellent)" in shown


async def test_an_endpoint_without_log_probabilities_is_taken_at_its_word() -> None:
    one, model = rater(lambda _: "4")
    first, second = await one.rate([ToRate(EXAMPLES[0]), ToRate(EXAMPLES[1])])
    assert first.distribution == second.distribution == (0, 0, 0, 1, 0)
    assert first.source == "hard"
    assert len(model.requests) == 3, "one call finds out, and is asked again as a hard one"


@pytest.mark.parametrize(
    "rate", [ToRate(EXAMPLES[0]), ToRate(EXAMPLES[0], QUESTION), ToRate(EXAMPLES[0], QUESTION, True)]
)
async def test_ten_levels_are_asked_for_as_0_to_9_as_10_is_two_tokens_in_some_tokenizers(rate: ToRate) -> None:
    one, model = rater(lambda _: number(n8=0.6, n9=0.3, n0=0.1))
    (found,) = await replace(one, levels=10).rate([rate])
    assert found.distribution == pytest.approx((0.1, *[0] * 7, 0.6, 0.3))
    assert found.expected == pytest.approx(0.1 * 1 + 0.6 * 9 + 0.3 * 10)
    shown = model.requests[0].messages[-1][1]
    assert "from 0 (" in shown and "from 0 to 9" in shown and "10" not in shown
    spoken, _ = rater(lambda _: "10", p_yes="hard")
    (found,) = await replace(spoken, levels=10).rate([rate])
    assert (found.status, found.distribution) == ("parse_error", None)


async def test_samples_are_counted() -> None:
    replies = {0: "4", 1: "5", 2: "4", 3: "1"}
    one, model = rater(lambda request: replies[request.replicate], p_yes="sampled", samples=4)
    (found,) = await one.rate([ToRate(EXAMPLES[0])])
    assert found.distribution == (0.25, 0, 0, 0.5, 0.25)
    assert found.source == "sampled"
    assert len({request.parameters.seed for request in model.requests}) == 4


@pytest.mark.parametrize("reply", ["excellent", "7", "4.5", "45", "-4", "0"])
async def test_what_is_no_rating_is_a_failure_and_not_kept(reply: str) -> None:
    one, model = rater(lambda _: reply, p_yes="hard")
    (found,) = await one.rate([ToRate(EXAMPLES[0])])
    assert (found.distribution, found.expected, found.status) == (None, None, "parse_error")
    assert says(found.error, "number", 1, 5)
    await one.rate([ToRate(EXAMPLES[0])])
    assert len(model.requests) == 2, "it is asked again"


async def test_of_several_samples_only_the_one_that_is_no_rating_is_asked_for_again() -> None:
    replies = {0: "4", 1: "good", 2: "5"}
    one, model = rater(lambda request: replies[request.replicate], p_yes="sampled", samples=3)
    assert [each.status for each in await one.rate([ToRate(EXAMPLES[0])])] == ["parse_error"]
    replies[1] = "3"
    (found,) = await one.rate([ToRate(EXAMPLES[0])])
    assert found.expected == pytest.approx(4)
    assert [request.replicate for request in model.requests] == [0, 1, 1, 2]


async def test_a_failed_call_is_counted_and_the_others_go_on() -> None:
    def script(request: Request) -> Reply:
        return ModelError("down") if "answer 1" in request.messages[-1][1] else number(n3=1.0)

    one, _ = rater(script)
    found = await one.rate([ToRate(example) for example in EXAMPLES])
    assert [each.status for each in found] == ["ok", "api_error", "ok", "ok"]
    assert [each.example for each in found] == ["e0", "e1", "e2", "e3"]


async def test_a_refused_key_ends_it_with_the_error_itself() -> None:
    one, _ = rater(lambda _: ModelError("wrong key", fatal=True))
    with pytest.raises(ModelError, match="wrong key"):
        await one.rate([ToRate(example) for example in EXAMPLES])


async def test_insisting_on_log_probabilities_says_what_to_do_where_there_are_none() -> None:
    one, _ = rater(lambda _: "4", p_yes="logprob")
    (found,) = await one.rate([ToRate(EXAMPLES[0])])
    assert found.status == "api_error"
    assert "--p-yes hard" in str(found.error)


async def test_a_rating_can_be_asked_given_an_answer_or_for_one_question() -> None:
    one, model = rater(lambda _: number(n3=1.0))
    found = await one.rate([ToRate(EXAMPLES[0], QUESTION, True), ToRate(EXAMPLES[0], QUESTION, False)])
    found += await one.rate([ToRate(EXAMPLES[0], QUESTION)])
    texts = [request.messages[-1][1] for request in model.requests]
    assert "Is it polite?\nThe judge's answer: yes" in texts[0]
    assert "The judge's answer: no" in texts[1]
    assert "To what degree is that so?" in texts[2]
    assert [(each.question, each.given) for each in found] == [("q", True), ("q", False), ("q", None)]


@pytest.mark.parametrize("given", [None, True])
async def test_a_question_of_the_output_alone_is_rated_without_the_rest(given: bool | None) -> None:
    one, model = rater(lambda _: number(n2=1.0))
    alone = QUESTION.model_copy(update={"sees": "output"})
    await one.rate([ToRate(EXAMPLES[0], each, given) for each in (QUESTION, alone)])
    shown = [request.messages[-1][1] for request in model.requests]
    assert ["a question" in each for each in shown] == [True, False]
    assert all("an answer 0" in each for each in shown)


async def test_ratings_are_paid_once_and_the_estimate_knows() -> None:
    one, model = rater(lambda _: number(n3=1.0))
    wanted = [ToRate(example) for example in EXAMPLES]
    assert one.estimate(wanted)[:2] == (4, 0)
    first = await one.rate(wanted)
    assert await one.rate(wanted) == first
    assert len(model.requests) == 4
    assert one.estimate(wanted) == (0, 4, 0)


def test_outputs_that_are_alike_are_estimated_as_the_one_call_that_they_take() -> None:
    one, _ = rater(lambda _: number(n3=1.0))
    twins = [ToRate(EXAMPLES[0].model_copy(update={"id": name})) for name in ("a", "b")]
    assert one.estimate(twins)[:2] == (1, 1)


async def test_a_cap_ends_it_and_what_was_bought_is_kept() -> None:
    one, model = rater(lambda _: number(n3=1.0), budget=Budget(call_budget=2))
    with pytest.raises(BudgetExceededError):
        await one.rate([ToRate(example) for example in EXAMPLES])
    assert len(model.requests) == 2
    assert one.estimate([ToRate(example) for example in EXAMPLES])[:2] == (2, 2)
