"""Replay of recorded turns: a model gets the tools, and each of its calls gets the recorded result. No tool is run.

A turn is everything after the user's last message: calls of tools, their results and the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...models.base import Answer, ModelError, Request, make_request, message_in, refuse_tools
from ...models.budget import reserved_tokens
from ...prompts.conversations.chat import ToolCall, as_sent, at_last_user, calls_in_turn, turn_of
from ...prompts.errors import InputError
from ...prompts.examples import Example
from ...prompts.formatting import count
from ...prompts.messages import StructuredText, conversation, messages_of, told
from ...prompts.text import sendable
from ..buying import Estimate
from ..generator import Generated, Generator
from .call_checks import RECORDED, likeness

TOOLS = "tools"
"""Key of the tools' definitions in an example's metadata; ``functions`` is its older name."""
MORE_TURNS = 5
"""Number of messages that a model may write beyond those of the recorded turn. Then the turn ends without a reply."""
NO_RESULT = "There is no recorded result of this call."


def with_record(example: Example) -> Example:
    """Return the example for a replay: the input ends with the user's last message, ``metadata.recorded`` has the turn.

    Messages of the input after the user's last message move to the output, because applications often log only the last
    reply as the output. An existing ``metadata.recorded`` is kept.
    """
    before, after = at_last_user(example.input)
    if not (before and after):
        before, after = [], []
    update: dict[str, Any] = {}
    if before:
        update["input"] = StructuredText(conversation(messages_of(before) or []), before)
    if example.output is not None:
        turn = turn_of(example.output) or [{"role": "assistant", "content": str(example.output)}]
        if after:
            update["output"] = told([*after, *turn])
        if RECORDED not in example.metadata:
            update["metadata"] = {**example.metadata, RECORDED: [*after, *turn]}
    return example.model_copy(update=update) if update else example


def tools_of(example: Example) -> tuple[Mapping[str, Any], ...]:
    """Return the definitions of an example's tools, in the form of OpenAI's chat API.

    Definitions for OpenAI's responses API and for Anthropic are understood too, and a text with JSON. Raises InputError
    if there are no definitions, or if one is not valid.
    """
    location = f"example '{example.id}': metadata.{TOOLS}"
    given = example.metadata.get(TOOLS) or example.metadata.get("functions")
    try:
        given = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError) as error:
        raise InputError(f"{location}: not valid JSON ({error}).") from None
    if not isinstance(given, list) or not given:
        raise InputError(
            f"{location}: a list of definitions of tools is needed to replay the output: name, description and "
            "parameters, in a column 'tools' of the data."
        )
    return tuple(_definition(each, f"{location}, tool {place}") for place, each in enumerate(given, 1))


def _definition(given: Any, where: str) -> Mapping[str, Any]:
    function = given.get("function", given) if isinstance(given, Mapping) else None
    of_its_own = isinstance(given, Mapping) and given.get("type") in (None, "function", "custom")
    if not of_its_own or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InputError(f"{where}: a definition with a 'name' is needed; tools that a vendor runs cannot be replayed.")
    parameters = function.get("parameters", function.get("input_schema")) or {"type": "object", "properties": {}}
    told = {name: function[name] for name in ("name", "description", "strict") if function.get(name) is not None}
    return {"type": "function", "function": {**told, "parameters": parameters}}


class RecordedResults:
    """The results of the recorded calls. Among equally near calls, the least used result is given out first."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        """Keep the calls that have a result."""
        self._known = [call for call in calls if call.result is not None]
        self._given = [0] * len(self._known)

    def result_of(self, call: ToolCall) -> tuple[str | None, bool]:
        """Return the result of the nearest recorded call of the same tool, and whether its arguments are the same.

        The nearest call shares most arguments; among several, the least used, then the earliest. The result is None if
        the tool was never called, or if the arguments are not a JSON object, which no tool could read.
        """
        places = [place for place, known in enumerate(self._known) if known.name == call.name]
        if not places or not isinstance(call.arguments, Mapping):
            return None, False
        alike = {place: likeness(call, self._known[place]) for place in places}
        nearest = min(places, key=lambda place: (-alike[place], self._given[place], place))
        self._given[nearest] += 1
        return self._known[nearest].result, alike[nearest] == 1


@dataclass(frozen=True)
class Replayed(Generated):
    """A replayed output. A tool message has the key ``replayed`` if its result does not come from the same call."""

    nearest: int = 0
    """Number of calls that got the result of another, the nearest, recorded call."""
    is_unrecorded: bool = False
    """Whether the output ends at a call without a recorded result."""
    is_endless: bool = False
    """Whether the output ends at a call because there were too many messages."""
    is_in_words: bool = False
    """Whether the reply is a call that the endpoint passed on as text, so that it is not a real call."""


def replay_counts(outputs: Sequence[Generated]) -> dict[str, int] | None:
    """Count replayed outputs, calls with another call's result, and other problems; None if nothing was replayed."""
    found = [each for each in outputs if isinstance(each, Replayed)]
    if not found:
        return None
    return {
        "replayed": len(found),
        "calls_with_nearest_result": sum(each.nearest for each in found),
        "unrecorded": sum(each.is_unrecorded for each in found),
        "endless": sum(each.is_endless for each in found),
        "calls_as_text": sum(each.is_in_words for each in found),
    }


