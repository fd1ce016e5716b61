"""P(yes) that a model states with its answer, and how a model that thinks is asked."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Any

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.gateway import Gateway
from askance.models.replies.yes_no import stated_p_yes
from askance.prompts.checklist import Checklist, Question
from askance.testing import Reply, ScriptedModel
from tests.said import says

from .conftest import CHECKLIST, EXAMPLES, PROMPT, QUESTIONS, QUICK, Lab, asked, by_logprob, p_of

STATED = Judging(p_yes="stated")
AUTO = Judging(mode="auto")
THOUGHT = 120


def stated(p_yes: float) -> dict[str, Any]:
    """An answer with its probability."""
    return {"answer": "yes" if p_yes >= 0.5 else "no", "probability": round(100 * min(p_yes, 0.97))}


def in_json(request: Request, value: Callable[[str, str], Any]) -> str:
    """The reply in JSON to all that is asked of an example."""
    example, questions = asked(request)
    if "answer" in (request.parameters.schema or {})["properties"]:
        return json.dumps(value(example, questions[0]))
    return json.dumps({question: value(example, question) for question in questions})


def by_number(request: Request) -> str:
    """States the probability that everything has."""
    return in_json(request, lambda example, question: stated(p_of(example, question)))


def thinking(sure: float | None = None) -> Callable[[Request], Answer]:
    """A model that thinks: one that is ``sure`` gives log-probabilities of the answer that it decided on; None gives none."""

    def script(request: Request) -> Answer:
        if request.parameters.schema is None:
            return Answer("Yes", None, 10, THOUGHT + 1, reasoning_tokens=THOUGHT)
        text = by_number(request)
        logprobs = None
        if sure is not None and request.parameters.top_logprobs:
            pieces = re.findall(r"\w+|\W+", text)
            logprobs = tuple(
                (
                    piece,
                    ((piece, log(sure)), ("no" if piece == "yes" else "yes", log(1 - sure)))
                    if piece in ("yes", "no")
                    else (),
                )
                for piece in pieces
            )
        return Answer(text, logprobs, 10, THOUGHT + len(text) // 4, reasoning_tokens=THOUGHT)

    return script


async def test_each_answer_comes_with_a_probability() -> None:
    lab = Lab(by_number)
    verdicts = await lab.judge(STATED)
    assert [each.p_yes for each in verdicts] == [round(p_of(each.example, each.question), 2) for each in verdicts]
    assert {(each.p_yes_from, each.status) for each in verdicts} == {("stated", "ok")}
    parameters = lab.model.requests[0].parameters
    assert list(parameters.schema["properties"]) == ["answer", "probability"]  # type: ignore[index]
    assert (parameters.top_logprobs, lab.calls) == (0, 12)
    assert says(lab.model.requests[0].messages[-1][1], "probability in percent", "yes")


async def test_all_answers_of_one_call_come_with_one() -> None:
    lab = Lab(by_number)
    verdicts = await lab.judge(replace(STATED, mode="batched"))
    assert [each.p_yes for each in verdicts] == [round(p_of(each.example, each.question), 2) for each in verdicts]
    assert ({each.p_yes_from for each in verdicts}, lab.calls) == ({"stated"}, 4)


@pytest.mark.parametrize("mode", ["each", "batched"])
async def test_an_explanation_stands_beside_the_probability(mode: Any) -> None:
    lab = Lab(lambda request: in_json(request, lambda *_: {**stated(0.8), "explanation": "Its words."}))
    verdicts = await lab.judge(replace(STATED, mode=mode, explain="always"))
    assert {(each.p_yes, each.explanation) for each in verdicts} == {(0.8, "Its words.")}


@pytest.mark.parametrize(
    ("number", "answer", "p_yes"),
    [
        (50, True, 0.5),
        (50, False, 0.5),
        (0, False, 0.0),
        (100, True, 1.0),
        ("85%", True, 0.85),
        (51.5, True, 0.515),
        (1, False, 0.01),
    ],
)
def test_a_number_is_the_probability_of_yes_and_50_goes_with_either_answer(
    number: Any, answer: bool, p_yes: float
) -> None:
    assert stated_p_yes({"probability": number}, answer) == pytest.approx(p_yes)


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (20, True),
        (80, False),
        (49.9, True),
        (1, True),
        (0.85, True),
        (0.2, False),
        (101, True),
        (-1, False),
        ("high", True),
        (True, True),
        (None, False),
        (float("nan"), True),
    ],
)
def test_a_number_that_contradicts_its_answer_or_is_none_is_no_probability(number: Any, answer: bool) -> None:
    with pytest.raises(ValueError, match="probability"):
        stated_p_yes({"probability": number}, answer)


@pytest.mark.parametrize(("second", "status"), [(80, "ok"), (20, "parse_error")])
async def test_an_answer_that_contradicts_its_number_is_asked_again_once(second: int, status: str) -> None:
    numbers = iter([20, second])
    lab = Lab(lambda request: json.dumps({"answer": "yes", "probability": next(numbers)}), slots=1)
    [verdict] = await lab.evaluator(STATED, Checklist(questions=QUESTIONS[:1])).judge(EXAMPLES[:1])
    assert (verdict.status, lab.calls) == (status, 2)
    assert says(lab.model.requests[1].messages[-1][1], "probability", "yes", 20)
    if status == "parse_error":
        assert (verdict.p_yes, len(lab.store)) == (None, 0)  # a failure is never kept


async def test_one_of_several_answers_that_contradicts_its_number_is_asked_alone() -> None:
    def script(request: Request) -> Reply:
        _, questions = asked(request)
        wrong = {"answer": "no", "probability": 80}
        return in_json(
            request, lambda example, question: wrong if question == "q1" and len(questions) > 1 else stated(0.7)
        )

    lab = Lab(script)
    verdicts = await lab.judge(replace(STATED, mode="batched"), EXAMPLES[:1])
    assert ([each.p_yes for each in verdicts], lab.calls) == ([0.7, 0.7, 0.7], 2)


async def test_a_quote_has_no_number_and_says_so() -> None:
    question = Question(id="q0", text="Is it so 0?", sees="quote")
    lab = Lab(lambda request: "none")
    [verdict] = await lab.evaluator(STATED, Checklist(questions=(question,))).judge(EXAMPLES[:1])
    assert (verdict.answer, verdict.p_yes, verdict.p_yes_from) == (False, 0.0, "hard")


async def test_a_model_that_does_not_think_is_asked_as_ever() -> None:
    """Its answers are in people's stores."""
    usual, auto = Lab(by_logprob), Lab(by_logprob)
    assert await auto.judge(AUTO) == await usual.judge(Judging())
    assert {each.key for each in auto.model.requests} == {each.key for each in usual.model.requests}
    hard, auto = Lab(lambda request: "Yes"), Lab(lambda request: "Yes")
    assert await auto.judge(replace(AUTO, p_yes="hard")) == await hard.judge(Judging(p_yes="hard"))
    assert sorted(each.key for each in auto.model.requests) == sorted(each.key for each in hard.model.requests)


