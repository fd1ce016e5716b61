"""Any OpenAI-compatible endpoint, directly over aiohttp: the client is most of the cost of a judged question."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..prompts.errors import InputError
from .base import Answer, ModelError, Parameters, Request, TokenProbabilities
from .prices import Price
from .probabilities import worth_keeping
from .replies.yes_no import ROOM
from .thinking import ThinkingFields, is_out_of_room, tokens_of, tokens_thought
from .thoughts import after_thinking, thinks_apart

if TYPE_CHECKING:
    import aiohttp


REDIRECTS = frozenset({301, 302, 303, 307, 308})
SHORT_KEY = 7
"""Up to so many characters a key is taken for a word such as ``x``, for a server that wants none, and looked for as a word."""
RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 526), 529})
"""From 520 on those of Cloudflare, which OpenAI and others stand behind, where it does not reach them for the moment."""
_OPTIONAL = {
    "response_format": ("response_format",),
    "top_logprobs": ("top_logprobs", "logprobs"),
    "logprobs": ("logprobs", "top_logprobs"),
    "max_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
}
"""Fields that an endpoint may refuse by name, each with those that make no sense without it."""
_EXPLAINED = Parameters(200, top_logprobs=5)
"""What is asked for where an answer has an explanation."""
_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not (?:allowed|enabled)|permitted|extra|(?:un|not )available"
)

_MOST = re.compile(
    r"(?:less than or equal to|at most|up to|between \d+ and|\[\d+,|max(?:imum)?(?: allowed| value)?(?: is| of)?|<=)\W{0,4}(\d+)"
)


class DirectModel:
    """``openai/NAME`` at an OpenAI-compatible endpoint.

    What an endpoint cannot do is learnt from a refusal that names the field, once the same request is taken without it:
    ``max_tokens`` is then sent as ``max_completion_tokens``, other fields are left out. Log-probabilities that are left out show as
    ``logprobs=None`` in the answer; the caller decides what that means. Of one that gives fewer alternatives to a token as many are
    asked for as it says.
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
        price: Price | None = None,
        thinking: ThinkingFields | None = None,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        """``base_url`` may be a function that starts a server when the first call is bought; ``price`` is None if unknown.

        ``extra_body``, ``headers`` and ``query`` are sent with every request.
        """
        self.name = name
        self.identity = identity
        self._model = model
        self._base_url = base_url
        self._headers = ({"Authorization": f"Bearer {api_key}"} if api_key else {}) | dict(headers or {})
        self._thinking = thinking or ThinkingFields(name, "auto", ())
        self._query = dict(query or {})
        self._extra_body = dict(extra_body or {})
        self._api_key = api_key
        self._timeout = timeout
        self.price = price
        """None where it is not known."""
        self._unsupported: set[str] = set()
        self._alternatives: int | None = None
        """Alternatives to a token that it gives at most; None where it gave as many as were asked for."""
        self._has_answered = False
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, request: Request) -> Answer:
        """Ask once; a refused optional field is left out from then on.

        Raises:
            ModelError: No usable answer.
        """
        without, most = set(self._unsupported), self._alternatives
        while True:
            form = self._thinking.place
            sent = self._body(request, without, most)
            status, headers, payload = await self._call("POST", "chat/completions", json.dumps(sent))
            if status == 200:
                answer = self._read(payload, request)
                self._unsupported |= without
                self._alternatives = most
                self._has_answered = True
                return answer
            if is_out_of_room(status, payload.decode("utf-8", "replace")):
                self._unsupported |= without
                return Answer("", finish="length")
            if (fewer := fewer_alternatives(status, payload, sent)) is not None:
                most = fewer
                continue
            refused = refused_field(status, payload, sent)
            if refused is None and self._thinking.is_refused(status, self._clean(_message(payload)), form):
                continue
            if refused is None:
                raise self._error(status, headers, payload)
            without.update(_OPTIONAL[refused])

    @property
    def notice(self) -> str | None:
        """What to tell where its endpoint does not take how it is to think."""
        return self._thinking.notice

    @property
    def left_out(self) -> list[str]:
        """Fields that its endpoint has refused, so that they are not sent."""
        return sorted(self._unsupported)

    def highest_cost(self, request: Request) -> float:
        """US dollars that an answer may cost; 0 where the price is not known."""
        return 0.0 if self.price is None else self.price.highest(request)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _body(self, request: Request, without: Collection[str], most: int | None = None) -> dict[str, Any]:
        body = {"model": self._model, **chat_fields(request)}
        if most is not None and "top_logprobs" in body:
            body["top_logprobs"] = min(most, body["top_logprobs"])
        if "max_tokens" in without:
            body["max_completion_tokens"] = body["max_tokens"]
        left = {field: value for field, value in body.items() if field not in without}
        return {**left, **self._thinking.fields, **self._extra_body}

    async def _call(
        self, method: str, path: str, data: Any = None, *, seconds: float | None = None
    ) -> tuple[int, Any, bytes]:
        """Status, headers and body of one call; ``data`` is JSON as a text, or a form; ``seconds`` for it, where not the usual ones."""
        import aiohttp

        base = self._base_url if isinstance(self._base_url, str) else await self._base_url()
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(self._timeout, 10)),
                headers=self._headers,
            )
        url = f"{base.rstrip('/')}/{path}"
        how: dict[str, Any] = {"headers": {"Content-Type": "application/json"}} if isinstance(data, str) else {}
        if self._query:
            how["params"] = self._query
        if seconds is not None:
            how["timeout"] = aiohttp.ClientTimeout(total=seconds, sock_connect=10)
        try:
            async with self._session.request(method, url, data=data, allow_redirects=False, **how) as response:
                if response.status not in REDIRECTS:
                    return response.status, response.headers, await response.read()
                there = response.headers.get("Location", "")
            failure = ModelError(
                f"{self.name}: {shown_address(base)} redirects (HTTP {response.status}) to {shown_address(there)}. "
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
            text = (
                f"{self.name}: cannot reach {shown_address(base)} ({self._clean(str(error))}). Is the server running?"
            )
            failure = ModelError(text, retry=True)
        raise failure  # here and not above, so that nothing hangs on to aiohttp's own error and the headers in it

    def _read(self, payload: bytes, request: Request) -> Answer:
        may_pass = False
        try:
            may_pass = payload.strip()[:1] in (b"", b"{")
            data = json.loads(payload)
            may_pass = isinstance(data, dict) and data.get("choices") == []
            if isinstance(data, dict) and data.get("error") and not data.get("choices"):
                raise self._error(_code(data["error"]), {}, payload)
            choice = data["choices"][0]
            if choice.get("error") or choice.get("finish_reason") == "error":
                raise self._broke_off(choice.get("error"))
            message = choice["message"]
            text = _text(message.get("content")) or str(message.get("refusal") or "")
            usage = data.get("usage") or {}
            sent, written = (tokens_of(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
            logprobs = read_logprobs(choice.get("logprobs"), request.parameters)
            apart = thinks_apart(message)
            said, logprobs = after_thinking(text, logprobs, apart=apart, free=request.is_free)
            return Answer(
                said,
                logprobs,
                sent,
                written,
                None if self.price is None else self.price.of(sent, written),
                finish=str(choice.get("finish_reason") or "stop"),
                reasoning_tokens=tokens_thought(usage, text, said, apart=apart),
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            kind = type(error).__name__
        shown = self._clean(payload.decode("utf-8", "replace"))[:200]
        if may_pass:
            said = f" It said: {shown}" if shown.strip() else ""
            raise ModelError(f"{self.name}: the endpoint's reply is empty or breaks off.{said}", retry=True, status=200)
        raise ModelError(
            f"{self.name}: the endpoint's reply is not an OpenAI chat completion ({kind}). Is --api-base right, with "
            f"/v1 at its end where the server wants it? It said: {shown}",
            retry=self._has_answered,  # then the address is right, and what stands in front of it has sent this
        )

    def _broke_off(self, error: Any) -> ModelError:
        """What an answer is that the endpoint could not finish; it says so beside what there is of it."""
        payload = json.dumps({"error": error}).encode()
        if error and (status := _code(error)) != 200:
            return self._error(status, {}, payload)
        why = f": {self._clean(_message(payload))[:300]}" if error else ""
        text = f"{self.name}: the endpoint broke its answer off (finish_reason error){why}."
        return ModelError(text, retry=True, status=200)

    def _error(self, status: int, headers: Any, payload: bytes) -> ModelError:
        said = self._clean(_message(payload))[:300]
        if status in (401, 403):
            text = f"{self.name}: the endpoint refused the key (HTTP {status}: {said}). Check OPENAI_API_KEY."
            return ModelError(text, fatal=True, status=status)
        if status == 402:
            return ModelError(f"{self.name}: {no_money_left(said)}", fatal=True, status=status)
        if status == 404:
            text = (
                f"{self.name}: the endpoint does not know this model or address (HTTP 404: {said}). Check the model's name, and "
                "--api-base, which ends with /v1 at most servers."
            )
            return ModelError(text, fatal=True, status=status)
        return ModelError(
            f"{self.name}: HTTP {status}: {said}",
            retry=status in RETRY_STATUSES,
            retry_after=read_retry_after(headers.get("Retry-After"), headers.get("Date")),
            status=status,
        )

    def _clean(self, text: str) -> str:
        key = self._api_key
        if not key:
            return text
        if len(key) > SHORT_KEY:
            return text.replace(key, "[key]")
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)


def no_money_left(said: str) -> str:
    """What an HTTP status of 402 means, with what was said."""
    return f"the account has too little money left (HTTP 402: {said}). Top it up and run the command again; what was bought is kept."


def chat_fields(request: Request) -> dict[str, Any]:
    """A request as the fields of an OpenAI chat completion, but for the model's name."""
    parameters = request.parameters
    fields: dict[str, Any] = {
        "messages": [{"role": role, "content": content} for role, content in request.messages],
        "max_tokens": parameters.max_tokens + request.room,
        "temperature": parameters.temperature,
    }
    if parameters.seed is not None:
        fields["seed"] = parameters.seed
    if parameters.top_logprobs:
        fields |= {"logprobs": True, "top_logprobs": parameters.top_logprobs}
    if parameters.schema is not None:
        schema = {"name": "answer", "strict": True, "schema": parameters.schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


def _message(payload: bytes) -> str:
    """The endpoint's own words; all that it sent where there are none in the usual place."""
    text = payload.decode("utf-8", "replace").strip()
    try:
        error = json.loads(text)["error"]
        said = error["message"] if isinstance(error, dict) else error
    except (ValueError, KeyError, TypeError, RecursionError):
        said = None
    return said if said and isinstance(said, str) else text or "no message"


def refused_field(status: int, payload: bytes, sent: Collection[str]) -> str | None:
    """The optional field, of those that were sent, that an endpoint says it does not take; None where it says something else."""
    if status not in (400, 403, 422):  # 403 is OpenAI's where a model gives no log-probabilities
        return None
    text = payload.decode("utf-8", "replace").lower()
    if not _REFUSAL.search(text):
        return None
    return next((field for field in _OPTIONAL if field in sent and re.search(rf"\b{field}\b", text)), None)


def fewer_alternatives(status: int, payload: bytes, sent: Mapping[str, Any]) -> int | None:
    """How many alternatives to a token an endpoint gives at most, where it says that these are too many; None where it says something
    else."""
    text = payload.decode("utf-8", "replace").lower()
    if status not in (400, 422) or "top_logprobs" not in sent or "logprobs" not in text:
        return None
    found = _MOST.search(text)
    return int(found[1]) if found and 0 < int(found[1]) < sent["top_logprobs"] else None


def _code(error: Any) -> int:
    """Status of an error that came with HTTP 200."""
    code = error.get("code") if isinstance(error, dict) else None
    return int(code) if isinstance(code, (int, str)) and str(code).isdigit() else 200


def _text(content: Any) -> str:
    """The content of a message: a text, nothing, or a list of parts."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type", "text") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return content or ""


def shown_address(url: str) -> str:
    """An address without a user's name, password or query, which may hold a key."""
    scheme, slashes, rest = url.rpartition("://")
    place, *query = re.split(r"[?#]", rest)
    shown = (
        "…" if any("@" in each for each in query) else place.rpartition("@")[2]
    )  # a password may hold any of these signs
    return f"{scheme}{slashes}{shown}"


def check_address(url: str) -> str:
    """The address of an endpoint, if it can be used.

    Raises:
        InputError: It is none, or holds a name, password or query: addresses stand in settings, which are kept and shown.
    """
    shown, url = shown_address(url), url.strip()
    if not url.startswith(("http://", "https://")):
        raise InputError(f"--api-base {shown}: an address begins with http:// or https://.")
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in url):
        raise InputError(f"--api-base {shown}: this is no usable address. Write it like http://127.0.0.1:8000/v1.")
    if "@" in url or parts.query or parts.fragment:
        raise InputError(
            f"--api-base {shown}: an address holds no user's name, password or query here, as it is kept with the run. Give the "
            "key as OPENAI_API_KEY; where the server wants a name and password, put a proxy in front of it."
        )
    return url


def read_logprobs(data: Any, wanted: Parameters = _EXPLAINED) -> tuple[TokenProbabilities, ...] | None:
    """Log-probabilities of a chat completion that are worth keeping, rounded to 4 decimals; None where there are none, or none are wanted.

    Those of the tokens that were said, without any alternative, are none: a yes by itself would have P(yes) = 1. They
    are cut down here, before the first verdict is read, so that a stored answer gives the same one.
    """
    if not wanted.top_logprobs:
        return None
    short, asked = wanted.schema is None and wanted.max_tokens <= ROOM, _asked_words(wanted.schema)
    content = data.get("content") if isinstance(data, dict) else None
    if not content or not any(token.get("top_logprobs") for token in content):
        return None
    return tuple(
        (token["token"], _alternatives(token.get("top_logprobs") or [token], short=short, asked=asked))
        for token in content
    )


def _asked_words(schema: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The words for yes and no that a schema allows, where they are not English, which is kept anyway."""
    for field in (schema or {}).get("properties", {}).values():
        words = field.get("enum") or field.get("properties", {}).get("answer", {}).get("enum") or ()
        return tuple(each.lower() for each in words if isinstance(each, str) and each not in ("yes", "no"))
    return ()


def _alternatives(top: list[Any], *, short: bool, asked: Collection[str]) -> tuple[tuple[str, float], ...]:
    pairs = [(each["token"], each["logprob"]) for each in top if each["logprob"] is not None]
    if not all(logprob <= 0.01 for _, logprob in pairs):
        raise ValueError("a log-probability above 0, or none at all")
    kept = worth_keeping(pairs, short=short, asked=asked)
    return tuple([(token, round(logprob, 4)) for token, logprob in kept])


def read_retry_after(value: str | None, date: str | None = None) -> float | None:
    """Seconds to wait from a ``Retry-After`` header: a number of seconds, or a date, which counts from the reply's own
    ``Date`` where it has one: the clock here may be wrong."""
    if not value:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if isfinite(seconds) else None
    except ValueError:
        until = _seconds(value)
    began = _seconds(date)
    return None if until is None else max(0.0, until - (time() if began is None else began))


def _seconds(date: str | None) -> float | None:
    """Since 1970; None where it is no date."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, TypeError, OverflowError):
        return None


def default_base_url() -> str:
    """``OPENAI_BASE_URL``, else OpenAI's own."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
