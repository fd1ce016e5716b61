"""Models at OpenAI-compatible endpoints, called directly over aiohttp: a client library costs most of the time that the
machine spends on a judged question."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..prompts.errors import InputError
from ..prompts.messages import StructuredText
from .base import Answer, ModelError, Parameters, Request, TokenProbabilities, message_said
from .budget import Price
from .networks import certificate_problem, proxy_for, tls_context
from .replies.answer_words import worth_keeping
from .replies.thoughts import after_thinking, thinks_apart
from .replies.yes_no import ROOM
from .request_form import EndpointModel, Learner, Refusal, ThinkingFields
from .thinking_room import seconds_for, tokens_of, tokens_thought

if TYPE_CHECKING:
    import aiohttp


REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TEXT_ONLY = re.compile(r"(?:ft:)?(?:gpt-3\.5-turbo|gpt-4|o1-mini|o1-preview|o3-mini)(?:-\d+k?|-preview)*(?::.*)?")
"""OpenAI's models that take no images."""
SHORT_KEY = 7  # a key of up to so many characters may be a word such as ``x``, and is looked for as a word
IDLE_SECONDS = 3.0
"""A connection that was idle for longer is opened anew: llama.cpp and uvicorn (so vLLM) close it after 5 s, and a
request that is sent while they do so fails."""
_EXPLAINED = Parameters(200, top_logprobs=5)  # parameters of a request for an answer with an explanation
_KINDS = {429: "rate.?limit|too.?many|quota", 503: "overloaded|unavailable|server_error|internal|timeout"}
"""HTTP status for an error inside an HTTP 200 reply, by the words in the error's code or type."""


