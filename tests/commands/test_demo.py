"""What reads the demo's verdicts."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from askance.commands import first_steps as demo
from askance.models.embedded.registry import RegisteredModel, resolve
from askance.prompts.errors import InputError


def reader(*, faster: bool = True, can: bool = True) -> Any:
    def made_ready(name: str, path: Path, sha256: str) -> Path:
        if not can:
            raise InputError(f"{name}: cannot")
        return path

    made = ModuleType("reader")
    made.__dict__.update(reads_faster_here=lambda: faster, made_ready=made_ready)
    return made


@pytest.mark.parametrize(
    ("asked", "openvino", "onnx", "reads"),
    [
        ("", {}, {}, "openvino"),
        ("", {"faster": False}, {}, "onnx"),
        ("", {"can": False}, {}, "onnx"),
        ("", {"can": False}, {"can": False}, "local"),
        ("", {"faster": False}, {"faster": False}, "local"),
        ("local", {}, {}, "local"),
        ("onnx", {}, {"faster": False}, "onnx"),
        ("onnx", {}, {"can": False}, None),
    ],
)
def test_the_fastest_that_can_reads_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch, asked: str, openvino: dict[str, bool], onnx: dict[str, bool], reads: str | None
) -> None:
    monkeypatch.setattr(demo, "READERS", {"openvino": reader(**openvino), "onnx": reader(**onnx)})
    model = resolve("smollm2-135m-instruct")
    assert isinstance(model, RegisteredModel)
    if reads:
        assert demo.made_ready(asked, model, Path("m.gguf")) == reads
    else:
        with pytest.raises(InputError, match="onnx/smollm2-135m-instruct: cannot"):
            demo.made_ready(asked, model, Path("m.gguf"))
