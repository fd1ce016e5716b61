"""Adopt, not yet or undecided, of outputs whose true loss is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from askance.optimizer.migration.decision import Answer, Cell, PassChange, PassTable, decide
from askance.prompts.checklist import Checklist, Question
from askance.prompts.verdicts import Verdict


def _table(passed: NDArray[np.float64]) -> PassTable:
    rows, columns = passed.shape
    return PassTable(tuple(f"e{row}" for row in range(rows)), tuple(f"r{column}" for column in range(columns)), passed)


def _answers(n: int, lost: list[float], gained: float, times: int = 100) -> dict[Answer, int]:
    """Answers on outputs that lose each requirement with a chance of its own, and gain with another."""
    rng, counts = np.random.default_rng(11), dict[Answer, int](adopt=0, not_yet=0, undecided=0)
    for _ in range(times):
        old = (rng.random((n, len(lost))) < 0.85).astype(float)
        u = rng.random(old.shape)
        new = np.where(old == 1, u >= np.array(lost), u < gained).astype(float)
        counts[decide(PassChange(_table(old), _table(new)), 0.05, 0.05).answer] += 1
    return counts


def test_equal_outputs_are_adopted() -> None:
    assert _answers(60, [0.05] * 8, 0.05 * 0.85 / 0.15)["adopt"] >= 80


def test_a_loss_of_the_margin_is_rarely_adopted() -> None:
    assert _answers(150, [0.1] * 8, (0.085 - 0.05) / 0.15)["adopt"] <= 9


def test_a_large_loss_is_not_yet() -> None:
    assert _answers(60, [0.2] * 8, 0.0)["not_yet"] == 100


def test_one_requirement_that_is_proved_worse_is_not_yet_whatever_the_mean() -> None:
    old, new = np.ones((80, 10)), np.ones((80, 10))
    old[:, 1:4], new[:30, 7] = 0, 0
    found = decide(PassChange(_table(old), _table(new)), 0.05, 0.05)
    assert (found.answer, found.worse) == ("not_yet", ("r7",))
    assert (found.limits.value or 0) > 0
    assert "r7" in found.reason


def test_few_outputs_leave_it_undecided_and_say_how_many_would_decide() -> None:
    rng = np.random.default_rng(2)
    old, new = (rng.random((20, 4)) < 0.8).astype(float), (rng.random((20, 4)) < 0.8).astype(float)
    found = decide(PassChange(_table(old), _table(new)), 0.05, 0.05)
    assert found.answer == "undecided"
    assert found.needed is not None
    assert found.needed > 20


def test_verdicts_become_a_table_by_what_speaks_for_the_output() -> None:
    checklist = Checklist(questions=(Question(id="a", text="A?"), Question(id="b", text="B?", good="no")))
    verdicts = [
        Verdict("e1", "a", "m", "p", True, 0.9, "hard"),
        Verdict("e1", "b", "m", "p", True, 0.9, "hard"),
        Verdict("e2", "a", "m", "p", None, status="api_error", error="down"),
    ]
    table = PassTable.of(("e1", "e2"), checklist, verdicts)
    assert table.passed[0].tolist() == [1.0, 0.0]
    assert np.isnan(table.passed[1]).all()
    assert table.rates() == [0.5, None]


def test_regressions_gains_and_common_failures_are_told_apart() -> None:
    old = _table(np.array([[1.0, 0.0, 0.0, np.nan]]))
    new = _table(np.array([[0.0, 1.0, 0.0, 1.0]]))
    found = PassChange(old, new)
    assert found.regressions == [Cell("e0", "r0")]
    assert found.gains == [Cell("e0", "r1")]
    assert found.both_fail == [Cell("e0", "r2")]
    assert found.differences() == [0.0]
