"""Settings given by people: their old and other names, their file, their allowed values.

A setting that would have no effect together with the others is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ValidationError

from .prompts.errors import InputError, did_you_mean, like_named
from .prompts.rows import plain_message
from .prompts.text_files import read_text, read_yaml

Settings = TypeVar("Settings", bound=BaseModel)
MODEL, FILE = "model", "file"
"""Marks of settings that name a model or a file."""
ModelName = Annotated[str | None, MODEL]
FileName = Annotated[str | None, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value), FILE]


class Heading(Enum):
    """The headings of ``--help``, in order. A setting names its heading in the ``Annotated`` of its field."""

    COMPARED = "The judges compared"
    ASKED = "How the judge is asked"
    SCORES = "Scores"
    PROPOSED = "How questions are proposed"
    CHOSEN = "How questions are chosen"
    WEIGHED = "How weights are learned"
    TRAINED = "How a scorer is trained"
    RATIONALES = "Rationales of a scorer"
    SAVED = "What it is counted to save"
    WRITES = "How outputs are written"
    CHANGED = "What is changed"
    ACCEPTED = "When a change is accepted"
    LABELS = "How labels are asked for"
    ENDS = "When it ends"
    LESSONS = "Disagreements and lessons"
    ROLES = "Who takes which role"
    DATA = "Data and people's scores"
    MODELS = "Models"
    BUDGET = "Budget and store"
    OUTPUT = "Output"

    def at(self, place: int) -> Under:
        """Return this heading with a place under it; below 0: before the settings without a place, above 0: after."""
        return Under(self, place)


class Under(NamedTuple):
    """Place of an option in ``--help``. Options with the same place keep the order of their declaration."""

    heading: Heading
    place: int = 0


def headings(record: type[BaseModel]) -> dict[str, Under]:
    """Map each setting that has a heading to it, with its place there."""
    marks = ((name, mark) for name, info in record.model_fields.items() for mark in info.metadata)
    return {
        name: mark if isinstance(mark, Under) else Under(mark)
        for name, mark in marks
        if isinstance(mark, (Heading, Under))
    }


def settings_naming(what: str, record: type[BaseModel]) -> list[str]:
    """Return the settings that name a :data:`MODEL` or a :data:`FILE`."""
    return [name for name, info in record.model_fields.items() if what in info.metadata]


RENAMED = {
    "max_calls": "call_budget",
    "max_tokens": "token_budget",
    "max_cost": "cost_budget",
    "accept_level": "alpha",
    "threshold": "disagreement_threshold",
    "max_drift": "max_bias",
    "cache": "store",
}
"""Old names of settings. Files of earlier runs and judges may use them; elsewhere an error gives the new name."""
GONE: dict[str, tuple[object, str]] = {
    "min_gain": (0.0, "a version must pass the paired test (alpha)"),
    "quiet_rounds": (2, "two quiet rounds end the proposing; max_rounds and max_candidates end it earlier"),
    "shown": (3, "the proposing model is shown three examples a round; max_rounds says how many rounds"),
    "correction": ("shuffle", "the bias of small samples is taken off as shuffle did, which was never worse"),
    "note_samples": (1, "one note is taken of each disagreement, and tried on the judge before it is written"),
    "contrast": (False, "each lesson is tried on cases that are right already (trial)"),
    "critique": (False, "each lesson is tried on the judge itself (trial)"),
    "note_taker_program": (None, "note_taker takes notes; agents/dspy/signatures.py has its signature for DSPy"),
    "per_round": (8, "at most eight questions are proposed a round; max_candidates says how many in all"),
}
"""Removed settings: the default, which files of earlier runs may have, and the replacement."""
ALSO = {"criterion": "dimension", "rating_criterion": "rating_dimension"}
"""Second names of settings, which stay valid: a dimension is also called a criterion."""
KEPT = "kept"
"""Validation context for settings in a run's or a judge's file. A setting without effect is no error there."""


@dataclass(frozen=True)
class Idle:
    """A rule for settings that have no effect together with others. A record lists its rules in ``idle``."""

    names: tuple[str, ...]
    when: Callable[[Mapping[str, Any]], bool]
    """Condition; takes all settings, including defaults, and the other arguments if they are known."""
    why: str


def where(**values: object) -> Callable[[Mapping[str, Any]], bool]:
    """Return a condition: each of these settings has its value, or one of the values in a tuple."""

    def holds(settings: Mapping[str, Any]) -> bool:
        return all(
            settings[name] in (value if isinstance(value, tuple) else (value,)) for name, value in values.items()
        )

    return holds


def without(name: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a condition: this argument, which is no setting, is known and was not given."""
    return lambda settings: name in settings and settings[name] is None


