"""Stand-ins for the wire formats of vendors: their fields, their rules, and their words for what breaks a rule.

Bodies come from the vendors' documentation or users' reports. A model that thinks takes its thinking out of the cap on
its answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from askance.testing.servers import StandInServer, web_reply

from .vendor_answers import Saying, say

Body = Mapping[str, Any]
Whole = tuple[int, Any]
"""Status and body of a reply."""
THOUGHT = {"none": 0, "disable": 0, "minimal": 64, "low": 192, "medium": 704, "high": 2112}
"""Tokens that a model thinks, by effort."""
FILTERED = "FILTER-THIS"
"""Azure's filter holds back what holds this word."""


def _fields(names: str) -> frozenset[str]:
    return frozenset(names.split())


CHAT_FIELDS = _fields(
    "model messages max_completion_tokens max_tokens temperature top_p n stop seed stream stream_options logprobs "
    "top_logprobs response_format presence_penalty frequency_penalty logit_bias user tools tool_choice verbosity store "
    "parallel_tool_calls reasoning_effort service_tier metadata modalities prompt_cache_key safety_identifier"
)
VLLM_FIELDS = (
    CHAT_FIELDS
    | _fields(
        "chat_template_kwargs include_reasoning min_tokens top_k min_p repetition_penalty add_generation_prompt "
        "priority chat_template ignore_eos skip_special_tokens structured_outputs guided_json request_id "
        "prompt_logprobs"
    )
) - {"verbosity", "service_tier", "metadata", "store", "modalities", "safety_identifier"}
RESPONSES_FIELDS = _fields(
    "model input instructions max_output_tokens text reasoning temperature top_p store stream metadata user include"
)
ANTHROPIC_FIELDS = _fields(
    "model messages max_tokens system temperature top_k top_p stop_sequences stream metadata thinking tools "
    "tool_choice service_tier output_format output_config container context_management"
)
GEMINI_FIELDS = _fields(
    "contents systemInstruction generationConfig safetySettings tools toolConfig cachedContent labels"
)
GENERATION_FIELDS = _fields(
    "temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema seed logprobs "
    "responseJsonSchema presencePenalty frequencyPenalty responseLogprobs thinkingConfig responseModalities"
)


def _texts(messages: Any) -> list[str]:
    """The texts of messages, whose contents may be lists of parts."""
    texts = []
    for message in messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
        texts.append("\n".join(parts))
    return texts


def _unknown(body: Body, known: frozenset[str]) -> str | None:
    return next((name for name in body if name not in known), None)


def _chat_schema(body: Body) -> Any:
    return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")


# --- OpenAI -------------------------------------------------------------------------------------------------------


_TOO_FEW = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {} instead."


