from __future__ import annotations

import pytest

from askance.memory.decision import decide
from askance.memory.result_file import RunRecord
from tests.said import says

EDIT = {"edits": [{"old": "a", "new": "b", "lessons": ["L1"]}], "reason": "better", "iteration": 1}


def result(gain=None, **changes):
    return RunRecord.model_validate(row(gain) | changes)


def row(gain=None):
    measure = {"spearman": 0.5, "kendall": 0.4, "pearson": 0.5, "n": 40, "low": 0.2, "high": 0.7, "dimensions": {}}
    side = {"prompt": "p", "validation": measure, "test": measure}
    return {
        "mode": "align",
        "finish_reason": "no_gain",
        "reference": "human",
        "baseline": side,
        "best": side,
        "gain": {"validation": None, "test": gain},
        "iterations": 2,
        "accepted_edits": [EDIT],
        "rejected_edits": [EDIT, EDIT],
        "lessons": [],
        **dict.fromkeys(("calls", "cached_calls", "tokens", "cost_usd"), 0),
        "coverage": 1.0,
    }


def gain(value, low, high, n=40, **rest):
    return {"value": value, "low": low, "high": high, "n": n, "p_value": 0.1} | rest


@pytest.mark.parametrize(
    ("found", "choice"),
    [
        (gain(0.2, 0.01, 0.4), "adopt"),
        (gain(0.2, 0.0, 0.4), "undecided"),
        (gain(0.2, -0.01, 0.4), "undecided"),
        (gain(-0.1, -0.3, 0.1), "undecided"),
        (gain(0.0, -0.3, 0.3), "undecided"),
        (gain(-0.2, -0.4, -0.01), "keep"),
        (gain(0.2, None, None, reason="no interval"), "undecided"),
        (gain(None, None, None, n=2, reason="fewer than 3 items (there are 2)"), "undecided"),
    ],
)
def test_only_an_interval_on_one_side_of_zero_decides(found, choice):
    assert decide(result(found)).choice == choice


@pytest.mark.parametrize(("n", "size", "choice"), [(9, 9, "undecided"), (12, 25, "undecided"), (13, 25, "adopt")])
def test_a_clear_gain_on_too_few_examples_decides_nothing(n, size, choice):
    decision = decide(result(gain(0.4, 0.2, 0.6, n=n)), size)
    assert decision.choice == choice
    assert (f"{n} of {size} test examples" in decision.why) == (choice == "undecided")
    assert any(f"Of {size} test examples, {n} have a score" in each for each in decision.cautions) == (n < size)


def test_an_undefined_difference_is_explained():
    why = decide(result(gain(None, None, None, n=2, reason="fewer than 3 items (there are 2)"))).why
    assert says(why, "undefined", 3, "there are 2")


def test_without_an_accepted_edit_it_says_that_nothing_was_gained_and_why_the_run_ended():
    decision = decide(result(accepted_edits=[]))
    assert decision.choice == "keep"
    assert says(decision.why, "2 candidates", "none")
    assert "--patience" in decision.why


def test_without_a_single_candidate_it_says_so():
    assert says(decide(result(accepted_edits=[], rejected_edits=[])).why, "no candidate")


def test_a_prompt_that_was_never_tested_is_not_adopted():
    best = row()["best"] | {"test": None, "reason": "the test was not judged: The budget of 9 calls is used up."}
    decision = decide(result(None, best=best, baseline=best, finish_reason="max_calls"))
    assert decision.choice == "undecided"
    assert says(decision.why, "9 calls")
    assert any("budget ended" in each for each in decision.cautions)


def test_a_gain_measured_against_the_source_is_not_called_agreement_with_people():
    decision = decide(result(gain(0.2, 0.1, 0.3), reference="source"))
    assert "the source's scores" in decision.why
    assert any("not people" in each for each in decision.cautions)


def test_a_dimension_that_measured_lower_is_named():
    def side(a, b):
        dimensions = {"a": {"spearman": a, "n": 40}, "b": {"spearman": b, "n": 40}}
        return {"prompt": "p", "test": {"spearman": 0.5, "low": 0.2, "high": 0.7, "n": 40, "dimensions": dimensions}}

    decision = decide(result(gain(0.2, 0.1, 0.3), baseline=side(0.1, 0.5), best=side(0.7, 0.36)))
    assert any("b (\N{MINUS SIGN}0.14)" in each and "a (" not in each for each in decision.cautions)


def test_adopt_names_what_speaks_against_it_and_nothing_else():
    better = gain(0.2, 0.1, 0.3)
    assert decide(result(better)).headline == "Adopt the new prompt"

    def side(a, b, low=0.2):
        dimensions = {"a": {"spearman": a, "n": 40}, "b": {"spearman": b, "n": 40}}
        return {"prompt": "p", "test": {"spearman": 0.5, "low": low, "high": 0.7, "n": 40, "dimensions": dimensions}}

    fell = result(better, baseline=side(0.1, 0.5), best=side(0.7, 0.36))
    assert decide(fell).headline == "Adopt the new prompt (caution: measured lower on b)"
    unclear = result(better, best=side(0.7, 0.5, low=-0.1), coverage=0.9)
    assert says(decide(unclear).headline, "Adopt", "10.0 %", "verdicts")
    kept = result(gain(-0.2, -0.4, -0.1), baseline=side(0.1, 0.5), best=side(0.7, 0.36))
    assert decide(kept).headline == "Keep the starting prompt"


@pytest.mark.parametrize("reason", ["no_disagreements", "no_evidence", "no_new_evidence"])
def test_nothing_left_is_not_said_of_verdicts_that_are_missing(reason):
    whole = result(finish_reason=reason).why_it_ended
    assert "missing" not in whole
    crashed = result(finish_reason=reason, coverage=0.4).why_it_ended
    assert crashed.startswith(f"{whole}; ") and says(crashed, "60.0 %", "verdicts")
    assert "missing" not in result(finish_reason="converged", coverage=0.4).why_it_ended


def test_few_examples_and_missing_verdicts_are_pointed_out():
    cautions = " ".join(decide(result(gain(0.2, 0.1, 0.3, n=12), coverage=0.97)).cautions)
    assert "few test examples (12)" in cautions
    assert "3.0 % are missing" in cautions


def test_measures_that_joined_are_not_counted_as_questions():
    joined = {"good": "yes", "dimension": "overall", "effect": 0.1, "iteration": 1, "joined": True}
    questions = [
        {"id": "asked", "text": "Does it answer?", "origin": "comment", **joined},
        *({"id": f"m{n}", "text": "How near is it?", "origin": "measure", **joined} for n in range(2)),
    ]
    why = decide(result(gain(0.2, 0.01, 0.4), accepted_edits=[], questions=questions)).why
    assert says(why, "1 question more", "2 measures more")
