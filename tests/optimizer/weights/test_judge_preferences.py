"""Pairs and ratings of a small world: an output's quality is a number that stands in it."""

from __future__ import annotations

import json
import re
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.models.base import Answer, Request
from askance.optimizer.weights.judged_pairs import prepare_pairs, prepare_ratings
from askance.optimizer.weights.score_tables import load_preferences, load_ratings
from askance.optimizer.weights.weigh import weigh
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import BudgetExceededError, CoverageError, InputError
from askance.testing import Reply, ScriptedModel
from tests.said import naming

pytestmark = pytest.mark.usefixtures("sandbox")
CHECKLIST = Checklist(questions=[Question(id="good", text="Is it good?"), Question(id="noise", text="Is it loud?")])
PAIRS = 40


def quality(number: int, side: str) -> float:
    return ((number * (7 if side == "a" else 11) + (3 if side == "a" else 0)) % 20) / 20


def prefs(folder: Path, pairs: int = PAIRS, **more: Any) -> Path:
    rows = []
    for number in range(pairs):
        a, b = quality(number, "a"), quality(number, "b")
        row = {"id": f"p{number}", "input": f"Ask {number}.", "output_a": f"text <{a}>", "output_b": f"text <{b}>"}
        rows.append(row | {"preferred": "a" if a > b else "b" if b > a else "tie"} | more)
    path = folder / "prefs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def rated(folder: Path, outputs: int = 40, **more: Any) -> Path:
    rows = []
    for number in range(outputs):
        q = quality(number, "a")
        human = {"human": {"overall": 1 + 4 * q, "style": 1}}
        rows.append({"id": f"r{number}", "input": f"Ask {number}.", "output": f"text <{q}>"} | human | more)
    path = folder / "rated.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def numbers(request: Request) -> list[float]:
    return [float(each) for each in re.findall(r"text <([\d.]+)>", request.messages[-1][1])]


def likely(masses: dict[str, float]) -> Answer:
    said = max(masses, key=lambda token: masses[token])
    return Answer(said, ((said, tuple((token, round(log(mass), 4)) for token, mass in masses.items())),))


def script(request: Request) -> Reply:
    text = request.messages[-1][1]
    shown = numbers(request)
    noise = (len(text) * 7 + int(10 * sum(shown))) % 10 / 10
    if len(shown) == 2:
        first = 0.5 + (shown[0] - shown[1]) / 2 if "good?" in text else noise
        return likely({"1": min(max(first + 0.1, 0.01), 0.99), "2": min(max(0.9 - first, 0.01), 0.99)})
    p = shown[0] if "good?" in text else noise
    if "from 1 to 5" in text:
        return likely({"5": max(p, 0.001), "1": max(1 - p, 0.001)})
    return float(p)


def judge(reply: Any = script) -> ScriptedModel:
    return ScriptedModel(reply, name="world/judge", slots=1)


def test_both_outputs_are_judged_and_the_score_is_p_yes(tmp_path: Path) -> None:
    model = judge()
    scores, _, bias = prepare_pairs(prefs(tmp_path), checklist=CHECKLIST, model=model).run()
    assert len(model.requests) == 4 * PAIRS
    assert bias is None
    wanted = [quality(number, "b") for number in range(PAIRS)]
    assert scores.scores_b[:, 0].tolist() == pytest.approx(wanted, abs=1e-3)


def test_scores_may_be_hard_or_expected(tmp_path: Path) -> None:
    path = prefs(tmp_path, 5)
    hard = prepare_pairs(path, checklist=CHECKLIST, model=judge(), scores="hard").run()[0]
    assert set(hard.scores_a.ravel().tolist()) <= {0.0, 1.0}
    expected = prepare_pairs(path, checklist=CHECKLIST, model=judge(), scores="expected").run()[0]
    wanted = [quality(number, "a") for number in range(5)]
    assert expected.scores_a[:, 0].tolist() == pytest.approx(wanted, abs=2e-3)


