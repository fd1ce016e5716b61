"""Named models: a model with its server, key, limits and price, under a name of the user's choice."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..prompts.errors import InputError, did_you_mean
from ..prompts.rows import plain_message
from ..prompts.text_files import read_yaml
from .base import Model
from .budget import Price
from .direct import check_address
from .request_form import Thinking
from .thinking_room import ROOM, first_room

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"auth|key|token|secret|password|cookie|credential", re.IGNORECASE)
_SECRET = re.compile(r"(?i:\b(?:sk|pk|ghp|gsk|xai|hf)[-_]\w{6})|bearer\s|\b(?=\w*\d)(?=\w*[A-Za-z])\w{24,}", re.ASCII)
"""Values that may be a key: a known beginning, or a long word of letters and digits."""


class ModelPrice(BaseModel):
    """US dollars for a million tokens of prompts, and of answers including thinking."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0)
    output: float = Field(ge=0)

    @property
    def a_token(self) -> Price:
        """Prices for one token."""
        return Price(self.input / 1e6, self.output / 1e6)


class NamedModel(BaseModel):
    """A model with what belongs to it; under ``models`` of the settings its name stands wherever a model does.

    Example:
        >>> NamedModel(model="openai/gpt-5-mini", thinking="low", price={"input": 0.25, "output": 2.0}).thinking
        'low'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = Field(min_length=1, description="As provider/model.")
    api_base: str | None = Field(default=None, description="Address of its server.")
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds its key; no key is in a file."
    )
    api_version: str | None = Field(default=None, description="Version of the API, e.g. of Azure.")
    organization: str | None = Field(default=None, description="Organization that is billed, with OpenAI.")
    headers: dict[str, str] = Field(default={}, description="Sent with each call; ${NAME} is a variable's value.")
    extra_body: dict[str, Any] = Field(default={}, description="Further fields of each request.")
    thinking: Annotated[Thinking, BeforeValidator(lambda value: "off" if value is False else value)] = Field(
        default="auto", description="auto, off, minimal, low, medium, high, or at most so many tokens."
    )
    thinking_room: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        default=None,
        min_length=1,
        description="Tokens that a call gets for thinking, in steps. [default: 2000 8000 32000]",
    )
    max_concurrency: int | None = Field(default=None, ge=1, description="Calls under way at once.")
    requests_per_minute: int | None = Field(default=None, ge=1, description="Calls a minute, over all roles.")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="Tokens a minute, over all roles.")
    price: ModelPrice | None = Field(default=None, description="US dollars a million tokens: input, output.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds that one call may take.")

    here: ClassVar[tuple[str, ...]] = ("model", "thinking", "thinking_room", "max_concurrency", "timeout")
    """Settings of models that run on this machine."""

    @field_validator("api_base")
    @classmethod
    def _can_be_kept(cls, address: str | None) -> str | None:
        return check_address(address) if address else address

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and (not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or _SECRET.search(name)):
            raise ValueError("the name of an environment variable is needed, and never a key itself")
        return name

    @field_validator("headers", "extra_body")
    @classmethod
    def _holds_no_key(cls, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            for inner, text in value.items() if isinstance(value, dict) else [(name, value)]:
                if not isinstance(text, str) or _VARIABLE.search(text):
                    continue
                if _SECRET_NAME.search(str(inner)) or _SECRET.search(text):
                    raise ValueError(
                        f"'{inner}' may hold a key, which stands in no file: write ${{NAME}}, the name of a variable "
                        "that holds it"
                    )
        return values

    @model_validator(mode="after")
    def _has_room(self) -> NamedModel:
        steps = self.thinking_room or ROOM
        if list(steps) != sorted(set(steps)):
            raise ValueError("thinking_room: the steps must grow")
        if isinstance(self.thinking, int) and self.thinking >= steps[-1]:
            raise ValueError(f"thinking: {self.thinking:,} tokens need a larger thinking_room than {steps[-1]:,}")
        return self

    @property
    def answers_depend_on(self) -> dict[str, Any]:
        """The given settings, besides model and server, that change the model's answers."""
        asked = {"thinking": self.thinking if self.thinking != "auto" else None, "api_version": self.api_version}
        return {name: value for name, value in {**asked, "extra_body": self.extra_body}.items() if value}

    @property
    def kept(self) -> dict[str, Any]:
        """The given settings, for a file. Headers are left out unless they contain a variable."""
        headers = {name: value for name, value in self.headers.items() if _VARIABLE.search(value)}
        settings = self.model_dump(mode="json", exclude_defaults=True, exclude={"headers"})
        return settings | ({"headers": headers} if headers else {})

    @property
    def where(self) -> tuple[str, str | None, str | None]:
        """The model and its server. Two records with the same values here are one model."""
        return self.model, self.api_base, self.api_version

    def key(self, name: str) -> str | None:
        """Return the model's key from the environment; None if no variable is named. Raises InputError if it is not
        set."""
        return None if self.api_key_env is None else _value(self.api_key_env, f"the model '{name}'")

    def filled_headers(self, name: str) -> dict[str, str]:
        """Return the headers with the values of their variables. Raises InputError if a variable is not set."""
        whose = f"the headers of the model '{name}'"
        sent: dict[str, str] = _filled(self.headers, whose)
        return sent | ({"OpenAI-Organization": self.organization} if self.organization else {})

    def filled_body(self, name: str) -> dict[str, Any]:
        """Return ``extra_body`` with the values of its variables. Raises InputError if a variable is not set."""
        found: dict[str, Any] = _filled(self.extra_body, f"extra_body of the model '{name}'")
        return found

    def set_up(self, model: Any) -> None:
        """Set the thinking room, limits and concurrency of this record on a model object."""
        steps = self.thinking_room or ROOM
        if getattr(model, "thinking_room", ROOM):
            model.thinking_room = steps
            model.first_room = first_room(self.thinking, steps, given=self.thinking_room is not None)
        model.max_concurrency = self.max_concurrency
        model.requests_per_minute, model.tokens_per_minute = self.requests_per_minute, self.tokens_per_minute


