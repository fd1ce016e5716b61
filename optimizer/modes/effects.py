"""What each accepted instruction did to the requirement that it is about: how many outputs pass it, before and after.

Nothing is bought for it: the verdicts on validation and test are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluation.scoring import mean_score
from ...memory.lesson_memory import LessonMemory
from ...prompts.checklist import Question
from ...prompts.examples import Example, documents
from ...prompts.lessons import Lesson
from ...prompts.verdicts import Verdict
from ...stats.differences import difference_dict, mean_difference
from ...stats.resampling import Resampling
from ..job import SplitExamples
from ..subject import Observation, Outcome


def instruction_effects(
    outcome: Outcome,
    memory: LessonMemory,
    splits: SplitExamples,
    tests: Mapping[int, Observation],
    *,
    resamples: int,
    seed: int,
) -> list[dict[str, Any]]:
    """The effect of every lesson in the best version's prompt on each requirement that it was drawn from.

    A generator's verdicts alone are looked at in this way: they answer a requirement, which a pass rate belongs to.

    Args:
        outcome: With the first and the best version and what they did on the development examples.
        memory: Has the lessons.
        splits: The examples that were measured.
        tests: What the two versions did on the test examples, by number; empty where it was not judged.
        resamples: Of the intervals.
        seed: Of the resampling.

    Returns:
        One row a lesson and requirement, as in ``result.json``: ``lesson``, ``text``, ``requirement`` (its id),
        ``asked`` (its words), and ``validation`` and ``test`` with the pass rates ``before`` and ``after`` in [0, 1] over
        the ``n`` examples on which both are known, and their difference ``gain``. ``test`` is None where it was not judged.
        The prompt is measured as a whole: where two instructions are about one requirement, they share its gain. Without an
        accepted instruction there are no rows, and none where each example has questions of its own.
    """
    baseline, best = outcome.baseline, outcome.best
    sides = {"validation": (splits.validation, baseline.verdicts, best.verdicts)}
    if baseline.number in tests and best.number in tests:
        sides["test"] = (splits.test, tests[baseline.number].verdicts, tests[best.number].verdicts)
    asked = _asked_of_all(outcome)
    rows = []
    held = {name for edit in best.edits for name in edit.lessons}
    for lesson in (each for each in memory.lessons if each.id in held):
        for requirement in _requirements(lesson, outcome):
            if requirement not in asked:
                continue
            question = asked[requirement]
            row: dict[str, Any] = {"lesson": lesson.id, "text": lesson.text, "requirement": requirement}
            row |= {"asked": question.criterion, "validation": None, "test": None}
            for split, (examples, first, last) in sides.items():
                before, after = (_passed(question, verdicts, examples) for verdicts in (first, last))
                row[split] = _effect(before, after, Resampling(documents(examples), resamples, seed=seed))
            rows.append(row)
    return rows


def _asked_of_all(outcome: Outcome) -> dict[str, Question]:
    """Questions and checks by id; without ids that mean another question on another example."""
    found: dict[str, Question] = {}
    differ: set[str] = set()
    for seen in outcome.seen.values():
        for checklist in seen.own_checklists.values():
            for question in checklist.questions:
                if found.setdefault(question.id, question).criterion != question.criterion:
                    differ.add(question.id)
    return {name: question for name, question in found.items() if name not in differ}


def _requirements(lesson: Lesson, outcome: Outcome) -> list[str]:
    """The questions and checks that a lesson is about."""
    if lesson.requirement is not None:
        return [lesson.requirement]
    behind = set(lesson.evidence)
    verdicts = [each for seen in outcome.seen.values() for each in seen.verdicts]
    return list(dict.fromkeys(each.question for each in verdicts if f"{each.example}/{each.question}" in behind))


def _passed(question: Question, verdicts: Sequence[Verdict], examples: Sequence[Example]) -> list[float | None]:
    """Whether each example's output passes, 0 or 1 (a share, of several replicates); None where no answer is there."""
    answers: dict[str, list[float]] = {}
    for each in verdicts:
        good = question.is_good(each.answer) if each.question == question.id else None
        if good is not None:
            answers.setdefault(each.example, []).append(float(good))
    return [mean_score(answers.get(example.id, [])) for example in examples]


def _effect(before: Sequence[float | None], after: Sequence[float | None], resampling: Resampling) -> dict[str, Any]:
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not None and new is not None]
    rates = [mean_score(side) for side in zip(*pairs, strict=True)] if pairs else [None, None]
    gain = difference_dict(mean_difference(before, after, resampling))
    return {"before": rates[0], "after": rates[1], "n": len(pairs), "gain": gain}
