from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from askance.optimizer.weights.evidence import PairDifferences
from askance.optimizer.weights.learner_choice import FEW, Auto, Pooling, Recipe, Shrunk, Weighting, choose_recipe
from askance.optimizer.weights.learners import Robust, Uniform, WeightLearner
from askance.optimizer.weights.score_tables import PreferenceScores
from askance.optimizer.weights.weigh import learn_weights
from askance.optimizer.weights.weights_result import sentences
from tests.said import says

Simulate = Callable[..., PreferenceScores]


def test_few_pairs_keep_uniform_weights_and_say_so(simulate: Simulate) -> None:
    learner, reason = Auto().choose(simulate([0.9, 0.1], FEW - 1).differences(), seed=0)
    assert isinstance(learner, Uniform)
    assert says(reason, f"{FEW - 1} decided pairs", "too few", f"{FEW} pairs")
    _, reason = Auto().choose(simulate([0.9, 0.1], FEW).differences(), seed=0)
    assert says(reason, "in cross-validation"), "so many are enough"


def test_pairs_of_one_context_are_too_few_however_many(simulate: Simulate) -> None:
    pairs = simulate([0.9, 0.1], 100).differences()
    one = PairDifferences(pairs.differences, pairs.is_tie, np.zeros(100, dtype=np.int64), pairs.sections, pairs.counts)
    assert isinstance(Auto().choose(one, seed=0)[0], Uniform)


def test_uniform_weights_are_kept_when_they_are_right(simulate: Simulate) -> None:
    kept = [Auto().choose(simulate([0.25] * 4, 150, seed=seed).differences(), seed=seed) for seed in range(4)]
    assert sum(isinstance(learner, Uniform) for learner, _ in kept) >= 3


def test_weights_are_learned_when_they_are_far_from_uniform(simulate: Simulate) -> None:
    learner, _ = Auto().choose(simulate([0.9, 0.1, 0.0, 0.0], 150).differences(), seed=0)
    assert not isinstance(learner, Uniform)


def test_shrunk_weights_lie_between_learned_and_uniform_ones(simulate: Simulate) -> None:
    pairs = simulate([0.7, 0.2, 0.1], 300).differences()
    learned = Robust().learn(pairs, seed=0)
    mixed = Shrunk(Robust(), 0.25).learn(pairs, seed=0)
    assert mixed == pytest.approx(0.75 * learned + 0.25 / 3)


def test_a_shrunk_learner_started_at_its_own_weights_stays_there(simulate: Simulate) -> None:
    pairs = simulate([0.7, 0.2, 0.1], 300).differences()
    learner = Shrunk(Robust(), 0.5)
    once = learner.learn(pairs, seed=0)
    assert learner.learn(pairs, seed=0, start=once) == pytest.approx(once, abs=2e-3)


def opposed(simulate: Simulate, pairs: int) -> PreferenceScores:
    """Two sections that want opposite tests."""
    from askance.optimizer.weights.score_tables import preference_scores

    first, second = simulate([0.95, 0.05], pairs, seed=1), simulate([0.05, 0.95], pairs, seed=2)
    labels = ["a" if sign > 0 else "b" for sign in (*first.preferred, *second.preferred)]
    return preference_scores(
        [*first.ids, *second.ids],
        first.tests,
        np.concatenate([first.scores_a, second.scores_a]),
        np.concatenate([first.scores_b, second.scores_b]),
        labels,
        sections=["chat"] * pairs + ["code"] * pairs,
    )


def test_sections_that_want_different_weights_get_them(simulate: Simulate) -> None:
    prefs = opposed(simulate, 150)
    apart = learn_weights(prefs, level="section", compare=(), resamples=20)
    together = learn_weights(prefs, compare=(), resamples=0)
    chat, code = apart.sections
    assert (chat.name, code.name) == ("chat", "code")
    assert chat.weights[0] > 0.8
    assert code.weights[1] > 0.8
    assert chat.low is not None
    assert chat.high is not None
    assert chat.low[0] <= chat.weights[0] <= chat.high[0]
    assert apart.verdict == "better"
    assert apart.held_out.accuracy is not None
    assert together.held_out.accuracy is not None
    assert apart.held_out.accuracy > together.held_out.accuracy + 0.1


def test_sections_that_learned_are_not_called_uniform_as_the_whole_is(simulate: Simulate) -> None:
    found = learn_weights(opposed(simulate, 200), level="section", compare=(), resamples=0)
    said = sentences(found)
    assert found.verdict == "better" and says(said[0], "beyond noise")
    assert says("\n".join(said), "overall weights", "uniform", "2 of 2 sections")
    assert not any(says(each, "not worth it") or says(each, "the same weight") for each in said)


