"""A measure's number in a sentence, with the part of the output that decided it (METHOD.md, part 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...agents.measures.values import part_that_decides
from ...prompts.conversations.chat import reply_text
from ...prompts.criteria.measures import MEASURES
from ...prompts.errors import MissingExtraError

if TYPE_CHECKING:
    from ...prompts.checklist import ComputedMeasure
    from ...prompts.examples import Example

MOST_CASES = 3
"""Most outputs that are shown for one measure."""


@dataclass(frozen=True)
class MeasuredCase:
    """An output that people did not pass, with a measure's number."""

    example: str
    told: str
    """The sentence: ``nearest sentence to the input: similarity 0.31, others that passed 0.48``."""
    before: str
    part: str
    """The part of the output that decided the number; empty where no single part does, or it is not known."""
    after: str


def told_of(measure: ComputedMeasure, value: float, passed: float | None) -> str:
    """Return a measure's number in words; ``passed`` is the mean number of the outputs that people passed, if known."""
    kind = MEASURES.get(measure.name)
    name = measure.name.rpartition(":")[2] if kind is None else kind.told.format(measure.against)
    beside = "" if passed is None else f", others that passed {passed:.2f}"
    return f"{name} {value:.2f}{beside}"


def cases_of(
    measure: ComputedMeasure,
    examples: Mapping[str, Example],
    values: Mapping[str, float],
    passed: Mapping[str, bool],
    most: int = MOST_CASES,
) -> list[MeasuredCase]:
    """Return the outputs that people did not pass, those with the measure's worst P(good) first.

    Args:
        measure: With its curve or range.
        examples: With their outputs, by id; an example that is missing here is not shown.
        values: The measure's numbers by example.
        passed: Whether people passed an output, by example.
        most: Outputs at most.
    """
    there = [values[name] for name, is_fine in passed.items() if is_fine and name in values]
    usual = sum(there) / len(there) if there else None
    rejected = [name for name, is_fine in passed.items() if not is_fine and name in values and name in examples]
    ranked = sorted(rejected, key=lambda name: (measure.p_good(measure.share(values[name])), name))
    return [_case(measure, examples[name], values[name], usual) for name in ranked[:most]]


def passed_by(wanted: Mapping[str, float]) -> dict[str, bool]:
    """Return whether each output has at least the mean score; ``wanted`` are people's scores by example."""
    mean = sum(wanted.values()) / max(len(wanted), 1)
    return {name: score >= mean for name, score in wanted.items()}


def _case(measure: ComputedMeasure, example: Example, value: float, usual: float | None) -> MeasuredCase:
    output = reply_text(example.output or "")
    try:
        part = part_that_decides(measure, example) or ""
    except MissingExtraError:  # the number was kept; to find the sentence again takes the embedder
        part = ""
    before, found, after = output.partition(part) if part else (output, "", "")
    return MeasuredCase(example.id, told_of(measure, value, usual), before, found, after)


def cases_by_measure(
    measures: Sequence[ComputedMeasure],
    examples: Mapping[str, Example],
    values: Mapping[str, Mapping[str, float]],
    wanted: Mapping[str, float],
) -> dict[str, list[MeasuredCase]]:
    """Return the :func:`cases_of` each measure, by its id; :func:`passed_by` says which outputs passed."""
    passed = passed_by(wanted)
    return {each.id: cases_of(each, examples, values.get(each.id, {}), passed) for each in measures}
