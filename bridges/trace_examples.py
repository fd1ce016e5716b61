"""Import of exported traces as examples, from each trace's root or its spans with a name, with people's scores."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from ..prompts.conversations import chat
from ..prompts.errors import InputError, did_you_mean
from ..prompts.field_map import TEXTS, FieldMap, check_field_map, columns_of, put
from ..prompts.formatting import names_text
from ..prompts.human_feedback import MEANINGS
from ..prompts.json_documents import at
from ..prompts.mapping.published import FORMS
from ..prompts.messages import StructuredText, as_text, text_of
from ..prompts.tables import encoding_of, is_numbered_by_row, read_rows, suffix_of
from .trace_conventions import openai_evals_parts, openai_parts, openinference_parts
from .trace_platforms import langfuse_parts, langsmith_parts, mlflow_parts
from .traced_spans import (
    DEFINITIONS,
    GivenScore,
    Part,
    Row,
    TracedSpan,
    TraceSet,
    counted,
    each_once,
    short,
)

FORMATS: dict[str, Callable[[Row], list[Part] | None]] = {
    "langfuse": langfuse_parts,
    "langsmith": langsmith_parts,
    "openinference": openinference_parts,
    "mlflow": mlflow_parts,
    "openai": openai_parts,
    "openai-evals": openai_evals_parts,
}
"""Readers of a row, by format; they return None for a row of another format."""
LISTS = ("data", "traces", "runs", "spans", "items", "feedback", "annotations")
"""Fields of an API's answer that may hold the rows."""


TUNED = frozenset({"id", "messages", "metadata", "tags", "tools", "functions", "parallel_tool_calls"})
"""Fields of fine-tuning data. Any further field beside ``messages`` means that the file is a table."""


