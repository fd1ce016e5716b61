"""A DSPy language model over our gateway, which stores, caps, books and retries its calls like all others."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

from ...models.base import Answer, Message, Model, ModelError, Parameters, Request, make_request
from ...models.event_loops import BackgroundLoop
from ...models.gateway import Gateway
from ...prompts.errors import AskanceError, MissingExtraError


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dspy":
            raise
        raise MissingExtraError("dspy", "dspy") from None


dspy: Any = _import("dspy")
lm15: Any = _import("dspy.lm15")


class Stopped(BaseException):
    """Ends a DSPy program or optimiser at once: the budget is used up, the key is wrong, or a verdict is missing.

    It is not an ``Exception``, because DSPy's evaluators and optimisers count an ``Exception`` as a score of 0 and go
    on. :func:`askance.bridges.dspy_metric.open_gateway` raises ``error`` in its place.
    """

    def __init__(self, error: AskanceError) -> None:
        super().__init__(str(error))
        self.error = error


class GatewayLM(dspy.LM):  # type: ignore[misc]
    """A ``dspy.LM`` that asks a model through a gateway.

    DSPy's cache and retries are off, because the gateway has a store and retries. The gateway's budget and ledger hold.
    An answer from the store is reported with zero tokens, as DSPy reports answers from its own cache. At a temperature
    above 0, each rollout and each generation is an answer of its own, which is kept; at temperature 0 they are one
    answer.
    """

    def __init__(
        self,
        gateway: Gateway,
        model: Model,
        *,
        role: str = "dspy",
        loop: BackgroundLoop | None = None,
        temperature: float = 0.0,
        max_tokens: int = 1000,
        **options: Any,
    ) -> None:
        """Make the model for an open gateway that lives on ``loop``. None means the running event loop; programs are
        then awaited (``acall``). ``options`` are further options of ``dspy.LM``, e.g. ``seed`` or ``callbacks``."""
        engine = GatewayEngine(gateway, model, role, loop)
        super().__init__(
            model.name,
            temperature=temperature,
            max_tokens=max_tokens,
            cache=False,
            num_retries=0,
            provider=dspy.clients.provider.Provider(),
            engine=engine,
            async_engine=AsyncGatewayEngine(engine),
            **options,
        )

    def _get_initial_kwargs(self, **options: Any) -> dict[str, Any]:
        """Return the options unchanged, because DSPy's demands for a model's name do not concern the gateway."""
        return {name: value for name, value in options.items() if name != "rollout_id" or value is not None}

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask as ``dspy.LM`` does. Each rollout has an answer of its own."""
        with _draws(options.get("rollout_id", self.kwargs.get("rollout_id"))):
            return super().__call__(prompt, messages=messages, **options)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask as ``dspy.LM`` does. Each rollout has an answer of its own."""
        with _draws(options.get("rollout_id", self.kwargs.get("rollout_id"))):
            return await super().acall(prompt, messages=messages, **options)


class GatewayEngine:
    """An engine in DSPy's sense: it takes a request in canonical form and returns a response."""

    supports_response_schema = True
    supported_params = frozenset({"max_tokens", "temperature", "seed", "response_format"})

    def __init__(self, gateway: Gateway, model: Model, role: str, loop: BackgroundLoop | None) -> None:
        """Set up the engine; the arguments are those of :class:`GatewayLM`."""
        self._gateway = gateway
        self._model = model
        self._role = role
        self.loop = loop

    def __deepcopy__(self, memo: dict[int, Any]) -> GatewayEngine:
        """Return the engine itself, because copies of a program share the gateway."""
        return self

    def complete(self, request: Any) -> Any:
        """Ask, and wait in this thread. Raises Stopped, which holds the error, if every further call would fail too.
        Raises LM15Error if this call failed, or if it needs a feature that the gateway lacks."""
        ask = self._request(request)
        if self.loop is None:
            text = "This LM belongs to the running event loop: await the program there (acall instead of a plain call)."
            raise Stopped(AskanceError(text))
        with _told_to_dspy():
            return self._response(request, *self.loop.run(self._ask(ask)))

    async def acomplete(self, request: Any) -> Any:
        """Like :meth:`complete`, awaited."""
        work = self._ask(self._request(request))
        with _told_to_dspy():
            return self._response(request, *await (work if self.loop is None else self.loop.wait_for(work)))

    async def _ask(self, request: Request) -> tuple[Answer, bool]:
        """Return the answer, and whether it was bought now."""
        stored = (await self._gateway.stored(self._role, [request.key])).get(request.key)
        if stored is not None:
            return stored, False
        return await self._gateway.buy(self._role, self._model, request), True

    def _request(self, request: Any) -> Request:
        config = request.config
        temperature = config.temperature or 0.0
        replicate = next(_current.get() or iter([0])) if temperature > 0 else 0
        asked_for = [name for name in _NOT_OURS if getattr(config, name)]
        if asked_for or request.tools or config.extensions or config.logprobs is not None:
            what = asked_for or (["tools"] if request.tools else list(config.extensions or {}) or ["logprobs"])
            raise _refusal(f"The gateway passes on no {', '.join(what)}; leave it out of the program.", what[0])
        form = config.response_format or {}
        parameters = Parameters(
            max_tokens=config.max_tokens or 1000,
            temperature=temperature,
            seed=None if config.seed is None else (config.seed + replicate) % 2**31,
            schema=form["schema"] if form.get("type") == "json_schema" else None,
        )
        return make_request(self._model.identity, _messages(request), parameters, replicate)

    def _response(self, request: Any, answer: Answer, bought: bool) -> Any:
        if answer.finish == "length":
            text = f"{self._model.name}: the answer was cut off at max_tokens={request.config.max_tokens}; allow more."
            raise lm15.ProviderError(text)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(answer.text)]),
            finish_reason="stop",
            usage=lm15.Usage(
                input_tokens=answer.prompt_tokens if bought else 0,
                output_tokens=answer.completion_tokens if bought else 0,
            ),
        )


