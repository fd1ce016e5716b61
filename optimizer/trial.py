"""A lesson earns its place: it is tried on its own evidence and on a few controls before it may change a prompt.

A handful of calls on development examples weeds out most bad lessons before a validation set is paid for. The
trial asks for selectivity: a rule that only makes the judge severer moves evidence and controls alike. On validation a
candidate is then first judged on the questions that its lessons come from: most useless ones are seen through there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ..evaluation.scoring import ExampleScore, mean_score
from ..memory.lesson_memory import LessonMemory
from ..prompts.checklist import YES_IS_GOOD, Polar
from ..prompts.examples import Example
from ..prompts.lessons import Edit, Lesson
from ..prompts.verdicts import Verdict
from .signals import Signal, take_turns
from .subject import Draft, Observation, Pair, Subject, by_pair

MOVED = 0.5
"""Change of log-odds from which a verdict has moved: an odds ratio of 1.65."""
EVIDENCE = 4
CONTROLS = 4
AGREED = 0.25
"""Distance in P(good) up to which a verdict and its reference agree, and the example may be a control."""
SURE = 0.02
"""A probability is kept this far from 0 and 1, so that a hard answer that flips moves by 3.9 in log-odds each way."""


@dataclass(frozen=True)
class TrialResult:
    """What became of a lesson's own disagreements, and of the controls."""

    passed: bool
    reason: str
    turned: int
    """Disagreements that moved towards the reference, or whose answer turned."""
    evidence: int
    """Disagreements that were tried and answered."""
    harmed: int
    """Controls that moved away from the reference, or whose answer turned away."""
    controls: int
    """Controls that were tried and answered."""
    evidence_shift: float | None = None
    """Mean change of the disagreements' log-odds towards the reference; None where none was answered."""
    control_shift: float | None = None
    """The same of the controls; below 0: away from the reference."""

    @property
    def selectivity(self) -> float:
        """Share of the disagreements that turned, less the share of the controls that were harmed; in [-1, 1]."""
        return self.turned / max(self.evidence, 1) - self.harmed / max(self.controls, 1)


@dataclass(frozen=True)
class LessonTrial:
    """Tries drafts that hold a lesson."""

    subject: Subject
    signal: Signal
    evidence: int = EVIDENCE
    """Disagreements that a lesson is tried on at most."""
    controls: int = CONTROLS
    """Controls that it is tried on at most."""

    async def run(self, before: Draft, after: Draft, lessons: Sequence[Lesson], seen: Observation) -> TrialResult:
        """Compare the verdicts of two drafts on the evidence of the lessons that the second one holds.

        Args:
            before: The draft that ``seen`` comes from.
            after: The same with the lessons in it.
            lessons: Their evidence is tried, the best supported lesson's first.
            seen: The verdicts on the development examples.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call.
        """
        known = by_pair(seen.verdicts)
        by_key = {f"{example}/{question}": (example, question) for example, question in known}
        evidence = [by_key[key] for key in evidence_keys(lessons) if key in by_key][: self.evidence]
        controls = self._find_controls(before, {question for _, question in evidence}, seen, known, lessons)
        new = await self.subject.probe(after, [*evidence, *controls], seen)

        def moves(pairs: Sequence[Pair]) -> list[float]:
            found = (
                shift(
                    known[pair],
                    new.get(pair),
                    self.signal.reference(before, *pair),
                    seen.polarity(*pair),
                    is_like=self.signal.is_like(known[pair]),
                )
                for pair in pairs
            )
            return [move for move in found if move is not None]

        tried, checked = moves(evidence), moves(controls)
        turned, harmed = (sum(move >= MOVED for move in tried), sum(move <= -MOVED for move in checked))
        for what, asked, answered in (("disagreements", evidence, tried), ("controls", controls, checked)):
            if asked and not answered:
                reason = f"failed its trial: with it, none of {len(asked)} {what} was answered"
                return TrialResult(False, reason, turned, len(tried), harmed, len(checked))
        result = verdict_of_trial(turned, len(tried), harmed, len(checked))
        return replace(result, evidence_shift=mean_score(tried), control_shift=mean_score(checked))

    def _find_controls(
        self,
        draft: Draft,
        questions: Collection[str],
        seen: Observation,
        known: dict[Pair, Verdict],
        lessons: Sequence[Lesson],
    ) -> list[Pair]:
        """Pairs on the same questions on which both sides agree, the surest first.

        A rule that makes the judge stricter is tried where both call the output good, a lenient one where both do not:
        there alone can it do harm, and a rule that only shifts the bias harms all of them. Both take turns where the
        lessons are of both kinds. The harmless side is looked at only where the other has none, as it would thin the harm out.
        """
        sides: dict[bool, list[tuple[float, Pair]]] = {True: [], False: []}
        for pair, verdict in known.items():
            wanted = self.signal.reference(draft, *pair)
            if pair[1] not in questions or wanted is None or verdict.p_yes is None:
                continue
            question = seen.polarity(*pair)
            if agreed(verdict, wanted, question, is_like=self.signal.is_like(verdict)):
                sides[wanted >= 0.5].append((abs(question.p_good(verdict.p_yes) - wanted), pair))
        ordered = {side: [pair for _, pair in sorted(pairs)] for side, pairs in sides.items()}
        at_risk = {lesson.direction == "stricter" for lesson in lessons}
        if len(at_risk) == 1:
            first = at_risk.pop()
            return (ordered[first] or ordered[not first])[: self.controls]
        return take_turns(ordered.values())[: self.controls]


