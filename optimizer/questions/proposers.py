"""Where candidates come from: what reviewers wrote of outputs that they like less than most, and what such outputs say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...agents.buying import all_together
from ...memory.neighbours import greedy_unique
from ...models.base import ModelError
from ...prompts.comments import WHOLE
from ...prompts.text import sentences
from .candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping, Sequence

    from ...agents.questions.comment_questions import CommentReader, SentenceReader
    from ...memory.embedders import Embedder
    from ...prompts.checklist import Checklist
    from ...prompts.comments import Comment
    from ...prompts.examples import Example
    from ...stats.resampling import Vector
    from ..events import Teller
    from ..subject import Draft

READ_FOR_ONE = 3
"""Different comments that are read in a round, for each question that may join."""
GROUPS_FOR_ONE = 2
"""Groups of sentences that are read, for each question that may join."""
SHORTEST_SENTENCE = 3
"""Words of a sentence that is looked at."""
NEAREST = 6
"""Sentences of other outputs that say which side a sentence belongs to."""
SHOWN = 3
"""Sentences in a group."""
LIKE_ANOTHER = 0.7
"""Cosine from which a comment is read later than comments that say something else."""


@dataclass
class CommentProposer:
    """Has every comment on a rejected output turned into questions; the same comment is read once."""

    reader: CommentReader
    development: Sequence[Example]
    embedder: Embedder
    events: Teller
    most: int
    """Questions that may join in a round."""
    workers: int
    """Calls at a time."""
    before: Collection[tuple[str, str]] = ()
    """Example id and text of comments that an earlier run has read. One of them is read again where it was written of a
    further example too."""
    _read: dict[tuple[str, str], list[str]] = field(default_factory=dict, init=False)
    """Example ids by comment and dimension."""

    async def propose(self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int) -> list[Candidate]:
        """Candidates from comments that were not read yet; see :class:`~.learner.Proposer`.

        A comment tells what is wrong only of an output that is rejected: on an accepted one it may be praise, or a
        remark that did not matter.
        """
        candidates: list[Candidate] = []
        while not candidates and (found := self._new(best.questions, rejected)):
            texts = self._different_first(list(dict.fromkeys(text for text, _ in found)))[: READ_FOR_ONE * self.most]
            self._read |= {key: names for key, names in found.items() if key[0] in texts}
            self.events.phase(f"iteration {iteration}: writing questions from {len(texts)} comments")
            written = await all_together(texts, self._questions, self.workers, self.events.advance)
            candidates = [
                Candidate(question, dimension, "comment", tuple(found[text, dimension]), (text,))
                for text, questions in zip(texts, written, strict=True)
                for (said, dimension) in found
                if said == text
                for question in questions
            ]
        return candidates

    def read(self) -> dict[str, Any]:
        """The comments, with an example each; see :class:`~.learner.Proposer`."""
        read = {(name, text) for (text, _), names in self._read.items() for name in names}
        return {"comments": sorted({*self.before, *read})}

    async def _questions(self, text: str) -> list[str]:
        return await _or_none(self.reader.questions(text), f"the comment “{text[:60]}”", self.events)

    def _new(self, checklist: Checklist, rejected: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[str]]:
        """Example ids by comment and dimension of the checklist, without what was read."""
        by_id = {each.id: each for each in self.development}
        found: dict[tuple[str, str], list[str]] = {}
        for rated, names in rejected.items():
            dimension = rated if rated in checklist.dimensions else checklist.dimensions[0]
            for name in names:
                for comment in by_id[name].comment:
                    key = " ".join(comment.text.split()), dimension
                    if key not in self._read and self._is_about(comment, rated, checklist, name, rejected):
                        found.setdefault(key, []).append(name)
        return {key: names for key, names in found.items() if any((name, key[0]) not in self.before for name in names)}

    def _is_about(
        self, comment: Comment, rated: str, checklist: Checklist, name: str, rejected: Mapping[str, Sequence[str]]
    ) -> bool:
        """Whether a comment speaks of a dimension; one on the whole of the dimension that the output is least liked on."""
        if comment.about is None or (comment.about == WHOLE and rated != WHOLE):
            return rated == min(
                (each for each in rejected if name in rejected[each]), key=lambda each: rejected[each].index(name)
            )
        if comment.about == rated:
            return True
        asked = next((each for each in checklist.questions if each.id == comment.about), None)
        return asked is not None and (asked.dimension == rated or rated == WHOLE)

    def _different_first(self, texts: list[str]) -> list[str]:
        """The comments in order, but those that are much like an earlier one after all others."""
        if len(texts) < 2:
            return texts
        kept = set(greedy_unique(self.embedder.embed(texts), LIKE_ANOTHER))
        return [texts[each] for each in sorted(range(len(texts)), key=lambda place: (place not in kept, place))]


@dataclass
class ContrastProposer:
    """Where nobody wrote why: what rejected outputs say and accepted ones do not, or the other way round.

    The sentences of all outputs are embedded. One whose nearest sentences in other outputs are nearly all on its own side
    is shown to the model with those, and the model asks for what they have in common (METHOD part 4: shown two outputs
    and made to find the fault, a small model hits it once in three times).
    """

    reader: SentenceReader
    development: Sequence[Example]
    embedder: Embedder
    events: Teller
    most: int
    """Questions that may join in a round."""
    workers: int
    """Calls at a time."""
    before: Collection[str] = ()
    """Dimensions on which an earlier run has done this with the same examples."""
    _done: set[str] = field(default_factory=set, init=False)

    async def propose(self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int) -> list[Candidate]:
        """Candidates from sentences, once for each dimension; see :class:`~.learner.Proposer`."""
        found = []
        for rated, names in rejected.items():
            if rated in self._done or rated in self.before:
                continue
            self._done.add(rated)
            dimension = rated if rated in best.questions.dimensions else best.questions.dimensions[0]
            groups = self._groups(set(names))
            if not groups:
                continue
            self.events.phase(f"iteration {iteration}: writing questions from {len(groups)} groups of sentences")
            written = await all_together(groups, self._questions, self.workers, self.events.advance)
            texts = dict.fromkeys(text for questions in written for text in questions)
            found += [Candidate(text, dimension, "contrast", ()) for text in texts]
        return found

    def read(self) -> dict[str, Any]:
        """The dimensions that are done; see :class:`~.learner.Proposer`."""
        return {"contrasted": sorted({*self.before, *self._done})}

    async def _questions(self, group: Sequence[str]) -> list[str]:
        return await _or_none(self.reader.questions(group), f"the sentence “{group[0][:60]}”", self.events)

    def _groups(self, rejected: Collection[str]) -> list[list[str]]:
        """Like sentences of different outputs on one side, those in front that the other side lacks most."""
        rows = [
            (example.id, text)
            for example in self.development
            for text in dict.fromkeys(sentences(example.output or ""))
            if len(text.split()) >= SHORTEST_SENTENCE
        ]
        if len(rows) < 2 * NEAREST:
            return []
        vectors = self.embedder.embed([text for _, text in rows])
        alike = vectors @ vectors.T
        is_rejected = np.array([name in rejected for name, _ in rows])
        ranked: list[tuple[float, list[int]]] = []
        for place, (name, _) in enumerate(rows):
            near = self._nearest(alike[place], rows, name)
            mine = [each for each in near if is_rejected[each] == is_rejected[place]]
            expected = float(is_rejected.mean() if is_rejected[place] else 1 - is_rejected.mean())
            share = len(mine) / len(near) - expected
            ranked.append((share * float(alike[place][mine].mean()) if mine else 0.0, [place, *mine[: SHOWN - 1]]))
        groups: list[list[str]] = []
        used: set[int] = set()
        for _, group in sorted(ranked, key=lambda each: -each[0]):
            if len(groups) == GROUPS_FOR_ONE * self.most:
                break
            if len(group) > 1 and not used.intersection(group):
                used.update(group)
                groups.append([rows[each][1] for each in group])
        return groups

    @staticmethod
    def _nearest(alike: Vector, rows: Sequence[tuple[str, str]], name: str) -> list[int]:
        """The nearest sentences of other outputs, one of each."""
        found: dict[str, int] = {}
        for place in np.argsort(-alike, kind="stable"):
            other = rows[place][0]
            if other != name and other not in found:
                found[other] = int(place)
            if len(found) == NEAREST:
                break
        return list(found.values())


async def _or_none(asked: Awaitable[list[str]], what: str, events: Teller) -> list[str]:
    """The questions; none, which is said, where the call failed and others need not."""
    try:
        return await asked
    except ModelError as error:
        if error.fatal:
            raise
        events.say(f"no question from {what}: {error}")
        return []
