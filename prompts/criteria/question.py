"""Criteria of outputs: questions that a model is asked, and checks that code decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args, overload

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_serializer,
    model_validator,
)

from .kinds import OF_SCHEMAS, CheckKind, refuse_value, said_of

if TYPE_CHECKING:
    from pydantic import SerializerFunctionWrapHandler

FAULT = "yes = fault"
"""How a question is marked, where questions are listed, to which yes speaks against the output."""
GoodAnswer = Literal["yes", "no"]
Sees = Literal["all", "output", "quote", "last", "call", "input", "context", "reference"]
"""Part of an example that a judge is shown with a question: everything that its prompt shows; the output alone; the
output alone, to quote what makes the answer yes; the last reply of a conversation; its calls of tools; or the sentences
of the output and of one other text that speak of the same."""
Against = Literal["input", "context", "reference"]
"""A text of an example that its output is held against, by a question about a relation or by a measure."""
TEXTS: tuple[Against, ...] = get_args(Against)
SEEN: dict[Sees, str] = {
    "output": "of the output alone",
    "quote": "answered with a quote",
    "last": "of the last reply",
    "call": "of the calls of tools",
    "input": "beside the input",
    "context": "beside the context",
    "reference": "beside the reference",
}
"""How a question is marked, where questions are listed, that sees something else than everything."""
RequirementOrigin = Literal["contract", "clause", "contrast", "judge", "person"]
"""Where a requirement of a migration comes from: found in old outputs, stated by the old prompt, what old outputs do
and new ones do not, a learned judge, or a person."""
_WORDS = {"true": "yes", "false": "no"}


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):  # which would count as 1 or 0
        raise ValueError(f"a number is needed, not {json.dumps(value)}")
    return value


Weight = Annotated[float, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]
"""How much a question counts."""


def marked(text: str, good: str, sees: Sees = "all") -> str:
    """A question as it is listed: with what is not as usual, its good answer (it looks for a fault) or what it sees."""
    said = [*([FAULT] if good == "no" else []), *([SEEN[sees]] if sees in SEEN else [])]
    return f"{text} ({', '.join(said)})" if said else text


class Polar(BaseModel):
    """The answer to a question that speaks for the output, and the worth of an answer."""

    model_config = ConfigDict(frozen=True)

    good: GoodAnswer = "yes"
    """``no`` for a question that looks for a fault. The model is asked the same either way."""

    @field_validator("good", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        """Takes ``No``, and what YAML and JSON make of it, for ``no``."""
        word = str(value).strip().lower() if isinstance(value, (str, bool)) else ""
        word = _WORDS.get(word, word)
        if word not in ("yes", "no"):
            raise ValueError(
                f"it is yes or no, the answer that speaks for the output, not {json.dumps(value, default=str)}"
            )
        return word

    @model_serializer(mode="wrap")
    def _default_left_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Written only where it is ``no``, after everything else."""
        fields: dict[str, Any] = handler(self)
        good = fields.pop("good", "yes")
        return fields if good == "yes" else fields | {"good": good}

    @property
    def is_fault(self) -> bool:
        """Whether yes speaks against the output."""
        return self.good == "no"

    @overload
    def p_good(self, p_yes: float) -> float: ...
    @overload
    def p_good(self, p_yes: float | None) -> float | None: ...
    def p_good(self, p_yes: float | None) -> float | None:
        """P(the answer that speaks for the output), of P(yes); of a 1 or 0 for yes or no, whether it is that answer.

        None stays None. It is its own inverse: of a wanted P(good) it gives the wanted P(yes).
        """
        return p_yes if p_yes is None or not self.is_fault else 1.0 - p_yes

    @overload
    def is_good(self, answer: bool) -> bool: ...
    @overload
    def is_good(self, answer: bool | None) -> bool | None: ...
    def is_good(self, answer: bool | None) -> bool | None:
        """Whether an answer (True for yes) speaks for the output; None stays None. It is its own inverse."""
        return answer if answer is None else answer != self.is_fault


YES_IS_GOOD = Polar()


