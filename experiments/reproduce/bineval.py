"""BinEval's Tables 1 (SummEval), 7 (Topical-Chat) and 8 (QAGS): decomposed questions against other judges, one model.

python -m askance.experiments.reproduce.bineval qags --data mturk_cnndm.jsonl --model anthropic/claude-sonnet-4-5

As in the paper everything is judged twice at temperature 0, and ``runs`` has the mean of the two runs' correlations.
All other intervals and differences in the result are from the first run. ``--repeat 1`` halves the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ...stats.correlation import METHODS, correlate, per_group
from ...stats.resampling import Resampling
from ..command_line import says_errors
from .common import parser, run

PAPER: dict[str, dict[str, Any]] = {
    "qags": {
        "table": "8, CNN/DM: Pearson, Spearman, Kendall of the consistency scores",
        "binary, Claude Sonnet 4": {"pearson": 0.665, "spearman": 0.702, "kendall": 0.597},
        "binary, gpt-oss-120b": {"pearson": 0.651, "spearman": 0.642, "kendall": 0.551},
    },
    "topical_chat": {
        "table": "7: mean of the four dimensions, turn level",
        "binary, Claude Sonnet 4": {"spearman": 0.632, "kendall": 0.525},
        "binary, gpt-oss-120b": {"spearman": 0.539, "kendall": 0.450},
        "geval, gpt-oss-120b": {"spearman": 0.541, "kendall": 0.478},
        "unieval, gpt-oss-120b": {"spearman": 0.144, "kendall": 0.132},
    },
    "summeval": {
        "table": "1: summary level; here `per_document`, the mean over the articles",
        "binary, Claude Sonnet 4, consistency": {"spearman": 0.655, "kendall": 0.615},
    },
}
"""Figures of the paper that its text gives."""


def mean_of_runs(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the correlations with people in every run and their mean, as in the paper (§4: two runs), by judge,
    dimension and kind (``pooled``, ``per_document``). A mean is None if one of its values is undefined."""
    examples, documents = result["common"], result.get("documents", {})
    groups = [documents.get(name) for name in examples] if documents else None
    by_judge: dict[str, Any] = {}
    for judge, ratings in result["ratings"].items():
        if judge in result.get("left_out", ()):
            continue
        scores = {
            (rating["example"], rating["dimension"], rating.get("replicate", 0)): rating["score"] for rating in ratings
        }
        for dimension in result["dimensions"]:
            people = [result["human"][name].get(dimension) for name in examples]
            runs = sorted({run for _, of, run in scores if of == dimension})
            columns = [[scores[name, dimension, run] for name in examples] for run in runs]
            kinds = {"pooled": [_correlations(column, people) for column in columns]}
            if groups is not None:
                kinds["per_document"] = [_correlations(column, people, groups) for column in columns]
            by_judge.setdefault(judge, {})[dimension] = {
                kind: {method: _mean([correlations[method] for correlations in values]) for method in METHODS}
                for kind, values in kinds.items()
            }
    return {"runs": by_judge}


def _correlations(
    scores: Sequence[float | None], people: Sequence[float | None], groups: Sequence[Any] | None = None
) -> dict[str, float | None]:
    if groups is None:
        found = correlate(scores, people, Resampling(resamples=1))
        return {method: getattr(found, method).value for method in METHODS}
    by = {method: per_group(scores, people, groups, method, Resampling(resamples=1)) for method in METHODS}
    return {method: each.average.value for method, each in by.items()}


def _mean(values: Sequence[float | None]) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    return {"mean": fmean(known) if values and len(known) == len(values) else None, "runs": list(values)}


@says_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one table."""
    given = parser(__doc__, "binary,geval,unieval", temperature=0.0, repeat=2).parse_args(arguments)
    run(given, PAPER.get(given.dataset, {}), further=mean_of_runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
