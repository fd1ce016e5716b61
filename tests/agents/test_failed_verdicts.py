"""Answers that cannot be read, calls that fail, and budgets that end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.agents.judging import Judging
from askance.agents.measures import nearest
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.budget import Budget
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError
from askance.testing import Reply, ScriptedModel, StandInServer
from tests.said import says

from .conftest import (
    EXAMPLES,
    HARD,
    LOGPROB,
    Lab,
    asked,
    by_logprob,
)


@pytest.mark.parametrize("word", ["N/A", "unknown.", "Neither"])
async def test_a_judge_may_abstain(word: str) -> None:
    lab = Lab(lambda request: word)
    verdicts = await lab.judge(HARD, EXAMPLES[:1])
    assert {(each.status, each.answer, each.p_yes, each.p_yes_from) for each in verdicts} == (
        {("abstained", None, None, None)}
    )
    assert lab.calls == 3


@pytest.mark.parametrize("reply", ["Yes and no.", "The answer is yes.", "42"])
async def test_what_is_neither_yes_nor_no_is_a_parse_error_after_one_re_ask(reply: str) -> None:
    lab = Lab(lambda request: reply)
    verdicts = await lab.judge(HARD, EXAMPLES[:1])
    assert {(each.status, each.answer, each.p_yes) for each in verdicts} == {("parse_error", None, None)}
    assert says(verdicts[0].error, "yes nor no")
    assert lab.calls == 6
    assert says(lab.model.requests[-1].messages[-1][1], "yes or no")
    assert all(content for request in lab.model.requests for _, content in request.messages)


async def test_a_re_ask_that_helps_makes_a_verdict() -> None:
    verdicts = await Lab(lambda request: "yes" if len(request.messages) > 2 else "Hm.").judge(HARD)
    assert {(each.status, each.answer) for each in verdicts} == {("ok", True)}


@pytest.mark.parametrize(
    "answer",
    [
        Answer("The", (("The", (("The", -0.1), ("Yes", -9.0))),)),
        Answer("The", (("The", ()),)),
        Answer("", (("", (("<eos>", -0.01),)),)),
    ],
)
async def test_a_token_with_hardly_any_yes_or_no_is_no_answer(answer: Answer) -> None:
    verdicts = await Lab(lambda request: answer).judge(LOGPROB, EXAMPLES[:1])
    assert {(each.status, each.p_yes) for each in verdicts} == {("parse_error", None)}


async def test_an_explained_answer_that_is_cut_off_within_its_answer_is_no_answer() -> None:
    text = '{"explanation": "Because it is so.", "answer": "no'
    verdicts = await Lab(lambda request: Answer(text, finish="length")).judge(
        Judging(p_yes="hard", explain="always"), EXAMPLES[:1]
    )
    assert verdicts[0].status == "parse_error"
    assert "cut off" in (verdicts[0].error or "")


async def test_a_call_that_fails_is_an_api_error_and_the_others_go_on() -> None:
    def script(request: Request) -> Reply:
        return ModelError("HTTP 400: no") if asked(request) == ("e1", ["q1"]) else by_logprob(request)

    verdicts = await Lab(script).judge()
    assert [each.status for each in verdicts].count("api_error") == 1
    assert (verdicts[4].status, verdicts[4].answer, verdicts[4].error) == ("api_error", None, "HTTP 400: no")


async def test_a_failed_verdict_is_asked_again_the_next_time_and_no_other(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        return ModelError("no") if asked(request) == ("e1", ["q1"]) else by_logprob(request)

    with VerdictStore(tmp_path / "v.db") as store:
        await Lab(script, store=store).judge()
        lab = Lab(by_logprob, store=store)
        assert {each.status for each in await lab.judge()} == {"ok"}
    assert [asked(request) for request in lab.model.requests] == [("e1", ["q1"])]


async def test_a_defect_in_a_model_is_not_taken_for_a_bad_answer() -> None:
    with pytest.raises(ValueError, match="a bug"):
        await Lab([ValueError("a bug")], slots=1).judge()


async def test_a_fatal_error_ends_the_run_at_once() -> None:
    def script(request: Request) -> Reply:
        return ModelError("wrong key", fatal=True) if asked(request) == ("e1", ["q1"]) else by_logprob(request)

    class Slow(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            if asked(request)[0] == "e0":
                await asyncio.sleep(30)
            return await super().answer(request)

    lab = Lab([])
    lab.model = Slow(script)
    start = time.monotonic()
    with pytest.raises(ModelError, match="wrong key"):
        await lab.judge()
    assert time.monotonic() - start < 2


async def test_a_budget_ends_the_run_and_keeps_everything_that_was_bought() -> None:
    lab = Lab(by_logprob, delay=0.005)
    lab.gateway.budget = lab.gateway.room.budget = Budget(call_budget=5)
    with pytest.raises(BudgetExceededError):
        await lab.judge()
    assert lab.calls == lab.gateway.budget.calls == len(lab.store) == 5
    lab.gateway.budget.call_budget = None
    await lab.judge()
    assert lab.calls == 12


def test_an_output_longer_than_the_context_has_no_verdict_and_says_why_while_others_are_judged(
    sandbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is cut off unseen; a question about a relation is asked all the same, of the nearest sentences."""
    monkeypatch.setattr(nearest, "can_embed", lambda: False)

    def served(body: Mapping[str, Any]) -> Any:
        if sum(len(each["content"]) for each in body["messages"]) < 1500:
            return 0.9
        error = {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}
        return 400, {"error": error}

    long = " ".join(f"The boat number {place} came late." for place in range(100))
    rows = [{"id": name, "input": "Was it late?", "output": text} for name, text in (("long", long), ("short", "Yes."))]
    questions = [Question(id="good", text="Is it good?"), Question(id="near", text="Does it answer?", sees="input")]
    with StandInServer(served) as server:
        found = askance.evaluate(
            rows, checklist=Checklist(questions=questions), model="openai/judge", api_base=server.url
        )
    failed = [each for each in found.verdicts if each.status != "ok"]
    assert [(each.example, each.question, each.status) for each in failed] == [("long", "good", "api_error")]
    assert says(failed[0].error, 400, "context size")
