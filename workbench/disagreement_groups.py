"""GroupedOutputs between a judge and people, grouped by question and by what people wrote.

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
"""The part that a question has in a disagreement."""
UNSEEN = "unseen"
"""The group of the outputs that people reject, and no question speaks against."""
MOST_BY_MEANING = 500
"""Different comments that a language model's embedder groups; more are grouped by their words, which is quick."""
MOST_GROUPED = 4_000
"""Different comments that are grouped at all, those on disagreements first."""


@dataclass(frozen=True)
class ComparedOutput:
    """An output, beside what the judge and people say of it."""

    example: Example
    split: Split
    score: float | None
    passes: bool | None
    """Whether the output passes by the judge; None without a score."""
    people: float | None
    """People's score in [0, 1]; 1 and 0 for labels."""
    off: Literal["lenient", "strict"] | None
    """Whether the judge is kinder than people, or stricter; None where they agree, or one of them says nothing."""
    parts: Mapping[str, Part]
    """The questions that have a part in it, by id."""

    @property
    def comments(self) -> list[str]:
        """What people wrote, each in one line."""
        return [one_line(each.text) for each in self.example.comment]

    @property
    def differs(self) -> bool:
        """Whether the judge and people differ, in the score or in an answer."""
        return self.off is not None or "answered" in self.parts.values()


def outputs_of(bench: JudgeBench, splits: Sequence[Split], distance: float) -> Iterator[ComparedOutput]:
    """Every output of the splits. Without labels, the judge and people differ where their scores are further apart than
    ``distance``, in [0, 1]."""
    for split in splits:
        part, state = bench.parts[split], bench.kept[split]
        gap = state.scores - part.wanted if part.labels is None else state.passed - part.labels
        least = distance if part.labels is None else 0.0
        for place, example in enumerate(part.examples):
            off: Literal["lenient", "strict"] | None = None
            if np.isfinite(gap[place]) and abs(gap[place]) > least:
                off = "lenient" if gap[place] > 0 else "strict"
            parts: dict[str, Part] = {}
            for question, worth in zip(bench.judge.checklist.questions, part.worth[place].tolist(), strict=True):
                if not np.isnan(worth) and (what := _part(bench, question, worth, example, off)) is not None:
                    parts[question.id] = what
            score, people = (
                None if np.isnan(each) else float(each) for each in (state.decided[place], part.of_people[place])
            )
            passes = None if score is None else bool(state.passed[place])
            yield ComparedOutput(example, split, score, passes, people, off, parts)


def _part(bench: JudgeBench, question: Question, worth: float, example: Example, off: str | None) -> Part | None:
    """The part of a question in the disagreement on one example. An output that people reject has one fault of many. So
    a question that is content with it has a part only where a person answered it, commented on it, or wrote the comment
    there that it came from."""
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
    meant = any(each.about == question.id for each in example.comment)
    return "missed" if meant or (origin is not None and example.id in origin.sources) else None


@dataclass(frozen=True)
class CommentGroup:
    """Comments that say much the same."""

    id: str
    """Stays the same as long as the first comment is there, so that an address can be shared."""
    comments: Sequence[str]
    """Different ones, those on most disagreements first."""
    outputs: Sequence[int]
    """Places of the outputs that they are on."""


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
        """Places of the outputs by question; ``unseen`` are those that no question has a part in."""
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
        """Places of the outputs by comment, in one line: the comments on most disagreements first."""
        found: dict[str, list[int]] = {}
        for place, each in enumerate(self.outputs):
            for text in dict.fromkeys(each.comments):
                found.setdefault(text, []).append(place)
        differ = {text: sum(self.outputs[place].differs for place in found[text]) for text in found}
        return dict(sorted(found.items(), key=lambda each: (-differ[each[0]], -len(each[1]))))

    @cached_property
    def comment_groups(self) -> dict[str, CommentGroup]:
        """Groups of like comments by id, those with most disagreements first."""
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
        """The run's embedder; shared words where it is not installed, or there is too much to group. Which is said."""
        left = len(self.by_comment) - many
        more = f" {left:,} more comments, on fewer disagreements, are not grouped." if left else ""
        if self.embedder == SharedWordsEmbedder.name or many > MOST_BY_MEANING:
            self.said = f"Grouped by the words that comments share.{more}"
            return SharedWordsEmbedder()
        try:
            found = embedder(self.embedder)
        except MissingExtraError as error:
            self.said = f"Grouped by the words that comments share, as {self.embedder} is missing. {error}{more}"
            return SharedWordsEmbedder()
        self.said = f"Grouped by meaning ({self.embedder}).{more}"
        return found

    def group(self, name: str) -> Sequence[int]:
        """Places of the outputs of a group by its name in an address: ``question:ID``, ``comment:ID`` or ``all``."""
        kind, _, which = name.partition(":")
        if kind == "question":
            return self.by_question.get(which, ())
        if kind == "comment":
            return self.comment_groups[which].outputs if which in self.comment_groups else ()
        return [place for place, each in enumerate(self.outputs) if each.differs]
