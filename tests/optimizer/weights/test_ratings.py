from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.evaluation.weights_file import weighted_by
from askance.optimizer.weights.evidence import RatedScores, grouped_folds
from askance.optimizer.weights.judged_pairs import prepare_ratings
from askance.optimizer.weights.learners import LeastSquares, RankSearch
from askance.optimizer.weights.score_tables import (
    PreferenceScores,
    RatingScores,
    load_ratings,
    preference_scores,
    rating_scores,
)
from askance.optimizer.weights.weigh import learn_weights
from askance.optimizer.weights.weights_result import PairCounts, RatingCounts, sentences, weights_report
from askance.prompts.checklist import Checklist, Question
from askance.prompts.errors import InputError
from askance.testing import ScriptedModel
from tests.said import naming, says


def ratings_to_pairs(ratings: RatingScores) -> PreferenceScores:
    """Make a preference pair of every two rated outputs of one context; equal ratings make a data tie."""
    codes = np.unique(np.array(ratings.groups), return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    firsts, seconds = [], []
    for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        left, right = np.triu_indices(len(members), 1)
        firsts.append(members[left])
        seconds.append(members[right])
    first, second = np.concatenate(firsts), np.concatenate(seconds)
    signs = np.sign(ratings.ratings[first] - ratings.ratings[second])
    return preference_scores(
        [f"{ratings.ids[a]} | {ratings.ids[b]}" for a, b in zip(first, second, strict=True)],
        ratings.tests,
        ratings.scores[first],
        ratings.scores[second],
        ["tie" if sign == 0 else "a" if sign > 0 else "b" for sign in signs],
        groups=[ratings.groups[a] for a in first],
    )


def simulate(weights: list[float], outputs: int, *, noise: float = 0.05, seed: int = 0) -> RatingScores:
    rng = np.random.default_rng(seed)
    scores = rng.random((outputs, len(weights)))
    ratings = np.exp(5 * (scores @ np.array(weights) + noise * rng.normal(size=outputs)))
    names = [f"t{number}" for number in range(len(weights))]
    groups = [f"context {number // 4}" for number in range(outputs)]
    return rating_scores([str(number) for number in range(outputs)], names, scores, ratings, groups=groups)


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "ratings.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_weights_are_recovered_from_ratings_on_any_scale() -> None:
    result = learn_weights(ratings=simulate([0.6, 0.3, 0.1, 0.0], 240), method="rank-search", resamples=0)
    assert result.weights == pytest.approx([0.6, 0.3, 0.1, 0.0], abs=0.05)
    assert result.verdict == "better"


def test_ratings_and_pairs_are_learned_from_together() -> None:
    ratings = simulate([0.6, 0.3, 0.1], 120)
    both = learn_weights(ratings=ratings, pairs=ratings_to_pairs(ratings), resamples=0)
    assert isinstance(both.counts, RatingCounts)
    assert both.counts.pair_share == 0.5
    assert both.counts.pairs == 180
    assert both.weights == pytest.approx([0.6, 0.3, 0.1], abs=0.1)
    assert all(score.pair_accuracy is not None for score in both.learners)


def test_pairs_that_say_nothing_are_said_to_say_nothing() -> None:
    ratings = simulate([0.6, 0.3, 0.1], 60)
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 12, 3))
    b[:5, 1] = np.nan
    pairs = preference_scores([f"p{n}" for n in range(12)], ratings.tests, a, b, ["tie"] * 12)
    found = learn_weights(ratings=ratings, pairs=pairs, method="least-squares", resamples=0)
    counts = found.counts
    assert isinstance(counts, RatingCounts)
    assert (counts.pairs, counts.pairs_decided, counts.pairs_left_out, counts.pair_share) == (7, 0, 5, 0.0)
    assert all(score.pair_accuracy is None for score in found.learners)
    assert "NaN" not in json.dumps(weights_report(found))
    said = "\n".join(sentences(found))
    assert says(said, "5 of 12 pairs", "missing") and says(said, "In no pair", "prefer")
    alone = learn_weights(ratings=ratings, method="least-squares", resamples=0)
    assert found.weights == pytest.approx(alone.weights)
    assert "pairs" not in " ".join(sentences(alone))


def test_uniform_weights_are_kept_when_they_are_right() -> None:
    result = learn_weights(ratings=simulate([0.25] * 4, 80, noise=0.2), resamples=0)
    assert result.verdict in ("cannot tell", "same")
    assert "within noise" in " ".join(sentences(result)) or result.learner == "uniform"


