"""A model that answers from a function or a list."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from ..models.base import Answer, Request, message_said

Reply = str | float | Answer | BaseException
"""A text, a probability of yes (answered as one token with log-probabilities), a whole answer, or an error to raise."""


class ScriptedModel:
    """A model that answers from a function or a list.

    Example:
        >>> model = ScriptedModel(lambda request: 0.9)
        >>> import asyncio
        >>> from askance.models.base import Parameters, make_request
        >>> request = make_request(model.identity, [("user", "Is it so?")], Parameters(1))
        >>> asyncio.run(model.answer(request)).text
        'Yes'
    """

    answers_stay_in_the_run = True
    """Its replies are not part of its identity, so no other command may reuse its answers."""
    template_may_think = False
    """Whether a reply that was cut off may be the beginning of a thought that a server's template has opened."""
    takes_tools = True
    """Whether requests may have tools. A text is then a reply without calls.

    A reply with calls is an answer whose text comes from :func:`~askance.models.base.message_said`.
    """

    def __init__(
        self,
        script: Callable[[Request], Reply] | Sequence[Reply],
        *,
        name: str = "scripted/model",
        slots: int = 16,
        delay: float = 0.0,
    ) -> None:
        """``slots`` is the number of calls at once; ``delay`` is the seconds that each call takes."""
        self.name = name
        self.identity = name
        self.slots = slots
        self.requests: list[Request] = []
        """Every request that was asked, in order."""
        self._script = script
        self._delay = delay

    async def answer(self, request: Request) -> Answer:
        """Return the next reply of the script. Raises the reply if it is an error, and IndexError after the last reply
        of a list."""
        place = len(self.requests)
        self.requests.append(request)
        if self._delay:
            await asyncio.sleep(self._delay)
        script = self._script
        reply = script(request) if callable(script) else script[place]
        if isinstance(reply, BaseException):
            raise reply
        return as_answer(reply, request)


def as_answer(reply: str | float | Answer, request: Request) -> Answer:
    """Turn a reply into an answer; an :class:`Answer` stays as it is. The count of a text's tokens is a quarter of its
    characters."""
    if isinstance(reply, Answer):
        return reply
    prompt_tokens = sum(len(content) for _, content in request.messages) // 4
    if isinstance(reply, str):
        reply = reply if request.parameters.tools is None else message_said(reply, ())
        return Answer(reply, None, prompt_tokens, max(1, len(reply) // 4))
    yes = min(max(float(reply), 1e-6), 1 - 1e-6)
    word = "Yes" if yes >= 0.5 else "No"
    alternatives = (("Yes", round(math.log(yes), 4)), ("No", round(math.log(1 - yes), 4)))
    logprobs = ((word, alternatives),) if request.parameters.top_logprobs else None
    return Answer(word, logprobs, prompt_tokens, 1)
