"""``askance demo`` and ``init``: show askance at work on an embedded model; make a starter project."""

from __future__ import annotations

import time
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..models.embedded.registry import EMBEDDED, RegisteredModel, resolve
from ..models.progress import Watcher, showing
from ..models.reading import onnx_reader, openvino_reader
from ..optimizer.migration.certificate import MigrationResult
from ..optimizer.migration.inputs import prepare_writer
from ..optimizer.migration.recorded import RECORDED
from ..optimizer.modes import align
from ..optimizer.run_result import RunResult
from ..prompts.errors import InputError
from ..runs import run_and_report, run_writer_migration
from .make_run import finish, tell_certificate
from .models import fetch
from .output import hush
from .terminal import echo

ALIGN_SETTINGS: dict[str, Any] = {
    "max_iterations": 1,
    "update": "questions",
    "explain": "never",
    "learn_from": "development",
    "max_questions": 5,
}
"""Settings smaller than the defaults, so that two processor cores finish in a few minutes."""
MIGRATE_SETTINGS: dict[str, Any] = {"max_iterations": 1, "max_output_tokens": 100}
DEMO_MODELS = {"align": "qwen2.5-coder-1.5b-instruct", "migrate": "qwen2.5-coder-0.5b-instruct"}
DEMO_RUNS = {"align": "demo-run", "migrate": "demo-migrate"}
READERS: dict[str, ModuleType] = {"openvino": openvino_reader, "onnx": onnx_reader}
"""Readers of verdicts that may be faster than llama.cpp, the fastest first."""


@click.command(name="demo")
@click.argument("what", type=click.Choice(list(DEMO_MODELS)), default="align")
@click.option(
    "--model",
    help="Embedded model; local/NAME, onnx/NAME or openvino/NAME says what reads verdicts (default: the fastest here). "
    "Default: " + ", ".join(f"{name} for {what}" for what, name in DEMO_MODELS.items()) + ".",
)
@click.option("--run", help="Directory of the run; default: demo-run, or demo-migrate.")
@click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only the result.")
def demo_command(what: str, model: str | None, run: str | None, quiet: bool) -> None:
    """See it work on an embedded model, with made-up data that comes with askance.

    align (the default): reviewers passed or failed a workshop's replies to its customers by house rules that are
    written nowhere. From their comments the judge learns the questions that find what they mean.

    migrate: a prompt sorts the workshop's post, and the outputs of a large model are there. The prompt moves to a 0.5B
    model, and a certificate says whether that model may take over.

    Held-out examples say whether it is worth anything. Nothing leaves this machine.
    """
    asked = model or DEMO_MODELS[what]
    provider, _, name = asked.partition("/")
    if provider not in EMBEDDED:
        provider, name = "", asked
    wanted = resolve(name)
    if not isinstance(wanted, RegisteredModel):
        raise InputError("The demo runs on a registered model; see: askance models")
    began = time.monotonic()
    path = fetch(wanted)
    fetched = time.monotonic() - began
    directory = run or DEMO_RUNS[what]
    with as_file(files("askance.prompts") / "demo" / what) as folder, showing(not quiet) as watcher:
        if what == "migrate":
            moved = _move(folder, f"{provider or 'local'}/{wanted.name}", directory, watcher)
            tell = partial(tell_certificate, moved, as_json=False)
        else:
            watcher.phase("making the model ready for this processor (the first time)")
            done = _learn(folder, f"{made_ready(provider, wanted, path)}/{wanted.name}", directory, watcher)
            tell = partial(finish, done, as_json=False)
        took = watcher.took()
    tell()
    echo("\nHow long each part took:")
    for text, seconds in [("fetching the model", fetched), *took.items()]:
        echo(f"  {seconds:6.1f} s  {text}")
    echo(f"\nThe report: {directory}/report.html    Again, without a call: the same command.")


def _move(folder: Path, model: str, run: str, watcher: Watcher) -> MigrationResult:
    """Migrate the prompt that sorts the post to ``model``."""
    data, prompt = folder / "messages.jsonl", folder / "writer.md"
    migration = prepare_writer(data, prompt, RECORDED, [model], options=MIGRATE_SETTINGS)
    watcher.say(
        f"{len(migration.examples)} made-up messages, each with what the old model, a large one, made of it. The "
        f"prompt moves to {model}."
    )
    return run_writer_migration(migration, run, watcher, yes=True)


def _learn(folder: Path, model: str, run: str, watcher: Watcher) -> RunResult:
    """Teach the judge ``model`` from the reviewers' comments."""
    data, checklist, prompt = folder / "examples.jsonl", folder / "checklist.yaml", folder / "prompt.md"
    job = align.prepare(data, checklist, model, prompt, ALIGN_SETTINGS)
    commented = sum(bool(each.comment) for each in job.examples)
    watcher.say(
        f"{len(job.examples)} made-up replies that reviewers passed or failed, {commented} with a comment. The "
        f"judge, {model}, starts from one question: {job.questions.questions[0].text}"
    )
    return run_and_report(job, run, watcher)


def made_ready(provider: str, model: RegisteredModel, path: Path) -> str:
    """Prepare a model's file for its reader. Return the ``provider``; if that is "", the fastest provider on this
    machine. Raises InputError if the provider cannot read the file."""
    fastest = (name for name, reader in READERS.items() if reader.reads_faster_here())
    for candidate in [provider] if provider else fastest:
        try:
            if candidate in READERS:
                READERS[candidate].made_ready(f"{candidate}/{model.name}", path, model.sha256)
            return candidate
        except InputError:
            if provider:
                raise
    return "local"


STARTER = ("examples.jsonl", "checklist.yaml", "prompt.md", "source_prompt.md", "askance.yaml", "README.md")


@click.command(name="init")
@click.argument("directory", default=".", type=click.Path(path_type=Path))
def init_command(directory: Path) -> None:
    """Make a starter project in DIRECTORY: configuration, prompts, checklist and data that run as they are."""
    present = [name for name in STARTER if (directory / name).exists()]
    if present:
        raise InputError(f"{directory}: {', '.join(present)} would be overwritten. Choose another directory.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in STARTER:
            (directory / name).write_bytes((files("askance.prompts") / "starter" / name).read_bytes())
    except OSError as error:
        raise InputError(f"{directory}: cannot be written ({error.strerror}).") from None
    echo((directory / "README.md").read_text(encoding="utf-8"), nl=False)
