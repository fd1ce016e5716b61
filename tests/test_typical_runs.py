"""What --dry-run says that a run typically takes, against the runs that were measured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents.buying import Estimate
from askance.experiments.command_line import RESULTS
from askance.optimizer.modes import align
from askance.run_estimate import (
    EACH,
    JUDGE_EDITS,
    MOVED,
    PRICE_CLASSES,
    TOGETHER,
    UNCOMMENTED,
    WRITER_EDITS,
    TypicalRun,
    together,
    typical_lines,
    typical_runs,
)
from tests.said import says

ONE_CALL = {"workshop": 91, "release_notes": 108.4, "front_desk": 103, "news_summaries": 158.5, "guest_reviews": 131}
"""Tokens of one starting call, as --dry-run estimates them for each of the made-up data sets."""


def measured(arm: str) -> list[tuple[float, float]]:
    """Calls and tokens an output of the measured runs with default settings; tokens in those of one starting call."""
    found = {}
    for file in sorted(RESULTS.glob("learned_questions*.json")):
        for run in json.loads(file.read_text(encoding="utf-8"))["runs"]:
            if run.get("settings") == {} and run["arm"] == arm:
                calls, tokens = run["calls"] / run["outputs"], run["tokens"] / run["outputs"]
                key = (run["data"], run["seed"], run["outputs"], run["calls"])
                found[key] = (calls, tokens / ONE_CALL.get(run["data"], 300))
    return list(found.values())


def share_within(runs: list[tuple[float, float]], said: TypicalRun) -> float:
    calls, tokens = said.calls, said.tokens
    return sum(calls[0] <= run[0] <= calls[1] and tokens[0] <= run[1] <= tokens[1] for run in runs) / len(runs)


def test_most_measured_runs_lie_within_what_is_said() -> None:
    with_comments, without = measured("with"), measured("without")
    assert len(with_comments) > 40 and len(without) == 12
    inside = share_within(with_comments, EACH)
    assert 0.7 < inside < 1
    assert f"{round(inside * len(with_comments))} of {len(with_comments)} " in EACH.basis
    assert share_within(without, UNCOMMENTED) == 1


def test_measured_runs_of_edits_lie_within_what_is_said() -> None:
    first, low, high = 240, *JUDGE_EDITS.calls
    for name in ("align_qags", "align_summeval"):
        for run in json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["runs"]:
            assert low <= run["result"]["calls"] / first <= high
    assert low <= json.loads((RESULTS / "qags_migrate.json").read_text(encoding="utf-8"))["calls"] / first <= high
    low, high = WRITER_EDITS.calls
    for run in json.loads((RESULTS / "tune_ifbench.json").read_text(encoding="utf-8"))["runs"]:
        assert low <= run["result"]["calls"] / 70 <= high
    assert MOVED.calls[0] <= 263 / 114 <= 278 / 114 <= MOVED.calls[1]


def job(world: Any, comment: str | None = None, **options: Any) -> Any:
    given = {"embedder": "words", "resamples": 200} | options
    rows = [each | ({} if comment is None else {"comment": comment}) for each in world.rows]
    return align.prepare(rows, world.checklist, world.model("world/target"), world.prompt, given)


WHOLE = Estimate(verdicts=80, calls=60, stored=20, tokens=6000)


def test_a_typical_run_is_scaled_to_the_examples_and_to_their_length(world: Any) -> None:
    [found] = typical_runs(job(world, update="edits"), WHOLE)
    assert found == JUDGE_EDITS.times(80, 8000)
    [without] = typical_runs(job(world, update="questions", mode="each"), WHOLE)
    assert without.calls == (len(world.rows) * UNCOMMENTED.calls[0], len(world.rows) * UNCOMMENTED.calls[1])
    longer = Estimate(verdicts=80, calls=60, stored=20, tokens=12000)
    [twice] = typical_runs(job(world, update="questions", mode="each"), longer)
    assert twice.tokens == (2 * without.tokens[0], 2 * without.tokens[1]) and twice.calls == without.calls


@pytest.mark.parametrize(("mode", "ways"), [("auto", [EACH, TOGETHER]), ("each", [EACH]), ("batched", [TOGETHER])])
def test_each_way_to_ask_has_its_own_figures_where_comments_teach(mode: str, ways: list[Any], world: Any) -> None:
    found = typical_runs(job(world, "Nothing is right.", update="questions", mode=mode), WHOLE)
    assert [each.basis for each in found] == [each.basis for each in ways]


@pytest.mark.parametrize("options", [{"calibrate": True}, {"paper": True}])
def test_nothing_is_said_where_nothing_was_measured(options: dict[str, Any], world: Any) -> None:
    made = align.prepare(world.rows, world.checklist, world.model("world/target"), world.prompt, options)
    assert typical_runs(made, WHOLE) == () and typical_lines(()) == []


def test_dollars_follow_what_is_sent_and_what_is_written() -> None:
    run = TypicalRun((10, 20), (1_000_000, 2_000_000), 0.25, "two runs")
    small = PRICE_CLASSES[0]
    assert run.dollars(small) == pytest.approx((0.75 * 0.15 + 0.25 * 0.60, 2 * (0.75 * 0.15 + 0.25 * 0.60)))
    first, *_ = typical_lines([run])
    for price in PRICE_CLASSES:
        assert says(first, f"${price.sent:g} in", f"${price.written:g} out")
    assert says(first, "10", "1,000,000", "two runs", "$0.26")


def test_runs_of_one_kind_are_added_and_others_stay_beside_them() -> None:
    edits, moved = JUDGE_EDITS.times(100, 1000), MOVED.times(100, 1000)
    twice, other = together([edits], [edits, moved])
    assert twice.calls == (2 * edits.calls[0], 2 * edits.calls[1]) and other == moved


def test_the_command_says_what_is_typical_before_the_most(cli: Any, inputs: list[str]) -> None:
    said = cli("migrate", *inputs, "--dry-run").out.splitlines()
    typical = next(place for place, line in enumerate(said) if JUDGE_EDITS.basis in line)
    assert typical < next(place for place, line in enumerate(said) if "--call-budget" in line)
    given = json.loads(cli("migrate", *inputs, "--dry-run", "--json").out)
    [found] = given["typical"]
    assert given["calls"] < found["calls"][0] <= found["calls"][1] < given["calls_at_most"]
    assert given["prices_usd"]["large"] == {"sent": 3, "written": 15} and given["prices_usd"]["as_of"]
    assert set(found["cost_usd"]) == {"small", "middle", "large"}
