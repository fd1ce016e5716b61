"""List prices of OpenAI's own models, with their date; other providers' come with LiteLLM.

A price that nobody told us is not known, and never 0. What runs on this machine costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from .base import Request
from .budget import reserved_tokens

AS_OF = "2026-11-23"
"""Day of the table, which agrees with that of LiteLLM 1.104.5; prices before any discount for cached prompts."""
_PER_MILLION = {
    "gpt-3.5-turbo": (0.5, 1.5),
    "gpt-4": (30, 60),
    "gpt-4-turbo": (10, 30),
    "gpt-4.1": (2, 8),
    "gpt-4.1-mini": (0.4, 1.6),
    "gpt-4.1-nano": (0.1, 0.4),
    "gpt-4o": (2.5, 10),
    "gpt-4o-2024-05-13": (5, 15),
    "gpt-4o-mini": (0.15, 0.6),
    "gpt-5": (1.25, 10),
    "gpt-5-mini": (0.25, 2),
    "gpt-5-nano": (0.05, 0.4),
    "gpt-5.1": (1.25, 10),
    "gpt-5.2": (1.75, 14),
    "gpt-5.4": (2.5, 15),
    "gpt-5.4-mini": (0.75, 4.5),
    "gpt-5.4-nano": (0.2, 1.25),
    "gpt-5.5": (5, 30),
    "o1": (15, 60),
    "o3": (2, 8),
    "o3-mini": (1.1, 4.4),
    "o4-mini": (1.1, 4.4),
}
"""US dollars for a million prompt tokens and a million tokens of answers."""
BATCH_SHARE = 0.5
"""Share of these prices that OpenAI charges in a batch."""
_SNAPSHOT = re.compile(r"-20\d\d-\d\d-\d\d$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one prompt token and for one token of an answer."""

    prompt: float
    answer: float

    def of(self, prompt_tokens: int, answer_tokens: int) -> float:
        """US dollars for so many tokens."""
        return prompt_tokens * self.prompt + answer_tokens * self.answer

    def highest(self, request: Request) -> float:
        """US dollars that an answer to a request may cost."""
        answer = request.most_tokens
        return self.of(reserved_tokens(request) - answer, answer)

    def times(self, share: float) -> Price:
        """A share of it, e.g. that of a batch."""
        return Price(self.prompt * share, self.answer * share)


FREE = Price(0.0, 0.0)


def list_price(model: str, base_url: str) -> Price | None:
    """The price of a model at an endpoint; None where it is not known, as of any endpoint but OpenAI's own.

    Args:
        model: Its name there, e.g. ``gpt-4o-mini``; a dated snapshot costs what the model costs, but for the first of
            gpt-4o.
        base_url: The endpoint's address.
    """
    if urlsplit(base_url).hostname != "api.openai.com":
        return None
    found = _PER_MILLION.get(model) or _PER_MILLION.get(_SNAPSHOT.sub("", model))
    return None if found is None else Price(found[0] / 1e6, found[1] / 1e6)
