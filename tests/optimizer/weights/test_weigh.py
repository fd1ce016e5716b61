from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from askance.evaluation.weights_file import weighted_by
from askance.optimizer.weights.evidence import Floats, PairDifferences
from askance.optimizer.weights.learner_choice import find_learner
from askance.optimizer.weights.learners import LearningFailedError
from askance.optimizer.weights.score_tables import PreferenceScores, preference_scores
from askance.optimizer.weights.weigh import learn_weights
from askance.optimizer.weights.weights_result import sentences, weights_report
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError, MissingExtraError
from tests.said import naming, says

Simulate = Callable[..., PreferenceScores]
SKEWED = [0.8, 0.15, 0.05, 0.0]


@dataclass(frozen=True)
class Refuses:
    """A learner that never learns."""

    error: Exception
    name: str = "refuses"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        raise self.error


@dataclass(frozen=True)
class Remembers:
    """A learner that notes which pairs it was shown."""

    shown: list[set[int]]
    name: str = "remembers"
    quick: bool = True

    def learn(self, pairs: PairDifferences, *, seed: int, start: Floats | None = None) -> Floats:
        self.shown.append(set(pairs.groups.tolist()))
        return np.full(pairs.tests, 1 / pairs.tests)


def test_learned_weights_that_beat_uniform_are_said_to(simulate: Simulate) -> None:
    result = learn_weights(simulate(SKEWED, 300))
    assert result.verdict == "better"
    assert result.held_out.difference_low is not None
    assert result.held_out.difference_low > 0
    assert says(sentences(result)[0], "uniform weights", "beyond noise")
    assert result.power.more == 0


def test_pairs_that_are_turned_round_are_said_to_be(simulate: Simulate) -> None:
    right = simulate(SKEWED, 300)
    turned = replace(right, preferred=-right.preferred)
    said = [" ".join(sentences(learn_weights(each))) for each in (right, turned)]
    assert [says(each, "turned round") for each in said] == [False, True]


def test_weights_that_buy_nothing_are_not_said_to_beat_uniform(simulate: Simulate) -> None:
    result = learn_weights(simulate([0.25] * 4, 200, flips=0.2))
    assert result.verdict in ("cannot tell", "same")
    assert not any(says(said, "beyond noise") for said in sentences(result))


def test_a_forced_learner_within_noise_says_how_many_more_pairs_would_tell(simulate: Simulate) -> None:
    result = learn_weights(simulate([0.3, 0.25, 0.25, 0.2], 80, flips=0.2), method="logistic", compare=(), resamples=10)
    assert result.verdict == "cannot tell"
    said = " ".join(sentences(result))
    assert "within noise" in said
    assert "decided pairs" in said


def test_all_learners_are_judged_on_the_same_held_out_pairs(simulate: Simulate) -> None:
    result = learn_weights(simulate(SKEWED, 120), resamples=5)
    totals = {
        score.name: score.right + score.score_ties + score.wrong
        for score in result.learners
        if score.right is not None and score.score_ties is not None and score.wrong is not None
    }
    assert set(totals) == {"auto", "uniform", "best-single", "logistic", "robust"}
    assert set(totals.values()) == {result.counts.held_out} == {120}


def test_uniform_is_always_among_the_learners(simulate: Simulate) -> None:
    result = learn_weights(simulate(SKEWED, 60), method="logistic", compare=(), resamples=2)
    assert [score.name for score in result.learners] == ["logistic", "uniform"]


def test_the_accuracy_of_uniform_weights_is_the_plain_share(simulate: Simulate) -> None:
    prefs = simulate(SKEWED, 100)
    result = learn_weights(prefs, method="uniform", compare=())
    right = ((prefs.scores_a - prefs.scores_b).sum(axis=1) > 0) == (prefs.preferred > 0)
    assert result.held_out.accuracy == pytest.approx(right.mean())
    assert result.low is None
    assert result.no_interval is not None
    assert "same whatever" in result.no_interval


def test_held_out_groups_are_never_shown_to_the_learner() -> None:
    prefs = preference_scores(
        [str(number) for number in range(40)],
        ["q", "r"],
        np.random.default_rng(0).random((40, 2)),
        np.random.default_rng(1).random((40, 2)),
        ["a", "b"] * 20,
        groups=[f"context {number % 8}" for number in range(40)],
    )
    shown: list[set[int]] = []
    learn_weights(prefs, method=Remembers(shown), compare=(), folds=4, resamples=0)
    assert [len(groups) for groups in shown] == [6, 6, 6, 6, 8]


def test_the_same_seed_gives_the_same_report(simulate: Simulate) -> None:
    reports = [weights_report(learn_weights(simulate(SKEWED, 60), resamples=20, seed=5)) for _ in range(2)]
    for report in reports:
        for learner in (*report["learners"], report["held_out"]):
            del learner["seconds"]
    assert reports[0] == reports[1]


