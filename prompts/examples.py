"""Examples that a judge scores, with people's own scores."""

from __future__ import annotations

import logging
import marshal
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Annotated, Any, overload

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_serializer,
    model_validator,
)

from .checklist import Checklist
from .conversations.record import IN_MEMORY, SpilledBytes, Text, packed, unpacked
from .errors import InputError, did_you_mean
from .field_map import (
    FIELDS,
    RATER,
    TEXTS,
    FieldMap,
    by_output,
    check_field_map,
    columns_of,
    id_of_texts,
    is_long,
    missing,
    numbered_id,
    renamed,
)
from .formatting import count, names_text
from .human_feedback import (
    WHOLE,
    Comment,
    HumanValues,
    Labels,
    contradictions_said,
    dump_comments,
    known_ratings,
    labelled,
    long_comments_said,
    rating_of,
    read_comments,
    refuse_mixed_labels,
)
from .json_documents import at, looked_at
from .mapping.table import proposes_mapping
from .messages import StructuredText
from .raters import UNNAMED, by_name, by_place, unnamed_said
from .rows import column, source_rows, validate_row
from .tables import plain, source_name
from .text import sendable

logger = logging.getLogger(__name__)

_PLAIN = frozenset({str, int, bool, type(None)})


def _label_or_number(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, bool) else check(value)


Rating = Annotated[float, WrapValidator(_label_or_number)]
"""A rating: a number, or a label. ``True`` and ``False`` are not turned into numbers."""
Ratings = tuple[Rating | None, ...]
Sendable = Annotated[str, AfterValidator(sendable)]


