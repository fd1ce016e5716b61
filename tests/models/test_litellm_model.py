"""The real LiteLLM against a stand-in server; skipped where the extra `providers` is not installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from math import log
from types import SimpleNamespace
from typing import Any

import pytest

from askance.models import budget as prices
from askance.models.base import Answer, ModelError, Parameters, make_request
from askance.models.budget import highest_cost
from askance.models.gateway import Gateway
from askance.models.litellm_model import LiteLLMModel
from askance.models.named import read_named
from askance.models.resolve import Models
from askance.prompts.errors import AskanceError, InputError, MissingExtraError
from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt, generator_messages
from askance.testing import StandInServer, completion
from tests.doubles import VendorServer
from tests.said import naming, says

KEY = "sk-very-secret-0123456789"
A_FEW = Parameters(8)
FULL = Parameters(9, 0.0, 7, 5, {"type": "object", "properties": {}, "additionalProperties": False})
REQUEST = make_request("i", [("system", "s"), ("user", "q" * 4000)], Parameters(10))
needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason="litellm is not installed (the extra 'providers')"
)
Script = Callable[[Mapping[str, Any]], Any]
Ask = Callable[..., Any]


class StandInPackage:
    """In place of LiteLLM; knows of every model nothing."""

    BadRequestError = ValueError

    def __getattr__(self, name: str) -> Any:
        return lambda **_: ()


def refused(status: int, said: str) -> Exception:
    """An error as LiteLLM raises them."""
    error = RuntimeError(said)
    error.status_code = status  # type: ignore[attr-defined]
    return error


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a model at a stand-in server; an error comes back as a value."""

    async def ask(script: Script, parameters: Parameters = FULL, *, name: str = "hosted_vllm/m", times: int = 1) -> Any:
        with StandInServer(script) as server:
            for provider in ("HOSTED_VLLM", "LITELLM_PROXY"):
                monkeypatch.setenv(f"{provider}_API_BASE", server.url)
                monkeypatch.setenv(f"{provider}_API_KEY", KEY)
            model = LiteLLMModel(name, timeout=0.5)
            request = make_request("i", [("system", "s"), ("user", "q")], parameters)
            found: Answer | ModelError
            for _ in range(times):
                try:
                    found = await model.answer(request)
                except ModelError as error:
                    found = error
            return found, server

    return ask


@needs_litellm
async def test_everything_asked_for_goes_along_and_comes_back(serve: Ask) -> None:
    found, server = await serve(lambda body: 0.9)
    body = server.bodies[0]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 9, 0.0, 7)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert body["response_format"]["json_schema"]["schema"] == FULL.schema
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert found.text == "Yes"
    assert found.logprobs == (("Yes", (("Yes", round(log(0.9), 4)), ("No", round(log(0.1), 4)))),)
    assert found.finish == "stop"


@needs_litellm
async def test_what_is_not_asked_for_is_not_sent(serve: Ask) -> None:
    found, server = await serve(lambda body: "words", Parameters(9))
    assert not {"seed", "logprobs", "top_logprobs", "response_format"} & set(server.bodies[0])
    assert found.logprobs is None


@needs_litellm
async def test_what_a_model_thought_before_its_answer_is_no_part_of_it(serve: Ask) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        top = [{"token": "No", "logprob": -0.2}, {"token": "Yes", "logprob": -1.7}]
        content = [{"token": token, "logprob": -0.2, "top_logprobs": top} for token in ("No", "</think>", "Yes")]
        message = {"role": "assistant", "content": "Yes", "reasoning_content": "No"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}]
        return 200, {"id": "1", "object": "chat.completion", "choices": choices}

    found, _ = await serve(script)
    assert (found.text, [token for token, _ in found.logprobs]) == ("Yes", ["Yes"])


@needs_litellm
async def test_usage_and_cost_come_through(serve: Ask) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        message = {"role": "assistant", "content": "x"}
        choices = [{"index": 0, "message": message, "finish_reason": "length"}]
        return 200, {"id": "1", "object": "chat.completion", "choices": choices, "usage": usage}

    found, _ = await serve(script, name="litellm_proxy/gpt-4o-mini")
    assert (found.prompt_tokens, found.completion_tokens, found.finish) == (1000, 100, "length")
    assert found.cost_usd == pytest.approx(1000 * 0.15e-6 + 100 * 0.6e-6)
    unpriced, _ = await serve(script)
    assert unpriced.cost_usd is None