def test_pairwise_scores_are_the_mean_of_both_orders_and_add_up_to_one(tmp_path: Path) -> None:
    model = judge()
    scores, _, bias = prepare_pairs(prefs(tmp_path), checklist=CHECKLIST, model=model, pairwise=True, swap=True).run()
    assert len(model.requests) == 4 * PAIRS
    assert scores.scores_a + scores.scores_b == pytest.approx(np.ones((PAIRS, 2)))
    for row, number in enumerate(range(PAIRS)):
        gap = (quality(number, "a") - quality(number, "b")) / 2
        if abs(gap) < 0.3:  # beyond this the judge's probabilities are cut off
            assert scores.scores_a[row, 0] == pytest.approx(0.5 + gap, abs=2e-3)
    assert bias is not None
    assert bias.by_test["good"].mean_p_first == pytest.approx(0.6, abs=0.03)
    assert 0 < (bias.by_test["good"].share or 0) < 0.5


def test_one_order_leaves_the_bias_in_the_scores(tmp_path: Path) -> None:
    model = judge()
    scores, _, bias = prepare_pairs(prefs(tmp_path), checklist=CHECKLIST, model=model, pairwise=True).run()
    assert len(model.requests) == 2 * PAIRS
    assert bias is not None and bias.overall.share is None
    gap = (quality(1, "a") - quality(1, "b")) / 2
    assert scores.scores_a[1, 0] == pytest.approx(min(0.5 + gap + 0.1, 0.99), abs=2e-3)


def test_a_pair_with_a_missing_choice_is_left_out_and_counted(tmp_path: Path) -> None:
    def sometimes(request: Request) -> Reply:
        lost = "Ask 3." in request.messages[0][1] and "good?" in request.messages[0][1]
        return "I cannot say" if lost else script(request)

    def hard(request: Request) -> Reply:
        reply = sometimes(request)
        return reply.text if isinstance(reply, Answer) else reply

    options: dict[str, Any] = {"pairwise": True, "swap": True, "p_yes": "hard"}
    scores, _, _ = prepare_pairs(prefs(tmp_path, 6), checklist=CHECKLIST, model=judge(hard), **options).run()
    assert [(pair.id, pair.missing) for pair in scores.left_out] == [("p3", ("good",))]


def test_rated_outputs_are_judged_without_looking_at_their_ratings(tmp_path: Path) -> None:
    scores, found = prepare_ratings(rated(tmp_path), checklist=CHECKLIST, model=judge()).run()
    assert scores.ratings[0] == pytest.approx(1 + 4 * quality(0, "a"))
    assert scores.scores[:, 0].tolist() == pytest.approx([quality(n, "a") for n in range(40)], abs=1e-3)
    assert found.agreement == []
    with pytest.raises(InputError, match=r"nobody rated 'overal' .*Did you mean 'overall'"):
        prepare_ratings(rated(tmp_path), checklist=CHECKLIST, model=judge(), dimension="overal")


def test_weights_are_learned_from_pairs_from_ratings_and_from_both(tmp_path: Path) -> None:
    bought = {"checklist": CHECKLIST, "model": judge()}
    of_pairs = weigh(prefs(tmp_path), **bought)
    of_ratings = weigh(ratings=rated(tmp_path), **bought)
    of_both = weigh(prefs(tmp_path), ratings=rated(tmp_path), pair_share=0.3, **bought)
    for found in (of_pairs, of_ratings, of_both):
        assert found.weights["good"] > found.weights["noise"]
        assert sum(found.weights.values()) == pytest.approx(1)
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.sentences()
    assert [len(found.judged) for found in (of_pairs, of_ratings, of_both)] == [1, 1, 2]
    assert (of_both.to_dict()["outputs"], of_both.to_dict()["pair_share"]) == (40, 0.3)
    assert of_both.to_dict()["pairs"] == PAIRS