def _openai_error(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Whole:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return status, {"error": error}


def openai_gpt_5(body: Body) -> Whole:
    """Chat completions of GPT-5: no ``max_tokens``, no other temperature than 1, no log-probabilities."""
    if name := _unknown(body, CHAT_FIELDS):
        return _openai_error(f"Unrecognized request argument supplied: {name}")
    if "max_tokens" in body:
        said = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        said += "Use 'max_completion_tokens' instead."
        return _openai_error(said, "max_tokens", "unsupported_parameter")
    if (temperature := body.get("temperature", 1)) != 1:
        said = f"Unsupported value: 'temperature' does not support {temperature:g} with this model. "
        said += "Only the default (1) value is supported."
        return _openai_error(said, "temperature", "unsupported_value")
    if body.get("logprobs") or body.get("top_logprobs"):
        return _openai_error("You are not allowed to request logprobs from this model", status=403)
    effort = body.get("reasoning_effort") or "medium"
    if effort not in ("minimal", "low", "medium", "high"):
        said = f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model. "
        said += "Supported values are: 'minimal', 'low', 'medium', and 'high'."
        return _openai_error(said, "reasoning_effort", "unsupported_value")
    schema = _chat_schema(body)
    forced = body["tool_choice"] if isinstance(body.get("tool_choice"), dict) else None
    if problem := _no_strict_schema(schema):
        return _openai_error(f"Invalid schema for response_format 'answer': {problem}", "response_format")
    if forced:
        wanted = forced["function"]["name"]
        [tool] = [entry["function"] for entry in body["tools"] if entry["function"]["name"] == wanted]
        schema = tool["parameters"]
    asked, cap = _texts(body["messages"]), body.get("max_completion_tokens")
    answer = say(body["model"], asked, cap, THOUGHT[effort], schema)
    if forced and answer.text:
        call = {"id": "call_1", "type": "function", "function": {"name": tool["name"], "arguments": answer.text}}
        whole = _chat_completion(body, replace(answer, text=""), counts_thinking=True, tool_calls=[call])
        whole["choices"][0]["message"]["content"] = None
        return 200, whole
    return 200, _chat_completion(body, answer, counts_thinking=True)


def openai_responses(body: Body) -> Whole:
    """The Responses API of GPT-5: at least 16 tokens; a truncated answer is ``incomplete``."""
    if name := _unknown(body, RESPONSES_FIELDS):
        return _openai_error(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    if body.get("temperature", 1) != 1:
        said = "Unsupported parameter: 'temperature' is not supported with this model."
        return _openai_error(said, "temperature", "unsupported_parameter")
    cap = body.get("max_output_tokens")
    if cap is not None and cap < 16:
        return _openai_error(_TOO_FEW.format(cap), "max_output_tokens", "integer_below_min_value")
    effort = (body.get("reasoning") or {}).get("effort") or "medium"
    form = (body.get("text") or {}).get("format") or {}
    inputs = [{"content": body["input"]}] if isinstance(body["input"], str) else body["input"]
    asked = [body.get("instructions") or "", *_texts(inputs)]
    answer = say(body["model"], asked, cap, THOUGHT[effort], form.get("schema"))
    cut = answer.finish == "length"
    output: list[Any] = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    return 200, {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": answer.read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": answer.written,
            "output_tokens_details": {"reasoning_tokens": answer.thought},
            "total_tokens": answer.read + answer.written,
        },
    }


def _no_strict_schema(schema: Any) -> str | None:
    """OpenAI's error for a schema that is not strict enough."""
    if isinstance(schema, dict) and schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return "In context=(), 'additionalProperties' is required to be supplied and to be false."
        if set(schema.get("required", ())) != set(schema.get("properties", ())):
            said = "In context=(), 'required' is required to be supplied and to be an array including every key in "
            return said + "properties."
    return None


def _chat_completion(body: Body, said: Saying, *, counts_thinking: bool, **message: Any) -> dict[str, Any]:
    usage: dict[str, Any] = {"prompt_tokens": said.read, "completion_tokens": said.written}
    usage["total_tokens"] = said.read + said.written
    if counts_thinking:
        usage["completion_tokens_details"] = {"reasoning_tokens": said.thought}
    told = {"role": "assistant", "content": said.text, **message}
    choice = {"index": 0, "finish_reason": said.finish, "message": told}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": usage}


# --- Azure --------------------------------------------------------------------------------------------------------


def azure(body: Body, path: str, query: Mapping[str, str]) -> Whole:
    """A deployment that runs a GPT-5; an old API version takes no schema, and a filter looks at each prompt."""
    if not query.get("api-version"):
        return 404, {"error": {"code": "404", "message": "Resource not found"}}
    if "/deployments/prod-judge" not in path:
        said = "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
        said += "minutes, please wait a moment and try again."
        return 404, {"error": {"code": "DeploymentNotFound", "message": said}}
    if _chat_schema(body) and query["api-version"] < "2024-08-01":
        said = "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"
        return 400, {"error": {"code": "BadRequest", "message": said}}
    if FILTERED in "\n".join(_texts(body["messages"])):
        safe = {"filtered": False, "severity": "safe"}
        results = dict.fromkeys(("hate", "self_harm", "sexual"), safe)
        results |= {"violence": {"filtered": True, "severity": "medium"}}
        said = (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please "
        )
        said += "modify your prompt and retry. To learn more about our content filtering policies please read our "
        said += "documentation: https://go.microsoft.com/fwlink/?linkid=2198766"
        error = {"message": said, "type": None, "param": "prompt", "code": "content_filter", "status": 400}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}
        return 400, {"error": error | {"innererror": inner}}
    return openai_gpt_5({**body, "model": "prod-judge"})


# --- vLLM ---------------------------------------------------------------------------------------------------------


