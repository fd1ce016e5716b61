"""The reproducible division of examples into development, validation and test.

Membership comes from the sha256 of the seed and the example's id. So it does not depend on the platform, the Python
version or the order of the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from ..prompts.errors import InputError
from ..prompts.examples import Example

Part = Literal["development", "validation", "test"]
PARTS: tuple[Part, ...] = ("development", "validation", "test")
SMALLEST_PART = 3
"""Fewest examples of a part. A smaller part could not show anything, so splitting fails instead."""
STRATUM = 10
"""Number of examples (or groups) of neighbouring score that are dealt out together."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Split:
    """The ids of each part, in input order. Every id is in one part."""

    development: tuple[str, ...]
    """Examples that lessons are drawn from."""
    validation: tuple[str, ...]
    """Examples for accepting candidates and stopping the loop."""
    test: tuple[str, ...]
    """Examples that are looked at once, at the end."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """One example, or all examples of one group, which are dealt out together."""

    members: tuple[str, ...]
    score: float | None
    order: bytes


def split(
    ids: Sequence[str],
    *,
    shares: Sequence[float] = (0.3, 0.3, 0.4),
    seed: int = 42,
    strata: Sequence[float | None] | None = None,
    groups: Sequence[str] | None = None,
    kept: Mapping[str, str] | None = None,
) -> Split:
    """Divide examples into development, validation and test.

    Examples are ordered by hash and cut by rank. So the sizes of the parts are exact (to rounding, and up to a group),
    and a further example moves only those at a cut. With ``strata`` (a score for each id; None: unknown) examples are
    first ordered by score, and each run of 10 is cut in this way. Then every part covers the same range of scores, but
    a further example may move many. The members of one of the ``groups`` stay in one part. Ids in ``kept`` have their
    part already; the others are dealt out so that the sizes come as near to the shares as they can.

    Raises InputError where a part would have fewer than 3 examples, or the shares are not three positive numbers that
    sum to 1.
    """
    _check_shares(shares)
    if min(_quotas(shares, len(ids), [0, 0, 0])) < SMALLEST_PART:
        raise InputError(
            f"{len(ids)} examples are too few for the shares {_listed(shares)}: each part needs at least "
            f"{SMALLEST_PART}, which takes {fewest_examples(shares)} examples. Add examples or change the shares."
        )
    part_of = {name: PARTS.index(part) for name, part in (kept or {}).items()}
    new = [place for place, name in enumerate(ids) if name not in part_of]
    units = _units(
        [ids[place] for place in new],
        seed,
        strata and [strata[place] for place in new],
        groups and [groups[place] for place in new],
    )
    part_of |= _deal(_blocks(units, stratified=strata is not None), shares, list(part_of.values()))
    parts = [tuple(name for name in ids if part_of[name] == part) for part in range(3)]
    for part, members in zip(PARTS, parts, strict=True):
        if len(members) < SMALLEST_PART:
            raise InputError(
                f"The {part} part has {len(members)} of {len(ids)} examples and needs {SMALLEST_PART}: "
                f"the {len(units)} groups{' that are new' if kept else ''} are too few or too uneven to divide. "
                "Add documents, or split without groups."
            )
    return Split(*parts)


def _deal(blocks: list[list[_Unit]], shares: Sequence[float], before: Sequence[int]) -> dict[str, int]:
    """Cut each block by hash rank, so that the sizes, with the parts given ``before``, stay close to the shares."""
    part_of: dict[str, int] = {}
    given = [before.count(part) for part in range(3)]
    for block in blocks:
        size = sum(len(unit.members) for unit in block)
        quotas = _quotas(shares, len(before) + len(part_of) + size, given)
        first_cut, second_cut = quotas[0], quotas[0] + quotas[1]
        position = 0
        for unit in sorted(block, key=lambda unit: unit.order):
            middle = position + len(unit.members) / 2
            part = 0 if middle < first_cut else 1 if middle < second_cut else 2
            part_of.update(dict.fromkeys(unit.members, part))
            given[part] += len(unit.members)
            position += len(unit.members)
    return part_of


def _quotas(shares: Sequence[float], total: int, given: Sequence[int]) -> list[int]:
    """Return the further members of each part so that ``total`` are dealt: largest remainders, never negative."""
    wanted = [max(share * total - had, 0.0) for share, had in zip(shares, given, strict=True)]
    quotas = [math.floor(want + _ROUNDING) for want in wanted]
    left = total - sum(given) - sum(quotas)
    by_remainder = sorted(range(3), key=lambda part: (round(quotas[part] - wanted[part], 9), part))
    for step in range(abs(left)):
        if left > 0:
            quotas[by_remainder[step % 3]] += 1
        else:
            quotas[quotas.index(max(quotas))] -= 1
    return quotas


def _units(
    ids: Sequence[str], seed: int, strata: Sequence[float | None] | None, groups: Sequence[str] | None
) -> list[_Unit]:
    members: dict[str, list[int]] = {}
    for position, key in enumerate(ids if groups is None else groups):
        members.setdefault(key, []).append(position)
    units = []
    for key, positions in members.items():
        known = [] if strata is None else [value for p in positions if (value := strata[p]) is not None]
        known = [value for value in known if not math.isnan(value)]
        score = math.fsum(known) / len(known) if known else None
        order = sha256(f"{seed}\n{key}".encode("utf-8", "surrogatepass")).digest()
        units.append(_Unit(tuple(ids[p] for p in positions), score, order))
    return units


def _blocks(units: list[_Unit], *, stratified: bool) -> list[list[_Unit]]:
    if not stratified:
        return [units]
    ordered = sorted(units, key=lambda unit: (unit.score is None, unit.score or 0.0, unit.order))
    return [ordered[start : start + STRATUM] for start in range(0, len(ordered), STRATUM)]


def fewest_examples(shares: Sequence[float]) -> int:
    """Return the smallest number of examples that gives each part at least :data:`SMALLEST_PART`."""
    total = 3 * SMALLEST_PART
    while min(_quotas(shares, total, [0, 0, 0])) < SMALLEST_PART:
        total += 1
    return total


def _check_shares(shares: Sequence[float]) -> None:
    if len(shares) != 3 or not all(share > 0 for share in shares) or abs(math.fsum(shares) - 1) > 1e-6:
        raise InputError(
            f"The split shares are {_listed(shares)}; give three positive numbers that sum to 1 "
            "(development, validation, test), for example 0.3 0.3 0.4."
        )


def _listed(shares: Sequence[float]) -> str:
    return " ".join(f"{share:g}" for share in shares)


def spread_order(ids: Sequence[str], *, seed: int = 42, groups: Sequence[str] | None = None) -> list[int]:
    """Return the examples' places in an order, by hash, whose first parts are fair samples; groups stay together."""
    names = groups or ids
    keys = {name: sha256(f"{seed}:order:{name}".encode()).digest() for name in names}
    return sorted(range(len(ids)), key=lambda place: (keys[names[place]], place))


