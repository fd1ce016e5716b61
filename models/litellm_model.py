"""Any provider through LiteLLM, for ``provider/model`` names other than ``openai/`` at an own endpoint and ``local/``."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from ..prompts.errors import InputError, import_optional
from .base import Answer, ModelError, Request
from .direct import (
    RETRY_STATUSES,
    chat_fields,
    no_money_left,
    read_logprobs,
    read_retry_after,
    refused_field,
)
from .prices import Price
from .thinking import ThinkingFields, is_out_of_room, tokens_of, tokens_thought
from .thoughts import after_thinking, thinks_apart

_SCHEMA_REFUSED = re.compile("response_format|json_schema|response_schema")
_NO_KEY = re.compile(r"missing .{0,30}(?:api.?key|credentials)|(?:api.?key|credentials).{0,30} not (?:set|found)", re.I)


class LiteLLMModel:
    """``provider/model`` as LiteLLM spells it. LiteLLM's own retries and caches stay off: ours hold everywhere."""

    def __init__(
        self,
        name: str,
        *,
        model: str | None = None,
        identity: str | None = None,
        timeout: float = 120.0,
        price: Price | None = None,
        thinking: ThinkingFields | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Check that LiteLLM knows the provider.

        Args:
            name: As the user wrote it.
            model: ``provider/model`` where that is another one.
            identity: What its answers depend on; by default ``provider/model``.
            timeout: Seconds of one call.
            price: Where it is another than LiteLLM's.
            thinking: How it is told to think.
            more: Further arguments of each call, e.g. ``api_base``; a key among them is in no file of ours.

        Raises:
            MissingExtraError: LiteLLM is not installed.
            InputError: The provider is not one LiteLLM knows.
        """
        self.name = name
        self._model = model or name
        self.identity = identity or f"litellm:{self._model}"
        self._more = dict(more or {})
        self._thinking = thinking or ThinkingFields(name, "auto", ())
        self._timeout = timeout
        self._litellm = _litellm()
        try:
            self._litellm.get_llm_provider(model=self._model)
        except self._litellm.BadRequestError:
            raise InputError(
                f"'{self._model}' is no model that LiteLLM knows how to reach. Write provider/model, "
                "e.g. anthropic/claude-sonnet-4-5, openai/NAME with --api-base, or local/NAME."
            ) from None
        self._supported = frozenset(self._litellm.get_supported_openai_params(model=self._model) or ())
        listed = self._find_price()
        self.price = listed if price is None else price
        """None where LiteLLM does not know it."""
        self._is_listed = price is None
        if listed is not None and not self._litellm.supports_response_schema(model=self._model):
            self._supported -= {"response_format"}

    async def answer(self, request: Request) -> Answer:
        """Ask once; a provider that refuses the JSON schema or log-probabilities is asked without them from then on."""
        without: frozenset[str] = frozenset()
        while True:
            form = self._thinking.place
            sent = {name: value for name, value in self._arguments(request).items() if name not in without}
            try:
                response = await self._litellm.acompletion(**sent)
            except Exception as error:  # LiteLLM's errors share no base class; what is not one of them is raised again
                if getattr(error, "status_code", None) is None:
                    raise
                failure, refused = self._error(error), _refused_fields(error, sent)
                if is_out_of_room(failure.status, failure.message):
                    return Answer("", finish="length")
                if not refused and self._thinking.is_refused(failure.status, failure.message, form):
                    continue
            else:
                self._supported -= without
                try:
                    return self._read(response, request)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise ModelError(f"{self.name}: the provider's reply cannot be read ({error}).") from None
            if not refused:
                raise failure  # here and not above, so that nothing hangs on to LiteLLM's own error, which may hold a key
            without |= refused

    @property
    def notice(self) -> str | None:
        """What to tell where its provider does not take how it is to think."""
        return self._thinking.notice

    @property
    def left_out(self) -> list[str]:
        """Fields that its provider does not take, so that they are not sent."""
        return sorted({"response_format", "temperature", "seed", "logprobs"} - self._supported)

    def highest_cost(self, request: Request) -> float:
        """US dollars that an answer may cost, from LiteLLM's prices; 0 where it has none for this model."""
        return 0.0 if self.price is None else self.price.highest(request)

    def _find_price(self) -> Price | None:
        """What LiteLLM's table says; None where it does not know the model."""
        try:
            prompt, answer = self._litellm.cost_per_token(model=self._model, prompt_tokens=1000, completion_tokens=1000)
        except Exception:  # LiteLLM raises several kinds for a model without a price
            return None
        return Price(float(prompt) / 1000, float(answer) / 1000)

    def _error(self, error: Any) -> ModelError:
        status, said = int(error.status_code), _said(error)
        if status in (401, 403) or _NO_KEY.search(said):
            text = f"{self.name}: the provider refused the key; check its environment variable ({said})."
            return ModelError(text, fatal=True, status=401)
        if status == 402:
            return ModelError(f"{self.name}: {no_money_left(said)}", fatal=True, status=402)
        if status == 404:
            return ModelError(f"{self.name}: the provider does not know this model ({said}).", fatal=True, status=404)
        headers = getattr(error, "litellm_response_headers", None) or {}
        return ModelError(
            f"{self.name}: {said}",
            retry=status in RETRY_STATUSES,
            retry_after=read_retry_after(headers.get("retry-after")),
            status=status,
        )

    def _arguments(self, request: Request) -> dict[str, Any]:
        asked = chat_fields(request)
        taken = {name: value for name, value in asked.items() if name == "messages" or name in self._supported}
        own: dict[str, Any] = {"timeout": self._timeout, "num_retries": 0, "caching": False, "drop_params": True}
        fields = dict(self._thinking.fields)
        # also to a deployment that LiteLLM does not know by its name: what it refuses is then said
        own["allowed_openai_params"] = [each for each in fields if each not in (*self._supported, "extra_body")]
        if "extra_body" in self._more:
            fields["extra_body"] = {**fields.get("extra_body", {}), **self._more["extra_body"]}
        return {"model": self._model, **taken, **self._more, **fields, **own}

    def _read(self, response: Any, request: Request) -> Answer:
        if not response.choices:
            raise ModelError(f"{self.name}: the provider's reply holds no answer.", retry=True)
        choice = response.choices[0]
        usage = getattr(response, "usage", None)
        raw = choice.logprobs.model_dump() if getattr(choice, "logprobs", None) else None
        cost: float | None = None
        prompt, written = (tokens_of(getattr(usage, each, 0)) for each in ("prompt_tokens", "completion_tokens"))
        if self.price is not None and not self._is_listed:
            cost = self.price.of(prompt, written)
        elif self.price is not None:
            # LiteLLM raises a bare Exception where it cannot tell: the cost is then not known
            with suppress(Exception):
                cost = float(self._litellm.completion_cost(completion_response=response))
        logprobs = read_logprobs(raw, request.parameters)
        text, apart = choice.message.content or "", thinks_apart(choice.message)
        said, logprobs = after_thinking(text, logprobs, apart=apart, free=request.is_free)
        return Answer(
            said,
            logprobs,
            prompt,
            written,
            cost,
            str(choice.finish_reason or "stop"),
            tokens_thought(usage, text, said, apart=apart),
        )


def _litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = import_optional("litellm", "providers", "litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return litellm


def _refused_fields(error: Any, sent: Collection[str]) -> frozenset[str]:
    """What was sent and is not taken, where the provider says so."""
    status, said = int(error.status_code), _said(error)
    if "response_format" in sent and status in (400, 422) and _SCHEMA_REFUSED.search(said):
        return frozenset({"response_format"})
    fields = ("logprobs", "top_logprobs")
    asked = [name for name in fields if name in sent]
    return frozenset(fields if refused_field(status, said.encode(), asked) else ())


def _said(error: BaseException) -> str:
    """What went wrong, in one line, as Google writes many, and without the keys that some providers put into it."""
    text = str(getattr(error, "message", error))
    for name, value in os.environ.items():
        if len(value) > 7 and re.search("KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS", name.upper()):
            text = text.replace(value, "[key]")
    text = re.sub(r"([?&][\w-]*key=)[^&\s'\"]+", r"\1[key]", text, flags=re.IGNORECASE)
    return " ".join(text.split())[:300] or type(error).__name__