def test_pairs_and_ratings_of_one_input_are_one_group(tmp_path: Path) -> None:
    bought = {"checklist": CHECKLIST, "model": judge()}
    pairs = prepare_pairs(prefs(tmp_path), **bought).run()[0]
    ratings, _ = prepare_ratings(rated(tmp_path), **bought).run()
    assert pairs.groups == ratings.groups


def test_pairs_and_ratings_of_one_document_are_one_group(tmp_path: Path) -> None:
    bought, named = {"checklist": CHECKLIST, "model": judge()}, {"metadata": {"document": "d"}}
    pairs = prepare_pairs(prefs(tmp_path, 3, **named), **bought).run()[0]
    ratings, _ = prepare_ratings(rated(tmp_path, 3, **named), **bought).run()
    scored = load_ratings(rated(tmp_path, 3, **named, scores={"q": 1}))
    assert {*pairs.groups} == {*ratings.groups} == {*scored.groups} == {"document d"}
    with pytest.raises(InputError, match=naming("All 9", "one group", "'metadata.document'")):
        weigh(prefs(tmp_path, 9, **named), **bought)


def test_given_scores_need_no_model(tmp_path: Path) -> None:
    scores = {"scores_a": {"q": 1, "r": 0}, "scores_b": {"q": 0, "r": 1}, "preferred": "a"}
    assert weigh(prefs(tmp_path, **scores)).weights["q"] > 0.5
    rows = [
        {
            "id": str(n),
            "input": str(n),
            "output": "o",
            "rating": n % 5,
            "metadata": {"scores": {"q": n % 5 / 5, "r": 0.5}},
        }
        for n in range(30)
    ]
    path = tmp_path / "given.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert weigh(ratings=path).weights["q"] >= 0.5


def test_the_bias_is_part_of_the_report(tmp_path: Path) -> None:
    found = weigh(prefs(tmp_path), checklist=CHECKLIST, model=judge(), pairwise=True, swap=True)
    assert found.to_dict()["position_bias"]["both_orders"] == 2 * PAIRS
    assert "both orders" in found.sentences()[-1]


