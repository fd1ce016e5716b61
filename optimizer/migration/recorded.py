"""An old judge that is not asked: its scores or its verdicts stand in a column of the data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ...agents.checks import computed_verdicts
from ...evaluation.scoring import WHOLE, ExampleScore
from ...models.replies.own_formats import parse_reads
from ...models.replies.own_scores import Reads
from ...prompts.checklist import Checklist
from ...prompts.errors import InputError, did_you_mean
from ...prompts.examples import Example
from ...prompts.verdicts import Verdict
from ..options import MigrateOptions
from ..subject import Pair

RECORDED = "recorded"
"""Stands for the old model's name where its outputs, or the old judge's scores or verdicts, are in the data."""
_WORDS = {"yes": True, "no": False}
_IN_DATA = "--judge-scores"


@dataclass(frozen=True)
class RecordedJudge:
    """The verdicts of an old judge, or its scores alone."""

    checklist: Checklist
    verdicts: Mapping[Pair, Verdict] = field(default_factory=dict)
    """Empty where the data have scores."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Score in [0, 1] by example id; empty where the data have verdicts."""

    async def judge(
        self, examples: Sequence[Example], on_verdicts: Callable[[int, int], None] | None = None
    ) -> list[Verdict]:
        """Return the verdicts on some examples, also those that code computes; empty where the data have scores."""
        if self.scores:
            return []
        said = [self.verdicts[each.id, question.id] for each in examples for question in self.checklist.asked]
        return [*said, *computed_verdicts(self.checklist.computed, examples, RECORDED)]

    async def explain(self, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[tuple[str, str], str]:
        """Return no explanations: the old judge cannot be asked for them."""
        return {}

    def scored(self, examples: Sequence[Example]) -> list[ExampleScore]:
        """Return the scores of some examples, where the data have scores."""
        return [ExampleScore(each.id, self.scores[each.id], {WHOLE: self.scores[each.id]}) for each in examples]


def read_recorded(examples: Sequence[Example], checklist: Checklist, options: MigrateOptions) -> RecordedJudge:
    """Read the old judge from a column: each row has a score, or an object (question id to yes, no or P(yes)).

    Raises InputError, which names the row, if there is no such column, a row lacks a value, or a value cannot be read.
    """
    name = str(options.judge_scores)
    values = [_value(each.metadata.get(name)) for each in examples]
    if not any(value is not None for value in values):
        known = list(dict.fromkeys(column for each in examples for column in each.metadata))
        raise InputError(f"{_IN_DATA}: no row has a column '{name}'.{did_you_mean(name, known)}")
    places = [f"row {row} (example '{each.id}'), field '{name}'" for row, each in enumerate(examples, 1)]
    for place, value in zip(places, values, strict=True):
        if value is None:
            raise InputError(
                f"{_IN_DATA}: {place}: it is empty. Every row needs what the old judge said; leave out the others."
            )
    rows = list(zip(examples, places, values, strict=True))
    with_verdicts = isinstance(values[0], dict)
    if other := next((place for _, place, value in rows if isinstance(value, dict) != with_verdicts), None):
        both = "a score, and the first row has verdicts" if with_verdicts else "verdicts, and the first row has a score"
        raise InputError(f"{_IN_DATA}: {other}: it has {both}. Give the same in every row.")
    if with_verdicts and options.reads is None:
        verdicts = (each for example, place, value in rows for each in _verdicts(example, place, value, checklist))
        return RecordedJudge(checklist, {(each.example, each.question): each for each in verdicts})
    form = _form(values, options)
    numbers = {example.id: _number(form, place, value) for example, place, value in rows}
    if options.reads is None:
        return RecordedJudge(checklist, scores={example: _share(form, value) for example, value in numbers.items()})
    (question,) = checklist.asked
    own = {(example, question.id): _stated(example, question.id, form, value) for example, value in numbers.items()}
    return RecordedJudge(checklist, own)


def _value(given: Any) -> Any:
    """Read a cell: a text that holds a JSON object (as in tables) is parsed, and an empty text becomes None."""
    if isinstance(given, str):
        given = given.strip()
        if given.startswith("{"):
            with suppress(ValueError):
                return json.loads(given)
    return None if given == "" else given


def _verdicts(example: Example, place: str, given: Mapping[str, Any], checklist: Checklist) -> list[Verdict]:
    asked = [each.id for each in checklist.asked]
    for name in given:
        if name not in asked:
            raise InputError(f"{_IN_DATA}: {place}: the checklist asks no '{name}'.{did_you_mean(name, asked)}")
    for name in asked:
        if name not in given:
            raise InputError(
                f"{_IN_DATA}: {place}: there is no verdict on '{name}' (null where the old judge gave none)."
            )
    return [_verdict(example.id, name, f"{place}, question '{name}'", given[name]) for name in asked]


def _verdict(example: str, question: str, place: str, said: Any) -> Verdict:
    identity = (example, question, RECORDED, RECORDED)
    said = _WORDS.get(said.strip().lower(), said) if isinstance(said, str) else said
    if said is None:
        return Verdict(*identity, None, status="abstained")
    if isinstance(said, bool):
        return Verdict(*identity, said, float(said), "hard")
    if not isinstance(said, (int, float)) or not 0 <= said <= 1:
        raise InputError(
            f"{_IN_DATA}: {place}: true, false, yes, no or P(yes) from 0 to 1 is needed, not {said!r:.40}."
        )
    return Verdict(*identity, said >= 0.5, float(said), "logprob")


def _form(values: Sequence[Any], options: MigrateOptions) -> Reads:
    """Return how scores are read: on the named scale, as the judge's replies, or from 0 to 1 if all lie there."""
    if options.judge_scale is not None:
        return Reads("score", *options.judge_scale)
    if options.reads is not None:
        return parse_reads(options.reads)
    numbers = [each for each in values if isinstance(each, (int, float)) and not isinstance(each, bool)]
    if numbers and not (min(numbers) >= 0 and max(numbers) <= 1):
        seen = f"{min(numbers):g} to {max(numbers):g}"
        raise InputError(
            f"{_IN_DATA}: the old judge's scores go from {seen}. Say what its scale is, from worst to best: "
            f"--judge-scale {math.floor(min(numbers))} {math.ceil(max(numbers))}"
        )
    return Reads("score", 0.0, 1.0)


def _number(form: Reads, place: str, value: Any) -> float:
    try:
        return form.number(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{_IN_DATA}: {place}: {error}.") from None


def _share(form: Reads, value: float) -> float:
    return (value - form.low) / (form.high - form.low) + 0.0


def _stated(example: str, question: str, form: Reads, value: float) -> Verdict:
    share = _share(form, value)
    return Verdict(example, question, RECORDED, RECORDED, share >= 0.5, share, "stated", value=value)
