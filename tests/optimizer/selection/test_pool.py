"""The pool of candidates grows until hardly anything new comes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.question_writer import QuestionProposer
from askance.evaluation.options import SelectOptions
from askance.memory.embedders import embedder
from askance.models.base import ModelError
from askance.models.gateway import Gateway, RetryPolicy
from askance.optimizer.selection.inputs import Pool, propose_pool
from askance.prompts.errors import AskanceError
from askance.prompts.examples import Example
from askance.testing import ScriptedModel
from tests.said import naming


async def grow(facts: Any, script: Any, **options: Any) -> Pool:
    gateway = Gateway(retry=RetryPolicy(1))
    proposer = QuestionProposer(gateway, ScriptedModel(script), seed=1)
    examples = [Example(**row) for row in facts.rows()]
    return await propose_pool(proposer, examples, embedder("words"), SelectOptions(**options))


async def test_it_stops_when_hardly_anything_new_comes_and_keeps_the_curve(facts: Any) -> None:
    pool = await grow(facts, facts.reply, same_question=1.0)
    assert pool.settled
    assert len(pool.questions) == len({question.text for question in pool.questions}) == 8
    assert [each.pool for each in pool.growth] == [3, 6, 8, 8, 8]
    assert [each.new for each in pool.growth] == [3, 3, 2, 0, 0]
    assert len({question.id for question in pool.questions}) == 8
    assert all(len(each.examples) == 3 for each in pool.growth)
    assert pool.to_dict()["growth"][0]["proposed"] == 4


async def test_near_repeats_are_dropped(facts: Any) -> None:
    pool = await grow(facts, facts.reply, same_question=0.55)
    assert len(pool.questions) < 8


async def test_limits_end_it_unsettled(facts: Any) -> None:
    by_size = await grow(facts, facts.reply, same_question=1.0, max_candidates=5)
    assert (len(by_size.questions), by_size.settled) == (5, False)
    by_rounds = await grow(facts, facts.reply, same_question=1.0, max_rounds=2)
    assert (len(by_rounds.growth), by_rounds.settled) == (2, False)


async def test_a_failed_round_is_kept_in_the_curve_and_not_taken_for_a_quiet_one(facts: Any) -> None:
    calls = 0

    def script(request: Any) -> Any:
        nonlocal calls
        calls += 1
        return ModelError("busy") if calls in (2, 3) else facts.reply(request)

    pool = await grow(facts, script, same_question=1.0)
    assert [each.error for each in pool.growth[1:3]] == ["busy", "busy"]
    assert len(pool.questions) == 8


async def test_a_model_that_writes_nothing_usable_is_an_error_with_advice(facts: Any) -> None:
    with pytest.raises(AskanceError, match=naming("usable question", "3 rounds", "--writer")):
        await grow(facts, lambda _: json.dumps({"questions": []}))


async def test_a_refused_key_ends_it(facts: Any) -> None:
    with pytest.raises(ModelError, match="key"):
        await grow(facts, lambda _: ModelError("wrong key", fatal=True))
