from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from askance.agents.example_questions import ExampleQuestions
from askance.memory.verdict_store import VerdictStore
from askance.models.base import ModelError, Request
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.text import fence
from askance.testing import Reply, ScriptedModel
from tests.said import says

EXAMPLES = [Example(id=f"e{number}", input=f"Say {number} things.", reference="SECRET") for number in range(4)]


def reply(*texts: str) -> str:
    return json.dumps({"questions": [{"text": text, "violation": "It does not."} for text in texts]})


def about_its_input(request: Request) -> Reply:
    number = request.messages[1][1].split("Say ")[1][0]
    return reply(f"Does the response say {number} things?")


def gateway(store: VerdictStore | None = None, budget: Budget | None = None) -> Gateway:
    return Gateway(store, budget, retry=RetryPolicy(attempts=1))


async def write(model: ScriptedModel, examples: Sequence[Example] = EXAMPLES[:1], most: int = 6) -> list[Checklist]:
    return list((await ExampleQuestions(gateway(), model, max_questions=most).write(examples)).values())


async def test_each_example_gets_the_questions_of_its_own_input_in_input_order() -> None:
    model = ScriptedModel(about_its_input)
    written = await ExampleQuestions(gateway(), model).write(EXAMPLES)
    assert list(written) == ["e0", "e1", "e2", "e3"]
    for number, checklist in enumerate(written.values()):
        [question] = checklist.questions
        assert question.text == f"Does the response say {number} things?"
        assert (question.id, question.dimension, question.violation) == ("q1", "instructions", "It does not.")
        assert checklist.task == EXAMPLES[number].input


async def test_only_the_input_is_shown_fenced_so_that_it_is_read_and_not_followed() -> None:
    model = ScriptedModel(about_its_input)
    await write(model, [EXAMPLES[0].model_copy(update={"output": "OUTPUT", "context": "CONTEXT"})])
    shown = model.requests[0].messages[1][1]
    assert fence("Say 0 things.") in shown
    assert not any(word in shown for word in ("SECRET", "OUTPUT", "CONTEXT"))


async def test_a_question_in_the_words_of_an_earlier_one_is_left_out_and_ids_have_no_gap() -> None:
    texts = ("Does it say 'door' once?", "does it say door once ?", "Does it say 'bread' once?", "Is it short at all?")
    [checklist] = await write(ScriptedModel([reply(*texts)]))
    assert [(each.id, each.text) for each in checklist.questions] == [
        ("q1", texts[0]),
        ("q2", texts[2]),
        ("q3", texts[3]),
    ]


async def test_questions_that_differ_in_one_number_are_both_kept() -> None:
    texts = ("Does sentence 1 have 5 words?", "Does sentence 2 have 5 words?")
    [checklist] = await write(ScriptedModel([reply(*texts)]))
    assert [each.text for each in checklist.questions] == list(texts)


async def test_more_questions_than_allowed_are_asked_for_again() -> None:
    three = [f"Is it so, number {number}?" for number in range(3)]
    model = ScriptedModel([reply(*three), reply(*three[:2])])
    [checklist] = await write(model, most=2)
    assert len(checklist.questions) == 2
    assert "at most 2" in model.requests[1].messages[-1][1]
    assert "one to 2 objects" in model.requests[0].messages[0][1]


async def test_what_is_no_question_is_asked_for_again() -> None:
    model = ScriptedModel([reply("The response is short."), reply("Is the response short?")])
    [checklist] = await write(model)
    assert checklist.questions[0].text == "Is the response short?"
    assert says(model.requests[1].messages[-1][1], "not a question")


@pytest.mark.parametrize("text", ["回答是否正好提到三件事情？", "هل يذكر الرد ثلاثة أشياء؟"])
async def test_a_question_may_end_with_the_question_mark_of_its_language(text: str) -> None:
    model = ScriptedModel([reply(text)])
    [checklist] = await write(model)
    assert [each.text for each in checklist.questions] == [text]


async def test_failed_examples_are_left_out_with_their_error_told() -> None:
    def script(request: Request) -> Reply:
        text = "\n".join(content for _, content in request.messages)
        if "Say 1" in text:
            return "no JSON"
        return ModelError("the server said 400") if "Say 2" in text else about_its_input(request)

    failed: dict[str, str] = {}
    done: list[tuple[int, int]] = []
    written = await ExampleQuestions(gateway(), ScriptedModel(script)).write(
        EXAMPLES, failed.__setitem__, lambda *counts: done.append(counts)
    )
    assert list(written) == ["e0", "e3"]
    assert list(failed) == ["e1", "e2"] or list(failed) == ["e2", "e1"]
    assert "twice" in failed["e1"] and failed["e2"] == "the server said 400"
    assert done[-1] == (4, 4) and len(done) == 4


async def test_a_fatal_error_and_a_used_up_budget_are_raised() -> None:
    with pytest.raises(ModelError, match="wrong key"):
        await write(ScriptedModel(lambda _: ModelError("wrong key", fatal=True)))
    questions = ExampleQuestions(gateway(budget=Budget(call_budget=1)), ScriptedModel(about_its_input, slots=1))
    with pytest.raises(BudgetExceededError):
        await questions.write(EXAMPLES)


async def test_questions_are_paid_for_once() -> None:
    with VerdictStore(":memory:") as store:
        model = ScriptedModel(about_its_input)
        first = await ExampleQuestions(gateway(store), model, seed=1).write(EXAMPLES)
        again = gateway(store)
        assert await ExampleQuestions(again, model, seed=1).write(EXAMPLES) == first
    assert len(model.requests) == 4
    assert (again.budget.role("writer").calls, again.budget.role("writer").cached_calls) == (0, 4)
