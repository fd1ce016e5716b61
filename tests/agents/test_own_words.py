from __future__ import annotations

import pytest

from askance.agents.evaluator import Evaluator
from askance.agents.judging import Judging
from askance.agents.own_words import own_checklist
from askance.memory.verdict_store import VerdictStore
from askance.models.base import Answer
from askance.models.gateway import Gateway, RetryPolicy
from askance.models.replies.own_formats import parse_reads
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from askance.testing import Reply, ScriptedModel

PROMPT = Prompt('Text: {input}\nSummary: {output}\nRespond with JSON {"score": 1-5, "reason": "..."}')
EXAMPLE = Example(id="e", input="A red lamp.", output="A {lamp}.")


def judge(*replies: Reply, reads: str = "json:score 1-5", prompt: Prompt = PROMPT) -> tuple[Evaluator, ScriptedModel]:
    model = ScriptedModel(replies, slots=1)
    gateway = Gateway(VerdictStore(":memory:"), retry=RetryPolicy(attempts=1))
    judging = Judging(reads=parse_reads(reads))
    return Evaluator(gateway, model, prompt, own_checklist(parse_reads(reads)), judging), model


async def said(*replies: Reply, reads: str = "json:score 1-5") -> Verdict:
    [found] = await judge(*replies, reads=reads)[0].judge([EXAMPLE])
    return found


async def test_the_prompt_is_asked_as_it_stands_with_room_for_a_reason() -> None:
    asked, model = judge('{"score": 4, "reason": "No colour."}')
    await asked.judge([EXAMPLE])
    [request] = model.requests
    text = 'Text: A red lamp.\nSummary: A {lamp}.\nRespond with JSON {"score": 1-5, "reason": "..."}'
    assert request.messages == (("user", text),)
    parameters = request.parameters
    assert (parameters.schema, parameters.top_logprobs, parameters.max_tokens) == (None, 0, 1000)


async def test_a_prompt_without_placeholders_is_the_system_message() -> None:
    asked, model = judge("4", reads="score 1-5", prompt=Prompt("Score the output from 1 to 5."))
    await asked.judge([EXAMPLE])
    (role, system), (other, example) = model.requests[0].messages
    assert (role, system, other) == ("system", "Score the output from 1 to 5.", "user")
    assert "A red lamp." in example and "A {lamp}." in example and "question" not in example.lower()


async def test_the_verdict_has_the_score_its_place_on_the_scale_and_the_reason() -> None:
    found = await said('{"score": 4, "reason": "No colour."}')
    assert (found.question, found.value, found.p_yes, found.p_yes_from) == ("score", 4.0, 0.75, "stated")
    assert (found.answer, found.explanation, found.status) == (True, "No colour.", "ok")
    low = await said('{"score": 1, "reason": ""}')
    assert (low.value, low.p_yes, low.answer, low.explanation) == (1.0, 0.0, False, None)


@pytest.mark.parametrize(
    "reply",
    ["It is good.", '{"score": 6}', '{"reason": "so"}', Answer('{"reason": "because it', finish="length"), "Score: 4"],
)
async def test_a_reply_without_a_readable_score_is_a_parse_error_and_nobody_is_asked_again(reply: Reply) -> None:
    asked, model = judge(reply)
    [found] = await asked.judge([EXAMPLE])
    assert (found.status, found.answer, found.p_yes, found.value) == ("parse_error", None, None, None)
    assert found.error and len(model.requests) == 1


async def test_a_reply_that_was_cut_off_behind_its_score_counts() -> None:
    found = await said(Answer('{"score": 2, "reason": "because it', finish="length"))
    assert (found.value, found.status) == (2.0, "ok")


async def test_an_unreadable_reply_is_not_kept_and_a_readable_one_is() -> None:
    asked, model = judge("nothing", '{"score": 5}')
    assert [(await asked.judge([EXAMPLE]))[0].status for _ in range(3)] == ["parse_error", "ok", "ok"]
    assert len(model.requests) == 2


async def test_another_form_reads_the_same_reply_without_another_call() -> None:
    asked, model = judge("Rating: 4")
    asked.judging = Judging(reads=parse_reads("score 1-5"))
    other = Evaluator(
        asked.gateway, model, PROMPT, asked.checklist, Judging(reads=parse_reads(r"pattern:Rating: (\d+) 0-8"))
    )
    values = [(await each.judge([EXAMPLE]))[0].p_yes for each in (asked, other)]
    assert values == [0.75, 0.5] and len(model.requests) == 1


async def test_a_bare_score_is_explained_by_a_further_question() -> None:
    asked, model = judge("4", "The colour is missing.", reads="score 1-5")
    verdicts = await asked.judge([EXAMPLE])
    assert await asked.explain(verdicts, [EXAMPLE]) == {("e", "score"): "The colour is missing."}
    assert model.requests[1].messages[1] == ("assistant", "4")


def test_its_one_question_says_what_yes_means() -> None:
    texts = {
        form: own_checklist(parse_reads(form)).questions[0].text
        for form in ("score 1-5", "score 5-1", "labels Bad,Fair,Good")
    }
    ends = {
        "score 1-5": "(is its score 3 or more)?",
        "score 5-1": "3 or less)?",
        "labels Bad,Fair,Good": "Fair or Good)?",
    }
    assert all(texts[form].endswith(end) for form, end in ends.items())
