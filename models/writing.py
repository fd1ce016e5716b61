"""Settings of a writing model that belong to its prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..prompts.errors import did_you_mean
from ..prompts.formatting import count
from ..prompts.rows import validate_row
from ..prompts.text_files import read_text, read_yaml
from .request_form import Thinking

WRITING_FILE = "writing.yaml"  # file beside the prompt that a run accepted, if that prompt has its own settings


class PromptSettings(BaseModel):
    """Settings that go with a prompt; None: as the run's own settings say.

    Example:
        >>> PromptSettings(max_output_tokens=300, system_as="user").said
        "at most 300 tokens; the system text as part of the user's turn"
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """JSON schema that is sent with each request, as far as the endpoint takes it."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    thinking: Annotated[Thinking | None, BeforeValidator(lambda value: "off" if value is False else value)] = None
    """YAML reads a plain ``off`` as false."""
    system_as: Literal["system", "user"] | None = None
    """``user``: the system text stands at the head of the user's first turn."""
    grammar: str | None = None
    """GBNF grammar that is sent with each request; embedded models and servers of llama.cpp and vLLM take one."""

    @property
    def stated(self) -> dict[str, Any]:
        """The settings that are not None, in the form of files."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @property
    def said(self) -> str:
        """The settings in one line of words; empty if none is set."""
        parts = {
            "schema": "a JSON schema is sent",
            "max_output_tokens": f"at most {count(self.max_output_tokens or 0, 'token')}",
            "temperature": f"temperature {self.temperature or 0:g}",
            "thinking": f"thinking {self.thinking}",
            "system_as": "the system text as part of the user's turn"
            if self.system_as == "user"
            else "the system text as a message of its own",
            "grammar": "a grammar is sent",
        }
        return "; ".join(said for name, said in parts.items() if name in self.stated)

    def to_yaml(self) -> str:
        """Return the text of ``writing.yaml``."""
        return yaml.safe_dump(self.stated, sort_keys=False, allow_unicode=True)

    def but(self, **changed: Any) -> PromptSettings:
        """Return the settings with the ``changed`` ones replaced."""
        return PromptSettings.model_validate({**self.stated, **changed})


CAN_VARY = ("thinking", "temperature", "system_as", "max_output_tokens")


def parse_vary(given: Any) -> Any:
    """Parse the values to try of each setting, e.g. ``["thinking=low,off"]``. Raises ValueError for other forms or
    values."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        parts = [str(pair).partition("=") for pair in ([given] if isinstance(given, str) else given)]
        if wrong := next((name for name, sign, _ in parts if not sign), None):
            raise ValueError(f"'{wrong}': write it as SETTING=VALUE,VALUE, e.g. thinking=low,off")
        pairs = [(name.strip(), values.split(",")) for name, _, values in parts]
    values_by_name: dict[str, tuple[Any, ...]] = {}
    for name, values in pairs:
        if name not in CAN_VARY:
            raise ValueError(f"'{name}' cannot be varied; {', '.join(CAN_VARY)} can.{did_you_mean(name, CAN_VARY)}")
        for value in [values] if isinstance(values, (str, int, float)) else values:
            plain = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
            plain = plain.strip() if isinstance(plain, str) else plain
            try:
                settings = PromptSettings.model_validate({name: plain})
            except ValidationError:
                raise ValueError(f"{name}={plain}: this setting has no such value") from None
            values_by_name[name] = (*values_by_name.get(name, ()), settings.stated[name])
    return values_by_name


Vary = Annotated[dict[str, tuple[Any, ...]], BeforeValidator(parse_vary)]
"""A setting in the form that :func:`parse_vary` takes."""
AS_THE_RUN = PromptSettings()  # settings of a version without any of its own


def version_of(prompt_hash: str, writing: PromptSettings | None) -> str:
    """Return a version's identity: its prompt's hash, or the hash of prompt and settings together."""
    stated = {} if writing is None else writing.stated
    if not stated:
        return prompt_hash
    return sha256(f"{prompt_hash}\0{json.dumps(stated, sort_keys=True)}".encode()).hexdigest()[:16]


def writing_beside(prompt: object) -> PromptSettings | None:
    """Read ``writing.yaml`` beside ``prompt.*``; None without it. Raises InputError if it cannot be read."""
    if not isinstance(prompt, (str, Path)) or Path(prompt).stem != "prompt":
        return None
    file = Path(prompt).with_name(WRITING_FILE)
    if not file.is_file():
        return None
    return read_writing(read_text(file), str(file))


def read_writing(text: str, where: str) -> PromptSettings:
    """Read settings from a text of YAML. Raises InputError, which names the wrong field."""
    return validate_row(PromptSettings, read_yaml(text, where, "mapping of settings"), where)
