"""The short form of what runs every night: kills, faults, a full disk, a clock that jumps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.doubles import FAULTS
from tests.measured.endurance import __main__ as endurance
from tests.measured.endurance.faults import at_faults, at_final_faults
from tests.measured.endurance.kills import killed
from tests.measured.endurance.machine_faults import (
    at_full_disks,
    killed_with_a_batch_open,
    two_on_one_store,
)
from tests.measured.endurance.paid import Till, difference
from tests.measured.endurance.processes import CommandRunner
from tests.measured.endurance.world import WORKS


@pytest.fixture(scope="module")
def commands() -> Iterator[CommandRunner]:
    with CommandRunner() as running:
        yield running


@pytest.mark.parametrize("name", ["evaluate", "align", "compare"])
def test_a_command_that_is_killed_comes_to_the_same_and_pays_twice_only_what_was_in_flight(
    commands: CommandRunner, tmp_path: Path, name: str
) -> None:
    row = killed(WORKS[name], 3, tmp_path, commands)
    assert row["kills"] == 3 and row["calls"] > 100
    assert (row["beyond"], row["differs"], row["refused"]) == (0, [], [])


def test_no_fault_becomes_a_score_and_what_is_missing_comes_with_the_next_run(
    commands: CommandRunner, tmp_path: Path
) -> None:
    row = at_faults(240, tmp_path, commands)
    assert sum(row["faults"].values()) > 60 and len(row["faults"]) > 15
    assert (row["calls"], row["wrong"], row["missing_then"], row["twice"]) == (240, 0, 0, 0)


def test_what_ends_a_run_is_said_and_the_next_one_goes_on(commands: CommandRunner, tmp_path: Path) -> None:
    for row in at_final_faults(tmp_path, commands):
        assert (row["code"], row["code_then"], row["twice"]) == (1, 0, 0), row
        assert row["said"].startswith("askance: ")


def test_a_full_disk_stops_a_run_with_a_sentence_and_loses_nothing(commands: CommandRunner, tmp_path: Path) -> None:
    for row in at_full_disks(tmp_path, commands, 2, ["evaluate"]):
        assert row["stopped"] > 0
        assert (row["unsaid"], row["beyond"], row["differs"], row["refused"]) == ([], 0, [], [])


@pytest.mark.slow
def test_a_clock_that_jumps_makes_nobody_pay_twice(commands: CommandRunner, tmp_path: Path) -> None:
    with CommandRunner() as other:
        rows = two_on_one_store(tmp_path, commands, other, ["to and fro"])
    rows += killed_with_a_batch_open(tmp_path, commands)
    assert [row["command"] for row in rows][1:] == ["killed with a batch open"] * 2
    assert not any(row["twice"] or row["differs"] for row in rows)


def test_what_is_paid_twice_is_the_loss_of_the_process_that_had_asked_before() -> None:
    till = Till()
    till.lives = [Counter("abc"), Counter("bcd"), Counter("de")]
    assert till.calls == 8
    assert till.twice(Counter("abcde"), in_flight=4) == (3, 0)
    assert till.twice(Counter("abcde"), in_flight=1) == (3, 1), "one of the first process's two, none of the second's"
    assert till.twice(Counter("abbcde"), in_flight=1) == (2, 0), "a run left alone asks one of them twice, too"


def test_what_is_nowhere_differs() -> None:
    assert difference({"a": b"1", "b": None}, {"a": b"1", "b": None}) == ["b"]
    assert difference({"a": b"1"}, {"a": b"2", "c": b""}) == ["a", "c"]


def test_what_did_not_hold_is_said_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row: dict[str, Any] = {"kills": 1, "runs": 1, "calls": 9, "twice": 5, "beyond": 0, "differs": [], "refused": []}
    clock = {"jump": "to 1970", "command": "evaluate", "twice": 0, "differs": []}
    found = {"kills": {"evaluate": row}, "clock": [clock]}
    monkeypatch.setattr(endurance, "CommandRunner", nullcontext)
    monkeypatch.setattr(endurance, "run", lambda _, part, *__, **___: {part: found[part]} if part in found else {})
    assert endurance.main(["-o", str(tmp_path / "e.json")]) == 0
    assert "nothing lost" in capsys.readouterr().out
    row["beyond"] = 2
    clock["differs"] = ["verdicts.jsonl"]
    assert endurance.main(["-o", str(tmp_path / "e.json")]) == 1
    assert len(json.loads((tmp_path / "e.json").read_text())["did_not_hold"]) == 2
    assert "evaluate, killed: 2 twice" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        endurance.main(["--kills", "0"])
    assert ended.value.code == 2


def test_there_are_twenty_kinds_of_faults() -> None:
    assert len(FAULTS) >= 20
