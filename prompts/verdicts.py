"""The verdict: one evaluator's answer to one question on one example. Scores are derived from these."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .errors import InputError, did_you_mean
from .rows import read_rows, validate_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import TextIO

Provenance = Literal["logprob", "sampled", "hard"]
Status = Literal["ok", "abstained", "parse_error", "api_error"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """f_E(x, y, q) with where it came from (BinEval §3.2). A failure is a status, never an answer."""

    example: str
    question: str
    model: str
    prompt: str
    """Content hash of the evaluator prompt."""
    answer: bool | None
    p_yes: float | None = None
    """P(yes) / (P(yes) + P(no)), in [0, 1]."""
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    replicate: int = 0

    def score(self, *, soft: bool) -> float | None:
        """p_yes (soft) or 1/0 (hard); None when there is no answer."""
        if self.answer is None:
            return None
        return self.p_yes if soft else float(self.answer)

    def turned(self) -> Verdict:
        """The same said in answer to the opposite question: yes for no, and 1 - P(yes); its own inverse."""
        return replace(
            self,
            answer=None if self.answer is None else not self.answer,
            p_yes=None if self.p_yes is None else 1.0 - self.p_yes,
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields in the order of the verdicts file."""
        row = {name: getattr(self, name) for name in _FIELDS}
        if not self.replicate:
            del row["replicate"]
        return row


_FIELDS = tuple(field.name for field in fields(Verdict))


def dump_verdicts(verdicts: Iterable[Verdict]) -> str:
    """One JSON object a line, in the order given."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(encode(verdict.to_dict()) + "\n" for verdict in verdicts)


def write_verdicts(verdicts: Iterable[Verdict], file: TextIO) -> None:
    """Write verdicts as :func:`dump_verdicts` puts them."""
    file.write(dump_verdicts(verdicts))


def read_verdicts(
    path: str | Path, *, examples: Collection[str] | None = None, questions: Collection[str] | None = None
) -> list[Verdict]:
    """Read verdicts as :func:`write_verdicts` writes them, in the order of the file.

    An answer without ``p_yes`` gets 1 or 0, and ``hard`` as its provenance.

    Args:
        path: JSONL file.
        examples: Ids that verdicts may be about; any where None.
        questions: Ids of questions that verdicts may answer; any where None.

    Raises:
        InputError: Names the file, line and field: something is missing or of the wrong type, an id is not known, an
            answer and a failure stand together, or a verdict is there twice.
    """
    file = Path(path)
    known = {"example": (examples, "the data"), "question": (questions, "the checklist")}
    verdicts = []
    lines: dict[tuple[str, str, str, str, int], int] = {}
    for number, row in read_rows(file):
        where = f"{file}, line {number}"
        if not row.keys() & {"example", "question"}:
            raise InputError(f"{where}: this is no verdict. Verdicts are what `askance evaluate -o` writes.")
        verdict = validate_row(_Row, row, where).verdict()
        for field, (ids, place) in known.items():
            name = getattr(verdict, field)
            if ids is not None and name not in ids:
                raise InputError(
                    f"{where}: field '{field}': there is no {field} '{name}' in {place}.{did_you_mean(name, ids)}"
                )
        key = (verdict.example, verdict.question, verdict.model, verdict.prompt, verdict.replicate)
        if lines.setdefault(key, number) != number:
            raise InputError(
                f"{where}: the verdict of {verdict.model} on example '{verdict.example}' and question "
                f"'{verdict.question}' stands in line {lines[key]} already; repeats need a field 'replicate'."
            )
        verdicts.append(verdict)
    if not verdicts:
        raise InputError(f"{file}: there are no verdicts in it.")
    return verdicts


class _Row(BaseModel):
    """A line of a verdicts file."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    example: str
    question: str
    model: str
    prompt: str
    answer: bool | None
    p_yes: float | None = Field(None, ge=0, le=1)
    p_yes_from: Provenance | None = None
    explanation: str | None = None
    status: Status = "ok"
    error: str | None = None
    replicate: int = Field(0, ge=0)

    @field_validator("example", "question", mode="before")
    @classmethod
    def _numbers_are_ids(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _answer_or_failure(self) -> _Row:
        if self.answer is None and self.status == "ok":
            raise ValueError("field 'answer': null, although the status is 'ok'; say in 'status' what failed")
        if self.answer is not None and self.status != "ok":
            raise ValueError(f"field 'answer': there is one, although the status is '{self.status}'")
        if self.answer is None and self.p_yes is not None:
            raise ValueError("field 'p_yes': a number, although there is no answer")
        return self

    def verdict(self) -> Verdict:
        given = dict(self)
        if self.answer is not None and self.p_yes is None:
            given |= {"p_yes": float(self.answer), "p_yes_from": "hard"}
        return Verdict(**given)