def own_split(examples: Sequence[Example]) -> Split | None:
    """Return the split in the examples' ``metadata.split``; None if an example has none, or if no example names a part.
    Raises InputError if a part has fewer than three examples, or some examples name a part and others something else.
    """
    named = [(each.id, each.metadata.get("split")) for each in examples]
    if not all(isinstance(part, str) for _, part in named) or not any(part in PARTS for _, part in named):
        return None
    if other := next((each for each in named if each[1] not in PARTS), None):
        raise InputError(
            f"The example '{other[0]}' has the metadata.split '{other[1]}', and others have one of {', '.join(PARTS)}, "
            "which alone are parts. Give every example one of these, or leave metadata.split out to have the examples "
            "divided."
        )
    parts = [tuple(name for name, part in named if part == each) for each in PARTS]
    for part, ids in zip(PARTS, parts, strict=True):
        if len(ids) < SMALLEST_PART:
            raise InputError(
                f"metadata.split names {len(ids)} {part} examples; at least {SMALLEST_PART} are needed in each part."
            )
    return Split(*parts)


def unused_split(examples: Sequence[Example]) -> str | None:
    """Return a warning if ``metadata.split`` is not used because some examples name a part and others nothing."""
    missing = [each.id for each in examples if not isinstance(each.metadata.get("split"), str)]
    if not missing or not any(each.metadata.get("split") in PARTS for each in examples):
        return None
    return (
        f"the metadata.split of the examples is not used, as {len(missing)} of {len(examples)} have none (the first: "
        f"'{missing[0]}'): what is marked as test may be learned from"
    )


def with_own_split(examples: Sequence[Example], parts: Split) -> list[Example]:
    """Return the examples with their part in ``metadata.split``, for :func:`own_split`."""
    names = {name: part for part in PARTS for name in getattr(parts, part)}
    return [
        example.model_copy(update={"metadata": {**example.metadata, "split": names[example.id]}})
        for example in examples
    ]
