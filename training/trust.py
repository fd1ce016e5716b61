"""Whether a teacher's verdicts are learned from: a scorer that learned from people alone is held against one that learned from both.

A teacher that agrees with people a little has many verdicts, and people rated a few outputs: what it gets wrong then
outweighs what they say. In a simulated world a teacher that agreed with people by .37 took a scorer from .85 down to .56. So both are trained, and
validation decides by its agreement with people, as everywhere else here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..evaluation.scoring import human_targets, score_examples
from ..prompts.examples import documents, human_dimensions
from ..stats.correlation import spearman
from ..stats.differences import difference_dict, paired_difference
from ..stats.resampling import Resampling
from .mixture import FEWEST, PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..evaluation.scoring import Targets
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.verdicts import VerdictColumns
    from .mixture import Mixture
    from .options import TrainOptions

FEWEST_RATED = 20
"""Outputs of validation with people's scores from which these can tell."""
NOISE = 1.0
"""Standard errors by which people alone have to teach more: what both say is more to learn from."""
NOT_KEPT = {"both": "people_alone", "people": "with_verdicts"}
"""By which scorer is kept, what the other one is called in the figures on test."""


def people_alone(mixture: Mixture, rated: int, options: TrainOptions) -> Mixture | None:
    """What people said, without a teacher's verdicts; None where there are none, or too little of people to compare.

    Args:
        mixture: Everything.
        rated: Outputs of validation that people scored.
        options: Say whether verdicts are trusted in any case; where rationales are drawn they are, as those are about what they say, too.
    """
    taught = any(each.source == "verdicts" for each in mixture.training)
    parts = {part: tuple(each for each in mixture.part(part) if each.source != "verdicts") for part in PARTS}
    if options.trust_verdicts or options.rationales or not taught or rated < FEWEST_RATED:
        return None
    if len(parts["training"]) < FEWEST or not parts["validation"]:
        return None
    return replace(mixture, training=parts["training"], validation=parts["validation"])


def rated_validation(examples: Sequence[Example], checklist: Checklist, mixture: Mixture) -> list[Example]:
    """The outputs of validation that people scored on a dimension of the checklist."""
    found = [each for each in examples if mixture.part_of[each.id] == "validation" and each.human]
    return found if found and human_dimensions(found, checklist) else []


def compared(
    both: VerdictColumns,
    alone: VerdictColumns,
    examples: Sequence[Example],
    checklist: Checklist,
    options: TrainOptions,
) -> dict[str, Any]:
    """Which of two scorers agrees more with people on validation.

    Args:
        both: Verdicts of the one that learned from the teacher, too.
        alone: Of the one that learned from people alone.
        examples: Rated outputs of validation.
        checklist: The questions.
        options: Scale, resamples and seed.

    Returns:
        ``kept`` (``both`` or ``people``), Spearman with people of each, how far people alone are ahead, and ``n``.
    """
    people = human_targets(examples, checklist, options.human_scale)
    wanted = [people.overall(each.id) for each in examples]
    first, second = (_scores(each, examples, checklist, people) for each in (both, alone))
    resampling = Resampling(documents(examples), options.resamples, seed=options.seed)
    ahead = paired_difference(first, second, wanted, resampling, undefined_as_zero=True)
    error = None if ahead.low is None or ahead.high is None else (ahead.high - ahead.low) / (2 * 1.96)
    better = ahead.value is not None and error is not None and ahead.value > NOISE * error
    return {
        "kept": "people" if better else "both",
        "n": len(examples),
        "both": spearman(first, wanted).value,
        "people": spearman(second, wanted).value,
        "people_ahead": difference_dict(ahead),
    }


def _scores(
    verdicts: VerdictColumns, examples: Sequence[Example], checklist: Checklist, people: Targets
) -> list[float | None]:
    return [people.score(each) for each in score_examples(examples, checklist, verdicts)]
