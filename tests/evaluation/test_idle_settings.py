"""Every setting is used or refused: none changes nothing without a word."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import click
import pytest
import yaml

import askance
from askance.cli import SUMMARIES, cli
from askance.commands.command_options import RECORDS, settings
from askance.evaluation.options import CompareOptions, DiagnoseOptions, EvaluateOptions
from askance.memory.run_directory import RunDirectory
from askance.optimizer.loop import read_job
from askance.optimizer.mode import MODES
from askance.optimizer.options import AlignOptions, MigrateOptions, WeighOptions
from askance.prompts.errors import InputError
from askance.settings import Idle, idle_rules, parse_options, refuse_idle

ROOT = Path(askance.__file__).parent
SITUATIONS: list[dict[str, Any]] = [
    {},
    *({"update": each} for each in ("edits", "rewrite", "questions", "examples")),
    *({name: True} for name in ("calibrate", "paper", "pairwise", "own_questions")),
    *({"p_yes": each} for each in ("logprob", "hard")),
    *({"scores": each} for each in ("expected", "hard")),
    {"engine": "batch"},
    {"no_cache": True},
    {"answer_levels": 3},
    {"filling": "together"},
    {"reads": "score 1-5"},
    {"additions": False},
]
OTHER: dict[str, Any] = {
    "weights": "w.json",
    "scale": (1.0, 5.0),
    "human_scale": (1.0, 5.0),
    "score_scale": (1, 9),
    "scores": "hard",
    "api_base": "http://127.0.0.1:8000/v1",
    "max_prompt_chars": 900,
    "reads": "score 1-5",
    "answer_words": ("ja", "nein"),
}
INPUTS: list[dict[str, Any]] = [
    {"judge": None, "checklist": None},
    {"judges": "binary, unit-tests"},
    {"candidates": "pool.yaml"},
    {"verdicts": "v.jsonl"},
    {"model": None},
    {"data": None, "ratings": "r.jsonl"},
    {"data": "p.jsonl", "ratings": None},
    {"source": "openai/old"},
    {"generator": "openai/writer"},
    {"generator": "app.py:write"},
]
"""Arguments that are no settings."""
RULES = [(record, rule) for record in RECORDS for rule in idle_rules(record)]


def may_be(record: Any, name: str, value: Any) -> bool:
    """Whether a record has a setting, and it may have the value."""
    info = record.model_fields.get(name)
    return info is not None and (get_origin(info.annotation) is not Literal or value in get_args(info.annotation))


def another(record: Any, name: str) -> Any:
    """A value that is not the default."""
    info = record.model_fields[name]
    if name in OTHER:
        return OTHER[name]
    if get_origin(info.annotation) is Literal:
        return next(each for each in reversed(get_args(info.annotation)) if each != info.default)
    if isinstance(info.default, bool):
        return not info.default
    if isinstance(info.default, (int, float)):
        return info.default / 2 if info.default and info.annotation is float else info.default + 1
    return "some/name"


@pytest.mark.parametrize(("record", "rule"), RULES, ids=lambda each: getattr(each, "__name__", None))
def test_what_would_change_nothing_is_refused_by_name_with_the_reason(record: Any, rule: Idle) -> None:
    defaults = {name: info.get_default(call_default_factory=True) for name, info in record.model_fields.items()}
    held = 0
    for inputs in INPUTS:
        for name in rule.names if rule.when(defaults | inputs) and not rule.when(defaults) else ():
            given = {name: another(record, name)}
            with pytest.raises(InputError, match=name):
                refuse_idle(parse_options(record, given), **inputs)
            held += 1
    for situation in SITUATIONS:
        known = {name: value for name, value in situation.items() if may_be(record, name, value)}
        others = [each for each in idle_rules(record) if known.keys() & each.names and each.when(defaults | known)]
        if known != situation or not rule.when(defaults | known) or known.keys() & rule.names:
            continue  # it would be refused itself
        if others and rule.when(defaults):
            continue  # it is refused by another rule, and this one holds without it
        for name in rule.names:
            given = known | {name: another(record, name)}
            idle_too = [
                each for each in idle_rules(record) if known.keys() & each.names and each.when(defaults | given)
            ]
            if not rule.when(defaults | given) or (idle_too and rule.when(defaults)):
                continue  # it does not hold, or the situation itself is refused beside it
            with pytest.raises(InputError, match=rf"here: .*{name}: .*"):
                parse_options(record, given, "here")
            held += 1
    assert held, "there is no situation in which the rule holds"


def read_names() -> Iterator[str]:
    """Every attribute that the package reads, and every role whose model it asks for by name."""
    for path in ROOT.rglob("*.py"):
        first = path.relative_to(ROOT).parts[0]
        if first not in ("tests", "build") and not first.startswith("."):  # environments beside the sources
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute):
                    yield node.attr
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".helper"):
                    yield from (each.value for each in node.args if isinstance(each, ast.Constant))


def test_every_setting_of_every_command_is_read_somewhere() -> None:
    read = set(read_names())
    assert len(read) > 1000
    unread = {name for record in RECORDS for name in record.model_fields if name not in read}
    assert unread == set()


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, those of groups too."""
    left = [(name, cli.get_command(click.Context(cli), name)) for name in SUMMARIES]
    for name, command in left:
        if isinstance(command, click.Group):
            inside = click.Context(command)
            left += [(f"{name} {each}", command.get_command(inside, each)) for each in command.list_commands(inside)]
        elif command is not None:
            yield name, command


