"""Makes models from ``provider/model`` names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from ..prompts.errors import InputError, MissingExtraError, did_you_mean
from .base import Model
from .budget import list_price
from .direct import DirectModel, check_address, default_base_url
from .embedded.download import pulled
from .embedded.registry import EMBEDDED, RegisteredModel, resolve
from .embedded.servers import EmbeddedModel, EmbeddedServerPool
from .files import file_identity
from .litellm_model import LiteLLMModel
from .named import ModelLike, NamedModel, identity_of, named_models, read_named
from .programs import Program, is_program
from .request_form import Thinking, ThinkingFields, direct_forms, litellm_forms
from .trained.scorer_file import is_scorer

if TYPE_CHECKING:
    from .batches.batch_model import BatchModel


class Models:
    """The models of one run. Each name is one model; embedded servers end with the run.

    Example::

        async with Models(api_base="http://127.0.0.1:8000/v1") as models:
            judge = models.get("openai/my-judge")
    """

    def __init__(
        self,
        *,
        api_base: str | None = None,
        timeout: float = 120.0,
        named: Mapping[str, NamedModel] | None = None,
        need_prices: bool = False,
        batches: Callable[..., BatchModel] | None = None,
        reach: Callable[[Model], Model] | None = None,
    ) -> None:
        """Keep the settings; no model is opened yet.

        ``api_base`` is the endpoint of ``openai/`` names; ``timeout`` is in seconds, for one call; ``named`` are models
        by the user's names. With ``need_prices``, models without a known price are refused, so that a cap on money can
        be kept. ``batches`` makes ``openai/`` models that are asked in batches; all other models are then refused.
        ``reach`` turns a model into one that is asked elsewhere, e.g. on a cluster."""
        self._batches = batches
        self._reach = reach
        self._named = dict(named or {})
        self._api_base = api_base
        self._need_prices = need_prices
        self._timeout = timeout
        self._servers = EmbeddedServerPool()
        self._by_name: dict[str, Model] = {}
        self._stack = AsyncExitStack()

    def get(self, model: ModelLike) -> Model:
        """Return the model for a name or record; a model object is returned unchanged. Raises InputError if there is no
        such model, or another record has its name, and MissingExtraError without the package for its provider."""
        if isinstance(model, NamedModel):
            name, settings = named_models({"models": self._named}, model)
            self._named = settings["models"]
            return self.get(str(name))
        if isinstance(model, Program):
            return self._program(model)
        if not isinstance(model, str):
            if not callable(getattr(model, "answer", None)) or isinstance(model, type):
                given = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
                raise InputError(
                    f"model: a name, as provider/model, or an object that can be asked is needed, not {given}."
                )
            for name in ("name", "identity"):
                if not isinstance(getattr(model, name, None), str):
                    raise InputError(
                        f"model: {type(model).__name__} has no text '{name}'; see askance.models.base.Model for what a "
                        "model needs."
                    )
            if self._reach is not None and model not in self._by_name.values():
                raise InputError(f"--engine ray asks models by name; {model.name} is an object of this process alone.")
            return model
        if model not in self._by_name:
            made = self._make(model, self._named.get(model))
            self._by_name[model] = made if self._reach is None else self._reach(made)
        return self._by_name[model]

    def with_thinking(self, model: ModelLike, thinking: Thinking) -> Model:
        """Return a model with another ``thinking``; its answers are kept apart. Raises InputError if it is not
        possible."""
        if not isinstance(model, str) or self._reach is not None:
            raise InputError(f"thinking {thinking}: it can be set of a model that is named, and not with --engine ray.")
        name, known = f"{model} (thinking {thinking})", self._named.get(model)
        if name not in self._by_name:
            given = {"model": model} if known is None else known.model_dump(exclude_unset=True)
            self._by_name[name] = self._make(name, read_named({name: {**given, "thinking": thinking}})[name])
        return self._by_name[name]

    def _program(self, program: Program) -> Program:
        """Register a program. With any engine it runs in this process, and its connections end with the run."""
        if self._need_prices:
            raise InputError(
                f"{program.name}: nobody knows what a program spends, so --cost-budget could not be kept. Cap it with "
                "--call-budget."
            )
        if program not in self._by_name.values():
            self._by_name[f"{program.name} {program.version}"] = program
            self._stack.push_async_callback(program.close)
        return program

    async def __aenter__(self) -> Models:
        await self._stack.enter_async_context(self._servers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _make(self, name: str, named: NamedModel | None) -> Model:
        what = name if named is None else named.model
        made = self._reached(name, what, named or NamedModel.model_construct(model=name))
        if named is not None:
            named.set_up(made)
        return made

    def _reached(self, name: str, what: str, named: NamedModel) -> Model:
        """Make the model ``what``, which the user calls ``name``."""
        provider, slash, model_name = what.partition("/")
        is_here = is_scorer(what) or provider in EMBEDDED
        no_use = sorted(named.model_fields_set - {*NamedModel.here})
        if is_here and no_use:
            raise InputError(f"models: {name}: {no_use[0]} has no use for {what}, which runs on this machine.")
        if is_scorer(what):
            return self._scorer(what)
        if what.strip("/") and os.path.isdir(what):
            raise InputError(
                f"{what}: there is no trained scorer in this folder (scorer.json, written by `askance train`)."
            )
        if re.search(r",\s*[\w.-]+/", what):
            raise InputError(f"'{what}' names several models, and one is asked here. Name one.")
        if not slash or not provider or not model_name:
            hints = did_you_mean(name, self._named) if self._named and not slash else ""
            hints += " A program of yours writes outputs: it can be the --generator alone." if is_program(what) else ""
            raise InputError(
                f"'{what}' is no model name.{hints} Write provider/model, e.g. openai/gpt-4o-mini, "
                "anthropic/claude-sonnet-4-5 or local/qwen2.5-coder-1.5b-instruct, or the folder of a trained scorer."
            )
        if provider == "dspy":
            raise InputError(
                f"'{what}' is a DSPy program, which lives in Python: call the same compile again to go on."
            )
        if self._batches is not None and provider != "openai":
            raise InputError(
                f"{what}: --engine batch asks openai/NAME alone, at OpenAI or another endpoint with its batch API "
                "(--api-base). Leave out --engine batch, or name such a model for every role."
            )
        if provider in EMBEDDED:
            return self._embedded(name, provider, model_name, named)
        if provider == "openai" and not model_name.startswith("responses/"):  # LiteLLM knows OpenAI's other API
            model: DirectModel | LiteLLMModel = self._direct(name, model_name, named)
        else:
            model = self._through_litellm(name, provider, named)
        if self._need_prices and model.price is None:
            raise InputError(
                f"{name}: its price is not known, so --cost-budget could not be kept. Cap it with --call-budget or "
                "--token-budget."
            )
        return model

    def _scorer(self, name: str) -> Model:
        if self._batches is not None:
            raise InputError(f"{name} is a trained scorer, which runs here; leave out --engine batch.")
        from .trained.trained_scorer import TrainedScorer

        scorer = TrainedScorer(name)
        self._stack.push_async_callback(scorer.close)
        return scorer

    def _through_litellm(self, name: str, provider: str, named: NamedModel) -> LiteLLMModel:
        arguments = {
            "api_base": named.api_base,
            "api_key": named.key(name),
            "api_version": named.api_version,
            "organization": named.organization,
            "extra_headers": named.filled_headers(name),
            "extra_body": named.filled_body(name),
        }
        base = f"litellm:{named.model}" + (f":{named.api_base.rstrip('/')}" if named.api_base else "")
        try:
            return LiteLLMModel(
                name,
                model=named.model,
                identity=identity_of(base, named),
                timeout=named.timeout or self._timeout,
                price=None if named.price is None else named.price.a_token,
                thinking=ThinkingFields(name, named.thinking, litellm_forms(named.thinking, named.model)),
                more={argument: value for argument, value in arguments.items() if value},
            )
        except MissingExtraError:
            problem = (
                f"{name}:{did_you_mean(provider, ('openai', *EMBEDDED))} A provider other than openai, local, onnx "
                "and openvino"
            )
            raise MissingExtraError("providers", "litellm", what=problem) from None

    def _direct(self, name: str, model: str, named: NamedModel) -> DirectModel:
        base = check_address(named.api_base or self._api_base or default_base_url())
        key = named.key(name) or os.environ.get("OPENAI_API_KEY", "").strip()
        if not key.isprintable():
            raise InputError("OPENAI_API_KEY holds a line break or another character that no key has.")
        if not key and "api.openai.com" in base:
            raise InputError(f"{name}: set OPENAI_API_KEY, or give the endpoint of another server with --api-base.")
        direct = (self._batches or DirectModel)(
            name,
            model,
            base,
            identity=identity_of(f"openai:{base.rstrip('/')}:{model}", named),
            api_key=key,
            timeout=named.timeout or self._timeout,
            price=list_price(model, base) if named.price is None else named.price.a_token,
            thinking=ThinkingFields(name, named.thinking, direct_forms(named.thinking, base)),
            extra_body=named.filled_body(name),
            headers=named.filled_headers(name),
            query={"api-version": named.api_version} if named.api_version else None,
        )
        self._stack.push_async_callback(direct.close)
        return direct

    def _embedded(self, name: str, provider: str, rest: str, named: NamedModel) -> Model:
        weights = resolve(rest)
        if isinstance(weights, RegisteredModel):
            path = pulled(weights)
            if path is None:
                size = weights.bytes / 1e9
                raise InputError(
                    f"{name} is not on this machine yet ({size:.1f} GB). Fetch it: askance models pull {weights.name}"
                )
            identity = weights.sha256
        else:
            path, identity = weights, _identity(weights)
        if provider != "local" and named.thinking != "auto":
            raise InputError(
                f"models: {name}: thinking has no use for {provider}/, which reads one token; write local/{rest}."
            )
        thinking = ThinkingFields(name, named.thinking, direct_forms(named.thinking, ""))
        model = EmbeddedModel(name, path, identity, self._servers, named.timeout or self._timeout, thinking)
        model.identity = identity_of(model.identity, named)
        model.template_may_think = not isinstance(weights, RegisteredModel)  # registered templates begin no thought
        self._stack.push_async_callback(model.close)
        if provider == "local":
            return model
        from .reading import onnx_reader, openvino_reader  # numpy takes a while
        from .reading.consistency import CONSISTENCY, known_choice
        from .reading.reading_model import ReadingModel

        stop, reader = Event(), onnx_reader if provider == "onnx" else openvino_reader
        load = partial(reader.load_reader, name, path, identity, stop)
        choice = partial(known_choice, reader.folder_of(identity) / CONSISTENCY, reader.LIBRARY)
        beside = provider == "openvino"
        reading = ReadingModel(name, reader.identity_of(identity), model, load, beside=beside, choice=choice)
        self._stack.push_async_callback(reading.close)
        self._stack.callback(stop.set)  # runs before the close above, which waits while a file is made ready
        return reading


def _identity(path: Path) -> str:
    try:
        return file_identity(path)
    except OSError as error:
        raise InputError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
