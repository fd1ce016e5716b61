"""Measures: criteria that are a number. A range or a fitted curve maps the number to [0, 1].

``agents/measures/`` computes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field, PrivateAttr, model_serializer, model_validator

from .question import TEXTS as TEXTS
from .question import Against as Against
from .question import Computed, refuse_what_is_asked

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pydantic import SerializerFunctionWrapHandler


class MeasureKind(NamedTuple):
    """One of the measures that come with askance."""

    said: str
    """The question that the measure answers; ``{}`` stands for the name of the other text."""
    told: str
    """The words before the number in a sentence on an output."""
    is_share: bool = True
    """Whether the number is in [0, 1]; a count needs a range or a curve."""
    good: Literal["yes", "no"] = "yes"
    """The default of the end that speaks for an output: ``yes`` for high, ``no`` for low."""


SIMILAR: dict[str, MeasureKind] = {
    "similarity": MeasureKind("How similar are the output and the {}?", "similarity to the {}"),
    "nearest_sentence": MeasureKind(
        "How near to the {} is the output's nearest sentence?", "nearest sentence to the {}: similarity"
    ),
    "least_supported": MeasureKind(
        "How near to a sentence of the {} is the output's least supported sentence?",
        "least supported sentence, beside the {}: similarity",
    ),
    "mean_supported": MeasureKind(
        "How near to sentences of the {} are the output's sentences?",
        "sentences beside their nearest ones of the {}: mean similarity",
    ),
}
"""Measures of a relation that need a sentence embedder (extra ``memory``)."""
RELATIONS: dict[str, MeasureKind] = SIMILAR | {
    "words_found": MeasureKind("Which share of the output's words does the {} have?", "words that the {} has: share"),
    "word_pairs_found": MeasureKind(
        "Which share of the output's word pairs does the {} have?", "word pairs that the {} has: share"
    ),
    "names_found": MeasureKind("Which share of the output's names does the {} have?", "names that the {} has: share"),
    "numbers_found": MeasureKind(
        "Which share of the output's numbers does the {} have?", "numbers that the {} has: share"
    ),
    "names_new": MeasureKind("How many names of the output does the {} lack?", "names that the {} lacks:", False, "no"),
    "numbers_new": MeasureKind(
        "How many numbers of the output does the {} lack?", "numbers that the {} lacks:", False, "no"
    ),
    "covered": MeasureKind(
        "Which share of the words of the {} does the output have?", "words of the {} that it has: share"
    ),
    "longest_copy": MeasureKind(
        "Which share of the output is its longest copy from the {}?", "longest copy from the {}: share"
    ),
}
FORMS: dict[str, MeasureKind] = {
    "words": MeasureKind("How many words does the output have?", "words:", False),
    "sentences": MeasureKind("How many sentences does the output have?", "sentences:", False),
    "list_marks": MeasureKind("How many points of lists does the output have?", "points of lists:", False),
    "repetition": MeasureKind(
        "How much does the output repeat its own word pairs?", "repeated word pairs: share", True, "no"
    ),
    "readability": MeasureKind("How hard is the output to read?", "readability (LIX):", False, "no"),
}
MEASURES = RELATIONS | FORMS
"""All measures that come with askance."""
_ENDS = {"high": "yes", "low": "no"}
_NAMED = re.compile(r"([a-z_]+)\((\w+)\)")


def parse_measure(text: str) -> tuple[str, Against | None]:
    """Split ``nearest_sentence(input)`` into the name and the text; ``words`` or a function has None as its text.
    Raises ValueError if there is no such measure, or no such text."""
    if ":" in text:
        return text, None
    found = _NAMED.fullmatch(text.replace(" ", ""))
    name = text if found is None else found[1]
    if name in FORMS and found is None:
        return name, None
    if name in RELATIONS:
        if found is None or found[2] not in TEXTS:
            raise ValueError(
                f"field 'measure': say which text it is taken against, e.g. {name}(input); texts are {', '.join(TEXTS)}"
            )
        return name, found[2]
    known = ", ".join([*(f"{each}(input)" for each in RELATIONS), *FORMS])
    raise ValueError(
        f"field 'measure': there is no measure '{text}'; there are {known}, and functions, as module:function or "
        "file.py:function"
    )


def said_of_measure(text: str) -> str:
    """Return the question that a measure answers, in words."""
    name, against = parse_measure(text)
    kind = MEASURES.get(name)
    return f"What does '{name.rpartition(':')[2]}' give for the output?" if kind is None else kind.said.format(against)


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    values, shares = zip(*points, strict=True)
    if list(values) != sorted(set(values)) or list(shares) != sorted(shares) or not 0 <= shares[0] <= shares[-1] <= 1:
        raise ValueError("points are pairs of a value and a share in [0, 1], and both rise")
    return points


def _two_ends(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] < ends[1]:
        raise ValueError(f"the lower end comes first, e.g. [0, 5], not [{ends[0]:g}, {ends[1]:g}]")
    return ends


Curve = Annotated[tuple[tuple[float, float], ...], Field(min_length=1), AfterValidator(_rising)]
"""Points (value, share in [0, 1]) of a rising curve."""


class ComputedMeasure(Computed):
    """A criterion that is a number. Its share in [0, 1] takes the place of a question's P(yes)."""

    measure: str = Field(min_length=1)
    """The measure: ``nearest_sentence(input)``, ``words``, or a user's function."""
    range: Annotated[tuple[float, float], AfterValidator(_two_ends)] | None = None
    """The values that stand for 0 and 1; values beyond count as the nearer end."""
    curve: Curve | None = None
    """A curve that was fitted to people's scores."""
    text: str = Field(default="", min_length=1)
    dimension: str = Field(default="overall", min_length=1)
    _name: str = PrivateAttr("")
    _against: Against | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in the text, and read the good end, which a file calls ``high`` or ``low``."""
        if not isinstance(data, dict) or not isinstance(data.get("measure"), str):
            return data
        refuse_what_is_asked(data, "a measure")
        kind = MEASURES.get(parse_measure(data["measure"])[0])
        good = data.get("good", "yes" if kind is None else kind.good)
        if isinstance(good, str) and good.strip().lower() not in (*_ENDS, *_ENDS.values()):
            raise ValueError(f"field 'good': it is high or low, the end that speaks for the output, not '{good}'")
        good = _ENDS.get(good.strip().lower(), good) if isinstance(good, str) else good
        return {**data, "good": good, "text": data.get("text") or said_of_measure(data["measure"])}

    @model_validator(mode="after")
    def _has_a_scale(self) -> ComputedMeasure:
        self._name, self._against = parse_measure(self.measure)
        if self.range is not None and self.curve is not None:
            raise ValueError("field 'range': a curve brings the value to [0, 1] already; leave one of them out")
        kind = MEASURES.get(self._name)
        if kind is not None and not kind.is_share and self.range is None and self.curve is None:
            raise ValueError(f"field 'range': {self.measure} is no share; say which values stand for 0 and 1: [0, 5]")
        return self

    @model_serializer(mode="wrap")
    def _default_left_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Always write the good end, because its default depends on the measure."""
        fields: dict[str, Any] = handler(self)
        return fields | {"good": "low" if self.is_fault else "high"}

    @property
    def criterion(self) -> str:
        """The text, with a note if a low number is good."""
        return f"{self.text} (low is good)" if self.is_fault else self.text

    @property
    def name(self) -> str:
        """The measure's name without the text, or the function."""
        return self._name

    @property
    def against(self) -> Against | None:
        """The text of the example that the output is measured against; None if there is none."""
        return self._against

    @property
    def names_function(self) -> bool:
        """Whether the measure is a user's function."""
        return ":" in self._name

    def share(self, value: float) -> float:
        """Map a value to [0, 1]. Raises ValueError if it is outside and comes from a user's function without range and
        curve."""
        if self.curve is not None:
            return float(along(self.curve, np.array([value]))[0])
        if self.range is None and self.names_function and not 0 <= value <= 1:
            raise ValueError(f"{value:g} is outside [0, 1]; give the measure a range, e.g. range: [0, 5]")
        low, high = self.range or (0.0, 1.0)
        return min(1.0, max(0.0, (value - low) / (high - low)))

    @property
    def stated(self) -> dict[str, Any]:
        """The fields as a checklist file has them, without defaults."""
        fields = self.model_dump(mode="json", exclude_none=True, exclude={"sees"})
        usual = {"text": said_of_measure(self.measure), "dimension": "overall", "weight": 1}
        kind = MEASURES.get(self.name)
        said = {name: value for name, value in fields.items() if name != "good" and value != usual.get(name, fields)}
        is_usual = self.good == ("yes" if kind is None else kind.good)
        return said if is_usual else said | {"good": "low" if self.is_fault else "high"}


def along(curve: Curve, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of values on a curve: linear between its points, constant beyond them. ``values`` and the
    result have shape (n,)."""
    points = np.array(curve)
    return np.asarray(np.interp(values, points[:, 0], points[:, 1]))
