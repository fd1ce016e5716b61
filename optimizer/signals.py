"""A signal says where a judge or generator and its reference differ.

``migrate`` compares with another judge's verdicts (BinEval §3.3, Algorithm 1), ``align`` with people's scores (App. B);
the signal of ``tune`` is in :mod:`.modes.generator`. Both judges' signals read first the cases that the target's
leniency does not explain, and let questions take turns, so that one does not use up all notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Protocol, TypeVar

from ..agents.evaluator import Evaluator
from ..evaluation.scoring import ExampleScore, Targets, mean_score, score_examples
from ..models.base import ModelError
from ..prompts.checklist import Checklist, Question
from ..prompts.examples import Example
from ..prompts.formatting import count
from ..prompts.human_feedback import comments_on, told
from ..prompts.lessons import Disagreement
from ..prompts.verdicts import Verdict
from ..stats.correlation import spearman
from .subject import Draft, Observation, Pair, by_pair

Each = TypeVar("Each")
LEAST_FOR_RANKING = 8
"""Examples from which a question's own correlation with people says something."""


@dataclass(frozen=True)
class Reasons:
    """Both sides' reasons for their answers, by disagreement key; empty where there are none."""

    mine: Mapping[str, str] = field(default_factory=dict)
    """Reasons of the judge or generator that is improved."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """Reasons of its reference."""

    def said(self, key: str) -> dict[str, str]:
        """Both sides' reasons for one disagreement, as a :class:`~askance.agents.note_takers.Case` holds them."""
        return {"target": self.mine.get(key, ""), "reference": self.theirs.get(key, "")}


class Signal(Protocol):
    """Compares the verdicts on the development examples with a reference."""

    def agrees(self, seen: Observation) -> bool:
        """Whether the two agree well enough for the loop to stop."""

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """The (example, question) pairs on which the two sides differ, in the order of reading."""

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """The wanted probability of the good answer (``Question.p_good``); None where the reference does not say."""

    def is_like(self, verdict: Verdict) -> bool:
        """Whether a verdict's P(yes) can be compared with the reference; else only the answers are."""

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Explanations of both sides, bought for these disagreements alone."""


class Reference(Protocol):
    """A judge whose verdicts are there, and which may give its reasons."""

    @property
    def checklist(self) -> Checklist:
        """The questions as it was asked them."""

    async def explain(self, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[Pair, str]:
        """Its reasons, by example and question; a verdict without one is left out."""


async def explanations(judge: Reference, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[str, str]:
    """A judge's explanations by disagreement key; the notes do without one that cannot be had."""
    found: dict[str, str] = {}
    for verdict in verdicts:
        try:
            explained = await judge.explain([verdict], examples)
        except ModelError as error:
            if error.fatal:
                raise
            continue
        found |= {f"{example}/{question}": text for (example, question), text in explained.items()}
    return found


def disputed(seen: Observation, disagreements: Sequence[Disagreement]) -> list[Verdict]:
    """The verdicts that the disagreements are about."""
    known = by_pair(seen.verdicts)
    return [known[each.example, each.question] for each in disagreements]


def take_turns(groups: Iterable[Iterable[Each]]) -> list[Each]:
    """The first of every group, then the second of every group, and so on; none of them is None."""
    return [each for turn in zip_longest(*groups) for each in turn if each is not None]