def vllm_gpt_oss(body: Body) -> Whole:
    """gpt-oss at vLLM: thinks beside its answer, gives log-probabilities of all tokens, and counts no thinking."""

    def wrong(message: str) -> Whole:
        return 400, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}

    if name := _unknown(body, VLLM_FIELDS):
        detail = {"type": "extra_forbidden", "loc": ("body", name), "msg": "Extra inputs are not permitted"}
        return wrong(str([detail | {"input": body[name]}]))
    if (most := body.get("top_logprobs") or 0) > 20:
        return wrong(f"Requested sample logprobs of {most}, which is greater than max allowed: 20")
    template_options = body.get("chat_template_kwargs") or {}
    effort = body.get("reasoning_effort") or template_options.get("reasoning_effort") or "medium"
    if effort not in ("low", "medium", "high"):
        return wrong(f"Invalid reasoning_effort: {effort}. Must be one of 'low', 'medium', 'high'")
    thought = 0 if template_options.get("enable_thinking") is False else THOUGHT[effort]
    cap = body.get("max_completion_tokens") or body.get("max_tokens")
    said = say(body["model"], _texts(body["messages"]), cap, thought, _chat_schema(body))
    whole = _chat_completion(body, said, counts_thinking=False, reasoning_content="Hm." if thought else None)
    if body.get("logprobs") and said.text:
        whole["choices"][0]["logprobs"] = {"content": _tokens(said, bool(thought))}
    return 200, whole


def _tokens(said: Saying, thinks: bool) -> list[Any]:
    """Log-probabilities of every token; first those of the thinking and the marks around it."""
    other = {"Yes": "No", "No": "Yes", "yes": "no", "no": "yes"}
    before = ["<|channel|>", "analysis", "<|message|>", "Hm", ".", "<|end|>", "<|channel|>", "final", "<|message|>"]
    tokens = []
    for token in [*(before if thinks else ()), *re.findall(r"\w+|\W", said.text)]:
        pairs = [(token, 0.85), (other.get(token, "…"), 0.13)]
        top = [{"token": text, "logprob": math.log(share), "bytes": None} for text, share in pairs]
        tokens.append({**top[0], "top_logprobs": top})
    return tokens


# --- Anthropic ----------------------------------------------------------------------------------------------------


def anthropic(body: Body) -> Whole:
    """Claude's Messages API: ``max_tokens`` is required, and what may stand beside ``thinking`` is narrow."""

    def wrong(message: str) -> Whole:
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    if name := _unknown(body, ANTHROPIC_FIELDS):
        return wrong(f"{name}: Extra inputs are not permitted")
    cap = body.get("max_tokens")
    if cap is None:
        return wrong("max_tokens: Field required")
    thinking, thought = body.get("thinking") or {}, 0
    if thinking.get("type") == "enabled":
        budget = thinking["budget_tokens"]
        if budget < 1024:
            return wrong("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if cap <= budget:
            return wrong("`max_tokens` must be greater than `thinking.budget_tokens`.")
        if body.get("temperature", 1) != 1:
            return wrong("`temperature` may only be set to 1 when thinking is enabled.")
        if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
            return wrong("Thinking may not be enabled when tool_choice forces tool use.")
        thought = min(budget, 400)
    form = body.get("output_format") or (body.get("output_config") or {}).get("format") or {}
    system = body.get("system") or []
    asked = [system] if isinstance(system, str) else [part["text"] for part in system]
    said = say(body["model"], [*asked, *_texts(body["messages"])], cap, thought, form.get("schema"))
    if (body.get("tool_choice") or {}).get("type") == "tool":
        [tool] = [each for each in body["tools"] if each["name"] == body["tool_choice"]["name"]]
        told = say(body["model"], [*asked, *_texts(body["messages"])], cap, 0, tool["input_schema"])
        used = {"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": json.loads(told.text)}
        return 200, _message(body, [used], "tool_use", told)
    content: list[Any] = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}] if thought else []
    content += [{"type": "text", "text": said.text}] if said.text else []
    return 200, _message(body, content, "max_tokens" if said.finish == "length" else "end_turn", said)


def _message(body: Body, content: list[Any], stop_reason: str, said: Saying) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": said.read, "output_tokens": said.written},
    }


