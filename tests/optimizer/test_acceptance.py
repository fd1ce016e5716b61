from __future__ import annotations

import numpy as np
import pytest

from askance.optimizer.acceptance import PairedCorrelationGate
from askance.optimizer.scoring import ExampleScore
from askance.optimizer.targets import Targets
from askance.prompts.examples import Example

N = 30
TRUTH = np.linspace(0, 1, N)
NOISE = np.random.default_rng(0).normal(size=(3, N))


def examples(documents: int | None = None) -> list[Example]:
    return [Example(id=f"e{n}", input="i", metadata={"document": n % documents} if documents else {}) for n in range(N)]


def gate(level: float = 0.1, documents: int | None = None, wanted: np.ndarray = TRUTH) -> PairedCorrelationGate:
    targets = Targets("human", ("d",), {f"e{n}": {"d": float(wanted[n])} for n in range(N)})
    return PairedCorrelationGate(targets, examples(documents), level=level, resamples=500, seed=1)


def scores(values: np.ndarray) -> list[ExampleScore]:
    return [ExampleScore(f"e{n}", float(value), {"d": float(value)}) for n, value in enumerate(values)]


def test_a_version_that_ranks_clearly_better_is_accepted() -> None:
    decision = gate().decide(scores(NOISE[0]), scores(TRUTH + 0.1 * NOISE[1]))
    assert decision.accepted
    assert decision.gain is not None
    assert decision.gain.value is not None
    assert decision.gain.value > 0.5
    assert decision.reason.startswith("better on validation (Spearman +")


def test_a_version_that_ranks_worse_is_rejected() -> None:
    decision = gate().decide(scores(TRUTH), scores(NOISE[0]))
    assert not decision.accepted
    assert decision.reason.startswith("no gain on validation")


def test_the_same_version_is_rejected() -> None:
    assert not gate().decide(scores(NOISE[0]), scores(NOISE[0])).accepted


def test_a_small_gain_is_taken_for_noise() -> None:
    before = TRUTH + 0.5 * NOISE[0]
    decision = gate().decide(scores(before), scores(before - 0.1 * NOISE[2]))
    assert not decision.accepted
    assert decision.gain is not None
    assert decision.gain.value is not None
    assert decision.gain.value > 0
    assert "within noise" in decision.reason


def test_a_judge_that_says_the_same_of_everything_can_be_improved() -> None:
    decision = gate().decide(scores(np.full(N, 0.9)), scores(TRUTH + 0.2 * NOISE[0]))
    assert decision.accepted


def test_a_candidate_that_says_the_same_of_everything_is_rejected() -> None:
    assert not gate().decide(scores(TRUTH), scores(np.full(N, 0.9))).accepted


def test_two_constants_are_rejected() -> None:
    assert not gate().decide(scores(np.full(N, 0.9)), scores(np.full(N, 0.1))).accepted


def test_constant_targets_leave_the_gain_undefined_and_the_version_rejected() -> None:
    decision = gate(wanted=np.zeros(N)).decide(scores(NOISE[0]), scores(TRUTH))
    assert not decision.accepted
    assert decision.reason.startswith("the gain is undefined")


def test_examples_of_one_document_do_not_count_as_many() -> None:
    better = scores(TRUTH + 0.3 * NOISE[1])
    assert gate().decide(scores(NOISE[0]), better).accepted
    few = gate(level=0.02, documents=3).decide(scores(NOISE[0]), better)
    assert not few.accepted


def test_useless_edits_pass_about_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(5)
    accepted = 0
    for _ in range(150):
        shared = TRUTH + 0.4 * rng.normal(size=N)
        a, b = (shared + 0.3 * rng.normal(size=N) for _ in range(2))
        accepted += gate().decide(scores(a), scores(b)).accepted
    assert accepted / 150 == pytest.approx(0.1, abs=0.07)
