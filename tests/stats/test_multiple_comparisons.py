from __future__ import annotations

import pytest

from askance.prompts.errors import InputError
from askance.stats.differences import holm

P_VALUES = [0.04, 0.001, 0.3, 0.04, 0.012, 0.9, 0.02, 1.0, 0.0]


@pytest.mark.parametrize("values", [P_VALUES, P_VALUES[:1], [0.5, 0.5, 0.5], [0.01, 0.02, 0.03]])
def test_adjusted_p_values_are_those_of_statsmodels(values: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert holm(values) == pytest.approx(list(multitest.multipletests(values, method="holm")[1]))


def test_the_textbook_case() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_a_test_that_does_not_exist_stays_none_and_is_not_counted() -> None:
    with_gaps = holm([None, 0.02, None, 0.03])
    assert with_gaps[0] is None and with_gaps[2] is None
    assert [with_gaps[1], with_gaps[3]] == holm([0.02, 0.03])
    assert holm([None, None]) == [None, None]
    assert holm([]) == []


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused_by_its_place(value: float) -> None:
    with pytest.raises(InputError, match="p-value 3 is"):
        holm([0.1, None, value])