def replay_said(outputs: Sequence[Generated]) -> list[str]:
    """Return sentences on calls without their own result, on endless outputs, and on calls that came as text."""
    found = replay_counts(outputs) or {}
    sentences = []
    if found.get("calls_as_text"):
        sentences.append(
            f"Replies that look like a call of a tool in words: {found['calls_as_text']}. The endpoint does not read them "
            "as calls, so they are none. Does the server need a parser of calls for this model?"
        )
    if any(found.get(name) for name in ("calls_with_nearest_result", "unrecorded", "endless")):
        sentences.append(
            f"Of {count(found['replayed'], 'replayed output')}, {found['unrecorded']} end at a call that was never "
            f"recorded and {found['endless']} after too many calls. "
            f"{count(found['calls_with_nearest_result'], 'call')} got the result of the nearest recorded call of the "
            "tool, as no recorded one has the same arguments."
        )
    return sentences


class ReplayTurn:
    """A recorded turn during its replay."""

    def __init__(self, first: Request, identity: str, example: Example) -> None:
        """``first`` is the request without tools, ``identity`` the model's; ``example`` is from :func:`with_record`."""
        self._first, self._identity = first, identity
        self._parameters = replace(first.parameters, tools=tools_of(example))
        recorded = told(example.metadata[RECORDED])
        self._results = RecordedResults(calls_in_turn(recorded))
        written = sum(role == "assistant" for role, _ in messages_of(example.metadata[RECORDED]) or ())
        self.left = max(1, written)
        """Messages of the recorded turn that the model has yet to write, at least 1. This estimates the calls left."""
        self._most = written + MORE_TURNS
        self.messages: list[dict[str, Any]] = []
        """Messages of the model so far, with the results of its calls."""
        self.is_over = self.is_unrecorded = self.is_endless = self.is_in_words = False
        self.nearest = 0

    def request(self) -> Request:
        """Make the next request."""
        sent = [
            as_sent({name: value for name, value in message.items() if name != "replayed"}) for message in self.messages
        ]
        return make_request(self._identity, [*self._first.messages, *sent], self._parameters)

    def take(self, answer: Answer) -> None:
        """Add the answer to the request, and the results of its calls. Raises ValueError if it is not a message."""
        message = message_in(sendable(answer.text))
        calls = message.get("tool_calls", [])
        before = len(calls_in_turn(told(self.messages))) if self.messages else 0
        for number, call in enumerate(calls, before + 1):
            call["id"] = str(call.get("id") or f"call{number:05}")  # some servers want exactly nine letters and digits
            call.setdefault("type", "function")
        self.messages.append(message)
        self.left, self._most = max(1, self.left - 1), self._most - 1
        for call, made in zip(calls, calls_in_turn(told([message])), strict=True):
            result, is_same = self._results.result_of(made)
            mark = {} if is_same else {"replayed": "nothing" if result is None else "nearest"}
            self.nearest += result is not None and not is_same
            self.is_unrecorded |= result is None
            content = NO_RESULT if result is None else result
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content, **mark})
        self.is_endless = bool(calls) and not self._most and not self.is_unrecorded
        self.is_over = not calls or self.is_unrecorded or self.is_endless
        names = "|".join(re.escape(each["function"]["name"]) for each in self._parameters.tools or ())
        written = re.search(rf'\{{\s*"name"\s*:\s*"(?:{names})"', str(message.get("content") or ""))
        self.is_in_words = not calls and written is not None


