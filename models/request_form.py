"""The form of a request that an endpoint takes, learned from its refusals, and how thinking is set in it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from ..prompts.errors import InputError
from .base import Answer, ModelError, Request, images_in
from .budget import Price
from .refusals import Facts, quota_used_up, takes_no_images, takes_no_tools, wait_asked_for

RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 526), 529})
"""Statuses after which a call is repeated. From 520 on they are Cloudflare's, which cannot reach the endpoint behind it
for the moment."""
AGAIN = 2  # immediate repetitions of a request whose answer the endpoint itself could not use
_OWN_JSON = re.compile(r"json_validate_failed|failed_generation")  # Groq's status 400 where the model wrote other JSON


@dataclass(frozen=True)
class Refusal:
    """A reply that holds no answer."""

    status: int
    said: str  # the whole reply, in the endpoint's words
    error: ModelError  # error to raise where nothing can be learned from the refusal


class Learner:
    """Asks an endpoint in the form that it takes."""

    def __init__(self, thinking: ThinkingFields | None = None) -> None:
        """Start with no knowledge; ``thinking`` holds the forms that tell the model to think."""
        self.facts = Facts()
        self.thinking = thinking or ThinkingFields("", "auto", ())

    async def ask(
        self, fields: Mapping[str, Any], send: Callable[[dict[str, Any]], Awaitable[Answer | Refusal]]
    ) -> Answer:
        """An answer to a request with these fields; a refusal is learned from once the request is taken without its
        cause. Raises ModelError without a usable answer, and InputError where the wish for thinking is refused."""
        facts, repeats = self.facts, 0
        while True:
            form = self.thinking.place
            sent = {**facts.fit(fields), **self.thinking.fields}
            if repeats == AGAIN:
                # the model's own JSON may do, where the endpoint's check is in its way
                sent.pop("response_format", None)
            reply = await send(sent)
            if isinstance(reply, Refusal) and is_out_of_room(reply.status, reply.said):
                reply = Answer("", cost_usd=None, finish="length")
            if isinstance(reply, Answer):
                self.facts = self.facts.and_also(facts)
                return reply
            if _OWN_JSON.search(reply.said):
                repeats += 1
                if repeats > AGAIN:
                    raise replace(reply.error, retry=True)
                continue
            learned = facts.learn(reply.status, reply.said, sent)
            if learned is None and not self.thinking.is_refused(reply.status, reply.said, str(reply.error), form):
                raise reply.error
            facts = learned or facts


class EndpointModel:
    """A model at an endpoint: its learned limits, and the cost of a call."""

    name: str
    price: Price | None  # None where it is not known
    takes_images: bool  # False where it is known to take texts alone
    takes_tools: bool = True  # False where it is known to take no definitions of tools
    _learner: Learner

    def _refusal(self, request: Request, status: int, said: str, shown: str, error: ModelError) -> Refusal:
        """A reply without an answer; ``shown`` is safe. Raises ModelError where no images or no tools are taken."""
        if images_in(request) and takes_no_images(status, said):
            problem = "the model takes no images, and some examples have some"
        elif request.parameters.tools is not None and takes_no_tools(status, said):
            problem = "its endpoint takes no tools, and the outputs are replayed with some"
        else:
            return Refusal(status, said, error)
        raise ModelError(f"{self.name}: {problem}. It said: {shown[:300]}", fatal=True, status=status) from None

    def _failed(
        self, status: int, shown: str, said: str, headers: Mapping[str, str], *, bad_key: str, unknown: str
    ) -> ModelError:
        """The error for a status; ``bad_key`` and ``unknown`` are for a refused key and an unknown model."""
        if used_up := quota_used_up(status, said):
            problem = f"{used_up} It said: {shown}"
        elif status in (401, 403):
            problem = bad_key
        elif status == 402:
            problem = (
                f"the account has too little money left (HTTP 402: {shown}). Top it up and run the command again; what "
                "was bought is kept."
            )
        elif status == 404:
            problem = unknown
        else:
            wait = wait_asked_for(headers, said)
            return ModelError(f"{self.name}: HTTP {status}: {shown}", status in RETRY_STATUSES, wait, status=status)
        return ModelError(f"{self.name}: {problem}", fatal=True, status=status)

    @property
    def notice(self) -> str | None:
        """Sentence for the user where the endpoint does not take the setting ``thinking``; None where it does."""
        return self._learner.thinking.notice

    @property
    def left_out(self) -> list[str]:
        """Fields that its endpoint has refused, so that they are not sent."""
        return sorted(self._learner.facts.without)

    @property
    def most_alternatives(self) -> int | None:
        """Most alternatives to a token that it gives, by its own words; None where it gives all."""
        return self._learner.facts.most_alternatives


Effort = Literal["minimal", "low", "medium", "high"]

Thinking = Literal["auto", "off"] | Effort | Annotated[int, Field(ge=1, le=10**6, strict=True)]
"""Amount of thinking: the server's own (``auto``), none (``off``), an effort, or at most so many tokens."""

