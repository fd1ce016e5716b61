"""Questions that are answered with words of the output, or with none."""

from __future__ import annotations

import json
from math import log
from typing import Literal

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.agents.replies import NOTHING_QUOTED
from askance.agents.requests import Ask, BatchedAsking, EachAsking, ExpectedScoreAsking, quote_format
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request, make_request
from askance.models.gateway import Gateway
from askance.models.replies.answer_words import worth_keeping
from askance.models.replies.yes_no import ROOM, p_quoted
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.prompt import QUOTED_CASES, Prompt
from askance.prompts.text import fence
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel
from tests.said import says

from .conftest import HARD, LOGPROB, QUICK

OUTPUT = "The fair opens on Monday. No dogs, said the mayor."
EXAMPLE = Example(id="e", input="asked so", output=OUTPUT, context="a page")
DATE = Question(id="date", text="Does it give a date?", sees="quote", rubric="Days count.")
PLAIN, ALONE = Question(id="plain", text="Is it clear?"), Question(id="alone", text="Is it rude?", sees="output")
PROMPT = Prompt("Be strict.\n\n{input}\n\n{output}\n\n{question}")


def at(token: str, *alternatives: tuple[str, float]) -> Answer:
    """An answer of one token, with the probabilities of some."""
    return Answer(token, ((token, tuple((word, log(p)) for word, p in alternatives)),))


async def judged(reply: Reply | list[Reply], judging: Judging = LOGPROB, *questions: Question) -> tuple[Verdict, ...]:
    replies = list(reply) if isinstance(reply, list) else [reply]
    gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
    checklist = Checklist(questions=questions or (DATE,))
    return tuple(await Evaluator(gateway, ScriptedModel(replies), PROMPT, checklist, judging).judge([EXAMPLE]))


def asks(asking: EachAsking | BatchedAsking | ExpectedScoreAsking) -> list[Ask]:
    return list(asking.asks("identity", EXAMPLE, 0, 0))


def test_the_judge_is_shown_cases_of_how_to_answer_and_the_output_and_nothing_else() -> None:
    [ask] = asks(EachAsking(PROMPT, (DATE,), False, True, 0.0, 42))
    roles = [role for role, _ in ask.messages]
    assert roles == ["system", *["user", "assistant"] * len(QUOTED_CASES), "user"]
    assert ask.messages[-1][1] == f"Text:\n{fence(OUTPUT)}\n\nQuestion: Does it give a date?\nRubric: Days count."
    text = str(ask.messages)
    assert not any(each in text for each in ("asked so", "a page", "Be strict", "yes or no"))
    assert [said for role, said in ask.messages if role == "assistant"] == [answer for *_, answer in QUOTED_CASES]
    request = ask.request()
    assert request.key == make_request("identity", ask.messages, ask.parameters, 0).key
    assert all(said in request.prefix for _, said in ask.messages[:-1]) and request.prefix.endswith("\n\n")
    assert (ask.parameters.max_tokens, ask.parameters.top_logprobs > 0) == (1, True)


def test_the_cases_quote_words_of_their_texts() -> None:
    for text, _, answer in QUOTED_CASES:
        assert answer == "none" or answer in text


def test_questions_that_want_a_quote_share_what_comes_before_them() -> None:
    other = DATE.model_copy(update={"id": "other", "text": "Does it name a place?"})
    found = asks(EachAsking(PROMPT, (DATE, PLAIN, other, ALONE), False, True, 0.0, 42))
    assert [ask.questions[0].id for ask in found] == ["date", "other", "plain", "alone"]
    assert [ask.index for ask in found] == [0, 2, 1, 3]
    assert len({ask.request().prefix for ask in found[:2]}) == 1
    assert len({ask.request().prefix for ask in found}) == 3


@pytest.mark.parametrize(
    ("answer", "p_yes"),
    [
        (at("on", ("on", 0.7), ("none", 0.2), ("Monday", 0.1)), 0.8),
        (at("none", ("none", 0.9), ("on", 0.05)), 0.1),
        (at("None", ("None", 0.5), (" none", 0.25), ("No", 0.05), ("on", 0.2)), 0.2),
        (at("Mon", ("Mon", 0.6), ("the", 0.3)), 1.0),
        (at('"', ('"', 0.9), ("none", 0.1)), 0.9),
        (at("“", ("“", 0.9), ("none", 0.1)), 0.9),
        (at("yes", ("yes", 0.6), ("none", 0.4)), 0.6),
        (at("June", ("June", 0.85), ("none", 0.15)), 0.85),
        (at("on"), 1.0),
    ],
)
async def test_p_yes_is_what_is_left_of_none(answer: Answer, p_yes: float) -> None:
    [verdict] = await judged(answer)
    assert verdict.p_yes == pytest.approx(p_yes, abs=1e-4)
    assert (verdict.answer, verdict.p_yes_from, verdict.status) == (p_yes >= 0.5, "logprob", "ok")


