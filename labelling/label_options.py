"""Settings of ``label``, and the steps of ordinal labels, which the page offers in place of pass and fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..prompts.errors import InputError
from ..prompts.human_feedback import LabelScale, LabelWords
from ..settings import Heading

Order = Literal["auto", "informative", "disagreement", "uncertain", "untested", "spread", "random", "file"]
MOST_STEPS = 10
"""Maximum number of steps of a label, because each step needs a key."""


class LabelOptions(BaseModel):
    """Settings of what is asked, in which order, and where the page is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rater: str = Field(
        "me", min_length=1, max_length=80, description="Who labels; the labels of each rater are kept apart."
    )
    dimension: str = Field(
        "overall", min_length=1, description="What pass and fail are about: a dimension (criterion), or overall."
    )
    order: Order = Field(
        "auto",
        description="What comes first. informative: where judges disagree, the judge is unsure or questions are "
        "untested (disagreement, uncertain, untested: one of these), every third output drawn at random; spread: "
        "unlike outputs; auto: informative where a judge is given, else spread.",
    )
    gain: Annotated[float, Heading.LABELS] = Field(
        0.2,
        ge=0.001,
        lt=1,
        description="Gain in Spearman that the acceptance test is to find, for how many labels it takes.",
    )
    port: Annotated[int, Heading.LABELS] = Field(
        0, ge=0, le=65535, description="Port of the page on this machine; 0 takes a free one."
    )
    seed: Annotated[int, Heading.MODELS] = Field(42, description="Of what is drawn at random.")
    field: Annotated[dict[str, str | tuple[str, ...]], Heading.DATA.at(1)] = Field(
        default_factory=dict, description="Rename a column: our_name=column."
    )
    labels: Annotated[LabelWords, Heading.DATA.at(2)] = Field(
        default_factory=dict, description="Further words that labels in the data are in, e.g. good=fine,bad=poor."
    )

    label_scale: Annotated[LabelScale, Heading.DATA.at(4)] = Field(
        None,
        description="Words that people's labels are in, from worst to best, which count as 1, 2 and so on; the page "
        "offers them in place of pass and fail.",
    )

    human_scale: Annotated[tuple[float, float] | None, Heading.DATA.at(3)] = Field(
        None, description="Label in whole steps from the worst to the best, e.g. 1 5, in place of pass and fail."
    )

    @model_validator(mode="after")
    def _one_scale(self) -> LabelOptions:
        if self.human_scale is not None and self.label_scale is not None:
            raise ValueError("human_scale: the words of label_scale are the steps; leave one of them out")
        if self.human_scale is not None and self.human_scale[0] == self.human_scale[1]:
            raise ValueError("human_scale: the worst and the best score must differ")
        return self

    @field_validator("rater", "dimension")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        return plain_name(name)


def plain_name(name: str) -> str:
    """Return the name without spaces around it. Raises ValueError if it is empty, or cannot be printed."""
    if not name.strip() or not name.isprintable():
        raise ValueError("a name in plain signs is needed")
    return name.strip()


@dataclass(frozen=True)
class LabelSteps:
    """Steps of a label from worst to best: whole numbers, or words that count from 1."""

    values: tuple[float, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, scale: tuple[float, float] | None, words: Sequence[str] | None) -> LabelSteps | None:
        """Make steps of the ``words``, or of the whole numbers from the worst to the best of ``scale``; None if neither
        is given. Raises InputError if the ends are not whole numbers, or there are too many steps."""
        if words is not None:
            values, names = [float(place) for place in range(1, len(words) + 1)], list(words)
        elif scale is not None:
            worst, best = scale
            if worst % 1 or best % 1:
                raise InputError(
                    f"human_scale: labels are whole steps, and {worst:g} to {best:g} are no whole numbers."
                )
            ascending = range(int(min(scale)), int(max(scale)) + 1)
            values = [float(each) for each in (ascending if worst < best else reversed(ascending))]
            names = [f"{each:g}" for each in values]
        else:
            return None
        if len(values) > MOST_STEPS:
            raise InputError(f"There are {len(values)} steps of a label, and the page offers {MOST_STEPS} at most.")
        return cls(tuple(values), tuple(names))

    def value(self, said: Any) -> float | None:
        """Return the number of a step, given as a number or as a word in upper or lower case; None for other values."""
        if isinstance(said, str):
            plain = [name.casefold() for name in self.names]
            word = said.strip().casefold()
            return self.values[plain.index(word)] if word in plain else None
        return float(said) if not isinstance(said, bool) and said in self.values else None


def half(rating: float, steps: LabelSteps | None) -> bool | None:
    """Whether a rating, or a mean of ratings, is in the better half of the steps; None in the middle. Without
    ``steps``, ratings are labels, 0 and 1."""
    worst, best = (0.0, 1.0) if steps is None else (steps.values[0], steps.values[-1])
    middle = (worst + best) / 2
    return None if rating == middle else (rating > middle) == (best > worst)