def test_the_objective_is_spearmans_correlation() -> None:
    from scipy.stats import spearmanr

    ratings = simulate([0.5, 0.5], 50, noise=0.3)
    coarse = np.round(ratings.scores * 3) / 3
    candidates = np.array([[0.5, 0.5], [0.9, 0.1]])
    values = RatedScores(coarse, ratings.ratings, np.arange(50)).objective(candidates)
    expected = [spearmanr(coarse @ weights, ratings.ratings).statistic for weights in candidates]
    assert values == pytest.approx(expected)


def test_one_resample_is_said_to_make_no_interval() -> None:
    ratings = simulate([0.5, 0.5], 50)
    of_ratings = learn_weights(ratings=ratings, method="best-single", resamples=1)
    of_pairs = learn_weights(ratings_to_pairs(ratings), method="robust", compare=(), resamples=1)
    assert of_ratings.no_interval == of_pairs.no_interval and says(of_pairs.no_interval, "one resample", "two or more")
    assert of_ratings.low is None and of_pairs.low is None


@pytest.mark.filterwarnings("error")
def test_ratings_of_one_context_beside_pairs_of_others_are_learned_from() -> None:
    whole = simulate([0.9, 0.1], 24)
    rated = rating_scores(whole.ids, whole.tests, whole.scores, whole.ratings, groups=["one"] * 24)
    found = learn_weights(ratings=rated, pairs=ratings_to_pairs(whole), method="rank-search", resamples=2)
    failed = {score.name: score.reason for score in found.learners if score.spearman is None}
    assert set(failed) == {"least-squares"} and says(failed["least-squares"], "no rated output")
    assert found.weights[0] > 0.5


def test_a_constant_score_never_wins_the_search() -> None:
    scores = np.column_stack([np.full(20, 0.5), np.arange(20) / 20])
    rated = RatedScores(scores, -np.arange(20.0), np.arange(20))
    assert rated.objective(np.array([[1.0, 0.0]])).tolist() == [-np.inf]
    assert RankSearch().maximise(rated, np.array([0.5, 0.5]))[1] > 0


def test_a_constant_score_never_wins_though_pairs_alone_count() -> None:
    scores = np.column_stack([np.arange(20) / 20, np.full(20, 0.5)])
    ids = [str(number) for number in range(20)]
    ratings = rating_scores(ids, ["says", "silent"], scores, np.arange(20.0))
    pairs = preference_scores(ids, ["says", "silent"], scores * 0.5 + 0.25, np.full((20, 2), 0.2), ["a"] * 20)
    found = learn_weights(ratings=ratings, pairs=pairs, method="best-single", pair_share=1.0, resamples=2)
    assert found.weights.tolist() == [1.0, 0.0]


def test_the_search_never_ends_below_its_start() -> None:
    ratings = simulate([0.4, 0.3, 0.2, 0.1], 60, noise=0.3)
    rated = RatedScores(ratings.scores, ratings.ratings, np.arange(60))
    start = LeastSquares().learn(rated, seed=0)
    end = RankSearch().learn(rated, seed=0)
    assert rated.objective(end[None, :])[0] >= rated.objective(start[None, :])[0]


def test_pairs_made_of_ratings_go_through_weigh() -> None:
    result = learn_weights(ratings_to_pairs(simulate([0.9, 0.1], 120)), method="robust", compare=(), resamples=5)
    assert isinstance(result.counts, PairCounts) and result.counts.groups == 30
    assert result.weights[0] > 0.8


def test_ratings_are_read_from_a_field_or_from_human_scores(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "scores": {"q": 1}, "rating": 4, "human": {"fluency": [1, 2]}},
        {"id": 2, "scores": {"q": None}, "rating": 5, "human": {"fluency": 3}},
    ]
    path = write(tmp_path, *rows)
    plain = load_ratings(path)
    assert (plain.ids, plain.ratings.tolist()) == (("1",), [4.0])
    assert [output.id for output in plain.left_out] == ["2"]
    assert load_ratings(path, dimension="fluency").ratings.tolist() == [1.5]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "1", "scores": {"q": 1}}, "line 1: the field 'rating' is missing"),
        ({"id": "1", "scores": {"q": 1}, "rating": "superb"}, "line 1, field 'rating': .*--labels"),
        ({"id": "1", "scores": {"q": 2}, "rating": 1}, "line 1, field 'scores.q'"),
        ({"id": "1", "rating": 1}, "line 1: the field 'scores' is missing"),
    ],
)
def test_errors_name_the_line_and_field(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_ratings(write(tmp_path, row))


def test_a_dimension_that_is_not_there_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "1", "scores": {"q": 1}, "human": {"fluency": 3}})
    with pytest.raises(InputError, match="Did you mean 'fluency'"):
        load_ratings(path, dimension="fluencey")