@needs_litellm
def test_the_highest_cost_of_a_call_is_known_before_it_is_made() -> None:
    assert highest_cost(LiteLLMModel("litellm_proxy/gpt-4o-mini"), REQUEST) == pytest.approx(
        1001 * 0.15e-6 + 10 * 0.6e-6
    )
    assert highest_cost(LiteLLMModel("hosted_vllm/m"), REQUEST) == 0


@needs_litellm
@pytest.mark.parametrize(
    ("reply", "status", "retry", "fatal"),
    [
        ((400, {"error": {"message": "too long"}}), 400, False, False),
        ((401, {"error": {"message": f"bad key {KEY}"}}), 401, False, True),
        ((402, {"error": {"message": "no credit"}}), 402, False, True),
        ((404, {"error": {"message": "no model m"}}), 404, False, True),
        ((429, {"error": {"message": f"slow down {KEY}"}}), 429, True, False),
        ((500, f"oops {KEY}"), 500, True, False),
        ((503, "busy"), 503, True, False),
        ((200, "prose"), 200, False, False),
    ],
)
async def test_each_failure_is_a_model_error_without_the_key(
    serve: Ask, reply: Any, status: int, retry: bool, fatal: bool
) -> None:
    error, server = await serve(lambda body: reply)
    assert isinstance(error, ModelError)
    assert (error.status, error.retry, error.fatal) == (status, retry, fatal)
    assert str(error).startswith("hosted_vllm/m: ")
    assert "\n" not in str(error)
    assert KEY not in repr(error)
    assert error.__context__ is error.__cause__ is None
    assert len(server.bodies) == 1


async def test_the_reason_is_given_also_where_it_is_not_in_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Google's errors are: an object, a field a line."""
    reply = json.dumps({"error": {"code": 400, "message": "The prompt is too long."}}, indent=2)

    class Package(StandInPackage):
        @staticmethod
        async def acompletion(**_: Any) -> Any:
            raise refused(400, f"litellm.BadRequestError: GeminiException BadRequestError - {reply}\n")

    monkeypatch.setattr("askance.models.litellm_model._litellm", Package)
    with pytest.raises(ModelError, match="The prompt is too long") as caught:
        await LiteLLMModel("gemini/m").answer(REQUEST)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "status", "said", "advice"),
    [
        ("vertex_ai/m", 500, "Your default credentials were not found.", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("vertex_ai/m", 500, "No module named 'google'", "google-auth"),
        ("bedrock/m", 401, "Invalid Authentication - Unable to locate credentials", "AWS_PROFILE"),
        ("gemini/m", 500, "Missing Gemini API key. Set the GEMINI_API_KEY variable.", "environment variable"),
    ],
)
async def test_who_has_no_credentials_is_told_what_this_provider_wants(
    monkeypatch: pytest.MonkeyPatch, model: str, status: int, said: str, advice: str
) -> None:
    class Package(StandInPackage):
        @staticmethod
        async def acompletion(**_: Any) -> Any:
            raise refused(status, f"litellm.APIConnectionError: {said}")

    monkeypatch.setattr("askance.models.litellm_model._litellm", Package)
    with pytest.raises(ModelError, match=naming(advice)) as caught:
        await LiteLLMModel(model).answer(REQUEST)
    assert caught.value.fatal and ("refused the key" in str(caught.value)) == model.startswith("gemini")


@needs_litellm
async def test_the_wish_to_wait_is_read_from_the_header(serve: Ask) -> None:
    error, _ = await serve(lambda body: (429, {"error": {"message": "busy"}}, {"Retry-After": "7"}))
    assert error.retry_after == 7


@needs_litellm
async def test_an_endpoint_that_hangs_is_left_after_the_time_limit(serve: Ask) -> None:
    error, _ = await serve(lambda body: time.sleep(1.0) or "late")
    assert (error.status, error.retry) == (408, True)


