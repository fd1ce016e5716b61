from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.measured import neighbours

from ..said import says


def test_blocks_find_what_lookups_one_by_one_find() -> None:
    rows = neighbours.vectors_with_copies(300, 48)
    assert np.allclose((rows[::2] * rows[1::2]).sum(axis=1).mean(), 0.9, atol=0.03)
    one, blocks = neighbours.ours_one_by_one(rows), neighbours.ours_in_blocks(rows)
    assert len(one) == len(blocks) == 300
    copies = range(1, 300, 2)
    assert all(place - 1 in one[place] and place - 1 in blocks[place] for place in copies)


def test_the_memory_is_measured_without_faiss_and_its_absence_is_said_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    assert neighbours.main(["--memory", "30", "-o", str(out)]) == 0
    (row,) = json.loads(out.read_text())["rows"]
    assert row["lessons"] == 30 and row["cpu_s"] >= 0

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(neighbours, "import_module", missing)
    assert neighbours.main(["--sizes", "4"]) == 2
    assert says(capsys.readouterr().err, "pip install faiss-cpu")
