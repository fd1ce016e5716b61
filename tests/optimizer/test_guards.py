"""A gain may not be bought with bias, nor one dimension's success with another's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from askance.evaluation.scoring import ExampleScore, Targets, dimension_errors, overall_errors
from askance.optimizer.acceptance import BiasGuard, CorrelationYardstick, MeanYardstick, PairedAcceptance, PassRateGuard
from askance.optimizer.subject import Crossed, CrossedFold
from askance.prompts.examples import Example
from tests.said import says

N = 20
EXAMPLES = [Example(id=f"e{n}", input="i") for n in range(N)]
TRUTH = [n / (N - 1) for n in range(N)]


def targets(*dimensions: str) -> Targets:
    return Targets("human", dimensions, {f"e{n}": dict.fromkeys(dimensions, TRUTH[n]) for n in range(N)})


def scores(**dimensions: Sequence[float | None]) -> list[ExampleScore]:
    rows = [{name: values[n] for name, values in dimensions.items()} for n in range(N)]
    return [ExampleScore(f"e{n}", next(iter(row.values())), row) for n, row in enumerate(rows)]


def bias(limit: float = 0.15, *dimensions: str) -> BiasGuard:
    return BiasGuard(CorrelationYardstick(targets(*(dimensions or ("d",))), resamples=100, seed=1), limit)


def moved(by: float) -> list[float]:
    return [0.5 * each + 0.25 + by for each in TRUTH]


def test_a_judge_that_only_became_severer_is_refused_with_its_means() -> None:
    problem = bias().problem(scores(d=moved(0.0)), scores(d=moved(-0.3)), EXAMPLES)
    assert problem is not None
    assert says(problem, "more severe", "on d", "-0.30", "+0.00")


def test_a_judge_that_only_became_more_lenient_is_refused_too() -> None:
    problem = bias().problem(scores(d=moved(0.0)), scores(d=moved(0.3)), EXAMPLES)
    assert problem is not None
    assert "more lenient" in problem


def test_a_severer_judge_that_ranks_better_is_let_through() -> None:
    before = [0.9 if n % 2 else 0.8 for n in range(N)]
    assert bias().problem(scores(d=before), scores(d=[0.2 * each for each in TRUTH]), EXAMPLES) is None


def test_a_judge_that_moves_towards_the_wanted_mean_is_let_through() -> None:
    assert bias().problem(scores(d=moved(0.4)), scores(d=moved(0.0)), EXAMPLES) is None


def test_a_small_move_is_no_bias() -> None:
    assert bias(0.15).problem(scores(d=moved(0.0)), scores(d=moved(-0.14)), EXAMPLES) is None
    assert bias(0.13).problem(scores(d=moved(0.0)), scores(d=moved(-0.14)), EXAMPLES) is not None


def test_every_dimension_is_looked_at() -> None:
    before, after = scores(a=moved(0.0), b=moved(0.0)), scores(a=moved(0.0), b=moved(-0.3))
    problem = bias(0.15, "a", "b").problem(before, after, EXAMPLES)
    assert problem is not None
    assert "on b" in problem


def test_judges_of_several_folds_are_held_against_people_by_their_ranks_within_each() -> None:
    """Each fold is tested by another judge: pooled, their scores rank it by whose they are."""
    before = scores(d=[1 - each if n % 7 == 0 else each for n, each in enumerate(TRUTH)])
    after = scores(d=[0.9 + each / 100 if n % 2 else 0.8 + each / 100 for n, each in enumerate(TRUTH)])
    halves = slice(0, N, 2), slice(1, N, 2)
    folds = tuple(CrossedFold(EXAMPLES[each], before[each], after[each], after[each]) for each in halves)
    assert bias().problem(before, after, EXAMPLES) is not None
    acceptance = PairedAcceptance(bias().yardstick, (), 0.1, guard=bias())
    assert acceptance.decide_crossed(Crossed(folds)).accepted


@pytest.mark.parametrize(("turned", "accepted"), [(2, True), (14, False)])
def test_learned_questions_may_move_the_mean_of_what_they_say_nothing_of(turned: int, accepted: bool) -> None:
    """They are read against accepted outputs on every dimension; a ranking that is a hair lower is no loss."""
    still = [each / 10 for each in (*TRUTH[:turned][::-1], *TRUTH[turned:])]
    before, after = scores(d=TRUTH[::-1], still=TRUTH), scores(d=TRUTH, still=still)
    guard = bias(0.15, "d", "still")
    acceptance = PairedAcceptance(guard.yardstick, (), 0.1, guard=guard)
    found = acceptance.decide_crossed(Crossed((CrossedFold(EXAMPLES, before, after, after),)))
    assert (
        found.accepted is accepted and ("on still" in found.reason and "clearly worse" in found.reason) is not accepted
    )
    problem = guard.problem(before, after, EXAMPLES)
    assert problem is not None and "ranks no better there" in problem, "an edit of the prompt has to rank better"


def test_errors_leave_out_what_either_side_lacks() -> None:
    values: list[float | None] = [None if n == 0 else value + 0.1 for n, value in enumerate(TRUTH)]
    found = dimension_errors(scores(d=values), targets("d"))["d"]
    assert found.bias == pytest.approx(0.1)
    assert found.mean_absolute == pytest.approx(0.1)
    assert found.n == N - 1
    nothing = dimension_errors(scores(d=[None] * N), targets("d"))["d"]
    row = nothing.to_dict()
    assert says(row.pop("reason"), "no example", "a wanted score")
    assert row == {"mean_absolute": None, "drift": None, "n": 0}
    assert overall_errors(scores(d=values), targets("d")) == found


def test_a_generator_may_not_lose_a_dimension_while_its_mean_rises() -> None:
    before = scores(form=[0.2] * N, facts=[0.9] * N)
    after = scores(form=[1.0] * N, facts=[0.6] * N)
    assert PassRateGuard(0.15).problem(before, after, EXAMPLES) == "'facts' fell from 0.90 to 0.60"
    assert PassRateGuard(0.35).problem(before, after, EXAMPLES) is None
    assert PassRateGuard(0.15).problem(before, before, EXAMPLES) is None


def test_of_several_losses_the_largest_is_named() -> None:
    before = scores(a=[1.0] * N, b=[1.0] * N)
    problem = PassRateGuard(0.1).problem(before, scores(a=[0.8] * N, b=[0.5] * N), EXAMPLES)
    assert problem is not None
    assert problem.startswith("'b'")


def test_the_acceptance_test_refuses_what_its_guard_finds_although_the_yardstick_rises() -> None:
    """As Relevance did in BinEval: the figure of the whole rises, a part of it is only judged more severely."""
    before = scores(form=[n % 2 / 2 for n in range(N)], facts=[0.9] * N)
    after = [ExampleScore(each.example, 0.5 + (each.overall or 0), {"form": 1.0, "facts": 0.5}) for each in before]
    yardstick = MeanYardstick(resamples=200, seed=1)
    assert PairedAcceptance(yardstick, EXAMPLES, level=0.1).decide(before, after).accepted
    decision = PairedAcceptance(yardstick, EXAMPLES, level=0.1, guard=PassRateGuard(0.15)).decide(before, after)
    assert not decision.accepted
    assert decision.reason.startswith("'facts' fell from 0.90 to 0.50 (mean score +0.500")
    assert not decision.within_noise, "no further edit makes up for it"
