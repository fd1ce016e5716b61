"""``askance completion``: print what makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from ..models.embedded.registry import EMBEDDED, MODELS
from ..settings import FILE, MODEL
from .command_options import naming
from .terminal import echo

VARIABLE = "_ASKANCE_COMPLETE"
WHERE = {
    "bash": 'add to ~/.bashrc:  eval "$(askance completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(askance completion zsh)"',
    "fish": "run once:  askance completion fish > ~/.config/fish/completions/askance.fish",
}


def complete_values(command: click.Command) -> None:
    """Complete a command's options for files to files, and its options for models to the embedded models."""
    models, named = {*naming(MODEL), "models"}, naming(FILE)
    for param in command.params:
        if param.name in models:
            param._custom_shell_complete = _models  # as the argument shell_complete= of an option does
        elif param.name in named:
            param._custom_shell_complete = _files


def _models(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = (f"{provider}/{model.name}" for provider in EMBEDDED for model in MODELS)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _files(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


@click.command(name="completion", epilog="\b\n" + "\n".join(WHERE.values()))
@click.argument("shell", type=click.Choice(tuple(WHERE)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete askance's commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    echo(kind(context.find_root().command, {}, "askance", VARIABLE).source())
