"""The pictures show what the results say: as many violins as there are columns, labelled axes, files that are not
empty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.reproduce import eig_convergence, figures
from askance.experiments.reproduce.common import phi_by_dimension
from askance.experiments.reproduce.figures import draw, main, pictures, score_table, style
from askance.prompts.checklist import Checklist, Question
from askance.prompts.verdicts import Verdict

from ...said import says

pytest.importorskip("matplotlib")

EXAMPLES = [f"d{number % 4}/S{number // 4}" for number in range(12)]
DIMENSIONS = ("coherence", "fluency")


def number(place: int, shift: int) -> float:
    return ((place * 5 + shift * 3) % 7) / 6


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few dots an inch: the pictures are looked at before they are written."""
    monkeypatch.setattr(figures, "_DOTS_AN_INCH", 40)


def result(dimensions: tuple[str, ...] = DIMENSIONS) -> dict[str, Any]:
    judges = ("binary", "direct")
    ratings = {
        judge: [
            {"example": name, "dimension": dimension, "score": number(place, shift), "status": "ok"}
            for place, name in enumerate(EXAMPLES)
            for dimension in dimensions
        ]
        for shift, judge in enumerate(judges)
    }
    ratings["direct"].append({"example": EXAMPLES[0], "dimension": dimensions[-1], "score": 0.0, "replicate": 1})
    return {
        "dataset": "summeval",
        "dimensions": list(dimensions),
        "common": EXAMPLES,
        "human": {name: dict.fromkeys(dimensions, number(place, 1)) for place, name in enumerate(EXAMPLES)},
        "systems": {name: name.split("/")[1] for name in EXAMPLES},
        "published": {
            "UniEval (T5)": {n: {"coherence": 4 * number(i, 2), "fluency": 0.5} for i, n in enumerate(EXAMPLES)}
        },
        "ratings": ratings,
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    with style():
        return dict(pictures(result()))


def bodies(panel: Any) -> int:
    return len([each for each in panel.collections if type(each).__name__ == "FillBetweenPolyCollection"]) or len(
        [each for each in panel.collections if type(each).__name__ == "PolyCollection"]
    )


def test_a_panel_a_dimension_has_a_violin_for_people_and_for_every_judge(drawn: dict[str, Any]) -> None:
    panels = drawn["summeval_violins_by_dimension"].axes
    assert [panel.get_title().split(" (")[0] for panel in panels] == list(DIMENSIONS)
    assert [bodies(panel) for panel in panels] == [4, 4]
    assert panels[0].get_ylabel() == "score (0 to 1)"
    assert [" ".join(each.get_text().split()) for each in panels[0].get_xticklabels()] == [
        "people", "UniEval (T5)", "binary", "direct"
    ]  # fmt: skip


def test_a_panel_a_judge_has_a_violin_a_system_ordered_by_peoples_means(drawn: dict[str, Any]) -> None:
    panels = drawn["summeval_violins_by_system"].axes
    assert [bodies(panel) for panel in panels] == [3, 3, 3, 3]
    means = {}
    for place, name in enumerate(EXAMPLES):
        means.setdefault(name.split("/")[1], []).append(number(place, 1))
    ordered = sorted(means, key=lambda system: sum(means[system]))
    assert [each.get_text() for each in panels[-1].get_xticklabels()] == ordered
    assert panels[-1].get_xlabel().startswith("system, from")


def test_a_scatter_says_the_correlation_and_what_was_rescaled(drawn: dict[str, Any]) -> None:
    figure = drawn["summeval_scatter_coherence"]
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[0].startswith("UniEval (T5)\nρ = ") and titles[1].startswith("binary\nρ = ")
    assert says(figure.get_supxlabel(), "coherence", "0.0 to 4.0", "0 to 1")
    assert "ρ undefined" in drawn["summeval_scatter_fluency"].axes[0].get_title(), "a constant score has no rank"


def test_of_repeated_ratings_the_first_is_drawn() -> None:
    data = score_table(result())
    assert data.judges["direct"][EXAMPLES[0]]["fluency"] == number(0, 1)


def verdicts() -> list[Verdict]:
    answers = {"a": [1, 0, 1, 0, 1, 0], "b": [1, 0, 1, 0, 0, 0], "c": [1] * 6}
    return [
        Verdict(f"e{place}", question, "m", "p", bool(said), float(said), "hard", None)
        for question, column in answers.items()
        for place, said in enumerate(column)
    ]


def test_phi_has_a_cell_a_pair_and_none_where_it_is_undefined() -> None:
    questions = tuple(Question(id=name, text=f"Is {name}?", dimension="d") for name in "abc")
    phi = phi_by_dimension(verdicts(), Checklist(questions=questions))
    assert phi["d"]["values"][0][1] == pytest.approx(0.7071, abs=1e-4)
    assert phi["d"]["values"][2] == [None, None, None]
    assert phi["d"]["yes_rates"]["a"] == 0.5


def test_every_picture_is_written_as_png_and_as_svg_and_again_the_same(tmp_path: Path) -> None:
    one = result(DIMENSIONS[:1]) | {"published": {}}
    one |= {"ratings": {"binary": one["ratings"]["binary"]}}
    written = draw(one, tmp_path / "one")
    assert [path.name for path in written] == [
        f"summeval_{name}.{kind}"
        for name in ("violins_by_dimension", "violins_by_system", "scatter_coherence")
        for kind in ("png", "svg")
    ]
    assert all(path.stat().st_size > 2000 for path in written)
    again = draw(one, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]


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
    given = [
        "qags",
        "--data",
        str(rated(tmp_path / "q.jsonl")),
        "--no-model",
        "-o",
        str(out),
        "--figures",
        str(tmp_path),
    ]
    assert eig_convergence.main(given) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["information"]["m"][0] == 10 and found["information"]["m"][-1] == 40
    assert len(found["information"]["bits"]) == 4
    assert max(each[-1] for each in found["information"]["bits"].values()) > 0.3
    assert (tmp_path / "qags_eig_convergence.svg").stat().st_size > 2000
    with style():
        ((_, figure),) = pictures(found)
    bits, agreement = figure.axes
    assert says(bits.get_ylabel(), "EIG", "bits", "bias removed")
    assert len([line for line in bits.lines if line.get_label()[0] != "_"]) == 4
    assert says(agreement.get_ylabel(), "agreement", "full ranking")


def test_without_published_scores_there_is_nothing_to_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "q.jsonl"
    data.write_text('{"id": "1", "input": "A.", "output": "S.", "human": {"consistency": 1}}\n', encoding="utf-8")
    assert eig_convergence.main(["qags", "--data", str(data), "--no-model"]) == 2
    assert says(capsys.readouterr().err, "no published scores")


def test_files_are_drawn_and_a_file_without_numbers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, empty = tmp_path / "kept.jsonl", tmp_path / "empty.json"
    kept.write_text("".join(json.dumps(each.to_dict()) + "\n" for each in verdicts()), encoding="utf-8")
    empty.write_text("{}", encoding="utf-8")
    assert main([str(kept), "--figures", str(tmp_path / "p")]) == 2
    assert says(capsys.readouterr().err, "verdicts", "askance report")
    growth = {"pool": {"growth": [{"examples": ["a", "b"], "pool": 4}, {"examples": ["c"], "pool": 5}]}}
    (tmp_path / "selection.json").write_text(json.dumps(growth), encoding="utf-8")
    assert main([str(tmp_path / "selection.json"), "--figures", str(tmp_path / "p")]) == 0
    assert main([str(empty), "--figures", str(tmp_path / "p")]) == 2
    assert says(capsys.readouterr().err, "nothing", "a picture")
