"""Krippendorff's alpha against nltk and published values, Fleiss' kappa against statsmodels; leniency and the ceiling against closed forms."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats import inter_rater

from askance.prompts.errors import InputError
from askance.stats.agreement import (
    LEVELS,
    ceiling,
    fleiss_kappa,
    krippendorff_alpha,
    leniency,
    one_with_another,
    others_mean,
    steps_of,
    with_the_rest,
)
from askance.stats.resampling import Resampling, Statistic
from tests.said import says

FEW = Resampling(resamples=100)
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""Krippendorff's own example: four observers, twelve units."""


def panel(
    n: int = 120, raters: int = 3, noise: float = 0.8, missing: float = 0.0, seed: int = 0
) -> list[list[float | None]]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n) + 3
    given = np.clip(np.round(truth + noise * rng.normal(size=(raters, n))), 1, 5)
    gone = rng.random((raters, n)) < missing
    return [
        [None if absent else float(each) for each, absent in zip(*rows, strict=True)]
        for rows in zip(given, gone, strict=True)
    ]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_published_one(level: str, alpha: float) -> None:
    found = krippendorff_alpha(PUBLISHED, level, FEW)  # type: ignore[arg-type]
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert found.n == 11  # one unit has a single rating
    assert found.low is not None and found.low < alpha < found.high


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_alpha_is_that_of_nltk(level: str, missing: float) -> None:
    agreement = pytest.importorskip("nltk.metrics.agreement")
    raters = panel(missing=missing, seed=3)
    rows = [(f"r{r}", k, each) for r, own in enumerate(raters) for k, each in enumerate(own) if each is not None]
    counts = np.bincount([k for _, k, _ in rows])
    rows = [row for row in rows if counts[row[1]] > 1]  # nltk takes items with one rating for agreement
    distance = (lambda a, b: float(a != b)) if level == "nominal" else (lambda a, b: (a - b) ** 2)
    reference = agreement.AnnotationTask(rows, distance=distance).alpha()
    assert krippendorff_alpha(raters, level, FEW).value == pytest.approx(reference)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_fleiss_kappa_is_that_of_statsmodels_on_the_items_that_all_rated(missing: float) -> None:
    raters = panel(missing=missing, seed=3)
    rows = np.array([row for row in zip(*raters, strict=True) if None not in row], dtype=float)
    found = fleiss_kappa(raters, FEW)
    assert found.n == len(rows)
    assert found.value == pytest.approx(
        inter_rater.fleiss_kappa(inter_rater.aggregate_raters(rows)[0], method="fleiss")
    )
    assert found.low is not None and found.high is not None and found.low < found.value < found.high


def test_a_fleiss_kappa_that_says_nothing_is_undefined_with_the_reason() -> None:
    assert says(fleiss_kappa([[1.0] * 9, [1.0] * 9], FEW).reason, "all ratings", "the same")
    assert says(fleiss_kappa([[1.0, 2.0, None], [1.0, None, 2.0]], FEW).reason, "every rater")


def test_alpha_of_two_labels_is_the_same_at_every_level() -> None:
    raters = [[float(each > 3) if each is not None else None for each in own] for own in panel(missing=0.1)]
    values = [krippendorff_alpha(raters, level, FEW).value for level in LEVELS]
    assert values == pytest.approx([values[0]] * 3)


def test_an_alpha_that_says_nothing_is_undefined_with_the_reason() -> None:
    assert says(krippendorff_alpha([[1, 1, 1], [1, 1, 1]], "nominal").reason, "the same")
    assert says(krippendorff_alpha([[1, 2, None], [1, None, 2]], "nominal").reason, "3 items", 1)
    assert says(krippendorff_alpha([range(200), range(200)], "interval").reason, "101")
    perfect = krippendorff_alpha([[1, 2, 3, 4], [1, 2, 3, 4]], "ordinal")
    assert perfect.value == 1 and perfect.low is None
    with pytest.raises(InputError, match="different lengths"):
        krippendorff_alpha([[1, 2, 3], [1, 2]], "nominal")


def test_a_lenient_rater_is_above_the_others_on_the_same_items() -> None:
    raters = [[3.0, 4.0, 2.0, None], [2.0, 3.0, 2.0, 5.0], [2.0, None, 1.0, None]]
    assert others_mean(raters, 0) == [2.0, 3.0, 1.5, None]
    assert leniency(raters, 0, FEW).value == pytest.approx((1 + 1 + 0.5) / 3)
    assert leniency([[1.0, None], [None, 1.0]], 0).value is None


def test_one_rater_with_another_is_the_mean_over_pairs_by_their_items() -> None:
    one, two, three = panel(60)
    three = three[:20] + [None] * 40
    pairs = [(one, two, 60), (one, three, 20), (two, three, 20)]
    values = [stats.spearmanr(a[:n], b[:n])[0] for a, b, n in pairs]
    expected = np.average(values, weights=[60, 20, 20])
    found = one_with_another([one, two, three], FEW)
    assert found.value == pytest.approx(expected) and found.n == 60
    assert found.low < expected < found.high
    assert with_the_rest([one, two], 0, FEW).value == pytest.approx(values[0])


def test_pairs_with_few_items_in_common_say_nothing() -> None:
    one, two = panel(30, raters=2)
    assert says(one_with_another([one[:9] + [None] * 21, two]).reason, 10)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_ceiling_is_what_a_perfect_judge_has_with_the_mean(k: int) -> None:
    """Simulated: ratings are the truth and noise; the judge knows the truth."""
    rng = np.random.default_rng(k)
    truth = rng.normal(size=40_000)
    ratings = truth + rng.normal(size=(k + 1, len(truth)))
    r = float(np.corrcoef(ratings[0], ratings[-1])[0, 1])
    reached = float(np.corrcoef(truth, ratings[:k].mean(axis=0))[0, 1])
    found = ceiling(Statistic(r, 9, r - 0.1, r + 0.1), k)
    assert found.value == pytest.approx(reached, abs=0.01)
    assert found.low == pytest.approx(sqrt(k * (r - 0.1) / (1 + (k - 1) * (r - 0.1))))


def test_raters_who_disagree_leave_no_ceiling() -> None:
    assert says(ceiling(Statistic(-0.1, 20, -0.3, 0.1), 2).reason, "beyond chance")
    assert ceiling(Statistic(0.2, 20, -0.3, 0.4), 2).low == 0


def test_thirds_become_steps_and_whole_numbers_stay() -> None:
    assert steps_of({"a": [1 / 3, None, 1.0], "b": [0.0, 2 / 3, 1.0]}) == {"a": [1, None, 3], "b": [0, 2, 3]}
    assert steps_of({"a": [1, 5], "b": [2, 5]}) == {"a": [1, 5], "b": [2, 5]}
