"""Questions learned from pairs: effects, polarity, weights and the share of pairs told, against closed forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import askance
from askance.evaluation.measures.fitting import MeasureTable
from askance.evaluation.scoring import ExampleScore, Targets
from askance.memory.records import CriterionRecord
from askance.optimizer.questions.pairs import (
    PairChooser,
    PairYardstick,
    are_pairs,
    decided_pairs,
    examples_of_pairs,
    pair_effect,
)
from askance.optimizer.subject import Draft
from askance.optimizer.weights.judged_pairs import holds_pairs, load_pairs
from askance.prompts.checklist import Checklist, ComputedMeasure, Question, load_checklist
from askance.prompts.errors import InputError
from askance.prompts.prompt import Prompt
from askance.testing import SimulatedJudge, SimulatedWorld
from tests.measured.pairs_world import pairs_of, shuffled
from tests.said import naming
from tests.worlds import Answering, help_with, share

ROWS = [
    {"id": "p1", "prompt": "one", "chosen": "good", "rejected": "bad", "comment": "It is rude."},
    {"id": "p2", "prompt": "one", "chosen": "fine", "rejected": "poor", "comment_chosen": ["It thanks.", " "]},
    {"id": "p3", "prompt": "two", "chosen": "well", "rejected": "ill", "comment_rejected": "It lies."},
]
TIE = {"id": "p4", "input": "three", "output_a": "x", "output_b": "y", "preferred": "tie", "comment": "Both alike."}


def test_both_outputs_are_examples_and_every_comment_is_about_the_rejected_one() -> None:
    examples = examples_of_pairs(load_pairs([*ROWS, TIE]))
    assert are_pairs(examples) and len(examples) == 8
    said = {each.output: [one.text for one in each.comment] for each in examples if each.comment}
    assert said == {"bad": ["It is rude."], "poor": ["It thanks."], "ill": ["It lies."]}
    assert {each.output: each.human_score("overall") for each in examples} == {
        "good": 1, "bad": 0, "fine": 1, "poor": 0, "well": 1, "ill": 0, "x": None, "y": None,
    }  # fmt: skip
    pairs = decided_pairs(examples)
    assert [each.chosen.partition("/")[0] for each in pairs] == ["p1", "p2", "p3"]
    assert pairs[0].prompt == pairs[1].prompt != pairs[2].prompt


def test_the_best_of_several_is_a_pair_with_each_of_the_others() -> None:
    pairs = load_pairs([{"id": "b", "prompt": "one", "chosen": "best", "rejected": ["second", "third"]}])
    assert [each.id for each in pairs] == ["b#1", "b#2"]
    texts = [{each.output_a, each.output_b} for each in pairs]
    assert texts == [{"best", "second"}, {"best", "third"}]


@pytest.mark.parametrize(
    ("rows", "is_pairs"),
    [(ROWS, True), ([TIE], True), ([{"id": "1", "input": "a", "output": "b"}], False), ([], False)],
)
def test_data_are_known_for_pairs_by_their_first_row(rows: Any, is_pairs: bool) -> None:
    assert holds_pairs(rows) is is_pairs


def test_the_standard_error_of_an_effect_is_that_of_prompts() -> None:
    differences = np.array([0.4, 0.2, -0.1, 0.3])
    mean, error = pair_effect(differences, ["a", "b", "c", "d"])
    assert mean == pytest.approx(0.2) and error == pytest.approx(differences.std(ddof=1) / 2)
    _, of_two = pair_effect(np.repeat(differences, 3), [each for each in "abcd" for _ in range(3)])
    assert of_two == pytest.approx(error)  # three copies of each prompt tell no more than one


def chooser(size: int) -> PairChooser:
    rows = [{"id": f"p{n}", "prompt": f"prompt {n}", "chosen": f"c{n}", "rejected": f"r{n}"} for n in range(size)]
    examples = examples_of_pairs(load_pairs(rows))
    return PairChooser(None, None, examples, None, 12)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["natural", "neighbor", "gptinst"])
def test_pairs_of_llmbar_are_read_as_they_are(name: str) -> None:
    file = Path(__file__).parents[4] / f"shared/data/llmbar_{name}.jsonl"
    if not file.is_file():
        pytest.skip("the shared data are not here")
    assert holds_pairs(file)
    examples = examples_of_pairs(pairs := load_pairs(file))
    assert are_pairs(examples) and len(decided_pairs(examples)) == len(pairs) > 90


@pytest.mark.parametrize(("better", "good"), [(0.3, "yes"), (-0.3, "no")])
def test_the_sign_of_the_effect_gives_the_polarity(better: float, good: str) -> None:
    learner = chooser(20)
    pairs = decided_pairs(learner.examples)
    table = {each.chosen: float(logit(0.5 + better)) for each in pairs} | {each.rejected: 0.0 for each in pairs}
    table[pairs[0].chosen] = float(logit(0.5 + better / 2))
    standing = learner._standing("q", CriterionRecord.of("Does it?", "d", "contrast"), {"q": table}, {})
    assert standing is not None and standing.good == good and standing.problem is None
    assert standing.effect == pytest.approx(abs(better) * 19.5 / 20)
    of_first = CriterionRecord.of("Does it?", "d", "comment", (pairs[0].rejected,))
    without_own = learner._standing("q", of_first, {"q": table}, {})
    assert without_own is not None and without_own.effect == pytest.approx(abs(better))


def test_noise_is_told_from_an_effect() -> None:
    learner, draw = chooser(60), np.random.default_rng(1)
    pairs = decided_pairs(learner.examples)
    table = {
        name: float(value)
        for each in pairs
        for name, value in zip((each.chosen, each.rejected), draw.normal(size=2), strict=True)
    }
    values = [expit(table[each.chosen]) - expit(table[each.rejected]) for each in pairs]
    standing = learner._standing("q", CriterionRecord.of("Does it?", "d", "contrast"), {"q": table}, {})
    least = 1.5 * np.std(values, ddof=1) / 60**0.5
    assert standing is not None and (standing.problem is None) == (abs(np.mean(values)) >= least)


def test_the_share_of_pairs_told_counts_a_tie_as_half_and_leaves_out_what_has_no_score() -> None:
    pairs = decided_pairs(chooser(4).examples)
    yardstick = PairYardstick(pairs, 200, 1)

    def scores(*values: float | None) -> list[ExampleScore]:
        ids = [name for each in pairs for name in (each.chosen, each.rejected)]
        return [ExampleScore(name, value, {}) for name, value in zip(ids, values, strict=True)]

    right, wrong, alike, missing = (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (None, 0.9)
    assert yardstick.value(scores(*right, *alike, *wrong, *wrong)) == pytest.approx(1.5 / 4)
    measured = yardstick.measure(scores(*right, *alike, *wrong, *missing), [])
    assert measured["mean"] == pytest.approx(0.5) and measured["n"] == 3
    gain = yardstick.difference(scores(*wrong, *alike, *wrong, *right), scores(*right, *alike, *right, *right), [])
    assert gain.value == pytest.approx(0.5) and gain.n == 4


def test_a_judge_learns_from_pairs_and_weigh_takes_what_it_learned(tmp_path: Path) -> None:
    world = SimulatedWorld(size=200, seed=2, kinds=1, blind=3, comment_share=1.0, rater_noise=0.2, question_usable=0.8)
    pairs, judge = pairs_of(world), SimulatedJudge(world)
    how: dict[str, Any] = {"resamples": 200, "embedder": "words", "max_iterations": 1, "explain": "never"}
    done = askance.align(pairs, checklist=world.checklist, model=judge, run=tmp_path / "run", **how)
    result = done.result
    assert result["yardstick"] == PairYardstick.name
    assert [each["id"] for each in result["questions"] if each["joined"]]
    assert result["best"]["validation"]["mean"] > result["baseline"]["validation"]["mean"]
    asked = askance.load_judge(tmp_path / "run").checklist
    assert asked.faults  # polarity came from the pairs: comments speak of faults
    calls = judge.calls
    weighed = askance.weigh(pairs, checklist=tmp_path / "run/checklist.yaml", model=judge, method="logistic")
    assert set(weighed.weights) == {each.id for each in asked.questions} and judge.calls > calls
    assert json.loads((tmp_path / "run/result.json").read_text())["best"]["test"]["n"] > 20


def test_nothing_joins_where_people_chose_at_random(tmp_path: Path) -> None:
    world = SimulatedWorld(size=120, seed=2, kinds=1, blind=3, comment_share=1.0)
    how: dict[str, Any] = {"resamples": 200, "embedder": "words", "max_iterations": 1, "explain": "never"}
    done = askance.align(
        shuffled(pairs_of(world), world),
        checklist=world.checklist,
        model=SimulatedJudge(world),
        run=tmp_path / "run",
        **how,
    )
    assert not any(each["joined"] for each in done.result["questions"])
    asked = load_checklist(tmp_path / "run/candidates.yaml").questions
    assert {each.text for each in asked} == {each["text"] for each in done.result["questions"]}


def bus_pairs(size: int = 140) -> list[dict[str, Any]]:
    """Pairs of which people mostly chose the answer that speaks of the question's bus; one prompt has two pairs."""
    pairs = []
    for number in range(size):
        near = f"The bus {number // 2} to Trier leaves from the station at {number % 9 + 1}."
        far = f"Tickets {number} can be bought at any desk until noon on working days."
        slips = share("slip", number) < 0.1
        sides = {"chosen": far if slips else near, "rejected": near if slips else far}
        pairs.append({"id": f"p{number}", "prompt": f"When does bus {number // 2} to Trier leave?", **sides})
    return pairs


