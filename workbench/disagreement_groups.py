"""Disagreements between a judge and people, grouped by question and by people's comments.

The examples are those that a run learns from: development, and validation once a look at it was counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Literal

import numpy as np

from ..labelling.desk import majority
from ..memory.embedders import Embedder, SharedWordsEmbedder, embedder
from ..optimizer.questions.proposers import LIKE_ANOTHER, first_of_meaning
from ..prompts.checklist import Question
from ..prompts.errors import MissingExtraError
from ..prompts.examples import Example
from ..prompts.human_feedback import known_ratings, one_line
from ..stats.pass_fail import HALF
from .judge_bench import JudgeBench, Split

Part = Literal["blamed", "missed", "outweighed", "answered"]
PARTS: Mapping[Part, str] = {
    "blamed": "spoke against an output that people like",
    "missed": "saw nothing, and people say it is about this",
    "outweighed": "saw it, and the score still passes",
    "answered": "was answered otherwise by people",
}
"""Parts that a question can have in a disagreement, in words."""
UNSEEN = "unseen"
"""Group of the outputs with a disagreement in which no question has a part."""
MOST_BY_MEANING = 500
"""Most different comments that a language model's embedder groups. More comments are grouped by their words, which is
quick."""
MOST_GROUPED = 4_000
"""Most different comments that are grouped at all, those on most disagreements first."""


@dataclass(frozen=True)
class ComparedOutput:
    """An output with the scores by the judge and by people."""

    example: Example
    split: Split
    score: float | None
    passes: bool | None
    """Whether the judge passes the output; None without a score."""
    people: float | None
    """People's score in [0, 1]; 1 and 0 for labels."""
    off: Literal["lenient", "strict"] | None
    """Whether the judge is kinder or stricter than people; None if they agree, or if one of the scores is missing."""
    parts: Mapping[str, Part]
    """Parts of the questions in the disagreement, by question id."""

    @property
    def comments(self) -> list[str]:
        """People's comments, each in one line."""
        return [one_line(each.text) for each in self.example.comment]

    @property
    def differs(self) -> bool:
        """Whether the judge and people differ in the score or in an answer."""
        return self.off is not None or "answered" in self.parts.values()


def outputs_of(bench: JudgeBench, splits: Sequence[Split], distance: float) -> Iterator[ComparedOutput]:
    """Yield every output of the splits. Without labels, the judge and people differ if their scores are more than
    ``distance`` apart, in [0, 1]."""
    for split in splits:
        part, state = bench.parts[split], bench.kept[split]
        gap = state.scores - part.wanted if part.labels is None else state.passed - part.labels
        tolerance = distance if part.labels is None else 0.0
        for place, example in enumerate(part.examples):
            direction: Literal["lenient", "strict"] | None = None
            if np.isfinite(gap[place]) and abs(gap[place]) > tolerance:
                direction = "lenient" if gap[place] > 0 else "strict"
            parts: dict[str, Part] = {}
            for question, worth in zip(bench.judge.checklist.questions, part.worth[place].tolist(), strict=True):
                if not np.isnan(worth) and (what := _part(bench, question, worth, example, direction)) is not None:
                    parts[question.id] = what
            score, people = (
                None if np.isnan(each) else float(each) for each in (state.decided[place], part.of_people[place])
            )
            passes = None if score is None else bool(state.passed[place])
            yield ComparedOutput(example, split, score, passes, people, direction, parts)


def _part(bench: JudgeBench, question: Question, worth: float, example: Example, off: str | None) -> Part | None:
    """Return the part of a question in the disagreement on one example; None if it has none."""
    content = worth > HALF
    ratings = known_ratings(example.human.get(question.id, ()))
    if question.id not in bench.judge.checklist.dimensions and ratings:
        theirs = majority([float(each) for each in ratings])
        if theirs is not None and question.is_good(theirs) is not content:
            return "answered"
    if off == "strict":
        return None if content or not question.weight else "blamed"
    if off is None:
        return None
    if not content:
        return "outweighed"
    origin = bench.judge.origins.get(question.id)
    # A rejected output has one fault of many. So a question that saw no fault has a part only if a person answered the
    # question, commented on it, or wrote the comment on this example that the question came from.
    meant = any(each.about == question.id for each in example.comment)
    return "missed" if meant or (origin is not None and example.id in origin.sources) else None


