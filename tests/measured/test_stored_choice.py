"""The choice among questions on stored answers: nothing is asked, and what tells joins."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from askance.memory.records import CriterionRecord
from askance.prompts.examples import Example
from tests.measured.learned_questions import MADE_UP, examples_of
from tests.measured.stored_choice import (
    STORED,
    Stored,
    crossed_areas,
    folds,
    measured,
    read_stored,
)

FILES = sorted(STORED.glob("*.json"))


def labelled(count: int) -> list[Example]:
    return [
        Example(id=f"e{number}", input="A review.", output=f"reply {number}", human={"overall": number % 3 > 0})
        for number in range(count)
    ]


def stored(tells: float) -> Stored:
    """A question that tells accepted outputs by so many deviations, of one that tells nothing."""
    examples = labelled(90)
    failed = [each.id for each in examples if not each.human_score("overall")]
    noise = {each.id: (number * 37 % 90) / 90 for number, each in enumerate(examples)}
    fault = {name: value + tells * (name in failed) for name, value in noise.items()}
    start = {each.id: (number * 53 % 90) / 90 for number, each in enumerate(examples)}
    candidates = {
        "fault": CriterionRecord.of(
            "Does the reply quote a price?", "overall", "comment", tuple(failed[:4]), ("a price!",)
        )
    }
    return Stored("made", MADE_UP / "guest_reviews", examples, candidates, {"fault": fault, "good_to_publish": start})


def test_a_question_that_tells_joins_and_one_that_does_not_stays_out() -> None:
    before, after, joined = asyncio.run(crossed_areas(stored(4.0), 0))
    assert after > 0.9 > before + 0.2 and joined >= 1
    before, after, joined = asyncio.run(crossed_areas(stored(0.0), 0))
    assert (before, joined) == (after, 1)


def test_folds_are_all_examples_once_with_as_many_accepted_and_drawn_anew() -> None:
    examples = labelled(60)
    parts = folds(examples, 1)
    assert Counter(each.id for part in parts for each in part) == Counter(each.id for each in examples)
    assert {sum(each.human_score("overall") or 0 for each in part) for part in parts} <= {6, 7}
    assert [[each.id for each in part] for part in parts] != [[each.id for each in part] for part in folds(examples, 2)]


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_a_file_has_no_test_output_and_what_was_answered_of_most(path: Path) -> None:
    found = read_stored(path)
    row = json.loads(path.read_text())
    whole = examples_of(row["data"], None, more=True)[1]
    assert len(found.examples) == len({each.id for each in found.examples}) == 0.6 * len(whole)
    assert len(found.candidates) >= 20
    assert all(len(found.logits[each]) >= len(found.examples) / 2 for each in found.candidates)
    assert measured(path, 1)["questions"] > 1