@pytest.mark.parametrize(("sure", "wanted"), [(0.7, "logprob"), (0.999, "stated"), (None, "stated")])
async def test_a_model_that_thinks_is_asked_once_an_output(sure: float | None, wanted: str) -> None:
    """Log-probabilities are read where they tell answers apart, else the numbers of the same replies: none is bought twice."""
    lab = Lab(thinking(sure))
    verdicts = await lab.judge(AUTO)
    assert {(each.p_yes_from, each.status) for each in verdicts} == {(wanted, "ok")}
    expected = [p_of(each.example, each.question) for each in verdicts]
    if wanted == "logprob":
        expected = [0.7 if p >= 0.5 else 0.3 for p in expected]
    assert [each.p_yes for each in verdicts] == pytest.approx(expected, abs=0.005)
    assert lab.calls == len(EXAMPLES) + 1  # the first one told that it thinks


async def test_what_a_model_that_thinks_does_is_said_once() -> None:
    lab, said = Lab(thinking(0.999)), list[str]()
    lab.gateway.on_notice = said.append
    await lab.judge(AUTO)
    await lab.judge(AUTO)
    (notice,) = [each for each in said if "probability" in each]
    assert says(notice, "scripted/model", "no log-probabilities", "states")


async def test_a_run_that_goes_on_finds_the_same_and_buys_nothing() -> None:
    store = VerdictStore(":memory:")
    first = await Lab(thinking(0.7), store=store).judge(AUTO)
    again = Lab(thinking(0.7), store=store)
    assert (await again.judge(AUTO), again.calls) == (first, 0)


async def test_a_model_that_is_known_to_think_is_not_tried_first() -> None:
    lab = Lab(thinking(0.7))
    await lab.judge(AUTO, EXAMPLES[:1])
    lab.gateway.thinkers.clear()  # as a later command would begin
    lab.gateway.provenance.clear()
    there = lab.calls
    verdicts = await lab.judge(AUTO, EXAMPLES[1:3])
    assert ({each.p_yes_from for each in verdicts}, lab.calls - there) == ({"logprob"}, 2)


