"""Models of any provider through LiteLLM, for ``provider/model`` names that no other module of this package handles."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.request import getproxies

from ..prompts.errors import InputError, import_optional
from .base import Answer, ModelError, Request
from .budget import Price
from .direct import answer_in, chat_fields
from .networks import BUNDLES, certificate_problem
from .request_form import EndpointModel, Learner, Refusal, ThinkingFields
from .thinking_room import seconds_for

_MARKED = frozenset({"anthropic", "gemini", "groq", "mistral"})  # LiteLLM's table marks all their models with images
_NO_KEY = re.compile(
    r"missing .{0,30}(?:api.?key|credentials)|(?:api.?key|credentials).{0,30} not (?:set|found)"
    r"|unable to locate credentials|No module named '(?:google|boto3)",
    re.I,
)
_GOOGLE = (
    "it takes no key but a Google Cloud account: run `gcloud auth application-default login`, or name a service account's "
    "file in GOOGLE_APPLICATION_CREDENTIALS; the project goes in VERTEXAI_PROJECT, the region in VERTEXAI_LOCATION (package "
    "google-auth)"
)
_AMAZON = (
    "it takes an AWS account: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and AWS_REGION_NAME (package "
    "boto3)"
)
_SIGN_IN = {"vertex_ai": _GOOGLE, "vertex_ai_beta": _GOOGLE, "bedrock": _AMAZON, "sagemaker": _AMAZON}
"""Advice for providers that need a cloud account instead of a key."""


class LiteLLMModel(EndpointModel):
    """A model ``provider/model`` in LiteLLM's spelling. LiteLLM's own retries and caches are off; ours are used."""

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
        """``name`` is the user's name, ``model`` is ``provider/model``; ``price`` replaces LiteLLM's price. ``more``
        are further arguments of each call; a key among them is never written to a file. Raises MissingExtraError
        without LiteLLM, and InputError if LiteLLM does not know the provider."""
        self.name = name
        self._model = model or name
        self.identity = identity or f"litellm:{self._model}"
        self._more = dict(more or {})
        self._learner = Learner(thinking)
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
        self.takes_images = self._may_take_images()
        self.takes_tools = "tools" in self._supported
        listed = self._find_price()
        self.price = listed if price is None else price
        self._is_listed = price is None
        if "top_logprobs" not in self._supported:
            self._supported -= {"logprobs"}  # P(yes) needs alternatives

    async def answer(self, request: Request) -> Answer:
        """Ask once. An optional field that is refused is left out from then on (:mod:`askance.models.request_form`)."""

        async def send(sent: dict[str, Any]) -> Answer | Refusal:
            try:
                response = await self._litellm.acompletion(**self._arguments(sent, request.room))
            except Exception as error:  # LiteLLM's errors share no base class; other errors are raised again
                if getattr(error, "status_code", None) is None:
                    raise
                status, said = int(error.status_code), _said(error, whole=True)  # type: ignore[attr-defined]
                return self._refusal(request, status, said, _said(error), self._error(error))
            try:
                return self._read(response, request)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"{self.name}: the provider's reply cannot be read ({error}).") from None

        asked = chat_fields(request)
        taken = {name: value for name, value in asked.items() if name == "messages" or name in self._supported}
        return await self._learner.ask(taken, send)

    @property
    def left_out(self) -> list[str]:
        """Fields that are not sent, because the provider does not take them."""
        return sorted(
            {"response_format", "temperature", "seed", "logprobs", "grammar"} - self._supported
            | self._learner.facts.without
        )

    def _may_take_images(self) -> bool:
        """Whether the model may take images: LiteLLM's table says so, or does not tell. For providers in ``_MARKED``
        only the first counts, unless the table lacks the model."""
        try:
            said = self._litellm.get_model_info(model=self._model).get("supports_vision")
        except Exception:  # LiteLLM raises a bare one for a model that its table does not have
            return True
        return bool(said) or (said is None and self._model.partition("/")[0] not in _MARKED)

    def _find_price(self) -> Price | None:
        try:
            prompt, answer = self._litellm.cost_per_token(model=self._model, prompt_tokens=1000, completion_tokens=1000)
        except Exception:  # LiteLLM raises several kinds for a model without a price
            return None
        return Price(float(prompt) / 1000, float(answer) / 1000)

    def _error(self, error: Any) -> ModelError:
        shown, message = _said(error), _said(error, whole=True)
        if problem := certificate_problem(message):
            return ModelError(f"{self.name}: the provider's server: {problem} It said: {shown}", fatal=True)
        status = 401 if _NO_KEY.search(shown) else int(error.status_code)
        account = _SIGN_IN.get(self._model.partition("/")[0])
        advice = f"the provider refused the credentials, or there are none; {account}"
        if account is None:
            advice = "the provider refused the key; check its environment variable"
        reply = getattr(error, "response", None)
        headers = getattr(error, "litellm_response_headers", None) or getattr(reply, "headers", None) or {}
        unknown = f"the provider does not know this model ({shown})."
        return self._failed(status, shown, message, headers, bad_key=f"{advice} ({shown}).", unknown=unknown)

    def _arguments(self, sent: Mapping[str, Any], room: int) -> dict[str, Any]:
        fixed_options = {
            "timeout": seconds_for(room, self._timeout),
            "num_retries": 0,
            "caching": False,
            "drop_params": True,
        }
        thinking = self._learner.thinking.fields
        # LiteLLM may not know a deployment by its name. It gets the fields all the same, and refuses them openly.
        passed = [name for name in thinking if name not in (*self._supported, "extra_body")]
        body = {**self._more.get("extra_body", {}), **sent.get("extra_body", {})}
        more = {**self._more, **sent} | ({"extra_body": body} if body else {})
        return {"model": self._model, **more, **fixed_options, "allowed_openai_params": passed}

    def _read(self, response: Any, request: Request) -> Answer:
        if not response.choices:
            raise ModelError(f"{self.name}: the provider's reply holds no answer.", retry=True)
        choice = response.choices[0]
        usage = response.usage.model_dump() if getattr(response, "usage", None) else {}
        logprobs = choice.logprobs.model_dump() if getattr(choice, "logprobs", None) else None
        message = choice.message.model_dump(exclude_none=True)
        answer = answer_in(request, message, logprobs, usage, choice.finish_reason)
        cost: float | None = None
        if self.price is not None and not self._is_listed:
            cost = self.price.of(answer.prompt_tokens, answer.completion_tokens)
        elif self.price is not None:
            # LiteLLM raises a bare Exception if it does not know the cost
            with suppress(Exception):
                cost = float(self._litellm.completion_cost(completion_response=response))
        return answer._replace(cost_usd=cost)


def _litellm() -> Any:
    for table in ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"):
        os.environ.setdefault(table, "True")  # nothing is fetched
    _name_the_network()
    litellm = import_optional("litellm", "providers", "litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return litellm


def _name_the_network() -> None:
    """Set the variables that LiteLLM reads for certificates, and for hosts that need no proxy."""
    bundle = next((os.environ[name] for name in BUNDLES if os.environ.get(name)), None)
    if bundle:
        os.environ.setdefault("SSL_CERT_FILE", bundle)
    proxies = getproxies()
    if {"http", "https", "all"} & set(proxies) and proxies.get("no") != "*":
        named = [each for each in proxies.get("no", "").split(",") if each.strip()]
        here = [each for each in ("localhost", "127.0.0.1", "::1") if each not in named]
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join([*named, *here])


def _said(error: BaseException, *, whole: bool = False) -> str:
    """Return a provider's error in one line without keys: 300 characters, or the ``whole`` text."""
    text = str(getattr(error, "message", error))
    if whole and (body := getattr(error, "body", None)):
        text += f" {body}"  # it has the error's code, which is not always in the message
    for name, value in os.environ.items():
        if len(value) > 7 and re.search("KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS", name.upper()):
            text = text.replace(value, "[key]")
    text = re.sub(r"([?&][\w-]*key=)[^&\s'\"]+", r"\1[key]", text, flags=re.IGNORECASE)
    return " ".join(text.split())[: None if whole else 300] or type(error).__name__