@needs_litellm
async def test_a_refused_schema_is_left_out_from_then_on(serve: Ask) -> None:
    def script(body: Mapping[str, Any]) -> Any:
        return (400, {"error": {"message": "response_format is odd"}}) if "response_format" in body else "{}"

    found, server = await serve(script, times=2)
    assert found.text == "{}"
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "GeminiException BadRequestError - Logprobs is not enabled for models/m"),
        (403, "AzureException APIError - You are not allowed to request logprobs from this model"),
    ],
)
async def test_refused_log_probabilities_are_left_out_from_then_on(
    monkeypatch: pytest.MonkeyPatch, status: int, said: str
) -> None:
    sent: list[set[str]] = []

    class Package(StandInPackage):
        @staticmethod
        def get_supported_openai_params(model: str) -> list[str]:
            return ["max_tokens", "seed", "logprobs", "top_logprobs"]

        @staticmethod
        async def acompletion(**asked: Any) -> Any:
            sent.append({"seed", "logprobs", "top_logprobs"} & set(asked))
            if "logprobs" in asked:
                raise refused(status, said)
            message = SimpleNamespace(model_dump=lambda **_: {"content": "Yes"})
            return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

    monkeypatch.setattr("askance.models.litellm_model._litellm", Package)
    model = LiteLLMModel("x/y")
    found = [await model.answer(make_request("i", [("user", "q")], FULL)) for _ in range(2)]
    assert [(answer.text, answer.logprobs) for answer in found] == [("Yes", None)] * 2
    assert sent == [{"seed", "logprobs", "top_logprobs"}, {"seed"}, {"seed"}]


@needs_litellm
async def test_an_azure_deployment_that_runs_a_gpt_5_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM cannot know from a deployment's name what is behind it."""
    with VendorServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        model = LiteLLMModel("azure/prod-judge")
        request = make_request("i", [("user", "Is it? Answer with one word: yes or no.")], Parameters(4000, 0.0, 7, 20))
        found = [await model.answer(request) for _ in range(2)]
    assert {answer.text for answer in found} <= {"Yes", "No"}
    assert len(server.bodies) == 5, "three refusals, and two answers"
    assert {"max_completion_tokens", "seed"} <= set(server.bodies[-1])


@needs_litellm
async def test_the_proxy_of_the_environment_is_used_and_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    with StandInServer(lambda body: "through the proxy") as proxy, StandInServer(lambda body: "directly") as here:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("HOSTED_VLLM_API_KEY", KEY)
        for url, said in (("http://judge.example.invalid/v1", "through the proxy"), (here.url, "directly")):
            monkeypatch.setenv("HOSTED_VLLM_API_BASE", url)
            answer = await LiteLLMModel("hosted_vllm/m").answer(make_request("i", [("user", "q")], Parameters(9)))
            assert answer.text == said


@needs_litellm
async def test_a_quota_that_is_used_up_ends_the_run_and_a_limit_is_waited_for(serve: Ask) -> None:
    used_up = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error, _ = await serve(lambda body: (429, used_up))
    assert (error.fatal, error.retry) == (True, False)
    error, _ = await serve(lambda body: (429, {"error": {"message": "Please try again in 1m2s."}}))
    assert (error.fatal, error.retry, error.retry_after) == (False, True, 62)


@needs_litellm
async def test_a_missing_key_ends_the_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("gemini/gemini-2.0-flash", "anthropic/claude-sonnet-4-5"):
        with pytest.raises(ModelError, match=naming("environment variable")) as caught:
            await LiteLLMModel(name).answer(REQUEST)
        assert caught.value.fatal


@needs_litellm
@pytest.mark.parametrize("name", ["nosuch/model", "opnai/gpt-4o"])
def test_an_unknown_provider_is_refused_in_a_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=naming("LiteLLM")):
        LiteLLMModel(name)
    assert capsys.readouterr().out == ""


