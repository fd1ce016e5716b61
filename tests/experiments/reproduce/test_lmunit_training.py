"""LMUnit's Tables 2 and 3 on a network of one layer: what is tested on was not learned from, and every row is there."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.datasets.rated import DIMENSIONS
from askance.experiments.reproduce import common, lmunit, lmunit_training
from askance.experiments.reproduce.common import ARMS
from askance.experiments.reproduce.lmunit_simulated import SimulatedAuthor, _pooled, compared
from askance.experiments.reproduce.lmunit_training import nearest
from askance.models.base import Parameters, Request, make_request
from askance.prompts.errors import InputError
from askance.stats.differences import Difference
from askance.testing import SimulatedJudge, SimulatedWorld
from askance.testing.scripted import ScriptedModel
from askance.training.contrasts import GRADES

from ...said import naming, says
from ...training.conftest import random_llama, tiny_base

__all__ = ["tiny_base"]

TEMPLATE = "{% for each in messages %}{{ each['role'] }} {{ each['content'] }} {% endfor %}assistant"
SMALL = ["--epochs", "1", "--longest", "32", "--resamples", "100", "--precision", "float32"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """24 conversations with two responses each; the good ones are rated higher."""
    rows = []
    for n in range(48):
        score = 3.0 if n % 2 else 1.0 + n % 3 / 4
        human = dict.fromkeys(("naturalness", "coherence", "engagingness", "groundedness"), score)
        words = f"good new {n}" if n % 2 else f"broken old {n}"
        rows.append(
            {
                "id": f"e{n}",
                "input": f"Hello {n // 2}.\nGo on with {n // 2}.",
                "context": "Fast. Slow. Warm.",
                "output": words,
            }
            | {"human": human, "unieval": human}
        )
    file = tmp_path / "topical_chat.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return file


def run(tmp_path: Path, *given: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    assert lmunit_training.main([*given, *SMALL, "-o", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_a_causal_base_learns_helpsteer2_from_0_to_6_and_is_asked_for_table_1(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    base = random_llama(tmp_path / "base", TEMPLATE, further=[*"0123456"], longest=256)
    rows = [
        {"prompt": f"{n // 2}", "response": "good new" if n % 2 else "broken old"}
        | dict.fromkeys(DIMENSIONS["helpsteer2"], 4 * (n % 2))
        for n in range(40)
    ]
    data, tested, folder = tmp_path / "hs2.jsonl", tmp_path / "tested.jsonl", tmp_path / "scorers"
    data.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    given = ["helpsteer2", "--data", str(data), "--base", str(base), "--folds", "2", "--only", "1", "--levels", "7"]
    out = tmp_path / "out.json"
    given += ["--arms", "all three", "--folder", str(folder), "--batch-size", "100", *SMALL, "--longest", "250"]
    assert lmunit_training.main([*given, "-o", str(out)]) == 0
    assert [each["scorer"] for each in json.loads(out.read_text())["rows"]][:2] == ["the base, untrained", "all three"]
    scorer = folder / "helpsteer2-0-all-three"
    assert json.loads((scorer / "scorer.json").read_text())["levels"] == 7
    asked = [{"query": "0", "response": word, "natural_unit_test": "nice", "label": 1} for word in ("good", "old")]
    tested.write_text("".join(json.dumps(each) + "\n" for each in asked), encoding="utf-8")
    scores = ["scores", "infobench", "--data", str(tested), "--model", str(scorer), "--kinds", "soft", "-o", str(out)]
    assert lmunit.main([*scores, "--cache", str(tmp_path / "store.db")]) == 0
    assert json.loads(out.read_text())["rows"][0]["all"]["n"] == 2


def test_every_document_is_tested_on_once_by_a_scorer_that_did_not_learn_from_it(
    data: Path, tmp_path: Path, tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    seen: list[dict[str, str]] = []
    train = common.train

    def watched(examples: Any, **settings: Any) -> Any:
        seen.append({each.id: each.metadata["split"] for each in examples})
        return train(examples, **settings)

    monkeypatch.setattr(common, "train", watched)
    given = ["topical_chat", "--data", str(data), "--base", str(tiny_base), "--folds", "2"]
    found = run(tmp_path, *given, "--arms", "preference", "all three")
    assert found["command"].startswith("python -m askance.experiments.reproduce.lmunit_training topical_chat --data")
    assert len(seen) == 4 and found["examples"] == 48
    tested = [{name for name, part in each.items() if part == "test"} for each in seen[::2]]
    assert not tested[0] & tested[1] and len(tested[0] | tested[1]) == 48
    for each in seen:
        assert all(each[f"e{n}"] == each[f"e{n + 1}"] for n in range(0, 48, 2))  # one conversation
    rows = {row["scorer"]: row for row in found["rows"]}
    assert {*rows} == {
        *("the base, untrained", "preference", "all three", "length of the output", "UniEval (T5), published")
    }
    assert rows["UniEval (T5), published"]["mean"]["spearman"] == pytest.approx(1)
    assert {*found["all three beyond"]} == {*rows} - {"all three"}
    assert {each["fold"] for each in found["trainings"]} == {0, 1}


def test_a_judge_is_distilled_beside_people_and_what_is_kept_is_said(
    data: Path, tmp_path: Path, tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    learned: list[tuple[int, bool]] = []
    train = common.train

    def watched(examples: Any, **settings: Any) -> Any:
        learned.append((sum(bool(each.human) for each in examples), settings["verdicts"] is not None))
        return train(examples, **settings)

    monkeypatch.setattr(common, "train", watched)

    def says(request: Request) -> float:
        """Of good outputs yes; surer the higher their number, so that no two are alike."""
        output = request.about[1].output if request.about else ""
        return (0.6 if "good" in output else 0.1) + int(output.split()[-1]) / 200

    words = ["topical_chat", "--data", str(data), "--base", str(tiny_base), "--folds", "2", "--teacher", "stands/in"]
    given = lmunit_training._parser().parse_args([*words, *SMALL])
    given.teacher = ScriptedModel(says)
    found = lmunit_training.people(given, tmp_path / "scorers")
    assert learned == 2 * [(24, True), (48, False), (48, True)]  # people's scores of test alone, all, all
    assert found["teacher"]["verdicts"] == 48 * 4 and found["teacher"]["cpu_ms_a_verdict"] > 0
    assert {*found["kept"]} == {"the judge's verdicts", "people's scores", "both"}
    rows = {row["scorer"]: row["mean"]["spearman"] for row in found["rows"]}
    for name, each in found["kept"].items():
        assert each["share_of_spearman"]["value"] == pytest.approx(rows[name] / rows["the judge"])
    assert {"the judge", "the judge's verdicts"} < {*found["both beyond"]}


def test_a_simulated_judge_is_distilled_and_its_share_is_said(tmp_path: Path, tiny_base: Path) -> None:
    pytest.importorskip("torch")
    found = run(
        tmp_path,
        "simulated",
        "--size",
        "120",
        "--base",
        str(tiny_base),
        "--arms",
        "cross-entropy",
        "preference",
        "all three",
    )
    assert found["simulated"] is True and found["judge"] == "simulated/perfect"
    assert found["teacher"]["spearman"] > 0.3
    row, alone, _, without = found["rows"]
    assert without["scorer"] == "all three, people alone" and "verdict" not in without["training_items"]
    assert alone["verdicts"] is None  # it learned from pairs alone
    assert {*found["all three beyond"]} == {"cross-entropy", "preference", "all three, people alone"}
    assert {*found["all three beyond"]["preference"]} == {"people", "truth"}
    assert row["kept"] == pytest.approx(row["spearman"] / found["teacher"]["spearman"])
    assert row["training_items"]["verdict"] > 200


def test_a_simulated_judge_may_have_errors(tmp_path: Path, tiny_base: Path) -> None:
    pytest.importorskip("torch")
    given = ("simulated", "--size", "120", "--base", str(tiny_base), "--arms", "preference")
    right, wrong = run(tmp_path, *given), run(tmp_path, *given, "--errors")
    assert wrong["judge"] == "simulated/judge"
    assert wrong["teacher"]["spearman"] < right["teacher"]["spearman"]


def test_differences_are_pooled_over_worlds(tmp_path: Path, tiny_base: Path) -> None:
    pytest.importorskip("torch")
    small = ("simulated", "--size", "120", "--base", str(tiny_base), "--learning-rate", "4e-3")
    small += ("--arms", "cross-entropy", "all three")
    alone = run(tmp_path, *small, "--seed", "4", "--folder", str(tmp_path / "kept"))
    found = run(tmp_path, *small, "--seed", "3", "--seeds", "2", "--folder", str(tmp_path / "kept"))
    del alone["command"]
    assert len(found["worlds"]) == 2 and found["worlds"][1] == alone != found["worlds"][0]
    one, other = (each["all three beyond"]["cross-entropy"]["truth"] for each in found["worlds"])
    mean = found["mean over worlds"]["all three beyond"]["cross-entropy"]["truth"]
    assert mean["value"] == pytest.approx((one["value"] + other["value"]) / 2) and mean["worlds"] == 2
    width = mean["high"] - mean["low"]
    assert 0 < width < max(each["high"] - each["low"] for each in (one, other))
    assert (mean["p_value"] < 0.5) == (mean["value"] > 0)


def test_worlds_in_which_nothing_differs_have_no_p_value() -> None:
    alike, constant = Difference(0.0, 9, 0.0, 0.0, 1.0, None, 0.0), Difference(None, 9, None, None, None, "constant")
    assert _pooled([alike, alike]) == {"value": 0.0, "low": 0.0, "high": 0.0, "p_value": None, "worlds": 2}
    assert _pooled([alike, constant])["value"] is None
    apart = replace(alike, value=0.2, standard_error=0.1)
    found = _pooled([apart, apart])
    assert found["value"] == pytest.approx(0.2) and found["p_value"] == pytest.approx(0.0023, abs=1e-4)  # z = 2.83


def test_people_compare_outputs_that_nobody_judged(tmp_path: Path, tiny_base: Path) -> None:
    world = SimulatedWorld(size=12)
    pairs = compared(world, 30)
    assert len({each["input"] for each in pairs}) == 30 and not {each["input"] for each in pairs} & {
        each["input"] for each in world.rows
    }
    better = [each for each in pairs if each["preferred"] != "tie"]
    fewer = [len(each["output_a"]) - len(each["output_b"]) for each in better if each["preferred"] == "a"]
    assert len(better) > 20 and sum(fewer) < 0, "what is better has fewer faults, and says less"
    pytest.importorskip("torch")
    small = ("simulated", "--size", "120", "--base", str(tiny_base), "--arms", "cross-entropy", "preference")
    found = run(tmp_path, *small, "--errors", "2", "0", "--pairs", "30")
    assert (found["unseen"], found["punished"], found["pairs"]) == (2, 0, 30)
    said, compared_too, _ = (each["training_items"] for each in found["rows"])
    assert compared_too["preference"] > 0 and said["verdict"] > 200


def test_an_author_rewrites_for_a_grade_and_judges_what_has_no_id() -> None:
    world = SimulatedWorld(size=3, judge_noise=0, wobble=0)
    author = SimulatedAuthor(SimulatedJudge(world, perfect=True))
    question, *_ = world.checklist.questions

    def ask(text: str, system: str = "") -> str:
        request = make_request(author.identity, [("user", f"{system}{text}")], Parameters(20))
        return asyncio.run(author.answer(request)).text

    def rewritten(grade: int) -> str:
        asked = f"Question: {question.text}\n\nRewrite it so that the reader {GRADES[grade]}"
        of = f"The output:\n<oak>\nn1 f2.\n</oak>\n\n{asked}"
        return ask(of, "What was asked for:\nAn article.\n\n")

    def judged(output: str) -> str:
        return ask(f"Output:\n<oak>\n{output}\n</oak>\n\nQuestion: {question.text}\nAnswer with one word: yes or no.")

    assert rewritten(4) == "f2." and rewritten(2) == "f2 n9." and rewritten(0) in ("f2 n2.", "f2 n3.")
    assert [judged(rewritten(each)) for each in (0, 2, 4)] == ["No", "Yes", "Yes"]


def test_each_kind_of_data_is_learned_from_alone_and_with_others(tmp_path: Path, tiny_base: Path) -> None:
    pytest.importorskip("torch")
    small = ("simulated", "--size", "120", "--base", str(tiny_base), "--errors", "2", "0")
    found = run(tmp_path, *small, "--pairs", "30", "--contrasts", "24", "--mixes")
    learned = {row["scorer"]: row["training_items"] for row in found["rows"]}
    assert {name: [*each] for name, each in learned.items()} == {
        "ratings": ["rating"],
        "ratings and verdicts": ["rating", "verdict"],
        "pairs": ["preference"],
        "synthetic pairs": ["preference"],
        "pairs and synthetic pairs": ["preference"],
        "ratings, verdicts and pairs": ["rating", "verdict", "preference"],
        "all of it": ["rating", "verdict", "preference"],
    }
    pairs, made, both, without, whole = ([*learned.values()][place]["preference"] for place in range(2, 7))
    assert 0 < made == both - pairs == whole - without
    assert {*found["all of it beyond"]} == {*learned} - {"all of it"}


def test_mixes_need_what_is_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert lmunit_training.main(["simulated", "--mixes", "--pairs", "3"]) == 2
    assert says(capsys.readouterr().err, "--mixes", "--pairs", "--contrasts")


@pytest.mark.parametrize(("errors", "said"), [(["3"], "takes two numbers"), (["99", "0"], "99 0: blind must be")])
def test_errors_are_none_or_two_numbers(capsys: pytest.CaptureFixture[str], errors: list[str], said: str) -> None:
    assert lmunit_training.main(["simulated", "--errors", *errors]) == 2
    assert f"--errors {said}" in capsys.readouterr().err


def test_the_sentences_nearest_to_an_output_are_kept_in_their_order() -> None:
    text = "The cat sat. A dog ran far away. Birds sing here. The dog came back."
    assert nearest(text, "dog back far", 6) == "A dog ran far away. The dog came back."
    assert nearest(text, "birds", 1) == "Birds sing here."
    assert nearest("", "x", 5) == ""


def test_one_fold_is_refused(data: Path, tmp_path: Path) -> None:
    given = lmunit_training._parser().parse_args(["topical_chat", "--data", str(data), "--folds", "1"])
    with pytest.raises(InputError, match=naming("at least 2")):
        lmunit_training.people(given, tmp_path)
    assert list(ARMS.values())[-1] == (1.0, 1.0, 1.0)
