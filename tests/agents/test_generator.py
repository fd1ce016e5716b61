from __future__ import annotations

import asyncio
from typing import Any

import pytest

from askance.agents.buying import Estimate
from askance.agents.generator import Generator
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import Reply, ScriptedModel
from tests.said import says

PROMPT = Prompt("Follow the instructions.")
EXAMPLES = [Example(id=f"e{number}", input=f"in {number}", reference="SECRET") for number in range(6)]


def echo(request: Request) -> Reply:
    return f"out of {request.messages[-1][1]}"


def one_attempt(store: VerdictStore | None = None, budget: Budget | None = None) -> Gateway:
    return Gateway(store, budget, retry=RetryPolicy(attempts=1))


class Slow(ScriptedModel):
    """Answers the later examples first, and knows how many calls it has at once."""

    now = most = 0

    async def answer(self, request: Request) -> Answer:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01 * (6 - int(request.messages[-1][1][-1])))
        self.now -= 1
        return await super().answer(request)


async def test_outputs_come_in_input_order_whatever_the_order_of_completion() -> None:
    model = Slow(echo)
    made = await Generator(Gateway(), model, PROMPT).generate(EXAMPLES)
    assert [each.example.output for each in made] == [f"out of in {number}" for number in range(6)]
    assert [each.example.id for each in made] == [example.id for example in EXAMPLES]
    assert [request.messages[-1][1] for request in model.requests] == [f"in {n}" for n in reversed(range(6))]


async def test_no_more_calls_than_the_model_takes_are_under_way_at_once() -> None:
    model = Slow(echo, slots=2)
    await Generator(Gateway(), model, PROMPT).generate(EXAMPLES)
    assert model.most == 2


async def test_the_request_is_prompt_and_input_with_the_parameters_asked_for() -> None:
    model = ScriptedModel(echo)
    generator = Generator(Gateway(), model, PROMPT, max_tokens=77, temperature=0.5, seed=3)
    await generator.generate(EXAMPLES[:1])
    [request] = model.requests
    assert request.messages == (("system", PROMPT.text), ("user", "in 0"))
    assert request.parameters.max_tokens == 77
    assert (request.parameters.temperature, request.parameters.seed) == (0.5, 3)
    assert request.parameters.schema is None and request.parameters.top_logprobs == 0


async def test_the_given_examples_stay_as_they_are_and_an_old_output_is_replaced() -> None:
    old = Example(id="a", input="in 1", output="old", human={"q": (3.0,)}, metadata={"k": [1]})
    [made] = await Generator(Gateway(), ScriptedModel(echo), PROMPT).generate([old])
    assert old.output == "old"
    assert made.example == old.model_copy(update={"output": "out of in 1"})


async def test_a_failed_call_is_an_error_without_an_output_and_the_others_go_on() -> None:
    def script(request: Request) -> Reply:
        return ModelError("the server said 400") if request.messages[-1][1] == "in 1" else echo(request)

    given = [example.model_copy(update={"output": "old"}) for example in EXAMPLES]
    made = await Generator(one_attempt(), ScriptedModel(script), PROMPT).generate(given)
    assert made[1].example.output is None
    assert made[1].error == "the server said 400"
    assert [each.error for each in made if each is not made[1]] == [None] * 5


async def test_a_fatal_error_is_raised_as_it_is() -> None:
    model = ScriptedModel(lambda _: ModelError("wrong key", fatal=True))
    with pytest.raises(ModelError, match="wrong key"):
        await Generator(one_attempt(), model, PROMPT).generate(EXAMPLES)


async def test_a_used_up_budget_ends_it_after_the_calls_under_way(tmp_path: Any) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        gateway = one_attempt(store, Budget(call_budget=4))
        with pytest.raises(BudgetExceededError):
            await Generator(gateway, Slow(echo, slots=4), PROMPT).generate(EXAMPLES)
        assert gateway.budget.role("generator").calls == 4
        again = one_attempt(store)
        model = ScriptedModel(echo)
        made = await Generator(again, model, PROMPT).generate(EXAMPLES)
        assert len(model.requests) == 2
        assert all(each.example.output for each in made)


async def test_an_output_is_paid_for_once_and_booked_under_its_role(tmp_path: Any) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        model = ScriptedModel(echo)
        first = await Generator(one_attempt(store), model, PROMPT).generate(EXAMPLES)
        gateway = one_attempt(store)
        second = await Generator(gateway, model, PROMPT, role="writer of outputs").generate(EXAMPLES)
    assert second == first
    assert len(model.requests) == 6
    assert gateway.budget.role("writer of outputs").cached_calls == 6