def test_the_dimension_is_the_only_one_or_overall(tmp_path: Path) -> None:
    row: dict[str, Any] = {"id": "1", "scores": {"q": 1}}
    assert load_ratings(write(tmp_path, row | {"human": {"fluency": 3}})).ratings.tolist() == [3]
    assert load_ratings(write(tmp_path, row | {"human": {"fluency": 3, "overall": 4}})).ratings.tolist() == [4]
    with pytest.raises(InputError, match=naming("fluency", "style", "--rating-dimension")):
        load_ratings(write(tmp_path, row | {"human": {"fluency": 3, "style": 4}}))


def test_scores_may_stand_in_the_metadata_as_in_examples(tmp_path: Path) -> None:
    rows = [{"id": f"{each}", "metadata": {"scores": {"q": each / 4}}, "rating": each} for each in range(4)]
    assert load_ratings(write(tmp_path, *rows)).scores[:, 0].tolist() == [0, 0.25, 0.5, 0.75]
    assert len(load_ratings(tmp_path / "ratings.jsonl", limit=2).ids) == 2


def test_ratings_and_pairs_of_different_tests_are_refused() -> None:
    pairs = ratings_to_pairs(simulate([0.5, 0.5], 20))
    with pytest.raises(InputError, match="different tests"):
        learn_weights(ratings=simulate([0.5, 0.3, 0.2], 20), pairs=pairs)


def test_ratings_that_are_all_the_same_are_refused() -> None:
    ratings = rating_scores(["x", "y", "z"], ["q"], np.random.default_rng(0).random((3, 1)), [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=naming("three rated outputs", "the same")):
        learn_weights(ratings=ratings)


def test_the_report_is_json_and_its_weights_can_be_loaded(tmp_path: Path) -> None:
    result = learn_weights(ratings=simulate([0.6, 0.3, 0.1], 60), resamples=5)
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(weights_report(result), allow_nan=False), encoding="utf-8")
    checklist = Checklist(questions=tuple(Question(id=test, text="Is it?") for test in result.tests))
    found = [question.weight for question in weighted_by(checklist, path).questions]
    assert found == pytest.approx((3 * result.weights).tolist())


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = (learn_weights(ratings=simulate([0.6, 0.4], 60), resamples=5, seed=3) for _ in range(2))
    assert weights_report(first) == weights_report(second)


def test_choices_are_made_without_the_held_out_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    from askance.optimizer.weights import heldout
    from askance.optimizer.weights import weigh as weighing

    seen: list[int] = []
    choose_recipe = weighing.choose_recipe

    def noting(data: Any, *rest: Any, **settings: Any) -> Any:
        seen.append(len(data.ratings))
        return choose_recipe(data, *rest, **settings)

    monkeypatch.setattr(weighing, "choose_recipe", noting)
    monkeypatch.setattr(heldout, "choose_recipe", noting)
    learn_weights(ratings=simulate([0.5, 0.5], 40), folds=5, resamples=0)
    assert set(seen[:-1]) == {32}
    assert seen[-1] == 40


def test_labels_are_ratings_and_words_of_ones_own_are_too(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "scores": {"q": 1}, "rating": "Pass", "human": {"tone": ["fine", "yes"]}},
        {"id": 2, "scores": {"q": 0}, "rating": False, "human": {"tone": ["poor", 1]}},
    ]
    path = write(tmp_path, *rows)
    assert load_ratings(path).ratings.tolist() == [1, 0]
    labels = {"good": ("fine",), "bad": ("poor",)}
    assert load_ratings(path, dimension="tone", labels=labels).ratings.tolist() == [1, 0.5]
    with pytest.raises(InputError, match=r"line 1, field 'human\.tone': 'tone': 'fine' is no label"):
        load_ratings(path, dimension="tone")


def test_labels_beside_scores_are_refused_with_their_field(tmp_path: Path) -> None:
    rows = [{"id": n, "scores": {"q": n}, "rating": value} for n, value in enumerate(("pass", 4))]
    with pytest.raises(InputError, match=naming("line 2", "'rating'", 4, "score")):
        load_ratings(write(tmp_path, *rows))


