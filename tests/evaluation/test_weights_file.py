from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.evaluation.weights_file import weighted_by, with_weights
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from tests.said import naming, says

CHECKLIST = Checklist(questions=(Question(id="q", text="Is it?"), Question(id="r", text="Was it?")))
WEIGHTS = {"q": 0.75, "r": 0.25}
SECTIONS = {"x": {"weights": {"q": 0.5, "r": 0.5}}}


def write(tmp_path: Path, **fields: object) -> Path:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"weights": WEIGHTS} | fields), encoding="utf-8")
    return path


def examples(*sections: str | None) -> list[Example]:
    return [
        Example(id=str(n), input="Ask.", output="Said.", metadata={} if name is None else {"section": name})
        for n, name in enumerate(sections)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"weights": {"q": -1}}', "weights.q"),
        ('{"weights": {"q": 0}}', "every weight is 0"),
        ('{"q": "much"}', "weights.q"),
        ("[1]", "an object"),
        ("{", "not valid JSON"),
    ],
)
def test_a_bad_weights_file_is_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "weights.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        weighted_by(CHECKLIST, path)


def test_weights_go_into_a_checklist_with_a_mean_of_one() -> None:
    checklist = Checklist(questions=(Question(id="q", text="Is it?"), Question(id="r", text="Was it?")))
    weighted = with_weights(checklist, {"q": 0.75, "r": 0.25})
    assert [question.weight for question in weighted.questions] == [1.5, 0.5]
    assert [question.weight for question in checklist.questions] == [1, 1]
    with pytest.raises(InputError, match=naming("no weight", "'r'")):
        with_weights(checklist, {"q": 1.0})
    with pytest.raises(InputError, match="name 's'"):
        with_weights(checklist, {"q": 1.0, "r": 1.0, "s": 1.0})


def test_weights_of_comparisons_are_refused_for_outputs_judged_alone(tmp_path: Path) -> None:
    path = write(tmp_path, scores="pairwise")
    with pytest.raises(InputError, match=naming("weights.json", "comparisons", "--pairwise")) as said:
        weighted_by(CHECKLIST, path)
    assert said.value.exit_code == 2


@pytest.mark.parametrize(
    ("learned", "used", "said"),
    [
        ({"scores": "soft"}, "expected", "learned from soft scores, but here scores are expected. Use --scores soft"),
        ({"scores": "hard"}, "soft", "learned from hard scores"),
        ({"scores": "soft"}, "soft", ""),
        ({"scores": "given"}, "soft", ""),
        ({}, "soft", ""),
        ({"scores": "soft"}, None, ""),
    ],
)
def test_weights_of_another_kind_of_score_are_taken_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, learned: dict[str, str], used: str | None, said: str
) -> None:
    weighted = weighted_by(CHECKLIST, write(tmp_path, **learned), scores=used)  # type: ignore[arg-type]
    assert weighted.weights() == {"q": 1.5, "r": 0.5}
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


def test_an_unknown_kind_of_score_is_refused_and_a_test_may_be_called_scores(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field 'scores': input should be 'given'"):
        weighted_by(CHECKLIST, write(tmp_path, scores="sof"))
    plain = tmp_path / "plain.json"
    plain.write_text('{"scores": 1}', encoding="utf-8")
    about_scores = Checklist(questions=(Question(id="scores", text="Is it?"),))
    assert weighted_by(about_scores, plain).weights() == {"scores": 1.0}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ((None, None), "weights for sections (x), but all of 2 examples are in none of these"),
        (("x", "y"), "1 of 2 examples is in none"),
        (("x", "x"), ""),
    ],
)
def test_examples_outside_the_sections_of_a_file_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, there: tuple[str | None, ...], said: str
) -> None:
    weighted_by(CHECKLIST, write(tmp_path, sections=SECTIONS), examples=examples(*there))
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


def test_a_file_without_sections_says_nothing_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weighted_by(CHECKLIST, write(tmp_path), examples=examples("x", None))
    assert caplog.text == ""


def test_a_wrong_weight_of_a_section_is_named_with_its_section(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    sections = {"chat": {"weights": {"a": 1, "b": -1}}}
    path.write_text(json.dumps({"weights": {"a": 1, "b": 2}, "sections": sections}), encoding="utf-8")
    checklist = Checklist(questions=[Question(id="a", text="A?"), Question(id="b", text="B?")])
    with pytest.raises(InputError) as refused:
        weighted_by(checklist, path)
    assert says(refused.value, path, "'sections.chat.weights.b'", "0")
