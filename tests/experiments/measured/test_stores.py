from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.experiments.measured import stores


def test_a_file_is_measured_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stores.main(["--answers", "100", "-o", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["stores"]
    assert list(figures) == ["SQLite"] and min(figures["SQLite"].values()) > 0
    assert f"{figures['SQLite']['read_per_s']:,}" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--answers", "20"], ["--store", "verdicts.db"]])
def test_what_cannot_be_measured_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        stores.main(wrong)
    assert ended.value.code == 2