@pytest.mark.parametrize("pooling", ["partial", "none"])
def test_auto_learns_in_sections_though_the_whole_teaches_little(simulate: Simulate, pooling: Pooling) -> None:
    pairs = opposed(simulate, 200).differences("section")
    learned, held_out = pairs.take(np.arange(400) % 2 == 0), pairs.take(np.arange(400) % 2 == 1)

    def right(learner: WeightLearner) -> float:
        recipe, _ = choose_recipe(learned, learner, sections=2, pooling=pooling, seed=0)
        return float((recipe.fit(learned, seed=0).margins(held_out) > 0).mean())

    assert right(Auto()) > right(Robust()) - 0.02
    assert right(Auto()) > right(Uniform()) + 0.1


@pytest.mark.parametrize("pooling", ["partial", "none"])
def test_few_pairs_keep_uniform_weights_in_every_section(simulate: Simulate, pooling: Pooling) -> None:
    pairs = opposed(simulate, FEW // 2 - 1).differences("section")
    recipe, reason = choose_recipe(pairs, Auto(), sections=2, pooling=pooling, seed=0)
    fitted = recipe.fit(pairs, seed=0)
    assert fitted.by_section == pytest.approx(np.full((2, 2), 0.5))
    assert says(reason, "too few", f"{FEW} pairs")
    assert not recipe.learns


def test_kept_apart_only_the_section_with_enough_pairs_learns(simulate: Simulate) -> None:
    pairs = opposed(simulate, 150).differences("section")
    pairs = pairs.take(np.arange(300) < 150 + FEW - 1)
    recipe, reason = choose_recipe(pairs, Auto(), sections=2, pooling="none", seed=0)
    fitted = recipe.fit(pairs, seed=0)
    assert fitted.by_section is not None
    assert fitted.by_section[0][0] > 0.8
    assert fitted.by_section[1] == pytest.approx([0.5, 0.5])
    assert says(reason, "1 of 2", "learned")


def test_small_sections_that_want_the_same_weights_share_them(simulate: Simulate) -> None:
    sections = [f"s{number % 8}" for number in range(240)]
    pairs = simulate([0.6, 0.3, 0.1], 240, sections=sections).differences("section")
    recipe, reason = choose_recipe(pairs, Robust(), sections=8, pooling="partial", seed=0)
    fitted = recipe.fit(pairs, seed=0)
    apart = Recipe(Robust(), (Robust(),) * 8, 0.0).fit(pairs, seed=0)
    assert fitted.by_section is not None
    assert apart.by_section is not None
    spread, unpooled = (np.ptp(each.by_section, axis=0).max() for each in (fitted, apart))
    assert spread < unpooled / 3
    assert reason.startswith("partial pooling")


def test_partial_pooling_weighs_own_pairs_against_the_whole(simulate: Simulate) -> None:
    pairs = simulate([0.6, 0.4], 90, sections=["x"] * 30 + ["y"] * 60).differences("section")
    own = Recipe(Robust(), (Robust(),) * 2, 0.0).fit(pairs, seed=0)
    pooled = Recipe(Robust(), (Robust(),) * 2, 30.0).fit(pairs, seed=0)
    assert own.by_section is not None
    assert pooled.by_section is not None
    assert pooled.by_section[0] == pytest.approx((own.by_section[0] + own.overall) / 2)
    assert pooled.by_section[1] == pytest.approx((2 * own.by_section[1] + own.overall) / 3)


def test_a_section_without_decided_pairs_gets_the_overall_weights(simulate: Simulate) -> None:
    pairs = simulate([0.6, 0.4], 60, sections=["x"] * 30 + ["y"] * 30).differences("section")
    ties = PairDifferences(pairs.differences, np.arange(60) >= 30, pairs.groups, pairs.sections, pairs.counts)
    fitted = Recipe(Robust(), (Robust(),) * 2, 0.0).fit(ties, seed=0)
    assert fitted.by_section is not None
    assert fitted.by_section[1] == pytest.approx(fitted.overall)


def test_a_section_never_seen_uses_the_overall_weights(simulate: Simulate) -> None:
    pairs = simulate([0.5, 0.5], 4, sections=["x", "x", "y", "y"]).differences("section")
    weighting = Weighting(np.array([0.5, 0.5]), np.array([[1.0, 0.0]]))
    margins = weighting.margins(pairs)
    assert margins[:2] == pytest.approx(pairs.differences[:2, 0])
    assert margins[2:] == pytest.approx(pairs.differences[2:].mean(axis=1))
