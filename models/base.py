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

Its original holds the fields of the message in OpenAI's chat API: parts with images, calls of tools.
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
        # left out where there is none, so that answers in older stores keep their keys
        values += [] if self.grammar is None else [self.grammar]
        if self.tools is not None:  # keys without tools stay as they were
            values.append({"tools": self.tools})
        return json.dumps(values, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what is sent, and the key under which its answer is kept."""

    messages: tuple[Message, ...]
    parameters: Parameters
    replicate: int
    key: bytes
    framing: Framing | None = field(default=None, compare=False)
    """The text that other requests on the same example share, for a server that can keep what it has read.

    The framing is not sent. None where it is not known.
    """
    about: tuple[Question, Example] | None = field(default=None, compare=False)
    """The question and the example, where one word, yes or no, is asked for: what a trained encoder reads in place of
    the messages."""
    room: int = field(default=0, compare=False)
    """Tokens for thinking, beside those of the answer. Not part of the key: more room does not change the question."""

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
        """The beginning that other requests on the same example share; empty where it is not known."""
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
    """Return all of a content but its texts, for the key; nothing for a plain text, whose key is as it always was."""
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
    """A request with its key; ``identity`` is the model's."""
    key = RequestKey(identity, parameters, replicate, messages).key("")
    return Request(tuple(messages), parameters, replicate, key, framing)


def images_of_content(content: str) -> int:
    """Return how many images stand in a message's content."""
    parts = content.original.get("content") if isinstance(content, StructuredText) else None
    return sum(part["type"] == "image_url" for part in parts) if isinstance(parts, list) else 0


def images_in(request: Request) -> int:
    """Return how many images are sent with a request."""
    return sum(images_of_content(content) for _, content in request.messages)


class Answer(NamedTuple):
    """A model's reply, with the tokens and the money that it took."""

    text: str
    logprobs: tuple[TokenProbabilities, ...] | None = None
    """Log-probabilities of each generated token; None where the endpoint gives none."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    """US dollars; None where the price is not known."""
    finish: str = "stop"
    """Why it ended; ``length`` means that it was cut off."""
    reasoning_tokens: int = 0
    """Tokens that the model thought before it answered, part of ``completion_tokens``; 0 where it did not think."""

    @property
    def is_empty(self) -> bool:
        """Whether the answer holds neither a word nor log-probabilities: nothing can be read from it or learned."""
        return not (self.logprobs or self.text.strip())


def message_said(text: str, calls: Any) -> str:
    """The text of an answer to a request with tools: one message as JSON, with its calls as an endpoint gives them. It
    is empty where nothing is said. Raises TypeError where the calls are no list of objects."""
    if not isinstance(calls or [], Sequence) or not all(isinstance(each, Mapping) for each in calls or ()):
        raise TypeError("tool_calls must be a list of objects")
    made = [{name: value for name, value in each.items() if name != "index"} for each in calls or ()]
    if not made and not text.strip():
        return ""
    return json.dumps(
        {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}, ensure_ascii=False
    )


def message_in(answer: str) -> dict[str, Any]:
    """The message in the text of an answer to a request with tools. Raises ValueError where there is none."""
    try:
        message = json.loads(answer)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or message.get("role") != "assistant":
        raise ValueError("the reply to a request with tools is no message")
    return message


class Model(Protocol):
    """A model that can be asked. It has one method; the attributes describe it."""

    name: str
    """The model's name as the user wrote it: ``provider/model``."""

    identity: str
    """Everything that the answers depend on besides the request: endpoint and model, or the hash of the weights.

    Where they depend on more than can be said here, e.g. a script, the model has a true ``answers_stay_in_the_run``: a
    run's answers are then not shared with other commands.
    """

    async def answer(self, request: Request) -> Answer:
        """Ask once. Raises ModelError without a usable answer; its ``retry`` says whether asking again may help."""


def refuse_images(model: Model, shown: Iterator[str]) -> None:
    """Refuse examples with images, by the ids ``shown``, for a model whose ``takes_images`` is false. Raises InputError
    then; the ids are read only for such a model."""
    if not getattr(model, "takes_images", True) and (first := next(shown, None)) is not None:
        raise InputError(
            f"{model.name} takes no images, and example '{first}' has one. Name a model that takes them, or leave such "
            "examples out."
        )


def refuse_tools(model: Model) -> None:
    """Refuse tools for a model without a true ``takes_tools``. Raises InputError then."""
    if not getattr(model, "takes_tools", False):
        raise InputError(
            f"{model.name} takes no definitions of tools, so a recorded output cannot be replayed. Name a model that "
            "takes them, at an OpenAI-compatible endpoint or through LiteLLM."
        )


class CallError(AskanceError):
    """A call brought nothing that can be used: the endpoint failed, or no reply follows the schema."""

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
    """HTTP status of the reply, where there was one; 200 for a reply that breaks off."""

    def __str__(self) -> str:
        return self.message


class EmptyAnswerError(ModelError):
    """The endpoint answered with nothing: the model may be silent, or something on the way went wrong."""


class LeftOutError(ModelError):
    """A batch came back without a usable answer to this request; whether the endpoint is down it does not say."""


class StoreAwayError(AskanceError):
    """A store does not answer now, e.g. because its server is restarted; what was to be done can be done again."""


class AnswerStore(Protocol):
    """Store of answers. Each method may raise :class:`StoreAwayError`. It is a SQLite file
    (:class:`askance.memory.verdict_store.VerdictStore`) or a PostgreSQL database
    (:class:`askance.memory.postgres_store.PostgresStore`)."""

    def get_many(self, keys: Sequence[bytes]) -> Mapping[bytes, Answer]:
        """Look up answers; a key that has none is left out."""

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, and let go of the claim on it; it is safe when this returns."""

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop answers that turned out to be of no use."""

    def learned(self, identity: str) -> ThinkingFacts | None:
        """Facts of the model with this identity; None where nothing was learned."""

    def learn(self, identity: str, facts: ThinkingFacts) -> None:
        """Keep new facts about a model: the larger room, and answers and tokens added to the known ones."""

    def claim(self, key: bytes) -> bool:
        """Whether an answer may be bought now; where not, another process that shares the store is buying it."""

    def renew(self, keys: Sequence[bytes]) -> None:
        """Keep claims alive: a claim that is not renewed lapses after its lease."""

    def let_go(self, keys: Sequence[bytes]) -> None:
        """Give up claims on answers that are not to be bought, or that are there now."""


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
