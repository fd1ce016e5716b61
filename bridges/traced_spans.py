"""Spans of traces, what people or judges said of them, and which spans become examples; the same for every format."""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from math import isfinite
from typing import Any, Literal, TypeVar

from ..prompts.errors import InputError, did_you_mean
from ..prompts.formatting import count
from ..prompts.human_feedback import MEANINGS
from ..prompts.messages import text_of

By = Literal["people", "model", "unknown"]


@dataclass(frozen=True)
class TracedSpan:
    """One step of a trace; the root is the whole of it."""

    id: str
    trace: str
    parent: str | None
    name: str
    input: Any = None
    """Input as it was logged: a text, messages, or any JSON."""
    output: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """The error that it ended with."""
    piece: bool = False
    """Whether the input is one of the messages of a conversation, each of which stands by itself."""


@dataclass(frozen=True)
class GivenScore:
    """A score, label or comment on a span, or on a whole trace."""

    name: str | None
    """The quality that it is about; None for a comment in general."""
    value: bool | float | str | None
    comment: str | None
    by: By
    """``unknown`` where the format does not say whether a person or a program gave it."""
    trace: str | None
    span: str | None
    """None: it is about the trace."""
    aggregate: bool = False
    """A mean that counts only where the single scores are not there."""
    id: str | None = None
    """Its own name, where the format has one."""


@dataclass(frozen=True)
class GivenReference:
    """The answer that people wrote for a trace, or for one span of it."""

    trace: str
    text: str
    span: str | None = None


Item = TypeVar("Item")
Part = TracedSpan | GivenScore | GivenReference
Row = Mapping[str, Any]


