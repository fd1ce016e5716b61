"""Questions are chosen on one half and measured on the other, and intervals take outputs of one document together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from askance.optimizer.selection import analysis
from askance.optimizer.selection.analysis import (
    SampleTables,
    agreement_with_people,
    analyse,
    equal_groups,
    halvings,
    held_out,
    less_all_questions,
)
from askance.optimizer.selection.information import one_hot


def tables(seed: int, size: int = 80, *, telling: float = 0.0, to_a_document: int = 1, times: int = 1) -> SampleTables:
    """Eight yes/no questions; the first half of them tell of the rating as far as ``telling``, and the others nothing."""
    rng = np.random.default_rng(seed)
    people = rng.integers(0, 3, size).astype(float)
    tells = telling * (people[:, None] - 1) * (np.arange(8) < 4)
    scores = np.clip(0.5 + 0.3 * tells + 0.2 * rng.normal(size=(size, 8)), 0.01, 0.99)
    scores, people = np.repeat(scores, times, axis=0), np.repeat(people, times)
    groups = [f"d{place // to_a_document}" for place in range(size) for _ in range(times)]
    codes = equal_groups(people, 3)
    answers = one_hot((scores > 0.5).astype(np.int64), 2)
    return SampleTables(
        answers, scores, one_hot(codes, 3), codes, people, None, groups if to_a_document > 1 or times > 1 else None
    )


@pytest.mark.parametrize("to_a_document", [1, 5])
def test_a_half_and_the_other_hold_every_example_once_and_no_document_twice(to_a_document: int) -> None:
    sample = tables(1, to_a_document=to_a_document)
    names = np.arange(80) // to_a_document
    pairs = halvings(sample, 4, 7)
    assert len(pairs) == 8
    for chosen_on, looked_at in pairs:
        assert np.array_equal(chosen_on, ~looked_at) and chosen_on.sum() == 40
        assert not set(names[chosen_on]) & set(names[looked_at])
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        assert np.array_equal(first[0], second[1]), "either half chooses once"
    assert len({first[0].tobytes() for first in pairs}) == 8


def test_what_is_looked_at_is_never_what_was_chosen_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example is known by a score of its own."""
    seen: list[set[float]] = []
    looked: list[set[float]] = []
    order, measure = analysis.question_orders, analysis._correlations

    def noting_order(here: SampleTables, *rest: Any) -> Any:
        seen.append(set(here.scores[:, 0]))
        return order(here, *rest)

    def noting_measure(there: SampleTables, *rest: Any) -> Any:
        looked.append(set(there.scores[:, 0]))
        return measure(there, *rest)

    monkeypatch.setattr(analysis, "question_orders", noting_order)
    monkeypatch.setattr(analysis, "_correlations", noting_measure)
    sample = tables(2, telling=0.5)
    sample.scores[:, 0] = np.arange(80) / 80
    every = set(sample.scores[:, 0])
    held_out(sample, None, 3, 5, 3)
    assert len(seen) == 6 and len(looked) == 12
    for place, chosen in enumerate(seen):
        for each in looked[2 * place : 2 * place + 2]:
            assert not chosen & each and chosen | each == every


def test_ratings_by_lot_are_told_nothing_of_on_the_half_that_did_not_choose() -> None:
    told, ranked, on_their_own = [], [], []
    for seed in range(14):
        found = analyse(tables(seed, 60), 3, halves=1, seed=seed)[1]
        for curve in found.values():
            told.append(curve.held_out[2])
            ranked.append(curve.correlation[2])
            on_their_own.append(curve.information[2])
    assert np.mean(on_their_own) > 0.02, "on the examples that chose them questions look better"
    for values in (told, ranked):
        assert abs(np.mean(values)) < 2.8 * np.std(values) / np.sqrt(14) and np.std(values) > 0


def test_questions_that_tell_are_chosen_and_tell_on_the_other_half_too() -> None:
    found = analyse(tables(3, 160, telling=0.8), 3, halves=3, seed=1)[1]
    for curve in found.values():
        assert set(curve.order[:3]) <= {0, 1, 2, 3}
        assert curve.held_out[2] > 0.3 and curve.correlation[2] > 0.5


def test_a_curve_on_people_is_the_rank_correlation_of_the_mean_over_the_first_questions() -> None:
    sample = tables(4, telling=0.5)
    found = analysis._correlations(sample, [2, 0, 6])
    wanted = [
        stats.spearmanr(sample.scores[:, order].mean(axis=1), sample.human)[0] for order in ([2], [2, 0], [2, 0, 6])
    ]
    assert found == pytest.approx(wanted)


def test_each_example_five_times_in_its_document_changes_no_agreement_of_a_selection() -> None:
    once, again = (tables(5, telling=0.5, to_a_document=2, times=times) for times in (1, 5))
    for name in ("chosen", "all"):
        before, after = (agreement_with_people(each, [0, 1, 5], 42)[name] for each in (once, again))
        for method in ("spearman", "kendall", "pearson"):
            first, second = getattr(before, method), getattr(after, method)
            assert (second.value, second.low, second.high) == pytest.approx(
                (first.value, first.low, first.high), abs=1e-9
            )
    for (value, less), (other, more) in zip(
        *(less_all_questions(each, [0, 1, 5], 42) for each in (once, again)), strict=True
    ):
        assert other == pytest.approx(value) and less is not None and more is not None
        assert (more.value, more.low, more.high) == pytest.approx((less.value, less.low, less.high), abs=1e-9)


def test_fewer_questions_are_compared_with_all_of_the_order() -> None:
    sample = tables(6, telling=0.5)
    found = less_all_questions(sample, [0, 5, 1], 42)
    means = [sample.scores[:, order].mean(axis=1) for order in ([0], [0, 5], [0, 5, 1])]
    values = [stats.spearmanr(each, sample.human)[0] for each in means]
    assert [value for value, _ in found] == pytest.approx(values)
    assert [each.value for _, each in found if each is not None] == pytest.approx([each - values[2] for each in values])
