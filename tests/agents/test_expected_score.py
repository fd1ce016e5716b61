from __future__ import annotations

import json
from collections.abc import Sequence
from math import log

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.agents.requests import ExpectedScoreAsking
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, ModelError, Request
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel
from tests.said import naming, says

QUESTION = Question(id="q", text="Is it clear?", rubric="5: at once", reference="So it is.", violation="A riddle.")
EXAMPLE = Example(id="e", input="in", output="out")
EXPECTED = Judging(score_scale=(1, 5))


def number(masses: dict[str, float], said: str | None = None, *, before: Sequence[str] = ()) -> Answer:
    """A reply whose first word could have been each of these."""
    likely = tuple((token, round(log(mass), 4)) for token, mass in masses.items())
    said = said or max(masses, key=lambda token: masses[token])
    return Answer("".join([*before, said]), (*((token, ()) for token in before), (said, likely)))


def evaluator(script: object, judging: Judging = EXPECTED) -> Evaluator:
    model = ScriptedModel(script, slots=1)  # type: ignore[arg-type]
    gateway = Gateway(VerdictStore(":memory:"), retry=RetryPolicy(attempts=1))
    return Evaluator(gateway, model, Prompt("Judge."), Checklist(questions=(QUESTION,)), judging)


async def verdict(*replies: Reply, judging: Judging = EXPECTED) -> Verdict:
    [found] = await evaluator(list(replies), judging).judge([EXAMPLE])
    return found


async def test_the_score_is_the_expected_number_mapped_to_0_and_1() -> None:
    found = await verdict(number({"4": 0.5, "5": 0.2, " 5": 0.1, "1": 0.1, "The": 0.1}))
    mean = (4 * 0.5 + 5 * 0.3 + 1 * 0.1) / 0.9
    assert found.p_yes == pytest.approx((mean - 1) / 4, abs=1e-4)
    assert (found.answer, found.p_yes_from, found.status) == (True, "logprob", "ok")


async def test_another_scale_is_asked_for_and_read() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return number({"2": 0.6, "0": 0.4})

    [found] = await evaluator(script, Judging(score_scale=(0, 6))).judge([EXAMPLE])
    assert found.p_yes == pytest.approx(1.2 / 6, abs=1e-4)
    assert found.answer is False
    assert "from 0 to 6" in asked[0].messages[-1][1]


async def test_a_question_of_the_output_alone_is_shown_nothing_else() -> None:
    questions = (QUESTION, Question(id="alone", text="Is it short?", sees="output"))
    asking = ExpectedScoreAsking(Prompt("Judge."), questions, False, 0.0, 42, (1, 5))
    whole, alone = (str(ask.messages) for ask in asking.asks("i", EXAMPLE, 0, 0))
    assert "Input:" in whole and "Input:" not in alone and "Output:" in alone and "from 1 to 5" in alone


async def test_the_middle_of_the_scale_is_a_yes() -> None:
    found = await verdict(number({"3": 0.9}))
    assert (found.p_yes, found.answer) == (0.5, True)


async def test_marks_and_blanks_before_the_number_are_passed_over() -> None:
    found = await verdict(number({"5": 0.9}, before=["▁", "**"]))
    assert found.p_yes == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        number({"The": 0.9, "It": 0.1}),
        number({"The": 0.95, "4": 0.05}),
        number({"7": 0.9}),
        number({"0": 0.9, "1": 0.05}),
        Answer("", ((" ", ()),)),
    ],
)
async def test_a_reply_that_is_hardly_a_number_of_the_scale_is_asked_again_and_then_a_parse_error(
    reply: Answer,
) -> None:
    found = await verdict(reply, reply)
    assert (found.status, found.answer, found.p_yes) == ("parse_error", None, None)
    assert says(found.error, "number", 1, 5)
    assert (await verdict(reply, number({"5": 0.9}))).p_yes == 1.0


async def test_an_endpoint_without_log_probabilities_is_refused_at_once_and_in_words() -> None:
    with pytest.raises(ModelError, match=naming("log-probabilities", "--scores soft", "hard")) as caught:
        await verdict(*["4"] * 3)
    assert caught.value.fatal


