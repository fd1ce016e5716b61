"""A checklist with and without rubrics and reference answers (LMUnit, Table 10)."""

from __future__ import annotations

from pathlib import Path

import yaml

from ...prompts.checklist import Checklist
from ...prompts.errors import InputError

_RUBRICS = Path(__file__).parent / "rubrics.yaml"


def variants(checklist: Checklist, name: str) -> dict[str, Checklist]:
    """The compositions of Table 10 that the checklist allows: question, with rubric, with reference, with both.

    Args:
        checklist: Its own rubrics and references are used; where it has no rubric, ours of ``rubrics.yaml``.
        name: Of our rubrics: ``global`` or a data set.

    Raises:
        InputError: There is neither a rubric nor a reference answer, so there is nothing to compare.
    """
    full = with_rubrics(checklist, name)
    has_rubric = any(each.rubric for each in full.questions)
    has_reference = any(each.reference for each in full.questions)
    if not has_rubric and not has_reference:
        raise InputError(
            "No question of the checklist has a rubric or a reference answer: give one with --checklist "
            "(fields `rubric` and `reference` of a question), or take a data set that has rubrics here (pairs, qags)."
        )
    found = {"question": _only(full)}
    if has_rubric:
        found["question + rubric"] = _only(full, "rubric")
    if has_reference:
        found["question + reference"] = _only(full, "reference")
    if has_rubric and has_reference:
        found["question + rubric + reference"] = full
    return found


def with_rubrics(checklist: Checklist, name: str) -> Checklist:
    """The checklist with our rubrics, by question id, where no question has one of its own."""
    rubrics = yaml.safe_load(_RUBRICS.read_text(encoding="utf-8")).get(name, {})
    if any(each.rubric for each in checklist.questions):
        return checklist
    questions = tuple(each.model_copy(update={"rubric": rubrics.get(each.id)}) for each in checklist.questions)
    return checklist.model_copy(update={"questions": questions})


def _only(checklist: Checklist, *fields: str) -> Checklist:
    away = {name: None for name in ("rubric", "reference") if name not in fields}
    questions = tuple(each.model_copy(update=away) for each in checklist.questions)
    return checklist.model_copy(update={"questions": questions})
