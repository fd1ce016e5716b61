"""Settings with a new name: an old one is an error that names the new one, but in files of earlier runs and judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from askance import resume
from askance.cli import cli
from askance.commands.command_options import settings
from askance.evaluation.options import EvaluateOptions
from askance.memory.run_directory import RunDirectory
from askance.optimizer.options import AlignOptions
from askance.prompts.checklist import parse_checklist
from askance.prompts.errors import InputError
from askance.settings import GONE, RENAMED, flag, load_config, parse_options

from ..said import naming

VALUES = {"max_calls": 9, "max_tokens": 9, "max_cost": 9.0, "cache": "answers.db"} | dict.fromkeys(
    ("accept_level", "threshold", "max_drift"), 0.2
)


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_refused_with_the_new_one_on_the_command_line_in_files_and_in_python(
    old: str, tmp_path: Path
) -> None:
    new, value = RENAMED[old], VALUES[old]
    for form in ([flag(old), str(value)], [f"{flag(old)}={value}"]):
        with pytest.raises(click.UsageError, match=f"^{flag(old)} is now {flag(new)}") as error:
            cli.resolve_command(click.Context(cli), ["align", "d.jsonl", *form])
        assert error.value.exit_code == 2
    for form in ([flag(new), str(value)], [f"{flag(new)}={value}"]):
        _, command, rest = cli.resolve_command(click.Context(cli), ["align", "d.jsonl", *form])
        assert command is not None
        assert command.make_context("align", rest).params[new] == value
    with pytest.raises(InputError, match=f"^options: {old} is now {new}"):
        parse_options(AlignOptions, {old: value})
    assert getattr(parse_options(AlignOptions, {new: value}), new) == (Path(value) if old == "cache" else value)
    file = tmp_path / "askance.yaml"
    file.write_text(f"{old.replace('_', '-')}: {value}\n")
    with pytest.raises(InputError, match=rf"askance\.yaml: {old} is now {new}"):
        load_config(file)
    file.write_text(f"{new.replace('_', '-')}: {value}\n")
    assert load_config(file) == {new: value}


def test_a_command_that_never_had_an_option_does_not_speak_of_a_new_name() -> None:
    _, command, rest = cli.resolve_command(click.Context(cli), ["show", "run", "--max-calls", "3"])
    assert command is not None
    with pytest.raises(click.UsageError, match=r"[Nn]o such option"):
        command.make_context("show", rest)


@pytest.mark.parametrize("old", ["max_calls", "cache", "alpha"])
def test_a_run_is_resumed_with_new_names_alone(world: Any, tmp_path: Path, old: str) -> None:
    world.align(tmp_path / "run", max_iterations=1)
    match = f"{old} is now {RENAMED[old]}" if old in RENAMED else "'alpha' cannot be changed"
    with pytest.raises(InputError, match=match):
        resume(tmp_path / "run", **{old: 1})


def test_a_run_that_was_begun_with_old_names_is_the_same_run_and_shows_its_settings_by_their_new_ones(
    world: Any, tmp_path: Path
) -> None:
    begun = world.align(tmp_path / "run", disagreement_threshold=0.4, alpha=0.3, max_iterations=1)
    file = tmp_path / "run" / "config.yaml"
    header = yaml.safe_load(file.read_text())
    back = {new: old for old, new in RENAMED.items()}
    header["config"] = {back.get(name, name): value for name, value in header["config"].items()}
    assert {"accept_level", "threshold", "max_drift"} <= set(header["config"])
    file.write_text(yaml.safe_dump(header))
    kept = RunDirectory(tmp_path / "run").read_config()["config"]
    assert (kept["alpha"], kept["disagreement_threshold"]) == (0.3, 0.4) and not set(RENAMED) & set(kept)
    again = world.align(tmp_path / "run", disagreement_threshold=0.4, alpha=0.3, max_iterations=1, call_budget=0)
    assert again.result["best"] == begun.result["best"]
    with pytest.raises(InputError, match=naming("other settings", "alpha")):
        world.align(tmp_path / "run", disagreement_threshold=0.4, alpha=0.2, max_iterations=1)


@pytest.mark.parametrize("name", GONE)
def test_a_setting_that_is_gone_is_refused_with_what_takes_its_place(name: str, tmp_path: Path) -> None:
    _, instead = GONE[name]
    with pytest.raises(click.UsageError, match=naming(flag(name), instead)) as error:
        cli.resolve_command(click.Context(cli), ["align", "d.jsonl", flag(name), "1"])
    assert error.value.exit_code == 2
    with pytest.raises(InputError, match=naming("options", name, instead)):
        parse_options(AlignOptions, {name: 1})
    file = tmp_path / "askance.yaml"
    file.write_text(f"{name.replace('_', '-')}: 1\n")
    with pytest.raises(InputError, match=naming("askance.yaml", name, instead)):
        load_config(file)


def test_a_project_file_and_the_command_line_give_settings_by_the_names_of_python(tmp_path: Path) -> None:
    file = tmp_path / "askance.yaml"
    file.write_text("alpha: 0.2\nstore: answers.db\n")
    options, _ = settings(AlignOptions, file, {"max_bias": 0.3})
    assert options == {"alpha": 0.2, "store": str(tmp_path / "answers.db"), "max_bias": 0.3}
    parsed = parse_options(AlignOptions, options)
    assert (parsed.alpha, parsed.store, parsed.max_bias) == (0.2, tmp_path / "answers.db", 0.3)


def test_a_criterion_is_a_dimension_in_options_files_and_checklists(tmp_path: Path) -> None:
    for form in ("--criterion", "--dimension"):
        _, command, rest = cli.resolve_command(click.Context(cli), ["compare", "d.jsonl", form, "tone", form, "facts"])
        assert command is not None and command.make_context("compare", rest).params["dimensions"] == ("tone", "facts")
        _, command, rest = cli.resolve_command(click.Context(cli), ["label", "d.jsonl", form, "tone"])
        assert command is not None and command.make_context("label", rest).params["dimension"] == "tone"
    file = tmp_path / "askance.yaml"
    file.write_text("criterion: tone\nrating-criterion: tone\n")
    assert load_config(file) == {"dimension": "tone", "rating_dimension": "tone"}
    file.write_text("criterion: [tone, facts]\n")
    assert load_config(file) == {"dimensions": ["tone", "facts"]}
    file.write_text("criterion: tone\ndimension: tone\n")
    with pytest.raises(InputError, match=naming("criterion", "another name", "dimension")):
        load_config(file)
    assert parse_checklist("questions: [{id: a, text: 'Kind?', criterion: tone}]", "c.yaml").dimensions == ["tone"]
    with pytest.raises(InputError, match=naming("c.yaml", "criterion", "another name", "dimension")):
        parse_checklist("questions: [{id: a, text: 'Kind?', criterion: tone, dimension: tone}]", "c.yaml")


def test_an_error_calls_a_setting_as_it_was_given() -> None:
    with pytest.raises(InputError, match=naming("store", "no store", "no_cache")):
        parse_options(EvaluateOptions, {"store": "mine.db", "no_cache": True})
