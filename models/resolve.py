"""From ``provider/model`` names to models that can be asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from ..prompts.errors import InputError, MissingExtraError, did_you_mean
from .base import Model
from .direct import DirectModel, check_address, default_base_url
from .download import pulled
from .embedded import EmbeddedServerPool
from .embedded_models import EMBEDDED, RegisteredModel, resolve
from .files import file_identity
from .litellm_model import LiteLLMModel
from .local_model import EmbeddedModel
from .prices import list_price
from .trained.scorer_file import is_scorer

if TYPE_CHECKING:
    from .batches.batch_model import BatchModel


class Models:
    """The models of one run: each name is one model, and embedded servers end with the run.

    Example::

        async with Models(api_base="http://127.0.0.1:8000/v1") as models:
            judge = models.get("openai/my-judge")
    """

    def __init__(
        self,
        *,
        api_base: str | None = None,
        timeout: float = 120.0,
        need_prices: bool = False,
        batches: Callable[..., BatchModel] | None = None,
        reach: Callable[[Model], Model] | None = None,
    ) -> None:
        """``api_base`` is the endpoint of ``openai/`` names; ``timeout`` is in seconds, for one call.

        ``need_prices`` refuses models whose price is not known, as a cap on money could not be kept for them. ``batches``
        makes ``openai/`` models that are asked in batches, and refuses all others. ``reach`` makes of
        each model the same one asked from elsewhere.
        """
        self._batches = batches
        self._reach = reach
        self._api_base = api_base
        self._need_prices = need_prices
        self._timeout = timeout
        self._servers = EmbeddedServerPool()
        self._by_name: dict[str, Model] = {}
        self._stack = AsyncExitStack()

    def get(self, model: str | Model) -> Model:
        """The model of this name; something that already is a model is given back.

        Raises:
            InputError: The name cannot be read, or the provider or embedded model is not known or not there.
            MissingExtraError: What reaches this provider is not installed.
        """
        if not isinstance(model, str):
            if not callable(getattr(model, "answer", None)):
                raise InputError(
                    f"model: a name, as provider/model, or an object that can be asked is needed, not {type(model).__name__}."
                )
            if self._reach is not None and model not in self._by_name.values():
                raise InputError(f"--engine ray asks models by name; {model.name} is an object of this process alone.")
            return model
        if model not in self._by_name:
            made = self._make(model)
            self._by_name[model] = made if self._reach is None else self._reach(made)
        return self._by_name[model]

    async def __aenter__(self) -> Models:
        await self._stack.enter_async_context(self._servers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _make(self, name: str) -> Model:
        if is_scorer(name):
            return self._scorer(name)
        if name.strip("/") and os.path.isdir(name):
            raise InputError(
                f"{name}: there is no trained scorer in this folder (scorer.json, written by `askance train`)."
            )
        provider, slash, rest = name.partition("/")
        if not slash or not provider or not rest:
            raise InputError(
                f"'{name}' is no model name. Write provider/model, e.g. openai/gpt-4o-mini, "
                "anthropic/claude-sonnet-4-5 or local/qwen2.5-coder-1.5b-instruct, or the folder of a trained scorer."
            )
        if provider == "dspy":
            raise InputError(
                f"'{name}' is a DSPy program, which lives in Python: call the same compile again to go on."
            )
        if self._batches is not None and provider != "openai":
            raise InputError(
                f"{name}: --engine batch asks openai/NAME alone, at OpenAI or another endpoint with its batch API (--api-base). "
                "Leave out --engine batch, or name such a model for every role."
            )
        if provider in EMBEDDED:
            return self._embedded(name, provider, rest)
        if provider == "openai" and not rest.startswith("responses/"):  # LiteLLM knows OpenAI's other API
            model: DirectModel | LiteLLMModel = self._direct(name, rest)
        else:
            model = self._through_litellm(name, provider)
        if self._need_prices and model.price is None:
            raise InputError(
                f"{name}: its price is not known, so --cost-budget could not be kept. Cap it with --call-budget or --token-budget."
            )
        return model

    def _scorer(self, name: str) -> Model:
        if self._batches is not None:
            raise InputError(f"{name} is a trained scorer, which runs here; leave out --engine batch.")
        from .trained.trained_scorer import TrainedScorer

        scorer = TrainedScorer(name)
        self._stack.push_async_callback(scorer.close)
        return scorer

    def _through_litellm(self, name: str, provider: str) -> LiteLLMModel:
        try:
            return LiteLLMModel(name, timeout=self._timeout)
        except MissingExtraError:
            what = f"{name}:{did_you_mean(provider, ('openai', *EMBEDDED))} A provider other than openai, local, onnx and openvino"
            raise MissingExtraError("providers", "litellm", what=what) from None

    def _direct(self, name: str, model: str) -> DirectModel:
        base = check_address(self._api_base or default_base_url())
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key.isprintable():
            raise InputError("OPENAI_API_KEY holds a line break or another character that no key has.")
        if not key and "api.openai.com" in base:
            raise InputError(f"{name}: set OPENAI_API_KEY, or give the endpoint of another server with --api-base.")
        direct = (self._batches or DirectModel)(
            name,
            model,
            base,
            identity=f"openai:{base.rstrip('/')}:{model}",
            api_key=key,
            timeout=self._timeout,
            price=list_price(model, base),
        )
        self._stack.push_async_callback(direct.close)
        return direct

    def _embedded(self, name: str, provider: str, rest: str) -> Model:
        found = resolve(rest)
        if isinstance(found, RegisteredModel):
            path = pulled(found)
            if path is None:
                size = found.bytes / 1e9
                raise InputError(
                    f"{name} is not on this machine yet ({size:.1f} GB). Fetch it: askance models pull {found.name}"
                )
            identity = found.sha256
        else:
            path, identity = found, _identity(found)
        model = EmbeddedModel(name, path, identity, self._servers, self._timeout)
        self._stack.push_async_callback(model.close)
        if provider == "local":
            return model
        from .reading.consistency import CONSISTENCY, known_choice  # numpy takes a while
        from .reading.reading_model import ReadingModel

        stop = Event()
        if provider == "onnx":
            from .reading.onnx_reader import folder_of, identity_of, load_onnx_reader

            known, load = identity_of(identity), partial(load_onnx_reader, name, path, identity, stop)
            choice = partial(known_choice, folder_of(identity) / CONSISTENCY, "onnxruntime")
        else:
            from .reading.openvino_reader import folder_of, load_openvino_reader

            known, load = f"openvino-3:{identity}", partial(load_openvino_reader, name, path, identity)
            choice = partial(known_choice, folder_of(identity) / CONSISTENCY, "openvino")
        reading = ReadingModel(name, known, model, load, beside=provider == "openvino", choice=choice)
        self._stack.push_async_callback(reading.close)
        self._stack.callback(stop.set)  # first of the two: closing waits for a file that is being made ready
        return reading


def _identity(path: Path) -> str:
    try:
        return file_identity(path)
    except OSError as error:
        raise InputError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
