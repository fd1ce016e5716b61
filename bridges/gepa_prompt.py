"""The part of a prompt that GEPA may rewrite, and the part around it that it never sees."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.base import ModelError, Parameters, make_request
from ..prompts.errors import InputError
from ..prompts.prompt import Prompt, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..models.base import Model
    from ..models.gateway import Gateway
    from ..models.session import BackgroundLoop


_PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_]\w*\}(?!\})")
_NAME_IN_BRACES = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Frame:
    """What stays as it is before and after the guidance: the placeholders with their headings."""

    before: str
    after: str

    def prompt(self, guidance: str) -> Prompt:
        """The whole prompt; ``{name}`` in the guidance is text and never becomes a placeholder."""
        return Prompt(self.before + literal(guidance) + self.after)


def literal(text: str) -> str:
    """The text as it is written in a prompt, so that no ``{name}`` in it is a placeholder."""
    return _NAME_IN_BRACES.sub(r"{{\1}}", text)


def cut_out_guidance(prompt: Prompt) -> tuple[Frame, str]:
    """Cut a prompt at its placeholders; the longest text between them is the guidance.

    A prompt without placeholders is guidance as a whole. Put back, the guidance gives the very same prompt.

    Raises:
        InputError: There is no text between the placeholders.
    """
    text = prompt.text
    cuts = [0, *(place for match in _PLACEHOLDER.finditer(text) for place in match.span()), len(text)]
    stretches = zip(cuts[::2], cuts[1::2], strict=True)
    start, end = max(stretches, key=lambda stretch: len(text[stretch[0] : stretch[1]].strip()))
    guidance = text[start:end].strip()
    if not guidance:
        raise InputError("The prompt is made of placeholders alone, so there is no text that GEPA could improve.")
    start = text.index(guidance, start)
    return Frame(text[:start], text[start + len(guidance) :]), fill(guidance, {})


REFUSED = (400, 413, 422)
"""Statuses of a request that is itself at fault, e.g. longer than the context: the next one may be answered, however
many in a row were not."""


@dataclass
class Counts:
    """What happened in a search."""

    rollouts: int = 0
    """Examples that were run, again ones included."""
    unscored: int = 0
    """Rollouts without a score, for which GEPA was given 0."""
    reflections: int = 0
    failed_reflections: int = 0


@dataclass
class Halt:
    """Remembers what GEPA, which logs an exception and goes on, must not go on after."""

    error: BaseException | None = None

    def guard(self, work: Callable[[], Any]) -> Any:
        """Do some work; an error in it ends the search."""
        try:
            return work()
        except BaseException as error:
            self.error = error
            raise


@dataclass(frozen=True)
class Reflecting:
    """How the reflection model is asked. GEPA sends neither setting, which leaves both to the endpoint."""

    temperature: float = 1.0
    """What an OpenAI endpoint takes where none is sent."""
    max_tokens: int = 2048


@dataclass
class Reflection:
    """The reflection model, asked through the gateway; each call has a seed of its own, so none repeats another."""

    gateway: Gateway
    model: Model
    settings: Reflecting
    seed: int
    loop: BackgroundLoop
    halt: Halt
    counts: Counts

    def __call__(self, prompt: str | Sequence[Mapping[str, str]]) -> str:
        """One reply. A call that fails is GEPA's to handle: it tries once more and then leaves the proposal out.

        Raises:
            AskanceError: The call failed; the search ends where every further one would too.
        """
        messages = [("user", prompt)] if isinstance(prompt, str) else [(m["role"], m["content"]) for m in prompt]
        parameters = Parameters(
            self.settings.max_tokens, self.settings.temperature, self.seed + self.counts.reflections
        )
        self.counts.reflections += 1
        request = make_request(self.model.identity, messages, parameters)
        try:
            answer = self.loop.run(self.gateway.ask("reflection", self.model, request))
        except ModelError as error:
            self.counts.failed_reflections += 1
            if error.fatal and error.status not in REFUSED:
                self.halt.error = error
            raise
        except BaseException as error:
            self.halt.error = error
            raise
        return answer.text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent on
