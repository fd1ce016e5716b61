"""What a diagnosis says in words."""

from __future__ import annotations

import numpy as np
import pytest

from askance.evaluation.diagnose import diagnose_verdicts
from askance.evaluation.findings import NOTHING_FOUND, Diagnosis, Finding
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from askance.report.judged_page import JudgedFile, render_judging
from tests.said import says

N = 100
RANDOM = np.random.default_rng(0).random((10, N))


def said(columns: dict[str, np.ndarray], *, n: int = N, repeat: np.ndarray | None = None) -> dict[str, Finding]:
    """Findings by kind."""
    return {finding.kind: finding for finding in said_whole(columns, n=n, repeat=repeat).findings}


def said_whole(columns: dict[str, np.ndarray], *, n: int = N, repeat: np.ndarray | None = None) -> Diagnosis:
    """A column's NaN is a failed verdict, and people's score is the first random column."""
    examples = [Example(id=f"e{k}", input="", output="", human={"x": float(RANDOM[0][k])}) for k in range(n)]
    checklist = Checklist(questions=[Question(id=name, text="?", dimension="x") for name in columns])
    verdicts = []
    for replicate, given in enumerate([columns] if repeat is None else [columns, dict.fromkeys(columns, repeat)]):
        for name, values in given.items():
            for k in range(n):
                p = float(values[k])
                failed = np.isnan(p)
                answer, p_yes = (None, None) if failed else (p > 0.5, p)
                status = "api_error" if failed else "ok"
                verdicts.append(Verdict(f"e{k}", name, "m", "p", answer, p_yes, status=status, replicate=replicate))
    return diagnose_verdicts(examples, checklist, verdicts)


def test_the_ideal_case_is_not_called_worth_acting_on() -> None:
    examples = [Example(id=f"e{k}", input="", output="") for k in range(12)]
    checklist = Checklist(questions=[Question(id=name, text="?", dimension="x") for name in "ab"])
    verdicts = [
        Verdict(f"e{k}", name, "m", "p", bool(k // step % 2), float(k // step % 2))
        for name, step in (("a", 1), ("b", 2))
        for k in range(12)
    ]
    found = diagnose_verdicts(examples, checklist, verdicts)
    assert {each.kind for each in found.findings} == {"independent", "few_examples"}
    lines = list(found.view().lines)
    assert NOTHING_FOUND in lines and "Worth acting on:" not in lines
    assert any("only 12 examples" in line for line in lines)
    assert found.view().brief == NOTHING_FOUND
    page = render_judging(JudgedFile("diagnose", "d.json", found.to_dict()))
    assert "worth acting on" not in page.lower()
    assert "only 12 examples" in page
    never = render_judging(
        JudgedFile("diagnose", "d.json", said_whole({"a": np.full(N, 0.99), "b": RANDOM[1]}).to_dict())
    )
    assert "There is one thing worth acting on" in never


def test_questions_that_never_vary_are_named() -> None:
    constant = np.full(N, 0.99)
    found = said({"a": constant, "b": RANDOM[1], "c": constant})
    assert found["never_varies"].text == (
        "2 of 3 questions never vary over 100 examples: they cost calls and tell nothing: a, c."
    )
    assert found["never_varies"].questions == ("a", "c")
    assert "1 of 2 questions never varies over 100 examples: it costs calls and tells nothing: a." in (
        said({"a": constant, "b": RANDOM[1]})["never_varies"].text
    )


def test_one_whose_p_yes_varies_still_counts_in_soft_scores() -> None:
    found = said({"a": 0.6 + 0.3 * RANDOM[2], "b": RANDOM[1]})
    assert "never_varies" not in found
    assert says(found["varies_in_p_yes_only"].text, "soft scores only", "a")


def test_a_question_against_people_comes_first() -> None:
    found = said({"steady": np.full(N, 0.9), "against": 1 - RANDOM[0]})
    assert next(iter(found)) == "against_people"
    assert "1 of 2 questions runs against people" in found["against_people"].text
    assert "against_people" not in said({"with": RANDOM[0], "steady": np.full(N, 0.9)})


def test_pairs_that_are_alike_or_opposed_are_named_with_their_phi() -> None:
    found = said({"a": RANDOM[1], "b": RANDOM[1], "c": 1 - RANDOM[1], "d": RANDOM[2]})
    assert says(found["alike"].text, "a and b", "phi 1.00")
    assert says(found["opposed"].text, "2 pairs", "contradict")
    assert set(found["opposed"].questions) == {"a", "b", "c"}


def test_answers_that_change_when_asked_again_are_named_with_their_share() -> None:
    again = np.where(np.arange(N) < 20, 1 - RANDOM[1], RANDOM[1])
    assert "a (20%)" in said({"a": RANDOM[1]}, repeat=again)["unstable"].text
    assert "unstable" not in said({"a": RANDOM[1]}, repeat=RANDOM[1])


def test_missing_answers_are_named_with_their_coverage() -> None:
    some = RANDOM[1].copy()
    some[:10] = np.nan
    assert "a (90%)" in said({"a": some, "b": RANDOM[2]})["coverage"].text


def test_what_the_questions_amount_to_is_said() -> None:
    alike = dict.fromkeys("abcd", RANDOM[1])
    assert says(said(alike)["independent"].text, "4 questions", "1.0 independent")


def test_few_examples_are_a_caution() -> None:
    assert "only 12 examples" in said({"a": RANDOM[1]}, n=12)["few_examples"].text


def test_a_good_checklist_calls_for_no_change() -> None:
    assert said({"a": RANDOM[0]}) == {}


def test_long_lists_are_cut() -> None:
    found = said({f"q{k}": np.full(N, 0.9) for k in range(12)})
    assert found["never_varies"].text.endswith("q6, q7 and 4 more.")
    assert len(found["never_varies"].questions) == 12


@pytest.mark.parametrize("kind", ["alike", "opposed", "unstable", "coverage", "unasked"])
def test_what_is_not_there_is_not_said(kind: str) -> None:
    assert kind not in said({"a": RANDOM[1], "b": RANDOM[2]})
