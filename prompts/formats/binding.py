"""The fields and columns of an example that the variables of a prompt stand for.

A usual name such as ``article`` is taken for the field that it usually means. Nothing is guessed: if a name may mean
two things, the user has to say which (``--variable``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Annotated, Any, Protocol

from pydantic import BeforeValidator

from ..errors import InputError, did_you_mean
from ..examples import Example
from ..field_map import FieldMap
from ..json_documents import at
from ..mapping.published import USUAL
from ..rows import column
from .form import COLUMN, FIELDS, GIVEN, PromptForm

NAMES = {
    **{ours: tuple(names.split()) for ours, names in USUAL.items()},
    "reference": ("reference", "expected", "expected_output", "ground_truth", "gold", "reference_answer"),
    "context": ("context", "contexts", "documents", "passages", "docs", "retrieved_context", "retrieved_contexts"),
}
"""Usual names of each field, in lower case."""


def parse_variables(given: Any) -> Any:
    """Turn ``["question=input"]`` into a mapping from variable to meaning; a mapping stays as it is. Raises ValueError
    if a pair is not of the form ``variable=field``, or a variable is named twice."""
    if not isinstance(given, (str, list, tuple)):
        return given
    found: dict[str, str] = {}
    for pair in [given] if isinstance(given, str) else given:
        name, equals, means = str(pair).partition("=")
        if not (equals and name.strip() and means.strip()):
            raise ValueError(f"'{pair}': write it as variable=field, e.g. question=input")
        if name.strip() in found:
            raise ValueError(f"'{name.strip()}' is given twice; a variable stands for one thing")
        found[name.strip()] = means.strip()
    return found


Variables = Annotated[dict[str, str], BeforeValidator(parse_variables)]
"""A setting that takes what :func:`parse_variables` takes."""


@dataclass(frozen=True)
class Binding:
    """The fields and columns that variables may stand for."""

    examples: Sequence[Example] | None = None
    """The data; None if the columns are not known yet."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Variable to the meaning that the user gave it."""
    fields: FieldMap = field(default_factory=dict)
    """The field map that the examples were read with."""
    asks: bool = True
    """Whether ``question`` stands for the question to the judge; else it is a variable like others."""
    writes: bool = False
    """Whether the prompt is a generator's, which sees no output and no reference."""

    def bound(self, form: PromptForm, text: str, where: str) -> PromptForm:
        """Return the form with the meaning of every variable of the text. Raises InputError, with the option that mends
        it, if a variable stands for nothing, or may stand for two things."""
        names = list(dict.fromkeys(form.variables_in(text)))
        exact = {name: name for name in names if self._is_ours(name) and name not in self.given}
        means = {name: exact.get(name) or self._meaning(name, form, set(exact.values()), where) for name in names}
        means = {name: means[name] for name in names}
        taken: dict[str, str] = {}
        for name, meaning in means.items():
            if meaning in taken and meaning in FIELDS and not {name, taken[meaning]} & self.given.keys():
                raise InputError(
                    f"{where}: {form.spelled(taken[meaning])} and {form.spelled(name)} both usually stand for the "
                    f"{meaning}. Say what one of them stands for: --variable {name}=FIELD_OR_COLUMN"
                )
            taken.setdefault(meaning, name)
        self._refuse_unclear_question(means, form, where)
        return replace(form, variables=means, is_checked=self.examples is not None)

    def _is_ours(self, name: str) -> bool:
        return name in FIELDS and (self.asks or name != "question")

    def _meaning(self, name: str, form: PromptForm, exact: set[str], where: str) -> str:
        if name in self.given:
            return self._as_given(name, where)
        if name in form.found.given:
            return f"{GIVEN}{form.found.given[name]}"
        for ours, columns in self.fields.items():
            if columns == name and ours in FIELDS:
                return ours
        column_name, usual = self._column(name) or self._column(name.removeprefix(COLUMN)), self._usual(name, exact)
        if column_name is not None and usual is not None and not (self.writes and usual in ("output", "reference")):
            raise InputError(
                f"{where}: {form.spelled(name)} may be the {usual} or the column '{column_name}'. Say which: "
                f"--variable {name}={usual}, or --variable {name}={COLUMN}{column_name}"
            )
        if column_name is not None:
            return f"{COLUMN}{column_name}"
        if usual is not None:
            return usual
        if self.examples is None and not did_you_mean(name, FIELDS):
            return f"{COLUMN}{name}"
        raise InputError(
            f"{where}: no example has a column '{name}' for {form.spelled(name)}.{self._nearest(name, name)}"
        )

    def _as_given(self, name: str, where: str) -> str:
        wanted = self.given[name]
        if wanted.startswith(GIVEN):
            return wanted
        if wanted in FIELDS and (self.asks or wanted != "question"):
            return wanted
        column_name = self._column(wanted.removeprefix(COLUMN))
        if column_name is None and self.examples is not None:
            plain = wanted.removeprefix(COLUMN)
            raise InputError(f"{where}: no example has a column '{plain}' for {name}.{self._nearest(plain, name)}")
        return f"{COLUMN}{column_name or wanted.removeprefix(COLUMN)}"

    def _column(self, name: str) -> str | None:
        """Return the column of this name, in upper or lower case, or the path to a value; None if no example has it."""
        columns = self._columns
        if name in columns:
            return name
        found = [each for each in columns if each.casefold() == name.casefold()]
        if len(found) == 1:
            return found[0]
        if "." in name and self.examples is not None:
            return name if any(at(each, name) is not None for each in column(self.examples, "metadata")) else None
        return None

    @property
    def _columns(self) -> list[str]:
        rows = () if self.examples is None else column(self.examples, "metadata")
        return list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))

    def _usual(self, name: str, exact: set[str]) -> str | None:
        """Return the field that a name usually stands for; None if the field is also used by its own name, or no
        example has it."""
        last = name.rpartition(".")[2].casefold()
        for ours, names in NAMES.items():
            if last in names and ours not in exact and self._has(ours):
                return ours
        return None

    def _has(self, ours: str) -> bool:
        if self.examples is None or ours in ("input", "output"):
            return True
        return any(text for text in column(self.examples, ours))

    def _nearest(self, wanted: str, name: str) -> str:
        """Suggest the nearest field or column, with the option that binds the variable to it."""
        known = {each.casefold(): each for each in (*FIELDS[:4], *self._columns)}
        near = get_close_matches(wanted.casefold(), known, 1, 0.6)
        if near:
            return f" Did you mean '{known[near[0]]}'? --variable {name}={known[near[0]]}"
        there = ", ".join(known.values())
        return f" Say what it stands for: --variable {name}=FIELD_OR_COLUMN (there are: {there})."

    def _refuse_unclear_question(self, means: Mapping[str, str], form: PromptForm, where: str) -> None:
        """Raise InputError if ``question`` may be the input: none is, and another field goes by a foreign name."""
        if not self.asks or means.get("question") != "question" or "question" in self.given:
            return
        others = {name: ours for name, ours in means.items() if ours in FIELDS and name != "question"}
        if "input" not in others.values() and any(name != ours for name, ours in others.items()):
            raise InputError(
                f"{where}: {form.spelled('question')} may be the checklist's question or the input. Say which: --variable "
                "question=question, or --variable question=input"
            )


class ReadsExamples(Protocol):
    """Settings for reading examples and prompts."""

    variable: dict[str, str]
    field: dict[str, str | tuple[str, ...]]


def binding_of(examples: Sequence[Example] | None, settings: ReadsExamples | None) -> Binding:
    """Make the binding for these examples and settings."""
    if settings is None:
        return Binding(examples)
    judging = getattr(settings, "judging", None)  # a judge in people's own words gets no question from us
    return Binding(examples, settings.variable, settings.field, asks=getattr(judging, "reads", None) is None)


UNBOUND = Binding()
"""A binding without examples and without meanings from the user."""


def refuse_unused(given: Mapping[str, str], forms: Iterable[tuple[PromptForm | None, Sequence[str]]]) -> None:
    """Raise InputError if the user gave a meaning to a variable that no prompt has."""
    variables = {name for form, placeholders in forms for name in (placeholders if form is None else form.variables)}
    for name in given.keys() - variables:
        listed = ", ".join(sorted(variables)) or "none"
        raise InputError(
            f"variable {name}={given[name]}: no prompt has a variable '{name}' (there are: {listed})."
            f"{did_you_mean(name, variables)}"
        )