COMMANDS = dict(commands())


def read_in(module: ModuleType) -> set[str]:
    """The texts in a module's functions, those that declare options aside, and the parameters of what it calls."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    functions = [each for each in vars(module).values() if inspect.isfunction(each)]
    return texts | {name for each in functions for name in inspect.signature(each).parameters}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_used_in_it_or_is_a_setting(name: str) -> None:
    function = inspect.unwrap(COMMANDS[name].callback)  # type: ignore[arg-type]
    (defined,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(defined, ast.FunctionDef)
    own = inspect.signature(function).parameters
    used = {node.id for part in defined.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    taken = read_in(sys.modules[function.__module__])
    taken |= {each for record in RECORDS for each in record.model_fields}
    taken.add("model_settings")  # joins the setting models before a command sees it: tests/models/test_named.py
    if name in MODES:
        taken |= set(inspect.signature(getattr(askance, name)).parameters)
    options = [each.name for each in COMMANDS[name].params if each.expose_value]
    assert [each for each in options if each not in (used if each in own else taken)] == []


@pytest.mark.parametrize(
    ("record", "given", "name"),
    [
        (AlignOptions, {"update": "questions", "max_notes": 3}, "max_notes"),
        (CompareOptions, {"calibration": "c.json"}, "calibration"),
        (WeighOptions, {"weights": "w.json"}, "weights"),
        (DiagnoseOptions, {"scores": "hard"}, "scores"),
        (EvaluateOptions, {"p_yes": "hard", "samples": 3}, "samples"),
        (AlignOptions, {"update": "questions", "trial": False}, "trial"),
        (AlignOptions, {"update": "questions", "max_lessons": 3}, "max_lessons"),
        (AlignOptions, {"update": "examples", "max_notes": 3}, "max_notes"),
        (AlignOptions, {"update": "examples", "prune": False}, "prune"),
        (AlignOptions, {"calibrate": True, "patience": 1}, "patience"),
        (MigrateOptions, {"update": "questions", "max_prompt_chars": 900}, "max_prompt_chars"),
        (MigrateOptions, {"update": "questions", "patience": 1}, "patience"),
    ],
)
def test_on_the_command_line_it_is_refused_and_in_a_projects_file_passed_over(
    tmp_path: Path, record: Any, given: dict[str, Any], name: str
) -> None:
    merged, _ = settings(record, None, given)
    with pytest.raises(InputError, match=name):
        parse_options(record, merged)
    config = tmp_path / "askance.yaml"
    config.write_text("".join(f"{key}: {value}\n" for key, value in given.items()))
    merged, _ = settings(record, config, {})
    assert name not in merged
    parse_options(record, merged)


def test_the_temperature_that_is_given_is_that_of_samples() -> None:
    sampled = {"p_yes": "sampled", "samples": 3}
    assert parse_options(EvaluateOptions, sampled).judging.sample_temperature == 1.0
    assert parse_options(EvaluateOptions, sampled | {"temperature": 0.4}).judging.sample_temperature == 0.4


def test_a_run_that_was_begun_with_such_a_setting_can_be_gone_on_with(world: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    world.align(run, max_iterations=1)
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["config"] |= {"p_yes": "hard", "samples": 3}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    job = read_job(RunDirectory(run), {})
    assert (job.options.judging.p_yes, job.options.judging.samples) == ("hard", 3)
    with pytest.raises(InputError, match="samples"):
        parse_options(AlignOptions, {"p_yes": "hard", "samples": 3})
