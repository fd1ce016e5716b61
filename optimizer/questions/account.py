"""What became of every proposed question, for ``result.json``; what each learned one is worth costs no call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...stats.differences import difference_dict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...prompts.examples import Example
    from ...prompts.verdicts import Verdict
    from ...stats.differences import Difference
    from ..subject import Draft, Observation, Outcome
    from ..yardsticks import Yardstick
    from .learner import Learned


def learned_rows(
    learned: Sequence[Learned],
    outcome: Outcome,
    validation: Sequence[Example],
    tests: Mapping[int, Observation],
    yardstick: Yardstick,
    *,
    soft: bool,
) -> list[dict[str, Any]]:
    """One row a candidate, those that joined first.

    ``worth`` is the gain of the accepted judge over the same judge without the question, on validation and on test: the
    same verdicts, scored without those of the question.
    """
    best = outcome.best
    seen: dict[str, tuple[Sequence[Example], Sequence[Verdict]]] = {"validation": (validation, best.verdicts)}
    if best.number in tests:
        seen["test"] = (tests[best.number].examples, tests[best.number].verdicts)
    refused = {each.iteration: each.reason for each in outcome.tried if not each.accepted and not each.edits}
    rows = []
    for each in sorted(learned, key=lambda one: one.id not in best.draft.origins):
        joined = each.id in best.draft.origins
        found, candidate = each.standing, each.candidate
        reason = None if joined else each.problem or f"not accepted: {refused.get(each.iteration, 'the run ended')}"
        rows.append(
            {
                "id": each.id,
                "text": candidate.text,
                "good": each.good,
                "dimension": candidate.dimension,
                "from": candidate.kind,
                "sources": list(candidate.sources),
                "comments": list(candidate.comments),
                "joined": joined,
                "reason": reason,
                "may_return": not joined and each.may_return,
                "effect": None if found is None else found.effect,
                "iteration": each.iteration,
                "worth": {
                    split: difference_dict(_worth(best.draft, each.id, examples, verdicts, yardstick, soft=soft))
                    for split, (examples, verdicts) in seen.items()
                    if joined
                },
            }
        )
    return rows


def _worth(
    draft: Draft,
    question: str,
    examples: Sequence[Example],
    verdicts: Sequence[Verdict],
    yardstick: Yardstick,
    *,
    soft: bool,
) -> Difference:
    left = tuple(each for each in draft.questions.questions if each.id != question)
    sections = {
        section: {name: weight for name, weight in weights.items() if name != question}
        for section, weights in draft.questions.section_weights.items()
    }
    checklist = draft.questions.model_copy(update={"questions": left, "section_weights": sections})
    others = [each for each in verdicts if each.question != question]
    without = replace(draft, checklist=checklist).scores(examples, others, soft=soft)
    return yardstick.difference(without, draft.scores(examples, verdicts, soft=soft), examples)
