"""Several raters in a run of ``align``: their agreement before anything is learned, and the rule that combines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..evaluation.raters.agreement import agreement_of_raters
from ..evaluation.raters.agreement_view import cases_lines, ceiling_lines
from ..evaluation.raters.rater_by_rater import MOST_VALUES, Combination, Rule, choose, combined_ratings
from ..evaluation.scoring import human_targets
from ..prompts.errors import InputError
from ..prompts.examples import documents
from ..prompts.human_feedback import known_ratings
from ..prompts.raters import rater_columns
from ..stats.resampling import Resampling
from .mode import RunContext


@dataclass(frozen=True)
class RatersOfRun:
    """Several raters of the examples of a run; nothing where one person rated each."""

    combined: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Dimension to example id to rating, for development and validation examples, where the rule is not the mean."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """``rater_agreement`` of the result."""


def raters_of(context: RunContext, rule: Literal["auto"] | Rule) -> RatersOfRun:
    """Say how far the raters agree, and combine their ratings of the examples that teach and accept.

    The rule is chosen on development; the test examples keep the mean. Raises InputError where a model of raters is
    asked for and the ratings are not on a few steps.
    """
    job, splits = context.job, context.splits
    dimensions = human_targets(job.examples, job.questions, job.options.human_scale).dimensions
    how: dict[str, Any] = {"resamples": job.options.resamples, "seed": job.options.seed}
    found = agreement_of_raters(job.examples, dimensions, Resampling(documents(job.examples), **how))
    if found is None:
        return RatersOfRun()
    rows = found.by_dimension()
    for line in (*ceiling_lines(rows), *cases_lines(rows)):
        context.events.say(line)
    chosen: dict[str, Combination] = {}
    for name in (each for each in dimensions if each in rows):
        columns = rater_columns(splits.development, name)
        if rule == "auto":
            chosen[name] = choose(columns, Resampling(documents(splits.development), **how))
        else:
            values = {each for column in columns.values() for each in known_ratings(column)}
            if rule == "model" and len(values) > MOST_VALUES:
                raise InputError(
                    f"combine model: '{name}' has {len(values)} different ratings; a model of raters is of "
                    f"{MOST_VALUES} steps at most. Take mean or majority."
                )
            chosen[name] = Combination(rule, "asked for", {})
        rows[name]["combined"] = chosen[name].to_dict()
    rules = {name: each.rule for name, each in chosen.items()}
    for name, each in chosen.items():
        if each.rule != "mean":
            context.events.say(f"{name}: labels that teach are combined by {each.rule} ({each.reason})")
    taught = [*splits.development, *splits.validation]
    return RatersOfRun(combined_ratings(taught, rules), {"rater_agreement": rows})
