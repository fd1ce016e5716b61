"""Spans by trace, with what was said of them, and which of them become examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ...prompts.errors import InputError, did_you_mean
from ...prompts.messages import text_of
from .spans import GivenReference, GivenScore, Part, TracedSpan, each_once


@dataclass(frozen=True)
class TraceSet:
    """The spans by trace, and what was said of them."""

    traces: Mapping[str, Sequence[TracedSpan]]
    scores: Mapping[str, Sequence[GivenScore]]
    """By trace, each once."""
    references: Mapping[tuple[str, str | None], str]
    """By trace and span; a span of None is the trace."""
    strays: int
    """Scores on spans that are in no file."""
    unlike: Sequence[str]
    """Traces of which a span is there twice with different texts; the first ones were taken."""

    @classmethod
    def of(cls, parts: Iterable[Part]) -> TraceSet:
        """Put the parts together; a span that is in several of them is one, and so is a score."""
        unlike: dict[str, None] = {}
        spans: dict[tuple[str, str], TracedSpan] = {}
        given: list[GivenScore] = []
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
                given.append(part)
        traces: dict[str, list[TracedSpan]] = defaultdict(list)
        for each in spans.values():
            traces[each.trace].append(each)
        trace_of = {each.id: each.trace for each in spans.values()}

        def placed_in(score: GivenScore) -> str | None:
            """The trace of its span; a span's id may be there in several traces."""
            there = (score.trace, score.span) in spans
            return score.trace if there else trace_of.get(score.span or "", score.trace)

        placed = each_once((replace(each, trace=placed_in(each)) for each in given), _itself)
        single = {(each.trace, each.span, each.name) for each in placed if not each.aggregate}
        kept = [each for each in placed if not (each.aggregate and (each.trace, each.span, each.name) in single)]
        known = [each for each in kept if each.trace in traces and (each.span is None or each.span in trace_of)]
        by_trace: dict[str, list[GivenScore]] = defaultdict(list)
        for score in known:
            by_trace[str(score.trace)].append(score)
        return cls(traces, by_trace, references, len(kept) - len(known), list(unlike))

    def said_of(self, span: TracedSpan, *, as_root: bool) -> list[GivenScore]:
        """What was said of a span; of a trace's only root also what was said of the whole trace."""
        alone = as_root and len(roots_of(self.traces[span.trace])) == 1
        given = self.scores.get(span.trace, ())
        return [each for each in given if each.span == span.id or (each.span is None and alone)]

    def chosen(self, span: str | None) -> tuple[list[TracedSpan], Counter[str]]:
        """The spans that become examples, and how many traces have none."""
        if span is None:
            return [each for spans in self.traces.values() for each in roots_of(spans)], Counter()
        taken = [each for spans in self.traces.values() for each in spans if each.name == span]
        if not taken:
            names = dict.fromkeys(each.name for spans in self.traces.values() for each in spans if each.name)
            raise InputError(
                f"No span is called '{span}'.{did_you_mean(span, names)} There are: {', '.join(islice(names, 12))}."
            )
        without = len(self.traces) - len({each.trace for each in taken})
        return taken, Counter({f"trace without a span '{span}'": without} if without else {})

    def outputs_elsewhere(self, taken: Sequence[TracedSpan]) -> str:
        """Names of other spans that have an output, as a hint."""
        others = (each for spans in self.traces.values() for each in spans if each not in taken)
        names = dict.fromkeys(each.name for each in others if each.name and text_of(each.output))
        return f" Spans with an output: {', '.join(islice(names, 8))}; --span NAME takes one." if names else ""


def _itself(score: GivenScore) -> object:
    """One with a name of its own may be in a trace's file and in one of scores; any other is like no other."""
    return object() if score.id is None else score


def _is_unlike(one: TracedSpan, other: TracedSpan) -> bool:
    if other.piece:
        return False
    pairs = [(one.output, other.output), *([] if one.piece else [(one.input, other.input)])]
    texts = [(text_of(first), text_of(second)) for first, second in pairs if first != second]
    return any(first != second for first, second in texts if first and second)


def _merged(one: TracedSpan, other: TracedSpan) -> TracedSpan:
    both = (
        other.piece
        and isinstance(one.input, list)
        and isinstance(other.input, list)
        and other.input[0] not in one.input
    )
    return replace(
        one,
        input=[*one.input, *other.input] if both else other.input if one.input is None else one.input,
        output=other.output if one.output is None else one.output,
        metadata={**one.metadata, **other.metadata},
        problem=one.problem or other.problem,
    )


def roots_of(spans: Sequence[TracedSpan]) -> list[TracedSpan]:
    """The spans of a trace whose parent is not there."""
    ids = {each.id for each in spans}
    return [each for each in spans if each.parent is None or each.parent not in ids or each.parent == each.id]
