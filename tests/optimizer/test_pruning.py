"""What the final prompt can do without is taken out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from askance.evaluation.scoring import ExampleScore
from askance.memory.records import PrunedRecord
from askance.memory.run_directory import RunDirectory
from askance.models.progress import Silent
from askance.optimizer.acceptance import MeanYardstick, PairedAcceptance
from askance.optimizer.contest import Contest
from askance.optimizer.events import EditPruned, Event, Teller
from askance.optimizer.steps.lesson_edits import prune
from askance.optimizer.subject import Draft, Observation, Pair, Version
from askance.prompts.errors import BudgetExceededError
from askance.prompts.examples import Example
from askance.prompts.lessons import Edit
from askance.prompts.prompt import Prompt
from askance.prompts.verdicts import Verdict
from tests.said import says

EXAMPLES = [Example(id=f"e{n}", input="i") for n in range(30)]
START = Prompt("One.\nTwo.")


class Marked:
    """Every different ``+word`` in the prompt is worth a tenth; everything else is worth nothing."""

    def __init__(self, most: int = 10_000) -> None:
        self.left = most

    async def observe(
        self, draft: Draft, examples: Sequence[Example], on_done: Callable[[int, int], None] | None = None
    ) -> Observation:
        self.left -= len(examples)
        if self.left < 0:
            raise BudgetExceededError("max_calls", "The budget is used up.")
        worth = len({word for word in draft.prompt.text.split() if word.startswith("+")})
        scores = [ExampleScore(each.id, float(int(each.id[1:]) % 10 < 1 + worth), {}) for each in examples]
        return Observation(examples, [], scores)

    async def probe(self, draft: Draft, pairs: Sequence[Pair], seen: Observation) -> dict[Pair, Verdict]:
        raise AssertionError("pruning judges examples, not pairs")


class Garden:
    """A version with edits, ready to be pruned."""

    def __init__(self, folder: Path, edits: Sequence[Edit], most: int = 10_000) -> None:
        self.folder = folder
        self.edits = edits
        self.subject = Marked()
        self.most = most
        self.events: list[Event] = []
        self.found: list[PrunedRecord] = []
        self.yardstick = MeanYardstick(resamples=100, seed=1)
        run = RunDirectory(folder)
        self.told = Teller(run.journal(), Silent(), [self.events.append])
        gate = PairedAcceptance(self.yardstick, EXAMPLES, level=0.2)
        self.contest = Contest(
            self.subject, gate, EXAMPLES, run, self.told, racing=True, bisect=True, max_prompt_chars=None
        )

    async def prune(self) -> Version:
        self.start = await self.contest.start(Draft(START))
        prompt = START
        for edit in self.edits:
            prompt = prompt.apply(edit)
        seen = await self.subject.observe(Draft(prompt), EXAMPLES)
        best = Version(1, Draft(prompt), seen.scores, tuple(self.edits), 0)
        self.contest.accepted = best
        self.subject.left = self.most
        return await prune(best, self.start, self.contest, self.yardstick, self.found)

    @property
    def fates(self) -> dict[str, bool]:
        return {each.edit.lessons[0]: each.removed for each in self.found}


def add(text: str, lesson: str, after: str = "One.") -> Edit:
    return Edit(old=after, new=f"{after}\n{text}", lessons=(lesson,))


async def test_what_is_not_needed_is_taken_out_and_what_is_needed_stays(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("+a", "needed"), add("idle", "idle", "Two."), add("+b", "also")])
    best = await garden.prune()
    assert best.prompt.text == "One.\n+b\n+a\nTwo."
    assert garden.fates == {"also": False, "idle": True, "needed": False}
    assert [edit.lessons[0] for edit in best.edits] == ["needed", "also"]
    assert garden.contest.accepted is best


async def test_of_two_edits_that_do_the_same_one_stays(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("+a", "first"), add("+a", "second", "Two.")])
    best = await garden.prune()
    assert garden.fates == {"second": True}
    assert best.prompt.text == "One.\n+a\nTwo."


async def test_the_last_edit_is_not_given_up(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("idle", "only")])
    assert (await garden.prune()).prompt.text == "One.\nidle\nTwo."
    assert garden.found == []


async def test_an_edit_under_a_needed_one_on_the_same_line_can_be_taken_out(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("idle", "under"), add("+a", "over")])
    best = await garden.prune()
    assert garden.fates == {"over": False, "under": True}
    assert best.prompt.text == "One.\n+a\nTwo."


async def test_an_edit_to_whose_text_a_later_one_was_added_can_be_taken_out(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("idle", "first"), add("+a", "second", "idle"), add("dull", "third", "+a")])
    best = await garden.prune()
    assert garden.fates == {"third": True, "second": False, "first": True}
    assert best.prompt.text == "One.\n+a\nTwo."
    assert [edit.lessons for edit in best.edits] == [("second",)]


async def test_an_edit_that_a_later_one_has_changed_stays_with_the_reason(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("idle", "first"), Edit(old="idle", new="+a", lessons=("second",))])
    best = await garden.prune()
    assert best.prompt.text == "One.\n+a\nTwo."
    assert garden.fates == {"second": False, "first": False}
    assert says(garden.found[-1].reason, "taken out", "not occur")


async def test_every_fate_is_told(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("idle", "idle"), add("+a", "needed")])
    await garden.prune()
    events = [event for event in garden.events if isinstance(event, EditPruned)]
    told = [event.pruned for event in events]
    assert [(each.edit.lessons, each.removed) for each in told] == [(("needed",), False), (("idle",), True)]
    assert says(told[0].reason, "worse", "first 10") and "mean score -0.1" in told[0].reason
    assert says(told[1].reason, "no worse", "mean score +0.000")
    assert says(events[1].sentence, "idle", "taken out", told[1].reason)


async def test_a_budget_that_ends_keeps_what_was_pruned_before(tmp_path: Path) -> None:
    garden = Garden(tmp_path, [add("+a", "needed"), add("idle", "idle"), add("dull", "dull")], most=45)
    with pytest.raises(BudgetExceededError):
        await garden.prune()
    assert garden.fates == {"dull": True}
    assert garden.contest.accepted is not None
    assert "dull" not in garden.contest.accepted.prompt.text
    assert "idle" in garden.contest.accepted.prompt.text