@dataclass(frozen=True)
class ImportedTraces:
    """Imported examples, with notes on what was left out."""

    rows: tuple[dict[str, Any], ...]
    """Rows of an examples file."""
    format: str
    notes: tuple[str, ...]
    """Sentences on what was read, what was left out and why."""

    def to_jsonl(self) -> str:
        """Return the content of an examples file."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)


def import_traces(
    files: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    span: str | None = None,
    scores: Sequence[str] = (),
    fields: FieldMap | None = None,
) -> ImportedTraces:
    """Read traces that another tool exported.

    Args:
        files: One file or several; spans may be in one file and their scores in another.
        source: One of ``FORMATS``; None detects the format.
        span: Take the spans with this name instead of each trace's root.
        scores: Names of scores that people gave, although the format names a program or nobody.
        fields: Map of our field to a path in the span, in place of its whole input or output, e.g. ``output.answer``,
            ``input.0.content`` or ``metadata.rating``.

    Raises:
        InputError: A file cannot be read, its format is unknown or ambiguous, no span has that name, or the files
            have no example.
        MissingExtraError: Parquet and Excel need packages of the extra ``files``.
    """
    fields = fields or {}
    check_field_map(fields)
    if source is not None and source not in FORMATS:
        raise InputError(f"There is no format '{source}'.{did_you_mean(source, FORMATS)} Known: {', '.join(FORMATS)}.")
    paths = [Path(file) for file in ([files] if isinstance(files, (str, Path)) else files)]
    rows = each_once((placed for path in paths for placed in _rows_of_file(path)), _content)
    if not rows:
        raise InputError(f"{', '.join(map(str, paths))}: there is nothing in it.")
    format_of, parts, strange = _read_parts(rows, source)
    traces = TraceSet.of(parts)
    known = list(dict.fromkeys(score.name for given in traces.scores.values() for score in given if score.name))
    for name in scores:
        if name not in known:
            raise InputError(
                f"--score {name}: there is no such score.{did_you_mean(name, known)} There are: "
                f"{', '.join(known) or 'none'}."
            )
    taken, left_out = traces.chosen(span)
    examples: list[dict[str, Any]] = []
    used: list[GivenScore] = []
    span_counts = Counter(taken_span.trace for taken_span in taken)
    for taken_span in taken:
        all_ratings = traces.said_of(taken_span, as_root=span is None)
        ratings = [rating for rating in all_ratings if _is_peoples(rating, scores)]
        of_whole = traces.references.get((taken_span.trace, None)) if span is None else None
        reference = traces.references.get((taken_span.trace, taken_span.id), of_whole)
        name = taken_span.trace if span_counts[taken_span.trace] == 1 else f"{taken_span.trace}/{taken_span.id}"
        row = _row(name, taken_span, ratings, fields, reference)
        if isinstance(row, str):
            left_out[f"{'trace' if span is None else 'span'} {row}"] += 1
        else:
            examples.append(row)
            used += ratings
    notes = [f"{counted(len(traces.traces), f'trace of {format_of}')}: {counted(len(examples), 'example')}."]
    notes += [f"Left out: {counted(count, reason)}." for reason, count in left_out.items()]
    notes += strange
    if traces.unlike:
        unlike = f"{counted(len(traces.unlike), 'trace')} ({names_text(traces.unlike)})"
        notes.append(f"Found twice with different texts; the first text was taken: {unlike}.")
    if not examples:
        raise InputError(f"{paths[0]}: there is no example in it. {' '.join(notes)}{traces.outputs_elsewhere(taken)}")
    notes += [*_said_of_scores(traces, scores, used), *_said_of_labels(examples)]
    return ImportedTraces(tuple(examples), format_of, tuple(notes))


def _content(placed: tuple[str, Mapping[str, Any]]) -> bytes:
    """Return a hash of a row, to recognise rows that two overlapping exports share."""
    return sha256(json.dumps(placed[1], default=str).encode()).digest()


def _is_peoples(score: GivenScore, scores: Sequence[str]) -> bool:
    return score.by == "people" or score.name in scores


def _row(
    name: str, span: TracedSpan, given: Sequence[GivenScore], fields: FieldMap, reference: str | None
) -> dict[str, Any] | str:
    """Return a span as a row of an examples file, or the reason why it is left out."""
    row = {"id": name, **_mapped(span, fields)}
    for field in ("input", "output"):
        if field not in row:
            return f"with an error instead of an {field}" if span.problem else f"without an {field}"
    if reference is not None:
        row.setdefault("reference", reference)
    ratings: dict[str, list[Any]] = defaultdict(list)
    for about, value in row.get("human", {}).items():
        ratings[about] += value if isinstance(value, (list, tuple)) else [value]
    comments: dict[str | None, list[str]] = defaultdict(list)
    for score in given:
        if score.name is not None and score.value is not None:
            ratings[score.name].append(score.value)
        if score.comment is not None:
            comments[score.name].append(score.comment)
    if ratings:
        row["human"] = {about: _one(values) for about, values in ratings.items()}
    if comments:
        mapped, whole = [row["comment"]] if "comment" in row else [], comments.pop(None, [])
        of_others = [{about: _one(texts) for about, texts in comments.items()}] if comments else []
        row["comment"] = _one([*mapped, *whole, *of_others])
    asked = span.input if isinstance(span.input, Mapping) else {}
    tools = {name: asked[name] for name in DEFINITIONS if isinstance(asked.get(name), list)}  # logged with the messages
    metadata = short({**tools, **span.metadata, "span": span.name, **row.pop("metadata", {})})
    return row | ({"metadata": metadata} if metadata else {})


def _mapped(span: TracedSpan, fields: FieldMap) -> dict[str, Any]:
    """Return the fields of a span that are not empty. Raises InputError if ``human`` or ``metadata`` is mapped to a
    value that is no object."""
    whole = {"input": span.input, "output": span.output, "metadata": dict(span.metadata)}
    row: dict[str, Any] = {}
    for field, places in {"input": "input", "output": "output", **fields}.items():
        values = [
            value for path in columns_of(field, places, ()) if (value := at(whole, path)) not in (None, "", [], {})
        ]
        if not values:
            continue
        if field in TEXTS:
            text = str(values[0]) if isinstance(values[0], (int, float)) else text_of(values[0])
            row |= {} if text is None else {field: _conversation_or(text, values[0])}
        elif field in ("human", "metadata") and not isinstance(values[0], Mapping):
            raise InputError(
                f"Field map: '{field}' takes an object, and in trace {span.trace} '{places}' is none; {field}.NAME "
                "takes one value."
            )
        else:
            put(row, field, values, several=len(values) > 1)
    return row


def _conversation_or(text: str, value: Any) -> Any:
    """Return the messages of a value if it has several, or images or tool calls, and they give the same text; else the
    text."""
    raw, sent = chat.raw_messages(value), chat.chat_of(StructuredText(text, value))
    if len(sent) < 2 and not any("tool_calls" in each or isinstance(each["content"], list) for each in sent):
        return text
    return next((each for each in (sent, raw) if as_text(each) == text), text)


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _said_of_scores(found: TraceSet, scores: Sequence[str], used: Sequence[GivenScore]) -> Iterator[str]:
    """Yield sentences on the scores that were taken and those that were left out, with reasons."""
    given_scores = [score for given in found.scores.values() for score in given]
    rated, remarks = (sum(getattr(score, part) is not None for score in used) for part in ("value", "comment"))
    yield f"Of people: {counted(rated, 'score')}, {counted(remarks, 'comment')}."
    for by, reason in (("unknown", "do not say who gave them"), ("model", "are a program's")):
        left = Counter(score.name for score in given_scores if score.by == by and score.name not in scores)
        if left:
            few = ", ".join(f"{name} ({count})" for name, count in left.most_common(8))
            yield f"Left out: scores that {reason}: {few}; --score NAME takes people's scores."
    there = {id(score) for score in used}
    beside = [score for score in given_scores if _is_peoples(score, scores) and id(score) not in there]
    for where, which in (("a whole trace", True), ("other spans, or spans that were left out", False)):
        if count := sum((score.span is None) == which for score in beside):
            yield f"Left out: {count} of people's scores and comments, on {where}."
    if found.strays:
        yield f"Left out: {counted(found.strays, 'score')} on spans that are in no file."


def _said_of_labels(examples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield sentences on unknown labels, which the user of the file has to explain."""
    words: dict[str, set[str]] = defaultdict(set)
    for row in examples:
        for name, value in row.get("human", {}).items():
            given = value if isinstance(value, list) else [value]
            words[name] |= {word for word in given if isinstance(word, str) and word.strip().casefold() not in MEANINGS}
    for name, unknown in words.items():
        if unknown:
            few = ", ".join(f"'{word}'" for word in sorted(unknown)[:8])
            yield f"Labels of {name} to be explained where the file is used, with --labels good=WORD,bad=WORD: {few}."


