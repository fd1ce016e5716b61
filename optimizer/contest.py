"""The contest of candidates with the best version so far, on validation: bundles, the guilty edit, and early drops.

A candidate is first judged on the questions that its lessons come from, which shows most useless candidates. A gain
within noise is no reason to take a bundle of edits apart, because its parts gain less. Such edits wait and are tried
again together with the next ones, until their joint gain stands out or nothing is left to add.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from math import ceil, inf, log2
from typing import Protocol

from ..evaluation.scoring import ExampleScore, coverage
from ..memory.lesson_memory import LessonMemory
from ..memory.records import TriedRecord
from ..memory.run_directory import RunDirectory
from ..prompts.examples import Example
from ..prompts.formatting import coverage_text
from ..prompts.lessons import Edit
from ..prompts.prompt import EditRefusedError, Prompt, check_length
from ..prompts.verdicts import Verdict
from .acceptance import Acceptance, Decision
from .events import Teller, VersionDecided
from .subject import Crossed, Draft, Subject, Version

Stop = Callable[[Sequence[ExampleScore], Sequence[ExampleScore]], Decision | None]
"""Takes the best version's and the candidate's scores on the first validation examples; a rejection ends the race."""
LEAST_RUNG = 8
"""Fewest validation examples that are judged before a candidate may be dropped."""
ON_ITS_OWN = ", judged on its lessons' own questions alone"
"""Added to the reason of a candidate that was dropped before the other questions were asked."""
ANEW = ", with its questions written anew"
"""Added to the reason of a candidate that is a prompt with questions written from it."""


class WritesQuestions(Protocol):
    """Writes the questions of a draft anew from its prompt."""

    async def propose(self, draft: Draft, iteration: int) -> Draft | None:
        """Return the draft with its new questions; None where they are the same or could not be written."""


@dataclass(frozen=True)
class Race:
    """The trial of one candidate on validation, and its result."""

    number: int
    """Version number of the candidate."""
    decision: Decision
    judged: int
    """Number of examples that the candidate was judged on."""
    version: Version | None
    """The candidate with its verdicts on every question and example; None if it was dropped early."""


@dataclass(frozen=True)
class Waiting:
    """Edits that together gain something on the best version, but within noise."""

    edits: tuple[Edit, ...] = ()
    gain: float = 0.0
    reason: str = ""
    """The acceptance test's reason."""

    @property
    def lessons(self) -> set[str]:
        """Ids of the lessons behind the edits."""
        return {lesson for edit in self.edits for lesson in edit.lessons}


@dataclass(frozen=True)
class Screening:
    """Judges a candidate on a part of the questions, for a judge that is asked each question alone."""

    subject: Subject
    memory: LessonMemory
    """Has the evidence of the lessons."""
    soft: bool
    """Whether scores come from P(yes); else from the answers."""

    def questions(self, before: Draft, after: Draft, edits: Sequence[Edit]) -> tuple[str, ...]:
        """Return the questions that the lessons of the edits come from, in the checklist's order. Empty where screening
        saves nothing."""
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
        """Return the draft's verdicts on some of its questions."""
        checklist = draft.questions
        chosen = tuple(each for each in checklist.questions if each.id in questions)
        part = replace(draft, checklist=checklist.model_copy(update={"questions": chosen}))
        return list((await self.subject.observe(part, examples, on_done)).verdicts)

    def scores(self, draft: Draft, examples: Sequence[Example], verdicts: Sequence[Verdict]) -> Sequence[ExampleScore]:
        """Return the examples' scores from verdicts on all questions, which may come from different prompts."""
        ids = {example.id for example in examples}
        known = [verdict for verdict in verdicts if verdict.example in ids]
        return draft.scores(examples, known, soft=self.soft)


