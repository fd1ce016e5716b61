"""The verdict: one evaluator's answer to one question on one example. Scores are derived from these."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from .errors import InputError, did_you_mean
from .rows import validate_row
from .tables import PARQUET_SUFFIXES, is_numbered_by_row, read_rows, suffix_of, write_parquet
from .text_files import whole_file, write_whole

Provenance = Literal["logprob", "sampled", "hard", "stated", "computed"]
Status = Literal["ok", "abstained", "parse_error", "api_error"]
Side = Literal["judge", "checker", "both"]
"""Whose verdicts are meant: a model's, those that code computes (a checker, checks, measures), or both."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """f_E(x, y, q) with where it came from (BinEval §3.2). A failure is a status, never an answer."""

    example: str
    question: str
    model: str | None
    """None where code computed it (:class:`~askance.prompts.checklist.Computed`)."""
    prompt: str
    """Content hash of the evaluator prompt."""
    answer: bool | None
    p_yes: float | None = None
    """P(yes) / (P(yes) + P(no)), in [0, 1]."""
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    value: float | None = None
    """Score on the judge's own scale, where it is asked in people's own words; or the number of a measure, whose share
    in [0, 1] is ``p_yes``, and which has no answer."""
    replicate: int = 0
    asked: str | None = None
    """The text of a question that was written for this example alone."""
    version: str | None = None
    """Version of the code that computed a measure."""

    @property
    def is_computed(self) -> bool:
        """Whether code gave it, and no model."""
        return self.model is None

    @property
    def is_measured(self) -> bool:
        """Whether it is a measure's: a number, without an answer."""
        return self.answer is None and self.status == "ok"

    def score(self, *, soft: bool) -> float | None:
        """p_yes (soft) or 1/0 (hard); p_yes either way of a measure; None when there is neither."""
        if self.answer is None:
            return self.p_yes if self.is_measured else None
        return self.p_yes if soft else float(self.answer)

    def turned(self) -> Verdict:
        """The verdict on the opposite question: yes for no, and 1 - P(yes); its own inverse."""
        return replace(
            self,
            answer=None if self.answer is None else not self.answer,
            p_yes=None if self.p_yes is None else 1.0 - self.p_yes,
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields in the order of the verdicts file."""
        row = {name: getattr(self, name) for name in _FIELDS}
        rare = {name: value for name in _RARE if (value := row.pop(name)) not in (None, "", _RARE[name])}
        return row | rare


class Told(NamedTuple):
    """The part of a verdict that its judge's reply decides; the rest is known before."""

    answer: bool | None
    p_yes: float | None = None
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    value: float | None = None


_Text = str | None
VerdictFields = tuple[
    str, str, _Text, str, bool | None, float | None, Provenance | None, _Text, Status, _Text,
    float | None, int, _Text, _Text,
]  # fmt: skip
"""Fields of a :class:`Verdict`, in its order; quicker to make by the million."""
_FIELDS = tuple(field.name for field in fields(Verdict))
fields_of: Callable[[Any], VerdictFields] = attrgetter(*_FIELDS)
"""Names of a verdict's fields."""
_RARE = {"replicate": 0, "asked": None, "value": None, "version": None}
"""Fields that few verdicts have, with the value that is left out."""
_TYPES = {"answer": "bool", "p_yes": "float64", "replicate": "int32", "value": "float64"}
"""Arrow's types of columns in a Parquet file that are no texts."""


class _Numbers(dict[str | None, int]):
    """Names by the order in which they came up."""

    def __missing__(self, name: str | None) -> int:
        self[name] = number = len(self)
        return number


_STATUSES = get_args(Status)
_SOURCES = (*get_args(Provenance), None)
_MEANT: dict[str, Sequence[Any]] = {"answer": (False, True, None), "status": _STATUSES, "p_yes_from": _SOURCES}
"""Each by its number in a column; the last one is also -1."""
_NUMBER = {each: place for values in (_STATUSES, _SOURCES[:-1]) for place, each in enumerate(values)} | {None: -1}
_NUMBERS = {"example": "i", "question": "i", "model": "i", "prompt": "i", "replicate": "i"}
_NUMBERS |= {"answer": "b", "status": "b", "p_yes_from": "b", "p_yes": "d"}
"""Fields that are columns of numbers, and of which type."""
_NOTES = ("explanation", "error", "asked", "value", "version")
"""Fields that most verdicts lack; they are held by the verdict's place."""
_NAN = float("nan")


class VerdictColumns(Sequence[Verdict]):
    """Verdicts in columns: 31 bytes each, names, explanations and errors aside, where a :class:`Verdict` takes some
    200.

    It is read as a list of verdicts would be; each is made when it is asked for. Statistics take whole columns.
    """

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self._length = 0
        self._number = _Numbers()
        self._names: list[str | None] = []
        self._columns: dict[str, array[Any]] = {field: array(kind) for field, kind in _NUMBERS.items()}
        self._notes: dict[str, dict[int, Any]] = {field: {} for field in _NOTES}
        for verdict in verdicts:
            try:
                self.append(fields_of(verdict))
            except AttributeError:
                raise InputError(
                    f"A verdict is expected, not {type(verdict).__name__}: give askance.Verdict(…) objects, or the "
                    "path of a file of verdicts."
                ) from None

    @classmethod
    def due(
        cls, examples: Sequence[str], questions: Sequence[str], model: str, prompt: str, repeat: int = 1
    ) -> VerdictColumns:
        """One judge's verdicts by example, replicate and question; each is still to be :meth:`put`."""
        made = cls()
        number, shape = made._number, (len(examples), repeat, len(questions))
        known = {
            "example": np.array([number[name] for name in examples], dtype=np.int32).reshape(-1, 1, 1),
            "question": np.array([number[name] for name in questions], dtype=np.int32),
            "model": number[model],
            "prompt": number[prompt],
            "replicate": np.arange(repeat).reshape(-1, 1),
        }
        made._length = len(examples) * repeat * len(questions)
        for field, kind in _NUMBERS.items():
            made._columns[field] = column = array(kind, [0]) * made._length
            if field in known and column:
                np.frombuffer(column, dtype=kind).reshape(shape)[...] = known[field]
        return made

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> VerdictColumns:
        """These verdicts in columns, if they are not yet."""
        return verdicts if isinstance(verdicts, VerdictColumns) else cls(verdicts)

    def append(self, fields: VerdictFields) -> None:
        """Take one more."""
        if self._length == len(self._columns["p_yes"]):
            for values in self._columns.values():
                values.frombytes(bytes(values.itemsize * (50 + self._length // 8)))
        place, self._length = self._length, self._length + 1
        number, columns = self._number, self._columns
        columns["example"][place] = number[fields[0]]
        columns["question"][place] = number[fields[1]]
        columns["model"][place] = number[fields[2]]
        columns["prompt"][place] = number[fields[3]]
        columns["replicate"][place] = fields[11]
        if fields[12] is not None:
            self._notes["asked"][place] = fields[12]
        if fields[13] is not None:
            self._notes["version"][place] = fields[13]
        self.put(place, Told(*fields[4:11]))

    def put(self, place: int, said: Told) -> None:
        """Take what was said for the one at this place, counted from 0."""
        answer, p_yes, p_yes_from, explanation, status, error, value = said
        columns = self._columns
        columns["answer"][place] = -1 if answer is None else answer
        columns["p_yes"][place] = _NAN if p_yes is None else p_yes
        columns["p_yes_from"][place] = _NUMBER[p_yes_from]
        columns["status"][place] = _NUMBER[status]
        for field, note in (("explanation", explanation), ("error", error), ("value", value)):
            if note is not None:
                self._notes[field][place] = note

    @property
    def names(self) -> list[str | None]:
        """Ids of examples and questions, models and prompts, by the numbers that :meth:`numbers` has for them."""
        if len(self._names) < len(self._number):
            self._names = list(self._number)
        return self._names

    def numbers(self, field: str) -> NDArray[Any]:
        """A field of all verdicts; shape (verdicts,).

        Names are numbers of :attr:`names`; an answer is 1, 0 or -1 (none), a status its place among :data:`Status`, and
        P(yes) NaN where there is none. No verdict can be appended while it is in use.
        """
        values = self._columns[field]
        view = np.frombuffer(values, dtype=values.typecode) if values else np.empty(0, dtype=values.typecode)
        view.flags.writeable = False
        return view[: self._length]

    def places(self, field: str, among: Iterable[str | None]) -> NDArray[np.int32]:
        """Number of each verdict's ``example``, ``question``, ``model`` or ``prompt`` in a list; -1 where it is not
        there."""
        found = np.full(len(self.names) + 1, -1, dtype=np.int32)
        for place, name in enumerate(among):
            found[self._number.get(name, -1)] = place
        found[len(self._number) :] = -1
        each: NDArray[np.int32] = found[self.numbers(field)]
        return each

    def said(self, *, soft: bool) -> NDArray[np.float64]:
        """P(yes) (soft), or 1 for yes and 0 for no; P(yes) either way of a measure; NaN where there is neither; shape
        (verdicts,)."""
        answers, p_yes = self.numbers("answer"), self.numbers("p_yes")
        measured = np.where(self.numbers("status") == _NUMBER["ok"], p_yes, np.nan)
        return np.where(answers < 0, measured, p_yes if soft else answers)

    def only(self, wanted: NDArray[np.bool_]) -> VerdictColumns:
        """The verdicts that are wanted, in their order; ``wanted`` has shape (verdicts,)."""
        part, places = VerdictColumns(), np.flatnonzero(wanted)
        part._number, part._length = self._number, len(places)
        for field, kind in _NUMBERS.items():
            part._columns[field] = array(kind, self.numbers(field)[places].tobytes())
        now = dict(zip(places.tolist(), range(len(places)), strict=True)) if any(self._notes.values()) else {}
        for field, notes in self._notes.items():
            part._notes[field] = {now[place]: note for place, note in notes.items() if place in now}
        return part

    @property
    def models(self) -> list[str]:
        """Names of the models that gave any of them, sorted; code, which decides checks, is none."""
        return sorted(each for each in set(self.column("model")) if each is not None)

    def by(self, model: str) -> VerdictColumns:
        """The verdicts of one model, with those that code decided; none where it gave none."""
        if model not in self.models:
            return VerdictColumns()
        return self.only(self.places("model", [model, None]) >= 0)

    def column(self, field: str) -> Iterator[Any]:
        """The values of a field, one a verdict."""
        if field in _NOTES:
            return map(self._notes[field].get, range(self._length))
        values = islice(self._columns[field], self._length)
        if field == "p_yes":
            return (None if value != value else value for value in values)
        return values if field == "replicate" else map(_MEANT.get(field, self.names).__getitem__, values)

    @property
    def are_own(self) -> bool:
        """Whether any of them answers a question that was written for its example alone."""
        return bool(self._notes["asked"])

    @property
    def explained(self) -> list[int]:
        """Places of those with an explanation or an error, in order."""
        return sorted({*self._notes["explanation"], *self._notes["error"]})

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Verdict]:
        return map(Verdict, *(self.column(field) for field in _FIELDS))

    @overload
    def __getitem__(self, place: int) -> Verdict: ...
    @overload
    def __getitem__(self, place: slice) -> list[Verdict]: ...
    def __getitem__(self, place: int | slice) -> Verdict | list[Verdict]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(self._length)[place]
        return Verdict(*(self._value(field, place) for field in _FIELDS))

    def _value(self, field: str, place: int) -> Any:
        if field in _NOTES:
            return self._notes[field].get(place)
        value = self._columns[field][place]
        if field == "p_yes":
            return None if value != value else value
        return value if field == "replicate" else _MEANT.get(field, self.names)[value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self)} verdicts>"


_encode = json.JSONEncoder(ensure_ascii=False).encode


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """One JSON object a line, in the order given."""
    columns, name = VerdictColumns.of(verdicts), lru_cache(1000)(_encode)
    for row in zip(*map(columns.column, _FIELDS), strict=True):
        example, question, model, prompt, answer, p_yes, p_yes_from, explanation, status, error, *rare = row
        value, replicate, asked, version = rare
        again = f', "replicate": {replicate}' if replicate else ""
        again += f', "asked": {name(asked)}' if asked else ""
        again += "" if value is None else f', "value": {value!r}'
        again += f', "version": {name(version)}' if version else ""
        yield (
            f'{{"example": {name(example)}, "question": {name(question)}, "model": {name(model)}, '
            f'"prompt": {name(prompt)}, "answer": {name(answer)}, "p_yes": {"null" if p_yes is None else repr(p_yes)}, '
            f'"p_yes_from": {name(p_yes_from)}, "explanation": {name(explanation)}, '
            f'"status": {name(status)}, "error": {name(error)}{again}}}\n'
        )


def save_verdicts(path: str | Path, verdicts: Iterable[Verdict]) -> None:
    """Write a verdicts file: Parquet where the name ends so, else JSONL. Raises MissingExtraError where Parquet needs
    ``pyarrow``, and AskanceError where it cannot be written."""
    if suffix_of(path) not in PARQUET_SUFFIXES:
        write_whole(path, verdict_lines(verdicts))
        return
    columns = VerdictColumns.of(verdicts)
    with whole_file(path) as file:
        there = [each for each in _FIELDS if each not in ("asked", "value", "version") or columns._notes[each]]
        write_parquet(file, {field: columns.column(field) for field in there}, _TYPES)


def dump_verdicts(verdicts: Iterable[Verdict]) -> str:
    """The text of a verdicts file: :func:`verdict_lines`."""
    return "".join(verdict_lines(verdicts))


def read_verdicts(
    path: str | Path, *, examples: Collection[str] | None = None, questions: Collection[str] | None = None
) -> VerdictColumns:
    """Read verdicts as :func:`save_verdicts` writes them, in the order of the file.

    An answer without ``p_yes`` gets 1 or 0, and ``hard`` as its provenance.

    Args:
        path: JSONL file, or another table with these columns.
        examples: Ids that verdicts may be about; any where None.
        questions: Ids of questions that verdicts may answer; any where None.

    Raises:
        InputError: Names the file, line and field: something is missing or of the wrong type, an id is not known, an
            answer and a failure stand together, or a verdict is there twice.
    """
    file = Path(path)
    unit = "row" if is_numbered_by_row(file) else "line"
    verdicts, lines = VerdictColumns(), array("q")
    for number, row in read_rows(file, quick=_plain_row):
        if not isinstance(row, _Row):
            where = f"{file}, {unit} {number}"
            if not row.keys() & {"example", "question"}:
                raise InputError(f"{where}: this is no verdict. Verdicts are what `askance evaluate -o` writes.")
            row = validate_row(_AnyRow, row, where)
        if questions is not None and row.asked:
            raise InputError(
                f"{file}, {unit} {number}: field 'asked': the question '{row.question}' was written for the example "
                f"'{row.example}' alone (--own-questions), so it is none of a checklist's; leave the checklist out."
            )
        if examples is not None and row.example not in examples:
            raise _unknown(f"{file}, {unit} {number}", "example", row.example, "the data", examples)
        if questions is not None and row.question not in questions:
            raise _unknown(f"{file}, {unit} {number}", "question", row.question, "the checklist", questions)
        verdicts.append(row.fields())
        lines.append(number)
    if not verdicts:
        raise InputError(f"{file}: there are no verdicts in it.")
    if (found := _repeated(verdicts)) is not None:
        first, again = found
        twice = verdicts[again]
        raise InputError(
            f"{file}, {unit} {lines[again]}: the verdict of {twice.model or 'code'} on example '{twice.example}' and question "
            f"'{twice.question}' stands in {unit} {lines[first]} already; repeats need a field 'replicate'."
        )
    return verdicts


def _unknown(where: str, field: str, name: str, place: str, known: Collection[str]) -> InputError:
    return InputError(f"{where}: field '{field}': there is no {field} '{name}' in {place}.{did_you_mean(name, known)}")


def _repeated(verdicts: VerdictColumns) -> tuple[int, int] | None:
    """The places of the first verdict that is there again, and of its repeat; None where each is there once."""
    columns = [verdicts.numbers(field) for field in ("example", "question", "model", "prompt", "replicate")]
    order = np.lexsort(columns)  # stable: those that are alike stay in their order
    again = np.flatnonzero(np.all([np.diff(column[order]) == 0 for column in columns], axis=0))
    if not again.size:
        return None
    place = again[np.argmin(order[again + 1])]
    return int(order[place]), int(order[place + 1])


def _plain_row(line: str) -> _Row | None:
    """The row of a line as it is written here; None where it has to be looked at more closely."""
    try:
        row = _Row.model_validate_json(line)
    except ValidationError:
        return None
    return row if row.problem is None else None


class _Row(BaseModel):
    """A line of a verdicts file."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    example: str
    question: str
    model: str | None
    prompt: str
    answer: bool | None
    p_yes: float | None = Field(None, ge=0, le=1)
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    replicate: int = Field(0, ge=0, lt=2**31)
    asked: str | None = None
    value: float | None = None
    version: str | None = None

    @property
    def problem(self) -> str | None:
        """Why its fields do not go together; None where they do."""
        numbers = (self.p_yes, self.value)
        if self.answer is None and self.status == "ok" and self.p_yes_from == "computed" and None not in numbers:
            return None  # a measure
        if self.answer is None and self.status == "ok":
            return "field 'answer': null, although the status is 'ok'; say in 'status' what failed"
        if self.answer is not None and self.status != "ok":
            return f"field 'answer': there is one, although the status is '{self.status}'"
        if self.answer is None and self.p_yes is not None:
            return "field 'p_yes': a number, although there is no answer"
        if self.answer is None and self.value is not None:
            return "field 'value': a score, although there is no answer"
        return None

    def fields(self) -> VerdictFields:
        found = fields_of(self)
        if self.answer is not None and self.p_yes is None:
            return (*found[:5], float(self.answer), "hard", *found[7:])
        return found


class _AnyRow(_Row):
    """One that may be written by another program."""

    @field_validator("example", "question", mode="before")
    @classmethod
    def _numbers_are_ids(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _answer_or_failure(self) -> _AnyRow:
        if self.problem is not None:
            raise ValueError(self.problem)
        return self
