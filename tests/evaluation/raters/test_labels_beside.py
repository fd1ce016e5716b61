"""One rater with another, beside a judge's pass or fail with people."""

from __future__ import annotations

from typing import Any

import pytest

from askance import rater_agreement
from askance.evaluation.raters.agreement_view import labels_lines
from tests.said import says


def rows(*names: str, labels: bool = True) -> list[dict[str, Any]]:
    """Forty outputs; each rater after the first takes one in five, or one in four, for its opposite."""
    found = []
    for number in range(40):
        said = {
            name: (number % 2 == 0) != (place > 0 and number % (6 - place) == 0) for place, name in enumerate(names)
        }
        given = {name: {"human": {"overall": each if labels else 1 + 3 * each}} for name, each in said.items()}
        found.append({"id": f"e{number}", "input": "q", "output": f"o{number}", "raters": given})
    return found


def test_two_raters_of_labels_are_told_with_their_kappa() -> None:
    found = rater_agreement(rows("anna", "ben"), resamples=100).by_dimension()
    pair = found["overall"]["pairs"][0]
    assert pair["agreed"]["value"] == pytest.approx(0.8)
    (line,) = labels_lines(found)
    assert says(line, "80.0%", f"{pair['kappa']['value']:.3f}")


def test_of_several_raters_it_is_the_mean_over_pairs_and_of_scores_there_is_none() -> None:
    found = rater_agreement(rows("anna", "ben", "carl"), resamples=100).by_dimension()
    mean = sum(each["agreed"]["value"] for each in found["overall"]["pairs"]) / 3
    (line,) = labels_lines(found)
    assert says(line, f"{mean:.1%}", "3")
    scores = rater_agreement(rows("anna", "ben", labels=False), resamples=100).by_dimension()
    assert list(labels_lines(scores)) == []
