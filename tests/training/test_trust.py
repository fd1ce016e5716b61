"""A teacher that is wrong: its verdicts are left out where people alone teach more, and said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.models.trained.network import open_network
from askance.models.trained.scorer_file import read_scorer, scored_text
from askance.prompts.examples import Example
from askance.prompts.text_files import read_object
from askance.prompts.verdicts import Verdict, VerdictColumns
from askance.report.scorer_page import render_scorer
from askance.training.scorer_folder import TrainResult
from askance.training.train import train

from ..said import says
from .conftest import CHECKLIST, SMALL, made, p_yes, said

pytest.importorskip("torch")
pytest.importorskip("transformers")


def misled(examples: list[Example]) -> VerdictColumns:
    """Verdicts of a judge that answers the other question of the two, the wrong way round."""
    return VerdictColumns(
        Verdict(each.id, question, "openai/teacher", "0", p >= 0.5, p, "logprob")
        for each in examples
        for question, other in (("good", "broken"), ("broken", "good"))
        for p in [p_yes(other, each.output or "")]
    )


def rated(count: int, share: int) -> list[Example]:
    """Examples of which people rated all of validation and test and every ``share``-th for training."""
    found = []
    for place, each in enumerate(made(count)):
        part = ("validation", "test", *4 * ("development",))[place % 6]
        human = each.human if part != "development" or place // 6 % share == 0 else {}
        found.append(each.model_copy(update={"human": human, "metadata": {"split": part}}))
    return found


@pytest.fixture(scope="module")
def distrusted(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    place, examples = tmp_path_factory.mktemp("trust") / "scorer", rated(360, 1)
    return train(examples, checklist=CHECKLIST, output=place, base=str(tiny_base), verdicts=misled(examples), **SMALL)


def test_a_teacher_that_people_disagree_with_is_not_learned_from(distrusted: TrainResult) -> None:
    trust = distrusted.data["trust"]
    assert trust["kept"] == "people" and trust["n"] == 60
    assert trust["people"] > trust["both"] + 0.3
    assert trust["people_ahead"]["value"] == pytest.approx(trust["people"] - trust["both"])
    people = distrusted.data["test"]["people"]
    assert people["scorer"]["spearman"] > 0.6 > 0 > people["teacher"]["spearman"]
    assert people["with_verdicts"]["spearman"] < people["scorer"]["spearman"] and "people_alone" not in people
    ahead = distrusted.data["test"]["beyond"]["with_verdicts"]
    assert ahead["value"] == pytest.approx(people["scorer"]["spearman"] - people["with_verdicts"]["spearman"])
    assert ahead["low"] > 0 and "with the verdicts: +" in str(distrusted)
    assert says(distrusted, "left out", "people", "60 outputs")
    page = render_scorer(distrusted.data, "train.json")
    assert "were left out" in page and "learned from none" in page
    assert distrusted.data["price"]["training_cpu_seconds"] == pytest.approx(
        distrusted.data["curve"]["cpu_seconds"] + trust["cpu_seconds"]
    )


def test_the_weights_are_those_of_people_alone(distrusted: TrainResult, tiny_base: Path, tmp_path: Path) -> None:
    examples = rated(360, 1)
    train(examples, checklist=CHECKLIST, output=tmp_path / "alone", base=str(tiny_base), **SMALL)
    texts = [scored_text(question, each) for each in examples[:6] for question in CHECKLIST.questions]
    one, other = (
        open_network(place, read_scorer(place)).levels(texts).tolist()
        for place in (Path(distrusted.data["scorer"]), tmp_path / "alone")
    )
    assert one == other


def test_a_teacher_that_people_agree_with_is(tiny_base: Path, tmp_path: Path) -> None:
    examples = rated(360, 8)
    given = {"checklist": CHECKLIST, "base": str(tiny_base), "verdicts": said(examples)} | SMALL
    found = train(examples, output=tmp_path / "a", **given)
    assert found.data["trust"]["kept"] == "both"
    assert says(found, "learned from", "with them")
    people = found.data["test"]["people"]
    assert [*people] == ["scorer", "teacher", "base", "people_alone"]
    train(examples, output=tmp_path / "b", **given | {"verdicts": None})
    alone = read_object(tmp_path / "b" / "train.json", "result")["test"]["people"]["scorer"]["spearman"]
    assert people["people_alone"]["spearman"] == pytest.approx(alone)
    assert "from people alone" in str(found)
    assert "people alone with people" in render_scorer(found.data, "train.json")


def test_verdicts_are_trusted_where_that_is_said_and_where_people_rated_too_little(
    tiny_base: Path, tmp_path: Path
) -> None:
    examples = rated(120, 1)
    given = {"checklist": CHECKLIST, "base": str(tiny_base)} | SMALL | {"epochs": 1}
    trusted = train(examples, output=tmp_path / "a", verdicts=misled(examples), trust_verdicts=True, **given)
    few = [each if n % 12 else each.model_copy(update={"human": {}}) for n, each in enumerate(examples)]
    untold = train(few, output=tmp_path / "b", verdicts=misled(examples), **given)
    alone = train(examples, output=tmp_path / "c", **given)
    assert not any("trust" in each.data for each in (trusted, untold, alone))