class DirectModel(EndpointModel):
    """A model ``openai/NAME`` at an OpenAI-compatible endpoint. It learns which fields the endpoint refuses
    (:mod:`askance.models.request_form`). An answer without log-probabilities has ``logprobs=None``."""

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str | Callable[[], Awaitable[str]],
        *,
        identity: str,
        api_key: str | None = None,
        timeout: float = 120.0,
        price: Price | None = None,
        thinking: ThinkingFields | None = None,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        """``base_url`` may be a function that starts a server when the first call is bought. ``price`` is None if
        unknown. ``extra_body``, ``headers`` and ``query`` are sent with every request."""
        self.name = name
        self.identity = identity
        self._model = model
        self._base_url = base_url
        self._headers = ({"Authorization": f"Bearer {api_key}"} if api_key else {}) | dict(headers or {})
        self._query = dict(query or {})
        self._extra_body = dict(extra_body or {})
        self._api_key = api_key
        self._timeout = timeout
        self.price = price
        at_openai = isinstance(base_url, str) and urlsplit(base_url).hostname == "api.openai.com"
        self.takes_images = not (at_openai and _TEXT_ONLY.fullmatch(model))
        self._learner = Learner(thinking)
        self._has_answered = False
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once. Optional fields that the endpoint refuses are left out later. Raises ModelError without an
        answer."""

        async def send(sent: dict[str, Any]) -> Answer | Refusal:
            seconds = seconds_for(request.room, self._timeout) if request.room else None
            status, headers, payload = await self.call("POST", "chat/completions", json.dumps(sent), seconds=seconds)
            inner_status = _error_inside(payload) if status == 200 else None
            if inner_status is None and status == 200:
                answer = self.read(payload, request)
                self._has_answered = True
                return answer
            status = status if inner_status is None else inner_status
            said, shown = payload.decode("utf-8", "replace"), self.clean(_message(payload))
            return self._refusal(request, status, said, shown, self.explain(status, headers, payload))

        return await self._learner.ask(self._body(request), send)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _body(self, request: Request) -> dict[str, Any]:
        return {"model": self._model, **chat_fields(request), **self._extra_body}

    async def call(
        self, method: str, path: str, data: Any = None, *, seconds: float | None = None
    ) -> tuple[int, Any, bytes]:
        """Make a call; return its status, headers and body. ``data`` is JSON or a form, ``seconds`` another timeout."""
        import aiohttp

        base = self._base_url if isinstance(self._base_url, str) else await self._base_url()
        if self._session is None:
            self._proxy = proxy_for(base)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=IDLE_SECONDS, ssl=tls_context() if base.startswith("https:") else True
                ),
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(self._timeout, 10)),
                headers=self._headers,
            )
        url = f"{base.rstrip('/')}/{path}" if path else base
        options: dict[str, Any] = {"headers": {"Content-Type": "application/json"}} if isinstance(data, str) else {}
        if self._query:
            options["params"] = self._query
        if seconds is not None:
            options["timeout"] = aiohttp.ClientTimeout(total=seconds, sock_connect=10)
        try:
            async with self._session.request(
                method, url, data=data, allow_redirects=False, proxy=self._proxy, **options
            ) as response:
                if response.status not in REDIRECTS:
                    return response.status, response.headers, await response.read()
                target = response.headers.get("Location", "")
            failure = ModelError(
                f"{self.name}: {shown_address(base)} redirects (HTTP {response.status}) to {shown_address(target)}. "
                "Texts are sent to no address but the given one: if you trust the other, give it as --api-base.",
                fatal=True,
                status=response.status,
            )
        except aiohttp.ConnectionTimeoutError:
            failure = ModelError(f"{self.name}: no connection to {shown_address(base)} in time.", retry=True)
        except TimeoutError:
            text = f"{self.name}: no answer within {seconds or self._timeout:g} s from {shown_address(base)}."
            failure = ModelError(text, retry=True)
        except aiohttp.InvalidURL:
            failure = ModelError(f"{self.name}: '{shown_address(base)}' is no usable address (--api-base).", fatal=True)
        except aiohttp.ClientError as error:
            failure = self._no_connection(base, error)
        raise failure  # here and not above, so that nothing hangs on to aiohttp's own error and the headers in it

    def _no_connection(self, base: str, error: Exception) -> ModelError:
        import aiohttp

        message, place, proxy = self.clean(str(error)), shown_address(base), self._proxy
        if proxy is not None:
            message = message.replace(proxy, shown_address(proxy))
            place += f" through the proxy {shown_address(proxy)}"
        if problem := certificate_problem(message):
            return ModelError(f"{self.name}: {shown_address(base)}: {problem} It said: {message}", fatal=True)
        if isinstance(error, aiohttp.ClientSSLError):
            advice = "The address begins with https://; does the server speak it?"
        else:
            advice = (
                "Is the server running?" if proxy is None else "Is the proxy right, or should NO_PROXY name the server?"
            )
        return ModelError(f"{self.name}: cannot reach {place} ({message}). {advice}", retry=True)

    def read(self, payload: bytes, request: Request) -> Answer:
        """Return the answer in a chat completion. Raises ModelError if there is none."""
        may_pass = False
        try:
            is_stream = payload.lstrip().startswith(_STREAM)
            may_pass = is_stream or payload.strip()[:1] in (b"", b"{")
            data = whole_reply(payload) if is_stream else json.loads(payload)
            may_pass = is_stream or (isinstance(data, dict) and data.get("choices") == [])
            if isinstance(data, dict) and (status := _error_in(data)) is not None:
                raise self.explain(status, {}, payload)
            choice = data["choices"][0]
            if choice.get("error") or choice.get("finish_reason") == "error":
                raise self._broke_off(choice.get("error"))
            usage = said_usage if isinstance(said_usage := data.get("usage"), dict) else {}
            answer = answer_in(request, choice["message"], choice.get("logprobs"), usage, choice.get("finish_reason"))
            cost = None if self.price is None else self.price.of(answer.prompt_tokens, answer.completion_tokens)
            return answer._replace(cost_usd=cost)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            kind = type(error).__name__
        shown = self.clean(payload.decode("utf-8", "replace"))[:200]
        if may_pass:
            said = f" It said: {shown}" if shown.strip() else ""
            raise ModelError(f"{self.name}: the endpoint's reply is empty or breaks off.{said}", retry=True, status=200)
        raise ModelError(
            f"{self.name}: the endpoint's reply is not an OpenAI chat completion ({kind}). Is --api-base right, with "
            f"/v1 at its end where the server wants it? It said: {shown}",
            retry=self._has_answered,  # then the address is right, and something in front of it has sent this reply
        )

    def _broke_off(self, error: Any) -> ModelError:
        """Return the error for an answer that the endpoint could not finish. The reply has an error beside its text."""
        payload = json.dumps({"error": error}).encode()
        if error and (status := _code(error, otherwise=200)) != 200:
            return self.explain(status, {}, payload)
        why = f": {self.clean(_message(payload))[:300]}" if error else ""
        text = f"{self.name}: the endpoint broke its answer off (finish_reason error){why}."
        return ModelError(text, retry=True, status=200)

    def explain(self, status: int, headers: Any, payload: bytes) -> ModelError:
        """Return the error for a reply with this status, headers and body."""
        shown = self.clean(_message(payload))[:300]
        bad_key = f"the endpoint refused the key (HTTP {status}: {shown}). Check OPENAI_API_KEY."
        unknown = (
            f"the endpoint does not know this model or address (HTTP 404: {shown}). Check the model's name, and "
            "--api-base, which ends with /v1 at most servers."
        )
        said = payload.decode("utf-8", "replace")
        return self._failed(status, shown, said, headers, bad_key=bad_key, unknown=unknown)

    def clean(self, text: str) -> str:
        """Replace the key in a text by ``[key]``."""
        key = self._api_key
        if not key:
            return text
        if len(key) > SHORT_KEY:
            return text.replace(key, "[key]")
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)


def answer_in(
    request: Request, message: Mapping[str, Any], logprobs: Any, usage: Mapping[str, Any], finish: Any
) -> Answer:
    """Return the answer in a chat completion's message, without its cost. Raises TypeError for a malformed message."""
    text = text_of(message.get("content")) or str(message.get("refusal") or "")
    is_apart = thinks_apart(message)
    kept = read_logprobs(logprobs, request.parameters)
    reply, kept = after_thinking(text, kept, apart=is_apart, free=request.is_free)
    return Answer(
        reply if request.parameters.tools is None else message_said(reply, message.get("tool_calls")),
        kept,
        tokens_of(usage.get("prompt_tokens")),
        tokens_of(usage.get("completion_tokens")),
        finish=str(finish or "stop"),
        reasoning_tokens=tokens_thought(usage, text, reply, apart=is_apart),
    )


