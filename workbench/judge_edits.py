"""Edits of a judge by a person: questions turned off, turned round, weighed or moved, and another threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from ..evaluation.kept_judge import KeptJudge
from ..labelling.local_server import PageMessage
from ..prompts.checklist import Checklist, Question
from ..prompts.criteria.question import GoodAnswer, Weight
from ..prompts.errors import InputError
from .asked_questions import AskedQuestion

MOST_QUESTIONS = 5_000


class EditedQuestion(PageMessage):
    """One question in the page's table."""

    id: str
    on: bool = True
    good: GoodAnswer = "yes"
    weight: Weight = 1.0


class JudgeEdit(PageMessage):
    """The whole table of questions, in the page's order, and the threshold."""

    questions: tuple[EditedQuestion, ...] = Field(max_length=MOST_QUESTIONS)
    threshold: float | None = Field(None, ge=0, le=1)

    @classmethod
    def of(cls, judge: KeptJudge, threshold: float | None, further: Sequence[Question] = ()) -> JudgeEdit:
        """Make the table of an unedited judge. The ``further`` questions, which the judge does not ask, are off."""
        rows = [EditedQuestion(id=each.id, good=each.good, weight=each.weight) for each in judge.checklist.questions]
        rows += [EditedQuestion(id=each.id, on=False, good=each.good, weight=each.weight) for each in further]
        return cls(questions=tuple(rows), threshold=threshold)


def edited_judge(
    judge: KeptJudge, edit: JudgeEdit, asked: Sequence[AskedQuestion] = ()
) -> tuple[KeptJudge, tuple[str, ...]]:
    """Return the judge as a person edited it, and the changes, one sentence each; none if nothing was changed.

    ``asked`` are questions that a person worded; those that are on join the judge. The edited judge has no figures,
    no decision and no thresholds between steps, because these belong to the judge before the edit. Raises InputError
    if the table has other questions than the judge, no question with a weight is left, or no question of the
    threshold's dimensions is left. Also if a question of a calibrated judge is turned round, or the weight of a
    question with weights by section is changed.
    """
    known = {each.id: each for each in judge.checklist.questions}
    asked_by_id = {each.question.id: each for each in asked}
    rows = {each.id: each for each in edit.questions}
    # A question that was asked in another window meanwhile may be missing in this table: it counts as off.
    if len(rows) < len(edit.questions) or not known.keys() <= rows.keys() <= known.keys() | asked_by_id.keys():
        raise InputError("The table has other questions than the judge. Open the page again.")
    joined = {name: each for name, each in asked_by_id.items() if name in rows and rows[name].on}
    sentences = [each.said for each in joined.values()]
    sentences += [*_said_of(known, rows), *_order(judge.checklist, edit), *_threshold(judge, edit)]
    known |= {name: each.question for name, each in joined.items()}
    sentences += _said_of({name: each.question for name, each in joined.items()}, rows)
    if not sentences:
        return judge, ()
    sections = judge.checklist.section_weights
    for name, question in known.items():
        if judge.calibration is not None and rows[name].good != question.good:
            raise InputError(
                f"'{name}' cannot be turned round: the judge's calibration was fitted for its good answer."
            )
        if sections and rows[name].weight != question.weight:
            raise InputError(f"'{name}' has weights by section, which are changed in the file (section_weights).")
    if not any(each.on and each.weight > 0 for each in edit.questions):
        raise InputError("Every question is off or weighs nothing, so there is no score. Turn one on.")
    on = [_as_edited(known[each.id], each) for each in edit.questions if each.on]
    checklist = _checklist(judge.checklist, on)
    dimensions = ("overall", *checklist.dimensions)
    lost_dimensions = [each for each in judge.threshold_of if each not in dimensions]
    if lost_dimensions and edit.threshold is not None:
        raise InputError(
            f"The threshold is on {', '.join(lost_dimensions)}, and no question about that is on. Turn one on."
        )
    made_by = judge.made_by
    if made_by is not None:
        made_by = made_by.model_copy(update={"unfitted": "a person changed the judge", "certificate": None})
    changed = replace(
        judge,
        checklist=checklist,
        threshold=edit.threshold,
        threshold_of=("overall",) if lost_dimensions else judge.threshold_of,
        steps=None,
        figures=None,
        decision=None,
        origins={name: each for name, each in judge.origins.items() if name in rows and rows[name].on}
        | {name: each.origin for name, each in joined.items()},
        made_by=made_by,
        edited=False,
    )
    return changed, tuple(sentences)


def _checklist(before: Checklist, on: list[Question]) -> Checklist:
    """Return the checklist with only the questions that are on, in their order."""
    part = before.of([each for each in before.questions if each.id in {one.id for one in on}])
    return (part or before).model_copy(update={"questions": on})


def _as_edited(question: Question, row: EditedQuestion) -> Question:
    if (question.good, question.weight) == (row.good, row.weight):
        return question
    return question.model_copy(update={"good": row.good, "weight": row.weight})


def _said_of(known: Mapping[str, Question], rows: Mapping[str, EditedQuestion]) -> list[str]:
    sentences = []
    for name, question in known.items():
        row = rows[name]
        if not row.on:
            sentences.append(f"turned off '{name}'")
            continue
        if row.good != question.good:
            sentences.append(f"turned round '{name}': {row.good} speaks for the output now")
        if row.weight != question.weight:
            sentences.append(f"weight of '{name}' {question.weight:g} → {row.weight:g}")
    return sentences


def _order(checklist: Checklist, edit: JudgeEdit) -> list[str]:
    """Return the change of the questions' order in words; empty if the order is the same."""
    # The kinds of criteria stay apart, so only the order within each kind counts.
    on = [each.id for each in edit.questions if each.on]
    for kind in (checklist.asked, checklist.checks, checklist.measures):
        before = [each.id for each in kind if each.id in on]
        if before != [each for each in on if each in before]:
            return ["order of the questions"]
    return []


def _threshold(judge: KeptJudge, edit: JudgeEdit) -> list[str]:
    if edit.threshold == judge.threshold:
        return []
    before, after = ("none" if each is None else f"{each:g}" for each in (judge.threshold, edit.threshold))
    return [f"threshold {before} → {after}"]
