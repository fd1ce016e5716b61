"""Measures in ``align``: the contest, the gate, the kept judge, and what it is without them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import askance
from askance.bridges.exports import export_judge
from askance.models.progress import Watcher
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from tests.said import naming
from tests.worlds import Answering, help_with, share

TOWNS = ["Bonn", "Trier", "Mainz", "Kassel", "Fulda", "Worms"]
CHECKLIST = Checklist(task="Answer the question.", questions=(Question(id="good", text="Is the answer good?"),))
OPTIONS: dict[str, Any] = {
    "embedder": "words",
    "update": "questions",
    "resamples": 200,
    "max_iterations": 1,
    "no_cache": True,
}


class BusWorld(Answering):
    """Answers that people pass where they speak of the question's bus; the judge says yes at random."""

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields = {} if schema is None else schema["properties"]
        if fields:
            return json.dumps(help_with(messages, fields))
        return 0.5 + 0.4 * share(*messages[-1])

    @property
    def rows(self) -> list[dict[str, Any]]:
        found = []
        for number in range(120):
            good, town = share("good", number) < 0.5, TOWNS[number % 6]
            other = f"Tickets {number} can be bought at any desk until noon on working days."
            answer = f"The bus {number} to {town} leaves from the station at nine." if good else other
            label = good if share("slip", number) < 0.9 else not good
            asked = f"When does the bus {number} to {town} leave from the station?"
            row = {"id": f"e{number}", "input": asked, "output": answer}
            found.append({**row, "human": {"overall": "pass" if label else "fail"}})
        return found

    def align(self, run: Path, **options: Any) -> Any:
        return askance.align(
            self.rows, checklist=CHECKLIST, model=self.model("judge"), run=run, **{**OPTIONS, **options}
        )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measures") / "run"
    BusWorld().align(folder)
    return folder


def test_a_measure_joins_by_default_and_the_judge_is_shown_with_its_questions_alone(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    joined = [each for each in result["questions"] if each["joined"]]
    assert joined and {each["from"] for each in joined} == {"measure"}
    whole, alone = result["best"]["test"], result["best"]["without_measures"]
    assert whole["spearman"] > 0.6 and alone["spearman"] < whole["spearman"] - 0.3
    assert "without_measures" not in result["baseline"]
    looked_at = [each for each in result["questions"] if not each["joined"]]
    assert looked_at and all(each["reason"] for each in looked_at)


def test_measures_are_looked_at_before_anything_is_proposed_and_what_they_pay_for_is_said(tmp_path: Path) -> None:
    told: list[str] = []

    class Told(Watcher):
        def say(self, text: str) -> None:
            told.append(text)

        def phase(self, text: str, *_: Any) -> None:
            told.append(text)

    BusWorld().align(tmp_path / "run", watcher=Told())
    looked = next(place for place, each in enumerate(told) if "without a call" in each)
    assert any("repeats" in each for each in told)
    assert looked < next(place for place, each in enumerate(told) if "describing" in each or "asking" in each)


def test_the_kept_judge_computes_its_measures_and_its_hash_has_their_version(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = askance.load_judge(run)
    assert not kept.edited and kept.checklist.measures and all(each.curve for each in kept.checklist.measures)
    assert kept.figures is not None and kept.figures.without_measures is not None
    world = BusWorld()
    found = kept.evaluate(world.rows[:6], model=world.model("judge"), no_cache=True).verdicts
    measured = [each for each in found if each.model is None]
    assert measured and all(each.value is not None and each.version and each.p_yes is not None for each in measured)
    monkeypatch.setattr("askance.agents.measures.values.VERSION", "2")
    assert askance.load_judge(run).edited


def test_an_export_refuses_measures_by_name_and_goes_without_where_asked(run: Path) -> None:
    measure = askance.load_judge(run).checklist.measures[0]
    with pytest.raises(InputError, match=naming(measure.id, "--questions-only")):
        export_judge(run, "python")
    made = export_judge(run, "python", questions_only=True)
    assert measure.id not in made.text and "Is the answer good?" in made.text
    assert any(measure.id in each for each in made.notices)


def test_without_measures_nothing_is_looked_at(tmp_path: Path) -> None:
    done = BusWorld().align(tmp_path / "run", measures="none")
    assert not any(each["from"] == "measure" for each in done.result["questions"])
    assert "without_measures" not in done.result["best"]


def test_a_measure_of_ones_own_takes_part_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text("def late(example):\n    return float('station' in example.output)\n")
    monkeypatch.chdir(tmp_path)
    done = BusWorld().align(tmp_path / "run", measures="none", measure=("own.py:late",))
    assert [each["id"] for each in done.result["questions"] if each["joined"]] == ["late"]
    assert askance.load_judge(tmp_path / "run").checklist.measures[0].measure == "own.py:late"
    with pytest.raises(InputError, match=naming("own.py:early")):
        BusWorld().align(tmp_path / "other", measure=("own.py:early",))
    assert not (tmp_path / "other").exists()


def test_measures_alone_are_a_judge_of_a_comparison() -> None:
    world = BusWorld()
    how: dict[str, Any] = {"judges": "binary,measures", "checklist": CHECKLIST, "no_cache": True, "resamples": 200}
    table = askance.compare(world.rows, model=world.model("judge"), **how).to_dict()
    by_name = {each["judge"]: each for each in table["judges"]}
    assert by_name["measures"]["dimensions"]["overall"]["pooled"]["spearman"]["value"] > 0.6
    unrated = [{name: each[name] for name in ("id", "input", "output")} for each in world.rows]
    with pytest.raises(InputError, match=naming("measures")):
        askance.compare(unrated, model=world.model("judge"), **how)
