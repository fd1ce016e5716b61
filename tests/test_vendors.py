"""The stand-ins for vendors keep the vendors' rules, and refuse in their words."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles import VendorServer

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Is it? Answer with one word: yes or no."}]}
CLAUDE = {**CHAT, "max_tokens": 4000}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Is it? Answer with one word: yes or no."}]}]}
OPENAI, VLLM, AZURE = (
    "/v1/chat/completions",
    "/vllm/v1/chat/completions",
    "/openai/deployments/prod-judge/chat/completions",
)
ANTHROPIC, GOOGLE, OLLAMA = "/v1/messages", "/v1beta/models/gemini-2.5-pro:generateContent", "/api/chat"
OPENROUTER = "/openrouter/api/v1/chat/completions"
AZURE_NOW = f"{AZURE}?api-version=2025-04-01-preview"


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as server:
        yield server


def post(server: VendorServer, path: str, body: Any) -> tuple[int, Any]:
    asked = urllib.request.Request(server.root + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (OPENAI, {**CHAT, "thinking": 1}, 400, "Unrecognized request argument supplied: thinking"),
        (OPENAI, {**CHAT, "max_tokens": 9}, 400, "Use 'max_completion_tokens' instead."),
        (OPENAI, {**CHAT, "temperature": 0.7}, 400, "'temperature' does not support 0.7 with this model"),
        (OPENAI, {**CHAT, "logprobs": True}, 403, "You are not allowed to request logprobs"),
        (OPENAI, {**CHAT, "reasoning_effort": "none"}, 400, "'reasoning_effort' does not support 'none'"),
        ("/v1/responses", {"model": "m", "input": "x", "max_output_tokens": 1}, 400, "Expected a value >= 16"),
        (VLLM, {**CHAT, "thinking": 1}, 400, "extra_forbidden"),
        (VLLM, {**CHAT, "top_logprobs": 21}, 400, "greater than max allowed: 20"),
        (AZURE, CHAT, 404, "Resource not found"),
        (AZURE_NOW.replace("prod-judge", "other"), CHAT, 404, "DeploymentNotFound"),
        (ANTHROPIC, CHAT, 400, "max_tokens: Field required"),
        (ANTHROPIC, {**CLAUDE, "seed": 1}, 400, "seed: Extra inputs are not permitted"),
        (ANTHROPIC, {**CLAUDE, **THINKING, "temperature": 0}, 400, "may only be set to 1 when thinking is enabled"),
        (ANTHROPIC, {**CLAUDE, **THINKING, "max_tokens": 1024}, 400, "must be greater than `thinking.budget_tokens`"),
        (ANTHROPIC, {**CLAUDE, "thinking": {"type": "enabled", "budget_tokens": 9}}, 400, "equal to 1024"),
        (GOOGLE, {**GEMINI, "seed": 1}, 400, 'Unknown name \\"seed\\"'),
        (GOOGLE, {**GEMINI, "generationConfig": {"responseLogprobs": True}}, 400, "Logprobs is not enabled"),
        (GOOGLE, {**GEMINI, "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, 400, "Budget 0 is invalid"),
        (
            GOOGLE,
            {**GEMINI, "generation_config": {"response_schema": {"additionalProperties": False}}},
            400,
            "Unknown name \\\"additionalProperties\\\" at 'generation_config.response_schema'",
        ),
        (OLLAMA, {**CHAT, "model": "gemma3", "think": True}, 400, "does not support thinking"),
        (OPENROUTER, {**CHAT, "max_tokens": 1}, 400, "integer_below_min_value"),
        (OPENROUTER, {**CHAT, "reasoning": {"effort": "low", "max_tokens": 9}}, 400, "Only one of"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_the_vendors_words(
    path: str, body: Any, status: int, said: str, server: VendorServer
) -> None:
    found, reply = post(server, path, body)
    assert (found, said in json.dumps(reply)) == (status, True), reply


@pytest.mark.parametrize(
    ("path", "body", "cap"),
    [
        (OPENAI, CHAT, "max_completion_tokens"),
        (VLLM, CHAT, "max_tokens"),
        (AZURE_NOW, CHAT, "max_completion_tokens"),
        (ANTHROPIC, {**CLAUDE, **THINKING}, None),
        (GOOGLE, GEMINI, "generationConfig"),
        (OLLAMA, CHAT, "options"),
    ],
)
def test_thinking_is_taken_out_of_the_cap_and_an_answer_comes_after_it(
    path: str, body: Any, cap: str | None, server: VendorServer
) -> None:
    def of(tokens: int) -> Any:
        names = {"generationConfig": "maxOutputTokens", "options": "num_predict"}
        return {} if cap is None else {cap: {names[cap]: tokens} if cap in names else tokens}

    status, reply = post(server, path, {**body, **of(4000)})
    assert status == 200
    assert '"Yes"' in json.dumps(reply) or '"No"' in json.dumps(reply)
    if cap is not None:
        status, reply = post(server, path, {**body, **of(20)})
        assert status == 200
        assert not {'"Yes"', '"No"'} & {part for part in ('"Yes"', '"No"') if part in json.dumps(reply)}
        assert any(word in json.dumps(reply) for word in ('"length"', '"MAX_TOKENS"'))


def test_openrouter_sends_some_errors_inside_200() -> None:
    with VendorServer() as server:
        replies = [post(server, OPENROUTER, CHAT) for _ in range(4)]
    assert [status for status, _ in replies] == [200] * 4
    assert [reply.get("error", {}).get("code") for _, reply in replies] == [None, None, 429, None]
