"""Rows of the LMUnit tables: the share of preference pairs in the right order, section by section, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...optimizer.weights.evidence import Floats, PairFold, codes_of, margins_to_credits, single_split
from ...optimizer.weights.heldout import ACCURACY_RESAMPLES, HeldOutTrial, interval, resample_shares, try_learner
from ...optimizer.weights.learner_choice import Pooling, find_learner
from ...optimizer.weights.score_tables import PreferenceScores
from ...prompts.checklist import Checklist
from ...prompts.preferences import Preference
from .unit_tests import KINDS

DECAY = 0.8
"""Each query-level test weighs this much of the one before it (LMUnit, Table 15)."""
Row = dict[str, Any]


def scores_table(scores: Mapping[str, PreferenceScores], first_test: str, seed: int) -> list[Row]:
    """Table 12: each kind of score, all tests with equal weights and the first test by itself, on all pairs.

    Args:
        scores: By kind; the same tests. Only pairs that have every kind are compared.
        first_test: What the paper's single test is called here.
        seed: Of the bootstrap.
    """
    common = set.intersection(*({*each.ids} for each in scores.values())) if scores else set()
    rows = []
    for kind, prefs in scores.items():
        keep = [row for row, name in enumerate(prefs.ids) if name in common and prefs.preferred[row] != 0]
        sign = np.where(prefs.preferred[keep] < 0, -1.0, 1.0)[:, None]
        differences = (prefs.scores_a[keep] - prefs.scores_b[keep]) * sign
        groups = [prefs.groups[row] for row in keep]
        sections = [prefs.sections[row] or "all" for row in keep]
        single = differences[:, prefs.tests.index(first_test)]
        named = KINDS.get(kind, kind)  # type: ignore[call-overload]
        for label, margins in ((f"all {len(prefs.tests)} tests", differences.mean(axis=1)), (first_test, single)):
            row = _row(f"{named}: {label}", margins_to_credits(margins), sections, groups, seed)
            rows.append(row | {"kind": kind, "tests": label, "left_out": len(prefs.left_out)})
    return rows


def gain(better: PreferenceScores, than: PreferenceScores, seed: int) -> Row:
    """Return the difference in accuracy of two kinds of score with equal weights, on the same pairs."""
    common = [name for name in better.ids if name in set(than.ids)]
    credits = []
    for prefs in (better, than):
        place = {name: row for row, name in enumerate(prefs.ids)}
        keep = [place[name] for name in common if prefs.preferred[place[name]] != 0]
        sign = np.where(prefs.preferred[keep] < 0, -1.0, 1.0)
        margins = (prefs.scores_a[keep] - prefs.scores_b[keep]).mean(axis=1) * sign
        credits.append(margins_to_credits(margins))
        groups = [prefs.groups[row] for row in keep]
    if not len(credits[0]):
        return {"value": None, "reason": "no decided pair has both kinds of score"}
    shares = resample_shares(np.column_stack(credits), codes_of(groups), ACCURACY_RESAMPLES, seed)
    low, high = interval(shares[:, :1] - shares[:, 1:])
    value = float(credits[0].mean() - credits[1].mean())
    return {"value": value, "low": float(low[0]), "high": float(high[0]), "n": len(credits[0])}


def weights_table(
    prefs: PreferenceScores, first_test: str, learners: Sequence[str], *, splits: int, seed: int
) -> list[Row]:
    """Table 14 and the upper half of Table 15: single test, equal weights, and learned ones, on held-out halves.

    The paper learns with ``bayes``, which takes minutes a fit, and keeps sections apart. Other learners stand beside it
    on the same pairs, and quick ones also with pooled weights, which lean a small section on the whole.

    Args:
        prefs: Scores of all pairs.
        first_test: What the paper's single test is called here.
        learners: Names of weight learners.
        splits: Random halves; with several every row is about all held-out pairs of all of them.
        seed: Of the first half; the others follow.

    Raises:
        InputError: An unknown learner, or too few pairs to hold half of them out.
    """
    alike = prefs.differences()
    halves = [each for number in range(splits) for each in single_split(alike.groups, 0.5, seed + number)]
    tested = np.concatenate([half.test[~alike.is_tie[half.test]] for half in halves])
    groups = [prefs.groups[row] for row in tested]
    sections = [prefs.sections[row] or "all" for row in tested]
    single = margins_to_credits(alike.differences[tested, prefs.tests.index(first_test)])
    uniform = try_learner(find_learner("uniform"), alike, halves, pooling="none", seed=seed).credits
    assert uniform is not None, "equal weights need no pairs"
    rows = [
        _row(f"single test ({first_test})", single, sections, groups, seed),
        _row("unweighted tests", uniform, sections, groups, seed),
    ]
    parts = len(set(prefs.sections))
    for name in learners:
        whole = try_learner(find_learner(name), alike, halves, pooling="none", seed=seed)
        rows.append(_learned(f"learned weights, {name}", whole, sections, groups, seed))
        if parts > 1:
            rows += _by_section(prefs, name, halves, sections, groups, seed)
    return rows


def _by_section(
    prefs: PreferenceScores, name: str, halves: list[PairFold], sections: list[str], groups: list[str], seed: int
) -> list[Row]:
    pairs = prefs.differences("section")
    count = len(prefs.section_names("section"))
    ways: tuple[tuple[Pooling, str], ...] = (("none", "apart"),)
    if find_learner(name).quick:
        ways = (*ways, ("partial", "pooled"))
    rows = []
    for pooling, word in ways:
        trial = try_learner(find_learner(name), pairs, halves, sections=count, pooling=pooling, seed=seed)
        rows.append(_learned(f"learned weights by section ({word}), {name}", trial, sections, groups, seed))
    return rows


def query_table(
    pairs: Sequence[Preference],
    tests: Mapping[str, Checklist],
    cells: Mapping[tuple[str, str], float | None],
    seed: int,
) -> tuple[list[Row], list[str]]:
    """The lower half of Table 15: tests written for each input; the first, all alike, and decaying weights.

    Args:
        pairs: All pairs.
        tests: The tests of each pair, by its id; a pair without any is left out.
        cells: Scores in [0, 1] by example (``PAIR/a``, ``PAIR/b``) and test.
        seed: Of the bootstrap.

    Returns:
        The rows, and the ids of decided pairs that were left out.
    """
    techniques: tuple[tuple[str, float | None], ...] = (
        ("single test (the first)", None),
        ("unweighted tests", 1.0),
        (f"decaying weights, {DECAY}^n", DECAY),
    )
    kept, left_out, margins = [], [], []
    for pair in pairs:
        if pair.preferred == "tie":
            continue
        ids = [question.id for question in tests[pair.id].questions] if pair.id in tests else []
        sides = [[cells.get((f"{pair.id}/{side}", test)) for test in ids] for side in ("a", "b")]
        if not ids or any(score is None for side in sides for score in side):
            left_out.append(pair.id)
            continue
        difference = np.array(sides[0], dtype=float) - np.array(sides[1], dtype=float)
        margins.append([_weighed(difference, base) * (1 if pair.preferred == "a" else -1) for _, base in techniques])
        kept.append(pair)
    if not kept:
        return [{"technique": name, "all": _nothing(), "sections": {}} for name, _ in techniques], left_out
    credits = margins_to_credits(np.array(margins))
    sections = [pair.section or "all" for pair in kept]
    groups = [pair.group or pair.input for pair in kept]
    rows = [_row(name, credits[:, at], sections, groups, seed) for at, (name, _) in enumerate(techniques)]
    return rows, left_out


def _weighed(difference: Floats, base: float | None) -> float:
    if base is None:
        return float(difference[0])
    weights = base ** np.arange(len(difference))
    return float(difference @ weights / weights.sum())


def _learned(name: str, trial: HeldOutTrial, sections: Sequence[str], groups: Sequence[str], seed: int) -> Row:
    if trial.credits is None:
        return {"technique": name, "all": {"accuracy": None, "reason": trial.failure}, "sections": {}}
    return _row(name, trial.credits, sections, groups, seed)


def _row(name: str, credits: Floats, sections: Sequence[str], groups: Sequence[str], seed: int) -> Row:
    """A technique's accuracy on all pairs, in each section, and the mean over the sections, which the paper gives."""
    by_section = {}
    for section in dict.fromkeys(sections):
        rows = [place for place, each in enumerate(sections) if each == section]
        by_section[section] = _cell(credits[rows], [groups[place] for place in rows], seed)
    every = _cell(credits, groups, seed)
    found: Row = {"technique": name, "all": every, "sections": by_section}
    if len(by_section) > 1:
        found["mean_of_sections"] = float(np.mean([cell["accuracy"] for cell in by_section.values()]))
    return found


def _cell(credits: Floats, groups: Sequence[str], seed: int) -> Row:
    if not len(credits):
        return _nothing()
    low, high = interval(resample_shares(credits[:, None], codes_of(groups), ACCURACY_RESAMPLES, seed))
    return {
        "accuracy": float(credits.mean()),
        "low": float(low[0]),
        "high": float(high[0]),
        "n": len(credits),
        "right": int((credits == 1.0).sum()),
        "ties": int((credits == 0.5).sum()),
        "wrong": int((credits == 0.0).sum()),
    }


def _nothing() -> Row:
    return {"accuracy": None, "reason": "no decided pair has all its scores"}
