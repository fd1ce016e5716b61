"""What holds for every judge: what it asks, how it reads the answers, and what it does with answers that cannot be read."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from askance.evaluation.compare.judges import JUDGES, check_names
from askance.evaluation.compare.protocol import Meter, layout_of
from askance.evaluation.compare.two_steps import MOST_NEW
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway
from askance.prompts.errors import BudgetExceededError, InputError
from askance.prompts.prompt import Prompt, default_prompt
from askance.testing import Reply

from .conftest import (
    EXAMPLES,
    asked,
    obliging,
    rate,
    schema_reply,
    setup,
)

NEEDS_NO_CHECKLIST = ("unieval", "geval", "direct", "cot", "poll")


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_gives_one_score_in_the_unit_interval_per_example_replicate_and_dimension(name: str) -> None:
    given, _ = setup(dimensions=("consistency", "fluency"), repeat=2)
    ratings = rate(name, given)
    expected = [(e.id, r, d) for e in EXAMPLES for r in range(2) for d in ("consistency", "fluency")]
    assert [(each.example, each.replicate, each.dimension) for each in ratings] == expected
    assert all(each.status == "ok" and each.score is not None and 0 <= each.score <= 1 for each in ratings)


@pytest.mark.parametrize("name", JUDGES)
def test_an_answer_that_cannot_be_read_is_asked_once_again_and_then_a_status_not_a_score(name: str) -> None:
    def script(request: Request) -> Reply:
        if request.parameters.schema is not None:
            return schema_reply(request)
        if "Summary 1." in asked(request) or any("Summary 1." in text for _, text in request.messages):
            return Answer(
                "Well, it depends.", ((" Well", (("Well", -0.01),)),) if request.parameters.top_logprobs else None
            )
        return obliging(request)

    given, _ = setup(script)
    ratings = {each.example: each for each in rate(name, given)}
    assert ratings["e1"].score is None
    assert ratings["e1"].status == "parse_error"
    assert ratings["e1"].error
    assert all(ratings[name].score is not None for name in ("e0", "e2", "e3"))


@pytest.mark.parametrize("name", JUDGES)
def test_a_call_that_fails_is_a_status_and_is_asked_again_by_the_next_run(name: str) -> None:
    store = VerdictStore(":memory:")

    def failing(request: Request) -> Reply:
        if any("Summary 2." in text for _, text in request.messages):
            return ModelError("HTTP 400: no")
        return obliging(request)

    given, _ = setup(failing, store=store)
    ratings = {each.example: each for each in rate(name, given)}
    assert (ratings["e2"].score, ratings["e2"].status) == (None, "api_error")
    again, model = setup(obliging, store=store)
    assert all(each.score is not None for each in rate(name, again))
    assert model.requests
    assert all("Summary 2." in asked(request) for request in model.requests), "the others come from the store"


@pytest.mark.parametrize("name", JUDGES)
def test_a_second_run_buys_nothing_and_costs_the_same(name: str) -> None:
    store = VerdictStore(":memory:")
    first, _ = setup(store=store)
    ratings = rate(name, first)
    second, model = setup(store=store)
    assert rate(name, second) == ratings
    assert not model.requests
    assert (second.gateway.budget.calls, second.gateway.budget.tokens) == (
        first.gateway.budget.calls,
        first.gateway.budget.tokens,
    )


@pytest.mark.parametrize("name", JUDGES)
def test_the_estimate_is_what_is_bought_and_nothing_when_all_is_there(name: str) -> None:
    store = VerdictStore(":memory:")
    given, model = setup(store=store)
    before = asyncio.run(JUDGES[name](given).estimate(EXAMPLES))
    assert not model.requests
    rate(name, given)
    if name == "checkeval":  # how many questions it will have is not known before they are written
        assert before.calls == 3 + (2 + 2 * MOST_NEW) * len(EXAMPLES)
        assert before.calls > len(model.requests) == 3 + 5 * len(EXAMPLES)
    else:
        assert before.calls == len(model.requests)
    after = asyncio.run(JUDGES[name](given).estimate(EXAMPLES))
    assert after.calls == 0


@pytest.mark.parametrize("name", JUDGES)
def test_all_judges_put_the_example_first_in_the_same_words(name: str) -> None:
    prompt = Prompt("Article:\n{input}\n\nSummary:\n{output}\n\nYou are a careful evaluator.\n\n{question}\n")
    given, model = setup(prompt=prompt)
    rate(name, given, EXAMPLES[:1])
    about = [asked(request) for request in model.requests if "Summary 0." in asked(request)]
    assert about
    shown = about[0][: about[0].index("</", about[0].index("Summary 0."))]
    assert re.match(r"Article:\n<\w+>\n", shown)
    assert all(text.startswith(shown) for text in about)
    assert all(len(request.messages) == 1 for request in model.requests)


@pytest.mark.parametrize("name", JUDGES)
def test_a_cap_ends_a_judge_and_is_not_passed(name: str) -> None:
    given, model = setup(budget=Budget(call_budget=2))
    with pytest.raises(BudgetExceededError):
        rate(name, given)
    assert len(model.requests) == 2


@pytest.mark.parametrize("name", sorted(set(JUDGES) - set(NEEDS_NO_CHECKLIST)))
def test_a_judge_that_needs_questions_says_so_and_names_a_dimension_without_one(name: str) -> None:
    for wrong, said in (
        ({"checklist": None}, "--checklist"),
        (
            {"dimensions": ("consistency", "relevance")},
            r"no question on 'relevance' .*consistency, fluency.*--dimension",
        ),
    ):
        with pytest.raises(InputError, match=said):
            JUDGES[name](setup(**wrong)[0])


@pytest.mark.parametrize("name", NEEDS_NO_CHECKLIST)
def test_a_judge_that_needs_no_checklist_does_without(name: str) -> None:
    given, _ = setup(checklist=None)
    assert all(each.score is not None for each in rate(name, given))


def test_a_prompt_with_guidance_before_the_example_is_not_shared() -> None:
    ours = layout_of(default_prompt(EXAMPLES), EXAMPLES)
    assert layout_of(Prompt("You judge summaries. " * 5 + "{input} {output} {question}"), EXAMPLES) == ours
    assert layout_of(Prompt("Judge."), EXAMPLES) == ours
    assert layout_of(Prompt("{question}\n{input}\n{output}"), EXAMPLES) == ours
    assert ours.text == "Input:\n{input}\n\nOutput:\n{output}\n\n{question}\n"


def test_the_meter_counts_an_answer_once_and_the_common_ledger_what_was_paid() -> None:
    common = Gateway(VerdictStore(":memory:"))
    given, _ = setup()
    for expected_paid in (8, 8):
        meter = Meter(common)
        rate("binary", replace(given, gateway=meter))
        assert meter.budget.calls == 8
        assert common.budget.calls == expected_paid
    assert common.budget.cached_calls == 8


def test_names_are_checked() -> None:
    assert check_names(["binary", " random-k"]) == ["binary", "random_k"]
    assert check_names("binary, random-k") == ["binary", "random_k"]
    with pytest.raises(InputError, match=r"no judge 'gevall'.*Did you mean 'geval'"):
        check_names(["gevall"])
    with pytest.raises(InputError, match="named twice"):
        check_names(["direct", "direct"])
    with pytest.raises(InputError, match="at least one"):
        check_names([])
