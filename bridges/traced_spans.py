"""Spans of traces, scores by people or judges, and the choice of spans for examples. Shared by all formats."""

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
    """One step of a trace; the root span covers the whole trace."""

    id: str
    trace: str
    parent: str | None
    name: str
    input: Any = None
    """Input as it was logged: a text, messages, or any JSON."""
    output: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """Error with which the span ended."""
    piece: bool = False
    """Whether the input is a single message of a conversation, exported as a row of its own."""


@dataclass(frozen=True)
class GivenScore:
    """A score, label or comment on a span, or on a whole trace."""

    name: str | None
    """Quality that the score rates; None for a general comment."""
    value: bool | float | str | None
    comment: str | None
    by: By
    """Who gave the score; ``unknown`` if the format does not say."""
    trace: str | None
    span: str | None
    """Span that is scored; None for the whole trace."""
    aggregate: bool = False
    """Whether the value is a mean, which counts only if the single scores are missing."""
    id: str | None = None
    """The score's own id, if the format has one."""


@dataclass(frozen=True)
class GivenReference:
    """A reference answer by people for a trace, or for one of its spans."""

    trace: str
    text: str
    span: str | None = None


Item = TypeVar("Item")
Part = TracedSpan | GivenScore | GivenReference
Row = Mapping[str, Any]


def loaded(value: Any, *, texts: bool = False) -> Any:
    """Parse a text that is JSON or a Python literal (as in a data frame's CSV); return anything else unchanged.
    ``texts``: whether to parse JSON strings, numbers, true, false and null as well."""
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
    """Return a value as a number, also if it is written as text; None if it is no number."""
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
    """Return the value if it can be a score or a label, else None."""
    return value if isinstance(value, (bool, int, float, str)) else None


def label_or_score(label: Any, score: Any) -> bool | float | str | None:
    """Return the label if its meaning is known, else the score, else the label."""
    if isinstance(label, str) and label.strip().casefold() in MEANINGS:
        return label
    found = number(score)
    return (scalar(label) if label != "" else None) if found is None else found


def given_by(kind: str) -> By:
    """Return who gave a score, for formats that say ``HUMAN`` or name a kind of program."""
    return "people" if kind == "HUMAN" else "model" if kind else "unknown"


def text_or_none(value: Any) -> str | None:
    """Return an id or a remark as text; None if it is empty."""
    return str(value) if value not in (None, "") else None


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a value, or the JSON in it, as an object; an empty object if it is no object."""
    value = loaded(value)
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list, or in a JSON list; an empty list for any other value."""
    value = loaded(value)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def counted(number: int, what: str) -> str:
    """Return ``1 trace``, ``2 traces``. Of several words, the first gets the plural."""
    first, blank, rest = what.partition(" ")
    return f"{count(number, first)}{blank}{rest}"


def each_once(items: Iterable[Item], key: Callable[[Item], object]) -> list[Item]:
    """Return the first item of each key, in order."""
    by_key: dict[object, Item] = {}
    for item in items:
        by_key.setdefault(key(item), item)
    return list(by_key.values())


def short(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without empty values."""
    return {str(name): value for name, value in metadata.items() if value not in (None, "", [], {})}


DEFINITIONS = ("tools", "functions")
"""Fields of a request to a model that define its tools."""


def named(row: Any) -> str:
    """Return a name for a row without one, made from a hash of its content."""
    return f"row-{sha256(json.dumps(row, sort_keys=True, default=str).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class TraceSet:
    """Spans, scores and references by trace."""

    traces: Mapping[str, Sequence[TracedSpan]]
    scores: Mapping[str, Sequence[GivenScore]]
    """Scores by trace, without repetitions."""
    references: Mapping[tuple[str, str | None], str]
    """References by trace and span; a span of None stands for the trace."""
    strays: int
    """Number of scores on spans that are in no file."""
    unlike: Sequence[str]
    """Traces with two different texts for one span; the first text is used."""

    @classmethod
    def of(cls, parts: Iterable[Part]) -> TraceSet:
        """Combine the parts: parts of one span into one span, and repeated scores into one score."""
        unlike_traces: dict[str, None] = {}
        spans: dict[tuple[str, str], TracedSpan] = {}
        scores: list[GivenScore] = []
        references: dict[tuple[str, str | None], str] = {}
        for part in parts:
            if isinstance(part, TracedSpan):
                key = (part.trace, part.id)
                if key in spans and _is_unlike(spans[key], part):
                    unlike_traces[part.trace] = None
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
            """Return the trace of the score's span; several traces may have a span with this id."""
            there = (score.trace, score.span) in spans
            return score.trace if there else trace_of.get(score.span or "", score.trace)

        placed = each_once((replace(score, trace=placed_in(score)) for score in scores), _itself)
        single = {(score.trace, score.span, score.name) for score in placed if not score.aggregate}
        kept = [score for score in placed if not (score.aggregate and (score.trace, score.span, score.name) in single)]
        known = [score for score in kept if score.trace in traces and (score.span is None or score.span in trace_of)]
        by_trace: dict[str, list[GivenScore]] = defaultdict(list)
        for score in known:
            by_trace[str(score.trace)].append(score)
        return cls(traces, by_trace, references, len(kept) - len(known), list(unlike_traces))

    def said_of(self, span: TracedSpan, *, as_root: bool) -> list[GivenScore]:
        """Return the scores and comments on a span; for a trace's only root also those on the whole trace."""
        alone = as_root and len(roots_of(self.traces[span.trace])) == 1
        given = self.scores.get(span.trace, ())
        return [each for each in given if each.span == span.id or (each.span is None and alone)]

    def chosen(self, span: str | None) -> tuple[list[TracedSpan], Counter[str]]:
        """Return the spans that become examples, and the number of traces without one. Raises InputError for an unknown
        name."""
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
        """Return a hint with the names of other spans that have an output."""
        others = (each for spans in self.traces.values() for each in spans if each not in taken)
        names = dict.fromkeys(each.name for each in others if each.name and text_of(each.output))
        return f" Spans with an output: {', '.join(islice(names, 8))}; --span NAME takes one." if names else ""


def _itself(score: GivenScore) -> object:
    """Return the key by which repeated scores are found. Only a score with an id can be a repetition: it may be in two
    files."""
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
    """Return the spans of a trace whose parent is not among them."""
    ids = {each.id for each in spans}
    return [each for each in spans if each.parent is None or each.parent not in ids or each.parent == each.id]
