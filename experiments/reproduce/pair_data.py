"""The preference pairs of the LMUnit tables: from files or the hub, in sections, a few of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from ...prompts.checklist import Checklist
from ...prompts.errors import InputError
from ...prompts.examples import Preference
from ..datasets import load_pairs_of
from ..datasets.llmbar import PARTS
from ..datasets.llmbar import load as load_llmbar


def load_sections(dataset: str, files: Sequence[str], *, limit: int | None = None) -> list[Preference]:
    """All pairs of a data set; a file whose pairs name no section is a section of its own.

    Without files the data set is taken from the hub, LLMBar with all its parts. With ``limit`` there are so many pairs,
    spread as evenly over the sections as can be, the first of each: a higher limit only adds pairs.

    Raises:
        InputError: A file or row is bad, an id stands in two files, or there is no such data set.
        AskanceError: The hub cannot be reached, or ``datasets`` is missing; the message names what file to give.
    """
    if files:
        pairs = [_in_section(pair, Path(file).stem) for file in files for pair in load_pairs_of(dataset, file)]
    elif dataset == "llmbar":
        pairs = [pair for part in PARTS for pair in load_llmbar(part=part)]
    else:
        pairs = load_pairs_of(dataset)
    seen: set[str] = set()
    for pair in pairs:
        if pair.id in seen:
            raise InputError(f"The pair '{pair.id}' stands in two of the files {', '.join(files)}.")
        seen.add(pair.id)
    return pairs if limit is None else spread(pairs, limit)


def spread(pairs: Sequence[Preference], limit: int) -> list[Preference]:
    """``limit`` pairs in their order, taken from the sections in turn."""
    places: dict[str | None, int] = {}
    turns = []
    for number, pair in enumerate(pairs):
        turn = places.get(pair.section, 0)
        places[pair.section] = turn + 1
        turns.append((turn, number))
    chosen = {number for _, number in sorted(turns)[:limit]}
    return [pair for number, pair in enumerate(pairs) if number in chosen]


def _in_section(pair: Preference, name: str) -> Preference:
    return pair if pair.section is not None else pair.model_copy(update={"section": name})


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
