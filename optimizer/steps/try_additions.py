"""The step before the rounds of ``tune``: settings and texts after the input are tried on development, then together.

Additions that gain little alone gain much together (by hand a form .14 and an example .10, both .28). So each addition
is tried alone, then added to the best set so far, even if it gained nothing alone. The best set goes to the acceptance
test. If that refuses it, the best part of the set has the second and last look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from ...evaluation.scoring import mean_score
from ...memory.records import AdditionRecord
from ...models.programs import Program
from ...prompts.checklist import ComputedCheck
from ...prompts.errors import InputError
from ...prompts.examples import Example, documents
from ...prompts.formatting import count
from ...prompts.prompt import EditRefusedError
from ...prompts.text import borrowed_words, copied_words
from ...stats.differences import mean_difference
from ...stats.resampling import Resampling
from ..acceptance import Yardstick
from ..events import Teller
from ..mode import LoopRound, Turn
from ..modes.generator import AnswersWithRecords, GeneratorSubject
from ..splits import spread_order
from ..subject import Draft, Observation, Outcome, Version
from .additions import AFTER_EXAMPLE, EXAMPLE, Addition, AdditionWriter, added, failing

TRIED_ON = 16
"""Most development examples in a trial. Every trial writes their outputs anew."""
CLEARLY_WORSE = 0.05
"""Largest loss of the mean score on the first half of the examples; with a larger loss the second half is not written.
"""
NOTHING = 1e-9
"""Gains up to this are rounding."""
CUT_OFF = 0.1
"""Least share of cut-off outputs for which more room is tried."""
NOISE = 1.0
"""Standard errors by which the mean over the questions may fall."""
COPIED, MOST_COPIES = 8, 0.25
"""Words in a row that count as copied from the shown example, and the largest share of outputs that may copy. A long
word of the example that neither the own input nor other outputs have counts as copied, too."""
PAIRS_OF = 3
"""Number of best additions whose pairs are all tried, if no addition gains anything alone."""


@dataclass(frozen=True)
class Trial:
    """A set of additions with the outputs written with it."""

    additions: tuple[Addition, ...]
    draft: Draft
    seen: Observation
    """The outputs on all examples of the trials; on the first half where the set was clearly worse there."""
    problem: str | None = None
    """Why the set cannot be taken; None where it can."""

    @property
    def said(self) -> str:
        """The additions in words."""
        return "; ".join(each.said for each in self.additions)

    @property
    def shown(self) -> set[str]:
        """Examples whose outputs the prompt shows: nothing is measured on them."""
        return {name for each in self.additions for name in each.sources}

    def value(self, without: set[str]) -> float:
        """Return the mean score, in [0, 1], over the examples that are not in ``without``."""
        return mean_score(each.overall for each in self.seen.scores if each.example not in without) or 0.0

    def asked(self, without: set[str]) -> list[float | None]:
        """Return the share of its questions, without checks, that each output passes; None without an answer."""
        found: dict[str, list[float]] = {each.id: [] for each in self.seen.examples if each.id not in without}
        for verdict in self.seen.counted:
            question = self.seen.polarity(verdict.example, verdict.question)
            good = question.is_good(verdict.answer)
            if verdict.example in found and good is not None and not isinstance(question, ComputedCheck):
                found[verdict.example].append(float(good))
        return [mean_score(each) for each in found.values()]


def gain(before: Trial, after: Trial) -> float:
    """Return the gain of the mean score from ``before`` to ``after``; minus infinity if ``after`` has a problem."""
    if after.problem is not None:
        return float("-inf")
    return after.value(after.shown) - before.value(after.shown)


def _same(one: Sequence[Addition], other: Sequence[Addition]) -> bool:
    return len(one) == len(other) and all(each in other for each in one)


@dataclass
class TryAdditions:
    """Tries additions on development examples, and sends the best set to the acceptance test."""

    subject: GeneratorSubject
    writer: AdditionWriter
    development: Sequence[Example]
    inputs: Sequence[Example]
    """All examples of the run. They tell whether a prompt has to show a context, and conversations."""
    events: Teller
    resamples: int
    seed: int
    records: list[AdditionRecord] = field(default_factory=list, init=False)
    _trials: list[Trial] = field(default_factory=list, init=False)
    """The start and all trials, in their order."""
    _most: int | None = field(default=None, init=False)
    """Most characters of a new prompt."""

    async def take(self, now: LoopRound) -> Turn | None:
        """Try additions to the start. Nothing is added to a program, which decides itself how it writes."""
        if isinstance(self.subject.generator.model, (Program, AnswersWithRecords)) or len(self.development) < 2:
            return None
        part, self._most = self._part(), now.contest.max_prompt_chars
        self.events.phase(f"writing {count(len(part), 'development output')} with the starting prompt")
        seen = await self.subject.observe(now.best.draft, part, self.events.advance)
        self._trials.append(start := Trial((), now.best.draft, seen))
        if not failing(seen, self.writer.checklist):
            return None
        best = await self._mended(await self._search(start))
        return Turn(await self._challenge(now, best) if best.additions else now.best)

    def facts(self, yardstick: Yardstick, outcome: Outcome, tests: Mapping[int, Observation]) -> dict[str, Any]:
        """Return ``additions`` of ``result.json``."""
        return {"additions": self.records} if self.records else {}

    def _part(self) -> list[Example]:
        """Return a fair sample of development, the same for every trial."""
        every = list(self.development)
        order = spread_order([each.id for each in every], seed=self.seed, groups=documents(every))
        return [every[place] for place in order[:TRIED_ON]]

    async def _search(self, start: Trial) -> Trial:
        """Return the best set: start with the best addition, or pair if none gains alone; then add one at a time."""
        made = await self.writer.write(start.draft, start.seen)
        singles = [await self._try((each,), start) for each in made]
        if (example := self.writer.example([each.seen for each in self._trials])) is not None:
            singles.append(await self._try((example,), start))
        ranked = sorted((each for each in singles if each.problem is None), key=lambda each: -gain(start, each))
        best = next((each for each in ranked if gain(start, each) > NOTHING), start)
        for first, second in combinations(ranked[:PAIRS_OF], 2) if best is start else ():
            best = await self._grown(best, second.additions[0], first.additions)
        for each in ranked:
            best = await self._grown(best, each.additions[0], best.additions)
        return best

    async def _mended(self, best: Trial) -> Trial:
        """Add to the best set orders for requirements it still fails, and more room if its outputs are cut off."""
        rules = next((each for each in best.additions if each.kind == "rules"), None)
        failures = failing(best.seen, self.writer.checklist) if best.additions else []
        if (
            failures
            and (addition := await self.writer.rules(failures, best.seen, () if rules is None else rules.lines))
            is not None
        ):
            best = await self._grown(best, addition, [each for each in best.additions if each is not rules])
        if len(best.seen.cut_off) >= CUT_OFF * len(best.seen.examples):
            room = 2 * self.subject.writer(best.draft).most_tokens
            addition = Addition("max_output_tokens", f"room of {room} tokens", {"max_output_tokens": room})
            best = await self._grown(best, addition, best.additions)
        return best

    async def _grown(self, best: Trial, addition: Addition, beside: Sequence[Addition]) -> Trial:
        """Try ``beside`` with one more addition; returns this set if it is better than the best one, else the best."""
        if not addition.goes_with(beside):
            return best
        wanted = (*beside, addition)
        known = next((each for each in self._trials if _same(each.additions, wanted)), None)
        trial = known or await self._try(wanted, best)
        return trial if gain(best, trial) > NOTHING else best

    async def _try(self, additions: tuple[Addition, ...], before: Trial) -> Trial:
        """Write the outputs with a set, and record the gain of its last addition over ``before``."""
        *earlier_additions, last = additions
        self.events.phase(f"trying {' + '.join(each.kind for each in additions)} on development")
        trial = await self._written(additions, before)
        self._trials.append(trial)
        old_value, new_value = before.value(trial.shown), trial.value(trial.shown)
        found = AdditionRecord(
            kind=last.kind,
            said=last.said,
            beside=tuple(each.kind for each in earlier_additions),
            text=last.text or None,
            settings=dict(last.settings),
            lines=last.lines,
            sources=last.sources,
            before=old_value,
            after=new_value if len(trial.seen.scores) == len(before.seen.scores) else None,
            n=len([each for each in trial.seen.scores if each.example not in trial.shown]),
            kept=gain(before, trial) > NOTHING,
            reason=trial.problem or ("better on development" if new_value > old_value else "no gain on development"),
        )
        self.records.append(found)
        self.events.say(found.sentence)
        return trial

    async def _written(self, additions: tuple[Addition, ...], before: Trial) -> Trial:
        """Return a set with its outputs. The second half is not written if the endpoint refuses the settings, or the
        first half is clearly worse than ``before``."""
        start = self._trials[0]
        empty = Trial(additions, start.draft, Observation((), (), ()))
        examples = start.seen.examples
        first_half = examples[: len(examples) // 2]
        try:
            draft = added(start.draft, additions, self.inputs, self._most)
            seen = await self.subject.observe(draft, first_half, self.events.advance)
        except (EditRefusedError, InputError) as error:  # an endpoint refuses a way of thinking as bad input
            return replace(empty, problem=f"not tried: {error}")
        trial = Trial(additions, draft, seen)
        other_ids = {each.id for each in examples[len(first_half) :]} | trial.shown
        if self.subject.writer(draft).refused:
            return replace(trial, problem="the endpoint does not take it")
        if trial.value(other_ids) < before.value(other_ids) - CLEARLY_WORSE:
            return replace(trial, problem="clearly worse on the first half of the outputs")
        whole = replace(trial, seen=await self.subject.observe(draft, examples, self.events.advance))
        return replace(whole, problem=self._loss(start, whole))

    def _loss(self, start: Trial, trial: Trial) -> str | None:
        """Return why a set cannot be taken: outputs copy the example, or pass fewer questions; None where it can."""
        outputs = {each.id: each.output or "" for each in trial.seen.examples if each.id not in trial.shown}
        examples = [each for each in trial.additions if each.kind == "example"]
        copied = sum(self._is_copied(each, examples, start) for each in trial.seen.examples if each.id in outputs)
        if copied > MOST_COPIES * len(outputs):
            return f"{count(copied, 'output')} of {len(outputs)} copy the example"
        names = documents([each for each in start.seen.examples if each.id in outputs])
        before, after = start.asked(trial.shown), trial.asked(trial.shown)
        change = mean_difference(before, after, Resampling(names, self.resamples, seed=self.seed))
        if change.value is not None and change.value < -NOISE * (change.standard_error or 0.0):
            return f"the outputs pass fewer of the questions ({change.value:+.2f})"
        return None

    def _is_copied(self, written: Example, shown: Sequence[Addition], start: Trial) -> bool:
        """Whether an output copies from an example that the prompt shows."""
        output = written.output or ""
        if copied_words(output, [each.text for each in shown], run=COPIED) is not None:
            return True
        sources = {name for each in shown for name in each.sources}
        usual = [each.output or "" for seen in (*self.writer.old, start.seen) for each in seen.examples
                 if each.id not in {*sources, written.id}]  # fmt: skip
        given = [each for each in (written.input, written.context) if each]
        allowed = [*given, start.draft.prompt.text, EXAMPLE, AFTER_EXAMPLE, *usual]
        return any(borrowed_words(output, each.text, allowed) for each in shown)

    async def _challenge(self, now: LoopRound, found: Trial) -> Version:
        """Send the best set to the acceptance test, and if it is refused, the best part of it."""
        parts = [trial for trial in self._trials[1:] if len(trial.additions) < len(found.additions)]
        parts = [trial for trial in parts if all(one in found.additions for one in trial.additions)]
        best_part = max(parts, key=lambda trial: gain(self._trials[0], trial), default=None)
        is_other = best_part is not None and gain(self._trials[0], best_part) > 0
        candidates = [found, best_part] if best_part is not None and is_other else [found]
        for number, trial in enumerate(candidates, 1):
            winner = await now.contest.challenge(
                now.best, (), now.number, trial.draft, look=(number, len(candidates)), shows=trial.said
            )
            if winner is not now.best:
                self._mark(trial)
                return winner
        return now.best

    def _mark(self, accepted: Trial) -> None:
        """Mark the accepted additions in the records, each in its last trial."""
        for addition in accepted.additions:
            about = (addition.said, addition.text or None)
            place = max(place for place, each in enumerate(self.records) if (each.said, each.text) == about)
            self.records[place] = self.records[place].model_copy(update={"accepted": True})
