"""Several questions in one call."""

from __future__ import annotations

import json
import re
from math import log
from pathlib import Path

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, Question
from askance.testing import Reply, ScriptedModel

from .conftest import (
    BATCHED,
    EXAMPLES,
    HARD,
    PROMPT,
    QUESTIONS,
    QUICK,
    Lab,
    asked,
    batched,
)


async def test_batched_asks_once_an_example_in_an_order_of_its_own() -> None:
    lab = Lab(batched())
    verdicts = await lab.judge(BATCHED)
    assert lab.calls == len(EXAMPLES)
    assert [verdict.answer for verdict in verdicts] == [True, False, True] * len(EXAMPLES)
    orders = {tuple(asked(request)[1]) for request in lab.model.requests}
    assert len(orders) > 1
    again = Lab(batched())
    await again.judge(BATCHED)
    assert sorted(request.key for request in again.model.requests) == sorted(r.key for r in lab.model.requests)


async def test_batched_answers_carry_probabilities_at_their_own_place() -> None:
    def script(request: Request) -> Reply:
        text = json.dumps(dict.fromkeys(asked(request)[1], "yes"))
        place = iter((0.6, 0.7, 0.8))
        tokens = tuple(
            (piece, tuple((word, round(log(p), 4)) for word, p in zip(("yes", "no"), (now, 1 - now), strict=True)))
            if piece == "yes" and (now := next(place))
            else (piece, ())
            for piece in re.findall(r"\w+|\W+", text)
        )
        return Answer(text, tokens)

    lab = Lab(script)
    verdicts = await lab.judge(Judging(mode="batched", p_yes="logprob"), EXAMPLES[:1])
    order = asked(lab.model.requests[0])[1]
    for verdict in verdicts:
        assert verdict.p_yes == pytest.approx((0.6, 0.7, 0.8)[order.index(verdict.question)], abs=1e-3)


@pytest.mark.parametrize("bad", ["", '{"q2": "perhaps"}', '{"q2": null}', '{"q2": 1}'])
async def test_a_question_that_is_left_out_is_asked_alone(bad: str) -> None:
    lab = Lab(batched(json.loads(bad) if bad else None, drop="" if bad else "q2"))
    verdicts = await lab.judge(BATCHED, EXAMPLES[:1])
    assert [verdict.answer for verdict in verdicts] == [True, False, True]
    assert [asked(request)[1] for request in lab.model.requests][1:] == [["q2"]]
    assert await lab.judge(BATCHED, EXAMPLES[:1]) == verdicts
    assert lab.calls == 2


@pytest.mark.parametrize("drop", ["", "q1", "q2"])
async def test_answers_to_questions_that_see_less_land_at_their_places(drop: str) -> None:
    questions = tuple(
        Question(id=f"q{number}", text=f"Is it so {number}?", sees="output" if number in (1, 2, 4) else "all")
        for number in range(6)
    )
    seen: dict[str, set[bool]] = {}

    def script(request: Request) -> Reply:
        text = request.messages[-1][1]
        ids = re.findall(r"^\[(q\d)\]", text, re.MULTILINE) or [f"q{re.findall(r'so (.)', text)[0]}"]
        for each in ids:
            seen.setdefault(each, set()).add("in 0" in text)
        alone = "JSON" not in text
        said = {each: "yes" if each in ("q1", "q3", "q4") else "no" for each in ids if alone or each != drop}
        return said[ids[0]] if alone else json.dumps(said)

    for judging in (BATCHED, HARD):
        seen.clear()
        model = ScriptedModel(script)
        gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
        evaluator = Evaluator(gateway, model, PROMPT, Checklist(questions=questions), judging)
        verdicts = await evaluator.judge(EXAMPLES[:1])
        assert [each.question for each in verdicts] == [each.id for each in questions]
        assert [each.answer for each in verdicts] == [False, True, False, True, True, False]
        assert seen == {each.id: {each.sees == "all"} for each in questions}
        assert (await evaluator.judge(EXAMPLES[:1]), len(model.requests)) == (verdicts, len(model.requests))


async def test_an_explanation_goes_on_from_what_the_question_was_shown() -> None:
    asked_for: list[str] = []

    def script(request: Request) -> Reply:
        if len(request.messages) > 2:
            asked_for.append(str(request.messages))
            return "Because."
        return "yes"

    questions = (QUESTIONS[0], QUESTIONS[1].model_copy(update={"sees": "output"}))
    gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
    evaluator = Evaluator(gateway, ScriptedModel(script), PROMPT, Checklist(questions=questions), HARD)
    await evaluator.explain(await evaluator.judge(EXAMPLES[:1]), EXAMPLES)
    assert ["in 0" in each for each in asked_for] == [True, False]


async def test_a_second_process_does_not_ask_alone_again(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "v.db") as store:
        verdicts = await Lab(batched(drop="q2"), store=store).judge(BATCHED)
    with VerdictStore(tmp_path / "v.db") as store:
        assert await Lab([], store=store).judge(BATCHED) == verdicts


async def test_a_batched_answer_of_no_use_is_asked_again_once() -> None:
    lab = Lab(["All good!", '{"q0": "yes", "q1": true, "q2": false}'])
    verdicts = await lab.judge(BATCHED, EXAMPLES[:1])
    assert [verdict.answer for verdict in verdicts] == [True, True, False]
    complaint = lab.model.requests[1].messages[-1][1]
    assert "'All good!' is not valid JSON" in complaint
    assert "JSON object" in complaint