@dataclass(frozen=True)
class CrossModelSignal:
    """Compares with the source judge's verdicts.

    Judges disagree where their answers differ. Beyond the paper they also disagree where both say the same but their
    P(yes) are ``margin`` or more apart: a judge that says yes to everything otherwise hides what it doubts. Where the
    two P(yes) come from different things (log-probabilities, the answer alone, …), only the answers are compared: a
    hard yes is 1, a sure one perhaps .7.

    The order of reading takes out each judge's leniency: where the source says no to nearly everything, its no is a
    reason to look only on examples that it likes less than most.

    A draft may ask a question the other way round (the same id, another ``good``). The source's verdicts belong to its
    own checklist; they are turned to the draft's question before the two are compared.
    """

    source: Reference
    verdicts: Sequence[Verdict]
    """The source's verdicts on the development examples."""
    examples: Sequence[Example]
    target: Callable[[Draft], Evaluator] | None
    """Makes the other judge; None where no explanations are bought."""
    margin: float
    differing: float = 0.0
    """Share of the examples that may have another answer, on every question, for the two to agree."""
    tolerance: float | None = None
    """The papers' condition instead: the difference below which mean scores agree, on every dimension."""
    soft: bool = True
    """Whether scores come from P(yes). Where they come from the answers, P(yes) alone makes no difference."""
    of_scores: bool = False
    """Whether both judges state scores of their own: then only scores ``margin`` or more apart differ."""
    say: Callable[[str], None] | None = None
    """Told once if answers alone are compared."""
    _told: set[str] = field(default_factory=set, init=False, compare=False)

    @cached_property
    def _known(self) -> dict[Pair, Verdict]:
        return by_pair(self.verdicts)

    def _means(self, asked: Checklist, verdicts: Sequence[Verdict], *, soft: bool) -> dict[str, float | None]:
        scores = score_examples(self.examples, asked, verdicts, soft=soft)
        names = self.source.checklist.dimensions
        return {name: mean_score(each.dimensions.get(name) for each in scores) for name in names}

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Widest gap first, questions taking turns."""
        pairs: dict[str, list[tuple[Verdict, Verdict]]] = {}
        for verdict in seen.verdicts:
            source = self._said(draft.questions, verdict)
            if not verdict.replicate and source and source.p_yes is not None and verdict.p_yes is not None:
                pairs.setdefault(verdict.question, []).append((verdict, source))
        self._tell_unlike(pair for group in pairs.values() for pair in group)
        found = [sorted(self._compare(group), key=lambda each: -each.gap) for group in pairs.values()]
        return take_turns(found)

    def agrees(self, seen: Observation) -> bool:
        """Whether on every question the answers differ on few enough examples.

        In the papers' loop: |S_d target - S_d source| below the tolerance on every dimension (Algorithm 1, lines 6-10).
        The other condition, a target that scores at least as high, is left out: a judge that says yes to everything
        would meet it.
        """
        asked = seen.checklist or self.source.checklist
        if self.tolerance is None:
            # means do not tell: judges whose verdicts are all swapped may have the same
            same: dict[str, list[bool]] = {question.id: [] for question in asked.questions}
            for verdict in seen.verdicts:
                source = self._said(asked, verdict)
                if not verdict.replicate and source and source.answer is not None and verdict.answer is not None:
                    same[verdict.question].append(not self._differ(verdict, source))
            return all(each and each.count(False) <= self.differing * len(each) for each in same.values())
        soft = self.soft and all(map(self.is_like, seen.verdicts))
        mine = self._means(asked, seen.verdicts, soft=soft)
        theirs = self._means(self.source.checklist, self.verdicts, soft=soft)
        pairs = [(mine[name], theirs[name]) for name in theirs]
        return all(a is not None and b is not None and abs(a - b) < self.tolerance for a, b in pairs)

    def is_like(self, verdict: Verdict) -> bool:
        """Whether the source's P(yes) comes from the same thing."""
        source = self._known.get((verdict.example, verdict.question))
        return source is None or source.p_yes_from == verdict.p_yes_from

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """The source's P(good), of the question as it was put to the source."""
        verdict = self._known.get((example, question))
        return self.source.checklist.question(question).p_good(verdict.p_yes) if verdict else None

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Both judges' explanations."""
        if self.target is None:
            return Reasons()
        mine = await explanations(self.target(draft), disputed(seen, disagreements), self.examples)
        verdicts = [self._known[each.example, each.question] for each in disagreements]
        return Reasons(mine, await explanations(self.source, verdicts, self.examples))

    def _said(self, asked: Checklist, verdict: Verdict) -> Verdict | None:
        """The source's verdict on the same example, turned to the question as it is asked of the target."""
        said = self._known.get((verdict.example, verdict.question))
        if said is None or asked.question(said.question).good == self.source.checklist.question(said.question).good:
            return said
        return said.turned()

    def _tell_unlike(self, pairs: Iterable[tuple[Verdict, Verdict]]) -> None:
        kinds = Counter((target.p_yes_from, source.p_yes_from) for target, source in pairs)
        for (mine, theirs), number in kinds.items():
            text = f"P(yes) is {mine} with the target and {theirs} with the source"
            if mine != theirs and self.say is not None and text not in self._told:
                self._told.add(text)
                self.say(f"{text} ({count(number, 'verdict')}): these are compared by their answers alone")

    def _differ(self, target: Verdict, source: Verdict) -> bool:
        """Whether the answers differ; of judges that state scores, the scores."""
        if not self.of_scores:
            return target.answer != source.answer
        return abs((target.p_yes or 0.0) - (source.p_yes or 0.0)) >= self.margin

    def _compare(self, pairs: Sequence[tuple[Verdict, Verdict]]) -> Iterator[Disagreement]:
        """The disagreements on one question; each gap is the difference without both judges' means."""
        compared = [
            (target.p_yes or 0.0, source.p_yes or 0.0)
            if target.p_yes_from == source.p_yes_from
            else (float(target.answer or 0), float(source.answer or 0))
            for target, source in pairs
        ]
        levels = [sum(side) / len(pairs) for side in zip(*compared, strict=True)]
        for (target, source), (mine, theirs) in zip(pairs, compared, strict=True):
            differ = self._differ(target, source)
            if not differ and (self.of_scores or not self.soft or abs(mine - theirs) < self.margin):
                continue
            too_high = mine > theirs if self.of_scores or not differ else bool(target.answer)
            beyond = (mine - levels[0]) - (theirs - levels[1])
            yield Disagreement(
                example=target.example,
                question=target.question,
                target=too_high,
                reference=not too_high,
                gap=beyond if too_high else -beyond,
                target_p_yes=target.p_yes,
                reference_p_yes=source.p_yes or 0.0,
            )


