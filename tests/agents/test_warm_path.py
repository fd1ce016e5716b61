"""What judging large data rests on: nothing bought twice, the event loop not held, results not written out."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from askance.agents.buying import TURN
from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.evaluation.evaluate import evaluate
from askance.memory.verdict_store import VerdictStore
from askance.models.event_loops import run_sync
from askance.models.gateway import Gateway
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.testing import ScriptedModel

CHECKLIST = Checklist(questions=(Question(id="q", text="Is it so?"),))


def examples(count: int, *, alike: bool = False) -> list[Example]:
    return [Example(id=str(each), input="x", output="same" if alike else f"text {each}") for each in range(count)]


def test_examples_with_the_same_texts_are_bought_once_and_the_rest_counts_as_reused() -> None:
    model = ScriptedModel(lambda request: 0.7, slots=1)
    found = evaluate(examples(5, alike=True), checklist=CHECKLIST, model=model, no_cache=True, p_yes="logprob")
    assert len(model.requests) == 1
    assert (found.budget.calls, found.budget.cached_calls) == (1, 4)
    assert [verdict.p_yes for verdict in found.verdicts] == [found.verdicts[0].p_yes] * 5


def test_the_answer_that_a_model_is_tried_by_is_one_answer(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: 0.7)
    for calls, reused in ((3, 0), (0, 3)):
        found = evaluate(examples(3), checklist=CHECKLIST, model=model, store=tmp_path / "v.db")
        assert (found.budget.calls, found.budget.cached_calls) == (calls, reused)
    found = evaluate(examples(5, alike=True), checklist=CHECKLIST, model=model, no_cache=True)
    assert (found.budget.calls, found.budget.cached_calls) == (1, 4)


def test_a_second_run_reuses_one_answer_for_each_of_the_examples_with_the_same_texts(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: 0.7)
    for calls, reused in ((1, 4), (0, 5)):
        found = evaluate(
            examples(5, alike=True), checklist=CHECKLIST, model=model, store=tmp_path / "v.db", p_yes="logprob"
        )
        assert (found.budget.calls, found.budget.cached_calls) == (calls, reused)


async def test_others_on_the_event_loop_have_their_turn_after_every_block_of_stored_answers(tmp_path: Path) -> None:
    many = examples(5 * TURN)
    model = ScriptedModel(lambda request: 0.7)
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    with VerdictStore(tmp_path / "v.db") as store:
        await Evaluator(Gateway(store), model, Prompt("Judge."), CHECKLIST, Judging(p_yes="logprob")).judge(many)
        watching = asyncio.ensure_future(watch())
        warm = Gateway(store)
        seen: list[int] = []
        evaluator = Evaluator(warm, model, Prompt("Judge."), CHECKLIST, Judging(p_yes="logprob"))
        verdicts = await evaluator.judge(many, lambda done, total: seen.append(turns))
        watching.cancel()
    assert [verdict.example for verdict in verdicts] == [example.id for example in many]
    assert warm.budget.calls == 0
    blocks = seen[:5]
    assert all(later > earlier for earlier, later in pairwise(blocks))


def test_running_to_the_end_does_not_write_out_the_result() -> None:
    written = []

    class Large:
        def __repr__(self) -> str:
            written.append(self)
            return "a long text"

    result = Large()

    async def work() -> Large:
        return result

    assert run_sync(work()) is result
    assert not written
