"""``evaluate --by-rater``: the judge beside each rater, and each rater beside the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.raters.agreement_view import PERFECT
from askance.prompts.checklist import Checklist, Question, dump_checklist
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
CHECKLIST = Checklist(questions=(Question(id="good", text="Is it good?"),))
NOISE = {"anna": 0.5, "ben": 2.5, "cem": 2.5}
"""The judge sees the truth: it is nearest to the rater with the least noise."""


def rated(n: int = 80) -> list[dict[str, Any]]:
    return [
        {
            "id": f"e{k}",
            "input": "i",
            "output": f"out {k}",
            "raters": {
                name: {"human": {"overall": round(min(9, max(0, k % 10 + noise * (2 * share(name, k) - 1) * 2)))}}
                for name, noise in NOISE.items()
            },
        }
        for k in range(n)
    ]


def judge() -> ScriptedModel:
    return ScriptedModel(
        lambda request: 0.05 + 0.1 * (int(request.messages[-1][1].split("out ")[1].split()[0]) % 10), name="world/judge"
    )


def judged(rows: list[dict[str, Any]], **options: Any) -> askance.Evaluation:
    return askance.evaluate(rows, checklist=CHECKLIST, model=judge(), resamples=300, by_rater=True, **options)


def test_the_judge_is_nearer_to_the_rater_with_less_noise() -> None:
    found = judged(rated())
    row = found.to_dict()["by_rater"]["overall"]
    assert [each["rater"] for each in row["raters"]] == list(NOISE)
    assert all(each["difference"]["low"] > 0 for each in row["raters"])  # it sees more than another rater does
    apart = {tuple(each["raters"]): each for each in row["pairs"]}
    assert apart["anna", "ben"]["value"] > 0 and apart["anna", "ben"]["p_holm"] <= 0.05
    assert apart["ben", "cem"]["p_holm"] > 0.05
    told = "\n".join(found.view().lines)
    assert "with anna more than with ben" in told and "ben more than with cem" not in told
    assert [each["rater"] for each in found.view().tables["by_rater"]()] == list(NOISE)


def test_the_difference_is_the_judges_less_the_others_on_the_same_outputs() -> None:
    rows = rated()
    for row in rows[40:]:
        del row["raters"]["cem"]
    for each in judged(rows).to_dict()["by_rater"]["overall"]["raters"]:
        assert each["difference"]["value"] == pytest.approx(each["judge"]["value"] - each["others"]["value"])
        assert each["judge"]["n"] == (40 if each["rater"] == "cem" else 80)


def test_a_scale_on_which_lower_is_better_is_turned_round() -> None:
    rows = rated()
    for row in rows:
        row["raters"] = {
            name: {"human": {"overall": 9 - each["human"]["overall"]}} for name, each in row["raters"].items()
        }
    straight = judged(rated()).to_dict()["by_rater"]["overall"]["raters"]
    turned = judged(rows, human_scale=(9, 0)).to_dict()["by_rater"]["overall"]["raters"]
    assert [each["judge"]["value"] for each in turned] == pytest.approx([each["judge"]["value"] for each in straight])


def test_raters_without_outputs_in_common_have_no_figure_and_the_reason() -> None:
    rows = rated()
    for k, row in enumerate(rows):
        row["raters"] = {name: row["raters"][name] for name in (("anna",) if k % 2 else ("ben",))}
    row = judged(rows).to_dict()["by_rater"]["overall"]
    assert not row["pairs"] and all("the same outputs" in each["judge"]["reason"] for each in row["raters"])


def test_one_person_is_refused_before_a_call() -> None:
    model = judge()
    rows = [{"id": f"e{k}", "input": "i", "output": f"out {k}", "human": {"overall": k % 3}} for k in range(9)]
    with pytest.raises(InputError, match=naming("by_rater", "two people", "overall")):
        askance.evaluate(rows, checklist=CHECKLIST, model=model, by_rater=True)
    assert not model.requests


def test_a_saved_result_has_its_page(tmp_path: Path, cli: Any) -> None:
    file = tmp_path / "found.json"
    file.write_text(json.dumps(judged(rated()).to_dict()))
    Path("checklist.yaml").write_text(dump_checklist(CHECKLIST))
    assert cli("report", file, "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text().casefold()
    assert "another rater" in page and PERFECT in page