@needs_litellm
def test_nothing_is_fetched_when_it_is_loaded() -> None:
    code = (
        "import socket\n"
        "def refuse(*arguments): raise SystemExit(f'network: {arguments}')\n"
        "socket.getaddrinfo = socket.socket.connect = refuse\n"
        "from askance.models.litellm_model import LiteLLMModel\n"
        "LiteLLMModel('hosted_vllm/m')\n"
        "print('silent')\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "silent\n", done.stderr


async def test_a_reply_that_cannot_be_read_is_a_model_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Package(StandInPackage):
        @staticmethod
        async def acompletion(**_: Any) -> Any:
            return SimpleNamespace(choices=[SimpleNamespace(message=None, finish_reason="stop")])

    monkeypatch.setattr("askance.models.litellm_model._litellm", Package)
    with pytest.raises(ModelError, match=naming("x/y", "reply")):
        await LiteLLMModel("x/y").answer(make_request("i", [("user", "q")], FULL))


@pytest.mark.parametrize("logprob", [0.5, float("nan"), "much"])
async def test_log_probabilities_that_cannot_be_used_are_none(monkeypatch: pytest.MonkeyPatch, logprob: Any) -> None:
    class Package(StandInPackage):
        @staticmethod
        async def acompletion(**_: Any) -> Any:
            top = [{"token": "Yes", "logprob": logprob}]
            content = {"content": [{"token": "Yes", "top_logprobs": top}]}
            message = SimpleNamespace(model_dump=lambda **_: {"content": "Yes"})
            told = SimpleNamespace(model_dump=lambda: content)
            return SimpleNamespace(choices=[SimpleNamespace(message=message, logprobs=told, finish_reason="stop")])

    monkeypatch.setattr("askance.models.litellm_model._litellm", Package)
    found = await LiteLLMModel("x/y").answer(make_request("i", [("user", "q")], FULL))
    assert (found.text, found.logprobs) == ("Yes", None)


def test_without_litellm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingExtraError, match=r"askance\[providers\]"):
        LiteLLMModel("anthropic/claude-sonnet-4-5")


def test_a_broken_litellm_is_not_called_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'tiktoken'", name="tiktoken")

    monkeypatch.setattr("askance.prompts.errors.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="tiktoken"):
        LiteLLMModel("anthropic/claude-sonnet-4-5")


def test_the_listed_prices_of_openai_are_those_of_litellm() -> None:
    litellm = pytest.importorskip("litellm")
    for name, (prompt, answer) in prices._PER_MILLION.items():
        theirs = litellm.model_cost[name]
        assert theirs["input_cost_per_token"] == pytest.approx(prompt / 1e6), name
        assert theirs["output_cost_per_token"] == pytest.approx(answer / 1e6), name


# --- thinking and named models -------------------------------------------------------------------------------------------


class AnyPath(StandInServer):
    """Answers under every path, as vendors' own endpoints have them."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.paths: list[str] = []

    def _routes(self, router: Any) -> None:
        router.add_post("/{path:.*}", self._complete)

    async def _complete(self, http: Any) -> Any:
        self.paths.append(http.path_qs)
        return await super()._complete(http)

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")


async def asked(named: Mapping[str, Any], parameters: Parameters = A_FEW) -> dict[str, Any]:
    """The first answers of named models, or the errors."""
    found: dict[str, Any] = {}
    async with Models(named=read_named(named)) as models:
        for name in named:
            model = models.get(name)
            try:
                found[name] = await Gateway().ask("j", model, make_request(model.identity, [("user", "q")], parameters))
            except AskanceError as error:
                found[name] = error
    return found


def claude(body: Mapping[str, Any]) -> Any:
    """Anthropic's messages, with its rules of thinking."""
    budget = (body.get("thinking") or {}).get("budget_tokens", 0)
    unknown = body.keys() - {"model", "messages", "max_tokens", "temperature", "thinking", "system"}
    said = f"{min(unknown)}: Extra inputs are not permitted" if unknown else ""
    if budget and body["max_tokens"] <= budget:
        said = "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation"
    if said:
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    content = [{"type": "thinking", "thinking": "No", "signature": "s"}] if budget else []
    content.append({"type": "text", "text": "Yes"})
    usage = {"input_tokens": 10, "output_tokens": 300 if budget else 2}
    return 200, {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "usage": usage,
    } | {"stop_reason": "end_turn"}


@needs_litellm
async def test_two_azure_resources_are_asked_in_one_run_each_with_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD_KEY", "old-secret")
    monkeypatch.setenv("NEW_KEY", "new-secret")
    body = {"id": "1", "object": "chat.completion", "model": "gpt-4o"}
    body["choices"] = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes"}}]  # type: ignore[assignment]
    body["usage"] = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}  # type: ignore[assignment]
    with AnyPath(lambda _: (200, body)) as old, AnyPath(lambda _: (200, body)) as new:
        named = {
            "old": {
                "model": "azure/gpt-4o",
                "api_base": old.root,
                "api_version": "2025-04-01-preview",
                "api_key_env": "OLD_KEY",
            },
            "new": {
                "model": "azure/prod-judge",
                "api_base": new.root,
                "api_version": "2024-10-21",
                "api_key_env": "NEW_KEY",
            }
            | {"thinking": "low", "headers": {"X-Team": "eval"}, "extra_body": {"service_tier": "flex"}}
            | {"price": {"input": 1, "output": 2}},
        }
        found = await asked(named)
    assert old.paths == ["/openai/deployments/gpt-4o/chat/completions?api-version=2025-04-01-preview"]
    assert new.paths == ["/openai/deployments/prod-judge/chat/completions?api-version=2024-10-21"]
    headers = [{name.lower(): value for name, value in each.headers[0].items()} for each in (old, new)]
    assert [each["api-key"] for each in headers] == ["old-secret", "new-secret"]
    assert headers[1]["x-team"] == "eval"
    assert (new.bodies[0]["reasoning_effort"], new.bodies[0]["service_tier"]) == ("low", "flex")
    assert found["new"].cost_usd == pytest.approx(5e-6 + 4e-6)


