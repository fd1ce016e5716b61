"""What reads the demo's verdicts."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from askance.commands import first_steps as demo
from askance.models.embedded.registry import RegisteredModel, resolve
from askance.optimizer.migration.inputs import WriterMigration
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


@pytest.mark.parametrize(
    ("given", "target"),
    [((), "local/qwen2.5-coder-0.5b-instruct"), (("--model", "smollm2-135m-instruct"), "local/smollm2-135m-instruct")],
)
def test_the_demo_of_migrate_moves_the_workshops_prompt(
    monkeypatch: pytest.MonkeyPatch, cli: Any, given: tuple[str, ...], target: str
) -> None:
    asked: list[WriterMigration] = []

    def stopped(migration: WriterMigration, *_: Any, **__: Any) -> None:
        asked.append(migration)
        raise InputError("far enough")

    monkeypatch.setattr(demo, "fetch", lambda _: Path("m.gguf"))
    monkeypatch.setattr(demo, "run_writer_migration", stopped)
    said = cli("demo", "migrate", *given)
    assert (said.code, [*asked[0].targets], len(asked[0].examples)) == (2, [target], 96)