@dataclass(frozen=True)
class ReplayingGenerator(Generator):
    """A model that writes a turn with calls of tools, which get recorded results. An output is a list of messages."""

    async def generate(
        self, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> list[Generated]:
        """Write outputs as :meth:`Generator.generate` does. The returned examples come from :func:`with_record`.

        Raises InputError if the model does not accept tools, or if an example has no tools or no recorded output.
        """
        return await super().generate(self._replayable(examples), on_done)

    def estimate(self, examples: Sequence[Example]) -> Estimate:
        """Estimate as :meth:`Generator.estimate` does, for as many messages as the recorded turn has."""
        turns = [self._so_far(example) for example in self._replayable(examples)]
        open_turns = {request.key: (turn, request) for turn, request in turns if request is not None}
        calls = sum(turn.left for turn, _ in open_turns.values())
        sent = sum(turn.left * (reserved_tokens(request) - self.most_tokens) for turn, request in open_turns.values())
        stored = len(turns) - len(open_turns)
        return Estimate.priced(0, calls, stored, sent, self.most_tokens * calls, self.model, self.gateway)

    def foreseen(self, examples: Sequence[Example]) -> list[Example]:
        """Return the examples with stored outputs, as :meth:`Generator.foreseen` does."""
        found = []
        for example in self._replayable(examples):
            turn, request = self._so_far(example)
            output = told(turn.messages) if request is None else f"{request.key.hex()} {example.output or ''}"
            found.append(example.model_copy(update={"output": output, "comment": ()}))
        return found

    def _replayable(self, examples: Sequence[Example]) -> list[Example]:
        """Return the examples from :func:`with_record`. Raises the InputErrors of :meth:`generate`."""
        refuse_tools(self.model)
        found = [with_record(example) for example in examples]
        for example in found:
            tools_of(example)
            if not messages_of(example.metadata.get(RECORDED)):
                raise InputError(
                    f"example '{example.id}': there is no recorded output to replay, neither as its output nor as "
                    f"messages in metadata.{RECORDED}."
                )
        return found

    def _so_far(self, example: Example) -> tuple[ReplayTurn, Request | None]:
        """Return the turn as far as its answers are in the store, with the next request to buy; None at the end."""
        turn, store = ReplayTurn(self._request(example), self.model.identity, example), self.gateway.store
        while not turn.is_over:
            request = turn.request()
            answer = store.get_many([request.key]).get(request.key) if store is not None else None
            if answer is None:
                return turn, request
            turn.take(answer)
        return turn, None

    async def _write(self, example: Example) -> Generated:
        turn = ReplayTurn(self._request(example), self.model.identity, example)
        example = example.model_copy(update={"output": None, "comment": ()})  # comments are about the old output
        answers: list[Answer] = []
        seconds: list[float | None] = []
        while not turn.is_over:
            request = turn.request()
            try:
                answer = await self.gateway.ask(self.role, self.model, request)
            except ModelError as error:
                if error.fatal:
                    raise
                return Replayed(example, str(error))
            try:
                turn.take(answer)
            except (ValueError, TypeError) as error:
                await self.gateway.forget([request.key])
                return Replayed(example, f"{self.model.name}: the output cannot be used: {error}.")
            answers.append(answer)
            seconds.append(self.gateway.seconds.pop(request.key, None))
        costs = [each.cost_usd for each in answers]
        return Replayed(
            example.model_copy(update={"output": told(turn.messages)}),
            cut_off=answers[-1].finish == "length",
            tokens=sum(each.prompt_tokens + each.completion_tokens for each in answers),
            cost_usd=None if None in costs else sum(each or 0.0 for each in costs),
            seconds=None if None in seconds else sum(each or 0.0 for each in seconds),
            nearest=turn.nearest,
            is_unrecorded=turn.is_unrecorded,
            is_endless=turn.is_endless,
            is_in_words=turn.is_in_words,
        )