class Example(BaseModel):
    """One item: input x, output y and, if people rated it, their scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: Sendable = Field(min_length=1)
    """Unique within a file."""
    input: Text
    """The generator's input: a document, a dialogue, an instruction."""
    output: Text | None = None
    """The text that is judged; None as long as no generator has written it."""
    context: Text | None = None
    reference: Text | None = None
    system: Sendable | None = None
    """The system that made the output, for system-level correlations."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    human: dict[str, Ratings] = Field(default_factory=dict)
    """Ratings by dimension or question id, one per rater; None for a rater who gave none. Numbers are on the scale of
    the data. Labels are ``True`` and ``False``, which count as 1 and 0."""
    raters: tuple[Sendable, ...] = ()
    """Names of the raters, one for each place in the lists of ``human``: an empty text for a rater without a name, an
    empty tuple if no rater has one. Files hold an object instead: name to ``human`` and ``comment``."""
    comment: tuple[Comment, ...] = ()
    """People's remarks on the output."""

    @property
    def has_more_than_output(self) -> bool:
        """Whether the example has an input, a context or a reference that is not blank."""
        return any(text and text.strip() for text in (self.input, self.context, self.reference))

    @field_validator("metadata", mode="before")
    @classmethod
    def _as_in_json(cls, value: Any) -> Any:
        if not isinstance(value, dict) or all(type(each) in _PLAIN for each in value.values()):
            return value  # most files' are plain already, and there may be many
        return plain(value)

    @field_validator("human", mode="before")
    @classmethod
    def _ratings(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(
                "an object from dimension to number, label or list of these is needed (a column of scores or labels: "
                "--field human.overall=human)"
            )
        ratings = {}
        for dimension, score in value.items():
            if score is None:
                continue
            scores = score if isinstance(score, (list, tuple)) else [score]
            if not scores:
                raise ValueError(f"'{dimension}' has an empty list of ratings")
            read = tuple(None if each is None else rating_of(each, str(dimension)) for each in scores)
            if len(read) > read.count(None):
                ratings[dimension] = read
        return ratings

    @field_validator("comment", mode="before")
    @classmethod
    def _comments(cls, value: Any) -> tuple[Comment, ...]:
        return read_comments(value)

    @model_serializer(mode="wrap")
    def _as_in_files(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        row: dict[str, Any] = dump(self)
        originals = {"human": self.human, "comment": dump_comments(self.comment)}  # as numbers, labels would be lost
        if self.raters:
            originals = by_name(self.raters, self.human, self.comment)
            row = {name: each for name, each in row.items() if name not in ("human", "comment") or name in originals}
        originals |= {name: text.original for name in _TEXTS if isinstance(text := getattr(self, name), StructuredText)}
        return {name: originals.get(name, value) for name, value in row.items()}

    @model_validator(mode="before")
    @classmethod
    def _unknown_fields_are_metadata(cls, value: Any) -> Any:
        """Move columns that are not ours into ``metadata``, where nothing reads them by accident."""
        if not isinstance(value, dict):
            return value
        raters = value.get("raters")
        if isinstance(raters, Mapping):
            value = by_place(value)
        elif not isinstance(raters, (list, tuple, type(None))):
            raise ValueError(
                "raters: an object from each rater's name to 'human' and 'comment' is needed (a column that is "
                "something else: --field metadata.raters=raters)"
            )
        extra = {name: value[name] for name in value if name not in FIELDS}
        if not extra:
            return value
        known = {name: value[name] for name in value if name in FIELDS}
        metadata = known.get("metadata") or {}
        return known | {"metadata": extra | metadata} if isinstance(metadata, dict) else value

    @model_validator(mode="after")
    def _every_place_has_its_rater(self) -> Example:
        for name, ratings in self.human.items() if self.raters else ():
            if len(ratings) != len(self.raters):
                raise ValueError(f"raters: there are {len(self.raters)}, and '{name}' has {len(ratings)} ratings")
        if len(set(self.raters)) + self.raters.count(UNNAMED) - (UNNAMED in self.raters) < len(self.raters):
            raise ValueError("raters: a name stands there twice")
        return self

    def human_score(self, dimension: str) -> float | None:
        """Return the mean rating on one dimension, on the scale of the data; None if nobody rated it."""
        return mean_rating(self.human, dimension)

    def human_answer(self, question: str) -> float | None:
        """Return people's mean answer to the question with this id, 1 for yes and 0 for no; None if nobody answered."""
        return self.human_score(question)


def mean_rating(human: Mapping[str, Ratings], dimension: str) -> float | None:
    """Return the mean of an example's ratings on one dimension, never beyond the ratings; None without any."""
    ratings = known_ratings(human.get(dimension, ()))
    # rounding could carry the mean beyond the ratings
    return min(max(sum(ratings) / len(ratings), min(ratings)), max(ratings)) if ratings else None


_FIELDS = tuple(Example.model_fields)
_TEXTS, _OTHERS = _FIELDS[1:5], _FIELDS[5:-1]
"""The long fields, which are rarely read, and the short fields. The id and the comments are stored apart."""
_texts, _others = itemgetter(*_TEXTS), itemgetter(*_OTHERS)
_PLACES = {field: place for place, field in enumerate(_OTHERS)}
_HEAD = Struct("<BQI")
"""Header before an example's short fields: number of the set of given fields, start and length of its texts."""
_set = object.__setattr__


class ExampleTable(Sequence[Example]):
    """Examples packed as bytes: about 100 bytes each in memory, with most texts of a large table in a temporary file.
    An :class:`Example` object takes 700 to 1,400 bytes.

    Reads like a list: each example is built on access. ``column`` reads one field of all examples without building
    them.
    """

    def __init__(self, examples: Iterable[Example] = ()) -> None:
        self._ids: list[str] = []
        self._data = bytearray()
        self._texts = SpilledBytes(IN_MEMORY)
        self._starts = array("q")
        self._whole: list[Example] = []
        self._given: list[set[str]] = []
        self.without_output = 0
        """Number of rows of the source that were left out because they have no output."""
        self.has_structure = False
        """Whether any text was made of messages, a list or an object."""
        for example in examples:
            self.append(example)

    def append(self, example: Example) -> None:
        """Add an example. An example with comments, or with metadata that is not JSON, is kept as an object."""
        if (given := example.model_fields_set) not in self._given:
            self._given.append(given)
        self._ids.append(example.id)
        fields = vars(example)
        packed_texts = packed(_texts(fields))
        self.has_structure |= type(packed_texts) is list
        try:
            if example.comment or type(example) is not Example:
                raise ValueError  # kept as an object, as is one that marshal refuses
            other_fields, texts = marshal.dumps(_others(fields)), marshal.dumps(packed_texts)
        except ValueError:
            self._whole.append(example)
            self._starts.append(-len(self._whole))
        else:
            self._starts.append(len(self._data))
            self._data += _HEAD.pack(self._given.index(given), self._texts.append(texts), len(texts)) + other_fields

    def only(self, places: Iterable[int]) -> ExampleTable:
        """Return a table of the examples at these places, in this order."""
        part = copy(self)
        part._ids, part._starts = [], array("q")
        for place in places:
            part._ids.append(self._ids[place])
            part._starts.append(self._starts[place])
        return part

    def column(self, field: str) -> Iterator[Any]:
        """Return the values of a field, one per example."""
        if field == "id":
            return iter(self._ids)
        read, place = (self._long, _TEXTS.index(field)) if field in _TEXTS else (self._short, _PLACES.get(field))
        return (
            getattr(self._whole[-1 - start], field) if start < 0 else () if place is None else read(start)[place]
            for start in self._starts
        )

    def _short(self, start: int) -> tuple[Any, ...]:
        others: tuple[Any, ...] = marshal.loads(memoryview(self._data)[start + _HEAD.size :])
        return others

    def _long(self, start: int) -> tuple[str | None, ...]:
        _, place, length = _HEAD.unpack_from(self._data, start)
        return unpacked(marshal.loads(self._texts.read(place, length)))

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> ExampleTable: ...
    def __getitem__(self, place: int | slice) -> Example | ExampleTable:
        if isinstance(place, slice):
            return self.only(range(*place.indices(len(self))))
        if (start := self._starts[place]) < 0:
            return self._whole[-1 - start]
        given, *_ = _HEAD.unpack_from(self._data, start)
        values = (self._ids[place], *self._long(start), *self._short(start), ())
        example = Example.__new__(Example)  # as model_construct does, which takes three times as long
        _set(example, "__dict__", dict(zip(_FIELDS, values, strict=True)))
        _set(example, "__pydantic_fields_set__", self._given[given])
        _set(example, "__pydantic_extra__", None)
        _set(example, "__pydantic_private__", None)
        return example

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} examples>"


@proposes_mapping()
def load_examples(
    source: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    fields: FieldMap | None = None,
    limit: int | None = None,
    need_output: bool = True,
    labels: Labels | None = None,
    label_scale: Sequence[str] | None = None,
    remarks: bool = True,
) -> ExampleTable:
    """Load examples from a file, the Hugging Face hub, a data frame or any iterable of mappings.

    Rows with an empty output are left out, and a warning says how many, unless ``need_output`` is False; a row without
    the field is an error. A row without an id gets a hash of its texts as its id. If there is a column ``rater`` beside
    ``id``, each row holds the ratings and comments of one rater, and the rows with the same id form one example.

    Args:
        source: A path (JSONL, CSV, a JSON list, Excel, Parquet), ``hf:OWNER/NAME[/CONFIG]:SPLIT`` for the Hugging Face
            hub, a pandas or polars data frame, or rows (a ``datasets.Dataset`` iterates as such).
        fields: Renames columns: our name to the column's name, e.g. ``{"output": "summary"}``. ``human.D`` names the
            column of scores on dimension ``D``, and ``comment.D`` the column of comments on it. Both may name several
            columns, one per rater: ``{"human.overall": ["anna", "ben"]}`` or ``"anna,ben"``. If only one dimension has
            several columns, their names become the raters' names. ``rater`` names the column of raters, if each row is
            one rater's.
        limit: Keep only the first ``limit`` examples.
        need_output: Whether every example must have an output to judge.
        labels: More words for people's labels, e.g. ``{"good": ["fine"], "bad": ["poor"]}``; a word under ``none``
            counts as no label.
        label_scale: Words from worst to best, which count as 1, 2 and so on.
        remarks: Whether to log warnings about the file's form, left-out rows, labels that contradict each other, and
            very long comments.

    Raises:
        InputError: Names the file, line and field of the first problem.
        MissingExtraError: A package that reads such a file is not installed.
    """
    fields, human = fields or {}, HumanValues(labels, label_scale)
    check_field_map(fields, (*FIELDS, RATER))
    name = source_name(source) if isinstance(source, (str, Path)) else "the data"
    examples = ExampleTable()
    seen: dict[str, str] = {}
    unnamed: Counter[str] = Counter()
    empty: list[str] = []
    filled: set[str] = set()
    has_examples = False
    texts = {name for field in TEXTS for name in columns_of(field, fields.get(field, field), ())}
    rows = source_rows(source, texts, say=logger.warning if remarks else None)
    human.texts_in_json, rows = looked_at(rows, [str(fields.get(each, each)) for each in ("input", "output")])
    if human.texts_in_json and remarks:
        logger.warning("%s: the texts are written as JSON within the file; they are read without its marks.", name)
    for row_place, row in _one_an_output(rows, fields, human):
        if not isinstance(row, (Example, Mapping)):
            raise InputError(f"{row_place}: a mapping from field to value is needed, not {type(row).__name__}.")
        example = row if isinstance(row, Example) else _example(row, fields, human, row_place, unnamed)
        has_examples |= isinstance(row, Example)
        given = row.metadata if isinstance(row, Example) else row
        filled |= {str(name) for name, value in given.items() if value is not None}
        mapped = (column for ours, each in fields.items() for column in columns_of(ours, each, given))
        filled |= {column for column in mapped if column not in filled and at(given, column) is not None}
        if need_output and example.output is None:
            [wanted] = columns_of("output", fields.get("output", "output"), given)
            if wanted not in given and not _is_empty_path(given, wanted):
                raise InputError(f"{row_place}: {missing('output', given, fields)}")
            empty.append(row_place)
            continue
        if example.id in seen:
            raise InputError(
                f"{row_place}: the id '{example.id}' was used before, in {seen[example.id]}. Where it is that of a "
                f"document or conversation: --field metadata.document={fields.get('id', 'id')}; where each row is what "
                "one rater said: --field rater=COLUMN"
            )
        if example.comment and example.output is None:
            raise InputError(
                f"{row_place}: field 'comment': there is no output that it could be about. Give the 'output', or leave "
                "out the comment."
            )
        seen[example.id] = row_place
        examples.append(example)
        if len(examples) == limit:
            break
    if not examples:
        raise InputError(f"{name}: {'no row has an output' if empty else 'there are no examples in it'}.")
    if not has_examples:
        _check_all_were_there(name, fields, filled)
    examples = _with_numbers_turned(examples, human)
    refuse_mixed_labels(zip(seen.values(), examples.column("human"), strict=True))
    examples.without_output = len(empty)
    if remarks:
        _say_what_was_missing(name, unnamed, human)
        _remark(name, examples, empty)
    return examples


def _one_an_output(rows: Iterator[tuple[str, Any]], fields: FieldMap, human: HumanValues) -> Iterator[tuple[str, Any]]:
    """Yield the rows; for a long table of ratings, yield one example per output."""
    first = next(rows, None)
    if first is None:
        return
    whole = chain([first], rows)
    if not is_long(first[1], fields):
        yield from whole
        return
    for where, row in by_output(whole, fields, human):
        if "input" not in row:
            raise InputError(f"{where}: {missing('input', row, fields)}")
        yield where, validate_row(Example, row, where)


def _is_empty_path(row: Mapping[str, Any], path: str) -> bool:
    """Whether a row has the last part of a path as a key, even with an empty value."""
    head, dot, last = path.rpartition(".")
    inner = at(row, head) if dot else row
    return isinstance(inner, Mapping) and any(str(name).casefold() == last.casefold() for name in inner)


def _with_numbers_turned(examples: ExampleTable, human: HumanValues) -> ExampleTable:
    """Replace 0 and 1 by the labels that the user gave for them, on dimensions with no other numbers."""
    if not human.of_numbers:
        return examples
    names = labelled(examples.column("human"))

    def read(rating: float | None) -> Any:
        return rating if rating is None or isinstance(rating, bool) else human.of_numbers.get(int(rating), rating)

    def turned(given: Mapping[str, Ratings]) -> dict[str, Any]:
        return {name: tuple(map(read, ratings)) if name in names else ratings for name, ratings in given.items()}

    return ExampleTable(each.model_copy(update={"human": turned(each.human)}) for each in examples)


def _say_what_was_missing(name: str, unnamed: Counter[str], human: HumanValues) -> None:
    if unnamed:
        rows = count(unnamed.total(), "row")
        logger.warning("%s: a hash of the texts is the id of %s, which had none.", name, rows)
    if human.missing.total():
        words = ", ".join(f"{word} ({times})" for word, times in human.missing.most_common() if times)
        logger.warning("%s: these values count as not given: %s.", name, words)


def _check_all_were_there(name: str, fields: FieldMap, filled: set[str]) -> None:
    """Raise InputError if a field map names a column that is empty in all rows."""
    for ours, given in fields.items():
        for wanted in columns_of(ours, given, filled):
            if wanted not in filled:
                raise InputError(
                    f"{name}: no example has anything in a column '{wanted}', which the field map names."
                    f"{did_you_mean(wanted, filled)}"
                )


def _remark(name: str, examples: Sequence[Example], empty: Sequence[str]) -> None:
    """Log warnings about left-out rows, contradicting labels, long comments, and unnamed beside named raters."""
    if empty:
        few = names_text([where.rpartition(", ")[2] for where in empty])
        have, are = ("has", "is") if len(empty) == 1 else ("have", "are")
        of = len(empty) + len(examples)
        logger.warning("%s: %d of %d rows %s no output and %s left out (%s).", name, len(empty), of, have, are, few)
    may_contradict = labelled(column(examples, "human"))
    # hashes of the texts, so that the texts of a large file are not held twice
    rated = [
        (each.id, hash((each.input, each.context, each.output)), each.human)
        for each in (examples if may_contradict else ())
        if not may_contradict.isdisjoint(each.human)
    ]
    comments = {
        name: given for name, given in zip(column(examples, "id"), column(examples, "comment"), strict=True) if given
    }
    named = any(column(examples, "raters"))
    beside = [(each.id, each.raters, each.human) for each in examples] if named else []
    for said in (contradictions_said(rated), long_comments_said(comments), unnamed_said(beside)):
        if said is not None:
            logger.warning("%s: %s", name, said)


def _example(
    source: Mapping[str, Any], fields: FieldMap, human: HumanValues, where: str, unnamed: Counter[str]
) -> Example:
    """Make the example of a row."""
    row = renamed(source, fields, human, where)
    if "input" not in row:
        raise InputError(f"{where}: {missing('input', source, fields)}")
    if "id" not in row:
        if "id" in fields and (wanted := str(fields["id"])) not in source and not _is_empty_path(source, wanted):
            raise InputError(f"{where}: {missing('id', source, fields)}")
        row["id"] = numbered_id(id_of_texts(row), unnamed)
    return validate_row(Example, row, where)


def human_dimensions(examples: Iterable[Example], checklist: Checklist | None = None) -> list[str]:
    """Return the dimensions that at least one example was rated on, in order of first appearance.

    Without a ``checklist``, every rated name is a dimension. With one, the ids of its questions are left out, unless an
    id is also ``overall`` or the name of one of its dimensions.
    """
    rated = list(dict.fromkeys(dimension for human in column(examples, "human") for dimension in human))
    if checklist is None:
        return rated
    answers = _only_questions(checklist)
    return [name for name in rated if name not in answers]


def answered_questions(examples: Iterable[Example], checklist: Checklist) -> list[str]:
    """Return the ids of a checklist's questions that people answered on at least one example, in checklist order.

    A name that is also a dimension of the checklist (or ``overall``) means the dimension.
    """
    rated = {name for human in column(examples, "human") for name in human}
    return [name for name in _only_questions(checklist) if name in rated]


def without_answers(example: Example, checklist: Checklist) -> Example:
    """Return the example without people's answers to the questions of a checklist; scores on dimensions stay."""
    answers = _only_questions(checklist)
    if not any(name in answers for name in example.human):
        return example
    rated = {name: ratings for name, ratings in example.human.items() if name not in answers}
    return example.model_copy(update={"human": rated})


def _only_questions(checklist: Checklist) -> dict[str, None]:
    return {each.id: None for each in checklist.questions if each.id not in (*checklist.dimensions, WHOLE)}


def named_document(metadata: Mapping[str, Any]) -> str | None:
    """Return the document that an example's metadata names; None if the entry is missing, null or an empty text."""
    name = metadata.get("document")
    return None if name is None or name == "" else str(name)


def document_of(example: Example) -> str:
    """Return the unit that is never divided between parts of the data: the example's document, else its id."""
    return named_document(example.metadata) or example.id


def documents(examples: Sequence[Example]) -> list[str] | None:
    """Return the document of each example, or its id without one; None if no two examples share a document."""
    ids, metadata = column(examples, "id"), column(examples, "metadata")
    names = [named_document(each) or name for name, each in zip(ids, metadata, strict=True)]
    return names if len(set(names)) < len(names) else None