def beside(name: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a condition: this argument, which is no setting, was given."""
    return lambda settings: settings.get(name) is not None


def idle_rules(record: type[BaseModel]) -> list[Idle]:
    """Return the rules of a record and of all its base classes."""
    return [rule for each in reversed(record.__mro__) for rule in vars(each).get("idle", ())]


def idle_settings(record: type[BaseModel], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the given settings that differ from their default but have no effect, with the reason."""
    defaults = {name: info.get_default(call_default_factory=True) for name, info in record.model_fields.items()}
    settings = {**defaults, **given}
    return {
        name: rule.why
        for rule in idle_rules(record)
        for name in rule.names
        if name in given and settings[name] != defaults[name] and rule.when(settings)
    }


def refuse_idle(settings: BaseModel, **inputs: Any) -> None:
    """Raise InputError, with the reason, for a setting without effect; ``inputs`` are the other arguments."""
    for name, why in idle_settings(type(settings), {**vars(settings), **inputs}).items():
        raise InputError(f"{name}: {why}.")


def parse_options(
    kind: type[Settings], values: Mapping[str, Any], where: str = "options", *, kept: bool = False
) -> Settings:
    """Validate settings. In ``kept`` settings, which were accepted before, a setting without effect is no error. Raises
    InputError, which begins with ``where``, for an unknown setting or a wrong value."""
    if kept:
        values = by_new_names(values, where)
    else:
        refuse_old_names(values, where)
    values = by_own_names(values, where)
    for name in values:
        if name not in kind.model_fields:
            raise InputError(f"{where}: there is no setting '{name}'.{did_you_mean(name, kind.model_fields)}")
        of = kind.model_fields[name].annotation
        if (
            isinstance(values[name], bool) and _may_be(of, int, float) and not _may_be(of, bool)
        ):  # pydantic would take it as 1 or 0
            raise InputError(f"{where}: {name}: must be a number, not {str(values[name]).lower()}.")
    try:
        return kind.model_validate(dict(values), context=KEPT if kept else None)
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_url=False):
            field = ".".join(str(part) for part in problem["loc"])
            message = plain_message(problem).replace("Input should be", "must be")
            shows = "must be" in message and field != "api_base"  # the address may hold a password
            wrong = f", not {problem['input']}" if shows else ""
            problems.append(f"{field}: {message[:1].lower()}{message[1:]}{wrong}" if field else message)
        said = "; ".join(problems)
        raise InputError(f"{where}: {said}{'' if said.endswith(('.', '?')) else '.'}") from None


def check_each(kind: type[BaseModel], values: Mapping[str, Any], where: str) -> None:
    """Check each setting of a file by itself. Raises InputError, which begins with ``where``, for a wrong value."""
    for name, value in values.items():
        try:
            kind.model_validate({name: value}, context=KEPT)
            is_wrong = isinstance(value, bool)  # pydantic may take it as 1 or 0
        except ValidationError as error:
            is_wrong = any(problem["loc"] for problem in error.errors())
        if is_wrong:
            parse_options(kind, {name: value}, where, kept=True)


def _may_be(annotation: Any, *kinds: type) -> bool:
    """Whether a setting's type is one of these, or contains one of them."""
    return annotation in kinds or any(_may_be(each, *kinds) for each in get_args(annotation))


def refuse_old_names(values: Iterable[str], where: object) -> None:
    """Raise InputError, which begins with ``where``, for an old name or a removed setting."""
    for old, new in RENAMED.items():
        if old in values:
            raise InputError(f"{where}: {old} is now {new}.")
    for name, (_, instead) in GONE.items():
        if name in values:
            raise InputError(f"{where}: {name} is no setting any more: {instead}.")


def by_new_names(values: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Return the settings of a kept file by their present names, without removed ones. Raises InputError if a removed
    setting differs from its default, since this version would give another result."""
    for name, (default, instead) in GONE.items():
        if values.get(name, default) != default:
            raise InputError(
                f"{where}: {name} is {values[name]}, and is no setting any more ({instead}), so this version would "
                "come to something else. Finish that run with the version that began it."
            )
    return {RENAMED.get(name, name): value for name, value in values.items() if name not in GONE}


def flag(name: str) -> str:
    """Return the form of a setting on the command line."""
    return "--" + name.replace("_", "-")


def by_own_names(values: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Return settings by the names of the records' fields; a list of criteria is ``dimensions``. Raises InputError if
    both names are given."""
    known = dict(ALSO)
    if not isinstance(values.get("criterion", ""), str):
        known["criterion"] = "dimensions"
    for also, own in known.items():
        if also in values and own in values:
            raise InputError(f"{where}: {also} is another name of {own}; give one of them.")
    return {known.get(name, name): value for name, value in values.items()}


def load_config(path: str | Path) -> dict[str, Any]:
    """Read settings from a YAML file; hyphens become underscores. Raises InputError if it is missing or no mapping."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such configuration file.{like_named(path)}") from None
    data = read_yaml(text, path, "configuration")
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InputError(f"{path}: a mapping from setting to value is needed.")
    for key, value in data.items():
        if isinstance(value, str) and "\0" in value:
            raise InputError(f"{path}: {key}: there is a NUL character in it.")
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise InputError(f"{path}: {key}: there is half a surrogate pair in it, which is no text.") from None
    given = {str(key).replace("-", "_"): value for key, value in data.items()}
    refuse_old_names(given, path)
    return by_own_names(given, path)