@needs_litellm
async def test_claude_is_told_to_think_as_litellm_maps_it_and_has_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    with AnyPath(claude) as server:
        base = {"model": "anthropic/claude-sonnet-4-5", "api_base": server.root, "api_key_env": "A_KEY"}
        settings: dict[str, Any] = {"auto": "auto", "off": "off", "low": "low", "high": "high", "some": 3_000}
        parameters = Parameters(8, 1.0)
        found = await asked({name: base | {"thinking": each} for name, each in settings.items()}, parameters)
    assert [each.text for each in found.values()] == ["Yes"] * 5
    sent = [(body["max_tokens"], (body.get("thinking") or {}).get("budget_tokens")) for body in server.bodies]
    assert sent == [(8, None), (8, None), (2_008, 1_024), (8_008, 4_096), (8_008, 3_000)]
    assert [each.reasoning_tokens > 0 for each in found.values()] == [False, False, True, True, True]


@needs_litellm
async def test_an_effort_that_a_provider_refuses_ends_with_exit_2_through_litellm_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A_KEY", "secret")

    def script(body: Mapping[str, Any]) -> Any:
        if "reasoning_effort" in body:
            return 400, {"error": {"message": "Unrecognized request argument supplied: reasoning_effort", "code": None}}
        return 200, completion(body, "Yes") | {"id": "1", "model": "m"}

    with AnyPath(script) as server:
        base = {"model": "hosted_vllm/m", "api_base": server.url, "api_key_env": "A_KEY"}
        found = await asked({"low": base | {"thinking": "low"}, "off": base | {"thinking": "off"}})
    assert isinstance(found["low"], InputError)
    assert says(found["low"], "thinking low", "refused")
    assert found["off"].text == "Yes"


@needs_litellm
@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("groq/openai/gpt-oss-20b", False),
        ("mistral/mistral-tiny", False),
        ("hosted_vllm/its-table-has-no-such-model", True),
    ],
)
def test_models_that_the_table_says_take_texts_alone_take_no_images(name: str, takes: bool) -> None:
    assert LiteLLMModel(name).takes_images is takes


@needs_litellm
async def test_images_and_calls_of_tools_reach_the_provider(serve: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    asked = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I do.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "A cat."},
        {"role": "user", "content": [{"type": "text", "text": "And this?"}, part]},
    ]
    messages = generator_messages(Prompt("Be kind."), Example(id="a", input=asked))
    with StandInServer(lambda _: "A dog.") as server:
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.url)
        answer = await LiteLLMModel("hosted_vllm/m").answer(make_request("i", messages, A_FEW))
    sent = server.bodies[0]["messages"]
    assert answer.text == "A dog." and [each["role"] for each in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert sent[2]["tool_calls"] == [call] and sent[4]["content"][1] == part