class Question(Polar):
    """An atomic yes/no question; "yes" means that the criterion is met (BinEval §3.1), or, beyond it, that a fault is
    there.

    Verdicts stay what the model said; what they are worth, :meth:`p_good` and :meth:`is_good` say.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        coerce_numbers_to_str=True,
        populate_by_name=True,
        serialize_by_alias=True,
    )

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    dimension: str = Field(default="overall", min_length=1)
    """The subject of the question; a file may call it ``criterion``."""
    violation: str | None = None
    """A short example of what the answer that speaks against an output looks like."""
    weight: Weight = 1.0
    rubric: str | None = None
    reference: str | None = None
    clause: str | None = Field(default=None, exclude_if=lambda clause: clause is None)
    """Words of the prompt that it was made from."""
    origin: RequirementOrigin | None = Field(default=None, alias="from", exclude_if=lambda origin: origin is None)
    """Where a requirement of a migration comes from."""
    support: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda support: support is None)
    """Share of the old outputs that keep it, on development."""
    pays_for_repeating: float | None = Field(default=None, exclude_if=lambda gain: gain is None)
    """Gain of P(good) of outputs that repeat their input, where a probe found a clear one; ``tune`` leaves it out."""
    sees: Sees = Field(default="all", exclude_if=lambda sees: sees == "all")
    """``output`` for a question that is about the output alone: a small model mixes up what it was made from with it.

    ``quote`` for one that is answered with words of the output, or with none: P(yes) is 1 - P(none). The judge then
    looks for what is asked, where a small one says of a whole text what it is like. The evaluator's prompt is not
    shown.

    ``last`` for one about the last reply of an output that is a conversation; a plain output is its last reply.
    ``call`` for one about the calls of tools, with their arguments and results, and nothing else; an output without
    any is told as "No tool was called."

    ``input``, ``context`` and ``reference`` for one about a relation: the judge is shown the sentences of the output
    and of that text that lie nearest to each other, and no prompt.
    """

    @property
    def is_relation(self) -> bool:
        """Whether it is about the output and another text of the example."""
        return self.sees in TEXTS

    @property
    def shown(self) -> Sees:
        """The view where a score, a comparison or a reason is asked for in place of a quote: the output alone."""
        return "output" if self.sees == "quote" else self.sees

    @model_validator(mode="before")
    @classmethod
    def _criterion_is_dimension(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "criterion" not in data:
            return data
        if "dimension" in data:
            raise ValueError("criterion is another name of dimension; give one of them")
        return {"dimension" if name == "criterion" else name: value for name, value in data.items()}

    @property
    def criterion(self) -> str:
        """The criterion for an output, in words: the text and, where yes is no praise, that it is none."""
        return marked(self.text, self.good)


CHECKS = "checks"
"""Dimension of a check that names none."""
_ABOUT_JUDGES = ("violation", "rubric", "reference", "sees")


class Computed(Question):
    """A criterion that code computes, without a call."""

    _folder: Path | None = PrivateAttr(None)
    """Directory in which the file of a function or schema is looked for first."""

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; the directory does not matter."""
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.id, self.text))

    def found_in(self, folder: Path) -> Self:
        """The criterion, whose function is looked for in a directory first."""
        found = self.model_copy()
        found._folder = folder
        return found

    @property
    def names_function(self) -> bool:
        """Whether it is computed by a function of a user's, which is found by its name."""
        raise NotImplementedError

    @property
    def folder(self) -> Path:
        """Directory in which its function is looked for first; the present one where nobody named any."""
        return self._folder or Path()


def refuse_what_is_asked(data: dict[str, Any], what: str) -> None:
    """Raise ValueError where a computed criterion has a field that only a model reads."""
    if others := [name for name in _ABOUT_JUDGES if data.get(name) not in (None, "all")]:
        raise ValueError(f"field '{others[0]}': nobody is asked, so {what} has no use for it")


class ComputedCheck(Computed):
    """A criterion that code decides, without a call: yes means that the output has the property, no that it lacks it.

    With ``good: no`` an output passes that lacks it, e.g. one that holds no web address.
    """

    kind: CheckKind
    value: str | None = None
    """The argument of the kind, see ``WANTED`` in :mod:`~askance.prompts.criteria.kinds`. A schema is JSON text."""
    text: str = Field(default="", min_length=1)
    dimension: str = Field(default=CHECKS, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in the text, and write a schema, or schemas by tool, that is a mapping as JSON text."""
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            return data
        refuse_what_is_asked(data, "a check")
        kind, value = data["kind"], data.get("value")
        if kind in (*OF_SCHEMAS, "arguments") and isinstance(value, (dict, bool)):
            value = json.dumps(value, ensure_ascii=False, indent=2)
        return {**data, "value": value, "text": data.get("text") or said_of(kind, value)}

    @model_validator(mode="after")
    def _value_fits(self) -> ComputedCheck:
        refuse_value(self.kind, self.value)
        return self

    @property
    def names_function(self) -> bool:
        """Whether it is of the kind ``checker``."""
        return self.kind == "checker"

    @property
    def stated(self) -> dict[str, Any]:
        """Its fields as they are written in a checklist, without what need not be said."""
        fields = self.model_dump(exclude_none=True, exclude={"sees"})
        usual = {"text": said_of(self.kind, self.value), "dimension": CHECKS, "weight": 1}
        return {name: value for name, value in fields.items() if value != usual.get(name, fields)}