def _filled(value: Any, whose: str) -> Any:
    """Replace ``${NAME}`` in all texts of a value."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _value(match[1], whose), value)
    if isinstance(value, Mapping):
        return {name: _filled(each, whose) for name, each in value.items()}
    return [_filled(each, whose) for each in value] if isinstance(value, list) else value


def _value(variable: str, whose: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"{whose}: the environment variable {variable} is not set.")
    if not value.isprintable():
        raise InputError(f"{whose}: {variable} holds a line break or another character that no key or header has.")
    return value


ModelLike = str | Model | NamedModel
"""A model in a caller's form: ``provider/model`` or a name from the settings, a model object, or a record."""


def read_named(values: Any) -> dict[str, NamedModel]:
    """Read named models from settings. Raises ValueError, which names the model and the wrong setting."""
    if not isinstance(values, Mapping):
        raise ValueError("a mapping from name to model is needed, as in {new: {model: openai/gpt-5-mini}}")
    models = {str(name): _read(str(name), value) for name, value in values.items()}
    _check_prices(models)
    return models


def _read(name: str, value: Any) -> NamedModel:
    if isinstance(value, NamedModel):
        return value
    if isinstance(value, str):
        value = {"model": value}
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: a mapping from setting to value is needed, at least model: provider/model")
    for setting in value:
        if setting not in NamedModel.model_fields:
            raise ValueError(
                f"{name}: a model has no setting '{setting}'.{did_you_mean(str(setting), NamedModel.model_fields)}"
            )
    try:
        return NamedModel.model_validate(dict(value))
    except InputError as error:
        raise ValueError(f"{name}: {str(error).replace('--api-base', 'api_base:', 1)}") from None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        if problem["loc"][:1] == ("thinking",):
            reason = "auto, off, minimal, low, medium, high or a number of tokens is needed"
        else:
            reason = plain_message(problem).replace("Input should be", "must be")
        field = ".".join(str(part) for part in problem["loc"] if isinstance(part, (int, str)))
        place = f"{name}: {'thinking' if field.startswith('thinking.') else field}" if field else name
        raise ValueError(f"{place}: {reason[:1].lower()}{reason[1:]}") from None


def _check_prices(models: Mapping[str, NamedModel]) -> None:
    priced: dict[tuple[str, str | None, str | None], tuple[str, ModelPrice]] = {}
    for name, model in models.items():
        if model.price is None:
            continue
        other, price = priced.setdefault(model.where, (name, model.price))
        if price != model.price:
            raise ValueError(f"'{other}' and '{name}' are one model, {model.model}, with two prices")


def used_models(models: Mapping[str, NamedModel], names: Iterable[Any]) -> dict[str, NamedModel]:
    """Return the named models whose names occur in ``names``."""
    asked = {name for name in names if isinstance(name, str)}
    return {name: each for name, each in models.items() if name in asked}


def with_settings(models: Any, assignments: Iterable[str]) -> dict[str, Any]:
    """Add assignments ``NAME.SETTING=VALUE`` to named models; NAME may be provider/model. Raises InputError."""
    settings: dict[str, Any] = {}
    for name, value in (models or {}).items():
        given = value.model_dump(exclude_unset=True) if isinstance(value, NamedModel) else value
        settings[name] = {"model": given} if isinstance(given, str) else given
    for assignment in assignments:
        left, sign, text = assignment.partition("=")
        name, dot, setting = left.strip().rpartition(".")
        if not (sign and dot and name and setting):
            raise InputError(f"--model-setting {left}: write it as NAME.SETTING=VALUE, e.g. new.thinking=low.")
        if name not in settings and "/" not in name:
            raise InputError(f"--model-setting {left}: there is no model '{name}'.{did_you_mean(name, settings)}")
        value = read_yaml(text, f"--model-setting {left}", "value")
        settings[name] = {"model": name, **(settings.get(name) or {}), setting.replace("-", "_"): value}
    return settings


def identity_of(base: str, named: NamedModel) -> str:
    """Return a model's identity: ``base`` with the settings that change the answers."""
    more = named.answers_depend_on
    return f"{base}:{json.dumps(more, sort_keys=True, separators=(',', ':'))}" if more else base


def named_models(options: Mapping[str, Any], *models: Any) -> tuple[Any, ...]:
    """Replace each record among ``models`` by its name. Returns the names, then the settings with all records under
    ``models``.

    Records among the values of the settings are replaced, too. All other values are returned unchanged.

    Raises:
        InputError: Two different records have the same name.

    Example:
        >>> fast = NamedModel(model="openai/gpt-5-mini", thinking="low")
        >>> name, settings = named_models({"seed": 1}, fast)
        >>> name, settings["models"][name].thinking
        ('openai/gpt-5-mini', 'low')
    """
    records: dict[str, Any] = dict(options.get("models") or {})

    def name_of(model: Any) -> Any:
        if not isinstance(model, NamedModel):
            return model
        if records.setdefault(model.model, model) != model:
            raise InputError(
                f"There are two models '{model.model}' with different settings: name each under models=, and give the "
                "names."
            )
        return model.model

    settings = {name: name_of(value) for name, value in options.items()}
    names = [name_of(model) for model in models]
    return (*names, settings | ({"models": records} if records else {}))
