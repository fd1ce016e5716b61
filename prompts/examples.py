"""What a judge looks at: examples with the scores that people gave them, and pairs of which people liked one better."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
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

from .comments import WHOLE, Comment, dump_comments, long_comments_said, read_comments
from .errors import InputError, did_you_mean
from .labels import contradictions_said, is_number, rating_of, refuse_mixed_labels, with_words
from .rows import is_on_hub, read_rows, rows_of_name, validate_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .checklist import Checklist
    from .labels import Labels


logger = logging.getLogger(__name__)

TEXTS = ("id", "input", "output", "context", "reference", "system")
FIELDS = (*TEXTS, "metadata", "human", "comment")
NESTED = ("human", "metadata", "comment")
"""Fields whose parts a field map can name."""


def _label_or_number(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, bool) else check(value)


Rating = Annotated[float, WrapValidator(_label_or_number)]
"""A number, or a label: ``True`` and ``False`` stay what they are."""
Ratings = tuple[Rating, ...]


class Example(BaseModel):
    """One item: input x, output y and, where people rated it, their scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str = Field(min_length=1)
    """Unique within a file."""
    input: str
    """What the generator was given: a document, a dialogue, an instruction."""
    output: str | None = None
    """What is judged; None where a generator is still to make it."""
    context: str | None = None
    reference: str | None = None
    system: str | None = None
    """Which system made the output, for system-level correlations."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    human: dict[str, Ratings] = Field(default_factory=dict)
    """Dimension, or question id, to ratings, one a rater: numbers on the scale of the data, or labels as ``True`` and
    ``False``, which count as 1 and 0."""
    comment: tuple[Comment, ...] = ()
    """What people wrote about the output."""

    @field_validator(*TEXTS)
    @classmethod
    def _is_text(cls, value: str | None) -> str | None:
        try:
            (value or "").encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"half a surrogate pair at character {error.start + 1} is no text") from None
        return value

    @field_validator("human", mode="before")
    @classmethod
    def _ratings(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("an object from dimension to number, label or list of these is needed")
        ratings = {}
        for dimension, score in value.items():
            if score is None:
                continue
            scores = score if isinstance(score, (list, tuple)) else [score]
            if not scores:
                raise ValueError(f"'{dimension}' has an empty list of ratings")
            ratings[dimension] = tuple(rating_of(each, str(dimension)) for each in scores)
        return ratings

    @field_validator("comment", mode="before")
    @classmethod
    def _comments(cls, value: Any) -> tuple[Comment, ...]:
        return read_comments(value)

    @model_serializer(mode="wrap")
    def _as_in_files(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        row: dict[str, Any] = dump(self)
        as_it_is = {"human": self.human, "comment": dump_comments(self.comment)}  # as numbers, labels would be lost
        return {name: as_it_is.get(name, value) for name, value in row.items()}

    @model_validator(mode="before")
    @classmethod
    def _unknown_fields_are_metadata(cls, value: Any) -> Any:
        """Keep columns that are not ours under ``metadata``, where nothing reads them by accident."""
        if not isinstance(value, dict):
            return value
        extra = {name: value[name] for name in value if name not in FIELDS}
        if not extra:
            return value
        known = {name: value[name] for name in value if name in FIELDS}
        metadata = known.get("metadata") or {}
        return known | {"metadata": extra | metadata} if isinstance(metadata, dict) else value

    def human_score(self, dimension: str) -> float | None:
        """Mean rating on one dimension, on the scale of the data; None where nobody rated it."""
        ratings = self.human.get(dimension)
        return sum(ratings) / len(ratings) if ratings else None

    def human_answer(self, question: str) -> float | None:
        """People's mean answer to a question, 1 for yes and 0 for no; None where nobody gave one.

        Args:
            question: The id of a question; that it is no dimension's name :func:`answered_questions` knows.
        """
        return self.human_score(question)


class Preference(BaseModel):
    """Two outputs for one input, and which one was preferred. Columns that are not ours are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    input: str
    output_a: str
    output_b: str
    preferred: Literal["a", "b", "tie"]
    section: str | None = None
    dataset: str | None = None
    group: str | None = None
    """Pairs of one group are never divided between learning and testing."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _labels_may_be_metadata(cls, row: Any) -> Any:
        """``section``, ``dataset`` and ``group`` are also found under ``metadata``, as where scores are given."""
        metadata = row.get("metadata") if isinstance(row, dict) else None
        if not isinstance(metadata, dict):
            return row
        return {name: metadata[name] for name in ("section", "dataset", "group") if name in metadata} | row


def load_examples(
    source: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    fields: Mapping[str, str] | None = None,
    limit: int | None = None,
    need_output: bool = True,
    labels: Labels | None = None,
    remarks: bool = True,
) -> list[Example]:
    """Load examples from a JSONL or CSV file, the Hugging Face hub or any iterable of mappings.

    Args:
        source: A path, ``hf:OWNER/NAME[/CONFIG]:SPLIT`` for the Hugging Face hub, or rows (a ``datasets.Dataset``
            iterates as such).
        fields: Renames columns: our name to the column's name, e.g. ``{"output": "summary"}``.
            ``human.D`` maps a plain column to the human dimension ``D``, ``comment.D`` one to the comments on it.
        limit: Keep only the first ``limit`` examples.
        need_output: Whether every example must have an output to judge.
        labels: Further words that people's labels are in, e.g. ``{"good": ["fine"], "bad": ["poor"]}``.
        remarks: Whether to log a warning of labels that contradict each other and of very long comments.

    Raises:
        InputError: Names the file, line and field of the first problem.
    """
    fields, labels = fields or {}, labels or {}
    for ours in fields:
        _check_field(ours)
    examples: list[Example] = []
    seen: dict[str, str] = {}
    unseen = set(fields.values())
    for where, row in islice(_rows(source, fields), limit):
        if not isinstance(row, (Example, Mapping)):
            raise InputError(f"{where}: a mapping from field to value is needed, not {type(row).__name__}.")
        example = row if isinstance(row, Example) else _example(row, fields, labels, where)
        if example.id in seen:
            raise InputError(f"{where}: the id '{example.id}' was used before, in {seen[example.id]}.")
        if need_output and example.output is None:
            raise InputError(f"{where}: {_missing('output', row, fields)}.")
        if example.comment and example.output is None:
            raise InputError(
                f"{where}: field 'comment': there is no output that it could be about. Give the 'output', or leave out "
                "the comment."
            )
        seen[example.id] = where
        examples.append(example)
        unseen -= {column for column in unseen if isinstance(row, Example) or row.get(column) is not None}
    name = source if isinstance(source, (str, Path)) else "the data"
    if not examples:
        raise InputError(f"{name}: there are no examples in it.")
    if unseen:
        raise InputError(f"{name}: no example has anything in a column '{min(unseen)}', which the field map names.")
    refuse_mixed_labels((seen[example.id], example.human) for example in examples)
    if remarks:
        _remark(str(name), examples)
    return examples


def _remark(name: str, examples: Sequence[Example]) -> None:
    """Log a warning of what is odd about people's labels and comments, once for all examples."""
    rated = [(each.id, (each.input, each.context, each.output), each.human) for each in examples]
    for said in (contradictions_said(rated), long_comments_said({each.id: each.comment for each in examples})):
        if said is not None:
            logger.warning("%s: %s", name, said)


