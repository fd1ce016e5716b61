"""Settings that would change nothing beside the others: refused where somebody gave them, never passed over in silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..prompts.errors import InputError

if TYPE_CHECKING:
    from pydantic import BaseModel

KEPT = "kept"
"""Context of validation: the settings stand in a run or a judge's file, where one that changes nothing is no error."""


@dataclass(frozen=True)
class Idle:
    """Settings without use beside others; a record has these under ``idle``, beside those of the records it is made of."""

    names: tuple[str, ...]
    when: Callable[[Mapping[str, Any]], bool]
    """Told all settings, defaults among them, and the other arguments where they are known."""
    why: str


def where(**values: object) -> Callable[[Mapping[str, Any]], bool]:
    """A condition: each of these settings has its value, or one of those in a tuple."""

    def holds(settings: Mapping[str, Any]) -> bool:
        return all(settings[name] in (each if isinstance(each, tuple) else (each,)) for name, each in values.items())

    return holds


def without(name: str) -> Callable[[Mapping[str, Any]], bool]:
    """A condition: this argument, which is no setting, is known and was not given."""
    return lambda settings: name in settings and settings[name] is None


def idle_rules(record: type[BaseModel]) -> list[Idle]:
    """The rules of a record and of all that it is made of."""
    return [rule for each in reversed(record.__mro__) for rule in vars(each).get("idle", ())]


def idle_settings(record: type[BaseModel], given: Mapping[str, Any]) -> dict[str, str]:
    """Those of the given settings that are not at their default and would change nothing, with the reason."""
    defaults = {name: info.get_default(call_default_factory=True) for name, info in record.model_fields.items()}
    settings = {**defaults, **given}
    return {
        name: rule.why
        for rule in idle_rules(record)
        for name in rule.names
        if name in given and settings[name] != defaults[name] and rule.when(settings)
    }


def refuse_idle(settings: BaseModel, **inputs: Any) -> None:
    """Refuse settings that change nothing.

    Args:
        settings: The record.
        inputs: The other arguments, where they are known.

    Raises:
        InputError: Names the first one and says why.
    """
    for name, why in idle_settings(type(settings), {**vars(settings), **inputs}).items():
        raise InputError(f"{name}: {why}.")
