"""Any provider through LiteLLM, for ``provider/model`` names other than ``openai/`` at an own endpoint and ``local/``."""

from __future__ import annotations

import importlib
import logging
import os
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError, MissingExtraError
from .base import Answer, ModelError
from .direct import RETRY_STATUSES, read_logprobs, read_retry_after

if TYPE_CHECKING:
    from .base import Request


class LiteLLMModel:
    """``provider/model`` as LiteLLM spells it. LiteLLM's own retries and caches stay off: ours hold everywhere."""

    def __init__(self, name: str, *, timeout: float = 120.0) -> None:
        """Check that LiteLLM knows the provider.

        Raises:
            MissingExtraError: LiteLLM is not installed.
            InputError: The provider is not one LiteLLM knows.
        """
        self.name = name
        self.identity = f"litellm:{name}"
        self._timeout = timeout
        self._litellm = _litellm()
        try:
            _, self._provider, _, _ = self._litellm.get_llm_provider(model=name)
        except Exception as error:  # LiteLLM raises its BadRequestError for this, a class of no narrower kind
            raise InputError(
                f"'{name}' is no model that LiteLLM knows how to reach ({type(error).__name__}). Write provider/model, "
                "e.g. anthropic/claude-sonnet-4-5, openai/NAME with --api-base, or local/NAME."
            ) from None
        supported = self._litellm.get_supported_openai_params(model=name) or []
        self._supported = frozenset(supported)

    async def answer(self, request: Request) -> Answer:
        """Ask once."""
        try:
            response = await self._litellm.acompletion(**self._arguments(request))
        except self._litellm.exceptions.AuthenticationError as error:
            text = f"{self.name}: the provider refused the key; check its environment variable ({_said(error)})."
            raise ModelError(text, fatal=True, status=401) from None
        except self._litellm.exceptions.NotFoundError as error:
            raise ModelError(
                f"{self.name}: the provider does not know this model ({_said(error)}).", fatal=True
            ) from None
        except Exception as error:  # LiteLLM's errors share no base class; what is not one of them is raised again
            status = getattr(error, "status_code", None)
            if status is None:
                raise
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            raise ModelError(
                f"{self.name}: {_said(error)}",
                retry=int(status) in RETRY_STATUSES,
                retry_after=read_retry_after(headers.get("retry-after")),
                status=int(status),
            ) from None
        return self._read(response, request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        parameters = request.parameters
        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": role, "content": content} for role, content in request.messages],
            "max_tokens": parameters.max_tokens,
            "temperature": parameters.temperature,
            "timeout": self._timeout,
            "num_retries": 0,
            "caching": False,
        }
        if parameters.seed is not None:
            arguments["seed"] = parameters.seed
        if parameters.top_logprobs:
            arguments["logprobs"] = True
            arguments["top_logprobs"] = parameters.top_logprobs
        if parameters.schema is not None and self._litellm.supports_response_schema(model=self.name):
            schema = {"name": "answer", "strict": True, "schema": parameters.schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        always = {"model", "messages", "timeout", "num_retries", "caching", "response_format"}
        return {key: value for key, value in arguments.items() if key in always or key in self._supported}

    def _read(self, response: Any, request: Request) -> Answer:
        choice = response.choices[0]
        raw = choice.logprobs.model_dump() if getattr(choice, "logprobs", None) else None
        try:
            cost = float(self._litellm.completion_cost(completion_response=response))
        except Exception:  # LiteLLM raises a bare Exception for a model without a price: the cost is then not known
            cost = 0.0
        return Answer(
            choice.message.content or "",
            read_logprobs(raw) if request.parameters.top_logprobs else None,
            int(response.usage.prompt_tokens),
            int(response.usage.completion_tokens),
            cost,
            str(choice.finish_reason or "stop"),
        )


def _litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        litellm: Any = importlib.import_module("litellm")
    except ImportError:
        raise MissingExtraError("providers", "litellm") from None
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return litellm


def _said(error: BaseException) -> str:
    return str(getattr(error, "message", error)).strip().splitlines()[0][:300]
