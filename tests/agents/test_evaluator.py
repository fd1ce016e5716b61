from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest

from askance.agents.buying import Estimate
from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request, make_request
from askance.models.budget import Budget
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel, as_answer

PROMPT = Prompt("Judge.")
QUESTIONS = tuple(Question(id=f"q{number}", text=f"Is it so {number}?") for number in range(3))
CHECKLIST = Checklist(questions=QUESTIONS)
EXAMPLES = [Example(id=f"e{number}", input=f"in {number}", output=f"out {number}") for number in range(4)]
LOGPROB, HARD = Judging(p_yes="logprob"), Judging(p_yes="hard")
BATCHED = Judging(mode="batched", p_yes="hard")
QUICK = RetryPolicy(first=0.001)
Script = Callable[[Request], Reply]


def asked(request: Request) -> tuple[str, list[str]]:
    """Example and questions of a request."""
    text = "\n".join(content for role, content in request.messages)
    [example] = re.findall(r"\nout (\d+)\n", text)
    user = request.messages[0][1] if len(request.messages) == 1 else request.messages[1][1]
    return f"e{example}", [f"q{number}" for number in re.findall(r"Is it so (\d)\?", user)]


def p_of(example: str, question: str) -> float:
    return (int(example[1:]) + 1) / 10 + int(question[1:]) / 100


def by_logprob(request: Request) -> Reply:
    example, [question] = asked(request)
    return p_of(example, question)


def batched(values: dict[str, Any] | None = None, *, drop: str = "") -> Script:
    """Answers yes to everything but q1, as JSON; a question asked alone is answered in a word."""

    def script(request: Request) -> Reply:
        _, questions = asked(request)
        words = {question: "no" if question == "q1" else "yes" for question in questions}
        if request.parameters.schema is None:
            return words[questions[0]]
        return json.dumps({name: word for name, word in (words | (values or {})).items() if name != drop})

    return script


def tokenized(text: str, p_yes: float) -> Answer:
    """An answer with log-probabilities at each of its words."""
    both = (("yes", round(log(p_yes), 4)), ("no", round(log(1 - p_yes), 4)))
    pieces = re.findall(r"\w+|\W+", text)
    return Answer(text, tuple((piece, both if piece in ("yes", "no") else ()) for piece in pieces))


class Lab:
    """One gateway with a store in memory, and a model behind it."""

    def __init__(self, script: Any, *, store: VerdictStore | None = None, **options: Any) -> None:
        self.model = ScriptedModel(script, **options)
        self.store = VerdictStore(":memory:") if store is None else store
        self.gateway = Gateway(self.store, retry=RetryPolicy(attempts=2, first=0.001))

    def evaluator(self, judging: Judging = LOGPROB, checklist: Checklist = CHECKLIST, **options: Any) -> Evaluator:
        return Evaluator(self.gateway, self.model, PROMPT, checklist, judging, **options)

    async def judge(self, judging: Judging = LOGPROB, examples: list[Example] = EXAMPLES) -> list[Verdict]:
        return await self.evaluator(judging).judge(examples)

    @property
    def calls(self) -> int:
        return len(self.model.requests)


# --- each ---------------------------------------------------------------------------------------------------------


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
    top = (("The", log(0.5)), ("Yes", log(0.2)), (" yes", log(0.1)), ("NO", log(0.1)))
    verdicts = await Lab(lambda request: Answer("The", (("The", top),))).judge()
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


# --- batched ------------------------------------------------------------------------------------------------------


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


# --- explanations -------------------------------------------------------------------------------------------------


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


# --- where p_yes comes from ---------------------------------------------------------------------------------------


async def test_auto_takes_log_probabilities_where_there_are_some() -> None:
    lab = Lab(by_logprob)
    verdicts = await lab.judge(Judging())
    assert {verdict.p_yes_from for verdict in verdicts} == {"logprob"}
    assert lab.calls == 12