async def test_another_prompt_is_another_request() -> None:
    model = ScriptedModel(echo)
    gateway = Gateway()
    for text in ("One.", "Two."):
        await Generator(gateway, model, Prompt(text)).generate(EXAMPLES[:1])
    assert len({request.key for request in model.requests}) == 2


async def test_an_output_that_was_cut_off_is_kept_and_says_so() -> None:
    model = ScriptedModel([Answer("half a sent", finish="length"), Answer("whole.")])
    made = await Generator(Gateway(), model, PROMPT).generate(EXAMPLES[:2])
    assert [(each.example.output, each.cut_off) for each in made] == [("half a sent", True), ("whole.", False)]


async def test_nothing_is_stripped_and_an_empty_reply_is_no_output() -> None:
    model = ScriptedModel(lambda request: "  two\n" if EXAMPLES[0].input in request.messages[-1][1] else "")
    gateway = Gateway(retry=RetryPolicy(first=0.0001))
    made = await Generator(gateway, model, PROMPT).generate([*EXAMPLES[:1], *EXAMPLES[1:2] * 12])
    good, *bad = made
    assert (good.example.output, good.error) == ("  two\n", None)
    assert len(bad) == 12 and all(
        each.example.output is None and says(each.error, "scripted/model", "empty") for each in bad
    )


async def test_half_a_surrogate_pair_is_an_error_and_is_not_kept(tmp_path: Any) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        [made] = await Generator(one_attempt(store), ScriptedModel(["a\ud83d"]), PROMPT).generate(EXAMPLES[:1])
        assert made.example.output is None
        assert says(made.error, "surrogate pair")
        [again] = await Generator(one_attempt(store), ScriptedModel(["fine"]), PROMPT).generate(EXAMPLES[:1])
        assert again.example.output == "fine"


async def test_progress_counts_up_to_the_number_of_examples() -> None:
    told: list[tuple[int, int]] = []
    generator = Generator(Gateway(), ScriptedModel(echo), PROMPT)
    await generator.generate(EXAMPLES, lambda done, total: told.append((done, total)))
    assert told == [(number, 6) for number in range(1, 7)]
    assert await generator.generate([]) == []


async def test_the_estimate_is_what_is_then_bought(tmp_path: Any) -> None:
    twice = [*EXAMPLES, EXAMPLES[0].model_copy(update={"id": "same request"})]
    with VerdictStore(tmp_path / "v.db") as store:
        model = ScriptedModel(echo)
        await Generator(one_attempt(store), model, PROMPT).generate(EXAMPLES[:2])
        generator = Generator(one_attempt(store), model, PROMPT, max_tokens=100)
        assert generator.estimate(twice).calls == 6
        generator = Generator(one_attempt(store), model, PROMPT)
        estimate = generator.estimate(twice)
        before = len(model.requests)
        await generator.generate(twice)
    assert (estimate.calls, estimate.stored) == (len(model.requests) - before, 3) == (4, 3)
    assert estimate.tokens == 4 * (1024 + len(PROMPT.text) // 4 + 1)


async def test_outputs_that_are_all_there_cost_nothing_though_the_price_is_unknown(tmp_path: Any) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        generator = Generator(one_attempt(store), ScriptedModel(echo), PROMPT)
        assert generator.estimate(EXAMPLES).cost_usd is None
        await generator.generate(EXAMPLES)
        judging = Estimate(6, 6, 0, 600, 0.02)
        assert (generator.estimate(EXAMPLES) + judging).cost_usd == 0.02


def test_what_is_known_of_a_price_is_said_beside_the_model_whose_price_is_not() -> None:
    known = Estimate(6, 6, 0, 600, 0.02, known_usd=0.02)
    both = known + Estimate(0, 4, 0, 400, None, unpriced=("openai/mine",))
    assert both.cost_usd is None
    assert says(both.size, "$0.0200", "openai/mine", "unknown")


async def test_comments_on_an_output_are_not_taken_for_comments_on_another() -> None:
    given = Example(id="a", input="in 0", output="old", comment="Too long.")
    model = ScriptedModel(echo)
    made = await Generator(Gateway(), model, PROMPT).generate([given])
    assert (made[0].example.output, made[0].example.comment) == ("out of in 0", ())
