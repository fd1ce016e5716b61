"""The table of tools beside each other: a row a tool, its figures on the test, what it learned and what it asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...evaluation.compare.run_difference import side_of_run
from ...memory.run_directory import RunDirectory
from ...prompts.errors import InputError
from ...stats.correlation import correlate
from ...stats.differences import difference_dict, label_difference, paired_difference
from ...stats.pass_fail import area_under_curve
from ...stats.resampling import Resampling
from .counting_server import TEST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OURS = "askance"
RESAMPLED = Resampling(seed=0)
"""As in a run of seed 0, so that its figures are those of its own result."""
START = "start"
"""What the calls on the judge to start from are counted under."""


def figures(scores: Mapping[str, float | None], labels: Mapping[str, float]) -> dict[str, Any]:
    """Spearman's correlation and area under the curve with people's labels, with intervals, and how many scores there are."""
    column, wanted = [scores.get(name) for name in labels], list(labels.values())
    return {
        "n": sum(each is not None for each in column),
        "spearman": _numbers(correlate(column, wanted, RESAMPLED).spearman),
        "auc": _numbers(area_under_curve(column, wanted, RESAMPLED)),
    }


def difference(
    before: Mapping[str, float | None], after: Mapping[str, float | None], labels: Mapping[str, float]
) -> dict[str, Any]:
    """How much better the second is on the examples that both have scored; one that says the same of all ranks nothing: Spearman 0."""
    first, second = ([scores.get(name) for name in labels] for scores in (before, after))
    wanted = list(labels.values())
    found = {
        "spearman": paired_difference(first, second, wanted, RESAMPLED, undefined_as_zero=True),
        "auc": label_difference(first, second, wanted, "auc", RESAMPLED),
    }
    return {name: _short(difference_dict(each) or {}) for name, each in found.items()}


def _numbers(found: Any) -> dict[str, Any]:
    row = {"value": found.value, "low": found.low, "high": found.high}
    return _short(row | ({"reason": found.reason} if found.reason else {}))


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}


def peer_row(
    about: Mapping[str, Any], start: Mapping[str, Any], found: Mapping[str, Any], labels: Mapping[str, float]
) -> dict[str, Any]:
    """What a peer came to.

    Args:
        about: What the row says of it first.
        start: Its run on the judge to start from.
        found: Its run, as of :func:`~askance.experiments.measured.peer_runs.peer_run`.
        labels: 1 for pass and 0 for fail, by id of a test example.
    """
    return {
        **about,
        "packages": found["packages"],
        "start": figures(start["scores"], labels),
        "test": figures(found["scores"], labels),
        "gain": difference(start["scores"], found["scores"], labels),
        "missing": found["missing"],
        "counts": found["counts"] | {START: start["counts"][TEST]},
        "learned": found.get("learned"),
        **({"steps": found["steps"]} if "steps" in found else {}),
        "scores": _short(found["scores"]),
    }


def our_row(run: Path, labels: Mapping[str, float]) -> dict[str, Any]:
    """What a finished run of ``align`` came to on the same test, by its scores and by what they pass at its own threshold.

    Raises:
        InputError: The run is not finished, a file is damaged, or its test is another.
    """
    directory = RunDirectory(run)
    before, after = (side_of_run(directory, accepted=accepted) for accepted in (False, True))
    if dict(after.wanted) != dict(labels):
        raise InputError(f"{run}: its test examples, or their labels, are others than those of this comparison.")
    result = directory.read_result()
    row = {
        "peer": OURS,
        "title": "askance align",
        "model": after.model,
        "score": "its judge's score in [0, 1]",
        "start": figures(before.scores, labels),
        "test": figures(after.scores, labels),
        "gain": difference(before.scores, after.scores, labels),
        "counts": {"run": {"calls": result.calls, "tokens": result.tokens}},
        "learned": [each.criterion for each in result.learned],
        "scores": dict(after.scores),
    }
    if after.threshold is not None:
        passed = _passed(after.scores, after.threshold)
        row["as_pass_or_fail"] = {"threshold": after.threshold, **figures(passed, labels)}
    return row


def _passed(scores: Mapping[str, float | None], threshold: float) -> dict[str, float | None]:
    return {name: None if score is None else float(score >= threshold) for name, score in scores.items()}


def against_ours(row: Mapping[str, Any], ours: Mapping[str, Any], labels: Mapping[str, float]) -> dict[str, Any]:
    """How much better ours is on the same test, as it is and with nothing but pass and fail."""
    found = {"scores": difference(row["scores"], ours["scores"], labels)}
    if "as_pass_or_fail" in ours:
        passed = _passed(ours["scores"], ours["as_pass_or_fail"]["threshold"])
        found["pass_or_fail"] = difference(row["scores"], passed, labels)
    return found
