"""The ``askance`` command. Each command is loaded when it is used."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from . import __version__

SUMMARIES = {
    "demo": "See it work on the embedded model, with data that comes along.",
    "init": "Make a starter project: configuration, prompt, checklist, data.",
    "import": "Say what is in a file, and make examples of it: a table, a data set or a tool's traces.",
    "label": "Label outputs on a local page, the most informative first.",
    "questions": "Write a checklist for a task.",
    "generate": "Write the outputs of a data set, with a model or a program of yours.",
    "evaluate": "Judge a data set with a checklist.",
    "diagnose": "Say which questions of a checklist are worth asking.",
    "select": "Choose the most informative questions about how good outputs are.",
    "migrate": "Move a prompt to other models, with a certificate that says which may take over.",
    "align": "Have a judge learn to score like people: questions from comments, edits.",
    "tune": "Improve a generator's prompt against a judge or a checker.",
    "compare": "Have several judges rate the same data, and compare them.",
    "weigh": "Learn from preferences or ratings how question scores add up.",
    "train": "Train a small scorer from a judge's verdicts and people's scores.",
    "resume": "Go on with a run that was interrupted, or make it longer.",
    "watch": "Follow a run from a second terminal.",
    "show": "Show the result of a run.",
    "diff": "Say what changed from one run to another, and what it did.",
    "lessons": "List, search and correct what runs have learned.",
    "report": "Write the report of a run or another result as one HTML file.",
    "ui": "Open the workbench: runs, and a judge whose checklist you change while agreement follows.",
    "export": "Write a run's judge as a file for another tool.",
    "mcp": "Serve coding agents: estimate, judge, explain; it only reads unless told otherwise.",
    "models": "List the embedded models, or fetch one.",
    "completion": "Print what makes a shell complete commands and options.",
    "doctor": "Check packages, models, keys, disk and cache.",
}

FILES = {
    **dict.fromkeys(("migrate", "align", "tune", "resume"), "make_run"),
    **dict.fromkeys(("generate", "evaluate", "diagnose"), "judge_data"),
    **dict.fromkeys(("questions", "select"), "make_checklist"),
    **dict.fromkeys(("show", "diff"), "show_run"),
    **dict.fromkeys(("import", "export", "mcp"), "exchange"),
    **dict.fromkeys(("demo", "init"), "first_steps"),
    **dict.fromkeys(("label", "ui"), "label"),
}
"""Files with several commands, called ``NAME_command``. Other commands are ``command`` in the file of their name."""

COLLECTED = 50_000
"""Number of objects after which the garbage collector runs, in a process of the command line. With Python's 700 it took
a seventh of the time of reading stored answers, and found nothing."""


class Commands(click.Group):
    """Commands by name; the module of a command is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a user meets them."""
        return list(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name, or None."""
        if cmd_name not in SUMMARIES:
            return None
        module = import_module(f".commands.{FILES.get(cmd_name, cmd_name)}", __package__)
        command = getattr(module, f"{cmd_name}_command" if cmd_name in FILES else "command")
        assert isinstance(command, click.Command)
        if ctx.resilient_parsing:  # the shell completes
            from .commands.completion import complete_values

            complete_values(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing the commands."""
        named = [CompletionItem(name, help=text) for name, text in SUMMARIES.items() if name.startswith(incomplete)]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one gets a hint."""
        unknown = args and args[0] not in SUMMARIES and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:  # while the shell completes, nothing is said
            from .prompts.errors import did_you_mean

            ctx.fail(f"There is no command '{args[0]}'.{did_you_mean(args[0], SUMMARIES)}")
        name, command, command_args = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            from .commands.command_options import refuse_old_names

            refuse_repeated(command, command_args)
            refuse_old_names(command, command_args)
        return name, command, command_args


def refuse_repeated(command: click.Command, arguments: list[str]) -> None:
    """Raise UsageError for an option that takes one value and is given twice: click would keep only the last value."""
    context = click.Context(command, info_name=command.name)
    try:
        options = command.make_parser(context).parse_args(list(arguments))[2]
    except click.UsageError:
        return  # the command itself says what is wrong
    for option in options:
        uses = [each for each in options if each is option]
        if isinstance(option, click.Option) and len(uses) > 1 and not (option.multiple or option.count):
            if option.is_flag and not option.secondary_opts:
                continue
            raise click.UsageError(f"{option.opts[0]} is given {len(uses)} times; it has one value.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="askance %(version)s")
def cli() -> None:
    """Ask small yes/no questions of a text, find where two judges disagree, patch the prompt from what that teaches.

    Every command has its own --help.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; exit codes: 0 done, 1 failed, 2 bad input, 3 budget, 4 coverage, 130 interrupted."""
    from .commands.terminal import echo, log_visibly
    from .prompts.errors import AskanceError

    log_visibly()
    if arguments is None:
        gc.set_threshold(COLLECTED)
    try:
        code = cli.main(args=arguments, prog_name="askance", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("Interrupted. What was bought is kept: run the same command again to go on.", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except AskanceError as error:
        echo(f"askance: {error}", err=True)
        code = error.exit_code
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        echo(f"askance: the output could not be written ({error.strerror}). What was bought is kept.", err=True)
        with suppress(OSError):  # what is left in the buffer cannot be written either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
