"""Command-line options, made from the settings records, so that names are the same everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..evaluation.options import (
    CompareOptions,
    DiagnoseOptions,
    EvaluateOptions,
    GenerateOptions,
    SelectOptions,
    Where,
    WriterOptions,
    WritingOptions,
)
from ..labelling.label_options import LabelOptions
from ..models.named import with_settings
from ..optimizer.options import AlignOptions, MigrateOptions, TuneOptions, WeighOptions, WriterMigrationOptions
from ..prompts.checklist import READY
from ..prompts.errors import InputError, did_you_mean, like_named
from ..prompts.field_map import parse_field_map
from ..prompts.rows import is_on_hub
from ..prompts.text_files import read_text
from ..settings import (
    ALSO,
    FILE,
    GONE,
    MODEL,
    RENAMED,
    Heading,
    Under,
    check_each,
    flag,
    headings,
    idle_settings,
    load_config,
    settings_naming,
)
from ..training.options import TrainOptions
from .output import check_apart, hush

Function = TypeVar("Function", bound=Callable[..., Any])


FIRST = {
    "questions": "from_prompt data model output dimensions max_requirements config no_cache quiet",
    "generate": "generator prompt schema output generator_version max_output_tokens limit min_coverage dry_run config",
    "evaluate": "checklist own_questions model judge_file prompt output pass_threshold by dry_run config",
    "diagnose": "checklist model prompt verdicts output of_raters limit pairs dry_run config",
    "select": "model candidates k output verdicts task dimensions prompt dry_run config",
    "migrate": "prompt checklist source targets judge requirements run verify dry_run config",
    "align": "checklist model prompt from_run run update optimise_for max_iterations dry_run config",
    "tune": "generator prompt judge checklist checker from_run run max_iterations dry_run config",
    "resume": "yes max_iterations call_budget token_budget cost_budget max_concurrency engine workers quiet as_json",
    "compare": "model judges prompt checklist criteria dimensions output repeat dry_run config",
    "label": "output judges checklist rater order to_open dimension config",
    "train": "checklist verdicts preferences judge_run base output epochs loss_weights longest config",
    "weigh": "ratings checklist model prompt output method level pairwise dry_run config",
}
"""Options that come first in ``--help``, at most ten for each command with many options."""
NO_SETTINGS: dict[str, Under] = {
    "candidates": Under(Heading.COMPARED),
    "panel": Under(Heading.COMPARED, 2),
    "prompt": Under(Heading.ASKED),
    "schema": Under(Heading.WRITES, 1),
    "judge_model": Under(Heading.ROLES),
    "judge_prompt": Under(Heading.ROLES),
    "second_judge": Under(Heading.ROLES),
    "source_prompt": Under(Heading.ROLES),
    "kind": Under(Heading.CHANGED, -1),
    "checker": Under(Heading.WRITES, 1),
    "dataset": Under(Heading.DATA),
    "model_settings": Under(Heading.MODELS, -1),
    "yes": Under(Heading.OUTPUT),
    "quiet": Under(Heading.OUTPUT),
    "as_json": Under(Heading.OUTPUT, 1),
    "help": Under(Heading.OUTPUT, 2),
}
"""Headings of the options that are no settings. A setting has its heading on its field."""


class GroupedCommand(click.Command):
    """A command with many options: the most important options come first, the others under headings."""

    def grouped(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Group the command's options by heading: options from :data:`FIRST` first, options without a heading last."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        unplaced = {
            "help" if "--help" in option.opts else option.name: option for option in options if not option.hidden
        }
        by_heading = {"Options": [unplaced.pop(name) for name in FIRST[str(self.name)].split()]}
        placements = {name: where for record in RECORDS for name, where in headings(record).items()} | NO_SETTINGS
        for heading in Heading:
            names = [name for name in unplaced if name in placements and placements[name].heading is heading]
            by_heading[heading.value] = [
                unplaced.pop(name) for name in sorted(names, key=lambda name: placements[name].place)
            ]
        by_heading["Other options"] = list(unplaced.values())
        return {heading: params for heading, params in by_heading.items() if params}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options for ``--help``."""
        for heading, params in self.grouped(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([record for option in params if (record := option.get_help_record(ctx))])


def refuse_old_names(command: click.Command, arguments: Sequence[str]) -> None:
    """Refuse renamed and removed options. Raises UsageError with the new name or the replacement."""
    known = {form for option in command.params for form in option.opts}
    used = {argument.partition("=")[0] for argument in arguments}
    for old, new in RENAMED.items():
        if flag(old) in used - known and flag(new) in known:
            raise click.UsageError(f"{flag(old)} is now {flag(new)}.")
    for name, (_, instead) in GONE.items():
        if flag(name) in used - known:
            raise click.UsageError(f"{flag(name)} is no option any more: {instead}.")


def settings_options(
    record: type[BaseModel], *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Give a command one option for each setting. An option that is not given leaves the file's value in force."""

    def decorate(function: Function) -> Function:
        for name, info in reversed(record.model_fields.items()):
            if name == "models" and not only and name not in without:
                function = model_setting_option(function)
            elif (not only or name in only) and name not in without and not info.exclude:
                function = _option(name, info)(function)
        return function

    return decorate


def common_options(function: Function) -> Function:
    """Add ``--json`` and ``--quiet``."""
    quiet = click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only errors.")
    function = quiet(function)
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")(function)


model_setting_option = click.option(
    "--model-setting",
    "model_settings",
    multiple=True,
    metavar="NAME.SETTING=VALUE",
    help="One setting of a model, e.g. new.thinking=low; may be given several times.",
)
config_option = click.option(
    "--config", type=click.Path(path_type=Path), help="YAML file with settings; the command line wins."
)
dimensions_option = click.option(
    "--dimension",
    "--criterion",
    "dimensions",
    multiple=True,
    help="Allowed dimension (criterion); may be given several times.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what it would take and buy nothing.")


def store_options(function: Function) -> Function:
    """Add ``--store`` and ``--no-cache``."""
    help_text = str(Where.model_fields["store"].description)
    function = click.option("--no-cache", is_flag=True, default=None, help="Reuse no earlier answer and keep none.")(
        function
    )
    return click.option("--store", metavar="FILE|ADDRESS", help=help_text)(function)


def buying_options(function: Function) -> Function:
    """Add ``--store``, ``--no-cache``, ``--dry-run``, ``--config``, ``--json`` and ``--quiet``."""
    return store_options(dry_run_option(config_option(common_options(function))))


INPUTS = {
    **dict.fromkeys(("model", "source", "target", "targets", "generator", "judge", "judge_model"), MODEL),
    "second_judge": MODEL,
    **dict.fromkeys(("data", "checklist", "candidates", "verdicts", "ratings", "task", "run", "output"), FILE),
    **dict.fromkeys(("judge_file", "judge_run", "from_run", "from_prompt", "directory", "preferences"), FILE),
    **dict.fromkeys(("prompt", "source_prompt", "judge_prompt", "schema", "requirements"), FILE),
    **dict.fromkeys(("dimensions", "judges", "criteria", "panel", "checker", "base", "kind"), ""),
}
"""Arguments of the commands that are no settings, with the kind of thing that each names."""
SEVERAL = ("dimensions", "judges", "panel", "target", "targets")
"""Arguments that may be lists; for ``compare``, those in ``SIDE_BY_SIDE`` may be lists, too."""
SIDE_BY_SIDE = ("model", "prompt")
RECORDS: tuple[type[BaseModel], ...] = (
    *(EvaluateOptions, DiagnoseOptions, SelectOptions, CompareOptions, WeighOptions, WriterOptions),
    *(MigrateOptions, WriterMigrationOptions, AlignOptions, TuneOptions, LabelOptions, TrainOptions, GenerateOptions),
)
"""The settings of all commands."""


def naming(what: str) -> list[str]:
    """List every argument and setting whose value names a ``MODEL`` or a ``FILE``."""
    settings = (name for record in RECORDS for name in settings_naming(what, record))
    return list(dict.fromkeys([*(name for name, kind in INPUTS.items() if kind == what), *settings]))


def names_of(given: Any) -> list[str]:
    """Split names from a text with commas, or take them from a list in the configuration file."""
    if given is None:
        return []
    parts = given.split(",") if isinstance(given, str) else [str(each) for each in given]
    return [part.strip() for part in parts if part.strip()]


_TRUTHS = {"yes": True, "on": True, "no": False, "off": False}


def settings(
    record: type[BaseModel], config: Path | None, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Merge the file and the command line into (settings of the record, other arguments). None or () means that a value
    was not given. One file can serve a whole project: settings of other commands are ignored, and so are settings that
    have no effect beside the command's others. Raises InputError if the file has a name that no command knows, if a
    value cannot be used, or if the output would replace a file that is read."""
    values = load_config(config) if config else {}
    known = {*INPUTS, *(name for each in RECORDS for name in each.model_fields)}
    for name in values:
        if name not in known:
            raise InputError(f"{config}: there is no setting '{name}'.{did_you_mean(name, known)}")
        several = name in SEVERAL or (record is CompareOptions and name in SIDE_BY_SIDE)
        several = several or (issubclass(record, WritingOptions) and name == "prompt")
        if name in INPUTS and not _is_text(values[name], several=several):
            more = ", or a list of texts," if several else ""
            raise InputError(f"{config}: {name}: a text{more} is needed, not {values[name]!r:.60}.")
    if config:
        _paths_beside(config, values)
    for name, info in record.model_fields.items():  # words in place of true and false
        if _without_none(info.annotation) is bool and isinstance(values.get(name), str):
            values[name] = _TRUTHS.get(values[name].lower(), values[name])
    merged = {name: values[name] for name in record.model_fields if name in values}
    arguments = {}
    if given.get("model_settings"):
        merged["models"] = with_settings(merged.get("models"), given["model_settings"])
    for name, value in given.items():
        if name == "model_settings":
            continue
        missing = value is None or value == ()
        if name not in record.model_fields:
            arguments[name] = values.get(name) if missing else value
        elif not missing:
            merged[name] = value
    if isinstance(merged.get("field"), tuple):
        merged["field"] = parse_field_map(merged["field"])
    if given.get("reads") is not None and given.get("checklist") is None:  # the file's checklist is for other commands
        arguments |= {"checklist": None} if "checklist" in arguments else {}
    elif given.get("checklist") is not None and given.get("reads") is None:
        merged.pop("reads", None)
    for name in idle_settings(record, {**merged, **arguments}):
        if given.get(name) in (None, ()):  # from the file, which serves other commands, too
            del merged[name]
    if given.get("api_base") is not None:
        _check_asked_there({**merged, **arguments})
    check_each(
        record,
        {name: merged[name] for name in merged if given.get(name) in (None, ())},
        str(config or "--model-setting"),
    )
    all_values = {"config": config, **merged, **arguments}
    read = [name for name in ("config", *naming(FILE)) if name != "output"]
    if given.get("output") is None:  # a project's file may name the verdicts that one command writes and another reads
        read.remove("verdicts")
    check_apart(arguments.get("output"), {name: all_values.get(name) for name in read})
    return merged, arguments


def need(values: Mapping[str, Any], *names: str) -> None:
    """Check that arguments were given on the command line or in the file. Raises InputError if one is missing."""
    for name in names:
        if values.get(name) is None:
            option = name.upper() if name == "data" else flag(name)
            raise InputError(f"{option} is needed, on the command line or in the --config file.")


def beside_judge(
    option: str, options: Mapping[str, Any], given: Mapping[str, Any], theirs: Sequence[str]
) -> dict[str, Any]:
    """Return the settings beside an option that brings a judge with its own checklist and prompt. Settings named in
    ``theirs`` count only if the command line gives them, because a project's file is about other judges. Raises
    UsageError if the command line gives a checklist or prompt, too."""
    for name in ("checklist", "prompt"):
        if given[name] is not None:
            raise click.UsageError(f"{option} brings its own {name}; leave out --{name}, or {option}.")
    return {name: each for name, each in options.items() if name not in theirs or given[name] is not None}


def read_task(path: str | Path) -> str:
    """Read the text that describes a task. Raises InputError if there is no such file, or it is no UTF-8 text."""
    try:
        return read_text(path)
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no such file; a text that describes the task is needed.{like_named(path)}"
        ) from None


def load_dotenv() -> None:
    """Set those variables from ``.env`` in the working directory that are not set yet. Raises InputError if the file
    cannot be read, or a line is not of the form NAME=value."""
    file = Path(".env")
    if not file.is_file():
        return

    from dotenv.parser import parse_stream

    for binding in parse_stream(StringIO(read_text(file.absolute()))):
        if binding.error or "\0" in binding.original.string:
            raise InputError(f"{file.absolute()}, line {binding.original.line}: not of the form NAME=value.")
        if binding.key and binding.value is not None:
            os.environ.setdefault(binding.key, binding.value)


def _check_asked_there(values: Mapping[str, Any]) -> None:
    """Refuse an ``--api-base`` that no named model uses. Raises InputError."""
    names = [each for name in (*naming(MODEL), "panel") for each in names_of(values.get(name))]
    other_models = [each for each in names if "/" in each and not each.startswith("openai/")]
    # A judge's file or an earlier run may name a model that uses the address.
    is_kept = any(values.get(each) for each in ("judge_file", "judge_run", "from_run"))
    if other_models and other_models == names and not is_kept:
        raise InputError(
            f"--api-base: only models named openai/NAME are asked there, and {other_models[0]} is not. Write "
            "openai/NAME, with the name that the server has for its model, or leave --api-base out."
        )


def _is_text(value: Any, *, several: bool) -> bool:
    if several and isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return value is None or isinstance(value, str)


def _paths_beside(config: Path, values: dict[str, Any]) -> None:
    """Make the file names in a configuration relative to the configuration file's directory."""

    def beside(name: str, value: Any) -> Any:
        ready = name == "checklist" and value in READY and not (config.parent / value).is_file()
        is_path = isinstance(value, str) and not ready and not is_on_hub(value) and "://" not in value
        return str(config.parent / value) if is_path else value

    for name in naming(FILE):
        if name in values:
            value = values[name]
            values[name] = [beside(name, each) for each in value] if isinstance(value, list) else beside(name, value)


def _option(name: str, info: FieldInfo) -> Callable[[Function], Function]:
    long_flag = flag(name)
    help_text = info.description or ""
    kind = _without_none(info.annotation)
    if kind is bool:
        default = "on" if info.default else "off"
        both = f"{long_flag}/--no-{long_flag.removeprefix('--')}" if info.default else long_flag
        return click.option(both, name, default=None, is_flag=True, help=f"{help_text} [default: {default}]")
    if get_origin(kind) is dict:
        forms = {"field": "OURS=COLUMN", "variable": "VARIABLE=FIELD", "vary": "SETTING=VALUES"}
        form = forms.get(name, "good=WORD,bad=WORD")
        return click.option(long_flag, name, multiple=True, metavar=form, help=help_text)
    default = info.default
    if default is not None:
        shown = " ".join(str(each) for each in default) if isinstance(default, tuple) else default
        help_text = f"{help_text} [default: {shown}]"
    if get_origin(kind) is Literal:
        return click.option(long_flag, name, type=click.Choice(get_args(kind)), help=help_text)
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if name == "measure":
            return click.option(long_flag, name, multiple=True, metavar="NAME", help=info.description)
        if parts[0] is str:
            return click.option(long_flag, name, metavar="WORDS" if name == "label_scale" else "YES,NO", help=help_text)
        return click.option(long_flag, name, type=parts[0], nargs=len(parts), help=help_text)
    if name in ALSO.values():
        other = next(flag(also) for also, ours in ALSO.items() if ours == name)
        return click.option(long_flag, other, name, type=kind, help=help_text)
    return click.option(long_flag, name, type=kind, help=help_text)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
