"""``askance init``: make a starter project: configuration, prompt, checklist, data."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from ..prompts.errors import InputError
from .terminal import echo

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
def command(directory: Path) -> None:
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