def loaded(value: Any, *, texts: bool = False) -> Any:
    """Parse a text that holds JSON or a Python literal (as in a data frame's CSV); return anything else as it is.
    ``texts``: whether a text in double quotes is JSON as well."""
    if not isinstance(value, str) or not value.strip():
        return value
    begin = value.lstrip()[0]
    if begin not in "{[" and not (texts and (begin in '"-0123456789' or value in ("true", "false", "null"))):
        return value
    try:
        return json.loads(value, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(value.strip()) if begin in "{[" else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def number(value: Any) -> bool | float | None:
    """The number that a value is, or that a cell of a table holds as text; None where there is none."""
    if isinstance(value, (bool, int, float)):
        return value
    try:
        parsed = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if parsed is None or not isfinite(parsed):
        return None
    return int(parsed) if parsed.is_integer() else parsed


def scalar(value: Any) -> bool | float | str | None:
    """A value that may be a score or a label; None for any other."""
    return value if isinstance(value, (bool, int, float, str)) else None


def label_or_score(label: Any, score: Any) -> bool | float | str | None:
    """The label if its meaning is known, else the score, else the label as it is."""
    if isinstance(label, str) and label.strip().casefold() in MEANINGS:
        return label
    found = number(score)
    return (scalar(label) if label != "" else None) if found is None else found


def given_by(kind: str) -> By:
    """The giver of a score, in formats that say ``HUMAN`` or the kind of a program."""
    return "people" if kind == "HUMAN" else "model" if kind else "unknown"


def text_or_none(value: Any) -> str | None:
    """An id or a remark as text; None where it is empty."""
    return str(value) if value not in (None, "") else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The object that a value is, or holds as JSON; an empty one where it is none."""
    value = loaded(value)
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The objects in the list that a value is, or holds as JSON."""
    value = loaded(value)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def counted(number: int, what: str) -> str:
    """``1 trace``, ``2 traces``; of several words the first is counted."""
    first, blank, rest = what.partition(" ")
    return f"{count(number, first)}{blank}{rest}"


def each_once(items: Iterable[Item], key: Callable[[Item], object]) -> list[Item]:
    """Return the items without those whose key an earlier one has."""
    by_key: dict[object, Item] = {}
    for item in items:
        by_key.setdefault(key(item), item)
    return list(by_key.values())


def short(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without what is empty."""
    return {str(name): value for name, value in metadata.items() if value not in (None, "", [], {})}


DEFINITIONS = ("tools", "functions")
"""Names under which a request to a model has the definitions of its tools."""


def named(row: Any) -> str:
    """A name for a row without one, made from its content."""
    return f"row-{sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class TraceSet:
    """The spans by trace, and what was said of them."""

    traces: Mapping[str, Sequence[TracedSpan]]
    scores: Mapping[str, Sequence[GivenScore]]
    """Scores by trace, each once."""
    references: Mapping[tuple[str, str | None], str]
    """References by trace and span; a span of None is the trace."""
    strays: int
    """Scores on spans that are in no file."""
    unlike: Sequence[str]
    """Traces with two different texts for one span; the first one was taken."""

    @classmethod
    def of(cls, parts: Iterable[Part]) -> TraceSet:
        """Put the parts together. Parts of one span become one span, and repeated scores one score."""
        unlike: dict[str, None] = {}
        spans: dict[tuple[str, str], TracedSpan] = {}
        scores: list[GivenScore] = []
        references: dict[tuple[str, str | None], str] = {}
        for part in parts:
            if isinstance(part, TracedSpan):
                key = (part.trace, part.id)
                if key in spans and _is_unlike(spans[key], part):
                    unlike[part.trace] = None
                spans[key] = _merged(spans[key], part) if key in spans else part
            elif isinstance(part, GivenReference):
                references[part.trace, part.span] = part.text
            else:
                scores.append(part)
        traces: dict[str, list[TracedSpan]] = defaultdict(list)
        for span in spans.values():
            traces[span.trace].append(span)
        trace_of = {span.id: span.trace for span in spans.values()}

        def placed_in(score: GivenScore) -> str | None:
            """The trace of the score's span; a span's id may be there in several traces."""
            there = (score.trace, score.span) in spans
            return score.trace if there else trace_of.get(score.span or "", score.trace)

        placed = each_once((replace(score, trace=placed_in(score)) for score in scores), _itself)
        single = {(score.trace, score.span, score.name) for score in placed if not score.aggregate}
        kept = [score for score in placed if not (score.aggregate and (score.trace, score.span, score.name) in single)]
        known = [score for score in kept if score.trace in traces and (score.span is None or score.span in trace_of)]
        by_trace: dict[str, list[GivenScore]] = defaultdict(list)
        for score in known:
            by_trace[str(score.trace)].append(score)
        return cls(traces, by_trace, references, len(kept) - len(known), list(unlike))

    def said_of(self, span: TracedSpan, *, as_root: bool) -> list[GivenScore]:
        """The scores and comments on a span; on a trace's only root also those on the whole trace."""
        alone = as_root and len(roots_of(self.traces[span.trace])) == 1
        given = self.scores.get(span.trace, ())
        return [each for each in given if each.span == span.id or (each.span is None and alone)]

    def chosen(self, span: str | None) -> tuple[list[TracedSpan], Counter[str]]:
        """The spans that become examples, and the number of traces without one."""
        if span is None:
            return [candidate for spans in self.traces.values() for candidate in roots_of(spans)], Counter()
        taken = [candidate for spans in self.traces.values() for candidate in spans if candidate.name == span]
        if not taken:
            names = dict.fromkeys(each.name for spans in self.traces.values() for each in spans if each.name)
            raise InputError(
                f"No span is called '{span}'.{did_you_mean(span, names)} There are: {', '.join(islice(names, 12))}."
            )
        without = len(self.traces) - len({candidate.trace for candidate in taken})
        return taken, Counter({f"trace without a span '{span}'": without} if without else {})

    def outputs_elsewhere(self, taken: Sequence[TracedSpan]) -> str:
        """Names of other spans that have an output, as a hint."""
        others = (each for spans in self.traces.values() for each in spans if each not in taken)
        names = dict.fromkeys(each.name for each in others if each.name and text_of(each.output))
        return f" Spans with an output: {', '.join(islice(names, 8))}; --span NAME takes one." if names else ""


def _itself(score: GivenScore) -> object:
    """Key of a score: itself if it has an id, as it may be in a trace's file and in a file of scores; else unique."""
    return object() if score.id is None else score


def _is_unlike(one: TracedSpan, other: TracedSpan) -> bool:
    if other.piece:
        return False
    pairs = [(one.output, other.output), *([] if one.piece else [(one.input, other.input)])]
    texts = [(text_of(first), text_of(second)) for first, second in pairs if first != second]
    return any(first != second for first, second in texts if first and second)


def _merged(one: TracedSpan, other: TracedSpan) -> TracedSpan:
    asked = other.input if one.input is None else one.input
    if other.piece and isinstance(one.input, list) and other.input[0] not in one.input:
        asked = [*one.input, *other.input]
    return replace(
        one,
        input=asked,
        output=other.output if one.output is None else one.output,
        metadata={**one.metadata, **other.metadata},
        problem=one.problem or other.problem,
    )


def roots_of(spans: Sequence[TracedSpan]) -> list[TracedSpan]:
    """The spans of a trace whose parent is not there."""
    ids = {each.id for each in spans}
    return [each for each in spans if each.parent is None or each.parent not in ids or each.parent == each.id]
