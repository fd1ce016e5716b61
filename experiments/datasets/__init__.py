"""Published data sets by name: rated examples, preference pairs, or prompts. Each loader raises the errors of
:func:`load_rated`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ...prompts.preferences import Preference
from .pairs import load_lfqa, load_llmbar, load_mt_bench, load_reward_bench
from .rated import (
    load_biggen,
    load_flask,
    load_helpsteer2,
    load_ifbench,
    load_infobench,
    load_qags,
    load_summeval,
    load_topical_chat,
)
from .rows import Source

__all__ = ["PAIRS", "PROMPTS", "RATED", "UNIT_TESTED", "load_pairs_of", "load_prompts", "load_rated"]

Record = TypeVar("Record", Example, Preference)

UNIT_TESTED: Mapping[str, Callable[[Source], list[Example]]] = {
    "flask": load_flask,
    "biggen": load_biggen,
    "infobench": load_infobench,
}
"""Data sets whose rated examples have a unit test each."""

RATED: Mapping[str, Callable[[Source], list[Example]]] = {
    "summeval": load_summeval,
    "topical_chat": load_topical_chat,
    "qags": load_qags,
    "helpsteer2": load_helpsteer2,
    **UNIT_TESTED,
}
"""Data sets of rated examples."""

PAIRS: Mapping[str, Callable[[Source], list[Preference]]] = {
    "lfqa": load_lfqa,
    "llmbar": load_llmbar,
    "mt_bench": load_mt_bench,
    "reward_bench": load_reward_bench,
}
"""Data sets of preference pairs."""

PROMPTS: Mapping[str, Callable[[Source], list[Example]]] = {"ifbench": load_ifbench}
"""Data sets of prompts without outputs, for generators."""

_KINDS: Mapping[str, Iterable[str]] = {
    "rated examples": RATED,
    "preference pairs": PAIRS,
    "prompts without outputs": PROMPTS,
}


def load_rated(name: str, source: Source = None) -> list[Example]:
    """Load the rated examples of a data set, from a local file or, without a file, from the hub. Raises InputError if
    there is no such data set, a row has none of the known forms, or an id occurs twice. Raises AskanceError if the hub
    cannot be reached, or ``datasets`` is missing."""
    return _load(name, source, RATED)


def load_pairs_of(name: str, source: Source = None) -> list[Preference]:
    """Load the preference pairs of a data set, as :func:`load_rated`."""
    return _load(name, source, PAIRS)


def load_prompts(name: str, source: Source = None) -> list[Example]:
    """Load a data set's prompts for generators, as :func:`load_rated`."""
    return _load(name, source, PROMPTS)


def _load(name: str, source: Source, known: Mapping[str, Callable[[Source], list[Record]]]) -> list[Record]:
    if name not in known:
        raise InputError(_unknown(name, known))
    records = known[name](source)
    if not records:
        raise InputError(f"{source or name}: there is nothing in it.")
    twice = next((each for each, count in Counter(record.id for record in records).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{source or name}: the id '{twice}' stands there twice.")
    return records


def _unknown(name: str, known: Iterable[str]) -> str:
    for what, others in _KINDS.items():
        if name in others:
            return f"The data set '{name}' holds {what}; here one of {', '.join(known)} is needed."
    return f"There is no data set '{name}' (there are: {', '.join(known)}).{did_you_mean(name, known)}"
