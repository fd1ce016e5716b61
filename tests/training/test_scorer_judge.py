"""``judge.yaml`` beside a scorer: its folder is a judge, wherever it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import askance
from askance.evaluation.judge_file import parse_judge
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.training.train import train

from .conftest import CHECKLIST, SMALL, made, said

pytest.importorskip("torch")
pytest.importorskip("transformers")


def labelled(count: int) -> list[Example]:
    """People pass what is good and not broken."""
    return [each.model_copy(update={"human": {"overall": (each.human["quality"][0] > 0.8,)}}) for each in made(count)]


@pytest.fixture(scope="module")
def scorer(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trained") / "scorer"
    examples = labelled(240)
    train(examples, checklist=CHECKLIST, output=place, base=str(tiny_base), verdicts=said(examples), **SMALL)
    return place


def test_the_folder_is_a_judge_with_its_checklist_and_threshold(scorer: Path) -> None:
    judge = askance.load_judge(scorer)
    assert judge.checklist == CHECKLIST
    assert judge.threshold is not None and 0 < judge.threshold < 1
    assert judge.figures is not None and judge.figures.reference == "human"
    test = judge.figures.test
    assert test.spearman is not None and test.spearman > 0.6
    assert test.accuracy is not None and test.accuracy.value is not None and test.accuracy.value > 0.9
    fresh = labelled(320)[240:]
    found = judge.evaluate(fresh, no_cache=True)
    by_model = askance.evaluate(fresh, checklist=CHECKLIST, model=str(scorer), no_cache=True)
    assert [each.overall for each in found.scores] == [each.overall for each in by_model.scores]
    assert found.passing is not None
    agreed = [found.passing.passed[each.id] == (each.human["overall"][0] == 1) for each in fresh]
    assert sum(agreed) / len(agreed) > 0.9
    with judge.open(no_cache=True) as asked:
        for example, score in zip(fresh[:5], found.scores, strict=False):
            one = asked.score(example)
            assert one.overall == pytest.approx(score.overall, abs=1e-5)
            assert one.passed is found.passing.passed[example.id]


def test_unlabelled_outputs_have_a_pass_rate_corrected_by_the_figures_of_test(scorer: Path) -> None:
    fresh = [each.model_copy(update={"human": {}}) for each in made(320)[240:]]
    found = askance.load_judge(scorer).evaluate(fresh, no_cache=True)
    assert found.passing is not None and found.passing.corrected is not None


def test_the_folder_may_be_moved(scorer: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(scorer, moved)
    judge = askance.load_judge(moved / "judge.yaml")
    assert judge.model == str(moved)
    assert judge.evaluate(made(3), no_cache=True).coverage.share == 1
    text = (moved / "judge.yaml").read_text()
    assert str(scorer) not in text and parse_judge(text, "judge.yaml").model == "."
    (moved / "scorer.json").unlink()
    with pytest.raises(InputError, match="elsewhere"):
        judge.evaluate(made(3), no_cache=True)


def test_without_labels_it_has_no_threshold_and_without_people_no_figures(tiny_base: Path, tmp_path: Path) -> None:
    brief = SMALL | {"epochs": 1}
    examples = made(60)
    train(examples, checklist=CHECKLIST, output=tmp_path / "rated", base=str(tiny_base), **brief)
    rated = askance.load_judge(tmp_path / "rated")
    assert rated.threshold is None and rated.figures is not None and rated.figures.test.accuracy is None
    nobody = [each.model_copy(update={"human": {}}) for each in examples]
    train(
        nobody, checklist=CHECKLIST, output=tmp_path / "taught", base=str(tiny_base), verdicts=said(examples), **brief
    )
    taught = askance.load_judge(tmp_path / "taught")
    assert taught.threshold is None and taught.figures is None