# --- Gemini -------------------------------------------------------------------------------------------------------


def gemini(body: Body, path: str) -> Whole:
    """Gemini 2.5 Pro, ``generateContent``: thinks always, no ``additionalProperties``, no log-probabilities."""

    def wrong(message: str) -> Whole:
        return 400, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def unknown(name: str, place: str = "") -> Whole:
        at = f" at '{place}'" if place else ""
        return wrong(f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')

    model = path.rpartition("/")[2].partition(":")[0]
    body = {_camel(name): value for name, value in body.items()}
    if name := _unknown(body, GEMINI_FIELDS):
        return unknown(name)
    config = {_camel(name): value for name, value in (body.get("generationConfig") or {}).items()}
    if name := _unknown(config, GENERATION_FIELDS):
        return unknown(name, "generation_config")
    if config.get("responseLogprobs"):
        return wrong(f"Logprobs is not enabled for models/{model}")
    if "additionalProperties" in json.dumps(config.get("responseSchema") or {}):
        return unknown("additionalProperties", "generation_config.response_schema")
    budget = (config.get("thinkingConfig") or {}).get("thinkingBudget", -1)
    if budget == 0:
        return wrong("Budget 0 is invalid. This model only works in thinking mode.")
    thought = THOUGHT["medium"] if budget < 0 else min(budget, THOUGHT["medium"])
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    asked = ["\n".join(part.get("text", "") for part in each["parts"]) for each in body["contents"]]
    system = body.get("systemInstruction")
    opening = ["\n".join(part["text"] for part in system["parts"])] if system else []
    said = say(model, [*opening, *asked], config.get("maxOutputTokens"), thought, schema)
    content: dict[str, Any] = {"role": "model"}
    if said.text:
        content["parts"] = [{"text": said.text}]
    usage = {"promptTokenCount": said.read, "candidatesTokenCount": said.written - said.thought}
    usage |= {"thoughtsTokenCount": said.thought, "totalTokenCount": said.read + said.written}
    finish = "MAX_TOKENS" if said.finish == "length" else "STOP"
    candidate = {"content": content, "finishReason": finish, "index": 0}
    return 200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(each.capitalize() for each in rest)


# --- Ollama -------------------------------------------------------------------------------------------------------


def ollama(body: Body, path: str) -> Whole:
    """Ollama's own API. It takes no notice of fields that it does not know; ``num_predict`` holds thinking too."""
    if path.endswith("/api/show"):
        return 200, {"capabilities": ["completion", "thinking"], "model_info": {}, "template": "", "details": {}}
    thinks = body.get("think")
    if thinks and "gemma" in body["model"]:
        return 400, {"error": f'"{body["model"]}" does not support thinking'}
    if thinks not in (None, True, False, "low", "medium", "high"):
        said_no = f'invalid think value: "{thinks}" (must be "high", "medium", "low", "max", true, or false)'
        return 400, {"error": said_no}
    thought = 0 if thinks is False or "gemma" in body["model"] else THOUGHT.get(str(thinks), THOUGHT["low"])
    form = body.get("format")
    asked = [body["prompt"]] if path.endswith("/api/generate") else _texts(body["messages"])
    cap = (body.get("options") or {}).get("num_predict")
    said = say(body["model"], asked, cap, thought, form if isinstance(form, dict) else None)
    whole: dict[str, Any] = {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", "done": True}
    whole |= {"done_reason": said.finish, "prompt_eval_count": said.read, "eval_count": said.written}
    thinking = {"thinking": "Hm."} if thought else {}
    if path.endswith("/api/generate"):
        return 200, whole | {"response": said.text} | thinking
    return 200, whole | {"message": {"role": "assistant", "content": said.text, **thinking}}


# --- OpenRouter ---------------------------------------------------------------------------------------------------


def openrouter(body: Body, number: int) -> Whole:
    """OpenRouter before a GPT-5: every fourth reply is an error in HTTP 200; unknown fields are dropped."""
    cap = body.get("max_completion_tokens") or body.get("max_tokens")
    if cap is not None and cap < 16:
        _, inner = _openai_error(_TOO_FEW.format(cap), "max_output_tokens", "integer_below_min_value")
        metadata = {"raw": json.dumps(inner, indent=2), "provider_name": "OpenAI"}
        return 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}
    reasoning = body.get("reasoning") or {}
    if {"effort", "max_tokens"} <= set(reasoning):
        said_no = 'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified'
        return 400, {"error": {"message": said_no, "code": 400}}
    if number % 4 == 3:
        metadata = {"provider_name": "OpenAI", "raw": "upstream is rate-limited; retry in 0.05 s"}
        return 200, {"error": {"message": "Provider returned error", "code": 429, "metadata": metadata}}
    effort = reasoning.get("effort") or body.get("reasoning_effort") or "medium"
    thought = 0 if reasoning.get("enabled") is False else reasoning.get("max_tokens") or THOUGHT[effort]
    said = say(body["model"], _texts(body["messages"]), cap, thought, _chat_schema(body))
    return 200, {"provider": "OpenAI"} | _chat_completion(body, said, counts_thinking=True, reasoning="Hm.")


# --- the server ---------------------------------------------------------------------------------------------------


class VendorServer(StandInServer):
    """All these vendors on loopback, each under its own paths, so that one server stands in for any of them.

    ``OPENAI_BASE_URL`` is ``url`` (GPT-5); vLLM is at ``root/vllm/v1``, OpenRouter at ``root/openrouter/api/v1``;
    Azure, Anthropic, Gemini and Ollama are at ``root`` itself.

    Example::

        with VendorServer() as server:
            askance.evaluate(rows, checklist, model="openai/gpt-5-mini", api_base=server.url)
    """

    def __init__(self) -> None:
        """Serve every vendor."""
        super().__init__(lambda body: "")
        self.refused: list[tuple[str, Any]] = []
        """Path and body of every reply that was an error."""
        self._numbers: dict[str, int] = {}

    @property
    def root(self) -> str:
        """The address without a path."""
        return self.url.removesuffix("/v1")

    def environment(self) -> dict[str, str]:
        """Environment variables with which LiteLLM reaches each vendor here."""
        keys = ("OPENAI", "AZURE", "ANTHROPIC", "GEMINI", "OPENROUTER", "HOSTED_VLLM")
        return {
            **{f"{name}_API_KEY": "sk-stand-in-0123456789" for name in keys},
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_BASE": self.url,
            "AZURE_API_BASE": self.root,
            "AZURE_API_VERSION": "2025-04-01-preview",
            "ANTHROPIC_API_BASE": self.root,
            "GEMINI_API_BASE": self.root,
            "OLLAMA_API_BASE": self.root,
            "OPENROUTER_API_BASE": f"{self.root}/openrouter/api/v1",
            "HOSTED_VLLM_API_BASE": f"{self.root}/vllm/v1",
        }

    def _routes(self, router: Any) -> None:
        router.add_post("/{path:.*}", self._answer)

    async def _answer(self, http: Any) -> Any:
        body = json.loads(await http.read())
        self.bodies.append(body)
        self.headers.append(dict(http.headers))
        status, reply = self._reply(http.path, dict(http.query), body)
        if status != 200 or reply.get("error"):
            self.refused.append((http.path, reply))
        return web_reply((status, reply))

    def _reply(self, path: str, query: Mapping[str, str], body: dict[str, Any]) -> Whole:
        vendors: dict[str, Callable[[], Whole]] = {
            r"/v1/chat/completions": lambda: openai_gpt_5(body),
            r"/v1/responses": lambda: openai_responses(body),
            r"/openai/deployments/.*/chat/completions": lambda: azure(body, path, query),
            r"/vllm/v1/chat/completions": lambda: vllm_gpt_oss(body),
            r"/v1/messages": lambda: anthropic(body),
            r"(?:/v1(?:beta)?)?/models/.*:generateContent": lambda: gemini(body, path),
            r"/api/(?:chat|generate|show)": lambda: ollama(body, path),
            r"/openrouter/api/v1/chat/completions": lambda: openrouter(body, self._number(path)),
        }
        vendor = next((each for pattern, each in vendors.items() if re.fullmatch(pattern, path)), None)
        if vendor is None:
            return 404, {"error": {"message": f"Not Found: {path}", "code": 404}}
        return vendor()

    def _number(self, path: str) -> int:
        self._numbers[path] = self._numbers.get(path, 0) + 1
        return self._numbers[path]
