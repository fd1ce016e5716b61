"""``askance models``: lists the embedded models, and fetches one with a bar."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..evaluation.model_check import check_model
from ..evaluation.options import GatewayOptions
from ..models.download import pull, pulled
from ..models.embedded_models import MODELS, HubFile, RegisteredModel, resolve
from ..prompts.errors import InputError
from .options import config_option, load_dotenv, model_setting_option, settings
from .output import echo_json, print_rows
from .terminal import echo


def fetch(model: RegisteredModel) -> Path:
    """The path of the model's verified file; fetched with a progress bar on standard error if it is not there.

    Raises:
        AskanceError: No source gave the registered bytes, or the disk is full.
    """
    path = pulled(model)
    if path is not None:
        return path
    if not sys.stderr.isatty():
        return pull(model, progress=_Tenths())
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(model.name, total=model.bytes)

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        return pull(model, progress=progress)


class _Tenths:
    """One line for each tenth, for logs."""

    def __init__(self) -> None:
        self._last: tuple[bool, int] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Write a line where the next tenth is reached."""
        step = (what.endswith("joining"), 10 * done // max(total, 1))
        if step != self._last:
            self._last = step
            echo(f"{what}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", err=True)


@click.group(name="models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable list.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the embedded models (use them as local/NAME, onnx/NAME or openvino/NAME), or fetch one with `askance models pull NAME`."""
    if context.invoked_subcommand:
        return
    rows = [_row(model) for model in MODELS]
    if as_json:
        echo_json(rows)
        return
    shown = [
        {"name": row["name"], "size": f"{int(str(row['bytes'])) / 1e6:,.0f} MB", "licence": row["licence"]}
        | {"sha256": str(row["sha256"])[:12], "where from": row["sources"], "here": "yes" if row["path"] else "no"}
        for row in rows
    ]
    print_rows(shown)
    echo("Fetch one: askance models pull NAME. The path of a .gguf file works as local/PATH.", err=True)


@command.command(name="pull")
@click.argument("name")
def pull_command(name: str) -> None:
    """Fetch a model, check its hash, and keep it in the cache directory. An interrupted fetch goes on."""
    model = resolve(name)
    if not isinstance(model, RegisteredModel):
        raise InputError(f"{name} is a file already; use it as local/{name}.")
    echo(str(fetch(model)))


@command.command(name="check")
@click.argument("name")
@click.option("--api-base", default=None, help="Address of an OpenAI-compatible server, for openai/NAME.")
@click.option("--store", default=None, metavar="FILE|ADDRESS", help="Where what is learned of it is kept.")
@model_setting_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output.")
def check_command(name: str, config: Path | None, as_json: bool, **given: object) -> None:
    """Ask the model NAME a handful of questions and say what it can do: schema, log-probabilities, thinking, time, price.

    NAME is provider/model, or a name under models: of the --config file. Exit code 1: it cannot be reached or does not answer.
    """
    load_dotenv()
    options, _ = settings(GatewayOptions, config, given)
    found = check_model(name, say=lambda text: echo(text, err=True), **options)
    if as_json:
        echo_json(found.to_dict())
        return
    width = max(len(what) for what, _ in found.rows)
    echo(f"{name}, in {found.calls} calls")
    for what, said in found.rows:
        echo(f"  {what:<{width}}  {said}")


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