_OUT_OF_ROOM = re.compile(
    r"max_tokens or model output limit was reached|max_tokens\W{1,3}must be greater than\W{1,3}thinking", re.IGNORECASE
)
"""Status 400 of OpenAI and Anthropic where a call left no room for an answer: an answer cut off, and no refusal."""


def is_out_of_room(status: int | None, said: str) -> bool:
    """Whether an error says that the call left no room for an answer after the thinking."""
    return status in (400, 422) and _OUT_OF_ROOM.search(said) is not None


_ABOUT_THINKING = re.compile(r"reasoning|thinking|chat_template|effort|budget", re.IGNORECASE)

_ABOUT_OTHERS = re.compile(r"\b(?:temperature|top_p|response_format|(?:top_)?logprobs|seed)\b", re.IGNORECASE)


class ThinkingFields:
    """Fields of a request that set a model's thinking, in several forms; a refused form gives way to the next. The last
    form of ``off`` sends nothing."""

    def __init__(self, name: str, thinking: Thinking, forms: Sequence[Mapping[str, Any]]) -> None:
        """``forms``: see :func:`direct_forms` and :func:`litellm_forms`; none for ``auto``."""
        self._name = name
        self._thinking = thinking
        self._forms = [dict(form) for form in forms] or [{}]
        self.place = 0  # place of the form that is sent now

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields to send."""
        return self._forms[self.place]

    @property
    def notice(self) -> str | None:
        """Sentence for the user where thinking could not be switched off; None otherwise."""
        if self._thinking != "off" or self.place == 0 or _switches_off(self.fields):
            return None
        effort = _inner(self.fields).get("reasoning_effort", _inner(self.fields).get("reasoning"))
        how = "without such a setting" if effort is None else "to think as little as it can"
        return f"{self._name}: its endpoint does not take that thinking is off, so it is asked {how}."

    def is_refused(self, status: int, said: str, shown: str, place: int) -> bool:
        """Whether an error refuses the form with this number; the next one is then sent. ``shown`` is the text to be
        shown. Raises InputError where no form of the wish is taken."""
        sent = self._forms[place]
        if status not in (400, 403, 404, 422) or not sent:
            return False
        if not _ABOUT_THINKING.search(said) or _ABOUT_OTHERS.search(said) or is_out_of_room(status, said):
            return False
        if place + 1 == len(self._forms):
            raise InputError(
                f"{self._name}: thinking {self._thinking} is refused by its endpoint ({' '.join(shown.split())}). "
                "Give another effort, or leave the setting out."
            )
        self.place = max(self.place, place + 1)
        return True


def direct_forms(thinking: Thinking, base_url: str) -> list[dict[str, Any]]:
    """The forms in which an OpenAI-compatible endpoint may take the setting, the likeliest first; none for ``auto``."""
    if thinking == "auto":
        return []
    host = urlsplit(base_url).hostname or ""
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        return _openrouter(thinking)
    hosted = host == "api.openai.com" or host.endswith((".openai.com", ".openai.azure.com"))
    if thinking == "off":
        efforts: list[dict[str, Any]] = [{"reasoning_effort": level} for level in ("none", "minimal", "low")]
        template = {"chat_template_kwargs": {"enable_thinking": False}}
        return [*([] if hosted else [{**template, **efforts[0]}, template]), *efforts, {}]
    if isinstance(thinking, int):
        budget = {"enable_thinking": True, "thinking_budget": thinking}
        return [{"thinking_token_budget": thinking, "chat_template_kwargs": budget}, {"thinking_budget": thinking}]
    effort: dict[str, Any] = {"reasoning_effort": thinking}
    return [effort] if hosted else [{**effort, "chat_template_kwargs": {"enable_thinking": True, **effort}}, effort]


def litellm_forms(thinking: Thinking, name: str) -> list[dict[str, Any]]:
    """The arguments in which LiteLLM takes the setting; it translates them for Anthropic, Gemini and others."""
    if thinking == "auto":
        return []
    if name.startswith("openrouter/"):
        return [{"extra_body": form} if form else {} for form in _openrouter(thinking)]
    if isinstance(thinking, int):
        return [{"thinking": {"type": "enabled", "budget_tokens": thinking}}]
    if thinking == "off":
        efforts: list[dict[str, Any]] = [{"reasoning_effort": level} for level in ("none", "minimal", "low")]
        return [*efforts, {}]
    return [{"reasoning_effort": thinking}]


def _openrouter(thinking: Thinking) -> list[dict[str, Any]]:
    if thinking == "off":
        return [{"reasoning": {"enabled": False}}, {"reasoning": {"effort": "minimal"}}, {}]
    return [{"reasoning": {"max_tokens": thinking} if isinstance(thinking, int) else {"effort": thinking}}]


def _inner(form: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = form.get("extra_body", form)
    return found


def _switches_off(form: Mapping[str, Any]) -> bool:
    fields = _inner(form)
    is_off = fields.get("reasoning_effort") == "none" or fields.get("reasoning") == {"enabled": False}
    return is_off or "chat_template_kwargs" in fields
