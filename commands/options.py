"""Command-line options made from the settings records, so that names are the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin

import click

from ..evaluation.options import (
    FILE,
    MODEL,
    CompareOptions,
    DiagnoseOptions,
    EvaluateOptions,
    SelectOptions,
    WeighOptions,
    WriterOptions,
    load_config,
    settings_naming,
)
from ..labelling.options import LabelOptions
from ..models.idle import idle_settings
from ..optimizer.options import AlignOptions, MigrateOptions, TuneOptions
from ..prompts.checklist import READY
from ..prompts.errors import InputError, did_you_mean, like_named
from ..prompts.field_map import parse_field_map
from ..prompts.rows import is_on_hub
from .output import hush

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

Function = TypeVar("Function", bound=Callable[..., Any])


def settings_options(
    record: type[BaseModel], *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Give a command one option for each setting.

    Options that are not given are absent from what :func:`settings` returns, so the file's values show through.
    """

    def decorate(function: Function) -> Function:
        for name, info in reversed(record.model_fields.items()):
            if (not only or name in only) and name not in without and not info.exclude:
                function = _option(name, info)(function)
        return function

    return decorate


def common_options(function: Function) -> Function:
    """``--json`` and ``--quiet``."""
    quiet = click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only errors.")
    function = quiet(function)
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")(function)


config_option = click.option(
    "--config", type=click.Path(path_type=Path), help="YAML file with settings; the command line wins."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")
no_cache_option = click.option("--no-cache", is_flag=True, default=None, help="Reuse no earlier answer and keep none.")


def buying_options(function: Function) -> Function:
    """``--no-cache``, ``--dry-run``, ``--config``, ``--json`` and ``--quiet``."""
    return no_cache_option(dry_run_option(config_option(common_options(function))))


INPUTS = {
    **dict.fromkeys(("model", "source", "target", "generator", "judge"), MODEL),
    **dict.fromkeys(("data", "checklist", "candidates", "verdicts", "ratings", "task", "run", "output"), FILE),
    **dict.fromkeys(("judge_file", "from_run", "directory"), FILE),
    **dict.fromkeys(("prompt", "source_prompt", "judge_prompt"), FILE),
    **dict.fromkeys(("dimensions", "judges", "criteria", "panel", "checker"), ""),
}
"""Arguments of the commands that are no settings, with what they name."""
SEVERAL = ("dimensions", "judges", "panel")
"""Arguments that may be a list."""
RECORDS: tuple[type[BaseModel], ...] = (
    *(EvaluateOptions, DiagnoseOptions, SelectOptions, CompareOptions, WeighOptions, WriterOptions),
    *(MigrateOptions, AlignOptions, TuneOptions, LabelOptions),
)
"""The settings of all commands."""


def naming(what: str) -> list[str]:
    """Every argument and setting that names a ``MODEL`` or a ``FILE``."""
    settings = (name for record in RECORDS for name in settings_naming(what, record))
    return list(dict.fromkeys([*(name for name, kind in INPUTS.items() if kind == what), *settings]))


def settings(
    record: type[BaseModel], config: Path | None, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge the file and the command line into (settings of the record, other arguments).

    Args:
        record: Whose settings.
        config: The ``--config`` file.
        given: What the command line gave, settings and other arguments (``checklist``, ``model``, …), which the file
            may hold as well; None or () means not given.

    Raises:
        InputError: The file has a name that no command knows. One that another command knows is passed over, as is one
            of this command that its other settings leave without use, so that one file serves a project.
    """
    values = load_config(config) if config else {}
    known = {*INPUTS, *(name for each in RECORDS for name in each.model_fields)}
    for name in values:
        if name not in known:
            raise InputError(f"{config}: there is no setting '{name}'.{did_you_mean(name, known)}")
        if name in INPUTS and not _is_text(values[name], several=name in SEVERAL):
            more = ", or a list of texts," if name in SEVERAL else ""
            raise InputError(f"{config}: {name}: a text{more} is needed, not {values[name]!r:.60}.")
    if config:
        _paths_beside(config, values)
    merged = {name: values[name] for name in record.model_fields if name in values}
    rest = {}
    for name, value in given.items():
        missing = value is None or value == ()
        if name not in record.model_fields:
            rest[name] = values.get(name) if missing else value
        elif not missing:
            merged[name] = value
    if isinstance(merged.get("field"), tuple):
        merged["field"] = parse_field_map(merged["field"])
    for name in idle_settings(record, {**merged, **rest}):
        if given.get(name) in (None, ()):  # it is the file's, which serves other commands, too
            del merged[name]
    return merged, rest


def need(values: Mapping[str, Any], *names: str) -> None:
    """Check that arguments were given on the command line or in the file.

    Raises:
        InputError: One was not.
    """
    for name in names:
        if values.get(name) is None:
            option = name.upper() if name == "data" else "--" + name.replace("_", "-")
            raise InputError(f"{option} is needed, on the command line or in the --config file.")


def read_task(path: str | Path) -> str:
    """Read the text that describes a task.

    Raises:
        InputError: There is no such file, or it is no UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file; a text that describes the task is needed.{like_named(path)}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error}).") from None


def load_dotenv() -> None:
    """Set the variables of a ``.env`` in the present directory that are not set yet.

    Raises:
        InputError: It cannot be read.
    """
    file = Path(".env")
    if not file.is_file():
        return
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{file.absolute()}: cannot be read as UTF-8 text.") from None
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            os.environ.setdefault(name.strip(), value.strip().strip("\"'"))


def _is_text(value: Any, *, several: bool) -> bool:
    if several and isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return value is None or isinstance(value, str)


def _paths_beside(config: Path, values: dict[str, Any]) -> None:
    """Take the file names in a configuration relative to the configuration file."""
    for name in naming(FILE):
        value = values.get(name)
        ready = name == "checklist" and value in READY and not (config.parent / value).is_file()
        if isinstance(value, str) and not ready and not is_on_hub(value):
            values[name] = str(config.parent / value)


def _option(name: str, info: FieldInfo) -> Callable[[Function], Function]:
    flag = "--" + name.replace("_", "-")
    help_text = info.description or ""
    kind = _without_none(info.annotation)
    if kind is bool:
        both = f"{flag}/--no-{flag.removeprefix('--')}" if info.default else flag
        return click.option(both, name, default=None, is_flag=True, help=f"{help_text} [default: {_on(info.default)}]")
    if get_origin(kind) is dict:
        form = "OURS=COLUMN" if name == "field" else "good=WORD,bad=WORD"
        return click.option(flag, name, multiple=True, metavar=form, help=help_text)
    default = info.default
    if default is not None:
        shown = " ".join(str(each) for each in default) if isinstance(default, tuple) else default
        help_text = f"{help_text} [default: {shown}]"
    if get_origin(kind) is Literal:
        return click.option(flag, name, type=click.Choice(get_args(kind)), default=None, help=help_text)
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        return click.option(flag, name, type=parts[0], nargs=len(parts), default=None, help=help_text)
    return click.option(flag, name, type=kind, default=None, help=help_text)


def _on(value: bool) -> str:
    return "on" if value else "off"


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        return next(each for each in get_args(annotation) if each is not type(None))
    return annotation
