"""What an evaluator asks and gives back: verdicts in order, explanations, and how the work goes on."""

from __future__ import annotations

import asyncio
import json
import random
from math import log
from typing import Any

import pytest

from askance.agents.judging import Judging
from askance.models.base import Answer, Request
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

from .conftest import (
    EXAMPLES,
    HARD,
    PROMPT,
    QUESTIONS,
    Lab,
    asked,
    by_logprob,
    p_of,
    tokenized,
)


async def test_every_question_is_asked_about_every_example_in_order() -> None:
    verdicts = await Lab(by_logprob).judge()
    assert [(verdict.example, verdict.question) for verdict in verdicts] == (
        [(example.id, question.id) for example in EXAMPLES for question in QUESTIONS]
    )
    for verdict in verdicts:
        assert verdict.p_yes == pytest.approx(p_of(verdict.example, verdict.question), abs=1e-4)
        assert verdict.answer is (verdict.p_yes >= 0.5)
        assert (verdict.status, verdict.p_yes_from, verdict.model) == ("ok", "logprob", "scripted/model")
        assert verdict.prompt == PROMPT.hash


async def test_results_are_in_input_order_whatever_the_order_of_completion() -> None:
    class Shuffled(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            await asyncio.sleep(random.uniform(0, 0.01))
            return await super().answer(request)

    lab = Lab([])
    lab.model = Shuffled(by_logprob)
    wanted = await Lab(by_logprob).judge()
    assert await lab.judge() == wanted


async def test_a_verdict_with_log_probabilities_is_one_token() -> None:
    lab = Lab(by_logprob)
    await lab.judge()
    parameters = lab.model.requests[0].parameters
    assert (parameters.max_tokens, parameters.temperature, parameters.schema) == (1, 0.0, None)
    assert parameters.top_logprobs == 20


async def test_all_spellings_are_merged() -> None:
    top = (("Yes", log(0.2)), ("The", log(0.15)), (" yes", log(0.1)), ("NO", log(0.1)))
    verdicts = await Lab(lambda request: Answer("Yes", (("Yes", top),))).judge()
    assert verdicts[0].p_yes == pytest.approx(0.75)
    assert verdicts[0].answer is True


async def test_hard_verdicts_come_from_words() -> None:
    verdicts = await Lab(["Yes.", "no", "**Yes**"], slots=1).judge(HARD, EXAMPLES[:1])
    assert [(each.answer, each.p_yes, each.p_yes_from) for each in verdicts] == (
        [(True, 1.0, "hard"), (False, 0.0, "hard"), (True, 1.0, "hard")]
    )


async def test_no_example_means_no_call() -> None:
    lab = Lab([])
    assert await lab.judge(Judging(), []) == []


@pytest.mark.parametrize("mode", ["each", "batched"])
async def test_explanations_always_come_in_the_same_call(mode: Any) -> None:
    def script(request: Request) -> Reply:
        one = {"answer": "yes", "explanation": " Because. "}
        _, questions = asked(request)
        return tokenized(json.dumps(one if mode == "each" else dict.fromkeys(questions, one)), 0.75)

    lab = Lab(script)
    verdicts = await lab.judge(Judging(mode=mode, explain="always", p_yes="logprob"))
    assert lab.calls == (12 if mode == "each" else 4)
    assert {(each.explanation, each.answer) for each in verdicts} == {("Because.", True)}
    assert verdicts[0].p_yes == pytest.approx(0.75, abs=1e-3)
    assert await lab.evaluator().explain(verdicts, EXAMPLES) == {(v.example, v.question): "Because." for v in verdicts}
    assert lab.calls == (12 if mode == "each" else 4)


async def test_explanations_are_bought_where_they_are_needed_and_once() -> None:
    def script(request: Request) -> Reply:
        if len(request.messages) > 2:
            example, _ = asked(request)
            return f" Because of {example}.\n"
        return by_logprob(request)

    lab = Lab(script)
    verdicts = await lab.judge()
    assert {verdict.explanation for verdict in verdicts} == {None}
    failed = Verdict("e0", "q0", "m", "p", None, status="parse_error")
    for _ in range(2):
        explained = await lab.evaluator().explain([*verdicts[3:5], failed], EXAMPLES)
        assert explained == {("e1", "q0"): "Because of e1.", ("e1", "q1"): "Because of e1."}
    assert lab.calls == 12 + 2
    conversation = lab.model.requests[-1].messages
    assert conversation[2] == ("assistant", "No")
    assert [role for role, _ in conversation] == ["system", "user", "assistant", "user"]


async def test_explain_never_asks_for_none() -> None:
    lab = Lab(by_logprob)
    verdicts = await lab.judge(Judging(p_yes="logprob", explain="never"))
    assert {verdict.explanation for verdict in verdicts} == {None}
    assert not any(request.parameters.schema for request in lab.model.requests)


async def test_no_more_calls_are_under_way_than_allowed() -> None:
    most = now = 0

    class Counting(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            return await super().answer(request)

    lab = Lab([])
    lab.model = Counting(by_logprob, slots=3)
    await lab.judge()
    assert most == 3


async def test_progress_is_told_and_ends_with_all() -> None:
    told: list[tuple[int, int]] = []
    lab = Lab(by_logprob)
    await lab.evaluator().judge(EXAMPLES, lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {12}
    assert told[-1] == (12, 12)


async def test_calls_are_booked_under_the_role_and_all_verdicts_are_shown() -> None:
    shown: list[Verdict] = []
    lab = Lab(by_logprob)
    verdicts = await lab.evaluator(role="target", tally=shown.extend).judge(EXAMPLES)
    assert shown == verdicts
    assert set(lab.gateway.budget.roles) == {"target"}
    assert lab.gateway.budget.role("target").calls == 12
