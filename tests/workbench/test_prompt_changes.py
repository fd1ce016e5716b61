"""A prompt without some of its changes: exactly their words are gone, and what stands on them is named."""

from __future__ import annotations

import random
from typing import Any

import pytest

from askance.memory.records import PrunedRecord, SideRecord, TriedRecord
from askance.memory.result_file import RunRecord
from askance.prompts.errors import InputError
from askance.prompts.lessons import Edit
from askance.prompts.prompt import Prompt
from askance.workbench.prompt_changes import ChangedPrompt, without

from ..said import says

START = "Write the facts.\nBe brief."


def changes(start: str, *edits: tuple[str, str], end: str | None = None, pruned: tuple[str, str] | None = None) -> Any:
    """The changes of a run with these accepted edits."""
    made, text = [], start
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
        made.append(Edit(old=old, new=new, lessons=("l1",)))
    if pruned:
        text = text.replace(pruned[1], pruned[0])
    result = RunRecord.model_construct(
        baseline=SideRecord(prompt=start),
        best=SideRecord(prompt=text if end is None else end),
        accepted_edits=tuple(TriedRecord(edits=(each,), reason="", iteration=1) for each in made),
        pruned_edits=(PrunedRecord(edit=Edit(old=pruned[0], new=pruned[1], lessons=("l1",)), removed=True, reason=""),)
        if pruned
        else (),
    )
    found = ChangedPrompt.of(result)
    assert found.text() == result.best.prompt
    assert found.text({each.number for each in found.changes}) == start
    return found


def test_each_line_that_an_edit_added_is_taken_out_by_itself() -> None:
    found = changes(START, ("Be brief.", "Be brief.\nName the date.\nName the place."), ("the facts", "all facts"))
    assert [(each.number, each.edit, each.needs) for each in found.changes] == [(1, 0, ()), (2, 0, ()), (3, 1, ())]
    assert found.text({1}) == "Write all facts.\nBe brief.\nName the place."
    assert found.text({2}) == "Write all facts.\nBe brief.\nName the date."
    assert found.text({3}) == "Write the facts.\nBe brief.\nName the date.\nName the place."
    assert found.text({1, 2, 3}) == START


def test_a_line_put_after_the_line_of_another_change_does_not_need_it() -> None:
    found = changes(START, ("Be brief.", "Be brief.\nName the date."), ("the date.", "the date.\nName the place."))
    assert [each.needs for each in found.changes] == [(), ()]
    assert found.text({1}) == "Write the facts.\nBe brief.\nName the place."


def test_a_change_within_the_words_of_another_one_needs_it() -> None:
    reworded = changes(START, ("Be brief.", "Be brief.\nName the date."), ("Name the date", "Name the day"))
    inserted = changes(START, ("Be brief.", "Be brief.\nName the date."), ("Name the", "Name always the"))
    for found, before in ((reworded, "Name the date."), (inserted, "Name the date.")):
        assert found.changes[1].needs == (1,)
        assert found.text({2}) == f"{START}\n{before}"
        with pytest.raises(InputError) as caught:
            found.text({1})
        assert says(str(caught.value), "Change 2", "change 1", "both, or neither")
        assert found.text({1, 2}) == START


def test_an_edit_that_was_taken_out_again_is_no_change_and_what_no_edit_did_is_told_by_lines() -> None:
    short = ("Be brief.", "Be very brief.")
    found = changes(START, short, ("Write the facts.", "Write all facts."), pruned=short)
    assert [each.edit for each in found.changes] == [1]
    added = changes(START, end="Write the facts.\nUse JSON.\nBe brief.\nNo names.")
    assert [each.edit for each in added.changes] == [None, None]
    assert added.text({1}) == "Write the facts.\nBe brief.\nNo names."
    both = changes(START, ("Be brief.", "Be short."), end="Write the facts.\nUse JSON.\nBe short.")
    assert [each.edit for each in both.changes] == [None, 0]
    assert both.text({2}) == "Write the facts.\nUse JSON.\nBe brief."
    rewritten = changes(START, ("Be brief.", "Be short."), end="Say all.\nAnswer soon.")
    assert {each.edit for each in rewritten.changes} == {None}


def test_any_changes_can_be_taken_out_where_none_that_is_kept_needs_them() -> None:
    """Against the run of the edits that are left, one after the other."""
    draw = random.Random(7)
    for _ in range(300):
        lines = [f"Line {draw.randrange(10**6)} says {draw.randrange(10**6)}." for _ in range(6)]
        start, edits = "\n".join(lines), []
        for line in draw.sample(lines, 4):  # edits of lines apart do not touch each other
            new = f"Line {draw.randrange(10**6)} tells." if draw.random() < 0.5 else f"{line}\nAdded {draw.random()}."
            edits.append((line, new))
        found = changes(start, *edits)
        dropped = {place for place in range(4) if draw.random() < 0.5}
        text = start
        for place, (old, new) in enumerate(edits):
            text = text if place in dropped else text.replace(old, new)
        assert found.text({each.number for each in found.changes if each.edit in dropped}) == text


def test_a_prompt_keeps_what_it_may_not_lose() -> None:
    start = Prompt("Write of {input}.\nBe brief.")
    found = changes(start.text, ("Be brief.", "Be brief.\nName the date."), ("brief.\n", "short.\n"))
    assert without(start, found, {1}).text == "Write of {input}.\nBe short."
    for vetoed, what in (({9}, "no change 9"), (set(), "nothing to save"), ({1, 2}, "began with")):
        with pytest.raises(InputError, match=what):
            without(start, found, vetoed)
