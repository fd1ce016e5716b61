"""Judges that say a number: at once, after thinking, by steps, test by test, or as a panel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askance.evaluation.compare.judges import JUDGES
from askance.evaluation.compare.protocol import criteria_for
from askance.evaluation.compare.questionnaire import said_number
from askance.evaluation.options import CompareOptions
from askance.models.base import Answer, ModelError, Request
from askance.prompts.errors import InputError
from askance.testing import Reply, ScriptedModel
from tests.said import naming

from .conftest import (
    EXAMPLES,
    STEPS,
    asked,
    distribution,
    p_of,
    rate,
    setup,
)


def test_direct_reads_the_number_it_is_told() -> None:
    ratings = rate("direct", setup(["1", "2", " **5**.", "Score: 3/5"])[0])
    assert [each.score for each in ratings] == [0, 0.25, 1, 0.5]


def script_of_answers_and_numbers(request: Request) -> Reply:
    text = asked(request)
    if "whole number from" in text:
        return str(5 - 2 * text.count("Answer: no"))
    return p_of(request)


def test_questionnaire_shows_the_questions_and_filled_the_answers_to_them_too() -> None:
    given, model = setup(script_of_answers_and_numbers, dimensions=("consistency", "fluency"))
    assert [each.score for each in rate("questionnaire", given, EXAMPLES[:1])] == [1, 1]
    assert len(model.requests) == 2, "a call a dimension"
    assert "1. Are the facts right?\n2. Are the names right?\n" in asked(model.requests[0])
    assert "Are the words right?" not in asked(model.requests[0]) and "Answer: " not in asked(model.requests[0])

    given, model = setup(script_of_answers_and_numbers, dimensions=("consistency", "fluency"))
    assert [each.score for each in rate("filled", given, EXAMPLES[:1])] == [0.5, 0.5]
    assert len(model.requests) == 3 + 2, "a call a question, then one a dimension"
    assert "1. Are the facts right? Answer: yes\n2. Are the names right? Answer: no\n" in asked(model.requests[3])
    assert "1. Are the words right? Answer: no\n" in asked(model.requests[4])


def test_filled_takes_each_evaluations_own_answers_and_no_number_for_a_sheet_with_a_gap() -> None:
    def script(request: Request) -> Reply:
        text = asked(request)
        if "whole number from" not in text and "Summary 1" in text and "names" in text:
            return ModelError("down")
        if "whole number from" not in text and "names" in text:
            return "yes" if request.replicate else "no"
        return script_of_answers_and_numbers(request) if "whole number from" in text else "yes"

    given, _ = setup(script, repeat=2, p_yes="hard")
    found = rate("filled", given, EXAMPLES[:2])
    assert [(each.example, each.replicate, each.score, each.status) for each in found] == [
        ("e0", 0, 0.5, "ok"),
        ("e0", 1, 1.0, "ok"),
        ("e1", 0, None, "api_error"),
        ("e1", 1, None, "api_error"),
    ]


def test_direct_is_told_the_task_and_what_the_dimension_means() -> None:
    given, model = setup()
    rate("direct", given, EXAMPLES[:1])
    text = asked(model.requests[0])
    assert "Summarise the document" in text
    assert criteria_for(["consistency"])[0].description in text
    assert "from 1 to 5" in text
    assert model.requests[0].parameters.top_logprobs == 0


@pytest.mark.parametrize("text", ["4 or 5", "four", "0", "6", "4/10", "", "I give it 4 because it is good."])
def test_a_number_that_is_not_clear_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no score|no whole number"):
        said_number(Answer(text), 1, 5, at_end=False)


def test_cot_takes_the_last_score_it_says() -> None:
    assert said_number(Answer("A Score: 2 would be harsh.\nScore: 4/5"), 1, 5, at_end=True) == 4
    assert said_number(Answer("**Score:** 3"), 1, 5, at_end=True) == 3
    assert said_number(Answer("Score: 4.0."), 1, 5, at_end=True) == 4
    for unclear in (
        "It is good, 4 of 5.",
        "Score: 2 at first.\nScore: 3.5",
        "Score: 3 or 4",
        "Score: 3-4",
        "score: 2 to 3",
    ):
        with pytest.raises(ValueError, match=naming("no score", "due")):
            said_number(Answer(unclear), 1, 5, at_end=True)
    with pytest.raises(ValueError, match=naming("cut off")):
        said_number(Answer("It is", finish="length"), 1, 5, at_end=True)


def test_cot_may_think_for_as_long_as_it_is_allowed_to() -> None:
    given, model = setup(cot_tokens=77)
    rate("cot", given, EXAMPLES[:1])
    assert model.requests[0].parameters.max_tokens == 77


def test_geval_writes_its_steps_once_a_dimension_and_rates_by_the_expected_number() -> None:
    given, model = setup(dimensions=("consistency", "fluency"))
    ratings = rate("geval", given)
    assert ratings[0].score == pytest.approx((0.6 * 3 + 0.4 * 4) / 4)
    writing = [request for request in model.requests if request.parameters.schema is not None]
    assert len(writing) == 2
    assert len(model.requests) == 2 + 2 * len(EXAMPLES)
    assert "1. Read the document.\n2. Compare every claim." in asked(model.requests[-1])


def test_unit_tests_rate_each_question_and_weigh_the_ratings() -> None:
    def script(request: Request) -> Reply:
        return distribution({"5": 1.0} if "facts" in asked(request) else {"1": 0.5, "3": 0.5})

    (rating,) = rate("unit_tests", setup(script)[0], EXAMPLES[:1])
    assert rating.score == pytest.approx((3 * 1.0 + 0.25) / 4)


@pytest.mark.parametrize("name", ["geval", "unit_tests"])
def test_without_log_probabilities_the_numbers_that_are_said_are_taken(name: str) -> None:
    def script(request: Request) -> Reply:
        return STEPS if request.parameters.schema is not None else "2"

    ratings = rate(name, setup(script)[0])
    assert {each.score for each in ratings} == {0.25}


def test_without_log_probabilities_geval_takes_the_mean_of_samples() -> None:
    said = iter("1234" * 4)

    def script(request: Request) -> Reply:
        return STEPS if request.parameters.schema is not None else next(said)

    given, model = setup(script, p_yes="sampled", samples=4, repeat=2)
    ratings = rate("geval", given, EXAMPLES[:1])
    assert [each.score for each in ratings] == [pytest.approx(1.5 / 4)] * 2
    rated = [request for request in model.requests if request.parameters.schema is None]
    assert len({request.key for request in rated}) == 8
    assert {request.parameters.temperature for request in rated} == {1.0}


def test_an_endpoint_that_is_down_is_not_taken_for_one_without_log_probabilities() -> None:
    with pytest.raises(ModelError, match="refused"):
        rate("unit_tests", setup(lambda request: ModelError("refused", fatal=True))[0])


def test_a_panel_of_one_model_differs_in_its_seeds_and_decides_by_majority() -> None:
    votes = {1042: "2", 2042: "4", 3042: "4"}
    given, model = setup(lambda request: votes[request.parameters.seed or 0])
    assert [each.score for each in rate("poll", given)] == [0.75] * 4
    assert {request.parameters.temperature for request in model.requests} == {1.0}
    mean, _ = setup(lambda request: votes[request.parameters.seed or 0], panel_vote="mean")
    assert rate("poll", mean)[0].score == pytest.approx((0.25 + 0.75 + 0.75) / 3)


def test_a_tied_vote_is_the_mean_of_the_tied_numbers() -> None:
    votes = {1042: "1", 2042: "2", 3042: "5"}
    given, _ = setup(lambda request: votes[request.parameters.seed or 0])
    assert rate("poll", given)[0].score == pytest.approx(5 / 12)


def test_a_panel_may_differ_in_its_wording() -> None:
    given, model = setup(panel_by="prompts")
    rate("poll", given, EXAMPLES[:1])
    assert len({asked(request) for request in model.requests}) == 3
    assert {request.parameters.temperature for request in model.requests} == {0.0}
    with pytest.raises(InputError, match="there are 3 wordings"):
        JUDGES["poll"](setup(panel_by="prompts", panel_size=4)[0])


def test_a_panel_of_models_asks_each_once_and_a_missing_vote_is_no_score() -> None:
    given, own = setup()
    good = ScriptedModel(lambda request: "5", name="a/good", slots=1)
    bad = ScriptedModel(lambda request: "no idea", name="a/bad", slots=1)
    ratings = rate("poll", replace(given, panel=(good, bad)))
    assert {(each.score, each.status) for each in ratings} == {(None, "parse_error")}
    assert len(good.requests) == len(EXAMPLES)
    assert not own.requests


def test_the_ten_point_scale_is_read_by_every_judge_of_numbers() -> None:
    said = rate("direct", setup(["10", "1", "Score: 7/10", "10/10"], points=10)[0])
    assert [each.score for each in said] == [1.0, 0.0, pytest.approx(6 / 9), 1.0]
    assert CompareOptions(points=10).tolerance == 2
