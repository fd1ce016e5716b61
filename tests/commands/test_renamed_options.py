"""Options that have a new name: both work, the old one with a word."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import click
import pytest

from askance.cli import cli
from askance.commands.options import NEW_NAMES, settings
from askance.evaluation.options import EvaluateOptions
from askance.memory.run_directory import RunDirectory
from askance.models.settings import load_config, parse_options
from askance.optimizer.options import AlignOptions
from askance.optimizer.runner import take_up
from askance.prompts.checklist import parse_checklist
from askance.prompts.errors import InputError

OLD = {"--alpha": "--accept-level", "--disagreement-threshold": "--threshold", "--max-bias": "--max-drift"}


@pytest.mark.parametrize("new", OLD)
def test_both_names_set_the_same_and_the_old_one_says_its_new_one(new: str, caplog: pytest.LogCaptureFixture) -> None:
    name = next(each for each, flag in NEW_NAMES.items() if flag == new)
    for form in ([OLD[new], "0.2"], [f"{OLD[new]}=0.2"], [new, "0.2"], [f"{new}=0.2"]):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            _, command, rest = cli.resolve_command(click.Context(cli), ["align", "d.jsonl", *form])
        assert command is not None
        assert command.make_context("align", rest).params[name] == 0.2
        said = [each.getMessage() for each in caplog.records]
        told = [f"{OLD[new]} is now {new}; the old name works in this version."]
        assert said == (told if form[0].startswith(OLD[new]) else [])
    with pytest.raises(click.UsageError, match="given 2 times"):
        cli.resolve_command(click.Context(cli), ["align", "d.jsonl", new, "0.2", OLD[new], "0.3"])


def test_help_shows_the_new_names_alone() -> None:
    command = cli.get_command(click.Context(cli), "align")
    assert command is not None
    text = command.get_help(click.Context(command))
    for new, old in OLD.items():
        assert new in text and f"{old} " not in text


def test_files_and_python_take_both_names_and_never_two_at_once(tmp_path: Path) -> None:
    assert parse_options(AlignOptions, {"alpha": 0.2, "disagreement_threshold": 0.4}).accept_level == 0.2
    with pytest.warns(DeprecationWarning, match="accept_level is now alpha"):
        assert parse_options(AlignOptions, {"accept_level": 0.2}).accept_level == 0.2
    with pytest.warns(DeprecationWarning, match="threshold is now disagreement_threshold"):
        assert parse_options(AlignOptions, {"threshold": 0.4}).threshold == 0.4
    file = tmp_path / "askance.yaml"
    file.write_text("alpha: 0.2\ndisagreement-threshold: 0.4\n")
    assert load_config(file) == {"accept_level": 0.2, "threshold": 0.4}
    file.write_text("alpha: 0.2\naccept_level: 0.1\n")
    with pytest.raises(InputError, match=r"askance\.yaml: alpha is the new name of accept_level"):
        load_config(file)


def test_an_old_name_in_a_file_is_told_its_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "askance.yaml"
    file.write_text("max-drift: 0.2\nalpha: 0.1\n")
    with caplog.at_level(logging.WARNING):
        assert load_config(file) == {"max_drift": 0.2, "accept_level": 0.1}
    assert [each.getMessage() for each in caplog.records] == [
        f"{file}: max_drift is now max_bias; the old name works in this version."
    ]


def test_python_is_told_the_new_name_where_it_gives_the_old_one(world: Any, tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="the old name works in this version") as told:
        world.align(tmp_path / "run", threshold=0.4, max_drift=0.3, max_iterations=1)
    said = {str(each.message).partition(";")[0]: Path(each.filename).name for each in told}
    assert said == {  # and where askance was called
        "threshold is now disagreement_threshold": "worlds.py",
        "max_drift is now max_bias": "worlds.py",
    }
    with pytest.warns(DeprecationWarning, match="cache is now store"):
        take_up(RunDirectory(tmp_path / "run"), {"cache": tmp_path / "answers.db"})


def test_a_new_name_is_no_warning_on_the_command_line_or_in_python(world: Any, tmp_path: Path) -> None:
    file = tmp_path / "askance.yaml"
    file.write_text("alpha: 0.2\nstore: answers.db\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        options, _ = settings(AlignOptions, file, {"max_drift": 0.3})
        assert options == {"alpha": 0.2, "store": str(tmp_path / "answers.db"), "max_bias": 0.3}
        parsed = parse_options(AlignOptions, options)
        assert (parsed.accept_level, parsed.cache, parsed.max_drift) == (0.2, tmp_path / "answers.db", 0.3)
        world.align(tmp_path / "run", disagreement_threshold=0.4, store=tmp_path / "answers.db", max_iterations=1)
        take_up(RunDirectory(tmp_path / "run"), {"store": tmp_path / "answers.db"})


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
    with pytest.raises(InputError, match="criterion is another name of dimension"):
        load_config(file)
    assert parse_checklist("questions: [{id: a, text: 'Kind?', criterion: tone}]", "c.yaml").dimensions == ["tone"]
    with pytest.raises(InputError, match=r"c\.yaml.*criterion is another name of dimension"):
        parse_checklist("questions: [{id: a, text: 'Kind?', criterion: tone, dimension: tone}]", "c.yaml")


def test_an_error_calls_a_setting_as_it_was_given() -> None:
    with pytest.raises(InputError, match=r"^options: store: no store is used where no answer is kept \(no_cache\)"):
        parse_options(EvaluateOptions, {"store": "mine.db", "no_cache": True})