class Shrugs(Answering):
    """A judge that says yes at random, and writes no question."""

    def reply(self, messages: Sequence[tuple[str, str]], schema: Mapping[str, Any] | None) -> str | float:
        fields = {} if schema is None else schema["properties"]
        return json.dumps(help_with(messages, fields)) if fields else 0.5 + 0.4 * share(*messages[-1])


BUSES = Checklist(task="Answer.", questions=(Question(id="good", text="Is the answer good?"),))
HOW_BUSES: dict[str, Any] = {"resamples": 200, "embedder": "words", "max_iterations": 1, "no_cache": True}


def test_measures_take_part_and_the_result_says_the_gain_with_them_and_without(tmp_path: Path) -> None:
    done = askance.align(bus_pairs(), checklist=BUSES, model=Shrugs().model("j"), run=tmp_path / "run", **HOW_BUSES)
    result = json.loads((tmp_path / "run/result.json").read_text())
    joined = [each for each in result["questions"] if each["joined"]]
    assert joined and {each["from"] for each in joined} == {"measure"}
    assert joined[0]["effect"] == pytest.approx(0.64, abs=0.2)  # crossed shares: .9 of the pairs, less what slips
    assert result["best"]["test"]["mean"] > 0.8
    assert result["best"]["without_measures"]["mean"] == pytest.approx(result["baseline"]["test"]["mean"])
    gain = result["gain"]
    assert gain["test"]["value"] > 0.25 and gain["without_measures"]["value"] == pytest.approx(0.0)
    assert any(f"{gain['test']['value']:+.3f}" in line and "+0.000" in line for line in done._view().lines)
    how: dict[str, Any] = {"checklist": tmp_path / "run/checklist.yaml", "method": "logistic", "no_cache": True}
    weighed = askance.weigh(bus_pairs(60), model=Shrugs().model("j"), **how)
    assert weighed.weights[joined[0]["id"]] > weighed.weights["good"]


