"""The LMUnit tables: what each row counts, that nothing is bought twice, and what is said where data is missing."""

from __future__ import annotations

import json
import re
from math import log
from pathlib import Path
from typing import Any

import pytest

from askance.experiments.datasets.pairs import load_llmbar
from askance.experiments.reproduce import lmunit
from askance.experiments.reproduce.eig import agreement_gains
from askance.experiments.reproduce.lmunit import query_table
from askance.experiments.reproduce.unit_tests import KINDS, load_sections, spread, variants
from askance.models.base import Answer, Request
from askance.prompts.checklist import Checklist, Question, load_checklist
from askance.prompts.errors import InputError
from askance.prompts.preferences import Preference
from askance.testing import Reply, ScriptedModel

from ...said import naming, says

pytestmark = pytest.mark.usefixtures("sandbox")
PAIRS = 12
TESTS = 8


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two sections in which output <n> is better the higher n is, but for every fourth pair."""
    paths = []
    for part in ("natural", "neighbor"):
        rows = []
        for n in range(PAIRS // 2):
            a, b = n % 5, (n % 5 + 1 + n % 2) % 5
            better = "a" if (a > b) is bool(n % 4) else "b"
            row = {"id": f"{part}-{n}", "input": f"Ask {part} {n}.", "preferred": better}
            rows.append(row | {"output_a": f"secret <{a}>", "output_b": f"secret <{b}>"})
        path = tmp_path / f"llmbar_{part}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        paths.append(str(path))
    return paths


def script(request: Request) -> Reply:
    """The number in the output decides; as a score from 0 to 6 the expected one tells more than the likeliest."""
    if request.parameters.schema is not None:
        return json.dumps({"questions": [{"text": f"Is part {n} done well?", "violation": "Not."} for n in range(3)]})
    text = "\n".join(part for _, part in request.messages)
    shown = int(re.findall(r"secret <(\d)>", text)[-1])
    if "from 0 to 6" not in text:
        return 0.55 + shown / 10
    masses = {"3": 0.5, "4": 0.1 + shown / 20, "2": 0.4 - shown / 20}
    return Answer("3", (("3", tuple((token, round(log(mass), 4)) for token, mass in masses.items())),))


def table(tmp_path: Path, model: ScriptedModel, *given: str) -> dict[str, Any] | None:
    arguments = [*given, "--cache", str(tmp_path / "store.db"), "-o", str(tmp_path / "out.json")]
    return lmunit.run(lmunit._parser().parse_args(arguments), model)


def test_expected_and_greedy_scores_read_the_same_calls_and_yes_no_the_others(tmp_path: Path, files: list[str]) -> None:
    model = ScriptedModel(script)
    found = table(tmp_path, model, "scores", "llmbar", "--data", *files)
    assert found is not None
    assert len(model.requests) == found["calls"] == 2 * 2 * TESTS * PAIRS
    every = {row["kind"]: row["all"] for row in found["rows"] if row["tests"] == "all 8 tests"}
    assert list(every) == list(KINDS)
    assert every["said"] == every["said"] | {"accuracy": 0.5, "ties": PAIRS}, "the likeliest score is always 3"
    assert every["hard"]["ties"] == PAIRS, "P(yes) is above one half for all"
    assert every["expected"]["accuracy"] == every["soft"]["accuracy"]
    assert every["expected"]["ties"] == 0 and 0 < every["expected"]["accuracy"] < 1
    assert found["expected_less_said"]["value"] == pytest.approx(every["expected"]["accuracy"] - 0.5)
    assert list(found["rows"][0]["sections"]) == ["llmbar_natural", "llmbar_neighbor"]
    assert "secret" not in (tmp_path / "out.json").read_text(encoding="utf-8")
    again = ScriptedModel(script)
    assert table(tmp_path, again, "rubric", "llmbar", "--data", *files) is not None
    assert len(again.requests) == 2 * TESTS * PAIRS, "the plain questions were in the store"


def unit_tested(tmp_path: Path, **more: Any) -> str:
    """Outputs with a unit test each; people's score is what is hidden in the output."""
    rows = [
        {"query": f"Ask {n}.", "response": f"secret <{n % 5}>", "natural_unit_test": f"Is it {n // 5}?"}
        | {name: value(n % 5) for name, value in more.items()}
        for n in range(20)
    ]
    file = tmp_path / "tested.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(file)


