from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.experiments.reproduce import eig_sweeps
from askance.experiments.reproduce.common import phi_by_dimension
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict

from ...said import says


def rated(path: Path) -> Path:
    rows = [
        {
            "id": str(place),
            "input": f"Article {place}.",
            "output": "Summary.",
            "human": {"consistency": (place * 7 % 11) / 10},
            "unieval": {"consistency": (place * 7 % 11) / 12 + (place % 3) / 30},
        }
        for place in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_information_of_published_scores_settles_without_any_model(tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    given = ["convergence", "qags", "--data", str(rated(tmp_path / "q.jsonl")), "--no-model", "-o", str(out)]
    assert eig_sweeps.main(given) == 0
    [found] = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert found["information"]["m"][0] == 10 and found["information"]["m"][-1] == 40
    assert len(found["information"]["bits"]) == 4
    assert max(each[-1] for each in found["information"]["bits"].values()) > 0.3


def test_without_published_scores_there_is_nothing_to_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "q.jsonl"
    data.write_text('{"id": "1", "input": "A.", "output": "S.", "human": {"consistency": 1}}\n', encoding="utf-8")
    assert eig_sweeps.main(["convergence", "qags", "--data", str(data), "--no-model"]) == 2
    assert says(capsys.readouterr().err, "no published scores")


def verdicts() -> list[Verdict]:
    answers = {"a": [1, 0, 1, 0, 1, 0], "b": [1, 0, 1, 0, 0, 0], "c": [1] * 6}
    return [
        Verdict(f"e{place}", question, "m", "p", bool(said), float(said), "hard", None)
        for question, column in answers.items()
        for place, said in enumerate(column)
    ]


def test_phi_has_a_cell_a_pair_and_none_where_it_is_undefined() -> None:
    questions = tuple(Question(id=name, text=f"Is {name}?", dimension="d") for name in "abc")
    examples = [Example(id=f"e{place}", input="A.", output="S.") for place in range(6)]
    phi = phi_by_dimension(examples, verdicts(), Checklist(questions=questions))
    assert phi["d"]["values"][0][1] == pytest.approx(0.7071, abs=1e-4)
    assert phi["d"]["values"][2] == [None, None, None]
    assert phi["d"]["yes_rates"]["a"] == 0.5
