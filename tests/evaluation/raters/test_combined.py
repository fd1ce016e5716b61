"""One label of several: the rules, and the choice between them by a rater left out."""

from __future__ import annotations

import numpy as np
import pytest

from askance.evaluation.raters.rater_by_rater import choose, combine, combined_ratings
from askance.prompts.examples import Example
from askance.stats.resampling import Resampling
from tests.said import says

FEW = Resampling(resamples=200)


def votes(errors: list[float], n: int = 300, seed: int = 1) -> tuple[np.ndarray, dict[str, list[float | None]]]:
    """True labels, and raters who are wrong in these shares."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    given = {f"r{k}": [float(t if rng.random() >= e else 1 - t) for t in truth] for k, e in enumerate(errors)}
    return truth, given


def test_mean_and_majority_of_what_is_there() -> None:
    columns = {"a": [1, 4, None, None], "b": [1, 2, 3, None], "c": [4, 2, 5, None]}
    assert combine(columns, "mean") == [2, pytest.approx(8 / 3), 4, None]
    assert combine(columns, "majority") == [1, 2, 4, None]


def test_a_model_of_raters_finds_who_is_careless() -> None:
    truth, columns = votes([0.05, 0.05, 0.48, 0.48, 0.48])
    right = {rule: np.mean((np.array(combine(columns, rule)) > 0.5) == truth) for rule in ("majority", "model")}
    assert right["model"] > 0.93 > 0.88 > right["majority"]


def test_a_rater_who_left_most_out_counts_like_the_others_do() -> None:
    _, columns = votes([0.1, 0.1, 0.1])
    columns["r2"] = [columns["r2"][0], *[None] * 299]
    found = combine(columns, "model")
    assert None not in found and all(0 <= each <= 1 for each in found)


def test_the_model_is_taken_where_it_predicts_a_rater_left_out_better() -> None:
    _, columns = votes([0.02, 0.02, 0.02, 0.5, 0.5, 0.5, 0.5], n=400)
    found = choose(columns, FEW)
    assert found.rule == "model" and found.left_out["model"].low is not None
    assert found.left_out["model"].value > found.left_out["mean"].value


def test_the_mean_stays_where_all_raters_are_alike_or_few() -> None:
    assert choose(votes([0.2, 0.2, 0.2])[1], FEW).rule == "mean"
    two = choose(votes([0.1, 0.4])[1], FEW)
    assert two.rule == "mean" and says(two.reason, "three raters") and not two.left_out
    assert choose(votes([0.1, 0.1, 0.1], n=8)[1], FEW).rule == "mean"


def test_combined_ratings_are_of_rated_examples_and_other_rules_than_the_mean() -> None:
    examples = [
        Example(id="a", input="i", output="o", human={"x": (1, 1, 4), "y": (1, 2, 3)}),
        Example(id="b", input="i", output="o"),
    ]
    assert combined_ratings(examples, {"x": "majority", "y": "mean"}) == {"x": {"a": 1.0}}