def test_examples_with_a_unit_test_of_their_own_are_asked_it_in_every_composition(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"rubric": lambda n: "0: no. 6: yes.", "reference_answer": lambda n: "It is."}
    file = unit_tested(tmp_path, human_score=lambda n: [n + 1, n + 1], **parts)
    model = ScriptedModel(script)
    found = table(tmp_path, model, "scores", "flask", "--data", file, "--kinds", "expected,said")
    assert found is not None and found["metric"] == "pearson"
    assert len(model.requests) == 20, "the likeliest score reads the same calls"
    texts = ["\n".join(part for _, part in each.messages) for each in model.requests]
    assert sorted(text.count("Is it 3?") for text in texts) == [0] * 15 + [1] * 5
    assert all("Rubric: 0: no." in text and "Reference answer: It is." in text for text in texts)
    expected, greedy = (row["all"] for row in found["rows"])
    assert expected["value"] == pytest.approx(1.0) and expected["n"] == 20
    assert greedy["value"] is None, "the likeliest score is always 3"
    again = ScriptedModel(script)
    compositions = table(tmp_path, again, "rubric", "flask", "--data", file)
    assert compositions is not None and len(again.requests) == 3 * 20, "the whole composition was in the store"
    assert [row["technique"] for row in compositions["rows"]] == [
        "question", "question + rubric", "question + reference", "question + rubric + reference"
    ]  # fmt: skip


def test_labels_of_experts_are_told_by_accuracy(tmp_path: Path) -> None:
    file = unit_tested(tmp_path, label=lambda n: int(n > 2))
    found = table(tmp_path, ScriptedModel(script), "scores", "infobench", "--data", file, "--kinds", "soft,hard")
    assert found is not None and found["metric"] == "accuracy"
    soft, hard = (row["all"] for row in found["rows"])
    assert (soft["value"], hard["value"], soft["n"]) == (0.4, 0.4, 20), "P(yes) is above one half for all"
    with pytest.raises(InputError, match=naming("infobench", "rubric")):
        table(tmp_path, ScriptedModel(script), "rubric", "infobench", "--data", file)


def test_scores_are_asked_for_on_the_papers_scale_unless_another_is_named(tmp_path: Path, files: list[str]) -> None:
    for given, said in (([], "from 0 to 6"), (["--scale", "1", "5"], "from 1 to 5")):
        model = ScriptedModel(lambda request: Answer("3", (("3", (("3", -0.1),)),)))
        table(tmp_path, model, "scores", "llmbar", "--data", *files, "--kinds", "said", "--limit", "2", *given)
        assert model.requests and all(said in request.messages[-1][1] for request in model.requests)
    with pytest.raises(InputError, match=naming("--scale 5 1")):
        table(tmp_path, ScriptedModel(script), "scores", "llmbar", "--data", *files, "--scale", "5", "1")