@pytest.mark.parametrize("answer", [at("June", ("June", 0.95), ("none", 0.05)), at("June")])
async def test_words_that_are_not_of_the_output_are_no_answer_but_asked_for_once_more(answer: Answer) -> None:
    sent: list[Request] = []

    def script(request: Request) -> Reply:
        sent.append(request)
        return answer if len(sent) == 1 else at("none", ("none", 0.9), ("on", 0.1))

    gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
    evaluator = Evaluator(gateway, ScriptedModel(script), PROMPT, Checklist(questions=(DATE,)), LOGPROB)
    [verdict] = await evaluator.judge([EXAMPLE])
    assert verdict.p_yes == pytest.approx(0.1, abs=1e-4)
    complaint = sent[1].messages[-1][1]
    assert says(complaint, "none nor words") and quote_format() in complaint
    assert "yes or no" not in complaint
    [failed] = await judged([answer, answer])
    assert failed.status == "parse_error" and failed.p_yes is None


@pytest.mark.parametrize("answer", [at("\n", ("\n", 0.9)), at("", ("", 1.0)), at("**", ("**", 0.8), ("none", 0.2))])
async def test_what_comes_before_the_first_word_of_a_quote_is_passed_over(answer: Answer) -> None:
    """Whatever else was likely in its place."""
    at_the_word = at("on", ("on", 0.7), ("none", 0.3))
    both = Answer(answer.text + "on", (*(answer.logprobs or ()), *(at_the_word.logprobs or ())))
    model = ScriptedModel([answer, both])
    evaluator = Evaluator(Gateway(), model, PROMPT, Checklist(questions=(DATE,)), LOGPROB)
    [verdict] = await evaluator.judge([EXAMPLE])
    assert [each.parameters.max_tokens for each in model.requests] == [1, ROOM]
    assert verdict.p_yes == pytest.approx(0.7, abs=1e-4)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("on Monday", True),
        ('"on  monday."', True),
        ("opens on Mond", True),
        ("No dogs", True),
        ("none", False),
        ("None.", False),
        ("no", False),
        ("Yes", True),
        ("No, it gives no date", False),
    ],
)
async def test_without_log_probabilities_the_words_decide(reply: str, answer: bool) -> None:
    [verdict] = await judged(reply, HARD)
    assert (verdict.answer, verdict.p_yes_from, verdict.status) == (answer, "hard", "ok")


@pytest.mark.parametrize("reply", ["in June", "...", "n/a"])
async def test_what_is_no_quote_and_not_none_is_no_verdict(reply: str) -> None:
    [verdict] = await judged([reply, reply], HARD)
    assert verdict.status == "parse_error" and verdict.answer is None


async def test_quotes_can_be_counted_from_samples() -> None:
    [verdict] = await judged(["on Monday", "none", "Monday", "on"], Judging(p_yes="sampled", samples=4))
    assert (verdict.p_yes, verdict.p_yes_from) == (0.75, "sampled")


def test_one_that_wants_a_quote_is_a_call_of_its_own_among_questions_asked_together() -> None:
    other = DATE.model_copy(update={"id": "other"})
    asking = BatchedAsking(PROMPT, (PLAIN, DATE, other, ALONE), False, False, 0.0, 42)
    found = asks(asking)
    assert [(ask.index, [each.id for each in ask.questions]) for ask in found] == [
        (0, ["plain"]),
        (1, ["date"]),
        (2, ["other"]),
        (3, ["alone"]),
    ]
    assert [ask.wants_a_quote for ask in found] == [False, True, True, False]
    assert found[1].messages == asks(EachAsking(PROMPT, (DATE,), False, False, 0.0, 42))[0].messages


async def test_verdicts_land_at_their_places_when_asked_together() -> None:
    def script(request: Request) -> Reply:
        if request.parameters.schema is None:
            return "on Monday"
        return json.dumps(dict.fromkeys(("plain", "alone"), "no"))

    gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
    checklist = Checklist(questions=(PLAIN, DATE, ALONE))
    judging = Judging(mode="batched", p_yes="hard")
    verdicts = await Evaluator(gateway, ScriptedModel(script), PROMPT, checklist, judging).judge([EXAMPLE])
    assert [(each.question, each.answer) for each in verdicts] == [("plain", False), ("date", True), ("alone", False)]


