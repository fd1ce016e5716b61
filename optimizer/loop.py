"""The improvement loop: signal → lessons → edits → gate, until nothing is gained (Algorithm 1, with three splits).

One loop for all modes: what differs is the signal. The best version so far is what a user gets, whatever happens
later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..models.base import ModelError
from ..models.structured import ParseError
from ..prompts.errors import BudgetExceededError
from ..prompts.prompt import EditRefusedError, Prompt
from .results import FinishReason, Outcome, TriedEdits, Version, difference_dict
from .scoring import score_examples
from .signals import explanations

if TYPE_CHECKING:
    from ..agents.evaluator import Evaluator
    from ..agents.updater import Updater
    from ..memory.journal import Journal
    from ..memory.run_directory import RunDirectory
    from ..prompts.checklist import Checklist
    from ..prompts.examples import Example
    from ..prompts.lessons import Disagreement, Edit, Lesson
    from ..prompts.verdicts import Verdict
    from .acceptance import Acceptance
    from .lessons import LessonDesk
    from .options import LoopOptions
    from .progress import Watcher
    from .signals import Signal


@dataclass(frozen=True)
class Parts:
    """What the loop is made of; a mode chooses them."""

    signal: Signal
    gate: Acceptance
    desk: LessonDesk
    updater: Updater
    evaluator: Callable[[Prompt], Evaluator]
    """The judge that is being improved, with a given prompt."""
    checklist: Checklist
    development: Sequence[Example]
    validation: Sequence[Example]
    run: RunDirectory
    journal: Journal
    watcher: Watcher
    max_prompt_chars: int | None = None
    """Longest prompt that several edits together may make; each edit alone is checked by the updater."""


class Loop:
    """One run of the loop."""

    def __init__(self, parts: Parts, options: LoopOptions) -> None:
        """Nothing is asked yet."""
        self._parts = parts
        self._options = options
        self._versions = 0
        self._looked_at: set[str] = set()
        self._refused: dict[tuple[str, str], str] = {}
        self._tried: list[TriedEdits] = []
        self._accepted: Version | None = None

    async def improve(self, start: Prompt) -> Outcome:
        """Improve a prompt until one of the reasons to stop holds.

        Raises:
            BudgetExceededError: The budget ended before the starting prompt was measured.
            ModelError: A model cannot be reached at all.
        """
        baseline = await self._measure(start)
        best = baseline
        iteration = idle = 0
        reason: FinishReason = "max_iterations"
        try:
            while iteration < self._options.max_iterations:
                iteration += 1
                candidate, stop = await self._iterate(best, iteration)
                if stop is not None:
                    reason = stop
                    break
                idle = 0 if candidate is not best else idle + 1
                best = candidate
                if idle >= self._options.patience:
                    reason = "no_gain"
                    break
        except BudgetExceededError as error:
            reason = cast(FinishReason, error.limit)
            self._parts.watcher.say(str(error))
            best = self._accepted or best
        self._parts.journal.write("stopped", reason=reason, iteration=iteration)
        return Outcome(baseline, best, reason, iteration, self._tried)

    async def _iterate(self, best: Version, iteration: int) -> tuple[Version, FinishReason | None]:
        """One round; returns the best version after it, or the reason to stop before it."""
        parts = self._parts
        room = self._options.max_lessons - len({each for edit in best.edits for each in edit.lessons})
        if room <= 0:
            return best, "max_lessons"
        parts.watcher.phase(f"iteration {iteration}: judging the development examples")
        verdicts = await parts.evaluator(best.prompt).judge(parts.development, parts.watcher.advance)
        if parts.signal.agrees(verdicts):
            return best, "converged"
        found = parts.signal.disagreements(verdicts)
        telling = [each for each in found if each.gap > 0 and each.key not in self._looked_at]
        chosen = telling[: self._options.max_notes]
        parts.journal.write(
            "disagreements", iteration=iteration, found=len(found), read=[each.model_dump() for each in chosen]
        )
        parts.watcher.say(
            f"iteration {iteration}: {len(found)} disagreements on {len(verdicts)} verdicts, reading {len(chosen)}"
        )
        if not chosen:
            return best, "no_disagreements"
        self._looked_at.update(each.key for each in chosen)
        lessons = await self._learn(best, chosen, verdicts)
        unsaid = [lesson for lesson in lessons if lesson.text not in best.prompt.text]
        edits = await self._edits(best.prompt, unsaid[:room])
        best = await self._try(best, edits, iteration)
        if not parts.journal.replaying:
            parts.run.save_lessons(parts.desk.memory.lessons)
        return best, None

    async def _learn(self, best: Version, chosen: Sequence[Disagreement], verdicts: Sequence[Verdict]) -> list[Lesson]:
        parts = self._parts
        by_key = {(each.example, each.question): each for each in verdicts if each.replicate == 0}
        mine: dict[str, str] = {}
        theirs: dict[str, str] = {}
        if self._options.explain != "never":
            parts.watcher.phase("asking both judges for their reasons", 2 * len(chosen))
            disputed = [by_key[each.example, each.question] for each in chosen]
            mine = await explanations(parts.evaluator(best.prompt), disputed, parts.development)
            parts.watcher.advance(len(chosen), 2 * len(chosen))
            theirs = dict(await parts.signal.reasons(chosen))
            parts.watcher.advance(2 * len(chosen), 2 * len(chosen))
            parts.journal.write("reasons", target=mine, reference=theirs)
        lessons = await parts.desk.learn(chosen, mine, theirs)
        for lesson in lessons:
            parts.watcher.say(f"lesson {lesson.id} ({lesson.direction}, support {lesson.support}): {lesson.text}")
        return sorted(lessons, key=lambda lesson: -lesson.support)

    async def _edits(self, prompt: Prompt, lessons: Sequence[Lesson]) -> list[Edit]:
        """One edit a lesson, each against the same prompt; those refused before are left out."""
        parts = self._parts
        parts.watcher.phase("writing edits", len(lessons))
        texts = [text for each in parts.development for text in (each.input, each.output or "")]
        edits = []
        for number, lesson in enumerate(lessons, 1):
            try:
                edit = await parts.updater.propose(prompt, lesson, texts)
            except (ParseError, ModelError) as error:
                if isinstance(error, ModelError) and error.fatal:
                    raise
                self._reject((lesson.id,), f"no edit: {error}")
                continue
            finally:
                parts.watcher.advance(number, len(lessons))
            if (edit.old, edit.new) in self._refused:
                self._reject(edit.lessons, self._refused[edit.old, edit.new])
                continue
            edits.append(edit)
            parts.journal.write("edit", **edit.model_dump())
        return edits

    async def _try(self, best: Version, edits: Sequence[Edit], iteration: int) -> Version:
        """All edits together; where the gate says no, one by one, the best supported first."""
        together = bundle(best.prompt, edits, self._parts.max_prompt_chars)
        if len(together) > 1:
            tried = await self._candidate(best, together, iteration)
            if tried is not best:
                return tried
        for edit in edits:
            try:
                check_length(best.prompt.apply(edit), self._parts.max_prompt_chars)
            except EditRefusedError as refused:
                self._reject(edit.lessons, f"not after the edit accepted before it: {refused}")
                continue
            best = await self._candidate(best, (edit,), iteration)
        return best

    async def _candidate(self, best: Version, edits: Sequence[Edit], iteration: int) -> Version:
        """Send a candidate through the gate; returns it where it is accepted, else ``best``."""
        parts = self._parts
        prompt = best.prompt
        for edit in edits:
            prompt = prompt.apply(edit)
        candidate = await self._measure(prompt, best, tuple(edits))
        decision = parts.gate.decide(best.scores, candidate.scores)
        self._tried.append(TriedEdits(tuple(edits), decision.accepted, decision.reason, decision.gain, iteration))
        lessons = [lesson for edit in edits for lesson in edit.lessons]
        parts.journal.write(
            "decision",
            version=candidate.number,
            parent=best.number,
            lessons=lessons,
            accepted=decision.accepted,
            reason=decision.reason,
            gain=difference_dict(decision.gain),
        )
        verb = "accepted" if decision.accepted else "rejected"
        parts.watcher.say(f"version {candidate.number} with {', '.join(lessons)} {verb}: {decision.reason}")
        if decision.accepted:
            parts.desk.memory.mark(lessons, "applied", decision.reason)
            self._accepted = candidate
            if not parts.journal.replaying:  # else an earlier process has written this version, or a better one
                parts.run.write("prompt.md", candidate.prompt.text)
            return candidate
        if len(edits) == 1:
            self._refused[edits[0].old, edits[0].new] = decision.reason
            self._reject(edits[0].lessons, decision.reason)
        return best

    def _reject(self, lessons: Sequence[str], reason: str) -> None:
        self._parts.desk.memory.mark(lessons, "rejected", reason)

    async def _measure(self, prompt: Prompt, parent: Version | None = None, edits: tuple[Edit, ...] = ()) -> Version:
        """Judge the validation examples with a prompt; every version is kept, accepted or not."""
        parts = self._parts
        number = self._versions
        self._versions += 1
        what = "the starting prompt" if parent is None else f"version {number}"
        parts.watcher.phase(f"judging validation with {what}")
        parts.run.save_version(number, prompt)
        verdicts = await parts.evaluator(prompt).judge(parts.validation, parts.watcher.advance)
        scores = score_examples(parts.validation, parts.checklist, verdicts, soft=self._options.scores == "soft")
        return Version(
            number,
            prompt,
            scores,
            (parent.edits if parent else ()) + edits,
            parent.number if parent else None,
        )


def bundle(prompt: Prompt, edits: Sequence[Edit], max_chars: int | None = None) -> tuple[Edit, ...]:
    """Those of the edits that can be applied one after the other, as long as the prompt stays short enough."""
    applied = []
    for edit in edits:
        try:
            prompt = check_length(prompt.apply(edit), max_chars)
        except EditRefusedError:
            continue
        applied.append(edit)
    return tuple(applied)


def check_length(prompt: Prompt, max_chars: int | None) -> Prompt:
    """Give the prompt back.

    Raises:
        EditRefusedError: It is longer than ``max_chars``.
    """
    if max_chars is not None and len(prompt.text) > max_chars:
        raise EditRefusedError(f"the prompt would have {len(prompt.text)} characters, more than {max_chars}")
    return prompt


__all__ = ["Loop", "Parts", "bundle", "check_length"]