def _rows_of_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a table, a JSONL file or one JSON document, each with its place. Raises InputError if the file
    cannot be read."""
    if suffix_of(path) in (".json", ".jsonl", ".ndjson") and (whole := _document(path)) is not None:
        for number, item in enumerate(_unwrapped(whole), 1):
            if not isinstance(item, Mapping):
                raise InputError(f"{path}, row {number}: a JSON object is needed, not {type(item).__name__}.")
            yield f"{path}, row {number}", _plain(item)
        return
    unit = "row" if is_numbered_by_row(path) else "line"
    for number, row in read_rows(path, as_text=()):
        for item in _unwrapped(row):
            yield f"{path}, {unit} {number}", _plain(item)


def _plain(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace NaN and infinite numbers by None, since data frames write NaN for nothing; decode bytes as text."""
    holders: list[Any] = [row]
    while holders:
        holder = holders.pop()
        for place, value in [*(holder.items() if isinstance(holder, dict) else enumerate(holder))]:
            if isinstance(value, (dict, list)):
                holders.append(value)
            elif isinstance(value, float) and not isfinite(value):
                holder[place] = None
            elif isinstance(value, bytes):
                holder[place] = value.decode("utf-8", "backslashreplace")
    return row


def _document(path: Path) -> Any:
    """Return the one JSON document in a file; None if the file has lines of JSON, or cannot be read."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read().decode(encoding_of(file)))
    except (OSError, ValueError, RecursionError):
        return None


def _unwrapped(value: Any) -> list[Any]:
    """Return the rows in a list, or in an API's answer."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "id" not in value:
        name = next((each for each in LISTS if isinstance(value.get(each), list)), None)
        if name is not None and not any(_knows(each, value) for each in FORMATS.values()):  # a row may have spans, too
            return list(value[name])
    return [value]


def _read_parts(rows: list[tuple[str, Mapping[str, Any]]], source: str | None) -> tuple[str, list[Part], list[str]]:
    """Return the format, the parts of all rows, and a message about rows of another format."""
    if source is None:
        source = _detected(rows)
    read = FORMATS[source]
    parts: list[Part] = []
    strange = []
    for location, row in rows:
        try:
            row_parts = read(row)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{location}: not as {source} exports it ({type(error).__name__}: {error}).") from None
        if row_parts is None:
            strange.append(location)
        else:
            parts += row_parts
    if not parts:
        raise InputError(f"{rows[0][0]}: not as {source} exports it; it has: {', '.join(map(str, rows[0][1]))}.")
    said = [f"Left out: {counted(len(strange), 'row')} not of {source} ({names_text(strange)})."] if strange else []
    return source, parts, said


def are_traces(files: Sequence[Path], source: str | None = None) -> bool:
    """Whether files are read as traces: a format knows their first rows, or ``source`` names a format.

    Rows with messages and further columns are a table. Read as traces they would lose their scores and comments.
    """
    if source is not None and not (source in FORMATS and source in {form.name for form in FORMS}):
        return source in FORMATS
    try:
        first = [next(_rows_of_file(path))[1] for path in files]
    except (InputError, StopIteration):
        return False
    formats = FORMATS if source is None else {source: FORMATS[source]}
    known = [name for name, reader in formats.items() if all(_knows(reader, row) for row in first)]
    is_table = any("messages" in row and row.keys() - TUNED for row in first)
    return bool(known) and (known != ["openai"] or source is not None or not is_table)


def _detected(rows: list[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the format that knows the first row of every file. Raises InputError if no format or several do."""
    files = {location.rpartition(", ")[0]: row for location, row in reversed(rows)}
    possible: list[str] = [name for name, each in FORMATS.items() if all(_knows(each, row) for row in files.values())]
    if len(possible) == 1:
        return possible[0]
    location, row = rows[0]
    if not possible:
        raise InputError(
            f"{location}: no export of {', '.join(FORMATS)} looks like this (it has: {', '.join(map(str, row))}). Name "
            "its format with --from; a table with a column for each field needs no import: askance evaluate FILE "
            "--field ..."
        )
    raise InputError(f"{location}: this may be of {' or '.join(possible)}; say which with --from.")


def _knows(read: Callable[[Row], list[Part] | None], row: Mapping[str, Any]) -> bool:
    try:
        return read(row) is not None
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