@pytest.mark.parametrize(
    ("judging", "message"),
    [
        ({"score_scale": (5, 1)}, "5 to 1"),
        ({"score_scale": (1, 11)}, "0 to 10"),
        ({"score_scale": (1, 10), "explain": "always"}, "without explanations"),
        ({"score_scale": (1, 5), "mode": "batched"}, "--mode batched"),
        ({"score_scale": (1, 5), "p_yes": "hard"}, "--p-yes hard"),
        ({"score_scale": (1, 5), "p_yes": "sampled", "samples": 3}, "--p-yes sampled"),
    ],
)
def test_what_does_not_go_with_expected_scores_is_refused(judging: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Judging(**judging)  # type: ignore[arg-type]


async def test_with_an_explanation_the_number_is_read_from_its_field() -> None:
    text = json.dumps({"score": 4, "explanation": "It has 5 words."})
    pieces = ['{"score": ', "4", ', "explanation": "It has ', "5", ' words."}']
    likely = {"4": (("4", log(0.5)), ("2", log(0.5))), "5": (("5", log(0.9)),)}
    answer = Answer(text, tuple((piece, likely.get(piece, ())) for piece in pieces))
    found = await verdict(answer, judging=Judging(score_scale=(1, 5), explain="always"))
    assert found.p_yes == pytest.approx(0.5)
    assert found.explanation == "It has 5 words."


@pytest.mark.parametrize("score", [6, "4", None, True, 3.5])
async def test_a_score_beside_the_scale_in_json_is_no_score(score: object) -> None:
    answer = Answer(json.dumps({"score": score, "explanation": "x"}), (("4", (("4", -0.1),)),))
    found = await verdict(answer, answer, judging=Judging(score_scale=(1, 5), explain="always"))
    assert found.status == "parse_error"


async def test_an_explanation_bought_later_goes_on_from_the_nearest_number() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return number({"4": 0.8, "5": 0.2}) if len(asked) == 1 else "It is clear."

    judge = evaluator(script)
    verdicts = await judge.judge([EXAMPLE])
    assert await judge.explain(verdicts, [EXAMPLE]) == {("e", "q"): "It is clear."}
    assert asked[1].messages[:2] == asked[0].messages
    assert asked[1].messages[2] == ("assistant", "4")


def test_the_question_is_shown_with_its_rubric_reference_and_violation() -> None:
    asking = ExpectedScoreAsking(Prompt("Judge."), (QUESTION,), False, 0.0, 42, (1, 5))
    [ask] = asking.asks("identity", EXAMPLE, 0, 0)
    for text in ("Is it clear?", "Rubric: 5: at once", "Reference answer: So it is.", "A riddle.", "from 1 to 5"):
        assert text in ask.messages[-1][1]
    assert ask.parameters.top_logprobs == 20
    assert ask.key == ask.request().key


def test_it_is_another_request_than_that_for_yes_or_no() -> None:
    by_scale = [
        next(ExpectedScoreAsking(Prompt("J"), (QUESTION,), False, 0.0, 42, scale).asks("i", EXAMPLE, 0, 0)).key
        for scale in ((1, 5), (0, 6))
    ]
    assert by_scale[0] != by_scale[1]


async def test_what_judging_would_take_is_known_before() -> None:
    judge = evaluator([number({"4": 0.9})])
    assert (judge.estimate([EXAMPLE]).calls, judge.estimate([EXAMPLE]).stored) == (1, 0)
    await judge.judge([EXAMPLE])
    assert (judge.estimate([EXAMPLE]).calls, judge.estimate([EXAMPLE]).stored) == (0, 1)


def tokens(*parts: tuple[str, dict[str, float]]) -> Answer:
    """A reply of several tokens, each with what it could have been."""
    logprobs = tuple((said, tuple((token, log(mass)) for token, mass in masses.items())) for said, masses in parts)
    return Answer("".join(said for said, _ in parts), logprobs)


@pytest.mark.parametrize(
    ("reply", "mean"),
    [
        (tokens(("10", {"10": 0.6, "1": 0.1, "8": 0.3})), 10 * 0.6 + 1 * 0.1 + 8 * 0.3),
        (tokens(("1", {"1": 0.7, "8": 0.3}), ("0", {"0": 0.9, ".": 0.1})), 10 * 0.63 + 1 * 0.07 + 8 * 0.3),
        (tokens(("1", {"1": 0.8, "2": 0.2}), (".", {".": 0.75, "0": 0.25})), 10 * 0.2 + 1 * 0.6 + 2 * 0.2),
        (tokens(("1", {"1": 0.8, "2": 0.2})), 1 * 0.8 + 2 * 0.2),
        (tokens(("8", {"8": 0.9, "9": 0.1})), 8 * 0.9 + 9 * 0.1),
    ],
)
async def test_a_10_of_one_token_or_two_counts_as_10(reply: Answer, mean: float) -> None:
    found = await verdict(reply, judging=Judging(score_scale=(1, 10), explain="never"))
    assert found.p_yes == pytest.approx((mean - 1) / 9, abs=1e-4)


async def test_a_1_that_may_have_become_10_is_no_score() -> None:
    reply = tokens(("8", {"8": 0.7, "1": 0.3}))
    found = await verdict(reply, reply, judging=Judging(score_scale=(1, 10), explain="never"))
    assert (found.p_yes, found.answer) == (None, None)
    assert "cannot be told" in (found.error or "")
