"""Asking both ways, with a judge that likes everything and sees a fault only where it is asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.experiments.datasets.registry import load_rated
from askance.experiments.measured.learned_questions import ASKED, PEOPLE
from askance.experiments.people.polarity import FAULT, asked_both_ways
from askance.models.base import Request
from askance.prompts.checklist import load_checklist
from askance.prompts.examples import Example, documents
from askance.testing import ScriptedModel


@pytest.mark.parametrize("data", list(PEOPLE))
def test_a_judge_that_agrees_with_all_is_told_apart_by_the_faults(data: str, tmp_path: Path) -> None:
    folder = ASKED / data
    pairs = load_checklist(folder / "pairs.yaml")
    names = [each.id for each in pairs.questions if not each.id.endswith(FAULT)]
    assert [each.id for each in pairs.questions] == [f"{name}{end}" for name in names for end in ("", FAULT)]
    assert all(pairs.question(f"{name}{FAULT}").good == "no" and pairs.question(name).good == "yes" for name in names)
    faults = {each.text for each in pairs.questions if each.id.endswith(FAULT)}

    def judge(request: Request) -> float:
        asked = request.messages[-1][1]
        number = int(asked.split("Output [")[1].split("]")[0])
        if any(each in asked for each in faults):
            return 0.9 - number / 100
        return 0.95 + (number * 7 % 30) / 1000

    dimension = pairs.questions[0].dimension
    examples = [
        Example(
            id=f"e{number}",
            input=f"Input {number // 3}.",
            context="A fact.",
            output=f"Output [{number}].",
            human={dimension: (float(number),)},
            metadata={"document": f"d{number // 3}"},
        )
        for number in range(30)
    ]
    found = asked_both_ways(
        examples, pairs, folder / "prompt.md", ScriptedModel(judge), store=str(tmp_path / "store.db")
    )
    assert (found["examples"], found["documents"], found["calls"]) == (30, 10, 180)
    assert found["all"]["fault"]["value"] == pytest.approx(1) and found["all"]["good"]["value"] < 0.5
    assert found["all"]["fault_less_good"]["low"] > 0
    assert all(each["share_of_yes"] == [1, 1] for each in found["pairs"].values())
    assert all(each["both"]["value"] > each["good"]["value"] for each in found["pairs"].values())


SHARED = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.parametrize("data", list(PEOPLE))
def test_outputs_that_share_their_input_are_of_one_document(data: str) -> None:
    if not (SHARED / PEOPLE[data]).is_file():
        pytest.skip(f"needs {PEOPLE[data]}, people's scores that are not part of this project")
    examples = load_rated(data, SHARED / PEOPLE[data])[:60]
    inputs, named = {each.input for each in examples}, set(documents(examples) or [each.id for each in examples])
    assert len(examples) == 60 and len(inputs) == len(named)
