"""A comparison in a notebook."""

from __future__ import annotations

import re
from typing import Any

import pytest

import askance
from askance.models.base import Request
from askance.prompts.checklist import Checklist, Question
from askance.testing import Reply, ScriptedModel

pytestmark = pytest.mark.usefixtures("sandbox")


def judge(request: Request) -> Reply:
    """Ranks by the number in the output."""
    text = request.messages[0][1] + request.messages[-1][1]
    good = int(re.findall(r"<(\d+)>", text)[0]) % 5
    return str(1 + good) if "number from" in text else 0.1 + 0.2 * good


def test_a_comparison_shows_itself() -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"e{n}", "input": f"In {n}.", "output": f"<{n}>", "human": {"quality": 1 + n % 5}} for n in range(20)
    ]
    checklist = Checklist(task="Do.", questions=[Question(id="a", text="Is it <b>right</b>?", dimension="quality")])
    found = askance.compare(
        rows, model=ScriptedModel(judge), judges=["binary", "direct"], checklist=checklist, no_cache=True, resamples=200
    )
    said = "Comparison: 2 judges on 20 examples by scripted/model\n  compared on 20 examples that every judge scored"
    assert str(found) == said
    assert repr(found) == f"{said}; Spearman with people: binary 1.000, direct 1.000"
    html = found._repr_html_()
    assert "direct" in html and "quality" in html and "nan" not in html.lower()
    pytest.importorskip("pandas", reason="needs the extra: pip install 'askance[notebook]'")
    judges = found.to_pandas()
    assert list(judges["judge"]) == ["binary", "direct"] and judges["spearman"][0] == pytest.approx(1)
    assert len(found.to_pandas("ratings")) == 40 and len(found.to_pandas("differences")) == 1
    assert set(found.to_pandas("dimensions")["dimension"]) == {"quality"}
