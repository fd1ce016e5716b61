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
"""Who gave the verdicts: a model (``judge``), code (``checker``: a checker, checks, measures), or both."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer f_E(x, y, q) and its origin (BinEval §3.2). A failure is a status, never an answer."""

    example: str
    question: str
    model: str | None
    """The judge's model; None if code computed the verdict (:class:`~askance.prompts.checklist.Computed`)."""
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
    """The score on the judge's own scale, if it is asked in people's own words; or the number of a measure. A measure
    has no answer, and its share in [0, 1] is ``p_yes``."""
    replicate: int = 0
    asked: str | None = None
    """The text of the question, if it was written for this example alone."""
    version: str | None = None
    """Version of the code that computed a measure."""

    @property
    def is_computed(self) -> bool:
        """Whether code gave the verdict, not a model."""
        return self.model is None

    @property
    def is_measured(self) -> bool:
        """Whether the verdict is a measure's: a number without an answer."""
        return self.answer is None and self.status == "ok"

    def score(self, *, soft: bool) -> float | None:
        """Return p_yes (soft), or 1 for yes and 0 for no (hard). A measure always gives p_yes; a failure gives None."""
        if self.answer is None:
            return self.p_yes if self.is_measured else None
        return self.p_yes if soft else float(self.answer)

    def turned(self) -> Verdict:
        """Return the verdict on the opposite question: yes becomes no, P(yes) becomes 1 - P(yes). Its own inverse."""
        return replace(
            self,
            answer=None if self.answer is None else not self.answer,
            p_yes=None if self.p_yes is None else 1.0 - self.p_yes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in the order of the verdicts file; rare fields only if they are set."""
        row = {name: getattr(self, name) for name in _FIELDS}
        rare = {name: value for name in _RARE if (value := row.pop(name)) not in (None, "", _RARE[name])}
        return row | rare


class Told(NamedTuple):
    """The fields of a verdict that the judge's reply decides; the other fields are known before the call."""

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
"""The fields of a :class:`Verdict` as a tuple, in its order: faster to make than the object, by the million."""
_FIELDS = tuple(field.name for field in fields(Verdict))
fields_of: Callable[[Any], VerdictFields] = attrgetter(*_FIELDS)
"""Returns the fields of a verdict, or of a row of a verdicts file, as a tuple."""
_RARE = {"replicate": 0, "asked": None, "value": None, "version": None}
"""Fields that few verdicts set, with the value that files leave out."""
_TYPES = {"answer": "bool", "p_yes": "float64", "replicate": "int32", "value": "float64"}
"""Arrow types of the Parquet columns that do not hold text."""


class _Numbers(dict[str | None, int]):
    """Maps each name to a number, in the order of first use."""

    def __missing__(self, name: str | None) -> int:
        self[name] = number = len(self)
        return number


_STATUSES = get_args(Status)
_SOURCES = (*get_args(Provenance), None)
_MEANT: dict[str, Sequence[Any]] = {"answer": (False, True, None), "status": _STATUSES, "p_yes_from": _SOURCES}
"""Field to its possible values. A column holds a value's index; -1 means the last value."""
_NUMBER = {each: place for values in (_STATUSES, _SOURCES[:-1]) for place, each in enumerate(values)} | {None: -1}
_NUMBERS = {"example": "i", "question": "i", "model": "i", "prompt": "i", "replicate": "i"}
_NUMBERS |= {"answer": "b", "status": "b", "p_yes_from": "b", "p_yes": "d"}
"""Fields that are stored as columns of numbers, with their ``array`` type codes."""
_NOTES = ("explanation", "error", "asked", "value", "version")
"""Fields that most verdicts lack; each is stored in a dict from the verdict's place to the value."""
_NAN = float("nan")


class VerdictColumns(Sequence[Verdict]):
    """Verdicts stored in columns: 31 bytes each, plus names, explanations and errors. A :class:`Verdict` object takes
    about 200 bytes.

    Reads like a list: each verdict is built on access. Statistics take whole columns.
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
        """Make the empty verdicts of one judge, by example, replicate and question; :meth:`put` fills each of them."""
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
        """Return the verdicts in columns; columns are returned as they are."""
        return verdicts if isinstance(verdicts, VerdictColumns) else cls(verdicts)

    def append(self, fields: VerdictFields) -> None:
        """Add a verdict."""
        # columns grow by an eighth at a time, so that most appends copy nothing
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
        """Store the judge's reply for the verdict at this place, counted from 0."""
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
        """Ids of examples and questions, models, and prompts; :meth:`numbers` holds indices into this list."""
        if len(self._names) < len(self._number):
            self._names = list(self._number)
        return self._names

    def numbers(self, field: str) -> NDArray[Any]:
        """Return one field of all verdicts as an array of shape (verdicts,).

        A name is its index in :attr:`names`. An answer is 1, 0 or -1 (none). A status is its index in :data:`Status`. A
        missing P(yes) is NaN. No verdict can be appended while the array is in use.
        """
        values = self._columns[field]
        view = np.frombuffer(values, dtype=values.typecode) if values else np.empty(0, dtype=values.typecode)
        view.flags.writeable = False
        return view[: self._length]

    def places(self, field: str, among: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the index of each verdict's ``example``, ``question``, ``model`` or ``prompt`` in the list ``among``;
        -1 if it is not in the list."""
        # the extra last cell takes the names that no verdict has, and is set to -1 again
        found = np.full(len(self.names) + 1, -1, dtype=np.int32)
        for place, name in enumerate(among):
            found[self._number.get(name, -1)] = place
        found[len(self._number) :] = -1
        each: NDArray[np.int32] = found[self.numbers(field)]
        return each

    def said(self, *, soft: bool) -> NDArray[np.float64]:
        """Return P(yes) of each verdict (soft), or 1 for yes and 0 for no (hard); shape (verdicts,). A measure always
        gives P(yes), a failure NaN."""
        answers, p_yes = self.numbers("answer"), self.numbers("p_yes")
        measured = np.where(self.numbers("status") == _NUMBER["ok"], p_yes, np.nan)
        return np.where(answers < 0, measured, p_yes if soft else answers)

    def only(self, wanted: NDArray[np.bool_]) -> VerdictColumns:
        """Return the verdicts at which ``wanted`` is True, in their order; ``wanted`` has shape (verdicts,)."""
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
        """Sorted names of the models that gave verdicts. Verdicts that code computed have no model."""
        return sorted(each for each in set(self.column("model")) if each is not None)

    def by(self, model: str) -> VerdictColumns:
        """Return the verdicts of one model and those that code computed; empty if the model gave none."""
        if model not in self.models:
            return VerdictColumns()
        return self.only(self.places("model", [model, None]) >= 0)

    def column(self, field: str) -> Iterator[Any]:
        """Return the values of a field, one per verdict."""
        if field in _NOTES:
            return map(self._notes[field].get, range(self._length))
        values = islice(self._columns[field], self._length)
        if field == "p_yes":
            return (None if value != value else value for value in values)
        return values if field == "replicate" else map(_MEANT.get(field, self.names).__getitem__, values)

    @property
    def are_own(self) -> bool:
        """Whether any verdict answers a question that was written for its example alone."""
        return bool(self._notes["asked"])

    @property
    def explained(self) -> list[int]:
        """Places of the verdicts with an explanation or an error, in order."""
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
    """Yield one line of JSON per verdict, in the order given."""
    columns, name = VerdictColumns.of(verdicts), lru_cache(1000)(_encode)
    for row in zip(*map(columns.column, _FIELDS), strict=True):
        example, question, model, prompt, answer, p_yes, p_yes_from, explanation, status, error, *rare = row
        value, replicate, asked, version = rare
        additions = f', "replicate": {replicate}' if replicate else ""
        additions += f', "asked": {name(asked)}' if asked else ""
        additions += "" if value is None else f', "value": {value!r}'
        additions += f', "version": {name(version)}' if version else ""
        yield (
            f'{{"example": {name(example)}, "question": {name(question)}, "model": {name(model)}, '
            f'"prompt": {name(prompt)}, "answer": {name(answer)}, "p_yes": {"null" if p_yes is None else repr(p_yes)}, '
            f'"p_yes_from": {name(p_yes_from)}, "explanation": {name(explanation)}, '
            f'"status": {name(status)}, "error": {name(error)}{additions}}}\n'
        )


def save_verdicts(path: str | Path, verdicts: Iterable[Verdict]) -> None:
    """Write a verdicts file: Parquet if the file's suffix says so, else JSONL. Raises MissingExtraError if Parquet is
    wanted without ``pyarrow``, and AskanceError if the file cannot be written."""
    if suffix_of(path) not in PARQUET_SUFFIXES:
        write_whole(path, verdict_lines(verdicts))
        return
    columns = VerdictColumns.of(verdicts)
    with whole_file(path) as file:
        there = [each for each in _FIELDS if each not in ("asked", "value", "version") or columns._notes[each]]
        write_parquet(file, {field: columns.column(field) for field in there}, _TYPES)


def dump_verdicts(verdicts: Iterable[Verdict]) -> str:
    """Return the text of a verdicts file: all :func:`verdict_lines`."""
    return "".join(verdict_lines(verdicts))


def read_verdicts(
    path: str | Path, *, examples: Collection[str] | None = None, questions: Collection[str] | None = None
) -> VerdictColumns:
    """Read the verdicts of a file that :func:`save_verdicts` wrote, in the order of the file.

    An answer without ``p_yes`` gets 1 or 0, and ``hard`` as its provenance.

    Args:
        path: JSONL file, or another table with these columns.
        examples: Ids of the examples that verdicts may be about; None allows any.
        questions: Ids of the questions that verdicts may answer; None allows any.

    Raises:
        InputError: Names the file, line and field: a value is missing or of the wrong type, an id is not known, a
            verdict has an answer and a failure, or a verdict is there twice.
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
    """Return the places of a verdict and of its repeat, for the first repeat in the file; None without any."""
    columns = [verdicts.numbers(field) for field in ("example", "question", "model", "prompt", "replicate")]
    order = np.lexsort(columns)  # stable: equal verdicts stay in the order of the file
    again = np.flatnonzero(np.all([np.diff(column[order]) == 0 for column in columns], axis=0))
    if not again.size:
        return None
    place = again[np.argmin(order[again + 1])]
    return int(order[place]), int(order[place + 1])


def _plain_row(line: str) -> _Row | None:
    """Read a line in exactly the form that askance writes; None if the line needs the slower check."""
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
        """Why the fields contradict each other; None if they do not."""
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
    """A line that another program may have written."""

    @field_validator("example", "question", mode="before")
    @classmethod
    def _numbers_are_ids(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _answer_or_failure(self) -> _AnyRow:
        if self.problem is not None:
            raise ValueError(self.problem)
        return self
