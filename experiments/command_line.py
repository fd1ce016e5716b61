"""Shared parts of the commands ``python -m askance.experiments...``: errors, the machine, the result file."""

from __future__ import annotations

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
    """Wrap a command so that it prints an error on standard error and returns its exit code."""

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
    """Describe the machine of a measurement and its load; ``more``: versions of packages."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": [round(each, 2) for each in os.getloadavg()],
        **more,
    }


RESULTS = Path(__file__).parent / "results"
"""The committed results, one JSON file an experiment."""


def write_result(path: Path | None, result: Mapping[str, Any]) -> None:
    """Write a result as JSON and create a missing directory; print it if no file is named. Raises ValueError for NaN or
    an infinite number: an undefined number is None, with a reason."""
    text = json.dumps(result, indent=1, allow_nan=False)
    if path is None:
        print(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
