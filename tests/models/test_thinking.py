"""What marks thinking in a reply, and how a model is told to think."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from askance.models.base import Parameters, make_request
from askance.models.direct import DirectModel
from askance.models.gateway import Gateway
from askance.models.replies.thoughts import after_thinking, thinks_apart
from askance.models.request_form import ThinkingFields, direct_forms, litellm_forms
from askance.models.thinking_room import first_room, tokens_thought
from askance.prompts.errors import InputError
from askance.testing import StandInServer, completion
from tests.said import naming, says

OPENAI = "https://api.openai.com/v1"
OF_TEMPERATURE = "`temperature` may only be set to 1 when thinking is enabled."

HARMONY = "<|channel|>analysis<|message|>No, it … no<|end|><|start|>assistant<|channel|>final<|message|>"
THOUGHT = {
    "a tag": "<think>No, no</think>Yes",
    "a tag on lines of its own": "\n<think>\nNo\n</think>\n\nYes",
    "an empty thought": "<think>\n\n</think>\n\nYes",
    "two thoughts": "<think>No</think>\n<think>no again</think>\nYes",
    "thinking": "<thinking>No</thinking>\nYes",
    "upper case": "<THINKING>No</THINKING>\nYes",
    "Magistral": "[THINK]No[/THINK]Yes",
    "Seed-OSS": "<seed:think>No</seed:think>Yes",
    "Kimi": "◁think▷No◁/think▷Yes",
    "Command A": "<|START_THINKING|>No<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>",
    "harmony": f"{HARMONY}Yes<|return|>",
    "harmony from its start": f"<|start|>assistant{HARMONY}Yes",
    "harmony without special tokens": "analysisWe see no sign. assistantfinalYes",
    "harmony without a thought": "<|channel|>final<|message|>Yes",
    "an end alone, on a line of its own": "No wait\n</think>\n\nYes",
    "an end alone, in the middle of a line": "so it is no, or no.</think> Yes",
    "an end alone of another tag": "no …[/THINK]Yes",
    "a thought that quotes the end": "<think>The text has '</think>' in it, so no</think>Yes",
}
CUT_OFF = [
    "<think>",
    "<think>No, it",
    "[THINK] no",
    "<|channel|>analysis<|message|>No",
    "analysisWe see no",
    "<thinking>\nNo",
]


@pytest.mark.parametrize("name", THOUGHT)
def test_what_was_thought_is_never_the_answer(name: str) -> None:
    text = THOUGHT[name]
    found, _ = after_thinking(text, None, apart=False)
    assert found.strip() == "Yes"
    assert tokens_thought({"completion_tokens": 20}, text, found, apart=False) >= 1


@pytest.mark.parametrize("text", CUT_OFF)
def test_a_thought_that_was_cut_off_leaves_no_answer(text: str) -> None:
    assert after_thinking(text, None, apart=False) == ("", None)
    assert tokens_thought({"completion_tokens": 20}, text, "", apart=False) == 20


@pytest.mark.parametrize(
    "text",
    [
        "Models write `<think>` first and `</think>` last.",
        "The tag </think> ends a thought.",
        "It ends with </think>, as a rule.",
        "Use it so:\n```\nwhy\n</think>\nanswer\n```\nThat is all.",
        "Write <think> and then </think>\nand the answer.",
        "An example:\n\n<think>\nwhy\n</think>\n\nYes",
        "Magistral writes [THINK] and [/THINK].",
        "analysis of the text: assistantfinal is a word",
        "The channel <|channel|>analysis<|message|> is for thoughts.",
    ],
)
def test_nothing_is_cut_out_of_a_text_that_speaks_of_tags(text: str) -> None:
    assert after_thinking(text, None, apart=False, free=True) == (text, None)


@pytest.mark.parametrize(
    "text",
    ["<think>why</think>\n\nDear Sir", "why not.</think>\n\nDear Sir", "why\n</think>\nDear Sir", f"{HARMONY}Dear Sir"],
)
def test_a_free_text_that_begins_with_a_thought_is_cut(text: str) -> None:
    assert after_thinking(text, None, apart=False, free=True)[0] == "Dear Sir"


def test_a_tag_in_a_text_of_a_record_is_quoted() -> None:
    text = '{"answer": "yes", "explanation": "it ends with </think> here"}'
    assert after_thinking(text, None, apart=False)[0] == text
    assert after_thinking(f"<think>no</think>{text}", None, apart=False)[0] == text


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Yes", "reasoning_content": "No"},
        {"content": "Yes", "reasoning": "No"},
        {"content": "Yes", "thinking_blocks": [{"type": "thinking", "thinking": "No"}]},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "No"}]},
                {"type": "text", "text": "Yes"},
            ]
        },
        {"content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Yes"}]},
        {"content": [{"type": "reasoning", "text": "No"}, {"type": "text", "text": "Yes"}]},
    ],
)
async def test_what_was_thought_beside_the_answer_is_none_of_it(message: Mapping[str, Any]) -> None:
    assert thinks_apart(message)
    usage = {"prompt_tokens": 1, "completion_tokens": 50}
    with StandInServer(lambda body: (200, {"choices": [{"message": message}], "usage": usage})) as server:
        model = DirectModel("openai/m", "m", server.url, identity="i")
        found = await model.answer(make_request("i", [("user", "x")], Parameters(8)))
        await model.close()
    assert (found.text, found.reasoning_tokens) == ("Yes", 49)


@pytest.mark.parametrize(
    "message", [{"content": "Yes"}, {"content": "Yes", "reasoning_content": ""}, {"content": None}]
)
def test_a_message_without_a_thought_has_none_beside_it(message: Mapping[str, Any]) -> None:
    assert not thinks_apart(message)


# --- how it is sent ----------------------------------------------------------------------------------------------------


def refuses(*fields: str, value: str | None = None) -> Any:
    """A server that takes none of these fields; of ``reasoning_effort`` perhaps one value alone."""

    def script(body: Mapping[str, Any]) -> Any:
        for field in fields:
            if field in body and body[field] != value:
                said = f"Unsupported value: '{field}' does not support '{body[field]}' with this model."
                return 400, {"error": {"message": said, "param": field, "code": "unsupported_value"}}
        return 200, completion(body, "Yes")

    return script


async def sent(script: Any, thinking: Any) -> tuple[list[Mapping[str, Any]], list[str]]:
    said: list[str] = []
    with StandInServer(script) as server:
        model = DirectModel(
            "openai/m",
            "m",
            server.url,
            identity="i",
            thinking=ThinkingFields("m", thinking, direct_forms(thinking, server.url)),
        )
        gateway = Gateway()
        gateway.on_notice = said.append
        try:
            for text in ("x", "y"):
                await gateway.ask("judge", model, make_request("i", [("user", text)], Parameters(8)))
        finally:
            await model.close()
    return server.bodies, said


async def test_auto_sends_nothing() -> None:
    bodies, said = await sent(refuses("reasoning_effort", "chat_template_kwargs"), "auto")
    assert all(body.keys() == {"model", "messages", "max_tokens", "temperature"} for body in bodies)
    assert not said


async def test_off_is_sent_in_the_form_that_the_server_takes() -> None:
    bodies, said = await sent(refuses("reasoning_effort"), "off")
    assert bodies[-1]["chat_template_kwargs"] == {"enable_thinking": False}
    assert "reasoning_effort" not in bodies[-1]
    assert len(bodies) == 3
    assert not said


async def test_off_goes_on_and_says_so_where_it_is_refused() -> None:
    bodies, said = await sent(refuses("reasoning_effort", "chat_template_kwargs", value="low"), "off")
    assert bodies[-1]["reasoning_effort"] == "low"
    assert len(said) == 1
    assert says(said[0], "as little")
    bodies, said = await sent(refuses("reasoning_effort", "chat_template_kwargs"), "off")
    assert "reasoning_effort" not in bodies[-1]
    assert len(said) == 1
    assert says(said[0], "without") and not says(said[0], "as little")


@pytest.mark.parametrize("thinking", ["minimal", "low", "medium", "high", 500])
async def test_an_explicit_effort_that_is_refused_ends_at_the_first_reply(thinking: Any) -> None:
    fields = ("reasoning_effort", "chat_template_kwargs", "thinking_token_budget", "thinking_budget")
    with pytest.raises(InputError, match=naming(f"thinking {thinking}", "refused")) as error:
        await sent(refuses(*fields), thinking)
    assert error.value.exit_code == 2


async def test_an_effort_is_sent_without_what_a_server_does_not_know() -> None:
    bodies, _ = await sent(refuses("chat_template_kwargs"), "low")
    assert [(body.get("reasoning_effort"), "chat_template_kwargs" in body) for body in bodies] == [
        ("low", True),
        ("low", False),
        ("low", False),
    ]


def test_each_provider_is_told_in_its_own_way() -> None:
    assert direct_forms("low", OPENAI) == [{"reasoning_effort": "low"}]
    assert direct_forms("off", OPENAI)[0] == {"reasoning_effort": "none"}
    assert direct_forms("low", "https://openrouter.ai/api/v1") == [{"reasoning": {"effort": "low"}}]
    assert direct_forms(500, "https://openrouter.ai/api/v1") == [{"reasoning": {"max_tokens": 500}}]
    assert direct_forms("off", "https://openrouter.ai/api/v1")[0] == {"reasoning": {"enabled": False}}
    own = direct_forms("off", "http://127.0.0.1:8000/v1")[0]
    assert own == {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "none"}
    assert litellm_forms("high", "anthropic/claude-sonnet-4-5") == [{"reasoning_effort": "high"}]
    assert litellm_forms(2000, "gemini/gemini-2.5-pro") == [{"thinking": {"type": "enabled", "budget_tokens": 2000}}]
    assert litellm_forms("low", "openrouter/openai/gpt-5") == [{"extra_body": {"reasoning": {"effort": "low"}}}]
    assert direct_forms("auto", "http://x/v1") == litellm_forms("auto", "azure/x") == []


def test_an_error_about_something_else_is_no_refusal_of_thinking() -> None:
    fields = ThinkingFields("m", "low", [{"reasoning_effort": "low"}])
    assert not fields.is_refused(400, OF_TEMPERATURE, "", 0)
    assert not fields.is_refused(429, "Too many requests: your budget of reasoning tokens a minute", "", 0)
    assert not fields.is_refused(400, "The messages are empty.", "", 0)


@pytest.mark.parametrize(
    ("thinking", "given", "room"),
    [
        ("auto", False, 0),
        ("off", False, 0),
        ("auto", True, 2_000),
        ("low", False, 2_000),
        ("medium", False, 8_000),
        (5_000, False, 8_000),
    ],
)
def test_the_first_call_has_room_where_somebody_said_that_the_model_thinks(
    thinking: Any, given: bool, room: int
) -> None:
    assert first_room(thinking, (2_000, 8_000, 32_000), given=given) == room