def chat_fields(request: Request) -> dict[str, Any]:
    """Return the fields of an OpenAI chat completion for a request, without the model's name."""
    parameters = request.parameters
    messages = [
        {"role": role, **(content.original if isinstance(content, StructuredText) else {"content": content})}
        for role, content in request.messages
    ]
    fields: dict[str, Any] = {
        "messages": messages,
        "max_tokens": request.most_tokens,
        "temperature": parameters.temperature,
    }
    if parameters.seed is not None:
        fields["seed"] = parameters.seed
    if parameters.top_logprobs:
        fields |= {"logprobs": True, "top_logprobs": parameters.top_logprobs}
    if parameters.schema is not None:
        schema = {"name": "answer", "strict": is_strict(parameters.schema), "schema": parameters.schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if parameters.grammar is not None:  # llama.cpp's name of it, and vLLM's new and old one; each ignores the others
        fields |= {
            "grammar": parameters.grammar,
            "structured_outputs": {"grammar": parameters.grammar},
            "guided_grammar": parameters.grammar,
        }
    if parameters.tools is not None:
        fields["tools"] = [*parameters.tools]
    return fields


_NAMED = ("properties", "$defs", "definitions")  # parts of a schema that hold schemas by name
_PLAIN = ("enum", "const", "required", "default", "examples")  # parts that hold no schema


def is_strict(schema: Any) -> bool:
    """Whether a schema is strict in OpenAI's sense: every object requires all its keys and allows no others."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        names = set(properties) if isinstance(properties, Mapping) else set()
        if schema.get("additionalProperties") is not False or names != set(schema.get("required", ())):
            return False
    parts = (list(part.values()) if name in _NAMED else part for name, part in schema.items() if name not in _PLAIN)
    return all(map(is_strict, parts))


def _message(payload: bytes) -> str:
    """Return the endpoint's error message, or the whole reply if there is none in the usual field."""
    text = payload.decode("utf-8", "replace").strip()
    try:
        error = json.loads(text)["error"]
        said = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, TypeError, RecursionError):
        said = None
    return said if said and isinstance(said, str) else text or "no message"


def _error_inside(payload: bytes) -> int | None:
    """Return the status of an error that was sent with HTTP 200 in place of an answer (OpenRouter does so), or None."""
    if b'"error"' not in payload:
        return None
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return _error_in(data) if isinstance(data, dict) else None


def _error_in(data: dict[str, Any]) -> int | None:
    error = data if data.get("object") == "error" else data.get("error")
    return _code(error) if error and not data.get("choices") else None


def _code(error: Any, otherwise: int = 400) -> int:
    """Return the status of an error that came with HTTP 200, or ``otherwise`` if the error names none."""
    hints = [str(error.get(name)) for name in ("code", "status", "type")] if isinstance(error, dict) else []
    for hint in hints:
        if hint.isdigit() and 400 <= int(hint) < 600:
            return int(hint)
    words = " ".join(hints).lower()
    return next((status for status, kind in _KINDS.items() if re.search(kind, words)), otherwise)


_STREAM = (b"data:", b"event:", b":", b"id:", b"retry:")  # beginnings of a stream of server-sent events


