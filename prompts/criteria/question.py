"""Criteria of outputs: questions that a model answers, and checks that code decides."""

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
"""The mark, in lists of questions, of a question whose yes speaks against the output."""
GoodAnswer = Literal["yes", "no"]
Sees = Literal["all", "output", "quote", "last", "call", "input", "context", "reference"]
"""The part of an example that a judge sees with a question. ``all``: everything that its prompt shows. ``output``: the
output alone. ``quote``: the output alone, to quote the words that make the answer yes. ``last``: the last reply of a
conversation. ``call``: its calls of tools. Others: the related sentences of the output and of that text."""
Against = Literal["input", "context", "reference"]
"""A text of an example that a question about a relation, or a measure, compares the output with."""
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
"""The mark, in lists of questions, of a question that does not see everything."""
RequirementOrigin = Literal["contract", "clause", "contrast", "judge", "person"]
"""Source of a requirement of a migration: found in old outputs, stated by the old prompt, a difference between old and
new outputs, a learned judge, or a person."""
_WORDS = {"true": "yes", "false": "no"}


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):  # which would count as 1 or 0
        raise ValueError(f"a number is needed, not {json.dumps(value)}")
    return value


Weight = Annotated[float, BeforeValidator(_no_truth), Field(ge=0, allow_inf_nan=False)]
"""The weight of a question in a score, at least 0."""


def marked(text: str, good: str, sees: Sees = "all") -> str:
    """Return a question for a list, with marks if it looks for a fault or does not see everything."""
    said = [*([FAULT] if good == "no" else []), *([SEEN[sees]] if sees in SEEN else [])]
    return f"{text} ({', '.join(said)})" if said else text


class Polar(BaseModel):
    """The polarity of a question: which answer speaks for the output."""

    model_config = ConfigDict(frozen=True)

    good: GoodAnswer = "yes"
    """``no`` for a question that looks for a fault. The model is asked the same either way."""

    @field_validator("good", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        """Read yes and no in upper or lower case, and the true and false that YAML or JSON makes of them."""
        word = str(value).strip().lower() if isinstance(value, (str, bool)) else ""
        word = _WORDS.get(word, word)
        if word not in ("yes", "no"):
            raise ValueError(
                f"it is yes or no, the answer that speaks for the output, not {json.dumps(value, default=str)}"
            )
        return word

    @model_serializer(mode="wrap")
    def _default_left_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write ``good`` only if it is ``no``, after all other fields."""
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
        """Turn P(yes), or 1 and 0 for yes and no, into P(the answer that speaks for the output).

        None stays None. The function is its own inverse: it also turns P(good) into P(yes).
        """
        return p_yes if p_yes is None or not self.is_fault else 1.0 - p_yes

    @overload
    def is_good(self, answer: bool) -> bool: ...
    @overload
    def is_good(self, answer: bool | None) -> bool | None: ...
    def is_good(self, answer: bool | None) -> bool | None:
        """Whether an answer (True for yes) speaks for the output; None stays None. Its own inverse."""
        return answer if answer is None else answer != self.is_fault


YES_IS_GOOD = Polar()


class Question(Polar):
    """An atomic yes/no question. Yes means that the criterion is met (BinEval §3.1); in addition to BinEval, yes may
    also mean that there is a fault.

    Verdicts keep the model's own answer; :meth:`p_good` and :meth:`is_good` turn it into one for or against the output.
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
    """A short example of an output for which the answer speaks against it (to the judge: "A violation would be")."""
    weight: Weight = 1.0
    rubric: str | None = None
    reference: str | None = None
    clause: str | None = Field(default=None, exclude_if=lambda clause: clause is None)
    """The words of the prompt that the question was made from."""
    origin: RequirementOrigin | None = Field(default=None, alias="from", exclude_if=lambda origin: origin is None)
    """The source of the question, if it is a requirement of a migration."""
    support: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda support: support is None)
    """Share of the old outputs that keep the requirement, on development."""
    pays_for_repeating: float | None = Field(default=None, exclude_if=lambda gain: gain is None)
    """Gain in P(good) of outputs that repeat their input, if a probe found a clear one; ``tune`` then leaves the
    question out."""
    sees: Sees = Field(default="all", exclude_if=lambda sees: sees == "all")
    """``output``: the question is about the output alone. A small model confuses the output with the other texts.

    ``quote``: the question is answered with words of the output, or with none; P(yes) is 1 - P(none). The judge then
    searches for the words, while a small judge otherwise describes the whole text. The evaluator's prompt is not shown.

    ``last``: the question is about the last reply of an output that is a conversation; a plain output is its own last
    reply. ``call``: it is about the calls of tools only, with their arguments and results; for an output without calls
    the judge reads "No tool was called."

    ``input``, ``context`` and ``reference``: the question is about a relation. The judge sees the sentences of the
    output and of that text that are nearest to each other, and no prompt.
    """

    @property
    def is_relation(self) -> bool:
        """Whether the question is about the output and another text of the example."""
        return self.sees in TEXTS

    @property
    def shown(self) -> Sees:
        """The part that a judge sees when it gives a score, a comparison or a reason: ``output`` for ``quote``."""
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
        """The criterion in words: the text, with a mark if yes means a fault."""
        return marked(self.text, self.good)


CHECKS = "checks"
"""The dimension of a check that names none."""
_ABOUT_JUDGES = ("violation", "rubric", "reference", "sees")


class Computed(Question):
    """A criterion that code computes, without a call of a model."""

    _folder: Path | None = PrivateAttr(None)
    """The directory that is searched first for the file of a function."""

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; the directory does not matter."""
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.id, self.text))

    def found_in(self, folder: Path) -> Self:
        """Return the criterion; its function is looked for in ``folder`` first."""
        found = self.model_copy()
        found._folder = folder
        return found

    @property
    def names_function(self) -> bool:
        """Whether a user's function, given by its name, computes the criterion."""
        raise NotImplementedError

    @property
    def folder(self) -> Path:
        """The directory that is searched first for the criterion's function; by default the current one."""
        return self._folder or Path()


def refuse_what_is_asked(data: dict[str, Any], what: str) -> None:
    """Raise ValueError if a computed criterion has a field that only a model reads."""
    if others := [name for name in _ABOUT_JUDGES if data.get(name) not in (None, "all")]:
        raise ValueError(f"field '{others[0]}': nobody is asked, so {what} has no use for it")


class ComputedCheck(Computed):
    """A criterion that code decides, without a call of a model: yes if the output has the property, else no.

    With ``good: no``, an output passes if it lacks the property, e.g. if it holds no web address.
    """

    kind: CheckKind
    value: str | None = None
    """The argument of the kind, see ``WANTED`` in :mod:`~askance.prompts.criteria.kinds`. A schema is JSON text."""
    text: str = Field(default="", min_length=1)
    dimension: str = Field(default=CHECKS, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in the text, and turn a schema, or schemas by tool, from a mapping into JSON text."""
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
        """Whether the check is of the kind ``checker``."""
        return self.kind == "checker"

    @property
    def stated(self) -> dict[str, Any]:
        """The fields as a checklist file has them, without defaults."""
        fields = self.model_dump(exclude_none=True, exclude={"sees"})
        usual = {"text": said_of(self.kind, self.value), "dimension": CHECKS, "weight": 1}
        return {name: value for name, value in fields.items() if value != usual.get(name, fields)}