@dataclass(frozen=True)
class CommentGroup:
    """Comments with much the same meaning."""

    id: str
    """Id of the group. It stays the same as long as the first comment is there, so that an address can be shared."""
    comments: Sequence[str]
    """The different comments, those on most disagreements first."""
    outputs: Sequence[int]
    """Places of the outputs with these comments."""


@dataclass
class GroupedOutputs:
    """The outputs of a run in groups."""

    outputs: Sequence[ComparedOutput]
    questions: Sequence[Question]
    embedder: str
    said: str = field(default="", init=False)
    """How the comments were grouped."""

    @cached_property
    def by_question(self) -> dict[str, list[int]]:
        """Places of the outputs by question id. ``unseen`` has the disagreements in which no question has a part."""
        found: dict[str, list[int]] = {each.id: [] for each in self.questions}
        found[UNSEEN] = []
        for place, each in enumerate(self.outputs):
            for name in each.parts:
                found[name].append(place)
            if each.off is not None and not each.parts:
                found[UNSEEN].append(place)
        return found

    @cached_property
    def by_comment(self) -> dict[str, list[int]]:
        """Places of the outputs by comment (in one line), the comments on most disagreements first."""
        found: dict[str, list[int]] = {}
        for place, each in enumerate(self.outputs):
            for text in dict.fromkeys(each.comments):
                found.setdefault(text, []).append(place)
        differ = {text: sum(self.outputs[place].differs for place in found[text]) for text in found}
        return dict(sorted(found.items(), key=lambda each: (-differ[each[0]], -len(each[1]))))

    @cached_property
    def comment_groups(self) -> dict[str, CommentGroup]:
        """Groups of similar comments by id, those with most disagreements first."""
        texts = list(self.by_comment)[:MOST_GROUPED]
        if not texts:
            return {}
        means = self._embedder(len(texts))
        first = first_of_meaning(means.embed(texts), LIKE_ANOTHER)
        members: dict[int, list[str]] = {}
        for place, text in enumerate(texts):
            members.setdefault(first[place], []).append(text)
        found = []
        for theirs in members.values():
            places = sorted({place for text in theirs for place in self.by_comment[text]})
            found.append(CommentGroup(sha256(theirs[0].encode()).hexdigest()[:12], theirs, places))
        found.sort(key=lambda each: (-sum(self.outputs[place].differs for place in each.outputs), -len(each.outputs)))
        return {each.id: each for each in found}

    def _embedder(self, many: int) -> Embedder:
        """Return the run's embedder; or shared words, if it is not installed or there are too many comments. ``said``
        tells which."""
        left = len(self.by_comment) - many
        note = f" {left:,} more comments, on fewer disagreements, are not grouped." if left else ""
        if self.embedder == SharedWordsEmbedder.name or many > MOST_BY_MEANING:
            self.said = f"Grouped by the words that comments share.{note}"
            return SharedWordsEmbedder()
        try:
            found = embedder(self.embedder)
        except MissingExtraError as error:
            self.said = f"Grouped by the words that comments share, as {self.embedder} is missing. {error}{note}"
            return SharedWordsEmbedder()
        self.said = f"Grouped by meaning ({self.embedder}).{note}"
        return found

    def group(self, name: str) -> Sequence[int]:
        """Return the places of a group's outputs. ``name`` is ``question:ID``, ``comment:ID`` or ``all``."""
        kind, _, key = name.partition(":")
        if kind == "question":
            return self.by_question.get(key, ())
        if kind == "comment":
            return self.comment_groups[key].outputs if key in self.comment_groups else ()
        return [place for place, each in enumerate(self.outputs) if each.differs]
