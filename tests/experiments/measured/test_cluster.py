from __future__ import annotations

import json
import sys

import pytest

from askance.experiments.measured import cluster
from askance.prompts.errors import MissingExtraError


def test_the_stored_result_has_both_ways_at_each_limit_and_is_shown() -> None:
    result = json.loads(cluster.RESULT.read_text(encoding="utf-8"))
    arms = [(row["at_once"], row["workers"]) for row in result["arms"]]
    assert arms == [(cluster.EACH * number, who) for number in cluster.WORKERS for who in (None, number)]
    lines = cluster.as_text(result).splitlines()
    assert len(lines) == 1 + len(arms)
    for line, row in zip(lines[1:], result["arms"], strict=True):
        assert line.split()[:2] == [str(row["at_once"]), str(row["workers"] or "none")]
        assert row["calls_per_s"] <= row["at_once"] / result["server_delay_s"]


@pytest.mark.parametrize("wrong", [["--calls", "20"], ["--runs", "0"]])
def test_what_cannot_be_measured_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cluster.main(wrong)
    assert ended.value.code == 2


def test_nothing_is_measured_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError):
        cluster.run(400, 1)
