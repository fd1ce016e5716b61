"""Any OpenAI-compatible endpoint, directly over aiohttp: the client is most of the cost of a judged question."""

from __future__ import annotations

import asyncio
import json
import os
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any

from .base import Answer, ModelError, TokenProbabilities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from .base import Request

RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FORMAT_FIELDS = ("response_format", "logprobs", "top_logprobs", "max_tokens", "temperature", "seed")


class DirectModel:
    """``openai/NAME`` at an OpenAI-compatible endpoint.

    What an endpoint cannot do is learnt from its first refusal that names the field: ``max_tokens`` is then sent as
    ``max_completion_tokens``, other fields are left out. Log-probabilities that are left out show as
    ``logprobs=None`` in the answer; the caller decides what that means.
    """

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str | Callable[[], Awaitable[str]],
        *,
        identity: str,
        api_key: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        """``base_url`` may be a function that starts a server when the first call is bought."""
        self.name = name
        self.identity = identity
        self._model = model
        self._base_url = base_url
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._api_key = api_key
        self._timeout = timeout
        self._unsupported: set[str] = set()
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once; a refused optional field is left out from then on."""
        for _ in range(len(_FORMAT_FIELDS) + 1):
            sent = self._body(request)
            status, headers, payload = await self._post(sent)
            if status == 200:
                return self._read(payload, request)
            refused = self._refused_field(status, payload, sent)
            if refused is None:
                raise self._error(status, headers, payload)
            self._unsupported.add(refused)
        raise ModelError(f"{self.name}: the endpoint refused every form of the request.", fatal=True)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _body(self, request: Request) -> dict[str, Any]:
        parameters = request.parameters
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": role, "content": content} for role, content in request.messages],
            "max_tokens": parameters.max_tokens,
            "temperature": parameters.temperature,
        }
        if parameters.seed is not None:
            body["seed"] = parameters.seed
        if parameters.top_logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = parameters.top_logprobs
        if parameters.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": parameters.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if "max_tokens" in self._unsupported:
            body["max_completion_tokens"] = body.pop("max_tokens")
        if "top_logprobs" in self._unsupported:
            body.pop("logprobs", None)
        for field in self._unsupported:
            body.pop(field, None)
        return body

    async def _post(self, body: dict[str, Any]) -> tuple[int, Any, bytes]:
        import aiohttp

        base = self._base_url if isinstance(self._base_url, str) else await self._base_url()
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(self._timeout, 10)),
                headers=self._headers,
            )
        try:
            async with self._session.post(f"{base.rstrip('/')}/chat/completions", data=json.dumps(body)) as response:
                return response.status, response.headers, await response.read()
        except (TimeoutError, asyncio.TimeoutError):
            raise ModelError(f"{self.name}: no answer within {self._timeout:g} s from {base}.", retry=True) from None
        except aiohttp.InvalidURL:
            raise ModelError(f"{self.name}: '{base}' is no usable address (--api-base).", fatal=True) from None
        except aiohttp.ClientError as error:
            raise ModelError(f"{self.name}: cannot reach {base} ({self._clean(str(error))}).", retry=True) from None

    def _read(self, payload: bytes, request: Request) -> Answer:
        try:
            data = json.loads(payload)
            choice = data["choices"][0]
            text = choice["message"]["content"] or ""
            usage = data.get("usage") or {}
            logprobs = read_logprobs(choice.get("logprobs")) if request.parameters.top_logprobs else None
            return Answer(
                text,
                logprobs,
                int(usage.get("prompt_tokens") or 0),
                int(usage.get("completion_tokens") or 0),
                finish=str(choice.get("finish_reason") or "stop"),
            )
        except (ValueError, KeyError, IndexError, TypeError) as error:
            shown = self._clean(payload[:200].decode("utf-8", "replace"))
            raise ModelError(
                f"{self.name}: the endpoint's reply is not an OpenAI chat completion ({type(error).__name__}): {shown}",
            ) from None

    def _refused_field(self, status: int, payload: bytes, sent: dict[str, Any]) -> str | None:
        if status not in (400, 422):
            return None
        text = payload.decode("utf-8", "replace").lower()
        if not any(
            word in text for word in ("support", "unknown", "unrecognized", "not allowed", "permitted", "extra")
        ):
            return None
        return next((f for f in _FORMAT_FIELDS if f in text and f in sent and f not in self._unsupported), None)

    def _error(self, status: int, headers: Any, payload: bytes) -> ModelError:
        said = self._clean(_message(payload))
        if status in (401, 403):
            text = f"{self.name}: the endpoint refused the key (HTTP {status}: {said}). Check OPENAI_API_KEY."
            return ModelError(text, fatal=True, status=status)
        if status == 404:
            text = f"{self.name}: the endpoint does not know this model or address (HTTP 404: {said})."
            return ModelError(text, fatal=True, status=status)
        return ModelError(
            f"{self.name}: HTTP {status}: {said}",
            retry=status in RETRY_STATUSES,
            retry_after=read_retry_after(headers.get("Retry-After")),
            status=status,
        )

    def _clean(self, text: str) -> str:
        return text.replace(self._api_key, "[key]") if self._api_key else text


def _message(payload: bytes) -> str:
    text = payload.decode("utf-8", "replace").strip()
    try:
        error = json.loads(text)["error"]
        text = error["message"] if isinstance(error, dict) else str(error)
    except (ValueError, KeyError, TypeError):
        pass
    return text[:300] or "no message"


def read_logprobs(data: Any) -> tuple[TokenProbabilities, ...] | None:
    """Log-probabilities of a chat completion, rounded to 4 decimals; None where there are none."""
    content = data.get("content") if isinstance(data, dict) else None
    if not content:
        return None
    return tuple(
        (
            token["token"],
            tuple((each["token"], round(each["logprob"], 4)) for each in token.get("top_logprobs") or [token]),
        )
        for token in content
    )


def read_retry_after(value: str | None) -> float | None:
    """Seconds to wait from a ``Retry-After`` header: a number of seconds or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError):
        return None


def default_base_url() -> str:
    """``OPENAI_BASE_URL``, else OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
