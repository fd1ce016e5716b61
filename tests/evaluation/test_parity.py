"""How far two judges say the same of each question, whichever way round each was asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from askance.evaluation.verdict_table import SaidGood, parity
from askance.prompts.checklist import Checklist, Question
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict
from askance.stats.correlation import spearman

N = 40
EXAMPLES = [Example(id=f"e{n}", input="i", output="o") for n in range(N)]
MERITS = Checklist(questions=(Question(id="a", text="Is it polite?"), Question(id="b", text="Is it true?")))
MIXED = Checklist(questions=(Question(id="a", text="Is it rude?", good="no"), Question(id="b", text="Is it true?")))


def judged(seed: int, checklist: Checklist, noise: float) -> list[Verdict]:
    """Verdicts of a judge who takes the same examples for good, but for its own noise."""
    truth, random = np.random.default_rng(0).uniform(size=(N, 2)), np.random.default_rng(seed)
    rows = []
    for place, example in enumerate(EXAMPLES):
        for question, right in zip(checklist.questions, truth[place], strict=True):
            p_good = float(np.clip(right + noise * random.normal(), 0, 1))
            p_yes = question.p_good(p_good)
            rows.append(Verdict(example.id, question.id, "m", "p", question.is_good(p_good >= 0.5), p_yes))
    return rows


def said(checklist: Checklist, verdicts: list[Verdict]) -> SaidGood:
    return SaidGood.of(checklist, verdicts, EXAMPLES)


def figures(reference: SaidGood, judge: SaidGood, before: SaidGood | None = None) -> dict[str, object]:
    return parity(reference, judge, EXAMPLES, before=before, resamples=300)


def test_the_way_round_that_a_judge_is_asked_changes_nothing() -> None:
    theirs = said(MERITS, judged(1, MERITS, 0.1))
    one = figures(theirs, said(MERITS, judged(2, MERITS, 0.2)))
    other = figures(theirs, said(MIXED, judged(2, MIXED, 0.2)))
    assert json.dumps(one) == json.dumps(other)


def test_shares_kappa_and_rank_correlation_are_those_of_the_answers() -> None:
    first, second = said(MERITS, judged(1, MERITS, 0.1)), said(MIXED, judged(2, MIXED, 0.3))
    found = figures(first, second)
    for name in "ab":
        row = found["questions"][name]  # type: ignore[index]
        x, y = (np.array(each.answers[name], dtype=float) for each in (first, second))
        same = float(np.mean(x == y))
        chance = float(x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean()))
        assert row["same"]["value"] == pytest.approx(same)
        assert row["kappa"]["value"] == pytest.approx((same - chance) / (1 - chance))
        assert row["spearman"]["value"] == pytest.approx(spearman(second.p_good[name], first.p_good[name]).value)
        for figure in row.values():
            assert figure["n"] == N and figure["low"] < figure["value"] < figure["high"]
    whole = [found["questions"][name] for name in "ab"]  # type: ignore[index]
    assert found["same"]["value"] == pytest.approx(np.mean([each["same"]["value"] for each in whole]))  # type: ignore[index]
    assert found["spearman"]["value"] == pytest.approx(np.mean([each["spearman"]["value"] for each in whole]))  # type: ignore[index]
    assert found["same"]["n"] == 2 * N  # type: ignore[index]


def test_the_gain_is_that_of_the_share_of_same_answers() -> None:
    theirs, poor, better = (
        said(MERITS, judged(1, MERITS, 0.05)),
        *(said(MERITS, judged(seed, MERITS, noise)) for seed, noise in ((2, 0.6), (3, 0.1))),
    )
    was, now = figures(theirs, poor), figures(theirs, better, poor)
    assert now["gain"]["value"] == pytest.approx(now["same"]["value"] - was["same"]["value"])  # type: ignore[index]
    assert now["gain"]["low"] > 0 and now["gain"]["p_value"] < 0.05  # type: ignore[index]
    assert "gain" not in was


def test_examples_that_one_judge_did_not_answer_are_left_out_and_a_constant_judge_has_no_kappa() -> None:
    verdicts = judged(1, MERITS, 0.1)
    failed = [Verdict(each.example, each.question, "m", "p", None, status="api_error") for each in verdicts[:6]]
    found = figures(said(MERITS, verdicts), said(MERITS, [*failed, *verdicts[6:]]))
    assert found["questions"]["a"]["same"]["n"] == N - 3  # type: ignore[index]
    yes = [Verdict(each.example, each.question, "m", "p", True, 0.9) for each in verdicts]
    constant = figures(said(MERITS, verdicts), said(MERITS, yes))["questions"]["a"]  # type: ignore[index]
    assert constant["kappa"]["value"] is None and constant["spearman"]["value"] is None
    assert constant["kappa"]["reason"] and constant["same"]["value"] is not None


def test_each_example_five_times_in_its_document_changes_no_figure_of_parity() -> None:
    """But the rank correlation over all questions, whose interval is over the questions: it stays too."""
    columns = [said(MERITS, judged(seed, MERITS, noise)) for seed, noise in ((1, 0.1), (2, 0.2), (3, 0.6))]

    def times(n: int) -> dict[str, object]:
        def of(column: list[float | None]) -> list[float | None]:
            return [each for each in column for _ in range(n)]

        each = [
            SaidGood({k: of(v) for k, v in one.answers.items()}, {k: of(v) for k, v in one.p_good.items()})
            for one in columns
        ]
        examples = [
            Example(id=f"{place}-{copy}", input="i", output="o", metadata={"document": f"d{place}"})
            for place in range(N)
            for copy in range(n)
        ]
        return parity(each[0], each[1], examples, before=each[2], resamples=200)

    def flat(row: object, at: str = "") -> dict[str, float]:
        if isinstance(row, dict):
            return {
                key: value
                for name, each in row.items()
                if name != "n"
                for key, value in flat(each, f"{at}.{name}").items()
            }
        return {at: row} if isinstance(row, float) else {}

    once, again = flat(times(1)), flat(times(5))
    assert len(once) > 30 and again == pytest.approx(once, abs=1e-9)
