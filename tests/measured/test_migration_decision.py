"""Truly worse is rarely adopted, and equal mostly with the size that is asked for; on fewer draws than the study's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askance.stats.noninferiority import examples_needed
from tests.measured import migration_decision
from tests.measured.migration_decision import (
    CLOSED,
    EQUAL,
    LEVEL,
    MANY,
    MAX_LOSS,
    SINGLE,
    WORSE,
    adopts,
    main,
    refuses,
    share,
)

DRAWS = 200
RARE, COMMON = 0.046, 0.085
"""Three standard errors of a share near .05, and near .8, on so many draws."""


@pytest.mark.parametrize("name", WORSE)
def test_truly_worse_by_the_margin_is_adopted_in_few_cases(name: str) -> None:
    assert WORSE[name].true_difference == pytest.approx(-MAX_LOSS, abs=1e-3)
    assert share(adopts, WORSE[name], 80, DRAWS, 1) <= 0.05 + RARE


@pytest.mark.parametrize("name", EQUAL)
def test_equal_is_adopted_with_the_size_that_is_asked_for(name: str) -> None:
    shape, spread = EQUAL[name], EQUAL[name].spread()
    n = examples_needed(spread, MAX_LOSS, LEVEL)
    assert shape.true_difference == pytest.approx(0, abs=1e-3)
    assert n <= max(59, 1.2 * (CLOSED * spread.deviation / MAX_LOSS) ** 2)
    assert share(adopts, shape, n, DRAWS, 1) >= 0.8 - COMMON


def test_one_requirement_that_is_lost_is_not_yet_though_the_mean_holds() -> None:
    mild, _, severe = SINGLE.values()
    assert share(refuses, severe, 60, 100) > 0.8
    assert share(refuses, mild, 60, 100) < share(refuses, severe, 60, 100)


@pytest.mark.parametrize("name", MANY)
def test_many_requirements_are_no_reason_to_refuse(name: str) -> None:
    assert share(refuses, MANY[name], 100, 100) <= 0.1


def test_a_table_has_the_rates_it_is_drawn_with() -> None:
    shape = WORSE["a tenth of the verdicts is missing"]
    found, documents = shape.draw(np.random.default_rng(0), 20_000)
    assert abs(np.isnan(found.new.passed).mean() - 0.1) < 0.01
    assert len(set(documents)) == 20_000
    plain, _ = WORSE["documents of five"].draw(np.random.default_rng(0), 20_000)
    assert plain.changes.mean() == pytest.approx(-MAX_LOSS, abs=0.01)
    assert plain.old.passed.mean(axis=0) == pytest.approx(WORSE["documents of five"].rates, abs=0.02)


def test_the_command_writes_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("EQUAL", "WORSE", "SINGLE", "MANY"):
        monkeypatch.setattr(migration_decision, part, dict(list(getattr(migration_decision, part).items())[:1]))
    main(["--draws", "4", "-o", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    assert {"equal", "worse_by_the_margin", "false_not_yet", "planned_from_development"} <= set(found)
    assert all(0 <= row["adopted"] <= 1 for row in found["equal"].values())