def _rows(source: Any, fields: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if is_on_hub(source):
        for number, row in enumerate(rows_of_name(source), 1):
            yield f"{source}, row {number}", row
    elif isinstance(source, (str, Path)):
        for number, row in read_rows(Path(source), as_text={fields.get(name, name) for name in TEXTS}):
            yield f"{source}, line {number}", row
    elif isinstance(source, Mapping):
        first = next(iter(source), "test")
        raise InputError(
            f"row 1: a mapping from field to value is needed, not {type(source).__name__}. Where it holds several sets, "
            f"name one: data['{first}']."
        )
    else:
        for number, row in enumerate(source, 1):
            yield f"row {number}", row


def _check_field(ours: str) -> None:
    name, dot, dimension = ours.partition(".")
    if name not in FIELDS:
        raise InputError(f"Field map: '{ours}' is not one of our fields.{did_you_mean(name, FIELDS)}")
    if dot and (name not in NESTED or not dimension):
        raise InputError(
            f"Field map: '{ours}' is not one of our fields; human.NAME, metadata.NAME and comment.NAME have a dot."
        )


def _example(source: Mapping[str, Any], fields: Mapping[str, str], labels: Labels, where: str) -> Example:
    """A row with its columns renamed; null is the same as a field that is not there."""
    renamed = {*fields, *fields.values()}
    row = {name: value for name, value in source.items() if name not in renamed and value is not None}
    for ours, column in fields.items():
        name, _, part = ours.partition(".")
        if source.get(column) is None:
            continue
        if name == "comment":
            given = {part: source[column]} if part else source[column]
            row[name] = [row[name], given] if name in row else given
        elif part:
            value = _number(source[column]) if name == "human" else source[column]
            nested = row.get(name, {})
            row[name] = {**nested, part: value} if isinstance(nested, Mapping) else nested
        else:
            row[name] = source[column]
    if isinstance(row.get("id"), int) and not isinstance(row["id"], bool):
        row["id"] = str(row["id"])
    if "human" in row:
        row["human"] = with_words(row["human"], labels)
    for field in ("id", "input"):
        if field not in row:
            raise InputError(f"{where}: {_missing(field, source, fields)}.")
    return validate_row(Example, row, where)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and is_number(value) else value


def _missing(field: str, row: Example | Mapping[str, Any], fields: Mapping[str, str]) -> str:
    if field in fields:
        return f"there is no column '{fields[field]}' (field map: {field}={fields[field]})"
    extra = row.metadata if isinstance(row, Example) else [name for name in row if name not in FIELDS]
    hint = did_you_mean(field, [str(name) for name in extra])
    if not hint and extra:
        columns = [*(row.metadata if isinstance(row, Example) else row)]
        hint = f"there are: {', '.join(map(str, columns))}; --field {field}=COLUMN names the one that it is"
        return f"the field '{field}' is missing ({hint})"
    return f"the field '{field}' is missing" + (f" ({hint.strip()} A field map renames it)" if hint else "")


def human_dimensions(examples: Iterable[Example], checklist: Checklist | None = None) -> list[str]:
    """Dimensions that at least one example was rated on, in order of first appearance.

    Without a ``checklist`` everything that people rated is one; with it the ids of its questions are none, unless they
    are the name of a dimension of it too, or ``overall``.
    """
    rated = list(dict.fromkeys(dimension for example in examples for dimension in example.human))
    if checklist is None:
        return rated
    answers = _only_questions(checklist)
    return [name for name in rated if name not in answers]


def answered_questions(examples: Iterable[Example], checklist: Checklist) -> list[str]:
    """Ids of the questions of a checklist that people answered on at least one example, in the order of the checklist.

    A name that is a dimension of the checklist as well (or ``overall``) means the dimension.
    """
    rated = {name for example in examples for name in example.human}
    return [name for name in _only_questions(checklist) if name in rated]


def without_answers(example: Example, checklist: Checklist) -> Example:
    """The example with people's scores on dimensions alone, without their answers to the questions of a checklist."""
    answers = _only_questions(checklist)
    if not any(name in answers for name in example.human):
        return example
    rated = {name: ratings for name, ratings in example.human.items() if name not in answers}
    return example.model_copy(update={"human": rated})


def _only_questions(checklist: Checklist) -> dict[str, None]:
    return {each.id: None for each in checklist.questions if each.id not in (*checklist.dimensions, WHOLE)}


def parse_field_map(pairs: Iterable[str]) -> dict[str, str]:
    """Turn ``["output=summary", ...]`` into a field map.

    Raises:
        InputError: A pair is not of the form ``ours=column``.
    """
    mapping = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]+)=(.+)", pair)
        if not match:
            raise InputError(f"--field {pair}: write it as our_name=column, e.g. output=summary.")
        mapping[match[1].strip()] = match[2].strip()
    return mapping


def documents(examples: Sequence[Example]) -> list[str] | None:
    """The document of each example, where several examples share one; None where none do."""
    names = [str(example.metadata.get("document", example.id)) for example in examples]
    return names if len(set(names)) < len(names) else None
