from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from askance.evaluation.scoring import ExampleScore, human_targets, source_targets
from askance.optimizer.selection.inputs import human_scores
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from tests.said import naming, says


def checklist(*dimensions: str) -> Checklist:
    return Checklist(questions=tuple(Question(id=name, text=f"{name}?", dimension=name) for name in dimensions))


def rated(*ratings: Mapping[str, float | Sequence[float]]) -> list[Example]:
    return [Example(id=f"e{n}", input="i", output="o", human=dict(each)) for n, each in enumerate(ratings)]


def score(overall: float | None = 0.5, **dimensions: float | None) -> ExampleScore:
    return ExampleScore("e0", overall, dimensions)


def test_observed_scores_span_the_unit_interval() -> None:
    targets = human_targets(rated({"fluency": 2}, {"fluency": 4}, {"fluency": [2, 3]}), checklist("fluency"))
    assert [targets.overall(f"e{n}") for n in range(3)] == [0, 1, 0.25]
    assert targets.kind == "human"


def test_a_given_scale_is_used_and_scores_outside_it_are_named() -> None:
    targets = human_targets(rated({"fluency": 2}, {"fluency": 3}), checklist("fluency"), (1, 5))
    assert targets.overall("e0") == 0.25
    with pytest.raises(InputError, match=naming("'e1'", "score 6", "'fluency'", "1 to 5")):
        human_targets(rated({"fluency": 2}, {"fluency": 6}), checklist("fluency"), (1, 5))
    with pytest.raises(InputError, match=naming("'e1'", "score 50", "'fluency'", "1 to 5")):
        human_targets(rated({"fluency": 2}, {"fluency": [50, -46, 4]}), checklist("fluency"), (1, 5))


@pytest.mark.parametrize("rating", [0.1, 0.7, 3.3])
def test_raters_who_agree_are_never_outside_the_scale_by_rounding(rating: float) -> None:
    examples = rated({"fluency": [rating] * 3}, {"fluency": [rating * 2] * 3})
    targets = human_targets(examples, checklist("fluency"))
    assert [targets.overall("e0"), targets.overall("e1")] == [0, 1]


def test_scores_that_are_all_the_same_have_a_place_on_a_scale_that_is_named_alone() -> None:
    alike = rated({"fluency": 3}, {"fluency": 3})
    unknown = human_targets(alike, checklist("fluency"))
    assert unknown.overall("e0") is None
    assert says(unknown.without_scale(), "fluency", "the same", "--human-scale")
    targets = human_targets(alike, checklist("fluency"), (1, 5))
    assert targets.without_scale() is None
    assert [targets.overall("e0"), targets.overall("e1")] == [0.5, 0.5]
    labels = human_targets(rated({"fluency": True}, {"fluency": True}), checklist("fluency"))
    assert [labels.overall("e0"), labels.overall("e1")] == [1, 1]


def test_only_dimensions_that_are_asked_and_rated_count() -> None:
    examples = rated({"fluency": 1, "wit": 1, "tone": 5}, {"fluency": 5, "wit": 5, "tone": 1})
    targets = human_targets(examples, checklist("fluency", "tone", "grammar"))
    assert targets.dimensions == ("fluency", "tone")
    assert targets.overall("e0") == 0.5
    assert targets.score(score(fluency=0.2, tone=0.6, grammar=1)) == pytest.approx(0.4)


def test_an_overall_rating_belongs_to_all_questions() -> None:
    targets = human_targets(rated({"overall": 1}, {"overall": 2}), checklist("fluency", "tone"))
    assert targets.dimensions == ("overall",)
    assert targets.score(score(overall=0.7, fluency=0.2, tone=None)) == 0.7


def test_an_unrated_example_has_no_target() -> None:
    targets = human_targets(rated({"fluency": 1}, {}, {"fluency": 2}), checklist("fluency"))
    assert targets.overall("e1") is None
    assert targets.overall("e2") == 1