def test_a_score_is_asked_for_of_the_output_alone() -> None:
    alone = DATE.model_copy(update={"sees": "output"})
    [quoted], [asked] = (asks(ExpectedScoreAsking(PROMPT, (each,), False, 0.0, 42, (1, 5))) for each in (DATE, alone))
    assert not quoted.wants_a_quote and quoted.messages == asked.messages
    assert "Be strict" in str(asked.messages) and "asked so" not in str(asked.messages)


@pytest.mark.parametrize("mode", ["each", "batched"])
def test_where_answers_are_explained_the_same_is_asked_and_the_quote_written_to_its_end(mode: str) -> None:
    def way(*, explained: bool) -> EachAsking | BatchedAsking:
        asked = (PROMPT, (PLAIN, DATE, ALONE), explained, True, 0.0, 42)
        return EachAsking(*asked) if mode == "each" else BatchedAsking(*asked)

    [short], [whole] = ([ask for ask in asks(way(explained=each)) if ask.wants_a_quote] for each in (False, True))
    assert short.messages == whole.messages and short.key != whole.key
    assert (short.parameters.max_tokens, whole.parameters.max_tokens) == (1, 40)
    assert whole.parameters.schema is None and whole.parameters.top_logprobs == short.parameters.top_logprobs
    assert [ask.parameters.schema is None for ask in asks(way(explained=True))].count(False) == 2


@pytest.mark.parametrize(
    ("answer", "p_yes", "explanation"),
    [
        (at("on", ("on", 0.7), ("none", 0.3))._replace(text="on  Monday."), 0.7, "“on Monday.”"),
        (at("on", ("on", 0.7), ("none", 0.3))._replace(text='"On Monday"'), 0.7, "“On Monday”"),
        (
            at("The", ("The", 1.0))._replace(text="The fair opens on Mon", finish="length"),
            1.0,
            "“The fair opens on Mon…”",
        ),
        (at("none", ("none", 0.9), ("on", 0.1)), 0.1, NOTHING_QUOTED),
        (at("on", ("on", 0.7), ("none", 0.3))._replace(text="on a day in June"), 0.7, None),
    ],
)
@pytest.mark.parametrize("mode", ["each", "batched"])
async def test_a_quote_explains_itself_and_its_first_token_says_how_likely_it_was(
    mode: Literal["each", "batched"], answer: Answer, p_yes: float, explanation: str | None
) -> None:
    [verdict] = await judged(answer, Judging(mode=mode, explain="always", p_yes="logprob"))
    assert verdict.p_yes == pytest.approx(p_yes, abs=1e-4)
    assert (verdict.answer, verdict.status, verdict.explanation) == (p_yes >= 0.5, "ok", explanation)


@pytest.mark.parametrize(
    ("reply", "explanation"),
    [("on Monday", "“on Monday”"), ("on a day in June", "It gives one."), ("none", "It gives one.")],
)
async def test_why_is_the_quote_and_a_reason_is_asked_for_where_a_yes_has_none(reply: str, explanation: str) -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return "yes" if len(asked) == 1 else reply if "Copy from the text" in str(request.messages) else "It gives one."

    gateway = Gateway(VerdictStore(":memory:"), retry=QUICK)
    evaluator = Evaluator(gateway, ScriptedModel(script), PROMPT, Checklist(questions=(DATE,)), HARD)
    found = await evaluator.explain(await evaluator.judge([EXAMPLE]), [EXAMPLE])
    assert list(found.values()) == [explanation]
    assert asked[1].parameters.max_tokens == 40
    assert len(asked) == 2 or ("Be strict" in str(asked[2].messages) and "asked so" not in str(asked[2].messages))


async def test_that_there_is_nothing_to_quote_is_told_without_a_call() -> None:
    model = ScriptedModel(["none"])
    evaluator = Evaluator(
        Gateway(VerdictStore(":memory:"), retry=QUICK), model, PROMPT, Checklist(questions=(DATE,)), HARD
    )
    assert list((await evaluator.explain(await evaluator.judge([EXAMPLE]), [EXAMPLE])).values()) == [NOTHING_QUOTED]


def test_what_is_stored_gives_the_same_probability() -> None:
    alternatives = [(word, log(0.04)) for word in "abcdefghijklmnop"]
    alternatives = [("on", log(0.2)), *alternatives, (" none", log(0.03)), ("None", log(0.02)), ("no", log(0.01))]
    whole, kept = (p_quoted("on", each, OUTPUT) for each in (alternatives, worth_keeping(alternatives)))
    assert whole == kept == pytest.approx(0.94)
    assert p_quoted("on", worth_keeping([("on", -0.1), ("Mon", -3.0)]), OUTPUT) == 1.0