def test_no_measure_joins_where_sides_are_drawn(tmp_path: Path) -> None:
    turned = {"chosen": "rejected", "rejected": "chosen"}
    pairs = [
        {turned.get(name, name): each for name, each in row.items()} if share("side", row["id"]) < 0.5 else row
        for row in bus_pairs()
    ]
    done = askance.align(pairs, checklist=BUSES, model=Shrugs().model("j"), run=tmp_path / "run", **HOW_BUSES)
    assert not any(each["joined"] for each in done.result["questions"])
    assert "without_measures" not in done.result["gain"]


def test_each_fold_fits_its_measures_anew() -> None:
    learner = chooser(30)
    pairs = decided_pairs(learner.examples)
    draw = np.random.default_rng(3)
    values = {name: float(draw.normal(n == 0)) for each in pairs for n, name in enumerate((each.chosen, each.rejected))}
    measure = ComputedMeasure.model_validate({"id": "m", "measure": "words", "range": [0, 1]})
    learner.told = False
    learner.table = MeasureTable({"m": measure}, {"m": values})
    wanted = {each.id: {"overall": each.human_score("overall")} for each in learner.examples}
    learner.targets = Targets("human", ("overall",), wanted)
    (whole,) = learner.measured(Draft(Prompt("{output}"), BUSES), 1)
    fold = replace(learner, examples=learner.examples[:44])
    (part,) = fold.measured(Draft(Prompt("{output}"), BUSES), 1)
    assert whole.measure.curve != part.measure.curve and whole.effect != part.effect
    shares = {name: whole.measure.share(value) for name, value in values.items()}
    assert whole.effect < float(np.mean([shares[each.chosen] - shares[each.rejected] for each in pairs]))


@pytest.mark.parametrize("setting", [{"update": "edits"}, {"optimise_for": "auc"}, {"calibrate": True}])
def test_a_setting_that_has_no_use_for_pairs_is_refused(setting: dict[str, Any], tmp_path: Path) -> None:
    world = SimulatedWorld(size=40)
    with pytest.raises(InputError, match=naming(next(iter(setting)))):
        askance.align(pairs_of(world), checklist=world.checklist, model="a/b", run=tmp_path / "run", **setting)


def test_pairs_of_ties_alone_are_refused(tmp_path: Path) -> None:
    world = SimulatedWorld(size=40)
    with pytest.raises(InputError, match=naming("none")):
        askance.align([TIE], checklist=world.checklist, model="a/b", run=tmp_path / "run")
