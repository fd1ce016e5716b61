"""Ratings by unit tests against people's: the direct-assessment columns of the LMUnit tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...evaluation.scoring import complete_mean, score_examples
from ...prompts.examples import documents
from ...stats.correlation import correlate, statistic_dict

if TYPE_CHECKING:
    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict
    from .unit_test_scores import Asked


def direct_row(
    name: str,
    examples: Sequence[Example],
    asked: Asked,
    verdicts: Sequence[Verdict],
    dimensions: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Pearson's correlation of the mean test score with the human score, by dimension.

    ``all`` is the mean over the dimensions where there are several (without interval), else the one.
    """
    scores = score_examples(examples, asked.checklist, verdicts, soft=asked.kind != "hard")
    groups = documents(examples)
    by_dimension = {}
    for dimension in dimensions:
        ours = [each.dimensions.get(dimension) for each in scores]
        human = [example.human_score(dimension) for example in examples]
        by_dimension[dimension] = statistic_dict(correlate(ours, human, groups=groups, seed=seed).pearson)
    if len(dimensions) == 1:
        every = by_dimension[dimensions[0]]
    else:
        mean = complete_mean([each["value"] for each in by_dimension.values()])
        every = {"value": mean, "low": None, "high": None, "n": len(examples)}
        if mean is None:
            every["reason"] = "a dimension is undefined"
    return {"technique": name, "all": every, "sections": by_dimension}
