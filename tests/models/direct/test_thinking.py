"""What a model thinks before it answers is no part of its answer, wherever a server puts it."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import pytest

import askance
from askance.models.base import Answer, ModelError
from askance.models.replies.thoughts import after_thinking
from askance.prompts.checklist import Checklist, Question
from askance.testing import StandInServer
from tests.said import naming

from .conftest import FULL, ask_server

SURE = {"Yes": 0.9, "No": 0.1}
UNSURE = {"No": 0.8, "Yes": 0.2}
THOUGHT = ["<think>", "\n", "No", ",", ' {"', "answer", '":', ' "', "no", '"', "\n", "</think>", "\n\n"]


def tokens(texts: list[str], last: Mapping[str, float] = SURE) -> dict[str, Any]:
    """Log-probabilities in which every token was sure of itself or of No, but for the last one."""

    def entry(text: str, likely: Mapping[str, float]) -> dict[str, Any]:
        top = [{"token": token, "logprob": log(share)} for token, share in likely.items()]
        return {"token": text, "logprob": 0.0, "top_logprobs": top}

    return {"content": [*(entry(each, {each: 0.2, **UNSURE}) for each in texts[:-1]), entry(texts[-1], last)]}


def served(texts: list[str], message: Mapping[str, Any], **more: Any) -> tuple[int, Any]:
    """A reply of these tokens."""
    return 200, {"choices": [{"message": message, "logprobs": tokens(texts), **more}]}


REPLIES = {
    "in the text": ([*THOUGHT, "Yes"], {"content": "".join(THOUGHT) + "Yes"}),
    "begun by the server's template": (
        ["No", " wait", "\n", "</think>", "\n\n", "Yes"],
        {"content": "No wait\n</think>\n\nYes"},
    ),
    "none at all": (["<think>", "\n\n", "</think>", "\n\n", "Yes"], {"content": "<think>\n\n</think>\n\nYes"}),
    "reasoning_content": ([*THOUGHT, "Yes"], {"content": "\n\nYes", "reasoning_content": "No, …"}),
    "reasoning": (["No", "<|end|>", "<|final|>", " Yes"], {"content": "Yes", "reasoning": "No"}),
    "log-probabilities of the answer alone": (["Yes"], {"content": "Yes", "reasoning_content": "No"}),
}


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"completion_tokens": 120, "completion_tokens_details": {"reasoning_tokens": 100}}, 100),
        ({"completion_tokens": 120}, 0),
        ({"completion_tokens": 120, "completion_tokens_details": None}, 0),
        ({"completion_tokens": 120, "completion_tokens_details": {"reasoning_tokens": None}}, 0),
        ({"completion_tokens": 120, "completion_tokens_details": [1]}, 0),
        ({"completion_tokens": 120, "completion_tokens_details": {"reasoning_tokens": -5}}, 0),
    ],
)
async def test_an_answer_says_how_many_tokens_were_thought(usage: Mapping[str, Any], tokens: int) -> None:
    choices = [{"message": {"content": "Yes"}}]
    found, _ = await ask_server(lambda body: (200, {"choices": choices, "usage": usage}), FULL)
    assert isinstance(found, Answer)
    assert (found.completion_tokens, found.reasoning_tokens) == (120, tokens)


@pytest.mark.parametrize("name", REPLIES)
async def test_an_answer_is_read_after_the_thinking(name: str) -> None:
    texts, message = REPLIES[name]
    found, _ = await ask_server(lambda body: served(texts, message), FULL)
    assert isinstance(found, Answer)
    assert (found.text.strip(), len(found.logprobs or ())) == ("Yes", 1)
    assert found.logprobs is not None
    assert dict(found.logprobs[0][1])["Yes"] == pytest.approx(log(0.9), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "apart"),
    [("<think>", False), ("<think>\nYes, it does", False), (" <think>No</think>\n", False), ("", True)],
)
def test_thinking_without_an_answer_says_nothing(text: str, apart: bool) -> None:
    assert Answer(*after_thinking(text, ((text or "Yes", (("Yes", -0.1),)),), apart=apart)).is_empty


def test_log_probabilities_that_are_not_the_answer_s_are_none() -> None:
    assert after_thinking("Yes", (("No", (("No", -0.1),)),), apart=True) == ("Yes", None)


@pytest.mark.parametrize(
    "text",
    ["Yes", '{"answer": "no", "explanation": "It says </think>."}', "It shows:\n<think>\nhm\n</think>\nand ends."],
)
def test_a_text_that_speaks_of_thinking_is_whole(text: str) -> None:
    logprobs = ((text, ((text, 0.0),)),)
    assert after_thinking(text, logprobs, apart=False) == (text, logprobs)


DATA = [{"id": "1", "input": "i", "output": "o"}]
CHECKLIST = Checklist(task="t", questions=(Question(id="q", text="Is it so?", dimension="d"),))


def evaluated(reply: Any, **settings: Any) -> Any:
    with StandInServer(lambda body: reply) as server:
        return askance.evaluate(
            DATA, checklist=CHECKLIST, model="openai/m", api_base=server.url, no_cache=True, retries=0, **settings
        )


def test_a_verdict_with_its_reason_is_read_after_the_thinking() -> None:
    """In which a brace stays open: the draft of an answer had been read in place of the answer."""
    answer = ['{"', "answer", '":', ' "', "yes"]
    texts = ["<think>", "Like {x or ", '{"', "answer", '":', ' "', "no", '"}', "</think>", *answer]
    message = {"content": '{"answer": "yes", "explanation": "e"}', "reasoning_content": "…"}
    reply = served(texts, message)
    rest = {"token": '", "explanation": "e"}', "logprob": 0.0, "top_logprobs": []}
    reply[1]["choices"][0]["logprobs"]["content"].append(rest)
    [verdict] = evaluated(reply, explain="always").verdicts
    assert (verdict.answer, verdict.p_yes_from) == (True, "logprob")
    assert verdict.p_yes == pytest.approx(0.9, abs=1e-4)


@pytest.mark.parametrize(
    "message",
    [{"content": "<think>"}, {"content": None, "reasoning_content": "No"}, {"content": "", "reasoning": "No"}],
)
def test_the_first_word_of_the_thinking_is_no_verdict(message: Any) -> None:
    reply = served(["No"], message, finish_reason="length")
    with pytest.raises(ModelError, match=naming("last step", "32,000")):
        evaluated(reply)