class AsyncGatewayEngine:
    """Engine for awaited programs, over a :class:`GatewayEngine`."""

    supports_response_schema = GatewayEngine.supports_response_schema
    supported_params = GatewayEngine.supported_params

    def __init__(self, engine: GatewayEngine) -> None:
        """Wrap ``engine``, which does the work."""
        self._engine = engine

    def __deepcopy__(self, memo: dict[int, Any]) -> AsyncGatewayEngine:
        """Return the engine itself, because copies of a program share the gateway."""
        return self

    async def complete(self, request: Any) -> Any:
        """Ask as :meth:`GatewayEngine.complete` does, awaited."""
        return await self._engine.acomplete(request)


def cause_of(error: BaseException | None) -> AskanceError | None:
    """Return our own error behind an error of DSPy; None if there is none."""
    while error is not None and not isinstance(error, (Stopped, AskanceError)):
        error = error.__cause__
    return error.error if isinstance(error, Stopped) else error


_NOT_OURS = [
    "top_p",
    "top_k",
    "stop",
    "tool_choice",
    "reasoning",
    "cache",
    "frequency_penalty",
    "presence_penalty",
    "service_tier",
    "user_id",
    "store",
    "probabilities",
]
"""Settings of DSPy's requests that our requests lack. They are refused, because ignoring a setting would mislead."""
_current: ContextVar[Iterator[int] | None] = ContextVar("askance_dspy_draws", default=None)
"""Numbers for the answers of one call, so that each answer is stored under its own key."""


@contextmanager
def _draws(rollout: int | None) -> Iterator[None]:
    # large steps, so that the numbers of one rollout's answers are never those of another rollout
    token = _current.set(count(rollout or 0, 2**24))
    try:
        yield
    finally:
        _current.reset(token)


def _messages(request: Any) -> list[Message]:
    system = request.system
    if system is not None and not isinstance(system, str):
        system = "".join(part.text for part in system)
    messages: list[Message] = [] if system is None else [("system", system)]
    for each in request.messages:
        if each.text is None or each.role not in ("user", "assistant", "developer"):
            raise _refusal("The gateway passes on text alone: no images, files or results of tools.", "messages")
        messages.append(("system" if each.role == "developer" else each.role, each.text))
    return messages


def _refusal(text: str, feature: str) -> Exception:
    refusal: Exception = lm15.UnsupportedFeatureError(text, feature=feature)
    return refusal


@contextmanager
def _told_to_dspy() -> Iterator[None]:
    """Turn an error of a single call into DSPy's error, and an error that ends the program into :class:`Stopped`."""
    try:
        yield
    except ModelError as error:
        if error.fatal:
            raise Stopped(error) from error
        raise lm15.ProviderError(error.message, status=error.status) from error
    except AskanceError as error:
        raise Stopped(error) from error
