"""Tables from verdicts, ratings and people: what is missing stays missing."""

from __future__ import annotations

import numpy as np
import pytest

from askance.agents.rating import Rating
from askance.optimizer.selection.analysis import (
    answers_from_ratings,
    answers_from_verdicts,
    conditional_table,
    equal_groups,
    hard_answers,
    human_scores,
    judged_ratings,
)
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.verdicts import Verdict

CHECKLIST = Checklist(questions=[Question(id="q", text="Is it?")])


def examples(count: int, **human: list[float | None]) -> list[Example]:
    return [
        Example(id=f"e{n}", input="", output="", human={name: values[n] for name, values in human.items()})
        for n in range(count)
    ]


def verdicts(*p_yes: float | None) -> list[Verdict]:
    return [
        Verdict(
            f"e{n}", "q", "m", "p", None if p is None else p >= 0.5, p, status="ok" if p is not None else "api_error"
        )
        for n, p in enumerate(p_yes)
    ]


def test_soft_hard_and_split_answers() -> None:
    some = verdicts(0.9, 0.8, 0.7, 0.6, None)
    tables = {kind: answers_from_verdicts(some, examples(5), CHECKLIST, kind) for kind in ("soft", "hard", "split")}
    assert tables["soft"][0][:4, 0, 1] == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert tables["hard"][0][:4, 0, 1].tolist() == [1, 1, 1, 1]
    assert tables["split"][0][:4, 0, 1].tolist() == [1, 1, 0, 0]
    assert tables["split"][1][:4, 0] == pytest.approx([0.9, 0.8, 0.7, 0.6]), "scores stay P(yes)"
    for answers, scores in tables.values():
        assert np.isnan(answers[4]).all() and np.isnan(scores[4, 0])


def test_one_missing_replicate_makes_the_answer_missing() -> None:
    some = [*verdicts(0.9, 0.8), Verdict("e0", "q", "m", "p", True, 0.7, replicate=1)]
    some += [Verdict("e1", "q", "m", "p", None, status="parse_error", replicate=1)]
    _, scores = answers_from_verdicts(some, examples(2), CHECKLIST, "soft")
    assert scores[0, 0] == pytest.approx(0.8)
    assert np.isnan(scores[1, 0])


def test_answers_on_a_scale() -> None:
    ratings = [
        Rating("e0", "q", None, (0.2, 0.3, 0.5), "logprob"),
        Rating("e1", "q", None, None, status="parse_error"),
    ]
    answers, scores = answers_from_ratings(ratings, examples(2), CHECKLIST, 3, hard=False)
    assert answers[0, 0].tolist() == [0.2, 0.3, 0.5]
    assert scores[0, 0] == pytest.approx(0.65)
    assert np.isnan(answers[1]).all()
    hard, scores = answers_from_ratings(ratings, examples(2), CHECKLIST, 3, hard=True)
    assert hard[0, 0].tolist() == [0, 0, 1] and scores[0, 0] == 1.0
    assert np.isnan(hard[1]).all()


def test_ratings_of_the_whole_and_given_an_answer() -> None:
    some = [Rating("e0", None, None, (0.5, 0.5), "logprob"), Rating("e1", None, None, None, status="api_error")]
    table, expected = judged_ratings(some, 2)
    assert table[0].tolist() == [0.5, 0.5] and expected[0] == 1.5
    assert np.isnan(expected[1])
    given = conditional_table([Rating("e1", "q", True, (0.1, 0.9), "logprob")], examples(2), CHECKLIST, 2)
    assert given[1, 0, 1].tolist() == [0.1, 0.9]
    assert np.isnan(given).sum() == given.size - 2


def test_human_scores_of_the_whole() -> None:
    assert human_scores(examples(2, tone=[1, 2], overall=[3, 5]))[0] == "overall"
    assert human_scores(examples(2, tone=[1, 2]))[1].tolist() == [1, 2]
    name, mean = human_scores(examples(3, tone=[1, 2, 3], facts=[0, 10, None]))
    assert name == "mean of tone, facts"
    assert mean[:2].tolist() == [0, 0.75] and np.isnan(mean[2])
    with pytest.raises(InputError, match="Did you mean 'tone'"):
        human_scores(examples(1, tone=[1]), "tune")


def test_groups_are_about_equal_and_keep_equal_values_together() -> None:
    assert equal_groups(np.array([5.0, 1.0, 3.0, np.nan]), 5).tolist() == [2, 0, 1, -1]
    codes = equal_groups(np.arange(100.0), 5)
    assert np.bincount(codes).tolist() == [20] * 5
    tied = equal_groups(np.array([1.0] * 60 + list(range(2, 42))), 5)
    assert len(set(tied[:60].tolist())) == 1
    assert tied.max() + 1 == len(set(tied.tolist())), "no group is empty"
    assert equal_groups(np.full(3, np.nan), 5).tolist() == [-1, -1, -1]


def test_likeliest_answers_take_yes_at_one_half() -> None:
    answers = np.array([[[0.5, 0.5]], [[0.6, 0.4]], [[np.nan, np.nan]]])
    assert hard_answers(answers, np.zeros(3, dtype=np.int64), 2).answers[:, 0].tolist() == [1, 0, -1]


def test_labels_are_on_the_scale_from_0_to_1_in_the_mean_of_all() -> None:
    name, mean = human_scores(examples(3, tone=[1, 2, 3], facts=[True, True, True]), scale=(1, 5))
    assert name == "mean of tone, facts"
    assert mean.tolist() == [0.5, 0.625, 0.75]
