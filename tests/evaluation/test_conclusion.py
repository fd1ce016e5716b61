"""The headline of a comparison claims what the intervals and the corrected differences show, and nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from askance.evaluation.compare.comparison import conclude
from askance.evaluation.compare.costs import is_costed
from askance.evaluation.view import agreement_headline
from askance.prompts.formatting import Figure
from askance.report.comparison_page import render_comparison
from tests.said import says


def judge(name: str, spearman: float | None, low: float = 0.3, high: float = 0.9, **more: Any) -> dict[str, Any]:
    """A row as ``compare`` writes it."""
    tokens = more.pop("tokens", 100)
    pooled = {
        each: {"value": spearman, "low": low, "high": high, "n": 40} for each in ("spearman", "kendall", "pearson")
    }
    distribution = {each: {"value": 0.1} for each in ("at_maximum", "human_at_maximum", "severity")}
    distribution["distance"] = {"value": 0.1, "low": 0.0, "high": 0.2}
    asked = {"asked": 40, "scored": 40, "abstained": 0, "parse_errors": 0, "api_errors": 0, "share": 1.0}
    people = {
        "pooled": pooled,
        "observed_agreement": {"value": 0.5},
        "qwk": {"value": 0.1, "low": 0, "high": 0.2},
        "distribution": distribution,
    }
    cost = {
        "upfront": {"tokens": 0},
        "per_example": {"calls": 1, "tokens": tokens, "cost_usd": None},
        "amortised_tokens": tokens,
    }
    return {
        "judge": name,
        "coverage": asked | more,
        "average": dict.fromkeys(("spearman", "kendall", "pearson"), spearman),
        "dimensions": {"quality": {"mean": 0.5, **people, "kappa_self": {"value": None}}},
        "cost": cost,
    }


def comparison(judges: list[dict[str, Any]], *differences: tuple[str, float, float | None]) -> dict[str, Any]:
    return {
        "model": "openai/m",
        "examples": 40,
        "compared_on": 40,
        "left_out": [],
        "dimensions": ["quality"],
        "points": 5,
        "tolerance": 1,
        "repeat": 1,
        "judges": judges,
        "among_people": {},
        "differences": [
            {"judge": name, "dimension": "quality", "value": value, "low": value - 0.1, "high": value + 0.1}
            | {"p_value": p, "p_holm": p}
            for name, value, p in differences
        ],
        "calls": 1,
        "tokens": 1,
        "cost_usd": None,
        "cached_calls": 0,
    }


def test_one_judge_agrees_only_where_its_interval_says_so() -> None:
    choice, headline, _ = conclude(comparison([judge("a", 0.6)]))
    assert choice == "keep" and says(headline, "a", "agree with people", "0.60")
    choice, headline, _ = conclude(comparison([judge("a", 0.05, -0.21, 0.32)]))
    assert choice == "undecided"
    assert says(headline, "not shown", "people") and "+0.32" in headline
    assert "run against people" in conclude(comparison([judge("a", -0.5, -0.7, -0.2)]))[1]


def test_a_judge_that_is_ahead_of_a_bad_one_is_not_said_to_agree() -> None:
    data = comparison([judge("bad", -0.5, -0.7, -0.2), judge("poor", 0.05, -0.2, 0.3)], ("poor", 0.55, 0.01))
    choice, headline, _ = conclude(data)
    assert choice == "undecided"
    assert says(headline, "poor is ahead", "bad", "not shown")


def test_what_speaks_against_the_better_judge_is_named() -> None:
    rows = [judge("cheap", 0.3), judge("dear", 0.7, tokens=450)]
    choice, headline, lead = conclude(comparison(rows, ("dear", 0.4, 0.01)))
    assert choice == "adopt" and says(headline, "dear agrees better", "than cheap")
    assert says(lead, "4.5 times", "cheap")
    rows = [judge("cheap", 0.3), judge("same", 0.7, tokens=105)]
    assert "times" not in conclude(comparison(rows, ("same", 0.4, 0.01)))[2]


def test_of_many_better_judges_the_headline_says_how_many_and_the_lead_which() -> None:
    rows = [judge("first", 0.3), *(judge(name, 0.7, tokens=100 + 100 * (name == "c")) for name in "abc")]
    _, headline, lead = conclude(comparison(rows, *((name, 0.4, 0.01) for name in "abc")))
    assert says(headline, "3 of the", "3 other judges", "better", "than first")
    assert all(f"{name} +0.40" in lead for name in "abc")
    assert says(lead, "more tokens", "first", "c 2.0 times") and "a 1.0 times" not in lead


def test_a_judge_better_here_and_worse_there_is_neither() -> None:
    data = comparison([judge("a", 0.5), judge("b", 0.6)], ("b", 0.3, 0.01))
    data["dimensions"].append("wit")
    for row in data["judges"]:
        row["dimensions"]["wit"] = row["dimensions"]["quality"]
    data["differences"].append(data["differences"][0] | {"dimension": "wit", "value": -0.3})
    choice, headline, _ = conclude(data)
    assert choice == "undecided"
    assert says(headline, "b is better", "than a", "worse on others")


@pytest.mark.parametrize(
    ("other", "words"),
    [(0.5, "and no other judge reaches more"), (0.4, "the highest"), (None, "the only one that is defined")],
)
def test_the_first_judge_is_called_the_highest_only_where_it_is(other: float | None, words: str) -> None:
    lead = conclude(comparison([judge("a", 0.5), judge("b", other)], ("b", -0.1, 0.5)))[2]
    assert words in lead
    assert "worse beyond noise" not in lead


def test_the_fewest_tokens_are_never_those_of_a_judge_that_answered_nothing() -> None:
    dead = judge("dead", None, tokens=0, scored=0, api_errors=40, share=0.0)
    page = render_comparison(comparison([judge("a", 0.5, tokens=300), judge("b", 0.4, tokens=200), dead]), "c.json")
    assert says(page, "b takes", "the fewest", "a the most", "300", "calls of dead")
    page = render_comparison(comparison([judge("a", 0.5), judge("b", 0.4)]), "c.json")
    assert "the fewest" not in page and "of every judge" in page
    only = render_comparison(comparison([dead]) | {"compared_on": 0}, "c.json")
    assert says(only, "of every judge", "failed")


def test_tokens_tell_a_cost_only_where_calls_were_answered() -> None:
    assert is_costed({"asked": 40, "api_errors": 2})
    assert not is_costed({"asked": 40, "api_errors": 3})
    assert not is_costed({"asked": 0, "api_errors": 0})


def test_judges_are_one_judge_where_their_scores_are_the_same_and_not_where_their_ranks_are() -> None:
    data = comparison([judge("a", 1.0), judge("b", 1.0)]) | {"common": ["e"], "human": {"e": {"quality": 1.0}}}

    def page(of_b: float) -> str:
        ratings = {
            name: [{"example": "e", "dimension": "quality", "score": score, "status": "ok"}]
            for name, score in (("a", 0.5), ("b", of_b))
        }
        return render_comparison(data | {"ratings": ratings}, "c.json")

    assert says(page(0.5), "a and b", "the same score", "one judge here")
    assert "one judge here" not in page(0.6)


def test_agreement_over_several_dimensions_names_those_on_which_it_is_not_shown() -> None:
    sure, unsure = Figure(0.6, 0.4, 0.8), Figure(0.05, -0.21, 0.32)
    said = agreement_headline({"wit": unsure, "facts": sure})
    assert said == "Agreement with people runs from 0.05 on wit to 0.60 on facts; not shown on wit"
    assert agreement_headline({"wit": sure, "facts": sure}).endswith("to 0.60 on wit")
    assert says(agreement_headline({"a": Figure(0.6)}), "0.60", "without an interval")


def test_judges_that_are_left_out_are_told_in_one_sentence() -> None:
    found = comparison([judge("a", 0.4), judge("b", None), judge("c", None)])
    for left_out, said in ((["b"], "(but b, which has no"), (["b", "c"], "(but b and c, which have no")):
        assert said in conclude(found | {"left_out": left_out})[2]


def test_figures_are_of_the_examples_that_people_rated_where_these_are_not_all() -> None:
    data = comparison([judge("a", 0.6), judge("b", 0.5)], ("b", -0.1, 0.4))
    assert "rated by people" not in conclude(data)[2] and "few examples" not in render_comparison(data, "c.json")
    for row in data["judges"]:
        row["dimensions"]["quality"]["pooled"]["spearman"]["n"] = 12
    assert says(conclude(data)[2], "40 of 40 examples", "12 of them", "rated by people", "a reaches")
    page = render_comparison(data, "c.json")
    assert "a; n = 12" in page and says(page, "few examples", "rated", "12")


def test_examples_are_not_said_to_be_left_out_for_a_judge_that_is_left_out() -> None:
    failing = {"scored": 0, "share": 0.0, "parse_errors": 40}
    data = comparison([judge("a", 0.6), judge("b", 0.5, scored=38, share=0.95), judge("c", None, **failing)])
    page = render_comparison(data | {"compared_on": 38, "left_out": ["c"]}, "c.json")
    assert says(page, "2 examples of 40", "left out", "most", "b (5 %)")
