"""Agreement of people before any judge is asked: in ``diagnose --raters``, in ``evaluate`` and in ``compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.evaluation.raters.agreement_view import BETWEEN, PERFECT
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming
from tests.worlds import share

pytestmark = pytest.mark.usefixtures("sandbox")
DATA = Path(askance.__file__).resolve().parents[1] / "shared" / "data"


def rated(n: int = 40, severe: str = "cem") -> list[dict[str, Any]]:
    """Outputs with a true step from 1 to 5; three raters are off by one now and then, one rates a step lower."""
    rows = []
    for k in range(n):
        truth = 1 + k % 5
        raters = {}
        for name in ("anna", "ben", "cem"):
            off = round(2.4 * share(name, k) - 1.2) - (name == severe)
            raters[name] = {"human": {"overall": min(5, max(1, truth + off))}}
        rows.append({"id": f"e{k}", "input": f"in {k}", "output": f"out {k}", "raters": raters})
    return rows


def judge() -> ScriptedModel:
    def said(request: Any) -> float:
        return 0.1 + 0.2 * (int(request.messages[-1][1].split("out ")[1].split()[0]) % 5)

    return ScriptedModel(said, name="world/judge")


CHECKLIST = Checklist(questions=(Question(id="good", text="Is it good?"),))


def test_the_agreement_has_every_figure_of_every_rater() -> None:
    found = askance.rater_agreement(rated(), resamples=200).to_dict()
    row = found["rater_agreement"]["overall"]
    assert (row["outputs"], row["raters_per_output"], row["kind"]) == (40, 3, "steps")
    assert list(row["alpha"]) == ["nominal", "ordinal", "interval"]
    assert row["alpha"]["ordinal"]["low"] < row["alpha"]["ordinal"]["value"] < row["alpha"]["ordinal"]["high"]
    lenient = {each["rater"]: each["leniency"]["high"] for each in row["raters"]}
    assert list(lenient) == ["anna", "ben", "cem"]
    assert lenient["cem"] < 0 < min(lenient["anna"], lenient["ben"])
    assert [each["raters"] for each in row["pairs"]] == [["anna", "ben"], ["anna", "cem"], ["ben", "cem"]]
    assert row["one_rater"]["value"] < row["ceiling"]["value"] < 1


def test_contradictions_name_the_comment_that_stands_against_a_label() -> None:
    rows = rated()
    for row in rows:
        row["raters"] = {name: {"human": {"overall": "pass"}} for name in ("anna", "ben")}
    rows[3]["raters"]["ben"] = {"human": {"overall": "fail"}, "comment": "Curt."}
    rows[3]["comment"] = "From nobody."
    rows[4]["raters"]["ben"] = {"human": {"overall": "pass"}, "comment": "Fine."}
    row = askance.rater_agreement(rows, resamples=100).to_dict()["rater_agreement"]["overall"]
    assert row["kind"] == "labels" and list(row["alpha"]) == ["nominal"]
    [case] = row["contradictions"]
    assert (case["example"], case["ratings"], case["apart"]) == ("e3", {"anna": True, "ben": False}, 1)
    assert case["comments"] == [
        {"rater": "ben", "text": "Curt.", "against": ["anna"]},
        {"rater": None, "text": "From nobody.", "against": []},
    ]


def test_several_dimensions_have_their_mean_beside_them() -> None:
    rows = rated()
    for row in rows:
        for each in row["raters"].values():
            each["human"]["tone"] = 6 - each["human"]["overall"]
    found = askance.rater_agreement(rows, resamples=100).dimensions
    assert list(found) == ["overall", "tone", "all dimensions"]
    assert found["tone"].one_rater.value == pytest.approx(found["overall"].one_rater.value)
    # each rater's mean of the two is the same for every output
    assert found["all dimensions"].one_rater.value is None


def test_one_person_has_no_agreement() -> None:
    rows = [{"id": f"e{k}", "input": "i", "output": f"o{k}", "human": {"overall": k % 2}} for k in range(9)]
    with pytest.raises(InputError, match=naming("two people", "raters")):
        askance.rater_agreement(rows)


def test_the_command_needs_no_model_and_refuses_what_is_about_judges(tmp_path: Path, cli: Any) -> None:
    file = tmp_path / "rated.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rated()))
    said = cli("diagnose", str(file), "--raters")
    assert said.code == 0
    assert PERFECT in said.out and "cem" in said.out
    told = json.loads(cli("diagnose", str(file), "--raters", "--json").out)
    assert told["rater_agreement"]["overall"]["outputs"] == 40
    refused = cli("diagnose", str(file), "--raters", "--model", "local/x")
    assert refused.code == 2 and "leave out --model" in refused.err


def test_a_table_of_columns_is_read(tmp_path: Path, cli: Any) -> None:
    file = tmp_path / "rated.csv"
    lines = [f"{k},i,o{k},{1 + k % 5},{1 + (k + k // 5 % 2) % 5}" for k in range(30)]
    file.write_text("id,input,output,anna,ben\n" + "\n".join(lines))
    said = cli("diagnose", str(file), "--raters", "--field", "human.overall=anna,ben", "--json")
    row = json.loads(said.out)["rater_agreement"]["overall"]
    assert [each["rater"] for each in row["raters"]] == ["anna", "ben"]


def test_evaluate_says_what_people_reach_beside_the_judge() -> None:
    found = askance.evaluate(rated(), checklist=CHECKLIST, model=judge(), resamples=200)
    data = found.to_dict()
    row = data["rater_agreement"]["overall"]
    [shown] = found.view().tables["agreement"]()
    assert shown[BETWEEN].value == row["one_rater"]["value"]
    assert shown[PERFECT].value == row["ceiling"]["value"]
    assert any(PERFECT in line and "Spearman with people, overall" in line for line in found.view().lines)
    single = [{**row, "raters": {"anna": row["raters"]["anna"]}} for row in rated()]
    alone = askance.evaluate(single, checklist=CHECKLIST, model=judge(), resamples=200)
    assert "rater_agreement" not in alone.to_dict()
    assert BETWEEN not in alone.view().tables["agreement"]()[0]


def test_compare_has_people_and_the_ceiling_beside_the_judges() -> None:
    found = askance.compare(rated(), model=judge(), judges="binary", checklist=CHECKLIST, resamples=200)
    names = [row["judge"] for row in found.view().tables["agreement"]()]
    assert (names[0], len(names), names[-1]) == ("binary", 4, PERFECT)
    assert found.to_dict()["rater_agreement"]["overall"]["outputs"] == 40


@pytest.mark.parametrize(
    ("name", "field", "r", "most"),
    [
        ("feedbackqa_uk", {}, 0.470, 0.800),
        ("summeval_6systems", {"human": "human_experts"}, 0.658, 0.923),
    ],
)
def test_real_raters_agree_so_far(name: str, field: dict[str, str], r: float, most: float) -> None:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip("the real data are not beside this checkout")
    row = [*askance.rater_agreement(path, field=field, resamples=100).dimensions.values()][-1]
    assert row.one_rater.value == pytest.approx(r, abs=5e-4)
    assert row.ceiling.value == pytest.approx(most, abs=5e-4)
