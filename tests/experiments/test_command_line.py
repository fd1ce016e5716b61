from __future__ import annotations

from pathlib import Path

import pytest

from askance.experiments.command_line import write_result


def test_a_number_that_is_none_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path / "results" / "r.json", {"x": float("nan")})
