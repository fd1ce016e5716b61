"""What the commands of experiments (``python -m askance.experiments...``) do alike."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from ..prompts.errors import AskanceError


def says_errors(main: Callable[[Sequence[str] | None], int]) -> Callable[..., int]:
    """A command that says on standard error what went wrong; its exit code is then the error's, or 1 of a file's."""

    @wraps(main)
    def command(arguments: Sequence[str] | None = None) -> int:
        try:
            return main(arguments)
        except AskanceError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        except OSError as error:
            print(error, file=sys.stderr)
            return AskanceError.exit_code

    return command


def machine(**more: str) -> dict[str, Any]:
    """What a measurement ran on, and how busy that was; ``more``: versions of packages."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": [round(each, 2) for each in os.getloadavg()],
        **more,
    }


def finished_runs(module: str, about: str | None, result: Path, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The ``runs`` that a command reads, and its ``output``.

    Args:
        module: The command's, as ``python -m`` takes it.
        about: What it does.
        result: Its result file, where none is named.
        arguments: What it was given; None for the command line's.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("runs", nargs="+", type=Path, help="directories of finished runs, DATA-SEED-ARM")
    parser.add_argument("--output", type=Path, default=result)
    return parser.parse_args(arguments)


def data_of(run: Path) -> str:
    """The data set of a run in a directory DATA-SEED-ARM."""
    return run.name.split("-")[0]


RESULTS = Path(__file__).parent / "results"
"""The committed results, one JSON file an experiment."""


def write_result(path: Path | None, result: Mapping[str, Any]) -> None:
    """Write a result as JSON, making the directory where it is missing; print it where no file is named.

    Raises:
        ValueError: A number in it is no number (NaN or infinite); an undefined one is None with a reason.
    """
    text = json.dumps(result, indent=1, allow_nan=False)
    if path is None:
        print(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