@pytest.mark.parametrize(("samples", "wanted", "calls"), [(1, "hard", 3), (2, "sampled", 6)])
async def test_auto_takes_what_it_can_get_otherwise(samples: int, wanted: str, calls: int) -> None:
    lab = Lab(lambda request: "Yes")
    verdicts = await lab.judge(Judging(samples=samples), EXAMPLES[:1])
    assert {verdict.p_yes_from for verdict in verdicts} == {wanted}
    assert lab.calls == calls + 1


async def test_provenance_is_settled_once_and_never_switched() -> None:
    """From the second answer on the endpoint gives no log-probabilities: these verdicts fail, and say why."""
    lab = Lab([0.9, *["Yes"] * 4], slots=1)
    verdicts = await lab.judge(Judging(), EXAMPLES[:1])
    assert [each.status for each in verdicts] == ["ok", "api_error", "api_error"]
    assert "without log-probabilities" in (verdicts[1].error or "")
    lab.model = ScriptedModel(lambda request: 0.9)
    later = await lab.evaluator(Judging()).judge(EXAMPLES[1:2])
    assert {each.p_yes_from for each in later} == {"logprob"}


async def test_provenance_that_is_hard_stays_hard_when_log_probabilities_turn_up() -> None:
    lab = Lab(lambda request: "Yes")
    await lab.judge(Judging(), EXAMPLES[:1])
    lab.model = ScriptedModel(lambda request: as_answer("No", request))
    verdicts = await lab.judge(Judging(), EXAMPLES[1:2])
    assert {(each.p_yes_from, each.answer) for each in verdicts} == {("hard", False)}


async def test_an_empty_first_reply_settles_nothing() -> None:
    """One empty reply without log-probabilities made a whole evaluation hard, for ever, and nobody was told."""
    replies = iter([Answer(""), Answer("\n")])
    model = ScriptedModel(lambda request: next(replies, None) or by_logprob(request))
    store, said = VerdictStore(":memory:"), []
    for _ in "12":
        gateway = Gateway(store, retry=QUICK)
        gateway.on_notice = said.append
        verdicts = await Evaluator(gateway, model, PROMPT, CHECKLIST).judge(EXAMPLES)
        assert {each.p_yes_from for each in verdicts} == {"logprob"}
        assert all(each.status == "ok" for each in verdicts)
    assert len(store) == len(verdicts)
    assert said == []


async def test_an_endpoint_without_log_probabilities_is_named_once() -> None:
    gateway, said = Gateway(), []
    gateway.on_notice = said.append
    for _ in "12":
        await Evaluator(gateway, ScriptedModel(lambda _: "yes"), PROMPT, CHECKLIST).judge(EXAMPLES)
    assert said == [
        "scripted/model gives no log-probabilities, so the probability of yes is the yes or no itself, 1 or 0."
    ]


async def test_an_answer_that_lacks_its_log_probabilities_is_asked_for_again() -> None:
    """What comes without them now and then is not kept, so that it is asked for again on resume too."""
    flaky = {"left": 3}

    def script(request: Request) -> Reply:
        if len(model.requests) > 1 and flaky["left"]:
            flaky["left"] -= 1
            return "Yes"
        return by_logprob(request)

    model, store = ScriptedModel(script, slots=1), VerdictStore(":memory:")
    first = await Evaluator(Gateway(store), model, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in first].count("api_error") == 1
    second = await Evaluator(Gateway(store), model, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in second] == ["ok"] * 12
    assert {each.p_yes_from for each in second} == {"logprob"}


async def test_what_an_earlier_version_kept_of_an_empty_reply_is_asked_again(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "verdicts.db")
    healthy = ScriptedModel(by_logprob)
    await Evaluator(Gateway(), healthy, PROMPT, CHECKLIST).judge(EXAMPLES)
    for request in healthy.requests[::2]:
        store.put(request.key, Answer(""))
    verdicts = await Evaluator(Gateway(store), healthy, PROMPT, CHECKLIST).judge(EXAMPLES)
    assert [each.status for each in verdicts] == ["ok"] * 12
    assert len(store) == 12