def test_score_ties_and_data_ties_are_counted_and_shown() -> None:
    labels = ["a"] * 30 + ["tie"] * 10
    a = [[1.0, 0.0]] * 15 + [[0.0, 0.0]] * 15 + [[0.5, 0.5]] * 4 + [[1.0, 1.0]] * 6
    prefs = preference_scores([str(n) for n in range(40)], ["q", "r"], a, np.zeros((40, 2)), labels)
    result = learn_weights(prefs, method="uniform", compare=())
    assert (result.held_out.right, result.held_out.score_ties, result.held_out.wrong) == (15, 15, 0)
    assert result.held_out.accuracy == pytest.approx(0.75)
    assert (result.counts.decided, result.counts.data_ties) == (30, 10)
    assert result.counts.data_ties_tied_by_score == 0
    assert result.counts.mean_margin_data_ties == pytest.approx(0.8)
    said = " ".join(sentences(result))
    assert says(said, "15 held-out pairs", "tie")
    assert "People called 10 pairs a tie" in said


def test_pairs_left_out_are_counted_and_shown() -> None:
    scores = np.random.default_rng(0).random((30, 2))
    scores[:5, 1] = np.nan
    prefs = preference_scores([str(n) for n in range(30)], ["q", "r"], scores, 1 - scores, ["a", "b"] * 15)
    result = learn_weights(prefs, method="uniform", compare=())
    assert (result.counts.read, result.counts.left_out, result.counts.decided) == (30, 5, 25)
    assert says("\n".join(sentences(result)), "5 of 30 pairs", "r, 5 times")


def test_a_learner_that_fails_is_shown_with_its_reason_beside_the_others(simulate: Simulate) -> None:
    broken = Refuses(LearningFailedError("nothing to learn"))
    absent = Refuses(MissingExtraError("weights", "optuna"), name="absent")
    result = learn_weights(simulate(SKEWED, 60), method="logistic", compare=(broken, absent), resamples=2)
    failures = {score.name: score.reason for score in result.learners if score.reason}
    assert failures["refuses"] == "nothing to learn"
    assert "optuna" in failures["absent"]
    assert all(score.accuracy is None for score in result.learners if score.reason)


def test_a_method_that_fails_is_an_error(simulate: Simulate) -> None:
    with pytest.raises(LearningFailedError, match="nothing to learn"):
        learn_weights(simulate(SKEWED, 60), method=Refuses(LearningFailedError("nothing to learn")), compare=())


def test_pairs_without_a_preference_are_refused() -> None:
    prefs = preference_scores(["1", "2"], ["q"], np.ones((2, 1)), np.zeros((2, 1)), ["tie", "tie"])
    with pytest.raises(InputError, match=naming("none of the", "2 pairs")):
        learn_weights(prefs)


def test_intervals_hold_known_weights_about_as_often_as_they_promise(simulate: Simulate) -> None:
    truth = np.array([0.5, 0.3, 0.2])
    inside = []
    for seed in range(12):
        result = learn_weights(
            simulate(truth.tolist(), 200, seed=seed), method="robust", compare=(), folds=1, resamples=60
        )
        assert result.low is not None
        assert result.high is not None
        inside.append((result.low <= truth) & (truth <= result.high))
    assert np.mean(inside) >= 0.75


def test_a_file_weighs_a_checklist_for_every_section(simulate: Simulate, tmp_path: Path) -> None:
    result = learn_weights(simulate(SKEWED, 80, sections=["x", "y"] * 40), level="section", pooling="none", resamples=2)
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(weights_report(result), allow_nan=False), encoding="utf-8")
    checklist = Checklist(questions=tuple(Question(id=test, text="Is it?") for test in result.tests))
    weighted = weighted_by(checklist, path)
    tests = len(result.tests)
    assert [question.weight for question in weighted.questions] == pytest.approx((tests * result.weights).tolist())
    assert list(weighted.section_weights) == ["x", "y"]
    for section in result.sections:
        found = weighted.section_weights[section.name]
        assert [found[test] for test in result.tests] == pytest.approx((tests * section.weights).tolist())
    path.write_text(json.dumps(dict.fromkeys(result.tests, 1)), encoding="utf-8")
    assert weighted_by(weighted, path).section_weights == {}


def test_many_pairs_are_split_once(simulate: Simulate) -> None:
    result = learn_weights(simulate(SKEWED, 20_001), method="logistic", compare=(), resamples=0)
    assert result.folds == 1
    assert result.counts.held_out == pytest.approx(10_000, abs=5)


def test_a_single_test_is_no_several() -> None:
    pairs = preference_scores(
        [f"p{n}" for n in range(30)], ["r"], [[n % 2 / 2] for n in range(30)], [[0.3]] * 30, ["a", "b", "a"] * 10
    )
    assert says("\n".join(sentences(learn_weights(pairs))), "one test", "the whole weight")


def test_a_file_in_which_every_pair_lacks_a_score_says_so() -> None:
    prefs = preference_scores(["1", "2"], ["q"], [[None], [0.5]], [[0.5], [None]], ["a", "b"])
    with pytest.raises(InputError, match=naming("2 pairs", "missing")):
        learn_weights(prefs)


def test_options_out_of_range_are_refused(simulate: Simulate) -> None:
    with pytest.raises(InputError, match="folds is 0"):
        learn_weights(simulate(SKEWED, 30), folds=0)


def test_optuna_is_another_name_for_its_default_sampler() -> None:
    assert find_learner("optuna").name == "optuna-tpe"
