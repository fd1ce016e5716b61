from __future__ import annotations

import pytest

from askance.optimizer.weights.judged_pairs import position_bias
from askance.prompts.checklist import Checklist, Question
from tests.said import says

CHECKLIST = Checklist(questions=[Question(id="q", text="Q?"), Question(id="r", text="R?")])
FIRST = {
    ("p/ab", "q"): 0.9,  # a wins
    ("p/ba", "q"): 0.6,  # b wins: it depends
    ("s/ab", "q"): 0.7,
    ("s/ba", "q"): 0.2,  # a wins both times
    ("p/ab", "r"): 0.5,  # nobody wins
    ("p/ba", "r"): 0.4,  # a wins: it depends
    ("s/ab", "r"): None,
    ("s/ba", "r"): 0.9,
}


def test_winners_that_change_with_the_order_are_counted() -> None:
    bias = position_bias(["p", "s"], CHECKLIST, FIRST, swap=True)
    assert (bias.overall.both_orders, bias.overall.depend) == (3, 2)
    assert bias.overall.share == pytest.approx(2 / 3)
    assert bias.by_test["q"].share == 0.5
    assert (bias.by_test["r"].both_orders, bias.by_test["r"].share) == (1, 1.0)
    assert bias.overall.mean_p_first == pytest.approx((0.9 + 0.6 + 0.7 + 0.2 + 0.5 + 0.4) / 6)
    assert (bias.by_pair.both_orders, bias.by_pair.depend) == (1, 1)  # s lacks an answer; p: 0.7 for a, then 0.5
    assert "67% of the 3 comparisons" in bias.sentences()[0]
    assert "in 1 of 1 pairs" in bias.sentences()[0]
    assert bias.to_dict()["tests"]["q"]["depend_on_order"] == 1


def test_a_judge_without_bias_calls_the_first_better_half_of_the_time() -> None:
    choices = {("p/ab", "q"): 0.9, ("p/ba", "q"): 0.1, ("p/ab", "r"): 0.5, ("p/ba", "r"): 0.5}
    bias = position_bias(["p"], CHECKLIST, choices, swap=True)
    assert bias.overall.mean_p_first == pytest.approx(0.5)
    assert bias.overall.share == 0


def test_in_one_order_the_share_is_undefined_with_a_reason() -> None:
    bias = position_bias(["p", "s"], CHECKLIST, FIRST, swap=False)
    report = bias.to_dict()
    assert report["share_depends"] is None
    assert "--swap" in report["reason"] and "--swap" in bias.sentences()[0]
    assert report["mean_p_first"] == pytest.approx((0.9 + 0.7 + 0.5) / 3)


def test_without_any_answer_nothing_is_said() -> None:
    bias = position_bias(["p"], CHECKLIST, dict.fromkeys(FIRST), swap=True)
    assert bias.overall.mean_p_first is None
    assert says(bias.to_dict()["reason"], "no comparison", "both orders")
    assert says(bias.sentences()[0], "Nothing")
