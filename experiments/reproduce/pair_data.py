"""The preference pairs of the LMUnit tables: from files or the hub, in sections, a few of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
