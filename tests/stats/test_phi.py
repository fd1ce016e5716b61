"""Phi is Pearson's correlation of the answers, pairwise complete; the effective number is known for simple cases."""

from __future__ import annotations

import numpy as np
import pytest

from askance.prompts.errors import InputError
from askance.stats.phi import phi_matrix, relatedness
from tests.said import says

NO = float("nan")


def drawn(n: int, questions: int, common: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shared = np.sqrt(common) * rng.normal(size=(n, 1)) + np.sqrt(1 - common) * rng.normal(size=(n, questions))
    return (shared > 0.3).astype(float)


def names(answers: np.ndarray) -> list[str]:
    return [f"q{place}" for place in range(answers.shape[1])]


def test_phi_is_the_correlation_of_the_answers_that_both_have() -> None:
    answers = drawn(200, 4, 0.5)
    answers[np.random.default_rng(1).random(answers.shape) < 0.1] = NO
    found = phi_matrix(names(answers), answers)
    for a in range(4):
        for b in range(4):
            both = ~np.isnan(answers[:, [a, b]]).any(axis=1)
            expected = np.corrcoef(answers[both, a], answers[both, b])[0, 1]
            assert found.of(f"q{a}", f"q{b}") == pytest.approx(expected)
            assert found.together[a, b] == both.sum()


def test_a_question_that_never_varies_has_no_phi_and_says_why() -> None:
    found = phi_matrix(["a", "b", "c"], np.array([[1.0, 1, NO], [0, 1, NO], [1, 1, 1], [0, 1, 0]]))
    assert found.of("a", "b") is None
    assert says(found.reason("b", "b"), "every answer", 4)
    assert says(found.reason("a", "b"), "one of", "4 answers")
    assert says(found.reason("a", "c"), "3 answers to both", 2)
    assert says(found.reason("c", "c"), "3 answers", 2) and not says(found.reason("c", "c"), "both")
    assert found.reason("a", "a") is None
    assert found.pairs() == []


def test_pairs_come_the_most_alike_first() -> None:
    a = np.array([1.0, 0, 1, 0, 1, 0, 1, 1])
    b = np.array([1.0, 0, 1, 0, 1, 0, 1, 0])
    answers = np.column_stack([a, 1 - a, b])
    pairs = phi_matrix(["a", "not a", "b"], answers).pairs()
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("not a", "b"), ("a", "not a")]
    assert pairs[-1].phi == -1
    assert pairs[0].n == 8


def test_questions_answered_alike_are_one_and_unrelated_ones_are_as_many_as_they_are() -> None:
    one = np.repeat(drawn(100, 1, 0), 6, axis=1)
    assert relatedness(phi_matrix(names(one), one)).effective == pytest.approx(1)
    unrelated = np.array([[a, b, c] for a in (0.0, 1) for b in (0.0, 1) for c in (0.0, 1)])
    assert relatedness(phi_matrix(names(unrelated), unrelated)).effective == pytest.approx(3)


def test_the_effective_number_is_the_participation_ratio_of_the_eigenvalues() -> None:
    answers = drawn(200_000, 12, 0.4)
    found = phi_matrix(names(answers), answers)
    values = np.linalg.eigvalsh(found.values)
    assert relatedness(found).effective == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=1e-3)


def test_few_examples_do_not_make_questions_look_related() -> None:
    answers = drawn(60, 100, 0)
    found = phi_matrix(names(answers), answers)
    assert 100**2 / np.nansum(found.values**2) < 45
    assert relatedness(found).effective > 90


def test_replicates_of_an_example_are_no_further_examples() -> None:
    answers = drawn(60, 100, 0)
    often = phi_matrix(names(answers), np.repeat(answers, 5, axis=0), replicates=5)
    assert often.together[0, 1] == 300
    assert often.examples[0, 1] == 60
    assert relatedness(often).effective == pytest.approx(relatedness(phi_matrix(names(answers), answers)).effective)


def test_weak_pairs_are_those_below_three_tenths() -> None:
    answers = drawn(2000, 3, 0.0)
    found = relatedness(phi_matrix(["a", "b", "c", "a again"], np.column_stack([answers, answers[:, 0]])))
    assert found.pairs == 6
    assert found.weak_share == pytest.approx(5 / 6)
    assert found.mean == pytest.approx(1 / 6, abs=0.03)


@pytest.mark.parametrize(
    ("answers", "effective", "reason"),
    [
        ([[1.0, 1], [1, 1], [1, 1]], None, "no question varies"),
        ([[1.0, 1], [1, 0], [1, 1]], 1.0, "only one question varies"),
        ([[1.0, NO], [0, NO], [1, NO], [NO, 1], [NO, 0], [NO, 1]], None, "no two have a phi"),
    ],
)
def test_where_there_is_no_pair_it_is_said_why(answers: list, effective: float | None, reason: str) -> None:
    found = relatedness(phi_matrix(["a", "b"], np.array(answers)))
    assert (found.effective, found.reason, found.mean, found.weak_share) == (effective, reason, None, None)


def test_answers_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        phi_matrix(["a"], np.ones((4, 2)))
    with pytest.raises(InputError, match="shape"):
        phi_matrix(["a", "b"], np.ones((5, 2)), replicates=2)
