"""A signal finds where a judge or generator and its reference differ.

``migrate`` compares with another judge's verdicts (BinEval §3.3, Algorithm 1), ``align`` with people's scores (App. B).
The signal of ``tune`` is in :mod:`.modes.generator`. The two signals here put first the cases that the judge's leniency
does not explain. Questions take turns, so that one question does not use up all notes.
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
"""Fewest examples for a question's own correlation with people."""


@dataclass(frozen=True)
class Reasons:
    """Reasons of both sides for their answers, by disagreement key."""

    mine: Mapping[str, str] = field(default_factory=dict)
    """Reasons of the judge or generator that is improved."""
    theirs: Mapping[str, str] = field(default_factory=dict)
    """Reasons of its reference."""

    def said(self, key: str) -> dict[str, str]:
        """Return both sides' reasons for one disagreement, for a :class:`~askance.agents.note_takers.Case`."""
        return {"target": self.mine.get(key, ""), "reference": self.theirs.get(key, "")}


class Signal(Protocol):
    """Compares the verdicts on the development examples with a reference."""

    def agrees(self, seen: Observation) -> bool:
        """Whether both sides agree well enough for the loop to stop."""

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Return the (example, question) pairs on which the two sides differ, in the order of reading."""

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """Return the wanted probability of the good answer (``Question.p_good``); None where it is unknown."""

    def is_like(self, verdict: Verdict) -> bool:
        """Whether a verdict's P(yes) can be compared with the reference; else only the answers are compared."""

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Return explanations of both sides, bought for these disagreements only."""


class Reference(Protocol):
    """A judge whose verdicts are known, and which may give reasons."""

    @property
    def checklist(self) -> Checklist:
        """The questions as this judge was asked."""

    async def explain(self, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[Pair, str]:
        """Return reasons for verdicts, by example and question. A verdict without a reason is left out."""


async def explanations(judge: Reference, verdicts: Iterable[Verdict], examples: Sequence[Example]) -> dict[str, str]:
    """Return a judge's explanations by disagreement key. An explanation that could not be bought is left out."""
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
    """Return the verdicts that the disagreements are about."""
    known = by_pair(seen.verdicts)
    return [known[each.example, each.question] for each in disagreements]


def take_turns(groups: Iterable[Iterable[Each]]) -> list[Each]:
    """Return the first of every group, then the second of every group, and so on. Elements must not be None."""
    return [each for turn in zip_longest(*groups) for each in turn if each is not None]


@dataclass(frozen=True)
class CrossModelSignal:
    """Compares with the source judge's verdicts.

    Judges disagree where their answers differ. Beyond the paper they also disagree where the answers are the same but
    P(yes) differs by ``margin`` or more. Otherwise a judge that says yes to everything would hide its doubts. Where the
    two P(yes) have different sources (log-probabilities, the answer alone, …), only the answers are compared: a hard
    yes is 1, but a sure yes may be .7.

    The order of reading takes out each judge's leniency. If the source says no to nearly everything, its no comes early
    only on examples that it likes less than its average.

    A draft may ask a question the other way round (same id, other ``good``). The source's verdicts belong to its own
    checklist, so they are turned to the draft's question before they are compared.
    """

    source: Reference
    verdicts: Sequence[Verdict]
    """The source's verdicts on the development examples."""
    examples: Sequence[Example]
    target: Callable[[Draft], Evaluator] | None
    """Makes the target judge; None where no explanations are bought."""
    margin: float
    """Least difference of P(yes), or of stated scores, that counts as a disagreement."""
    differing: float = 0.0
    """Largest share of examples with another answer, on every question, at which both judges agree."""
    tolerance: float | None = None
    """The papers' condition instead: mean scores agree if they differ by less than this, on every dimension."""
    soft: bool = True
    """Whether scores come from P(yes). If not, a difference of P(yes) alone is no disagreement."""
    of_scores: bool = False
    """Whether both judges state scores: then they differ where scores are ``margin`` or more apart."""
    say: Callable[[str], None] | None = None
    """Receives a message, once, if only answers are compared."""
    _told: set[str] = field(default_factory=set, init=False, compare=False)

    @cached_property
    def _known(self) -> dict[Pair, Verdict]:
        return by_pair(self.verdicts)

    def _means(self, asked: Checklist, verdicts: Sequence[Verdict], *, soft: bool) -> dict[str, float | None]:
        scores = score_examples(self.examples, asked, verdicts, soft=soft)
        names = self.source.checklist.dimensions
        return {name: mean_score(each.dimensions.get(name) for each in scores) for name in names}

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Return the disagreements, the widest gap first; questions take turns."""
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
        The paper's other condition, that the target scores at least as high, is left out: a judge that says yes to
        everything would meet it.
        """
        asked = seen.checklist or self.source.checklist
        if self.tolerance is None:
            # means are not enough: judges whose verdicts are all swapped may have the same means
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
        """Whether the source's P(yes) has the same provenance, e.g. log-probabilities."""
        source = self._known.get((verdict.example, verdict.question))
        return source is None or source.p_yes_from == verdict.p_yes_from

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """Return the source's P(good), for the question as the source was asked."""
        verdict = self._known.get((example, question))
        return self.source.checklist.question(question).p_good(verdict.p_yes) if verdict else None

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Return both judges' explanations."""
        if self.target is None:
            return Reasons()
        mine = await explanations(self.target(draft), disputed(seen, disagreements), self.examples)
        verdicts = [self._known[each.example, each.question] for each in disagreements]
        return Reasons(mine, await explanations(self.source, verdicts, self.examples))

    def _said(self, asked: Checklist, verdict: Verdict) -> Verdict | None:
        """Return the source's verdict on the same example, turned to the question as the target is asked."""
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
        """Whether the answers differ; with ``of_scores``, whether the scores do."""
        if not self.of_scores:
            return target.answer != source.answer
        return abs((target.p_yes or 0.0) - (source.p_yes or 0.0)) >= self.margin

    def _compare(self, pairs: Sequence[tuple[Verdict, Verdict]]) -> Iterator[Disagreement]:
        """Yield the disagreements on one question. A gap is the difference after each judge's mean is subtracted."""
        compared = [
            (target.p_yes or 0.0, source.p_yes or 0.0)
            if target.p_yes_from == source.p_yes_from
            else (float(target.answer or 0), float(source.answer or 0))
            for target, source in pairs
        ]
        levels = [sum(side) / len(pairs) for side in zip(*compared, strict=True)]
        for (target, source), (target_value, source_value) in zip(pairs, compared, strict=True):
            differ = self._differ(target, source)
            if not differ and (self.of_scores or not self.soft or abs(target_value - source_value) < self.margin):
                continue
            too_high = target_value > source_value if self.of_scores or not differ else bool(target.answer)
            excess = (target_value - levels[0]) - (source_value - levels[1])
            yield Disagreement(
                example=target.example,
                question=target.question,
                target=too_high,
                reference=not too_high,
                gap=excess if too_high else -excess,
                target_p_yes=target.p_yes,
                reference_p_yes=source.p_yes or 0.0,
            )


