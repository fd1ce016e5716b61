from __future__ import annotations

import json
from pathlib import Path

from tests.measured import filling_world


def test_a_halo_makes_empty_questions_look_informative_and_one_reply_saves_the_calls(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert filling_world.main(["--seeds", "1", "--size", "60", "-o", str(out)]) == 0
    rows = {(each["halo"], each["filling"]): each for each in json.loads(out.read_text())["means"]}
    assert len(rows) == 2 * len(filling_world.HALOS)
    assert rows[0.0, "apart"]["calls"] == 60 * (12 + 1) and rows[0.0, "together"]["calls"] == 60
    assert rows[0.0, "together"]["tau"] == 1 and rows[0.0, "together"]["same"] == 1
    plain, coloured = (rows[halo, "together"] for halo in (0.0, 2.0))
    assert coloured["empty_bits"] > plain["empty_bits"] + 0.05
    assert coloured["tau"] < plain["tau"]