@dataclass(frozen=True)
class HumanSignal:
    """Compares with people's scores, mapped to [0, 1].

    An example is disputed where the judge's score is more than ``threshold`` away from people's, in either direction
    (App. B). People do not answer questions. On a disputed example a question is disputed if its P(good) is off in the
    same direction by as much, and its answer says so. Beyond the paper, a question whose verdicts run against the human
    ranking is disputed on every example on which its own P(good) is off. The order of reading takes out the judge's
    leniency.
    """

    targets: Targets
    examples: Sequence[Example]
    judge: Callable[[Draft], Evaluator] | None
    """Makes the judge that is being improved; None where no explanations are bought."""
    threshold: float
    by_score: bool = False
    """The papers' way: on a disputed example, and only there, every question is disputed whose answer errs like the
    score."""
    of_scores: bool = False
    """Whether the judge states a score of its own, which may be off whatever its half of the scale."""
    whose: str = "people's mean score"
    """Whose scores the targets are, for the note-taker."""

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Questions that run against people first, then widest gap first, questions taking turns."""
        scores = {each.example: each for each in seen.scores}
        by_question: dict[str, list[Verdict]] = {}
        for verdict in seen.verdicts:  # no prompt of a judge changes what code decides
            if not verdict.replicate and verdict.p_yes is not None and verdict.model is not None:
                by_question.setdefault(verdict.question, []).append(verdict)
        groups: dict[bool, list[list[Disagreement]]] = {True: [], False: []}
        for name, verdicts in by_question.items():
            question, dimension = draft.questions.question(name), self._dimension(draft, name)
            against = not self.by_score and self._runs_against_people(question, verdicts, dimension)
            found = sorted(self._compare(question, verdicts, dimension, scores, against), key=lambda each: -each.gap)
            groups[against].append(found)
        return take_turns(groups[True]) + take_turns(groups[False])

    def agrees(self, seen: Observation) -> bool:
        """Whether every score is within the threshold of people's."""
        distances = [self._off(each, name) for each in seen.scores for name in self.targets.dimensions]
        return bool(distances) and all(each is not None and abs(each) <= self.threshold for each in distances)

    def is_like(self, verdict: Verdict) -> bool:
        """People give grades, which any P(good) is held against."""
        return True

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """People's score on the question's dimension."""
        wanted = self.targets.wanted.get(example, {}).get(self._dimension(draft, question))
        origin = draft.origins.get(question)
        # A learned question looks for one fault of many: whoever rejects an output need not mean this one. So a low
        # score is its right answer only on the examples that it came from.
        if wanted is not None and wanted < 0.5 and origin is not None and example not in origin.sources:
            return None
        return wanted

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """The judge's explanations and people's comments; where there is no comment, people's score."""
        mine = {}
        if self.judge is not None:
            mine = await explanations(self.judge(draft), disputed(seen, disagreements), self.examples)
        theirs = {}
        by_id = {example.id: example for example in self.examples}
        for each in disagreements:
            name = self._dimension(draft, each.question)
            wanted = self.targets.wanted[each.example].get(name) or 0.0
            remarks = told(comments_on(by_id[each.example].comment, each.question, draft.questions))
            score = f"{self.whose} of {name}: {wanted:.2f}, from 0 (worst) to 1 (best)"
            theirs[each.key] = remarks or score
        return Reasons(mine, theirs)

    def _dimension(self, draft: Draft, question: str) -> str:
        """The rated dimension that a question belongs to."""
        name = draft.questions.question(question).dimension
        return name if name in self.targets.dimensions else "overall"

    def _runs_against_people(self, question: Question, verdicts: Sequence[Verdict], dimension: str) -> bool:
        wanted = [self.targets.wanted[each.example].get(dimension) for each in verdicts]
        if sum(each is not None for each in wanted) < LEAST_FOR_RANKING:
            return False
        found = spearman([question.p_good(each.p_yes) for each in verdicts], wanted)
        return found.value is not None and found.value < 0

    def _compare(
        self,
        question: Question,
        verdicts: Sequence[Verdict],
        dimension: str,
        scores: dict[str, ExampleScore],
        against: bool,
    ) -> Iterator[Disagreement]:
        """The disagreements on one question; each gap is the difference without both means."""
        pairs = [
            (verdict, question.p_good(verdict.p_yes or 0.0), wanted)
            for verdict in verdicts
            if (wanted := self.targets.wanted[verdict.example].get(dimension)) is not None
        ]
        if not pairs:
            return
        level = sum(p_good - wanted for _, p_good, wanted in pairs) / len(pairs)
        for verdict, p_good, wanted in pairs:
            off = p_good - wanted
            whole = self._off(scores[verdict.example], dimension)
            if self.by_score:
                if whole is None or abs(whole) <= self.threshold or question.is_good(verdict.answer) is not (whole > 0):
                    continue
                off = whole
            is_disputed = whole is not None and abs(whole) > self.threshold and whole * off > 0
            # a doubtful no that is still too high is no wrong yes
            answered_so = self.of_scores or question.is_good(verdict.answer) is (off > 0)
            if not self.by_score and (abs(off) <= self.threshold or not (is_disputed or against) or not answered_so):
                continue
            yield Disagreement(
                example=verdict.example,
                question=verdict.question,
                target=question.is_good(off > 0),
                reference=question.is_good(off < 0),
                gap=off - level if off > 0 else level - off,
                target_p_yes=verdict.p_yes,
                reference_p_yes=question.p_good(wanted),
            )

    def _off(self, scores: ExampleScore, dimension: str) -> float | None:
        mine = self.targets.dimension_score(scores, dimension)
        wanted = self.targets.wanted[scores.example].get(dimension)
        return None if mine is None or wanted is None else mine - wanted