@dataclass
class Contest:
    """Measures versions on the validation examples and lets the acceptance test decide."""

    subject: Subject
    acceptance: Acceptance
    validation: Sequence[Example]
    """Validation examples in an order in which any first part is a fair sample."""
    run: RunDirectory
    """Keeps every version."""
    events: Teller
    racing: bool
    """Whether a clearly worse candidate is dropped before all examples are judged."""
    bisect: bool
    """Whether a bundle that fails is divided to find the guilty edit."""
    max_prompt_chars: int | None
    """Most characters of a prompt that several edits make; None: no limit."""
    min_coverage: float = 0.0
    """Least share of verdicts that both a candidate and the best version need before the candidate is accepted."""
    screening: Screening | None = None
    """Judges the questions of a candidate's lessons first, used with ``racing``; None where questions cannot be asked
    alone, as with a generator."""
    again: WritesQuestions | None = None
    """Writes the questions of a candidate anew from its prompt; None: they stay."""
    tried: list[TriedRecord] = field(default_factory=list, init=False)
    accepted: Version | None = field(default=None, init=False)
    """The last version that was accepted, or its shortened form: the result for the user so far."""
    refused: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    """Reasons of rejected edits, by old and new text. These edits are not tried again."""
    refused_on: dict[tuple[str, str], Draft] = field(default_factory=dict, init=False)
    """Edits that were refused alone and for good, with the draft that was edited."""
    untried: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    """Edits that were not tried, or not alone, with the reason. Nothing is known against them."""
    waiting: Waiting = field(default=Waiting(), init=False)
    _versions: int = field(default=0, init=False)
    _tries: int = field(default=0, init=False)
    """Candidates that may still be tried in this round."""
    _decided: dict[tuple[int, frozenset[tuple[str, str]]], Decision] = field(default_factory=dict, init=False)
    """Decisions of the acceptance test, by version and edits. If one half of a bundle waits, the other half makes the
    same bundle again."""
    _look: tuple[int, int] | None = field(default=None, init=False)
    """Argument ``look`` of :meth:`challenge` for this round's edits, if they were tried with new questions before."""

    async def start(self, draft: Draft) -> Version:
        """Measure the starting draft."""
        number = self._new_version(draft)
        self.events.phase("judging validation with the starting prompt")
        seen = await self.subject.observe(draft, self.validation, self.events.advance)
        version = Version(number, draft, seen.scores, verdicts=seen.verdicts, outputs=seen.examples)
        if problem := self.lacking(version):
            self.events.say(f"On validation {problem}: as long as they are missing, no other version is accepted.")
        return version

    def lacking(self, *versions: Version) -> str | None:
        """Return why too few verdicts are known for a decision; None where there are enough."""
        seen = min((coverage(each.verdicts) for each in versions), key=lambda each: each.share)
        if seen.share >= self.min_coverage:
            return None
        share = coverage_text(seen.share)
        return (
            f"only {seen.answered} of {seen.asked} verdicts are there ({share}), less than --min-coverage "
            f"{self.min_coverage:.1%}"
        )

    async def settle(self, best: Version, edits: Sequence[Edit], iteration: int) -> Version:
        """Try edits together with the waiting ones; if this gains nothing, try each half, to find the guilty edit.

        Edits come best supported first. Returns the best version afterwards. If questions are written anew, the first
        candidate is the new prompt with questions written from it (BinEval App. B, steps 4 and 5). The second candidate
        is the prompt alone. Both share the acceptance test's level.
        """
        self._tries, self._look = most_tries(len(edits)), None
        usable = self._candidate(best, edits)
        winner = best if self.again is None or not usable else await self._pair(best, usable, iteration, self.again)
        if winner is not best:
            self._wait(Waiting(), beside=usable)
            edits = [edit for edit in edits if edit not in usable]
            if not edits:
                return winner
        return await self._settle(winner, edits, iteration)

    async def _pair(self, best: Version, edits: tuple[Edit, ...], iteration: int, again: WritesQuestions) -> Version:
        """Send edits through the acceptance test together with questions written from the edited prompt."""
        draft = edited(best.draft, edits)
        pair = await again.propose(draft, iteration)
        if pair is None:
            return best
        self._look = (2, 2)
        raced = await self.race(best, pair, best.edits + edits, edits, look=(1, 2))
        decision = replace(raced.decision, reason=raced.decision.reason + ANEW)
        return self.conclude(best, replace(raced, decision=decision), edits, iteration)

    async def _settle(self, best: Version, edits: Sequence[Edit], iteration: int) -> Version:
        waiting = self.waiting
        usable = self._candidate(best, edits)
        if not usable:
            for edit in edits:
                reason = problem_of(best.draft.prompt, edit, self.max_prompt_chars)
                self.untried[change_of(edit)] = f"it cannot be applied to the best prompt so far: {reason}"
            return best
        key = best.number, frozenset(map(change_of, usable))
        decision, winner = self._decided.get(key), best
        if decision is None:
            if self._tries == 0:
                reason = "not tried alone: the candidates of this round are used up"
                self.untried |= dict.fromkeys(map(change_of, edits), reason)
                return best
            self._tries -= 1
            raced = await self.race(best, edited(best.draft, usable), best.edits + usable, usable, look=self._look)
            winner = self.conclude(best, raced, usable, iteration)
            decision = self._decided[key] = raced.decision
        gain = decision.gain.value if decision.within_noise and decision.gain is not None else None
        new = [edit for edit in usable if edit not in waiting.edits]
        if winner is not best:
            self._wait(Waiting(), beside=usable)
        elif gain is not None and gain > waiting.gain:
            self._wait(Waiting(usable, gain, decision.reason), beside=usable)
            names = ", ".join(lesson for edit in usable for lesson in edit.lessons)
            self.events.say(f"{names}: to be tried again together with further lessons")
        elif len(new) > 1 and self.bisect:
            half = (len(new) + 1) // 2
            winner = await self._settle(best, new[:half], iteration)
            winner = await self._settle(winner, new[half:], iteration)
        else:
            beside = f"; {waiting.gain:+.3f} without it" if waiting.edits else ""
            self._refuse(new, f"{decision.reason}{beside}")
            if len(new) == 1 and not decision.within_noise:
                others = [edit for edit in usable if edit not in new]
                self.refused_on[change_of(new[0])] = edited(best.draft, others)
        left = [edit for edit in edits if edit not in usable]
        return await self._settle(winner, left, iteration) if left else winner

    def _candidate(self, best: Version, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Return the edits with the waiting ones, or without them where none can be applied beside these."""
        beside = bundle(best.draft.prompt, [*self.waiting.edits, *edits], self.max_prompt_chars)
        if len(beside) > len(self.waiting.edits):
            return beside
        return bundle(best.draft.prompt, edits, self.max_prompt_chars)

    def _wait(self, now: Waiting, beside: Sequence[Edit]) -> None:
        """Replace the waiting edits. Old waiting edits that were not tried with the last ones are rejected."""
        self._refuse([edit for edit in self.waiting.edits if edit not in beside], self.waiting.reason)
        self.waiting = now

    def _refuse(self, edits: Sequence[Edit], reason: str) -> None:
        self.refused |= dict.fromkeys(map(change_of, edits), reason)

    async def challenge(
        self,
        best: Version,
        edits: Sequence[Edit],
        iteration: int,
        draft: Draft,
        look: tuple[int, int] | None = None,
        shows: str | None = None,
    ) -> Version:
        """Send one candidate through the acceptance test; returns the candidate if it is accepted, else ``best``.

        ``look`` is the number of this candidate and the number of candidates that share the acceptance test's level.
        ``shows`` names additions without an edit: examples shown to a judge, or settings and texts for a generator.
        """
        raced = await self.race(best, draft, best.edits + tuple(edits), edits, look=look)
        return self.conclude(best, raced, edits, iteration, shows)

    def give_up(self, draft: Draft, crossed: Crossed) -> Race | None:
        """Reject early if the gain on the first folds is undefined, or a loss of at least one standard error. Returns
        None when the remaining folds must be judged: a missing gain on a part alone is too noisy to reject."""
        decision = self.acceptance.decide_crossed(crossed)
        if _at_best(decision) > 0:
            return None
        return Race(self._new_version(draft), decision, len(crossed.examples), None)

    def may_go_without(self, crossed: Crossed) -> bool:
        """Whether the judge may leave out idle questions of the start: no loss above a standard error on the folds."""
        return _at_best(self.acceptance.decide_crossed(crossed.made_lean())) >= 0

    async def cross(self, best: Version, draft: Draft, crossed: Crossed) -> Race:
        """Decide about a draft that also learned from validation, by the cross-fitted scores of the same learning."""
        number = self._new_version(draft)
        seen = await self.subject.observe(draft, self.validation, self.events.advance)
        version = Version(number, draft, seen.scores, (), best.number, seen.verdicts, seen.examples, crossed)
        decision = self._complete(self.acceptance.decide_crossed(crossed), best, version)
        return Race(number, decision, len(crossed.examples), version)

    def conclude(
        self, best: Version, raced: Race, edits: Sequence[Edit], iteration: int, shows: str | None = None
    ) -> Version:
        """Record the decision on a candidate, and keep it if it is accepted; returns the best version afterwards."""
        found = raced.decision
        tried = TriedRecord(
            edits=tuple(edits),
            accepted=found.accepted,
            reason=found.reason,
            gain=found.gain,
            iteration=iteration,
            judged=raced.judged,
            **({"shows": shows} if shows else {}),
        )
        self.tried.append(tried)
        self.events.emit(VersionDecided(raced.number, best.number, tried))
        if raced.version is None or not found.accepted:
            return best
        self.accepted = raced.version
        return raced.version

    def _complete(self, decision: Decision, best: Version, version: Version) -> Decision:
        if decision.accepted and (problem := self.lacking(best, version)):
            return Decision(False, f"{decision.reason}, but {problem}", decision.gain, True)
        return decision

    async def race(
        self,
        best: Version,
        draft: Draft,
        edits: tuple[Edit, ...],
        changed: Sequence[Edit],
        stop: Stop | None = None,
        look: tuple[int, int] | None = None,
    ) -> Race:
        """Judge a candidate in steps, drop it as soon as it is clearly worse, and decide at the end.

        Args:
            best: The best version so far.
            draft: The candidate.
            edits: All edits of the candidate.
            changed: Edits that the candidate adds to the best version, or takes out of it.
            stop: Rejects after a part of the verdicts; default: the acceptance test.
            look: As in :meth:`challenge`.
        """
        acceptance = self.acceptance if look is None else self.acceptance.at_look(*look)
        stop = stop or acceptance.hopeless
        number = self._new_version(draft)
        self.events.phase(f"judging validation with version {number}")
        examples, screening = self.validation, self.screening if self.racing else None
        asked = screening.questions(best.draft, draft, changed) if screening is not None else ()
        verdicts: list[Verdict] = []
        scores: Sequence[ExampleScore] = []
        outputs: list[Example] = []
        if screening is not None and asked:
            # A candidate that gains nothing on its lessons' own questions is not judged on the others. Here the best
            # version's verdicts stand in for the others. Such mixed scores may only drop a candidate; no version has
            # them.
            others = [each for each in best.verdicts if each.question not in asked]
            for start, rung in pairwise([0, *self._rungs()]):
                verdicts += await screening.judge(draft, examples[start:rung], asked, self.events.advance)
                scores = screening.scores(draft, examples[:rung], [*verdicts, *others])
                dropped = stop(best.scores, scores)
                if dropped is not None:
                    return Race(number, replace(dropped, reason=dropped.reason + ON_ITS_OWN), rung, None)
            rest = [each.id for each in draft.questions.questions if each.id not in asked]
            verdicts += await screening.judge(draft, examples, rest, self.events.advance)
            scores = screening.scores(draft, examples, verdicts)
        else:
            for start, rung in pairwise([0, *self._rungs()]):
                seen = await self.subject.observe(draft, examples[start:rung], self.events.advance)
                verdicts += seen.verdicts
                outputs += seen.examples
                scores = [*scores, *seen.scores]
                dropped = stop(best.scores, scores) if rung < len(examples) else None
                if dropped is not None:
                    return Race(number, dropped, rung, None)
        version = Version(number, draft, scores, edits, best.number, verdicts, outputs, best.crossed)
        decision = self._complete(acceptance.decide(best.scores, scores), best, version)
        return Race(number, decision, len(examples), version)

    def _rungs(self) -> list[int]:
        n = len(self.validation)
        steps = [n // 3, 2 * n // 3] if self.racing else []
        return [*(step for step in steps if LEAST_RUNG <= step < n), n]

    def _new_version(self, draft: Draft) -> int:
        number = self._versions
        self._versions += 1
        self.run.save_version(number, draft.prompt, draft.hash)
        return number


def change_of(edit: Edit) -> tuple[str, str]:
    """Return old and new text, which identify an edit whatever lessons it comes from."""
    return edit.old, edit.new


def bundle(prompt: Prompt, edits: Sequence[Edit], max_chars: int | None = None) -> tuple[Edit, ...]:
    """Return the edits that can be applied one after the other without making the prompt too long."""
    applied = []
    for edit in edits:
        if problem_of(prompt, edit, max_chars) is None:
            prompt = prompt.apply(edit)
            applied.append(edit)
    return tuple(applied)


def problem_of(prompt: Prompt, edit: Edit, max_chars: int | None = None) -> str | None:
    """Return why an edit cannot be applied to a prompt; None where it can."""
    try:
        check_length(prompt.apply(edit), max_chars)
    except EditRefusedError as error:
        return str(error)
    return None


def edited(draft: Draft, edits: Sequence[Edit]) -> Draft:
    """Return the draft with the edits applied to its prompt, one after the other."""
    return replace(draft, prompt=reduce(Prompt.apply, edits, draft.prompt))


def most_tries(edits: int) -> int:
    """Return the most candidates in a round with so many edits: as many as it takes to find one guilty edit."""
    # more would cost more than testing each edit alone, and each is a chance to accept one that only seems better
    return 2 * ceil(log2(max(edits, 1))) + 1


def _at_best(decision: Decision) -> float:
    """Return the gain plus one standard error; minus infinity where the gain is undefined."""
    gain = decision.gain
    return -inf if gain is None or gain.value is None else gain.value + (gain.standard_error or 0.0)
