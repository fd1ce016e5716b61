"""``askance demo`` and ``init``: see it work on the embedded model; make a starter project."""

from __future__ import annotations

import time
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..models.embedded.registry import EMBEDDED, RegisteredModel, resolve
from ..models.progress import showing
from ..models.reading import onnx_reader, openvino_reader
from ..optimizer.job import Job
from ..optimizer.modes import align, migrate
from ..prompts.errors import InputError
from ..runs import run_and_report
from .make_run import finish
from .models import fetch
from .output import hush
from .terminal import echo

SETTINGS: dict[str, dict[str, Any]] = {
    "align": {
        "max_iterations": 1,
        "update": "questions",
        "explain": "never",
        "learn_from": "development",
        "max_questions": 5,
    },
    "migrate": {"update": "edits", "limit": 48, "max_iterations": 1, "max_notes": 4, "split": (0.34, 0.33, 0.33)},
}
"""Less than the defaults, so that two cores are done in some minutes."""
READERS: dict[str, ModuleType] = {"openvino": openvino_reader, "onnx": onnx_reader}
"""Readers that may be faster than llama.cpp, the fastest first."""


@click.command(name="demo")
@click.argument("what", type=click.Choice(list(SETTINGS)), default="align")
@click.option(
    "--model",
    default="qwen2.5-coder-1.5b-instruct",
    show_default=True,
    help="Embedded model; local/NAME, onnx/NAME or openvino/NAME says what reads it (default: the fastest here).",
)
@click.option("--run", default=None, help="Directory of the run; default: demo-run, or demo-migrate.")
@click.option("--quiet", is_flag=True, callback=hush, help="No progress and no messages, only the result.")
def demo_command(what: str, model: str, run: str | None, quiet: bool) -> None:
    """See it work on the embedded model, with made-up data that comes with askance.

    align (the default): reviewers passed or failed a workshop's replies to its customers by house rules that are
    written nowhere. From their comments the judge learns the questions that find what they mean.

    migrate: the source judge has a careful, strict prompt, the target a plain one; the run shows what askance learns
    from their disagreements.

    Held-out examples say whether it is worth anything. Nothing leaves this machine.
    """
    provider, _, name = model.partition("/")
    if provider not in EMBEDDED:
        provider, name = "", model
    wanted = resolve(name)
    if not isinstance(wanted, RegisteredModel):
        raise InputError("The demo runs on a registered model; see: askance models")
    began = time.monotonic()
    path = fetch(wanted)
    fetched = time.monotonic() - began
    directory = run or {"align": "demo-run", "migrate": "demo-migrate"}[what]
    with as_file(files("askance.prompts") / "demo" / what) as folder, showing(not quiet) as watcher:
        watcher.phase("making the model ready for this processor (the first time)")
        provider = made_ready(provider, wanted, path)
        job, said = _job(what, folder, f"{provider}/{wanted.name}")
        watcher.say(said)
        done = run_and_report(job, directory, watcher)
        took = watcher.took()
    finish(done, as_json=False)
    echo("\nHow long each part took:")
    for text, seconds in [("fetching the model", fetched), *took.items()]:
        echo(f"  {seconds:6.1f} s  {text}")
    echo(f"\nThe report: {directory}/report.html    Again, without a call: the same command.")


def made_ready(provider: str, model: RegisteredModel, path: Path) -> str:
    """Make a model's file ready for its reader; returns the ``provider``, or where that is "" the fastest one here.
    Raises InputError where the provider cannot."""
    for each in [provider] if provider else [name for name, reader in READERS.items() if reader.reads_faster_here()]:
        try:
            if each in READERS:
                READERS[each].made_ready(f"{each}/{model.name}", path, model.sha256)
        except InputError:
            if provider:
                raise
        else:
            return each
    return "local"


def _job(what: str, folder: Path, model: str) -> tuple[Job, str]:
    """The run to be made, and what it is about."""
    data, checklist, prompt, settings = (
        folder / "examples.jsonl",
        folder / "checklist.yaml",
        folder / "prompt.md",
        SETTINGS[what],
    )
    if what == "align":
        job = align.prepare(data, checklist, model, prompt, settings)
        commented = sum(bool(each.comment) for each in job.examples)
        asked = job.questions.questions[0].text
        return job, (
            f"{len(job.examples)} made-up replies that reviewers passed or failed, {commented} with a comment. The "
            f"judge, {model}, starts from one question: {asked}"
        )
    job = migrate.prepare(data, checklist, model, model, prompt, folder / "source_prompt.md", settings)
    return job, (
        f"{len(job.examples)} summaries with human-style scores. The source judges with a strict prompt, the "
        f"target with a plain one; both are {model}."
    )


STARTER = {
    "examples.jsonl": "demo/migrate/examples.jsonl",
    "checklist.yaml": "demo/migrate/checklist.yaml",
    "prompt.md": "demo/migrate/prompt.md",
    "source_prompt.md": "demo/migrate/source_prompt.md",
    "askance.yaml": "starter/askance.yaml",
    "README.md": "starter/README.md",
}


@click.command(name="init")
@click.argument("directory", default=".", type=click.Path(path_type=Path))
def init_command(directory: Path) -> None:
    """Make a starter project in DIRECTORY: configuration, prompts, checklist and data that run as they are."""
    there = [name for name in STARTER if (directory / name).exists()]
    if there:
        raise InputError(f"{directory}: {', '.join(there)} would be overwritten. Choose another directory.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, source in STARTER.items():
            (directory / name).write_bytes(files("askance.prompts").joinpath(source).read_bytes())
    except OSError as error:
        raise InputError(f"{directory}: cannot be written ({error.strerror}).") from None
    echo((directory / "README.md").read_text(encoding="utf-8"), nl=False)
