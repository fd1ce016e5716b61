"""Where candidates come from: what reviewers wrote of outputs that they like less than most."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...agents.buying import all_together
from ...memory.neighbours import greedy_unique
from ...models.base import ModelError
from ...prompts.comments import WHOLE
from .candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...agents.questions.comment_questions import CommentReader
    from ...memory.embedders import Embedder
    from ...prompts.checklist import Checklist
    from ...prompts.comments import Comment
    from ...prompts.examples import Example
    from ..events import Teller
    from ..subject import Draft

READ_FOR_ONE = 3
"""Different comments that are read in a round, for each question that may join."""
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
    _read: dict[tuple[str, str], None] = field(default_factory=dict, init=False)

    async def propose(self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int) -> list[Candidate]:
        """Candidates from comments that were not read yet; see :class:`~.learner.Proposer`.

        A comment tells what is wrong only of an output that is rejected: on an accepted one it may be praise, or a
        remark that did not matter.
        """
        found = self._new(best.questions, rejected)
        texts = self._different_first(list(dict.fromkeys(text for text, _ in found)))[: READ_FOR_ONE * self.most]
        self._read |= {key: None for key in found if key[0] in texts}
        if not texts:
            return []
        self.events.phase(f"iteration {iteration}: writing questions from {len(texts)} comments")
        written = await all_together(texts, self._questions, self.workers, self.events.advance)
        return [
            Candidate(question, dimension, "comment", tuple(found[text, dimension]), (text,))
            for text, questions in zip(texts, written, strict=True)
            for (said, dimension) in found
            if said == text
            for question in questions
        ]

    async def _questions(self, text: str) -> list[str]:
        try:
            return await self.reader.questions(text)
        except ModelError as error:
            if error.fatal:
                raise
            self.events.say(f"no question from the comment “{text[:60]}”: {error}")
            return []

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
        return found

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
