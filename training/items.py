"""What a scorer learns from: verdicts, ratings and preferences, each as questions about one output or two (LMUnit §3.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from ..agents.requests import EachAsking
from ..models.trained.network import after_rationale, scored_text
from ..prompts.examples import Example
from ..prompts.human_feedback import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..models.trained.network import ScoredText
    from ..prompts.checklist import Checklist, Question
    from ..prompts.preferences import Preference
    from ..prompts.prompt import Prompt

ItemKind = Literal["verdict", "rating", "preference", "rationale"]
Source = Literal["verdicts", "ratings", "preferences", "synthetic"]
SAME = 1e-9
"""Scores in [0, 1] no further apart are the same: means of the same ratings differ in their last digits."""


class TextOf(Protocol):
    """What a network reads of a question about an example's output."""

    def __call__(self, question: Question, example: Example) -> ScoredText:
        """Its text."""
        ...


def asked_with(prompt: Prompt) -> TextOf:
    """Texts with the conversation in which a judge with this prompt is asked for one word, yes or no."""

    def text_of(question: Question, example: Example) -> ScoredText:
        asking = EachAsking(prompt, (question,), explained=False, logprobs=True, temperature=0.0, seed=None)
        ask = next(asking.asks("", example, 0, 0))
        return scored_text(question, example, tuple(ask.messages))

    return text_of


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about an output, and what its answer counts for."""

    text: ScoredText
    weight: float = 1.0
    is_fault: bool = False
    """Whether yes speaks against the output: then 1 - ŷ counts."""


@dataclass(frozen=True, slots=True)
class TrainingItem:
    """One thing to be learned. The score of a side is the weighted mean of its probes' ŷ, in [0, 1]."""

    kind: ItemKind
    source: Source
    unit: str
    """Id of the example or pair that it comes from; which part it is in goes by that."""
    about: str
    """The question's id for a verdict, else the dimension."""
    left: tuple[Probe, ...]
    target: float
    """Wanted score in [0, 1]; for a preference 1 where left is preferred, 0 where right is, 0.5 for a tie."""
    right: tuple[Probe, ...] = ()
    """The other output of a preference."""
    weight: float = 1.0
    """How much it counts in its losses."""
    rationale: str | None = None
    """Of the kind ``rationale``: why, in words. Its one text is read after that."""

    @property
    def texts(self) -> list[ScoredText]:
        """Everything that has to be read for it."""
        return [each.text for each in (*self.left, *self.right)]


def verdict_item(
    question: Question, example: Example, p_yes: float, source: Source = "verdicts", *, text_of: TextOf = scored_text
) -> TrainingItem:
    """That a question about an output is answered with this P(yes), in [0, 1]."""
    return TrainingItem("verdict", source, example.id, question.id, (Probe(text_of(question, example)),), p_yes)


def reasoned(item: TrainingItem, why: str) -> TrainingItem:
    """The same score wanted after a rationale, which is learned too; of an item about one question."""
    (probe,) = item.left
    left = (replace(probe, text=after_rationale(probe.text, why)),)
    return replace(item, kind="rationale", left=left, rationale=why)


def commented_items(
    items: Iterable[TrainingItem], examples: Sequence[Example], checklist: Checklist
) -> Iterator[TrainingItem]:
    """What people scored and commented on, after their comments, of items about one question.

    A comment goes with a score of the same name; one on the whole output with an overall score, or where there is but one
    question.
    """
    by_id = {each.id: each for each in examples}
    one = len(checklist.questions) == 1
    for item in items:
        if item.source == "ratings" and item.kind != "preference" and len(item.left) == 1:
            names = {item.about, *((None, WHOLE) if one or item.about == WHOLE else ())}
            yield from (reasoned(item, each.text) for each in by_id[item.unit].comment if each.about in names)


def probes(
    checklist: Checklist, example: Example, dimension: str | None = None, *, text_of: TextOf = scored_text
) -> tuple[Probe, ...]:
    """The questions that a dimension's score is made of, with the example's weights; all where it is none of the checklist's."""
    weights = checklist.weights(checklist.section_of(example.metadata))
    whole = dimension not in checklist.dimensions
    return tuple(
        Probe(text_of(each, example), weights[each.id], each.is_fault)
        for each in checklist.questions
        if weights[each.id] > 0 and (whole or each.dimension == dimension)
    )


def rating_items(
    examples: Sequence[Example],
    checklist: Checklist,
    wanted: Mapping[str, Mapping[str, float | None]],
    *,
    text_of: TextOf = scored_text,
) -> list[TrainingItem]:
    """People's scores of dimensions; ``wanted`` has them in [0, 1] by example and dimension."""
    return [
        TrainingItem("rating", "ratings", example.id, dimension, asked, score)
        for example in examples
        for dimension, score in wanted.get(example.id, {}).items()
        if score is not None and (asked := probes(checklist, example, dimension, text_of=text_of))
    ]


def rating_pairs(items: Iterable[TrainingItem], group_of: Mapping[str, str]) -> list[TrainingItem]:
    """Preferences between neighbouring outputs of a document of which people rated one higher.

    Each rating stands in two pairs at most, so that their number grows with the ratings and not with their square.
    """
    found, last = [], dict[tuple[str, str], TrainingItem]()
    for item in items:
        place = (group_of[item.unit], item.about)
        before = last.get(place)
        if before is not None and abs(before.target - item.target) > SAME:
            target = float(before.target > item.target)
            found.append(TrainingItem("preference", "ratings", item.unit, item.about, before.left, target, item.left))
        last[place] = item
    return found


def preference_items(
    pairs: Sequence[Preference], checklist: Checklist, *, text_of: TextOf = scored_text
) -> list[TrainingItem]:
    """Preferences over the score on all questions."""
    found = []
    for pair in pairs:
        given = {name: value for name in ("section", "dataset") if (value := getattr(pair, name)) is not None}
        sides = [
            probes(checklist, Example(id=pair.id, input=pair.input, output=output, metadata=given), text_of=text_of)
            for output in (pair.output_a, pair.output_b)
        ]
        target = {"a": 1.0, "b": 0.0, "tie": 0.5}[pair.preferred]
        found.append(TrainingItem("preference", "preferences", pair.id, "overall", sides[0], target, sides[1]))
    return found


def deduplicated(items: Iterable[TrainingItem]) -> tuple[list[TrainingItem], int]:
    """The items with those that ask for the same made one, whose target is the mean; and how many went.

    A verdict that was asked for several times, or of the same texts under two ids, so counts once.
    """
    kept: dict[tuple[object, ...], list[TrainingItem]] = {}
    for item in items:
        kept.setdefault((item.kind, item.source, item.left, item.right), []).append(item)
    found = [
        same[0] if len(same) == 1 else replace(same[0], target=sum(each.target for each in same) / len(same))
        for same in kept.values()
    ]
    return found, sum(len(same) - 1 for same in kept.values())