def test_a_missing_dimension_leaves_no_overall_target_and_no_overall_score() -> None:
    targets = human_targets(rated({"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 1}), checklist("a", "b"))
    assert targets.overall("e2") is None
    assert targets.score(score(a=0.5, b=None)) is None


def test_dimensions_without_overlap_are_named_with_a_hint() -> None:
    with pytest.raises(InputError, match=r"\(fluencey\).*\(fluency\).*Did you mean 'fluency'\?"):
        human_targets(rated({"fluency": 1}), checklist("fluencey"))
    with pytest.raises(InputError, match=naming("No example", "human score", "fluency")):
        human_targets(rated({}), checklist("fluency"))


def test_the_source_is_its_own_measure() -> None:
    targets = source_targets(
        checklist("a", "b"), [score(a=0.2, b=0.4), ExampleScore("e1", None, {"a": None, "b": 1.0})]
    )
    assert targets.kind == "source"
    assert targets.overall("e0") == pytest.approx(0.3)
    assert targets.overall("e1") is None
    assert targets.dimension_score(score(a=0.9, b=0), "a") == 0.9


def test_labels_are_on_the_scale_from_0_to_1_whatever_was_observed_or_given() -> None:
    good = human_targets(rated({"fluency": True}, {"fluency": True}), checklist("fluency"), (1, 5))
    assert [good.overall("e0"), good.overall("e1")] == [1, 1]
    mixed = human_targets(rated({"fluency": True}, {"fluency": [1, False]}), checklist("fluency"))
    assert [mixed.overall("e0"), mixed.overall("e1")] == [1, 0.5]


def test_a_label_on_one_dimension_leaves_the_scale_of_another() -> None:
    examples = rated({"fluency": 2, "tone": True}, {"fluency": 3, "tone": False})
    targets = human_targets(examples, checklist("fluency", "tone"), (1, 5))
    assert targets.wanted["e0"] == {"fluency": 0.25, "tone": 1}


ASKED = Checklist(
    questions=[
        Question(id="facts", text="Facts?", dimension="quality"),
        Question(id="style", text="?", dimension="tone"),
    ]
)


def test_an_answer_to_a_question_is_no_score_of_a_dimension() -> None:
    examples = rated({"facts": False, "quality": True}, {"facts": True, "quality": False})
    assert human_targets(examples, ASKED).dimensions == ("quality",)
    with pytest.raises(InputError, match=naming("single questions", "facts", "no dimension")):
        human_targets(rated({"facts": True}), ASKED)


def test_a_name_that_is_a_dimension_and_a_question_means_the_dimension() -> None:
    both = Checklist(
        questions=[Question(id="tone", text="?", dimension="quality"), Question(id="b", text="?", dimension="tone")]
    )
    assert human_targets(rated({"tone": True}), both).dimensions == ("tone",)


def test_a_dimension_whose_questions_all_weigh_0_takes_no_score_from_the_others() -> None:
    three = checklist("fluency", "tone", "wit")
    weights = {"fluency": 1.0, "tone": 0.0, "wit": 0.0}
    questions = [each.model_copy(update={"weight": weights[each.id]}) for each in three.questions]
    some = Checklist(questions=questions, section_weights={"letters": {"fluency": 1.0, "tone": 0.0, "wit": 2.0}})
    examples = rated({"fluency": 1, "tone": 5, "wit": 1}, {"fluency": 5, "tone": 1, "wit": 5})
    targets = human_targets(examples, some)
    assert targets.dimensions == ("fluency", "wit") and targets.overall("e0") == 0
    assert human_targets(rated({"overall": 1, "tone": 5}, {"overall": 5, "tone": 1}), some).dimensions == ("overall",)
    with pytest.raises(InputError, match=naming("tone", "weighs 0", "fluency")):
        human_targets(rated({"tone": 5}, {"tone": 1}), some)
    theirs = source_targets(some, [score(0.5, fluency=0.5, wit=0.25)])
    assert theirs.dimensions == ("fluency", "wit") and theirs.overall("e0") == 0.375


def test_a_scale_given_downwards_turns_scores_and_leaves_labels() -> None:
    targets = human_targets(rated({"fluency": 1}, {"fluency": 5}, {"fluency": [1, 2]}), checklist("fluency"), (5, 1))
    assert [targets.overall(f"e{n}") for n in range(3)] == [1, 0, 0.875]
    with pytest.raises(InputError, match=naming("'e0'", "score 6", "5 to 1")):
        human_targets(rated({"fluency": 6}), checklist("fluency"), (5, 1))
    labels = human_targets(rated({"fluency": True}, {"fluency": False}), checklist("fluency"), (5, 1))
    assert [labels.overall(f"e{n}") for n in range(2)] == [1, 0]


def test_human_scores_for_a_selection_are_turned_too() -> None:
    examples = rated({"overall": 1}, {"overall": 5})
    for scale, order in (((5, 1), [-1, -5]), ((1, 5), [1, 5]), (None, [1, 5])):
        assert human_scores(examples, None, scale)[1].tolist() == order
    assert human_scores(rated({"overall": True}), None, (5, 1))[1].tolist() == [1]
    assert human_scores(rated({"a": 1, "b": 5}), None, (5, 1))[1].tolist() == [0.5]