def whole_reply(payload: bytes) -> dict[str, Any]:
    """Join an unasked stream of events into one chat completion. Raises ValueError if it is damaged or breaks off."""
    texts: dict[str, str] = {}
    choice: dict[str, Any] = {}
    whole: dict[str, Any] = {"choices": [choice]}
    logprobs: list[Any] = []
    calls: list[dict[str, Any]] = []
    ended = False
    for line in payload.decode("utf-8", "replace").splitlines():
        data = line.partition("data:")[2].strip() if line.startswith("data:") else ""
        if data == "[DONE]":
            ended = True
        elif data:
            event = json.loads(data)
            whole |= {name: event[name] for name in ("usage", "error") if event.get(name)}
            for part in event.get("choices") or ():
                if part.get("index") not in (0, None):
                    continue
                delta = part.get("delta") or part.get("message") or {}
                for name, said in delta.items():
                    if isinstance(said, str) and name != "role":
                        texts[name] = texts.get(name, "") + said
                _add_pieces(calls, delta.get("tool_calls") or ())
                logprobs += (part.get("logprobs") or {}).get("content") or ()
                choice |= {name: part[name] for name in ("finish_reason", "error") if part.get(name)}
    if whole.get("error"):
        choice["error"] = whole["error"]
    if not (ended or choice):
        raise ValueError("the stream breaks off")
    message = {**texts, "tool_calls": calls}
    return whole | {"choices": [choice | {"message": message, "logprobs": {"content": logprobs}}]}


def _add_pieces(calls: list[dict[str, Any]], pieces: Sequence[Mapping[str, Any]]) -> None:
    """Add the pieces of tool calls in a stream's event. A piece with a known index continues that call."""
    for piece in pieces:
        place = piece.get("index", len(calls))
        known = next((each for each in calls if each["index"] == place), None)
        if known is None:
            known = {"index": place, "type": "function", "function": {"name": "", "arguments": ""}}
            calls.append(known)
        known |= {name: piece[name] for name in ("id", "type") if piece.get(name)}
        for name, said in (piece.get("function") or {}).items():
            known["function"][name] = known["function"].get(name, "") + (said or "")


def text_of(content: Any) -> str:
    """Return a message's content as text. It may be a text, None, a list of parts, one part, or an answer object."""
    if isinstance(content, dict):
        is_part = isinstance(content.get("text"), str) and set(content) <= {"type", "text", "annotations"}
        content = [content] if is_part else json.dumps(content, ensure_ascii=False)
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type", "text") in ("text", "output_text"))
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return content or ""


def shown_address(url: str) -> str:
    """Return an address without user name, password and query, as these may hold a key."""
    scheme, slashes, rest = url.rpartition("://")
    place, *query = re.split(r"[?#]", rest)
    # a password may hold any of these signs
    shown = "…" if any("@" in each for each in query) else place.rpartition("@")[2]
    return f"{scheme}{slashes}{shown}"


def check_address(url: str, option: str = "--api-base") -> str:
    """Check an address given as an option, and return it without outer spaces. Raises InputError for an unusable
    address, and for an address with a user name, password or query."""
    shown, url = shown_address(url), url.strip()
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{option} {shown}: an address begins with http:// or https://.")
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in url):
        raise InputError(f"{option} {shown}: this is no usable address. Write it like http://127.0.0.1:8000/v1.")
    if "@" in url or parts.query or parts.fragment:
        raise InputError(
            f"{option} {shown}: an address holds no user's name, password or query here, as it is kept with the "
            "run. Give the key as OPENAI_API_KEY; where the server wants a name and password, put a proxy in front of "
            "it."
        )
    return url


def read_logprobs(data: Any, wanted: Parameters = _EXPLAINED) -> tuple[TokenProbabilities, ...] | None:
    """Return the log-probabilities worth keeping, rounded to 4 decimals, or None if there are none. Tokens without any
    alternatives count as none: a yes by itself would have P(yes) = 1."""
    if not wanted.top_logprobs:
        return None
    short, asked = wanted.schema is None and wanted.max_tokens <= ROOM, _asked_words(wanted.schema)
    content = data.get("content") if isinstance(data, dict) else None
    try:
        if not content or not any(token.get("top_logprobs") for token in content):
            return None
        return tuple(
            (token["token"], _alternatives(token.get("top_logprobs") or [token], short=short, asked=asked))
            for token in content
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # the reply has its words all the same


def _asked_words(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the words for yes and no that a schema allows, without the English words, which are always kept."""
    for field in (schema or {}).get("properties", {}).values():
        words = field.get("enum") or field.get("properties", {}).get("answer", {}).get("enum") or ()
        return tuple(word.lower() for word in words if isinstance(word, str) and word not in ("yes", "no"))
    return ()


def _alternatives(top: list[Any], *, short: bool, asked: Collection[str]) -> tuple[tuple[str, float], ...]:
    pairs = [(str(each["token"]), float(each["logprob"])) for each in top if each["logprob"] is not None]
    if not all(logprob <= 0.01 for _, logprob in pairs):
        raise ValueError("a log-probability above 0, or none at all")
    kept = worth_keeping(pairs, short=short, asked=asked)
    # rounded already here, so that a stored answer gives the same verdict
    return tuple([(token, round(logprob, 4)) for token, logprob in kept])


def default_base_url() -> str:
    """Return ``OPENAI_BASE_URL``, or OpenAI's own address if it is not set."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
