from __future__ import annotations

import pytest

from askance.evaluation.scoring import (
    Coverage,
    coverage,
    coverage_line,
    mean_score,
    score_examples,
    to_scale,
    yes_rates,
)
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Status, Verdict

EXAMPLES = [Example(id="x", input="i", output="o"), Example(id="y", input="i", output="o")]
CHECKLIST = Checklist(
    questions=(
        Question(id="a", text="A?", dimension="one", weight=3),
        Question(id="b", text="B?", dimension="one"),
        Question(id="c", text="C?", dimension="two"),
        Question(id="unweighted", text="D?", dimension="two", weight=0),
    )
)


def verdict(example: str, question: str, p_yes: float | None, replicate: int = 0, status: Status = "ok") -> Verdict:
    answer = None if p_yes is None else p_yes >= 0.5
    return Verdict(example, question, "m", "p", answer, p_yes, status=status, replicate=replicate)


def full(example: str, a: float, b: float, c: float) -> list[Verdict]:
    return [verdict(example, name, p) for name, p in (("a", a), ("b", b), ("c", c))]


def test_scores_are_weighted_means() -> None:
    x, _ = score_examples(EXAMPLES, CHECKLIST, full("x", 0.8, 0.4, 0.1) + full("y", 1, 1, 1))
    assert x.dimensions["one"] == pytest.approx((3 * 0.8 + 0.4) / 4)
    assert x.dimensions["two"] == pytest.approx(0.1)
    assert x.overall == pytest.approx((3 * 0.8 + 0.4 + 0.1) / 5)


def test_hard_scores_count_answers() -> None:
    x, y = score_examples(EXAMPLES, CHECKLIST, full("x", 0.8, 0.4, 0.1) + full("y", 0.6, 0.6, 0.6), soft=False)
    assert x.dimensions == {"one": 0.75, "two": 0.0}
    assert y.overall == 1


def test_a_missing_verdict_leaves_its_dimension_and_the_whole_without_a_score() -> None:
    verdicts = [verdict("x", "a", 0.8), verdict("x", "b", 0.4), verdict("x", "c", None, status="api_error")]
    x, y = score_examples(EXAMPLES, CHECKLIST, verdicts)
    assert x.dimensions["one"] == pytest.approx(0.7)
    assert x.dimensions["two"] is None
    assert x.overall is None
    assert (y.overall, set(y.dimensions.values())) == (None, {None})


def test_a_question_without_weight_may_be_missing() -> None:
    x, _ = score_examples(EXAMPLES, CHECKLIST, full("x", 1, 1, 1))
    assert x.overall == 1


def test_replicates_are_averaged_and_one_that_failed_is_missing() -> None:
    both = [*full("x", 1, 1, 0.2), verdict("x", "c", 0.6, replicate=1)]
    x, _ = score_examples(EXAMPLES, CHECKLIST, both)
    assert x.dimensions["two"] == pytest.approx(0.4)
    x, _ = score_examples(EXAMPLES, CHECKLIST, [*both, verdict("x", "c", None, 2, "parse_error")])
    assert x.dimensions["two"] is None


def test_the_affine_map_reaches_both_ends() -> None:
    assert [to_scale(value, 1, 5) for value in (0.0, 0.5, 1.0, None)] == [1, 3, 5, None]


def test_means_leave_missing_scores_out_and_are_none_where_all_are() -> None:
    assert mean_score([1.0, None, 0.0]) == 0.5
    assert mean_score([None]) is None
    assert mean_score([]) is None


def test_yes_rates_count_answers_only() -> None:
    verdicts = [verdict("x", "a", 0.9), verdict("y", "a", 0.1), verdict("x", "b", None, status="abstained")]
    assert yes_rates(verdicts) == {"a": 0.5}


def test_coverage_counts_by_status_and_adds_up() -> None:
    statuses: list[Status] = ["abstained", "parse_error", "api_error", "api_error"]
    seen = coverage([verdict("x", "a", 0.5), *(verdict("x", "a", None, status=each) for each in statuses)])
    assert (seen.asked, seen.answered, seen.abstained, seen.parse_errors, seen.api_errors) == (5, 1, 1, 1, 2)
    assert seen.share == 0.2
    assert (seen + seen).asked == 10
    assert Coverage(0, 0, 0, 0, 0).share == 1


def test_what_is_missing_of_many_verdicts_is_not_rounded_away() -> None:
    assert coverage_line(Coverage(5000, 4999, 0, 0, 1).to_dict()) == "coverage 4999/5000 verdicts = 99.9% (1 failed)"


def test_an_example_of_a_section_is_weighted_by_that_sections_weights() -> None:
    weights = {"code": {"a": 1.0, "b": 0.0, "c": 0.0, "unweighted": 1.0}}
    checklist = CHECKLIST.model_copy(update={"section_weights": weights})
    examples = [EXAMPLES[0], EXAMPLES[1].model_copy(update={"metadata": {"section": "code"}})]
    verdicts = [*full("x", 1, 0, 0.5), *full("y", 1, 0, 0.5), verdict("y", "unweighted", 0.2)]
    x, y = score_examples(examples, checklist, verdicts)
    assert (x.overall, x.dimensions) == (pytest.approx(0.7), {"one": 0.75, "two": 0.5})
    assert (y.overall, y.dimensions) == (pytest.approx(0.6), {"one": 1.0, "two": 0.2})


def test_a_dimension_without_weight_in_a_section_has_no_score_there() -> None:
    weights = {"code": {"a": 1.0, "b": 1.0, "c": 0.0, "unweighted": 0.0}}
    checklist = CHECKLIST.model_copy(update={"section_weights": weights})
    examples = [EXAMPLES[0], EXAMPLES[1].model_copy(update={"metadata": {"section": "code"}})]
    x, y = score_examples(examples, checklist, [*full("x", 1, 0, 0.5), *full("y", 1, 0, 0.5)])
    assert x.dimensions == {"one": 0.75, "two": 0.5}
    assert y.dimensions == {"one": 0.5, "two": None}
    assert y.overall == 0.5


def test_an_example_of_a_section_without_weights_gets_the_checklists_own() -> None:
    checklist = CHECKLIST.model_copy(update={"section_weights": {"code": dict.fromkeys("abc", 1.0)}})
    elsewhere = [example.model_copy(update={"metadata": {"section": "prose"}}) for example in EXAMPLES]
    verdicts = [*full("x", 1, 0, 0.5), *full("y", 0, 1, 1)]
    assert [each.overall for each in score_examples(elsewhere, checklist, verdicts)] == [
        each.overall for each in score_examples(EXAMPLES, CHECKLIST, verdicts)
    ]