async def test_a_first_example_that_cannot_be_judged_does_not_end_the_run() -> None:
    def script(request: Request) -> Reply:
        return ModelError("too long") if asked(request)[0] == "e0" else by_logprob(request)

    verdicts = await Lab(script).judge(Judging())
    assert [each.status for each in verdicts] == ["api_error"] * 3 + ["ok"] * 9
    assert verdicts[0].error == "too long"


async def test_samples_are_counted_and_differ_in_their_seed() -> None:
    words = iter(["yes", "no", "yes", "yes"])
    lab = Lab(lambda request: next(words), slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    judging = Judging(p_yes="sampled", samples=4, sample_temperature=0.7, seed=5)
    [verdict] = await lab.evaluator(judging, one).judge(EXAMPLES[:1])
    assert (verdict.answer, verdict.p_yes, verdict.p_yes_from, verdict.replicate) == (True, 0.75, "sampled", 0)
    assert [request.parameters.seed for request in lab.model.requests] == [5, 6, 7, 8]
    assert {request.parameters.temperature for request in lab.model.requests} == {0.7}


async def test_a_sample_that_fails_fails_the_verdict() -> None:
    lab = Lab(["yes", "perhaps", "perhaps", "yes"], slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    [verdict] = await lab.evaluator(Judging(p_yes="sampled", samples=3), one).judge(EXAMPLES[:1])
    assert (verdict.status, verdict.answer, verdict.p_yes) == ("parse_error", None, None)


async def test_the_explanation_of_samples_is_that_of_one_that_says_the_same() -> None:
    replies = [json.dumps({"answer": word, "explanation": f"why {word}"}) for word in ("no", "yes", "yes")]
    lab = Lab(replies, slots=1)
    one = Checklist(questions=QUESTIONS[:1])
    [verdict] = await lab.evaluator(Judging(p_yes="sampled", samples=3, explain="always"), one).judge(EXAMPLES[:1])
    assert (verdict.answer, verdict.explanation) == (True, "why yes")


async def test_replicates_are_asked_separately_and_numbered() -> None:
    lab = Lab(by_logprob)
    verdicts = await lab.judge(Judging(p_yes="logprob", repeat=3), EXAMPLES[:2])
    assert lab.calls == 18
    assert [each.replicate for each in verdicts] == [0, 0, 0, 1, 1, 1, 2, 2, 2] * 2
    assert [each.example for each in verdicts] == ["e0"] * 9 + ["e1"] * 9
    assert {request.parameters.seed for request in lab.model.requests} == {42, 43, 44}


async def test_replicates_of_samples_are_kept_apart() -> None:
    words = iter(["yes", "yes", "no", "no"])
    one = Checklist(questions=QUESTIONS[:1])
    evaluator = Lab(lambda request: next(words), slots=1).evaluator(Judging(p_yes="sampled", samples=2, repeat=2), one)
    assert [(each.p_yes, each.replicate) for each in await evaluator.judge(EXAMPLES[:1])] == [(1.0, 0), (0.0, 1)]


# --- failures -----------------------------------------------------------------------------------------------------


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
    assert "neither yes nor no" in (verdicts[0].error or "")
    assert lab.calls == 6
    assert "Answer with one word: yes or no." in lab.model.requests[-1].messages[-1][1]
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


async def test_an_explained_answer_that_is_cut_off_is_no_answer() -> None:
    text = '{"answer": "yes", "explanation": "Becau'
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
    lab.gateway.budget = Budget(max_calls=5)
    with pytest.raises(BudgetExceededError):
        await lab.judge()
    assert lab.calls == lab.gateway.budget.calls == len(lab.store) == 5
    lab.gateway.budget.max_calls = None
    await lab.judge()
    assert lab.calls == 12


# --- the store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judging", [LOGPROB, HARD, BATCHED, Judging(), Judging(repeat=2, p_yes="sampled", samples=2)])
async def test_a_second_run_makes_no_calls_and_gives_the_same(judging: Judging) -> None:
    script = batched() if judging.p_yes != "logprob" and judging != Judging() else by_logprob
    lab = Lab(script)
    verdicts = await lab.judge(judging)
    calls = lab.calls
    second = Lab([], store=lab.store)
    assert await second.judge(judging) == verdicts
    assert second.calls == 0
    assert second.gateway.budget.calls == 0
    assert second.gateway.budget.cached_calls >= calls


async def test_a_verdict_that_could_not_be_read_is_not_kept_and_is_asked_again() -> None:
    lab = Lab(lambda request: "Hm.")
    assert {each.status for each in await lab.judge(HARD)} == {"parse_error"}
    assert len(lab.store) == 0
    again = Lab(lambda request: "yes", store=lab.store)
    assert {each.status for each in await again.judge(HARD)} == {"ok"}
    assert again.calls == 12


async def test_changing_one_question_buys_only_that_question() -> None:
    lab = Lab(by_logprob)
    await lab.judge()
    changed = Question(id="new", text="Is it so 1? Really?", dimension="other", weight=3)
    checklist = Checklist(questions=[QUESTIONS[2], changed, QUESTIONS[0]])
    verdicts = await lab.evaluator(LOGPROB, checklist).judge(EXAMPLES)
    assert lab.calls == 12 + len(EXAMPLES)
    assert [each.question for each in verdicts[:3]] == ["q2", "new", "q0"]


async def test_requests_that_are_the_same_are_bought_once() -> None:
    twins = [EXAMPLES[0], EXAMPLES[0].model_copy(update={"id": "twin"})]
    lab = Lab(by_logprob, slots=1)
    evaluator = lab.evaluator()
    assert evaluator.estimate(twins).calls == 3
    verdicts = await evaluator.judge(twins)
    assert lab.calls == 3
    assert [each.example for each in verdicts] == ["e0"] * 3 + ["twin"] * 3


@pytest.mark.parametrize("judging", [LOGPROB, BATCHED, Judging(), Judging(p_yes="sampled", samples=3, repeat=2)])
async def test_the_estimate_is_what_is_then_bought(judging: Judging) -> None:
    script = by_logprob if judging in (LOGPROB, Judging()) else batched()
    lab = Lab(script)
    await lab.judge(judging, EXAMPLES[:1])
    before = lab.calls
    estimate = lab.evaluator(judging).estimate(EXAMPLES)
    assert lab.calls == before
    verdicts = await lab.judge(judging)
    assert estimate.calls == lab.calls - before
    assert estimate.verdicts == len(verdicts)
    assert estimate.stored == before
    bought = lab.model.requests[before:]
    chars = sum(sum(len(content) for _, content in request.messages) // 4 for request in bought)
    assert estimate.tokens == chars + sum(request.parameters.max_tokens for request in bought)
    assert lab.evaluator(judging).estimate(EXAMPLES) == Estimate(estimate.verdicts, 0, before + estimate.calls, 0, 0.0)


async def test_the_estimate_knows_where_p_yes_comes_from_once_that_is_settled() -> None:
    lab = Lab(lambda request: "Yes")
    await lab.judge(Judging(samples=2), EXAMPLES[:1])
    before = lab.calls
    estimate = lab.evaluator(Judging(samples=2)).estimate(EXAMPLES)
    await lab.judge(Judging(samples=2))
    assert estimate.calls == lab.calls - before == 3 * 3 * 2


async def test_every_request_has_the_key_it_was_looked_up_by() -> None:
    lab = Lab(batched(drop="q1"))
    await lab.judge(BATCHED)
    await lab.judge(HARD)
    for request in lab.model.requests:
        made = make_request(lab.model.identity, request.messages, request.parameters, request.replicate)
        assert made.key == request.key


# --- concurrency and progress -------------------------------------------------------------------------------------


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
