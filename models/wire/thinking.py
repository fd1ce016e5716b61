"""Models that think before they answer: how thinking is set, what marks it in a reply, and the room that it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from ...prompts.errors import InputError
from ..base import Answer

Effort = Literal["minimal", "low", "medium", "high"]
Thinking = Literal["auto", "off"] | Effort | Annotated[int, Field(ge=1, le=10**6, strict=True)]
"""How much a model thinks: as its server has it (``auto``), not at all, an effort, or at most so many tokens."""
ROOM = (2_000, 8_000, 32_000)
"""Tokens of thinking that a call gets beside those of its answer: the first number, and the next where that was too
few."""
TAKES = {"low": 1_024, "medium": 2_048, "high": 4_096}
"""Tokens that an effort may take with Anthropic and Gemini, by LiteLLM's table; a call needs more room than that."""
SLOWEST = 20
"""Tokens a second that a server writes at least: by it a call gets time for its room, beside the usual time for an
answer."""
MOST_TOKENS = 10**9
"""More than any call takes; a number from there on is none of tokens."""

_OUT_OF_ROOM = re.compile(
    r"max_tokens or model output limit was reached|max_tokens\W{1,3}must be greater than\W{1,3}thinking", re.IGNORECASE
)
"""Status 400 of OpenAI and Anthropic where a call left no room for an answer: no refusal, but an answer that was cut
off."""


def tokens_of(said: Any) -> int:
    """How many tokens an endpoint says it took; 0 where that is no number of them."""
    try:
        tokens = int(float(said or 0))
    except (ValueError, TypeError, OverflowError):
        return 0
    return tokens if 0 <= tokens < MOST_TOKENS else 0


def tokens_thought(usage: Any, raw: str, answer: str, *, apart: bool) -> int:
    """Tokens that a model thought, part of those of its reply: as its endpoint counts them, else estimated.

    Args:
        usage: The endpoint's own figures.
        raw: The text of the reply.
        answer: The text without what was thought.
        apart: Whether it thought beside the text.

    Returns:
        At least 1 where the reply shows that the model thought.
    """

    def part(of: Any, name: str) -> Any:
        return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)

    said = part(part(usage, "completion_tokens_details"), "reasoning_tokens")
    counted = tokens_of(said) if isinstance(said, (int, float)) and isfinite(said) else 0
    if counted or not (apart or len(raw.strip()) > len(answer.strip())):
        return counted
    written, said_at_last = tokens_of(part(usage, "completion_tokens")), answer.strip()
    if not said_at_last:
        return max(1, written)
    share = 1 / 4 if apart else written / len(raw.strip())  # tokens a character
    return max(1, written - max(1, round(share * len(said_at_last))))


# --- room -------------------------------------------------------------------------------------------------------------


class ThinkingFacts(NamedTuple):
    """Facts of a model's thinking, which a store keeps beside the answers."""

    room: int
    """Tokens that its calls get for thinking; 0 where it has answered without."""
    answers: int = 0
    """Answers that it has given with it."""
    tokens: int = 0
    """Tokens that it has thought for them."""

    @property
    def average(self) -> int:
        """Tokens of thinking an answer; all of the room where it has given none."""
        return round(self.tokens / self.answers) if self.answers else self.room

    def and_these(self, others: ThinkingFacts) -> ThinkingFacts:
        """The union of two sets of facts."""
        return ThinkingFacts(max(self.room, others.room), self.answers + others.answers, self.tokens + others.tokens)


def seconds_for(room: int, timeout: float) -> float:
    """Seconds that a call may take: its ``timeout``, and the time in which a slow server fills its room."""
    return timeout + room / SLOWEST


def needs_room(answer: Answer, cap: int) -> bool:
    """Whether a reply was cut off by what was thought: before the answer, or in it though it is shorter than its
    cap."""
    if answer.finish != "length":
        return False
    thought, is_blank = answer.reasoning_tokens, bool(answer.text) and cap == 1
    # a blank for the one token that was asked for is the beginning of an answer
    return (answer.is_empty and not is_blank) or (thought > 0 and answer.completion_tokens - thought < cap)


def is_out_of_room(status: int | None, said: str) -> bool:
    """Whether an error says that the call left no room for an answer after the thinking."""
    return status in (400, 422) and _OUT_OF_ROOM.search(said) is not None


def first_room(thinking: Thinking, steps: Sequence[int], *, given: bool) -> int:
    """Room of the first call: none where nobody said that the model thinks, else the first step with more than it may
    take."""
    if thinking in ("auto", "off") and not given:
        return 0
    takes = thinking if isinstance(thinking, int) else TAKES.get(thinking, 0)
    return next((step for step in steps if step > takes), steps[-1])


# --- how it is sent ---------------------------------------------------------------------------------------------------


_ABOUT_THINKING = re.compile(r"reasoning|thinking|chat_template|effort|budget", re.IGNORECASE)
_ABOUT_OTHERS = re.compile(r"\b(?:temperature|top_p|response_format|(?:top_)?logprobs|seed)\b", re.IGNORECASE)


class ThinkingFields:
    """The fields of a request by which thinking is set, for one model; learns which of them its endpoint takes.

    There are several forms, as servers differ; where one is refused the next is sent. The last one of ``off`` sends
    nothing.
    """

    def __init__(self, name: str, thinking: Thinking, forms: Sequence[Mapping[str, Any]]) -> None:
        """``forms``: see :func:`direct_forms` and :func:`litellm_forms`; none for ``auto``."""
        self._name = name
        self._thinking = thinking
        self._forms = [dict(form) for form in forms] or [{}]
        self.place = 0
        """Place of the form that is sent now."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """To be sent."""
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
        """Whether an error refuses the form with this number; the next one is then sent. ``shown`` is what of it may be
        shown.

        Raises:
            InputError: No form of what was asked for is taken.
        """
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
        efforts: list[dict[str, Any]] = [{"reasoning_effort": each} for each in ("none", "minimal", "low")]
        template = {"chat_template_kwargs": {"enable_thinking": False}}
        return [*([] if hosted else [{**template, **efforts[0]}, template]), *efforts, {}]
    if isinstance(thinking, int):
        budget = {"enable_thinking": True, "thinking_budget": thinking}
        return [{"thinking_token_budget": thinking, "chat_template_kwargs": budget}, {"thinking_budget": thinking}]
    effort: dict[str, Any] = {"reasoning_effort": thinking}
    return [effort] if hosted else [{**effort, "chat_template_kwargs": {"enable_thinking": True, **effort}}, effort]


def litellm_forms(thinking: Thinking, name: str) -> list[dict[str, Any]]:
    """The arguments by which LiteLLM takes the setting; it maps them to what Anthropic, Gemini and others want."""
    if thinking == "auto":
        return []
    if name.startswith("openrouter/"):
        return [{"extra_body": form} if form else {} for form in _openrouter(thinking)]
    if isinstance(thinking, int):
        return [{"thinking": {"type": "enabled", "budget_tokens": thinking}}]
    if thinking == "off":
        efforts: list[dict[str, Any]] = [{"reasoning_effort": each} for each in ("none", "minimal", "low")]
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
    return (
        fields.get("reasoning_effort") == "none"
        or "chat_template_kwargs" in fields
        or fields.get("reasoning") == {"enabled": False}
    )
