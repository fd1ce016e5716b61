"""Speed beside llama-bench: which readings are an example's first, and what it would take by a benchmark that is written here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from askance.experiments.measured.embedded_speed import PromptRead, beside, main
from askance.prompts.errors import AskanceError

from ...said import naming, says

BENCH = """#!{python}
import json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert given["-t"] == "2" and given["-m"] == "model.gguf"
print(json.dumps([{{"avg_ts": 50.0 if given["-d"] == "0" else 20.0}}]))
"""
READ = [
    PromptRead(300, 20, 1.0, at=10.0),  # of an example before, and not counted
    PromptRead(300, 300, 6000.0, at=16.5),
    PromptRead(310, 20, 1000.0, at=17.6),
    PromptRead(310, 40, 2000.0, at=20.0),
]


def written(folder: Path, text: str) -> Path:
    binary = folder / "llama-bench"
    binary.write_text(text)
    binary.chmod(0o755)
    return binary


def test_what_was_read_is_held_against_what_the_benchmark_would_take(tmp_path: Path) -> None:
    found = beside(READ, written(tmp_path, BENCH.format(python=sys.executable)), Path("model.gguf"), 2)
    assert found["tokens_a_question"] == {"first": 300, "later": 30, "depth": 280}
    assert (found["tokens_sent"], found["tokens_computed"], found["verdicts"]) == (920, 360, 3)
    assert found["seconds"] == {"wall": 10.0, "reading": 9.0}
    assert found["tokens_a_second"] == {"reading": 40.0, "first": 50.0, "later": 20.0}
    assert found["llama_bench"] == {"tokens_a_second": {"first": 50.0, "later": 20.0}, "seconds": 9.0}
    assert found["reading_by_llama_bench"] == 1.0
    assert found["wall_by_llama_bench"] == pytest.approx(10 / 9)


def test_without_the_benchmark_there_is_nothing_to_hold_it_against() -> None:
    assert "llama_bench" not in beside(READ, None, Path("model.gguf"), 2)


def test_what_says_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AskanceError, match=naming("same way")):
        beside([READ[0], READ[1], READ[1]], None, Path("model.gguf"), 2)
    broken = written(tmp_path, f"#!{sys.executable}\nimport sys\nsys.exit('no such model')\n")
    with pytest.raises(AskanceError, match="llama-bench failed: no such model"):
        beside(READ, broken, Path("model.gguf"), 2)
    assert main(["--data", "no.jsonl", "--limit", "0"]) == 2
    assert says(capsys.readouterr().err, "one article")
