"""The sources of candidates: reviewers' comments on outputs that they like less than on average, and these outputs.

A finder asks one proposer after the other and gives each question one id.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...agents.buying import all_together
from ...agents.comment_questions import (
    AskedBeside,
    BesideReader,
    CommentReader,
    Generaliser,
    KindReader,
    RelationReader,
    RichReader,
)
from ...agents.measures.values import text_of
from ...evaluation.scoring import Targets
from ...memory.embedders import ROUNDING, Embedder, greedy_unique
from ...memory.records import CriterionRecord
from ...prompts.checklist import Checklist, Sees
from ...prompts.conversations.chat import reply_text
from ...prompts.criteria.question import Against
from ...prompts.examples import Example
from ...prompts.human_feedback import WHOLE, Comment, one_line
from ..events import Teller, answer_or_none
from ..subject import Draft
from .candidates import id_for, unite
from .choice import Chooser

SAME_MEANING = 0.9
"""Least cosine at which two candidates count as one question, before they are judged."""
ENOUGH_FOR_ONE = 1
"""Candidates per question that may join: with so many, the next proposer is not asked."""


class Proposer(Protocol):
    """Turns evidence into candidates."""

    async def propose(
        self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> list[CriterionRecord]:
        """Return new candidates; evidence is read once. ``rejected`` maps each dimension to the examples that people
        like less than on average, the least liked first."""

    def read(self) -> dict[str, Any]:
        """Return the evidence read so far, here and in earlier runs, as under ``read`` in ``result.json``."""

    def has_more(self, best: Draft, rejected: Mapping[str, Sequence[str]]) -> bool:
        """Whether more rounds would read further evidence; the arguments are those of :meth:`propose`."""


@dataclass
class Finder:
    """Finds questions from people's comments on some examples, or from their outputs."""

    chooser: Chooser
    """Knows the examples."""
    embedder: Embedder
    events: Teller
    rounds: int
    """Most times that one proposer is asked."""
    proposers: Sequence[Proposer] = ()
    """Proposers, the most promising first; the next one is asked only while there are few candidates."""
    waiting: Sequence[CriterionRecord] = ()
    """Candidates of earlier runs that are tried once more, beside the first new ones."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Texts of questions that an earlier run tried in vain, with their origin."""
    removed: Sequence[str] = ()
    """Texts of questions that people do not want."""
    beside: Finder | None = None
    """The finder that read other examples of the same run. The same question has the same id in both."""
    found: dict[str, CriterionRecord] = field(default_factory=dict, init=False)
    """The candidates by their ids."""
    has_more: bool = field(default=False, init=False)
    """Whether evidence is left unread because the rounds were used up."""
    _spared: set[str] = field(default_factory=set, init=False)
    """Dimensions on which a later proposer was not needed."""

    async def propose(self, best: Draft, iteration: int) -> Mapping[str, CriterionRecord]:
        """Return the candidates found so far, by id, without those that ``best`` asks; empty where no output counts as
        rejected. No verdict is asked for."""
        rejected = {name: both[1] for name, both in self.chooser.sides().items()}
        if not rejected:
            return {}
        self.events.phase(f"iteration {iteration}: writing questions")
        for proposer in self.proposers:
            if len(self.found) >= ENOUGH_FOR_ONE * self.chooser.most:
                self._spared.update(rejected)
                break
            for _ in range(self.rounds):
                new = await self._new(best, proposer, rejected, iteration)
                self.found |= new
                if not new:
                    break
            self.has_more |= proposer.has_more(best, rejected)
        return self.found

    @property
    def read(self) -> dict[str, list[Any]]:
        """Evidence that was read, as under ``read`` in ``result.json``."""
        read = {name: value for each in self.proposers for name, value in each.read().items()}
        return read | {"contrasted": sorted({*read.get("contrasted", ()), *self._spared})}

    async def _new(
        self, best: Draft, proposer: Proposer, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> dict[str, CriterionRecord]:
        """Return candidates that have no id yet; empty where a proposer has nothing more."""
        while True:  # read on where all proposed questions were known before
            proposed = await proposer.propose(best, rejected, iteration)
            proposed, self.waiting = [*self.waiting, *proposed], ()
            named = self._named(best.questions, proposed)
            if named or not proposed:
                return named

    def _named(self, checklist: Checklist, proposed: Sequence[CriterionRecord]) -> dict[str, CriterionRecord]:
        """Return candidates by new ids, each question once, without questions that are asked, found, dropped or
        removed."""
        known = {each.text for each in checklist.questions} | {each.text for each in self.found.values()}
        new = [each for each in proposed if each.text not in known and not self._was_dropped(each)]
        new = self._without_removed(new)
        if not new:
            return {}
        near = first_of_meaning(self.embedder.embed([each.text for each in new]))
        twin_ids = {} if self.beside is None else {each.text: name for name, each in self.beside.found.items()}
        taken = {each.id for each in checklist.questions} | set(self.found) | set(twin_ids.values())
        named: dict[str, CriterionRecord] = {}
        for candidate in unite(new, near):
            named[twin_ids.get(candidate.text) or id_for(candidate.text, taken | set(named))] = candidate
        return named

    def _was_dropped(self, candidate: CriterionRecord) -> bool:
        """Whether an earlier run tried the question in vain, with the same origin or from a comment. A question that
        came from no comment then is tried again when it comes from one."""
        return self.dropped.get(candidate.text) in (candidate.origin, "comment")

    def _without_removed(self, new: Sequence[CriterionRecord]) -> list[CriterionRecord]:
        """Leave out questions that people removed, also where other words mean the same."""
        if not self.removed or not new:
            return list(new)
        unwanted = self.embedder.embed(self.removed)
        cosines = (self.embedder.embed([each.text for each in new]) @ unwanted.T).max(axis=1)
        for candidate, cosine in zip(new, cosines, strict=True):
            if cosine >= SAME_MEANING - ROUNDING:
                self.events.say(f"not asked, as people removed it from the memory: {candidate.text}")
        return [each for each, cosine in zip(new, cosines, strict=True) if cosine < SAME_MEANING - ROUNDING]


def first_of_meaning(vectors: NDArray[np.float32], threshold: float = SAME_MEANING) -> dict[int, int]:
    """Map each text to its representative: the nearest earlier text with the same meaning, or itself."""
    kept = greedy_unique(vectors, threshold)
    asked_as = {place: place for place in kept}
    for place in set(range(len(vectors))).difference(kept):
        before = kept[: bisect_left(kept, place)]
        asked_as[place] = before[int(np.argmax(vectors[before] @ vectors[place]))]
    return asked_as


READ_FOR_ONE = 2
"""Different comments that are read in a round, per question that may join."""
DESCRIBED = 20
"""Most rejected outputs, and most accepted ones, that the model describes."""
KINDS_FOR_ONE = 1
"""Questions made of descriptions, per question that may join."""
BESIDE_EACH = 2
"""Most outputs beside which one comment is read."""
LIKE_ANOTHER = 0.7
"""Cosine from which a comment counts as a repeat and is read after all others."""


@dataclass
class CommentProposer:
    """Turns every comment on a rejected output into questions: once alone, and once beside the outputs it is about.

    Alone, a comment is easier to read as a rule. Beside its output, the model also sees what the comment leaves unsaid.
    We do not ask the labels which of the two is right: the choice would leak into the test folds.
    """

    reader: CommentReader
    beside: BesideReader | None
    """None where comments are read alone."""
    wider: Generaliser
    """Writes more general questions, because a comment names one case of a rule."""
    development: Sequence[Example]
    embedder: Embedder
    events: Teller
    most: int
    """Questions that may join in a round."""
    workers: int
    """Calls at a time."""
    before: Collection[tuple[str, str]] = ()
    """Example id and text of comments that an earlier run has read. A comment is read again if it is also on a further
    example."""
    relations: RelationReader | None = None
    """Reads comments beside the whole example; None where examples have only outputs, or comments are read alone."""
    texts: Sequence[Against] = ()
    """Texts of an example that questions may hold its output against."""
    rich: RichReader | None = None
    """Writes questions with a definition and cases; None where the judge itself is the writer."""
    done: dict[tuple[str, str], list[str]] = field(default_factory=dict, init=False)
    """Comments read so far: example ids by comment and dimension."""

    async def propose(
        self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> list[CriterionRecord]:
        """Return candidates from comments that were not read yet; see :class:`Proposer`.

        Only comments on rejected outputs tell what is wrong. On an accepted output a comment may be praise, or a remark
        that did not matter.
        """
        candidates: list[CriterionRecord] = []
        while not candidates and (found := self._new(best.questions, rejected)):
            texts = self._different_first(list(dict.fromkeys(text for text, _ in found)))[: READ_FOR_ONE * self.most]
            read = {key: names for key, names in found.items() if key[0] in texts}
            self.done |= read
            self.events.phase(f"iteration {iteration}: writing questions from {len(texts)} comments")
            alone = await all_together(texts, self._alone, self.workers, self.events.advance)
            text_questions = dict(zip(texts, alone, strict=True))
            pair_questions = await self._read_beside(read, iteration)
            relation_questions = await self._read_relations(self.relations, read, iteration)
            rich_questions = await self._read_relations(self.rich, read, iteration)
            for (text, dimension), names in read.items():
                written = [(question, tuple(names)) for question in text_questions[text]]
                written += [(question, (name,)) for name in names for question in pair_questions.get((text, name), ())]
                views = [(AskedBeside(each, self.reader.view_of(each)), own) for each, own in written]
                views += [
                    (each, tuple(names)) for each in (*relation_questions.get(text, ()), *rich_questions.get(text, ()))
                ]
                candidates += [
                    CriterionRecord.of(each.text, dimension, "comment", own, (text,), each.sees) for each, own in views
                ]
        return candidates

    def read(self) -> dict[str, Any]:
        """Return the comments that were read, as pairs of example id and text; see :class:`Proposer`."""
        read = {(name, text) for (text, _), names in self.done.items() for name in names}
        return {"comments": sorted({*self.before, *read})}

    def has_more(self, best: Draft, rejected: Mapping[str, Sequence[str]]) -> bool:
        """Whether comments are left, or were read alone; see :class:`Proposer`."""
        return bool(self._new(best.questions, rejected)) or (self.beside is None and bool(self.done))

    async def _alone(self, text: str) -> list[str]:
        return await self._widened(self.reader.questions(text), text)

    async def _read_beside(
        self, read: Mapping[tuple[str, str], Sequence[str]], iteration: int
    ) -> dict[tuple[str, str], list[str]]:
        """Return the questions by comment and example id."""
        if (reader := self.beside) is None:
            return {}
        pairs = list(dict.fromkeys((text, name) for (text, _), names in read.items() for name in names[:BESIDE_EACH]))
        outputs = {each.id: each.output or "" for each in self.development}

        async def ask(pair: tuple[str, str]) -> list[str]:
            return await self._widened(reader.questions(pair[0], outputs[pair[1]]), pair[0])

        self.events.phase(f"iteration {iteration}: reading {len(pairs)} comments beside their outputs")
        return dict(zip(pairs, await all_together(pairs, ask, self.workers, self.events.advance), strict=True))

    async def _read_relations(
        self, reader: RelationReader | None, read: Mapping[tuple[str, str], Sequence[str]], iteration: int
    ) -> dict[str, list[AskedBeside]]:
        """Return the questions by comment. Each comment is read beside the first example that it is about."""
        if reader is None:
            return {}
        first: dict[str, str] = {}
        for (text, _), names in read.items():
            first.setdefault(text, names[0])
        examples = {each.id: each for each in self.development}

        async def ask(text: str) -> list[AskedBeside]:
            example = examples[first[text]]
            others: dict[Sees, str] = {each: text_of(example, each) for each in self.texts}
            asked = reader.relations(text, reply_text(example.output or ""), others)
            what = f"no question from the comment “{text[:60]}” beside its example"
            return await answer_or_none(asked, what, self.events) or []

        self.events.phase(f"iteration {iteration}: reading {len(first)} comments beside their examples")
        found = await all_together(list(first), ask, self.workers, self.events.advance)
        return dict(zip(first, found, strict=True))

    async def _widened(self, asked: Awaitable[list[str]], text: str) -> list[str]:
        """Return the questions and more general ones. A call that failed brings none and is reported."""
        what = f"the comment “{text[:60]}”"
        found = await _or_none(asked, what, self.events)
        general = [await _or_none(self.wider.questions(each), what, self.events) for each in found]
        return list(dict.fromkeys([*found, *(each for several in general for each in several)]))

    def _new(self, checklist: Checklist, rejected: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[str]]:
        """Return example ids by comment and dimension of the checklist, without comments that were read."""
        by_id = {each.id: each for each in self.development}
        found: dict[tuple[str, str], list[str]] = {}
        for rated, names in rejected.items():
            dimension = rated if rated in checklist.dimensions else checklist.dimensions[0]
            for name in names:
                for comment in by_id[name].comment:
                    key = one_line(comment.text), dimension
                    if key not in self.done and self._is_about(comment, rated, checklist, name, rejected):
                        found.setdefault(key, []).append(name)
        return {key: names for key, names in found.items() if any((name, key[0]) not in self.before for name in names)}

    def _is_about(
        self, comment: Comment, rated: str, checklist: Checklist, name: str, rejected: Mapping[str, Sequence[str]]
    ) -> bool:
        """Whether a comment is about a rated dimension. A comment on the whole output is about the dimension where the
        output ranks lowest."""
        if comment.about is None or (comment.about == WHOLE and rated != WHOLE):
            return rated == min(
                (each for each in rejected if name in rejected[each]), key=lambda each: rejected[each].index(name)
            )
        if comment.about == rated:
            return True
        asked = next((each for each in checklist.questions if each.id == comment.about), None)
        return asked is not None and (asked.dimension == rated or rated == WHOLE)

    def _different_first(self, texts: list[str]) -> list[str]:
        """Move comments that are much like an earlier one behind all others."""
        if len(texts) < 2:
            return texts
        kept = set(greedy_unique(self.embedder.embed(texts), LIKE_ANOTHER))
        return [texts[each] for each in sorted(range(len(texts)), key=lambda place: (place not in kept, place))]


@dataclass
class KindProposer:
    """Finds what rejected outputs do and accepted ones do not, or the other way round, where nobody wrote why.

    The model describes in general words what some rejected and some accepted development outputs do. A description that
    fits one side more often than the other becomes a question (METHOD part 4; a small model that is shown two outputs
    and asked for the fault finds it once in three times).
    """

    reader: KindReader
    development: Sequence[Example]
    targets: Targets
    """Tell which outputs people rated: an output without a rating does not count as accepted."""
    events: Teller
    most: int
    """Questions that may join in a round."""
    workers: int
    """Calls at a time."""
    before: Collection[str] = ()
    """Dimensions on which an earlier run has done this with the same examples."""
    _texts: dict[str, list[str]] = field(default_factory=dict, init=False)
    """Descriptions of outputs by example id."""
    _done: set[str] = field(default_factory=set, init=False)

    async def propose(
        self, best: Draft, rejected: Mapping[str, Sequence[str]], iteration: int
    ) -> list[CriterionRecord]:
        """Return candidates from descriptions of outputs, once for each dimension; see :class:`Proposer`."""
        found: list[CriterionRecord] = []
        for rated, names in rejected.items():
            if rated in self._done or rated in self.before:
                continue
            self._done.add(rated)
            dimension = rated if rated in best.questions.dimensions else best.questions.dimensions[0]
            poor = list(names)[:DESCRIBED]
            known = [each.id for each in self.development if self.targets.wanted[each.id].get(rated) is not None]
            fine = [name for name in known if name not in names][:DESCRIBED]
            new = [each for each in self.development if each.id in {*poor, *fine} and each.id not in self._texts]
            self.events.phase(f"iteration {iteration}: describing {len(new)} outputs")
            written = await all_together(new, self._kinds, self.workers, self.events.advance)
            self._texts |= {each.id: found for each, found in zip(new, written, strict=True)}
            texts = self._telling(poor, fine)
            found += [CriterionRecord.of(text, dimension, "contrast") for text in texts]
        return found

    async def _kinds(self, example: Example) -> list[str]:
        return await _or_none(self.reader.questions(example.output or ""), f"the output of '{example.id}'", self.events)

    def read(self) -> dict[str, Any]:
        """Return the dimensions that are done; see :class:`Proposer`."""
        return {"contrasted": sorted({*self.before, *self._done})}

    def has_more(self, best: Draft, rejected: Mapping[str, Sequence[str]]) -> bool:
        """Return False: one round reads everything; see :class:`Proposer`."""
        return False

    def _telling(self, poor: Sequence[str], fine: Sequence[str]) -> list[str]:
        """Return the questions that came from one side more often than from the other, the largest difference first."""
        poor_counts, fine_counts = (
            Counter(text for name in names for text in dict.fromkeys(self._texts[name])) for names in (poor, fine)
        )
        difference = {
            text: abs(poor_counts[text] / max(len(poor), 1) - fine_counts[text] / max(len(fine), 1))
            for text in poor_counts | fine_counts
            if poor_counts[text] + fine_counts[text] > 1
        }
        return sorted(difference, key=lambda text: -difference[text])[: KINDS_FOR_ONE * self.most]


async def _or_none(asked: Awaitable[list[str]], what: str, events: Teller) -> list[str]:
    """Return the questions; none, with a report, where this call failed but others may succeed."""
    return await answer_or_none(asked, f"no question from {what}", events) or []
