"""What people reach among themselves; the SummEval experts, where their ratings are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from askance.prompts.errors import InputError
from askance.prompts.examples import Example
from askance.prompts.raters import rater_columns
from askance.stats.agreement import leave_one_out
from askance.stats.resampling import Resampling
from tests.said import naming, says

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def rated(n: int = 60, raters: int = 3, seed: int = 0) -> list[Example]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, size=(n, 1))
    scores = np.clip(np.round(truth + 0.7 * rng.normal(size=(n, raters))), 1, 5)
    return [Example(id=f"e{k}", input="", output="", human={"x": scores[k].tolist()}) for k in range(n)]


def test_each_rater_is_correlated_with_the_mean_of_the_others() -> None:
    examples = rated()
    columns = np.array(list(rater_columns(examples, "x").values()))
    expected = np.mean([stats.spearmanr(columns[k], np.delete(columns, k, axis=0).mean(axis=0))[0] for k in range(3)])
    found = leave_one_out(columns.tolist(), resampling=Resampling(resamples=200))
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high


def test_items_that_a_rater_left_out_are_left_out() -> None:
    examples = rated()
    examples[0] = examples[0].model_copy(update={"human": {"x": (3.0, 4.0)}})
    columns = list(rater_columns(examples, "x").values())
    assert columns[2][0] is None
    assert leave_one_out(columns, resampling=Resampling(resamples=50)).n == 59


def test_a_constant_rater_makes_it_undefined_and_is_named() -> None:
    found = leave_one_out([[1, 2, 3, 4], [2, 2, 2, 2], [1, 2, 3, 3]])
    assert found.value is None
    assert "ratings of rater 2 are constant" in (found.reason or "")
    assert says(leave_one_out([[1, 2], [1, 2]]).reason, "3 items", "all ratings", 2)


def test_one_rater_has_nobody_to_agree_with() -> None:
    with pytest.raises(InputError, match=naming("two raters")):
        leave_one_out([[1, 2, 3]])
    with pytest.raises(InputError, match="different lengths"):
        leave_one_out([[1, 2, 3], [1, 2]])


@pytest.mark.parametrize(
    ("dimension", "spearman"),
    [("coherence", 0.702), ("consistency", 0.688), ("fluency", 0.504), ("relevance", 0.544)],
)
def test_the_experts_of_summeval_agree_with_each_other_so_far(dimension: str, spearman: float) -> None:
    path = DATA / "summeval_6systems.jsonl"
    if not path.exists():
        pytest.skip("the SummEval data are not beside this checkout")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    examples = [
        Example(
            id=row["id"],
            input="",
            output="",
            human={dimension: [expert[dimension] for expert in row["human_experts"]]},
            metadata={"document": row["document"]},
        )
        for row in rows
    ]
    raters = list(rater_columns(examples, dimension).values())
    found = leave_one_out(raters, resampling=Resampling(resamples=100))
    assert found.value == pytest.approx(spearman, abs=5e-4)
    means = [each.human_score(dimension) for each in examples]
    for rater in raters:  # a rater is in the mean of all, not in that of the others
        assert stats.spearmanr(rater, means)[0] > found.value