def evidence_keys(lessons: Sequence[Lesson]) -> list[str]:
    """The disagreements behind the lessons, each once, lessons taking turns."""
    return list(dict.fromkeys(take_turns(lesson.evidence for lesson in lessons)))


def agreed(verdict: Verdict, wanted: float, question: Polar, *, is_like: bool) -> bool:
    """Whether a verdict is on its reference's side, and near it where ``is_like`` says that distances can be
    compared."""
    is_near = not is_like or abs(question.p_good(verdict.p_yes or 0.0) - wanted) <= AGREED
    return is_near and question.is_good(verdict.answer) == (wanted >= 0.5)


def shift(
    before: Verdict,
    after: Verdict | None,
    wanted: float | None,
    question: Polar = YES_IS_GOOD,
    *,
    is_like: bool = True,
) -> float | None:
    """Change of the log-odds of the good answer towards the wanted side; None where an answer is missing.

    ``wanted`` is how likely the good answer should be. Towards means towards the side on which it lies of what the judge
    said before; on controls, which agree, towards the wanted answer. ``is_like`` is as of :func:`agreed`.
    """
    if after is None or wanted is None or before.p_yes is None or after.p_yes is None:
        return None
    was, now = question.p_good(before.p_yes), question.p_good(after.p_yes)
    change = log_odds(now) - log_odds(was)
    up = wanted >= 0.5 if not is_like or agreed(before, wanted, question, is_like=True) else wanted > was
    return change if up else -change


def log_odds(probability: float) -> float:
    """Log-odds of a probability, kept away from certainty."""
    bounded = min(max(probability, SURE), 1 - SURE)
    return math.log(bounded / (1 - bounded))


def verdict_of_trial(turned: int, evidence: int, harmed: int, controls: int) -> TrialResult:
    """Passed where something turned and a smaller share of the controls was harmed."""
    said = f"{turned} of {evidence} disagreements fixed, {harmed} of {controls} controls regressed"
    selective = turned * max(controls, 1) > harmed * evidence
    passed = turned > 0 and selective
    reason = said if passed else f"failed its trial: {said}"
    return TrialResult(passed, reason, turned, evidence, harmed, controls)


@dataclass(frozen=True)
class Screening:
    """Judges a part of the questions, for a judge that is asked each question on its own."""

    subject: Subject
    memory: LessonMemory
    """Knows the lessons' evidence."""
    soft: bool
    """How verdicts become scores."""

    def questions(self, before: Draft, after: Draft, edits: Sequence[Edit]) -> tuple[str, ...]:
        """The questions that the lessons of the edits come from, in the checklist's order.

        Empty where that is all of them, or where the drafts do not share their questions: there is nothing to save.
        """
        if after.checklist is None or after.checklist != before.checklist:
            return ()
        lessons = [self.memory.get(each) for edit in edits for each in edit.lessons]
        keys = [key for lesson in lessons for key in lesson.evidence]
        asked = [question.id for question in after.checklist.questions]
        found = tuple(each for each in asked if any(key.endswith(f"/{each}") for key in keys))
        return found if len(found) < len(asked) else ()

    async def judge(
        self,
        draft: Draft,
        examples: Sequence[Example],
        questions: Collection[str],
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[Verdict]:
        """The draft's verdicts on some of its questions.

        Raises:
            BudgetExceededError: A cap was reached.
            ModelError: An endpoint refuses every call or is down.
        """
        checklist = draft.questions
        chosen = tuple(each for each in checklist.questions if each.id in questions)
        part = replace(draft, checklist=checklist.model_copy(update={"questions": chosen}))
        return list((await self.subject.observe(part, examples, on_done)).verdicts)

    def scores(self, draft: Draft, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> Sequence[ExampleScore]:
        """The scores of the examples from verdicts on all questions, whichever prompt each comes from."""
        ids = {example.id for example in examples}
        known = [verdict for verdict in verdicts if verdict.example in ids]
        return draft.scores(examples, known, soft=self.soft)
