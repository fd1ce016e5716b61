"""The papers' tables run from end to end, and the statistics give the published figures of the published scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.datasets import load_rated
from askance.experiments.reproduce import bineval, eig
from askance.experiments.reproduce.common import CHECKLISTS, DIMENSIONS, parser, published_scores, run
from askance.models.base import Request
from askance.prompts.checklist import load_checklist
from askance.prompts.errors import CoverageError
from askance.testing import Reply, ScriptedModel

from ...said import naming, says

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def obliging(request: Request) -> Reply:
    text = request.messages[-1][1]
    if request.parameters.schema is not None:
        new = {"questions": []} if "questions" in request.parameters.schema["properties"] else {"steps": ["Read."]}
        return json.dumps(new)
    number = 1 + (len(text) + (request.parameters.seed or 0)) % 5
    return f"So.\nScore: {number}" if "Score: " in text else str(number) if "number from" in text else number / 6


def summaries(documents: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"d{document}/{system}",
            "input": f"Article {document}.",
            "output": "Summary" + "." * ((document * 3 + number) % 7),
            "system": system,
            "document": f"d{document}",
            "human": dict.fromkeys(DIMENSIONS["summeval"], 1 + (document + number) % 5),
        }
        for document in range(documents)
        for number, system in enumerate(("M0", "M1", "M2"))
    ]


@pytest.mark.parametrize("dataset", DIMENSIONS)
def test_the_checklists_ask_about_every_dimension_of_the_table(dataset: str) -> None:
    assert load_checklist(CHECKLISTS / f"{dataset}.yaml").dimensions == list(DIMENSIONS[dataset])


def test_a_table_of_bineval_is_written_as_json_with_the_papers_figures(tmp_path: Path) -> None:
    data, out = tmp_path / "s.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in summaries(12)))
    given = parser("", "binary,unieval", temperature=0, repeat=1).parse_args(
        ["summeval", "--data", str(data), "--part", "test", "--resamples", "100", "-o", str(out)]
    )
    run(given, bineval.PAPER["summeval"], model=ScriptedModel(obliging, slots=1), no_cache=True)
    found = json.loads(out.read_text())
    assert found["examples"] == 6, "12 of each system, 10 of which are for development"
    assert [row["judge"] for row in found["judges"]] == ["binary", "unieval"]
    assert found["dimensions"] == list(DIMENSIONS["summeval"])
    assert found["paper"] == bineval.PAPER["summeval"]
    assert found["published_unieval"] == {}


def test_the_table_of_the_eig_paper_has_every_judge_judge_twice(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    data = tmp_path / "s.jsonl"
    rows = [row | {"human": {"consistency": n / 8}} for n, row in enumerate(summaries(3))]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = parser("", eig.JUDGES, temperature=1.0, repeat=2).parse_args(
        ["qags", "--data", str(data), "--resamples", "100"]
    )
    run(given, eig.PAPER, model=ScriptedModel(obliging, slots=1), no_cache=True)
    found = json.loads(capsys.readouterr().out)
    assert found["repeat"] == 2
    assert found["temperature"] == 1.0
    assert len(found["judges"]) == len(eig.JUDGES.split(","))
    assert all("kappa_self" in row["dimensions"]["consistency"] for row in found["judges"])


def test_where_no_judge_has_a_score_the_result_is_written_all_the_same(tmp_path: Path) -> None:
    data, out = tmp_path / "s.jsonl", tmp_path / "out.json"
    rows = [row | {"human": {"consistency": n / 8}} for n, row in enumerate(summaries(1))]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = parser("", "direct", temperature=0, repeat=1).parse_args(
        ["qags", "--data", str(data), "--resamples", "100", "-o", str(out)]
    )
    with pytest.raises(CoverageError, match=naming("nothing to compare")):
        run(given, {}, model=ScriptedModel(lambda _: "I cannot say."), no_cache=True)
    assert json.loads(out.read_text())["judges"][0]["coverage"]["parse_errors"] == 3


def test_the_published_scores_give_the_published_correlations() -> None:
    if not (DATA / "qags_cnndm.jsonl").is_file():
        pytest.skip("the data is not here")
    qags = published_scores(load_rated("qags", DATA / "qags_cnndm.jsonl"), ["consistency"])["consistency"]
    assert [round(qags[name]["value"], 3) for name in ("pearson", "spearman", "kendall")] == [0.682, 0.662, 0.532]
    chat = published_scores(load_rated("topical_chat", DATA / "topical_chat.jsonl"), DIMENSIONS["topical_chat"])
    found = {
        name: (round(each["pearson"]["value"], 3), round(each["spearman"]["value"], 3)) for name, each in chat.items()
    }
    assert found == {
        "naturalness": (0.444, 0.514),
        "coherence": (0.595, 0.613),
        "engagingness": (0.557, 0.605),
        "groundedness": (0.536, 0.575),
    }


@pytest.mark.usefixtures("sandbox")
def test_the_judge_binary_is_also_shown_question_by_question_from_the_answers_kept(tmp_path: Path) -> None:
    data = tmp_path / "s.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in summaries(2)))
    given = parser("", "binary", temperature=0, repeat=1).parse_args(
        ["summeval", "--data", str(data), "--resamples", "100", "-o", str(tmp_path / "out.json")]
    )
    model = ScriptedModel(obliging, slots=1)
    found = run(given, bineval.PAPER["summeval"], model=model)
    assert len(model.requests) == 6 * 16, "each question once"
    assert list(found["phi"]) == list(DIMENSIONS["summeval"])
    assert all(len(each["values"]) == 4 for each in found["phi"].values())
    assert found["systems"]["d0/M1"] == "M1" and found["documents"]["d0/M1"] == "d0"


def test_without_a_model_peoples_and_published_scores_are_written(tmp_path: Path) -> None:
    rows = [row | {"unieval": {"coherence": 0.5, "fluency": 0.1 * n}} for n, row in enumerate(summaries(3))]
    data, out = tmp_path / "s.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert bineval.main(["summeval", "--data", str(data), "--no-model", "-o", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["ratings"] == {} and len(found["human"]) == 9
    assert found["published"]["UniEval (T5)"]["d0/M2"] == {"coherence": 0.5, "fluency": 0.2}
    assert found["published_unieval"]["coherence"]["spearman"]["value"] is None


def test_bad_data_end_in_a_sentence_and_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert eig.main(["qags", "--data", str(tmp_path / "none.jsonl")]) == 2
    assert says(capsys.readouterr().err, "no such file")


def test_bineval_is_the_mean_of_both_runs_and_not_the_first(tmp_path: Path) -> None:
    data, out = tmp_path / "s.jsonl", tmp_path / "out.json"
    data.write_text("".join(json.dumps(row) + "\n" for row in summaries(6)))
    given = parser("", "binary", temperature=0, repeat=2).parse_args(
        ["summeval", "--data", str(data), "--resamples", "100", "-o", str(out)]
    )
    model = ScriptedModel(obliging, slots=1)
    found = run(given, bineval.PAPER["summeval"], model=model, no_cache=True, further=bineval.mean_of_runs)
    assert json.loads(out.read_text())["runs"] == json.loads(json.dumps(found["runs"]))
    pooled = found["runs"]["binary"]["fluency"]["pooled"]["spearman"]
    first, second = pooled["runs"]
    assert first != second
    assert pooled["mean"] == pytest.approx((first + second) / 2)
    row = found["judges"][0]["dimensions"]["fluency"]
    assert first == pytest.approx(row["pooled"]["spearman"]["value"])
    by_document = found["runs"]["binary"]["fluency"]["per_document"]["spearman"]["runs"][0]
    assert by_document == pytest.approx(row["per_document"]["spearman"]["value"])


def test_a_correlation_that_one_run_lacks_has_no_mean() -> None:
    ratings = [
        {"example": str(n), "dimension": "d", "replicate": run, "score": n / 4 if run else 0.5}
        for n in range(4)
        for run in range(2)
    ]
    common = [str(n) for n in range(4)]
    given = {"common": common, "dimensions": ["d"], "ratings": {"j": ratings}}
    human = {each: {"d": float(each)} for each in common}
    found = bineval.mean_of_runs({**given, "human": human})["runs"]["j"]["d"]["pooled"]["spearman"]
    assert found == {"mean": None, "runs": [None, pytest.approx(1.0)]}
