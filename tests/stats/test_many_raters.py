"""Fleiss' kappa and Krippendorff's alpha give the textbooks' figures."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from askance.prompts.errors import InputError, MissingExtraError
from askance.stats.raters import fleiss_kappa, krippendorff_alpha

pytest.importorskip("statsmodels", reason="needs the extra: pip install 'askance[stats]'")
pytest.importorskip("krippendorff", reason="needs the extra: pip install 'askance[stats]'")

FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""14 raters, 10 subjects, 5 categories: the example by which the statistic is usually explained, kappa .210."""

_ = None
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
"""Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), part C: 4 observers, 12 units."""


def columns_of(counts: list[list[int]]) -> list[list[float]]:
    rows = [np.repeat(np.arange(len(row)), row) for row in counts]
    return [[float(row[rater]) for row in rows] for rater in range(len(rows[0]))]


def test_fleiss_kappa_of_the_textbook_example() -> None:
    found = fleiss_kappa(columns_of(FLEISS))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert found.low < found.value < found.high
    assert found.n == 10


def test_what_is_resampled_is_the_librarys_kappa() -> None:
    from statsmodels.stats.inter_rater import fleiss_kappa as library

    twice = [row for row in FLEISS for _ in range(2)]
    one, double = fleiss_kappa(columns_of(FLEISS)), fleiss_kappa(columns_of(twice), groups=[k // 2 for k in range(20)])
    assert double.value == pytest.approx(library(np.array(twice)))
    assert (double.low, double.high) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize(
    ("measurement", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorffs_alpha_of_the_textbook_example(measurement: Any, expected: float) -> None:
    found = krippendorff_alpha(KRIPPENDORFF, measurement=measurement, resamples=200)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert found.n == 11  # one unit has one rating
    assert found.low < found.value < found.high


def test_constant_ratings_are_undefined_and_never_an_error() -> None:
    same = [[3, 3, 3, 3]] * 3
    assert (fleiss_kappa(same).value, fleiss_kappa(same).reason) == (None, "every rating of every item is the same")
    found = krippendorff_alpha(same)
    assert (found.value, found.reason) == (None, "every rating is the same (3)")


def test_resamples_of_nearly_constant_ratings_are_left_out_and_counted() -> None:
    nearly = [[3] * 9 + [4]] * 2
    for found in (fleiss_kappa(nearly), krippendorff_alpha(nearly, resamples=200)):
        assert found.value == 1
        assert found.undefined_resamples > 0
        assert "no interval" in (found.reason or "")


def test_items_without_enough_ratings_are_left_out() -> None:
    columns = [[1, 2, 1, None], [1, 2, 2, 1], [1, 2, 2, 2]]
    assert fleiss_kappa(columns).n == 3
    assert fleiss_kappa(columns).value == fleiss_kappa([each[:3] for each in columns]).value
    assert krippendorff_alpha(columns, resamples=10).n == 4
    assert fleiss_kappa([[1, None], [1, 2]]).reason == "fewer than 3 items have all ratings (there are 1)"
    assert krippendorff_alpha([[1, None], [1, 2]]).reason == "fewer than 3 items have two ratings (there are 1)"


@pytest.mark.parametrize("statistic", [fleiss_kappa, krippendorff_alpha])
def test_one_rater_agrees_with_nobody(statistic: Any) -> None:
    with pytest.raises(InputError, match="two raters or more; there is 1"):
        statistic([[1, 2, 3]])
    with pytest.raises(InputError, match="different lengths"):
        statistic([[1, 2, 3], [1, 2]])


@pytest.mark.parametrize(
    ("statistic", "package"), [(fleiss_kappa, "statsmodels"), (krippendorff_alpha, "krippendorff")]
)
def test_a_missing_library_is_named(statistic: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith(package):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=rf"{package}.*askance\[stats\]"):
        statistic([[1, 2, 3, 1], [1, 2, 3, 2]])
