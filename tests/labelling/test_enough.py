"""How many labels the acceptance test needs, held against the gate itself."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from askance.evaluation.scoring import ExampleScore, Targets
from askance.labelling.label_figures import ALIKE, POWER, enough, shift_of
from askance.optimizer.acceptance import CorrelationYardstick, PairedAcceptance
from askance.optimizer.options import AlignOptions
from askance.stats.correlation import spearman

from ..said import says
from .conftest import examples


@pytest.mark.parametrize(("gain", "start", "labelled", "passed"), [(0.3, None, 0, 0), (0.25, 0.1, 100, 80)])
def test_with_so_many_labels_the_gate_accepts_the_gain_as_often_as_is_said(
    gain: float, start: float | None, labelled: int, passed: int
) -> None:
    found = enough(labelled, passed, gain=gain, start=start)
    defaults = AlignOptions.model_fields
    n = math.ceil(found.wanted * sum(defaults["split"].default[:2]))
    people = (np.arange(n) < round(found.pass_rate * n)).astype(float)
    data = examples(n)
    targets = Targets(
        "human", ("overall",), {each.id: {"overall": wanted} for each, wanted in zip(data, people, strict=True)}
    )
    yardstick = CorrelationYardstick(targets, resamples=200, seed=1)
    gate = PairedAcceptance(yardstick, data, defaults["alpha"].default)
    rng = np.random.default_rng(7)
    accepted = []
    for _ in range(150):
        shared = rng.standard_normal(n)
        sides = []
        for ranked in (found.start, found.start + gain):
            own = rng.standard_normal(n)
            scores = shift_of(ranked, found.pass_rate) * people + math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * own
            sides.append([ExampleScore(each.id, float(s), {}) for each, s in zip(data, scores, strict=True)])
        accepted.append(gate.decide(*sides).accepted)
    assert np.mean(accepted) == pytest.approx(POWER, abs=0.11)  # three standard errors


@pytest.mark.parametrize(("wanted", "rate"), [(0.0, 0.5), (0.3, 0.5), (0.5, 0.2)])
def test_scores_that_are_shifted_so_have_this_spearman(wanted: float, rate: float) -> None:
    n = 20_000
    labels = (np.arange(n) < rate * n).astype(float)
    scores = np.random.default_rng(3).standard_normal(n) + shift_of(wanted, rate) * labels
    assert spearman(scores, labels).value == pytest.approx(wanted, abs=0.02)


def test_a_smaller_gain_takes_more_labels_and_labels_at_hand_count() -> None:
    assert enough(0, 0, gain=0.1).wanted > 3 * enough(0, 0, gain=0.2).wanted
    some = enough(50, 25, gain=0.2)
    assert some.more == some.wanted - 50
    assert f"{some.more} more labels" in some.sentence
    assert enough(5000, 2500, gain=0.2).more == 0


def test_a_judge_that_leaves_no_room_for_the_gain_is_said_to() -> None:
    found = enough(60, 30, gain=0.3, start=0.8)
    assert found.more == 0
    assert says(found.sentence, "none", 0.3)


@pytest.mark.parametrize(
    ("labelled", "passed", "rate"),
    [(0, 0, 0.5), (2, 2, 0.5), (19, 19, 0.5), (20, 14, 0.7), (20, 20, 0.9), (100, 3, 0.1), (50, 25, 0.5)],
)
def test_a_pass_rate_is_that_of_twenty_labels_or_more_and_kept_from_both_ends(
    labelled: int, passed: int, rate: float
) -> None:
    assert enough(labelled, passed, gain=0.1).pass_rate == pytest.approx(rate)


def test_how_many_are_needed_follows_the_power_of_a_one_sided_test() -> None:
    """Of the labels those of development and validation test; a half of the gain takes four times as many."""
    level, split = AlignOptions.model_fields["alpha"].default, AlignOptions.model_fields["split"].default
    rng = np.random.default_rng(11)
    found = enough(0, 0, gain=0.2, start=0.2)
    n = 2000
    people = (np.arange(n) < n / 2).astype(float)
    differences = []
    for _ in range(300):
        shared = rng.standard_normal(n)
        before, after = (
            shift_of(each, 0.5) * people + math.sqrt(ALIKE) * shared + math.sqrt(1 - ALIKE) * rng.standard_normal(n)
            for each in (0.2, 0.4)
        )
        differences.append((spearman(after, people).value or 0) - (spearman(before, people).value or 0))
    spread = float(np.std(differences)) * math.sqrt(n)
    normal = NormalDist()
    tested = ((normal.inv_cdf(1 - level) + normal.inv_cdf(POWER)) * spread / 0.2) ** 2
    assert found.wanted == pytest.approx(tested / (split[0] + split[1]), rel=0.12)
    assert found.start == 0.2 and enough(0, 0, gain=0.2).start == 0.3


@pytest.mark.parametrize("start", [0.4, 0.64, 0.66, 0.9])
def test_there_is_room_up_to_nearly_the_best_spearman_that_a_label_allows(start: float) -> None:
    best = 0.98 * math.sqrt(3 * 0.5 * 0.5)
    found = enough(100, 50, gain=0.2, start=start)
    assert found.has_room == (start + 0.2 <= best) and (found.more > 0) <= found.has_room
