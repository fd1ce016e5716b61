"""Writes small files in the form in which other tools export them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file: JSON as a document or, to ``.jsonl``, as lines; a text as it is."""

    def call(name: str, content: Any) -> Path:
        path = tmp_path / name
        if path.suffix == ".jsonl":
            content = "".join(json.dumps(each) + "\n" for each in content)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
        return path

    return call
