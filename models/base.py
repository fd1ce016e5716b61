"""Requests to a model, its answers, and the store in which answers are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..prompts.errors import AskanceError, InputError
from ..prompts.messages import StructuredText

if TYPE_CHECKING:
    from ..prompts.checklist import Question
    from ..prompts.examples import Example
    from ..prompts.prompt import Framing

Message = tuple[str, str]
"""Role and content. Content with more than a text is a :class:`~askance.prompts.messages.StructuredText`.

The field ``original`` of that class holds the message's fields in OpenAI's chat API: parts with images, tool calls.
"""

TokenProbabilities = tuple[str, tuple[tuple[str, float], ...]]
"""A generated token with the (token, log-probability) pairs that were likely in its place."""


A_WORD = 16  # most tokens of an answer that is one word, such as yes or no, with a few tokens before it


@dataclass(frozen=True)
class Parameters:
    """Settings of an answer. Every field is part of the request and so of its key."""

    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    top_logprobs: int = 0
    """Number of log-probabilities to ask for at each token; 0 asks for none."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the answer must follow."""
    grammar: str | None = None
    """GBNF grammar that the answer must follow, in place of a schema."""
    tools: tuple[Mapping[str, Any], ...] | None = None
    """Tools that the model may call, as OpenAI's chat API takes them. The answer's text is then a message
    (:func:`message_said`)."""

    @cached_property
    def canonical(self) -> str:
        """Return a text that is equal for equal parameters."""
        values: list[Any] = [self.max_tokens, float(self.temperature), self.seed, self.top_logprobs, self.schema]
        # left out if there is no grammar, so that answers in older stores keep their keys
        values += [] if self.grammar is None else [self.grammar]
        if self.tools is not None:  # for the same reason
            values.append({"tools": self.tools})
        return json.dumps(values, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Request:
    """One call: its messages and parameters, and the key under which the answer is kept."""

    messages: tuple[Message, ...]
    parameters: Parameters
    replicate: int
    key: bytes
    framing: Framing | None = field(default=None, compare=False)
    """The text that other requests on the same example share, for a server that can keep what it has read.

    The framing is not sent. None if it is unknown.
    """
    about: tuple[Question, Example] | None = field(default=None, compare=False)
    """The question and the example, if a yes or no is asked for. A trained encoder reads them in place of the messages.
    """
    room: int = field(default=0, compare=False)
    """Tokens for thinking, in addition to the answer's. Not part of the key: more room does not change the question."""

    @property
    def most_tokens(self) -> int:
        """Tokens that thinking and answer may take together."""
        return self.parameters.max_tokens + self.room

    @property
    def is_free(self) -> bool:
        """Whether the answer is a free text, longer than a word or a quote, which may quote a tag of thinking."""
        return self.parameters.schema is None and self.parameters.max_tokens > A_WORD

    @property
    def prefix(self) -> str:
        """The beginning that other requests on the same example share; empty if it is unknown."""
        return "" if self.framing is None else self.framing.prefix


class RequestKey:
    """Keys for requests that share everything up to a point in the last message. The key is the SHA-256 of the whole
    request: model identity, parameters, replicate, messages. Hashing the shared part once makes a warm lookup cheap."""

    def __init__(self, identity: str, parameters: Parameters, replicate: int, shared: Sequence[Message]) -> None:
        head = json.dumps([identity, parameters.canonical, replicate])
        self._state = sha256(f"{len(head)}:{head}".encode())
        *whole, (role, beginning) = shared
        for each, content in whole:
            data = content.encode("utf-8", "surrogatepass")
            self._state.update(_beside(content) + f"{each}:{len(data)}:".encode() + data)
        self._state.update(_beside(beginning) + f"{role}:last:".encode() + beginning.encode("utf-8", "surrogatepass"))

    def key(self, rest: str) -> bytes:
        """Key of the request whose last message goes on with ``rest``."""
        state = self._state.copy()
        state.update(rest.encode("utf-8", "surrogatepass"))
        return state.digest()


def _beside(content: str) -> bytes:
    """Return all fields of a content except its texts, for the key; nothing for a plain text, so that old keys stay."""
    if not isinstance(content, StructuredText):
        return b""
    fields = dict(content.original)
    parts = fields.get("content")
    if isinstance(parts, list):
        fields["content"] = [None if each["type"] == "text" else each for each in parts]
    else:
        fields.pop("content", None)
    data = json.dumps(fields, sort_keys=True).encode()
    return f"fields:{len(data)}:".encode() + data


def make_request(
    identity: str,
    messages: Sequence[Message],
    parameters: Parameters,
    replicate: int = 0,
    *,
    framing: Framing | None = None,
) -> Request:
    """Return a request with its key. ``identity`` is the model's identity."""
    key = RequestKey(identity, parameters, replicate, messages).key("")
    return Request(tuple(messages), parameters, replicate, key, framing)


def images_of_content(content: str) -> int:
    """Return the number of images in a message's content."""
    parts = content.original.get("content") if isinstance(content, StructuredText) else None
    return sum(part["type"] == "image_url" for part in parts) if isinstance(parts, list) else 0


def images_in(request: Request) -> int:
    """Return the number of images in a request."""
    return sum(images_of_content(content) for _, content in request.messages)


class Answer(NamedTuple):
    """A model's reply, with its tokens and its cost."""

    text: str
    logprobs: tuple[TokenProbabilities, ...] | None = None
    """Log-probabilities at each generated token; None if the endpoint gives none."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    """US dollars; None if the price is not known."""
    finish: str = "stop"
    """Why the reply ended; ``length`` means that it was cut off."""
    reasoning_tokens: int = 0
    """Tokens of thinking before the answer, part of ``completion_tokens``; 0 if the model did not think."""

    @property
    def is_empty(self) -> bool:
        """Whether the answer holds neither a word nor log-probabilities: nothing can be read from it or learned."""
        return not (self.logprobs or self.text.strip())


def message_said(text: str, calls: Any) -> str:
    """Return the text of an answer to a request with tools: one message as JSON, with the tool calls that the endpoint
    sent. It is empty if there is neither text nor call. Raises TypeError if the calls are no list of objects."""
    if not isinstance(calls or [], Sequence) or not all(isinstance(each, Mapping) for each in calls or ()):
        raise TypeError("tool_calls must be a list of objects")
    made = [{name: value for name, value in each.items() if name != "index"} for each in calls or ()]
    if not made and not text.strip():
        return ""
    return json.dumps(
        {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}, ensure_ascii=False
    )


def message_in(answer: str) -> dict[str, Any]:
    """Return the message in the text of an answer to a request with tools. Raises ValueError if there is none."""
    try:
        message = json.loads(answer)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or message.get("role") != "assistant":
        raise ValueError("the reply to a request with tools is no message")
    return message


class Model(Protocol):
    """A model that can be asked. It has one method, ``answer``; the attributes describe the model."""

    name: str
    """The model's name as the user wrote it: ``provider/model``."""

    identity: str
    """Everything besides the request that the answers depend on: endpoint and model, or the hash of the weights.

    If the answers depend on something that no text can identify, e.g. a script, the model has a true
    ``answers_stay_in_the_run``. A run's answers are then not shared with other commands.
    """

    async def answer(self, request: Request) -> Answer:
        """Ask once. Raises ModelError without a usable answer; its ``retry`` says whether asking again may help."""


def refuse_images(model: Model, shown: Iterator[str]) -> None:
    """Raise InputError if examples have images and the model's ``takes_images`` is false. ``shown`` are the ids of
    examples with images; they are read only for such a model."""
    if not getattr(model, "takes_images", True) and (first := next(shown, None)) is not None:
        raise InputError(
            f"{model.name} takes no images, and example '{first}' has one. Name a model that takes them, or leave such "
            "examples out."
        )


def refuse_tools(model: Model) -> None:
    """Raise InputError for a model without a true ``takes_tools``."""
    if not getattr(model, "takes_tools", False):
        raise InputError(
            f"{model.name} takes no definitions of tools, so a recorded output cannot be replayed. Name a model that "
            "takes them, at an OpenAI-compatible endpoint or through LiteLLM."
        )


class CallError(AskanceError):
    """A call gave no usable answer: the endpoint failed, or no reply follows the schema."""

    fatal: bool = False
    """Whether every further call would fail in the same way (wrong key, unknown model)."""


@dataclass(eq=False)
class ModelError(CallError):
    """A call failed. The message never holds a key."""

    message: str
    retry: bool = False
    retry_after: float | None = None
    """Seconds that the endpoint asked us to wait."""
    fatal: bool = False
    status: int | None = None
    """HTTP status of the reply, if there was a reply; 200 for a reply that breaks off."""

    def __str__(self) -> str:
        return self.message


class EmptyAnswerError(ModelError):
    """The endpoint sent an empty answer: the model may be silent, or something on the way went wrong."""


class LeftOutError(ModelError):
    """A batch came back without a usable answer to this request. This is no sign that the endpoint is down."""


class StoreAwayError(AskanceError):
    """A store does not answer now, e.g. because its server is restarted. The same call may succeed later."""


class AnswerStore(Protocol):
    """Store of answers. Each method may raise :class:`StoreAwayError`. It is a SQLite file
    (:class:`askance.memory.verdict_store.VerdictStore`) or a PostgreSQL database
    (:class:`askance.memory.postgres_store.PostgresStore`)."""

    def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Look up answers. Keys without an answer are left out."""

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, and let go of the claim on it. The answer is safe when this returns."""

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be useless."""

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Return the facts about the model with this identity; None if nothing was learned."""

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Add new facts about a model to the known ones: keep the larger room, and add answers and tokens."""

    def claim(self, key: bytes) -> bool:
        """Whether this process may buy the answer now. If not, another process that shares the store is buying it."""

    def renew(self, keys: Sequence[bytes]) -> None:
        """Keep claims alive: a claim that is not renewed lapses after its lease."""

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Give up claims on answers that are in the store now, or will not be bought."""


class ThinkingFacts(NamedTuple):
    """Facts about a model's thinking, which a store keeps beside the answers."""

    room: int
    """Tokens for thinking in each call; 0 for a model that answered without thinking."""
    answers: int = 0
    """Number of answers with thinking so far."""
    tokens: int = 0
    """Tokens of thinking for all these answers."""

    @property
    def average(self) -> int:
        """Average tokens of thinking for an answer; the whole room if there is no answer yet."""
        return round(self.tokens / self.answers) if self.answers else self.room

    def and_these(self, others: ThinkingFacts) -> ThinkingFacts:
        """Return both sets of facts together."""
        return ThinkingFacts(max(self.room, others.room), self.answers + others.answers, self.tokens + others.tokens)