def test_a_dry_run_counts_the_calls_and_makes_none(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = ScriptedModel(script)
    for name, said in (
        ("scores", f"{4 * TESTS * 10} calls"),
        ("weights", f"{2 * TESTS * 10} calls"),
        ("rubric", f"{4 * TESTS * 10} calls"),
        ("query", "10 calls to write tests and at most 160 to judge"),
    ):
        assert table(tmp_path, model, name, "llmbar", "--data", *files, "--limit", "10", "--dry-run") is None
        assert capsys.readouterr().out.strip() == said
    assert not model.requests


def test_learned_weights_stand_beside_one_test_and_equal_weights_on_held_out_pairs(
    tmp_path: Path, files: list[str]
) -> None:
    found = table(
        tmp_path, ScriptedModel(script), "weights", "llmbar", "--data", *files, "--learner", "robust", "--splits", "4"
    )
    assert found is not None
    rows = {row["technique"]: row for row in found["rows"]}
    assert list(rows) == [
        "single test (helpful)",
        "unweighted tests",
        "learned weights, robust",
        "learned weights by section (apart), robust",
        "learned weights by section (pooled), robust",
    ]
    assert {row["all"]["n"] for row in rows.values()} == {4 * PAIRS // 2}
    sections = rows["unweighted tests"]["sections"]
    mean = sum(cell["accuracy"] for cell in sections.values()) / 2
    assert rows["unweighted tests"]["mean_of_sections"] == pytest.approx(mean)


def test_tests_are_written_for_each_input_and_weigh_less_the_later_they_come(tmp_path: Path, files: list[str]) -> None:
    model = ScriptedModel(script)
    found = table(tmp_path, model, "query", "llmbar", "--data", *files)
    assert found is not None
    assert len(model.requests) == PAIRS + 2 * 3 * PAIRS
    assert [row["technique"] for row in found["rows"]] == [
        "single test (the first)", "unweighted tests", "decaying weights, 0.8^n"
    ]  # fmt: skip
    assert found["left_out"] == [] and found["without_tests"] == []


def test_decaying_weights_let_the_first_tests_decide() -> None:
    pair = Preference(id="p", input="i", output_a="x", output_b="y", preferred="a")
    tests = {"p": Checklist(questions=tuple(Question(id=name, text=f"Is it {name}?") for name in ("q1", "q2", "q3")))}
    cells = {("p/a", "q1"): 0.6, ("p/b", "q1"): 0.0, ("p/a", "q2"): 0.0, ("p/b", "q2"): 0.3}
    cells |= {("p/a", "q3"): 0.0, ("p/b", "q3"): 0.4}
    rows, left_out = query_table([pair], tests, cells, 0)
    assert [row["all"]["accuracy"] for row in rows] == [1.0, 0.0, 1.0]
    assert left_out == []
    rows, left_out = query_table([pair], tests, {**cells, ("p/b", "q3"): None}, 0)
    assert left_out == ["p"]
    assert rows[0]["all"] == {"accuracy": None, "reason": rows[0]["all"]["reason"]} and says(
        rows[0]["all"]["reason"], "no decided pair"
    )


def test_rated_data_give_pearson_for_expected_scores(tmp_path: Path) -> None:
    data = tmp_path / "q.jsonl"
    rows = [
        {"id": str(n), "input": f"Text {n}.", "output": f"secret <{n % 5}>", "human": {"consistency": (n % 5) / 4}}
        for n in range(10)
    ]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = table(tmp_path, ScriptedModel(script), "scores", "qags", "--data", str(data), "--kinds", "expected,said")
    assert found is not None and found["metric"] == "pearson"
    expected, said = (row["all"] for row in found["rows"])
    assert expected["value"] == pytest.approx(1.0, abs=1e-6)
    assert said["value"] is None and "constant" in said["reason"]
    rubric = table(tmp_path, ScriptedModel(script), "rubric", "qags", "--data", str(data))
    assert rubric is not None
    assert [row["technique"] for row in rubric["rows"]] == ["question", "question + rubric"]
    with pytest.raises(InputError, match="needs preference pairs"):
        table(tmp_path, ScriptedModel(script), "weights", "qags", "--data", str(data))


def test_our_rubrics_are_for_the_questions_that_are_there() -> None:
    for name in ("global", "qags"):
        path = "global" if name == "global" else lmunit.CHECKLISTS / f"{name}.yaml"
        found = variants(load_checklist(path), name)
        assert list(found) == ["question", "question + rubric"]
        assert all(each.rubric for each in found["question + rubric"].questions)
        assert not any(each.rubric for each in found["question"].questions)
    own = Checklist(questions=(Question(id="q", text="Is it so?", rubric="5: yes.", reference="Berlin"),))
    assert list(variants(own, "none"))[-1] == "question + rubric + reference"
    with pytest.raises(InputError, match=naming("rubric", "reference answer")):
        variants(Checklist(questions=(Question(id="q", text="Is it so?"),)), "none")


def test_a_limit_takes_pairs_from_all_sections_and_a_higher_one_only_adds(files: list[str]) -> None:
    pairs = load_sections("llmbar", files)
    assert [pair.id for pair in spread(pairs, 3)] == ["natural-0", "natural-1", "neighbor-0"]
    assert {pair.id for pair in spread(pairs, 3)} < {pair.id for pair in spread(pairs, 7)}
    with pytest.raises(InputError, match=naming("two of")):
        load_sections("llmbar", [files[0], files[0]])


def test_without_a_file_or_the_hub_the_message_says_what_file_to_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unreachable:
        @staticmethod
        def load_dataset(*_: Any, **__: Any) -> Any:
            raise ConnectionError("no route")

    monkeypatch.setitem(__import__("sys").modules, "datasets", Unreachable())
    for name, columns in (
        ("reward_bench", "prompt, chosen, rejected, subset"),
        ("llmbar", "output_1, output_2, label"),
    ):
        assert lmunit.main(["scores", name, "--model", "openai/m"]) != 0
        said = capsys.readouterr().err
        assert says(said, "Hugging Face hub")
        assert columns in said and "--data" in said
    with pytest.raises(Exception, match="--data"):
        load_llmbar()


def test_the_first_judges_gain_in_agreement_is_paired_on_the_same_examples() -> None:
    names = [f"e{n}" for n in range(20)]

    def said(shift: float) -> list[dict[str, Any]]:
        return [
            {"example": name, "dimension": "d", "score": min(1.0, (n % 5) / 4 + shift)} for n, name in enumerate(names)
        ]

    found = agreement_gains(
        {
            "common": names,
            "dimensions": ["d"],
            "human": {name: {"d": (n % 5) / 4} for n, name in enumerate(names)},
            "ratings": {"binary": said(0.0), "direct": said(0.75), "dead": []},
            "left_out": ["dead"],
            "points": 5,
            "tolerance": 1,
        }
    )
    assert [(row["judge"], row["than"]) for row in found] == [("binary", "direct")]
    assert found[0]["value"] == pytest.approx(0.6), "of 5 levels the two upper ones stay within a point"
    assert found[0]["low"] > 0
