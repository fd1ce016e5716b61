from __future__ import annotations

import re
from math import log

import pytest

from askance.agents.judging import Judging
from askance.agents.pairwise import PairEvaluator, ordered_examples, pair_id, pairwise_prompt
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer, Request
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.preferences import Preference
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

PAIR = Preference(id="p", input="Ask.", output_a="good words", output_b="bad words", preferred="a")
CHECKLIST = Checklist(questions=[Question(id="q", text="Is it clear?", rubric="R", reference="Ref")])


def choice(first: float, said: str = "") -> Answer:
    likely = (("1", round(log(first), 4)), ("2", round(log(1 - first), 4)))
    said = said or ("1" if first >= 0.5 else "2")
    return Answer(said, ((said, likely),))


def prefers_good(request: Request) -> Answer:
    """Prefers the good words with 0.8, and whatever comes first a little."""
    text = request.messages[-1][1]
    good_first = text.index("good words") < text.index("bad words")
    return choice(0.85 if good_first else 0.25)


async def judge(script: object, *, swap: bool = True, prompt: Prompt | None = None, **judging: object) -> list[Verdict]:
    gateway = Gateway(VerdictStore(":memory:"), retry=RetryPolicy(attempts=1))
    model = ScriptedModel(script, slots=1)  # type: ignore[arg-type]
    settings = Judging(**judging)  # type: ignore[arg-type]
    evaluator = PairEvaluator(gateway, model, prompt or pairwise_prompt(), CHECKLIST, settings)
    return await evaluator.judge(ordered_examples(PAIR, swap=swap))


async def test_each_order_is_judged_and_says_how_likely_the_first_is_better() -> None:
    verdicts = await judge(prefers_good)
    assert [verdict.example for verdict in verdicts] == [pair_id("p", "ab"), pair_id("p", "ba")]
    assert [verdict.p_yes for verdict in verdicts] == pytest.approx([0.85, 0.25], abs=1e-4)
    assert [verdict.answer for verdict in verdicts] == [True, False]
    assert {verdict.p_yes_from for verdict in verdicts} == {"logprob"}
    assert len(await judge(prefers_good, swap=False)) == 1


async def test_the_judge_sees_the_input_both_outputs_and_the_whole_question() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return choice(0.5)

    await judge(script)
    [(role, text)] = asked[0].messages
    assert role == "user"
    order = ["Ask.", "Output 1", "good words", "Output 2", "bad words", "Is it clear?", "Rubric: R", "Ref", "1 or 2"]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert len(re.findall(r"<\w+>", text)) == 3


async def test_a_question_of_the_outputs_alone_is_not_shown_the_input() -> None:
    questions = (*CHECKLIST.questions, Question(id="alone", text="Is it short?", sees="output"))
    model = ScriptedModel(lambda _: choice(0.5), slots=1)
    gateway = Gateway(VerdictStore(":memory:"), retry=RetryPolicy(attempts=1))
    checklist = Checklist(questions=questions)
    verdicts = await PairEvaluator(gateway, model, pairwise_prompt(), checklist, Judging(p_yes="logprob")).judge(
        ordered_examples(PAIR, swap=False)
    )
    assert [verdict.question for verdict in verdicts] == ["q", "alone"]
    shown = {"Is it short?" in (text := request.messages[-1][1]): text for request in model.requests}
    assert "Ask." in shown[False] and "Ask." not in shown[True]
    assert all(each in shown[True] for each in ("Output 1", "good words", "Output 2", "bad words"))


async def test_without_log_probabilities_the_number_that_was_said_counts() -> None:
    verdicts = await judge(["2.", "2.", "1"], swap=True)
    assert [(verdict.p_yes, verdict.p_yes_from) for verdict in verdicts] == [(0.0, "hard"), (1.0, "hard")]


async def test_choices_can_be_counted_from_samples() -> None:
    verdicts = await judge(["1", "2", "1", "1"], swap=False, p_yes="sampled", samples=4)
    assert [(verdict.p_yes, verdict.p_yes_from) for verdict in verdicts] == [(0.75, "sampled")]


@pytest.mark.parametrize("reply", [Answer("A", (("A", (("A", -0.1), ("1", -4.0))),)), Answer("x", ((" ", ()),))])
async def test_a_reply_that_chooses_neither_is_a_parse_error(reply: Answer) -> None:
    verdicts = await judge([reply] * 2, swap=False)
    assert (verdicts[0].status, verdicts[0].p_yes) == ("parse_error", None)
    assert "neither 1 nor 2" in (verdicts[0].error or "")


async def test_a_word_that_chooses_neither_is_a_parse_error() -> None:
    verdicts = await judge(["Both", "3"], swap=False, p_yes="hard")
    assert verdicts[0].status == "parse_error"


@pytest.mark.parametrize("judging", [{"mode": "batched"}, {"explain": "always"}, {"score_scale": (1, 5)}])
async def test_what_does_not_go_with_comparing_is_refused(judging: dict[str, object]) -> None:
    with pytest.raises(InputError, match="Comparing two outputs"):
        await judge(prefers_good, **judging)


async def test_a_prompt_without_placeholders_takes_the_place_of_our_own() -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return choice(0.5)

    await judge(script, prompt=Prompt("Prefer brevity {{always}}."))
    assert "Prefer brevity {always}." in asked[0].messages[0][1]
    with pytest.raises(InputError, match="without placeholders"):
        await judge(script, prompt=Prompt("{output}"))
