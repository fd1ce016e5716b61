"""Dimension drift: a free-form judge's aspects are named and counted; fixed questions cannot drift."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from askance.evaluation.compare.compare import compare, prepare
from askance.evaluation.compare.comparison import Comparison, comparison_view
from askance.evaluation.compare.statistics import ROLE
from askance.models.base import Answer, Request
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.testing import Reply, ScriptedModel
from tests.said import naming, says

ASPECTS = ["facts", "tone", "length"]
KEPT = [ASPECTS, ["facts", "tone"], ["length"], []]
"""By example: 3, 2, 1 and 0 of 3 aspects are looked at again."""
CHECKLIST = Checklist(task="Summarise", questions=(Question(id="a", text="Is it right?", dimension="quality"),))


def rows() -> list[dict[str, Any]]:
    return [{"id": f"e{n}", "input": f"In {n}.", "output": f"<{n}>", "human": {"quality": n}} for n in range(4)]


def world(request: Request) -> Reply:
    text = "\n".join(message for _, message in request.messages)
    number = int(re.findall(r"<(\d)>", text)[0])
    if request.parameters.schema is not None:
        if "Asked again" in text:
            assert "Again <" in text
            return json.dumps({"kept": KEPT[number]})
        assert "First <" in text
        return json.dumps({"aspects": ASPECTS})
    if "Score: " in text:
        said = "Again" if request.replicate else "First"
        return Answer(f"{said} <{number}>: facts, tone and length.\nScore: {1 + number}", None, 100, 20)
    if "number from" in text:
        return Answer(str(1 + number), None, 100, 1)
    return 0.1 + 0.2 * number


def run(script: Any = world, **more: Any) -> tuple[Comparison, ScriptedModel]:
    model = ScriptedModel(script, slots=1)
    given: dict[str, Any] = {"judges": ["binary", "cot", "direct"], "checklist": CHECKLIST, "repeat": 2, "em_dim": True}
    return compare(rows(), model=model, resamples=200, no_cache=True, **(given | more)), model


def test_em_dim_is_the_mean_share_of_aspects_kept_as_counted_by_hand() -> None:
    found, _ = run()
    drift = {row.name: row.dimensions["quality"].em_dim for row in found.rows}
    cot, binary, direct = drift["cot"], drift["binary"], drift["direct"]
    assert cot is not None and binary is not None and direct is not None
    assert cot.value == pytest.approx((3 / 3 + 2 / 3 + 1 / 3 + 0 / 3) / 4)
    assert cot.n == 4
    assert (binary.value, binary.low, binary.high) == (1, 1, 1), "its questions are fixed"
    assert "1 by construction" in comparison_view(found.to_dict()).captions["dimensions"]
    assert direct.value is None and says(direct.reason, "a number", "looks at")
    judged = {row["judge"]: row for row in found.to_dict()["judges"]}
    assert judged["cot"]["dimensions"]["quality"]["em_dim"]["value"] == pytest.approx(0.5)


def test_naming_aspects_is_no_part_of_the_judge_s_cost() -> None:
    with_drift, model = run()
    without, plain = run(em_dim=False)
    assert len(model.requests) == len(plain.requests) + 2 * 4
    assert [row.costs for row in with_drift.rows] == [row.costs for row in without.rows]
    assert all(row.dimensions["quality"].em_dim is None for row in without.rows)
    assert "em_dim" not in without.to_dict()["judges"][0]["dimensions"]["quality"]


def test_an_example_whose_aspects_cannot_be_had_is_left_out_and_not_counted_as_drift() -> None:
    def strange(request: Request) -> Reply:
        last = request.messages[0][1]
        if request.parameters.schema is not None and "Asked again" in last and "<3>" in last:
            return json.dumps({"kept": ["colour"]})
        return world(request)

    found, _ = run(strange)
    drift = found.rows[1].dimensions["quality"].em_dim
    assert drift is not None
    assert (drift.value, drift.n) == (pytest.approx((1 + 2 / 3 + 1 / 3) / 3), 3)


def test_it_is_foretold_and_needs_a_second_judging() -> None:
    model = ScriptedModel(world)
    given: list[Any] = [rows(), model, ["binary", "cot"], CHECKLIST, None, None, None, (), ()]
    assert prepare(*given, {"no_cache": True, "repeat": 2, "em_dim": True}).estimate()[ROLE].calls == 8
    with pytest.raises(InputError, match=naming("second judging")):
        prepare(*given, {"no_cache": True, "em_dim": True})
    assert model.requests == []
