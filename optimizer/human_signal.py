"""The signal of ``align``: people's scores (BinEval App. B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..prompts.lessons import Disagreement
from ..stats.correlation import spearman
from .signals import Reasons, disputed, explanations, take_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..agents.evaluator import Evaluator
    from ..evaluation.scoring import ExampleScore, Targets
    from ..prompts.examples import Example
    from ..prompts.verdicts import Verdict
    from .subject import Draft, Observation

LEAST_FOR_RANKING = 8
"""Examples from which a question's own correlation with people says something."""


class HumanSignal:
    """People's scores, mapped to [0, 1].

    An example is disputed where the judge's score is more than ``threshold`` away from people's, in either direction
    (App. B). People do not answer questions: on a disputed example those questions are disputed whose P(yes) is off
    in the same direction by as much and whose answer says so. Beyond the paper, a question whose verdicts run against
    the human ranking is disputed on every example on which its own P(yes) is off, whatever the other questions make up
    for. They are read in the order of what the judge's leniency does not explain.
    """

    def __init__(
        self,
        targets: Targets,
        examples: Sequence[Example],
        judge: Callable[[Draft], Evaluator] | None,
        *,
        threshold: float,
    ) -> None:
        """``examples`` are the development examples.

        ``judge`` makes the judge that is being improved; None where no explanations are bought.
        """
        self._targets = targets
        self._examples = examples
        self._judge = judge
        self._threshold = threshold

    def disagreements(self, draft: Draft, seen: Observation) -> list[Disagreement]:
        """Those of questions that run against people first, then widest gap first, questions taking turns."""
        scores = {each.example: each for each in seen.scores}
        by_question: dict[str, list[Verdict]] = {}
        for verdict in seen.verdicts:
            if not verdict.replicate and verdict.p_yes is not None:
                by_question.setdefault(verdict.question, []).append(verdict)
        groups: dict[bool, list[list[Disagreement]]] = {True: [], False: []}
        for question, verdicts in by_question.items():
            dimension = self._dimension(draft, question)
            against = self._runs_against_people(verdicts, dimension)
            found = sorted(self._compare(verdicts, dimension, scores, against), key=lambda each: -each.gap)
            groups[against].append(found)
        return take_turns(groups[True]) + take_turns(groups[False])

    def agrees(self, seen: Observation) -> bool:
        """Whether every score is within the threshold of people's."""
        distances = [self._off(each, name) for each in seen.scores for name in self._targets.dimensions]
        return bool(distances) and all(each is not None and abs(each) <= self._threshold for each in distances)

    def reference(self, draft: Draft, example: str, question: str) -> float | None:
        """People's score on the question's dimension."""
        return self._targets.wanted.get(example, {}).get(self._dimension(draft, question))

    async def reasons(self, draft: Draft, seen: Observation, disagreements: Sequence[Disagreement]) -> Reasons:
        """The judge's explanations, and what people gave."""
        mine = {}
        if self._judge is not None:
            mine = await explanations(self._judge(draft), disputed(seen, disagreements), self._examples)
        theirs = {}
        for each in disagreements:
            name = self._dimension(draft, each.question)
            theirs[each.key] = f"people's mean score of {name}: {each.reference_p_yes:.2f}, from 0 (worst) to 1 (best)"
        return Reasons(mine, theirs)

    def _dimension(self, draft: Draft, question: str) -> str:
        """The rated dimension that a question belongs to."""
        assert draft.checklist is not None, "a judge answers a checklist"
        name = draft.checklist.question(question).dimension
        return name if name in self._targets.dimensions else "overall"

    def _runs_against_people(self, verdicts: Sequence[Verdict], dimension: str) -> bool:
        wanted = [self._targets.wanted[each.example].get(dimension) for each in verdicts]
        if sum(each is not None for each in wanted) < LEAST_FOR_RANKING:
            return False
        found = spearman([each.p_yes for each in verdicts], wanted)
        return found.value is not None and found.value < 0

    def _compare(
        self, verdicts: Sequence[Verdict], dimension: str, scores: dict[str, ExampleScore], against: bool
    ) -> Iterator[Disagreement]:
        """The disagreements on one question; gaps are what is left once the means are taken out."""
        pairs = [
            (verdict, wanted)
            for verdict in verdicts
            if (wanted := self._targets.wanted[verdict.example].get(dimension)) is not None
        ]
        if not pairs:
            return
        level = sum((verdict.p_yes or 0.0) - wanted for verdict, wanted in pairs) / len(pairs)
        for verdict, wanted in pairs:
            off = (verdict.p_yes or 0.0) - wanted
            whole = self._off(scores[verdict.example], dimension)
            is_disputed = whole is not None and abs(whole) > self._threshold and whole * off > 0
            answered_so = verdict.answer is (off > 0)  # a doubtful no that is still too high is no wrong yes
            if abs(off) <= self._threshold or not (is_disputed or against) or not answered_so:
                continue
            yield Disagreement(
                example=verdict.example,
                question=verdict.question,
                target=off > 0,
                reference=off < 0,
                gap=off - level if off > 0 else level - off,
                target_p_yes=verdict.p_yes,
                reference_p_yes=wanted,
            )

    def _off(self, scores: ExampleScore, dimension: str) -> float | None:
        """The judge's score minus people's."""
        mine = self._targets.dimension_score(scores, dimension)
        wanted = self._targets.wanted[scores.example].get(dimension)
        return None if mine is None or wanted is None else mine - wanted