@dataclass(frozen=True)
class HumanSignal:
    """Compares with people's scores, mapped to [0, 1].

    An example is disputed if the judge's score is more than ``threshold`` away from people's, in either direction (App.
    B). People do not answer questions. On a disputed example a question is disputed if its P(good) is off by as much in
    the same direction, and its answer errs this way too. Beyond the paper, a question whose verdicts run against the
    human ranking is disputed on every example on which its own P(good) is off. The order of reading takes out the
    judge's leniency.
    """

    targets: Targets
    examples: Sequence[Example]
    judge: Callable[[Draft], Evaluator] | None
    """Makes the judge that is being improved; None where no explanations are bought."""
    threshold: float
    by_score: bool = False
    """The papers' way: on a disputed example, and only there, all questions whose answer errs like the score are
    disputed."""
    of_scores: bool = False
    """Whether the judge states a score, which may be off in either half of the scale, whatever the answer."""
    whose: str = "people's mean score"
    """Name of the target scores, for the note-taker."""

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Return the disagreements: questions that run against people first, then the widest gap first. Questions take
        turns."""
        scores = {each.example: each for each in seen.scores}
        by_question: dict[str, list[Verdict]] = {}
        for verdict in seen.verdicts:  # without checks and measures, which no judge's prompt can change
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
        """Return True: any P(good) can be compared with people's scores."""
        return True

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """Return people's score on the question's dimension; None where it does not tell this question's answer."""
        wanted = self.targets.wanted.get(example, {}).get(self._dimension(draft, question))
        origin = draft.origins.get(question)
        # A learned question looks for one fault of many. A person who rejects an output need not mean this fault. So a
        # low score is its right answer only on the examples that the question came from.
        if wanted is not None and wanted < 0.5 and origin is not None and example not in origin.sources:
            return None
        return wanted

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """Return the judge's explanations and people's comments, or people's score where there is no comment."""
        judge_reasons = {}
        if self.judge is not None:
            judge_reasons = await explanations(self.judge(draft), disputed(seen, disagreements), self.examples)
        human_reasons = {}
        by_id = {example.id: example for example in self.examples}
        for disagreement in disagreements:
            name = self._dimension(draft, disagreement.question)
            wanted = self.targets.wanted[disagreement.example].get(name) or 0.0
            remarks = told(comments_on(by_id[disagreement.example].comment, disagreement.question, draft.questions))
            score = f"{self.whose} of {name}: {wanted:.2f}, from 0 (worst) to 1 (best)"
            human_reasons[disagreement.key] = remarks or score
        return Reasons(judge_reasons, human_reasons)

    def _dimension(self, draft: Draft, question: str) -> str:
        """Return the rated dimension that a question belongs to."""
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
        """Yield the disagreements on one question. A gap is the difference after both means are subtracted."""
        pairs = [
            (verdict, question.p_good(verdict.p_yes or 0.0), wanted)
            for verdict in verdicts
            if (wanted := self.targets.wanted[verdict.example].get(dimension)) is not None
        ]
        if not pairs:
            return
        level = sum(p_good - wanted for _, p_good, wanted in pairs) / len(pairs)
        for verdict, p_good, wanted in pairs:
            gap = p_good - wanted
            score_gap = self._off(scores[verdict.example], dimension)
            if self.by_score:
                if (
                    score_gap is None
                    or abs(score_gap) <= self.threshold
                    or question.is_good(verdict.answer) is not (score_gap > 0)
                ):
                    continue
                gap = score_gap
            is_disputed = score_gap is not None and abs(score_gap) > self.threshold and score_gap * gap > 0
            # P(good) may be too high although the answer is already the bad one; no lesson is needed there
            answered_so = self.of_scores or question.is_good(verdict.answer) is (gap > 0)
            if not self.by_score and (abs(gap) <= self.threshold or not (is_disputed or against) or not answered_so):
                continue
            yield Disagreement(
                example=verdict.example,
                question=verdict.question,
                target=question.is_good(gap > 0),
                reference=question.is_good(gap < 0),
                gap=gap - level if gap > 0 else level - gap,
                target_p_yes=verdict.p_yes,
                reference_p_yes=question.p_good(wanted),
            )

    def _off(self, scores: ExampleScore, dimension: str) -> float | None:
        mine = self.targets.dimension_score(scores, dimension)
        wanted = self.targets.wanted[scores.example].get(dimension)
        return None if mine is None or wanted is None else mine - wanted