def rare_failures(outputs: int, failures: int) -> RatingScores:
    """Outputs of which a few fail, and one test that knows which."""
    rng = np.random.default_rng(0)
    ratings = (np.arange(outputs) >= failures).astype(float)
    scores = np.column_stack(
        [0.3 + 0.5 * ratings + 0.1 * rng.random(outputs), rng.random(outputs), rng.random(outputs)]
    )
    return rating_scores([str(number) for number in range(outputs)], ["knows", "one", "two"], scores, ratings)


def test_a_fold_whose_ratings_are_all_the_same_has_no_order_and_is_left_out() -> None:
    from scipy.stats import spearmanr

    ratings = rare_failures(60, 3)
    result = learn_weights(ratings=ratings, method="uniform", resamples=0)
    found = next(each for each in result.learners if each.name == "uniform")
    held_out = [split.test for split in grouped_folds(np.arange(60), 5, 42)]
    ordered = [rows for rows in held_out if np.ptp(ratings.ratings[rows])]
    in_order = sum(map(len, ordered))
    assert isinstance(result.counts, RatingCounts)
    assert 0 < len(ordered) < 5 and result.counts.without_order == 60 - in_order
    score = ratings.scores.mean(axis=1)
    wanted = [spearmanr(score[rows], ratings.ratings[rows]).statistic for rows in ordered]
    assert found.spearman == pytest.approx(np.average(wanted, weights=[len(rows) for rows in ordered]))
    assert found.low is not None and found.low < found.spearman
    assert f"On {in_order} held-out outputs" in sentences(result)[0]


def test_resamples_without_any_order_are_no_reason_to_leave_the_others_out_or_to_fail() -> None:
    """Of 60 outputs 2 fail: neither is drawn in one of eight resamples, and in a fold that has one in one of three."""
    result = learn_weights(ratings=rare_failures(60, 2), method="least-squares")
    assert result.low is None and result.high is None and result.weights.argmax() == 0
    assert result.no_interval is not None and "of the 100 resamples" in result.no_interval
    assert weights_report(result)["intervals_reason"] == result.no_interval
    alone = learn_weights(ratings=rare_failures(60, 1), method="uniform")
    assert alone.learners[0].spearman is not None and alone.learners[0].low is None
    assert "no interval: " in (alone.learners[0].reason or "") and alone.verdict == "undefined"
    assert says("\n".join(sentences(alone)), "noise", "not known")
    few = learn_weights(ratings=rare_failures(3, 1), method="uniform")
    assert says(sentences(few)[0], "no fold", "rated differently")


def test_a_scale_on_which_less_is_better_turns_the_ratings(tmp_path: Path) -> None:
    path = write(tmp_path, *({"id": f"{n}", "scores": {"a": n / 4}, "human": {"q": n + 1}} for n in range(5)))
    up, down = (load_ratings(path, human_scale=scale).ratings.tolist() for scale in ((1.0, 5.0), (5.0, 1.0)))
    assert up == [0.0, 0.25, 0.5, 0.75, 1.0] and down == up[::-1]
    assert load_ratings(path).ratings.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(InputError) as caught:
        load_ratings(path, human_scale=(1.0, 4.0))
    assert says(str(caught.value), "line 5", "5", "1 to 4", "--human-scale")


def test_labels_are_on_no_scale(tmp_path: Path) -> None:
    path = write(tmp_path, *({"id": f"{n}", "scores": {"a": n / 2}, "human": {"q": n > 0}} for n in range(3)))
    assert load_ratings(path, human_scale=(5.0, 1.0)).ratings.tolist() == [0, 1, 1]


@pytest.mark.usefixtures("sandbox")
def test_ratings_that_are_judged_go_by_the_scale_too(tmp_path: Path) -> None:
    rows = [{"id": f"{n:02d}", "input": "i", "output": f"o{n}", "human": {"overall": n % 5 + 1}} for n in range(20)]
    asked = Checklist(questions=(Question(id="q", text="Is it right?"),))
    model = ScriptedModel(lambda request: 0.1)
    up, down = (
        prepare_ratings(rows, checklist=asked, model=model, human_scale=scale).unscored.ratings.tolist()
        for scale in ((1.0, 5.0), (5.0, 1.0))
    )
    assert up == [1 - each for each in down] and min(up) == 0 and max(up) == 1
