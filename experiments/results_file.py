"""Where experiments leave what they measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
"""The committed results, one JSON file an experiment."""


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result as JSON, making the directory where it is missing.

    Raises:
        ValueError: A number in it is no number (NaN or infinite); an undefined one is None with a reason.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_as_json(result) + "\n", encoding="utf-8")


def print_result(result: Mapping[str, Any]) -> None:
    """Print a result as :func:`write_result` writes it.

    Raises:
        ValueError: As :func:`write_result`.
    """
    print(_as_json(result))


def _as_json(result: Mapping[str, Any]) -> str:
    return json.dumps(result, indent=1, allow_nan=False)
