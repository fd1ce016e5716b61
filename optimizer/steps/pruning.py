"""At the end edits are taken out one by one where validation does not get worse: the prompt stays short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...evaluation.scoring import ExampleScore
from ...memory.records import PrunedRecord
from ...prompts.lessons import Edit
from ...prompts.prompt import EditRefusedError, Prompt
from ...stats.differences import Difference
from ..acceptance import Decision, Yardstick
from ..contest import Contest
from ..events import EditPruned
from ..mode import LoopRound, Turn
from ..options import LoopOptions
from ..subject import Version


@dataclass(frozen=True)
class Pruning:
    """Takes accepted edits out again at the end of a run."""

    yardstick: Yardstick

    @classmethod
    def steps(cls, options: LoopOptions, yardstick: Yardstick) -> tuple[Pruning, ...]:
        """Pruning as the last step, where the settings want it; the papers' loop takes nothing out."""
        return (cls(yardstick),) if options.prune and not options.paper else ()

    async def take(self, now: LoopRound) -> Turn | None:
        """Shorten the best version, where it has edits."""
        if now.best is now.outcome.baseline:
            return None
        found = now.outcome.pruned
        return Turn(await prune(now.best, now.outcome.baseline, now.contest, self.yardstick, found))


async def prune(
    best: Version, baseline: Version, contest: Contest, yardstick: Yardstick, found: list[PrunedRecord]
) -> Version:
    """Try the prompt without each of its edits, the latest first, going on from what is left.

    Returns the shortest version found. Each edit's record is added to ``found`` at once, so that it is known also where
    a budget ends the pruning; ``contest.accepted`` then stands. An edit whose text a later one has changed cannot be
    taken out and stays.
    """
    validation = contest.validation

    def is_missed(before: Sequence[ExampleScore], after: Sequence[ExampleScore]) -> Decision | None:
        """Any loss on the first examples keeps an edit: a place in the prompt is cheaper than the other examples."""
        n = len(after)
        loss = yardstick.difference(before[:n], after, validation[:n])
        if loss.value is None or loss.value >= 0:
            return None
        said = f"{yardstick.name} {loss.value:+.3f} without it"
        return Decision(False, f"worse on the first {n} validation examples ({said})", loss)

    def note(version: int, edit: Edit, reason: str, gain: Difference | None, *, removed: bool) -> None:
        pruned = PrunedRecord(edit=edit, removed=removed, reason=reason, gain=gain)
        found.append(pruned)
        contest.events.emit(EditPruned(version, pruned))

    for edit in reversed(best.edits):
        if (
            len(best.edits) == 1
        ):  # a prompt that passed the acceptance test is not given up for the start, which it beat
            break
        left = tuple(each for each in best.edits if each is not edit)
        try:
            prompt = _without(edit, best.prompt, left, replace(baseline.prompt, shown=best.prompt.shown))
        except EditRefusedError as error:
            note(best.number, edit, f"it cannot be taken out: {error}", None, removed=False)
            continue
        raced = await contest.race(best, replace(best.draft, prompt=prompt), left, [edit], is_missed)
        shorter, gain, reason = raced.version, raced.decision.gain, raced.decision.reason
        removed = False
        if shorter is not None:
            gain = yardstick.difference(best.scores, shorter.scores, validation)
            said = "undefined" if gain.value is None else f"{yardstick.name} {gain.value:+.3f} without it"
            removed = gain.value is not None and gain.value >= 0
            reason = f"validation is {'no worse' if removed else 'worse'} ({said})"
            if removed and (problem := contest.lacking(best, shorter)):
                removed, reason = False, f"{reason}, but {problem}"
        note(raced.number, edit, reason, gain, removed=removed)
        if shorter is not None and removed:
            best = contest.accepted = shorter
    return best


def _without(edit: Edit, prompt: Prompt, left: Sequence[Edit], start: Prompt) -> Prompt:
    """The prompt without one edit, from the start or by undoing it; EditRefusedError where neither is possible."""
    try:
        return reduce(Prompt.apply, left, start)
    except EditRefusedError:
        if not edit.new:
            raise
        return prompt.apply(Edit(old=edit.new, new=edit.old, lessons=edit.lessons))
