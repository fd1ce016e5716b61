"""What became of every proposed question, for ``result.json``; what each learned one is worth costs no call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...evaluation.calibration_fit import FEWEST_ACCEPTED
from ...evaluation.scoring import score_examples
from ...memory.result_parts import NOT_ACCEPTED
from ...models.budget import CAPS
from ...prompts.checklist import Checklist
from ...prompts.examples import Example
from ...prompts.formatting import count
from ...prompts.human_feedback import one_line
from ...prompts.verdicts import Verdict
from ...stats.differences import Difference, difference_dict
from ..subject import Draft, Observation, Outcome
from ..yardsticks import Yardstick
from .choice import Chooser
from .learner import QuestionLearner
from .racing import sides_of


def learned_rows(
    learner: QuestionLearner,
    outcome: Outcome,
    validation: Sequence[Example],
    tests: Mapping[int, Observation],
    yardstick: Yardstick,
    *,
    soft: bool,
) -> list[dict[str, Any]]:
    """One row a candidate: those that joined first, then those that the acceptance test refused.

    ``worth`` is the gain of the accepted judge over the same judge without the question, on validation and on test: the
    same verdicts, scored without those of the question.
    """
    best = outcome.best
    seen: dict[str, tuple[Sequence[Example], Sequence[Verdict]]] = {}
    if best.crossed is None:  # else validation has taught it its questions
        seen["validation"] = (validation, best.verdicts)
    if best.number in tests:
        seen["test"] = (tests[best.number].examples, tests[best.number].verdicts)
    refused = {each.iteration: each.reason for each in outcome.tried if not (each.accepted or each.edits or each.shows)}
    rows = []
    for each in sorted(learner.learned, key=lambda one: (one.id not in best.draft.origins, one.problem is not None)):
        joined = each.id in best.draft.origins
        found, candidate = each.standing, each.candidate
        reason = None if joined else each.problem or f"{NOT_ACCEPTED}{refused.get(each.iteration, 'the run ended')}"
        rows.append(
            {
                "id": each.id,
                "text": candidate.text,
                "good": each.good,
                "dimension": candidate.dimension,
                "from": candidate.kind,
                "sees": candidate.sees,
                "sources": list(candidate.sources),
                **({"parts": learner.found_in(each.id)} if candidate.kind == "contrast" else {}),
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


def revised_rows(start: Checklist, best: Draft) -> list[dict[str, Any]]:
    """The questions of the start that the accepted judge asks the other way round, or no more.

    None where it has none of them in their old words: then all of them were written anew.
    """
    now = {each.id: each for each in best.questions.questions}
    same = [each for each in start.questions if each.id in now and now[each.id].text == each.text]
    if not (same or best.origins):
        return []
    flipped = [each for each in same if each.good != now[each.id].good]
    dropped = [each for each in start.questions if each.id not in now]
    return [
        {"id": each.id, "text": each.text, "good": now.get(each.id, each).good, "what": what}
        for what, some in (("flipped", flipped), ("dropped", dropped))
        for each in some
    ]


def why_no_questions(learner: QuestionLearner, examples: Sequence[Example], finish_reason: str) -> str | None:
    """Why none was proposed, as in "None, as …"; None where some were.

    Args:
        learner: What it saw: the development examples, and those of validation where they teach too.
        examples: All examples of the run.
        finish_reason: Why the run ended; where it was not to learn, there is nothing to say.
    """
    if learner.learned or finish_reason in ("calibrated", "converged"):
        return None
    if not any(each.comment for each in examples):
        return "no example has a comment, and what the outputs do came to no usable question"
    halves = {"development": learner.finder.chooser} | (
        {"validation": learner.mirror.chooser} if learner.crossed else {}
    )
    half, remarks = next(((name, found) for name, each in halves.items() if (found := _remarks(each))), ("", set()))
    if not remarks and not learner.finder.chooser.sides():
        return f"{_few(learner.finder.chooser)}, and comments are read of rejected outputs, held against accepted ones"
    if not remarks:
        return "none of the comments is on a rejected development example"
    if finish_reason in CAPS:
        return "the run ended before it had tried any question"
    one = len(remarks) == 1
    which = "the one comment" if one else f"all {len(remarks)} different comments"
    return f"{which} on rejected {half} examples came to no usable question"


def _remarks(chooser: Chooser) -> set[str]:
    """The different comments on rejected examples; none where nothing can be learned of these."""
    rejected = {each for _, poor in chooser.sides().values() for each in poor}
    return {one_line(one.text) for each in chooser.examples if each.id in rejected for one in each.comment}


def _few(chooser: Chooser) -> str:
    """Why nothing can be learned of the development examples."""
    wanted = chooser.targets.wanted
    sides = [
        sides_of({each.id: wanted[each.id].get(name) for each in chooser.examples})
        for name in chooser.targets.dimensions
    ]
    most = max((len(fine) for fine, _ in sides), default=0)
    are = "is" if most == 1 else "are"
    if most < FEWEST_ACCEPTED:
        return f"only {count(most, 'development example')} {are} accepted"
    return "people like all development examples alike"


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
    # read before it is left out: the others are read beside it
    read = verdicts if draft.calibration is None else draft.calibration.apply(verdicts)
    without = score_examples(examples, checklist, [each for each in read if each.question != question], soft=soft)
    if unasked := dict.fromkeys({*draft.questions.dimensions} - {*checklist.dimensions}, 0.5):
        # a judge that asks nothing about a dimension says the same of every output
        without = [
            replace(each, overall=each.overall if left else 0.5, dimensions={**each.dimensions, **unasked})
            for each in without
        ]
    return yardstick.difference(without, score_examples(examples, draft.questions, read, soft=soft), examples)