@pytest.mark.parametrize("seed", range(5))
async def test_the_first_verdicts_are_those_of_the_data_and_not_the_first_to_come(seed: int) -> None:
    """The first twenty tell nothing, later ones would: what is settled does not hang on who answers first."""
    examples = [EXAMPLES[0].model_copy(update={"id": f"e{place}", "output": f"out {place}"}) for place in range(12)]
    chance = random.Random(seed)

    class Shuffled(ScriptedModel):
        async def answer(self, request: Request) -> Answer:
            await asyncio.sleep(chance.uniform(0, 0.01))
            return await super().answer(request)

    lab = Lab([])
    lab.model = Shuffled(lambda request: thinking(0.999 if int(asked(request)[0][1:]) < 7 else 0.7)(request))
    verdicts = await lab.judge(AUTO, examples)
    assert {each.error for each in verdicts} == {None}
    assert {each.p_yes_from for each in verdicts} == {"stated"}
    assert lab.calls == len(examples) + 1


async def test_parts_of_at_most_twenty_questions_are_a_call() -> None:
    questions = tuple(Question(id=f"q{place}", text=f"Is it so {place}?") for place in range(45))

    def script(request: Request) -> Answer:
        schema = request.parameters.schema
        if schema is None:
            return Answer("Yes", reasoning_tokens=THOUGHT)
        return Answer(json.dumps(dict.fromkeys(schema["properties"], stated(0.8))), reasoning_tokens=THOUGHT)

    lab = Lab(script)
    verdicts = await lab.evaluator(AUTO, Checklist(questions=questions)).judge(EXAMPLES[:1])
    assert [each.question for each in verdicts] == [each.id for each in questions]
    assert [len(each.parameters.schema["properties"]) for each in lab.model.requests[1:]] == [20, 20, 5]  # type: ignore[index]
    lab = Lab(script)
    await lab.evaluator(Judging(mode="batched", p_yes="stated"), Checklist(questions=questions)).judge(EXAMPLES[:1])
    assert lab.calls == 1  # as many as ever, where nobody knows that it thinks


@pytest.mark.parametrize("p_yes", ["stated", "hard"])
async def test_a_given_provenance_is_kept_while_the_mode_is_found_out(p_yes: Any) -> None:
    def script(request: Request) -> Answer:
        plain = (
            "Yes"
            if request.parameters.schema is None
            else in_json(request, lambda *_: stated(0.8) if p_yes == "stated" else "yes")
        )
        return Answer(plain, reasoning_tokens=THOUGHT)

    lab = Lab(script)
    verdicts = await lab.judge(replace(AUTO, p_yes=p_yes))
    assert ({each.p_yes_from for each in verdicts}, lab.calls) == ({p_yes}, len(EXAMPLES) + 1)


async def test_an_endpoint_that_is_down_is_told_as_ever() -> None:
    def script(request: Request) -> Reply:
        raise ModelError("not now")

    verdicts = await Lab(script).judge(replace(AUTO, p_yes="hard"), EXAMPLES[:1])
    assert {each.status for each in verdicts} == {"api_error"}


async def test_the_estimate_of_a_model_that_is_known_to_think_is_a_call_an_output() -> None:
    lab = Lab(thinking(0.7))
    evaluator = lab.evaluator(AUTO)
    assert evaluator.estimate(EXAMPLES).calls == 12
    await evaluator.judge(EXAMPLES[:1])
    assert evaluator.estimate(EXAMPLES).calls == 3


async def test_two_judges_of_one_store_have_their_own_say() -> None:
    store = VerdictStore(":memory:")
    model = ScriptedModel(thinking(0.7))
    for _ in "12":
        verdicts = await Evaluator(Gateway(store, retry=QUICK), model, PROMPT, CHECKLIST, AUTO).judge(EXAMPLES)
        assert {each.p_yes_from for each in verdicts} == {"logprob"}
    assert len(model.requests) == len(EXAMPLES) + 1


async def test_samples_that_are_asked_for_are_drawn_where_log_probabilities_tell_nothing() -> None:
    lab = Lab(thinking(0.999))
    verdicts = await lab.judge(replace(AUTO, samples=3))
    assert {each.p_yes_from for each in verdicts} == {"sampled"}
    assert {each.parameters.temperature for each in lab.model.requests[-12:]} == {1.0}