@pytest.mark.parametrize("label", [{"section": "code"}, {"metadata": {"section": "code"}}])
def test_weights_of_sections_are_learned_and_used_by_an_evaluation(tmp_path: Path, label: dict[str, Any]) -> None:
    import askance

    path = prefs(tmp_path, **label)
    learned = weigh(path, checklist=CHECKLIST, model=judge(), level="section", method="best-single", pooling="none")
    (tmp_path / "w.json").write_text(json.dumps(learned.to_dict()), encoding="utf-8")
    report = json.loads((tmp_path / "w.json").read_text(encoding="utf-8"))
    assert report["sections"]["code"]["weights"]["good"] == 1
    report["weights"] = {"good": 0.0, "noise": 1.0}
    (tmp_path / "w.json").write_text(json.dumps(report), encoding="utf-8")
    rows = [{"id": name, "input": "Ask.", "output": "text <0.25>", "section": name} for name in ("code", "prose")]
    found = askance.evaluate(rows, checklist=CHECKLIST, model=judge(), weights=str(tmp_path / "w.json"))
    code, prose = found.scores
    assert code.overall == pytest.approx(0.25, abs=1e-3)
    assert prose.overall != pytest.approx(0.25, abs=1e-2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "PREFS or --ratings is needed"),
        ({"data": "p", "model": "openai/m"}, "belong together"),
        ({"data": "p", "swap": True}, "needs --pairwise"),
        ({"data": "p", "pairwise": True}, "needs PREFS, --checklist and --model"),
        ({"data": "p", "ratings": "r", "pairwise": True, "checklist": "global", "model": "m"}, "with --ratings"),
        ({"ratings": "r", "level": "section"}, "--level section takes pairs"),
        ({"data": "p", "field": {"output": "x"}}, "'output' is not one of our fields"),
        ({"data": "p", "method": "magic"}, "no weight learner 'magic'"),
        ({"data": "p", "method": "least-squares"}, "no weight learner 'least-squares'"),
        ({"ratings": "r", "method": "logistic"}, "no method 'logistic' for ratings"),
        ({"data": "p", "score_scale": (0, 6)}, "score_scale belongs to expected scores"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_bought(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        weigh(given.pop("data", None), **given)


def test_a_scale_that_is_none_is_refused_before_anything_is_bought(tmp_path: Path) -> None:
    model = judge([])
    with pytest.raises(InputError, match="5 to 1"):
        weigh(prefs(tmp_path), checklist="global", model=model, scores="expected", score_scale=(5, 1))
    assert not model.requests


def test_a_cap_on_calls_holds_for_pairs_and_ratings_together(tmp_path: Path) -> None:
    options: dict[str, Any] = {"checklist": CHECKLIST, "model": judge(), "no_cache": True}
    with pytest.raises(BudgetExceededError, match=naming("20 calls", "--call-budget 60")):
        weigh(prefs(tmp_path, 10), ratings=rated(tmp_path, 30), call_budget=60, **options)
    assert len(options["model"].requests) == 60
    with pytest.raises(BudgetExceededError, match=naming("20 calls", "bought again")):
        weigh(prefs(tmp_path, 10), ratings=rated(tmp_path, 30), call_budget=20, **options)


def test_a_judge_that_answers_nothing_is_an_error_with_its_reason(tmp_path: Path) -> None:
    model = judge(lambda request: "Perhaps")
    with pytest.raises(CoverageError, match=naming("Not one pair", "neither yes nor")):
        weigh(prefs(tmp_path, 3), checklist=CHECKLIST, model=model)


def test_outputs_without_an_input_are_no_one_group(tmp_path: Path) -> None:
    bought = {"checklist": CHECKLIST, "model": judge()}
    pairs = prepare_pairs(prefs(tmp_path, 6, input=""), **bought).run()[0]
    ratings, _ = prepare_ratings(rated(tmp_path, 6, input=""), **bought).run()
    assert len(set(pairs.groups)) == len(set(ratings.groups)) == 6
    given = {"scores_a": {"q": 1}, "scores_b": {"q": 0}, "preferred": "a"}
    assert len(set(load_preferences(prefs(tmp_path, 6, input="", **given)).groups)) == 6


@pytest.mark.parametrize(
    ("rows", "given", "message"),
    [
        ({"preferred": "tie"}, {}, "In none of the 6 pairs"),
        ({"input": "Ask."}, {}, "All 6 pairs or rated outputs belong to one group"),
        ({"input": "Ask."}, {"pairwise": True}, "All 6 pairs or rated outputs belong to one group"),
        ({}, {"level": "section"}, "no pair has a 'section'"),
        ({"human": {"overall": 3}}, {"ratings": True}, "not all rated the same"),
        ({"input": "Ask."}, {"ratings": True}, "All 6 pairs or rated outputs belong to one group"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused_before_anything_is_bought(
    tmp_path: Path, rows: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    model = judge()
    data, ratings = (
        (None, rated(tmp_path, 6, **rows)) if given.pop("ratings", False) else (prefs(tmp_path, 6, **rows), None)
    )
    with pytest.raises(InputError, match=message):
        weigh(data, ratings=ratings, checklist=CHECKLIST, model=model, **given)
    assert not model.requests


def test_an_output_that_nobody_rated_is_not_judged(tmp_path: Path) -> None:
    path, model = rated(tmp_path, 12), judge()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row | {"human": {"style": 1}} if place < 4 else row for place, row in enumerate(rows)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    job = prepare_ratings(path, checklist=CHECKLIST, model=model, dimension="overall")
    assert job.asked.estimate().calls == 2 * 8
    scores, _ = job.run()
    assert len(model.requests) == 2 * 8
    assert [each.id for each in scores.left_out] == ["r0", "r1", "r2", "r3"]
    assert len(scores.ids) == 8
