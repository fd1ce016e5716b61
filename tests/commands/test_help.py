"""``--help``: of many options those that matter first, the others under headings."""

from __future__ import annotations

import click
import click.testing
import pytest

from askance.cli import SUMMARIES, cli
from askance.commands.command_options import FIRST, NO_SETTINGS, RECORDS, GroupedCommand
from askance.settings import Heading, headings

MANY = 15
"""Options beyond which one list helps nobody."""


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in SUMMARIES}
    return {name: each for name, each in found.items() if each is not None}


def test_every_command_with_many_options_has_them_under_headings() -> None:
    many = {name for name, each in commands().items() if len(each.params) > MANY}
    assert many == set(FIRST)
    assert all(isinstance(commands()[name], GroupedCommand) for name in many)


@pytest.mark.parametrize("name", FIRST)
def test_each_option_is_there_once_and_the_ten_that_matter_come_first(name: str) -> None:
    command = commands()[name]
    assert isinstance(command, GroupedCommand)
    context = click.Context(command)
    found = command.grouped(context)
    shown = [each for params in found.values() for each in params]
    assert sorted(map(id, shown)) == sorted(
        id(each) for each in command.get_params(context) if isinstance(each, click.Option)
    )
    assert "Other options" not in found, [each.name for each in found["Other options"]]
    assert [each.name for each in found["Options"]] == FIRST[name].split()
    assert len(found["Options"]) <= 10
    assert max(len(params) for params in found.values()) <= 12
    text = click.testing.CliRunner().invoke(command, ["--help"]).output
    places = [text.index(f"\n{heading}:\n") for heading in found]
    assert places == sorted(places)


def test_no_heading_and_no_name_is_left_over() -> None:
    known = {"help", *(each.name for command in commands().values() for each in command.params)}
    named = [*NO_SETTINGS, *(name for names in FIRST.values() for name in names.split())]
    assert [each for each in named if each not in known] == []
    found = [(name, where) for record in RECORDS for name, where in headings(record).items()]
    assert len(set(found)) == len(dict(found)), "a setting of several commands stands under one heading"
    assert not {name for name, _ in found} & {*NO_SETTINGS}
    assert {where.heading for where in [*dict(found).values(), *NO_SETTINGS.values()]} == {*Heading}
