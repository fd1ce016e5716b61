"""The report of a scorer: what its headline says, and that every figure of train.json is on the page."""

from __future__ import annotations

import copy
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from askance.commands.report import command
from askance.report.any_result import write_report_of

from ..said import says

HOSTILE = "</script><img src=x onerror=alert(1)>"


def measured(spearman: float | None, low: float, high: float) -> dict[str, Any]:
    row = {"spearman": spearman, "low": low, "high": high, "n": 30, "kendall": spearman, "pearson": spearman}
    return row | {"dimensions": {HOSTILE: dict(row)}}


def losses(epoch: int, loss: float) -> dict[str, float]:
    return {"epoch": epoch, "loss": loss, "cross_entropy": loss / 4, "squared_error": loss / 2, "preference": loss / 4}


def record(**changes: Any) -> dict[str, Any]:
    bins = [{"bin": each, "n": 6, "said": each / 10 + 0.05, "wanted": 0.4 + each / 50} for each in range(1, 9)]
    fit = {"brier": 0.1, "calibration_error": 0.123, "bins": bins}
    part = {"training": 210, "validation": 45, "test": 45}
    never = {"verdicts": None, "reason": "--teacher-price says what a verdict of the teacher takes"}
    made: dict[str, Any] = {
        "schema": "askance.train/1",
        "scorer": f"shop/{HOSTILE}",
        "base": "minilm",
        "options": {"epochs": 3, "longest": 128, "api_base": "http://anna:secret@host/v1"},
        "mixture": {
            "rows": [{"source": "verdicts", "kind": "verdict", "about": HOSTILE, **part}],
            "units": part,
            "documents": 100,
            "duplicates": 3,
            "without_answer": 2,
            "remarks": [],
        },
        "cut": {"share": 0.25, "longest": 700},
        "remarks": ["25.0% of the texts are longer than the 128 tokens that the scorer reads"],
        "curve": {
            "training": [{"step": n + 1, **losses(1 + n // 40, 3.0 - n / 60)} for n in range(120)],
            "validation": [losses(epoch, loss) for epoch, loss in enumerate((3.1, 2.2, 1.6, 1.7))],
            "best_epoch": 2,
            "stopped_early": False,
        },
        "test": {
            "people": {
                "scorer": measured(0.5, 0.3, 0.7),
                "teacher": measured(0.6, 0.4, 0.8),
                "base": measured(0.1, -0.2, 0.3),
            },
            "beyond": {
                "teacher": {"value": -0.1, "low": -0.2, "high": 0.05, "n": 30, "p_value": 0.4},
                "base": {"value": 0.4, "low": 0.1, "high": 0.6, "n": 30, "p_value": 0.01},
            },
            "teacher": measured(0.8, 0.7, 0.9) | {"questions": {}},
            "base": measured(0.0, -0.2, 0.2),
        },
        "calibration": {
            "n": 48,
            "slope": 1.3,
            "shift": -0.2,
            "before": fit | {"calibration_error": 0.234},
            "after": fit,
        },
        "speed": {"cpu_ms": 21.5, "cpu_ms_alone": 33.25, "n": 128, "mean_tokens": 88.0},
        "price": {
            "training_cpu_seconds": 1234.0,
            "training_usd": 0.5,
            "verdict_usd": 0.0,
            "break_even_money": never,
            "break_even_time": {"verdicts": 4321},
        },
    }
    return made | changes


def page(tmp_path: Path, data: dict[str, Any]) -> str:
    folder = tmp_path / "scorer"
    folder.mkdir(exist_ok=True)
    (folder / "train.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "scorer.json").write_text('{"schema": "askance.scorer/1"}', encoding="utf-8")
    return write_report_of(folder).read_text(encoding="utf-8")


def heading(html: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    assert found
    return unescape(found[1]).replace("\u00a0", " ")


def test_the_folder_of_a_scorer_has_a_page_with_every_figure(tmp_path: Path) -> None:
    html = page(tmp_path, record())
    assert says(heading(html), "keeps 83 %", "its teacher's agreement")
    for text in (
        "0.123",
        "0.234",
        "21.5",
        "33.2",
        "1,234",
        "4,321",
        "25.0 % of the texts",
        "the longest has 700",
        "88 tokens",
    ):
        assert text in html
    for name in ("test", "calibration", "losses", "mixture", "price", "settings"):
        assert f'<section id="{name}"' in html
    assert html.count('class="plot course"') == 2
    assert "--teacher-price says" in html
    assert HOSTILE not in html and "secret" not in html
    assert len(re.findall(r'<line class="rejected joined"', html)) >= 59  # 120 steps, two to a place, and the bins


def test_what_is_not_shown_is_not_said(tmp_path: Path) -> None:
    def said(**people: Any) -> str:
        data = copy.deepcopy(record())
        data["test"]["people"] |= people
        return heading(page(tmp_path, data))

    assert says(said(scorer=measured(0.2, -0.1, 0.5)), "not shown", "people")
    assert says(said(scorer=measured(None, 0.0, 0.0)), "not shown", "people")
    assert says(said(teacher=measured(0.2, -0.1, 0.5)), "The scorer agrees", "people")


def test_a_training_that_gained_nothing_or_had_no_people_or_no_verdicts(tmp_path: Path) -> None:
    curve = record()["curve"] | {"best_epoch": 0, "stopped_early": True}
    assert says(heading(page(tmp_path, record(curve=curve))), "gained nothing", "validation")
    alone = {"teacher": record()["test"]["teacher"], "base": record()["test"]["base"]}
    assert says(heading(page(tmp_path, record(test=alone))), "The scorer agrees", "its teacher")
    without = page(
        tmp_path, record(test={}, calibration={"n": 0, "reason": "test has no verdict", "slope": 1, "shift": 0})
    )
    assert says(heading(without), "Trained", "neither people's scores", "nor a teacher's")
    assert "has no verdict" in without and without.count('class="plot course"') == 1


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    broken = record()
    del broken["speed"]
    page(tmp_path, record())
    (tmp_path / "scorer/train.json").write_text(json.dumps(broken), encoding="utf-8")
    result = CliRunner().invoke(command, [str(tmp_path / "scorer")])
    assert result.exit_code != 0 and says(result.exception, "whole scorer", "speed")


@pytest.mark.parametrize("steps", [1, 7, 61, 500])
def test_a_curve_of_any_length_is_drawn(tmp_path: Path, steps: int) -> None:
    curve = record()["curve"] | {
        "training": [{"step": n + 1, **losses(1, 2.0)} for n in range(steps)],
        "validation": [losses(0, 3.0), losses(1, 2.0)],
        "best_epoch": 1,
    }
    html = page(tmp_path, record(curve=curve))
    assert "validation after epoch 1: 2.000" in html


UNREADABLE = """[...document.querySelectorAll("svg.course")].flatMap((drawing) => {
  const labels = [...drawing.querySelectorAll("text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
  const edge = drawing.closest(".scroll").getBoundingClientRect().left;
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return labels.filter(([, a], at) => a.left < edge || labels.slice(at + 1).some(([, b]) => touch(a, b)));
}).map(([text]) => text)"""
"""The labels of drawings that are cut off on the left, where nobody can scroll to, or that lie on others."""


async def test_on_a_narrow_screen_every_label_of_a_drawing_can_be_read(tmp_path: Path, port: int, browser: Any) -> None:
    curve = record()["curve"]
    curve["validation"] = [losses(epoch, loss) for epoch, loss in enumerate((12.9, 8.1, 6.5, 6.1))]
    page(tmp_path, record(curve=curve))
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
        await tab.open((tmp_path / "scorer" / "train.html").as_uri())
        assert await tab.run("document.querySelectorAll('svg.course text').length") > 20
        assert await tab.run(UNREADABLE) == []
        assert await tab.run("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 930])
async def test_the_numbers_under_an_interval_of_the_first_screen_do_not_lie_on_each_other(
    tmp_path: Path, port: int, browser: Any, width: int
) -> None:
    data = record()
    data["test"]["people"]["teacher"] = measured(0.19, -0.09, 0.44)
    page(tmp_path, data)
    axes = "[...document.querySelectorAll('.tile .axis')].map((axis) => [...axis.querySelectorAll('text')])"
    places = f"{axes}.map((all) => all.map((each) => each.getBoundingClientRect()).filter((each) => each.width))"
    async with browser(port) as tab:
        await tab.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        await tab.open((tmp_path / "scorer" / "train.html").as_uri())
        assert await tab.run(f"{places}.length") == 2
        assert await tab.run(f"{places}.every((all) => all.every((each, at) => !at || all[at - 1].right <= each.left))")
