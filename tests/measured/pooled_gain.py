"""The mean gain on test of several finished runs, with an interval: one test of 60 outputs is off by .17.

Run ``python -m tests.measured.pooled_gain RUN...`` after ``learned_questions``, whose directories are
named ``DATA-SEED-ARM``. Runs of one data set test on overlapping parts of it, so its outputs are drawn once for all its
runs (a bootstrap by output); data sets are drawn apart. The judges are taken as they are: the interval says how far the
outputs that they were tested on make the mean uncertain, not how other runs would end. A run that changed nothing has
gained 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askance.experiments.command_line import RESULTS, says_errors, write_result
from askance.prompts.errors import InputError
from askance.prompts.tables import read_rows
from askance.stats.correlation import correlation_kernel
from askance.stats.resampling import Kernel, Vector, Weights, resample, resample_weights

RESULT = RESULTS / "pooled_gain.json"
RESAMPLES, SEED = 2000, 42


def pooled_gain(runs: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """The mean gain in Spearman on test by data set and over all runs, with 95% intervals.

    Args:
        runs: Directories of finished runs by data set.

    Raises:
        InputError: A directory has no scores of a test.
    """
    found: dict[str, Any] = {"data": {}}
    drawn, count = np.zeros(RESAMPLES), 0
    for number, (data, directories) in enumerate(runs.items()):
        tables = [scores_on_test(each) for each in directories]
        outputs = {name: place for place, name in enumerate(dict.fromkeys(name for table in tables for name in table))}
        kernels = [_gain(table, outputs) for table in tables]
        whole = np.ones((len(outputs), 1))
        gains = [float(kernel(whole)[0]) for kernel in kernels]
        values = resample(kernels, resample_weights(len(outputs), RESAMPLES, SEED + number)).mean(axis=0)
        found["data"][data] = {
            "runs": {each.name: round(gain, 4) for each, gain in zip(directories, gains, strict=True)},
            "outputs": len(outputs),
            **_figures(gains, values),
        }
        drawn += values * len(kernels)
        count += len(kernels)
    gains = [gain for each in found["data"].values() for gain in each["runs"].values()]
    return found | {"all": {"runs": count, **_figures(gains, drawn / count)}}


def _figures(gains: Sequence[float], values: Vector) -> dict[str, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    figures = {"mean_gain": np.mean(gains), "low": low, "high": high, "standard_error": values.std(ddof=1)}
    return {name: round(float(value), 4) for name, value in figures.items()}


def _gain(table: Mapping[str, tuple[float, float, float]], outputs: Mapping[str, int]) -> Kernel:
    """Return the gain in correlation over the start as a function of output weights. A constant judge has 0."""
    rows = np.array([outputs[name] for name in table])
    start, accepted, wanted = np.array(list(table.values())).T
    both = [correlation_kernel("spearman", scores, wanted) for scores in (start, accepted)]

    def kernel(weights: Weights) -> Vector:
        first, last = (np.nan_to_num(each(weights[rows])) for each in both)
        return last - first

    return kernel


def scores_on_test(directory: Path) -> dict[str, tuple[float, float, float]]:
    """The first judge's score, the accepted judge's and the wanted one of each test output with all three, by its id.

    Args:
        directory: A finished run's.

    Raises:
        InputError: There are no scores of a test.
    """
    file = directory / "verdicts" / "scores.jsonl"
    versions: dict[int, dict[str, tuple[float | None, float | None]]] = {}
    for _, row in read_rows(file):
        versions.setdefault(row["version"], {})[row["example"]] = row["score"], row["wanted"]
    if 0 not in versions:
        raise InputError(f"{file}: there are no scores of the starting judge on test; is the run finished?")
    first, last = versions[0], versions[max(versions)]
    rows = {name: (first[name][0], last[name][0], wanted) for name, (_, wanted) in first.items()}
    return {name: row for name, row in rows.items() if None not in row}  # type: ignore[misc]


def by_data(directories: Iterable[Path]) -> dict[str, list[Path]]:
    """Runs by the data set that their directory's name begins with, both in order of their names."""
    found: dict[str, list[Path]] = {}
    for each in sorted(directories, key=lambda each: each.name):
        found.setdefault(each.name.split("-")[0], []).append(each)
    return found


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Read the runs, write their mean gains."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="directories of finished runs, DATA-SEED-ARM")
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    found = pooled_gain(by_data(given.runs))
    write_result(given.output, {"command": f"python -m {__spec__.name} RUN...", **found})
    print(found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
