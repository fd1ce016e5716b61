"""The two helpers that find facts in a message."""

import re

import pytest

from tests.said import naming, says

MESSAGE = "3 calls were made.\nscores.jsonl, line 15: field 'human.quality': 3.5 is above --most (40%)."


@pytest.mark.parametrize("facts", [(15,), ("scores.jsonl", 15), ("'human.quality'", "--most", 3.5), ("40%",)])
def test_facts_of_one_line_are_found_in_any_order(facts: tuple[object, ...]) -> None:
    assert says(MESSAGE, *facts) and re.search(naming(*reversed(facts)), MESSAGE)


@pytest.mark.parametrize("fact", [5, 40, "human", "most", "score"])
def test_a_part_of_a_number_or_of_a_word_is_no_fact(fact: object) -> None:
    found = fact in ("human", "most")  # a part of a dotted name and of a flag stand for themselves
    assert says(MESSAGE, fact) is found and bool(re.search(naming(fact), MESSAGE)) is found


def test_facts_on_two_lines_are_not_said_together() -> None:
    assert not says(MESSAGE, 3, 15)


def test_no_fact_is_an_error() -> None:
    with pytest.raises(ValueError, match="one fact"):
        says(MESSAGE)
