"""The form of requests that an endpoint takes, learned from its refusals, and the fields that set thinking."""

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
"""Statuses after which a call is repeated. 520 to 525 are from Cloudflare: the endpoint behind it cannot be reached for
the moment."""
AGAIN = 2  # immediate repetitions of a request if the endpoint itself refused the model's answer
_OWN_JSON = re.compile(r"json_validate_failed|failed_generation")  # Groq's status 400 if the model wrote other JSON


@dataclass(frozen=True)
class Refusal:
    """A reply without an answer."""

    status: int
    said: str  # the whole reply, in the endpoint's words
    error: ModelError  # error to raise if nothing can be learned from the refusal


class Learner:
    """Asks an endpoint in the form that it takes."""

    def __init__(self, thinking: ThinkingFields | None = None) -> None:
        """Start without facts; ``thinking`` has the forms of the setting for thinking."""
        self.facts = Facts()
        self.thinking = thinking or ThinkingFields("", "auto", ())

    async def ask(
        self, fields: Mapping[str, Any], send: Callable[[dict[str, Any]], Awaitable[Answer | Refusal]]
    ) -> Answer:
        """Ask with these fields and return the answer. A refused field is left out, and remembered once the request is
        answered without it. Raises ModelError without a usable answer, and InputError if the thinking setting is
        refused."""
        facts, repeats = self.facts, 0
        while True:
            form = self.thinking.place
            sent = {**facts.fit(fields), **self.thinking.fields}
            if repeats == AGAIN:
                # the endpoint's check of the JSON fails again and again: perhaps the reply is good enough without it
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
    """A model at an endpoint, with the limits that were learned about it."""

    name: str
    price: Price | None  # None if it is unknown
    takes_images: bool  # False if the model is known to take only texts
    takes_tools: bool = True  # False if the model is known to take no definitions of tools
    _learner: Learner

    def _refusal(self, request: Request, status: int, said: str, shown: str, error: ModelError) -> Refusal:
        """Return the refusal in a reply without an answer. ``shown`` is the reply's text without keys. Raises
        ModelError if the model takes no images or no tools, and the request has some."""
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
        """Return the error for a status. ``bad_key`` and ``unknown`` are texts for a refused key or unknown model."""
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
        """Sentence for the user if the endpoint does not take the setting ``thinking``; else None."""
        return self._learner.thinking.notice

    @property
    def left_out(self) -> list[str]:
        """Fields that are not sent, because the endpoint refused them."""
        return sorted(self._learner.facts.without)

    @property
    def most_alternatives(self) -> int | None:
        """Most alternatives to a token that the endpoint gives, by its own words; None if it named no limit."""
        return self._learner.facts.most_alternatives


Effort = Literal["minimal", "low", "medium", "high"]

Thinking = Literal["auto", "off"] | Effort | Annotated[int, Field(ge=1, le=10**6, strict=True)]
"""Amount of thinking: the server's default (``auto``), none (``off``), an effort, or a largest number of tokens."""

_OUT_OF_ROOM = re.compile(
    r"max_tokens or model output limit was reached|max_tokens\W{1,3}must be greater than\W{1,3}thinking", re.IGNORECASE
)
"""Messages of OpenAI and Anthropic, with status 400, if a call left no room for an answer. They count as an answer that
was cut off, not as a refusal."""


def is_out_of_room(status: int | None, said: str) -> bool:
    """Whether an error says that the call left no room for an answer after the thinking."""
    return status in (400, 422) and _OUT_OF_ROOM.search(said) is not None


_ABOUT_THINKING = re.compile(r"reasoning|thinking|chat_template|effort|budget", re.IGNORECASE)

_ABOUT_OTHERS = re.compile(r"\b(?:temperature|top_p|response_format|(?:top_)?logprobs|seed)\b", re.IGNORECASE)


class ThinkingFields:
    """Fields of a request that set a model's thinking, in several forms. If a form is refused, the next one is tried.
    The last form for ``off`` sends nothing."""

    def __init__(self, name: str, thinking: Thinking, forms: Sequence[Mapping[str, Any]]) -> None:
        """``forms`` come from :func:`direct_forms` or :func:`litellm_forms`; there are none for ``auto``."""
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
        """Sentence for the user if thinking could not be switched off; else None."""
        if self._thinking != "off" or self.place == 0 or _switches_off(self.fields):
            return None
        effort = _inner(self.fields).get("reasoning_effort", _inner(self.fields).get("reasoning"))
        how = "without such a setting" if effort is None else "to think as little as it can"
        return f"{self._name}: its endpoint does not take that thinking is off, so it is asked {how}."

    def is_refused(self, status: int, said: str, shown: str, place: int) -> bool:
        """Whether an error refuses the form number ``place``; the next form is then sent. ``shown`` is the text for the
        user. Raises InputError if no form is left."""
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
    """Return the forms of the setting for an OpenAI-compatible endpoint, the likeliest first; none for ``auto``."""
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
    """Return the arguments of the setting for LiteLLM, which translates them for Anthropic, Gemini and others."""
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
