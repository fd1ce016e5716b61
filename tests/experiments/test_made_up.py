"""The data sets of our own making are what their pages say: counts, rules, and the labels that are wrong on purpose."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import askance
from askance.prompts.checklist import load_checklist
from askance.prompts.examples import Example, load_examples

HOME = Path(askance.__file__).resolve().parent / "experiments" / "made_up"
NAMES = ("front_desk", "guest_reviews", "news_summaries", "release_notes")
WORDS = {"front_desk": (15, 45), "guest_reviews": (20, 50), "news_summaries": (15, 35), "release_notes": (15, 45)}
"""Fewest and most words of an output."""


def rows(name: str) -> list[Example]:
    return load_examples(HOME / name / "examples.jsonl")


def page(name: str) -> str:
    return (HOME / name / "README.md").read_text(encoding="utf-8")


def failed(row: Example) -> bool:
    return row.human_score("overall") == 0


def test_there_are_the_data_sets_that_are_tested_here() -> None:
    assert sorted(each.name for each in HOME.iterdir() if each.is_dir()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_there_are_150_rows_and_no_text_stands_there_twice(name: str) -> None:
    examples = rows(name)
    assert len(examples) == len({row.id for row in examples}) == 150
    assert len({row.input for row in examples}) == len({row.output for row in examples}) == 150
    openings = Counter(" ".join((row.output or "").split()[:3]) for row in examples)
    assert max(openings.values()) <= 3


@pytest.mark.parametrize("name", NAMES)
def test_texts_have_the_length_they_should(name: str) -> None:
    fewest, most = WORDS[name]
    lengths = {row.id: len((row.output or "").split()) for row in rows(name)}
    assert {id_: length for id_, length in lengths.items() if not fewest <= length <= most} == {}
    if name == "news_summaries":
        assert all(40 <= len(row.input.split()) <= 70 for row in rows(name))


@pytest.mark.parametrize("name", NAMES)
def test_labels_and_comments_have_the_shares_that_a_run_needs(name: str) -> None:
    examples = rows(name)
    assert all(list(row.human) == ["overall"] and row.human["overall"][0] in (True, False) for row in examples)
    commented = [row for row in examples if row.comment]
    assert 0.4 <= sum(map(failed, examples)) / 150 <= 0.5
    assert 0.3 <= len(commented) / 150 <= 0.4
    assert 5 <= sum(not failed(row) for row in commented) <= 10
    assert f"{sum(map(failed, examples))} of 150 fail." in page(name)
    assert f"{len(commented)} rows have a comment, {sum(map(failed, commented))} of them failed." in page(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_broken_as_often_as_the_page_says(name: str) -> None:
    examples = rows(name)
    broken = Counter(fault for row in examples for fault in row.metadata["faults"])
    commented = Counter(fault for row in examples if row.comment for fault in row.metadata["faults"])
    told = re.findall(r"^\| `(\w+)` \| (there|missing) \| .* \| (\d+) \| (\d+) \|$", page(name), re.MULTILINE)
    assert {rule: (int(count), int(spoken)) for rule, _, count, spoken in told} == {
        rule: (broken[rule], commented[rule]) for rule in broken
    }
    assert Counter(kind for _, kind, _, _ in told) == {"there": 2, "missing": 2}
    assert all(150 / 10 <= count <= 150 / 7 for count in broken.values())
    assert min(commented.values()) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_labels_are_those_that_the_page_lists(name: str) -> None:
    wrong = [row for row in rows(name) if failed(row) != bool(row.metadata["faults"])]
    listed = {
        heading: re.findall(r"[a-z]+-\d{3}", found[0])
        for heading in ("Passed in spite of a fault", "Failed without one")
        if (found := re.findall(rf"{heading}: (.+)\.", page(name)))
    }
    assert 0 < len(wrong) <= 10
    assert listed == {
        "Passed in spite of a fault": [row.id for row in wrong if not failed(row)],
        "Failed without one": [row.id for row in wrong if failed(row)],
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_checklist_is_one_question_that_gives_no_rule_away(name: str) -> None:
    (question,) = load_checklist(HOME / name / "checklist.yaml").questions
    assert question.dimension == "overall"
    assert len(question.text.split()) <= 8


def test_the_answers_without_labels_are_new_ones_and_say_nothing_of_their_faults() -> None:
    desk = HOME / "front_desk"
    known = {row.output for name in ("examples.jsonl", "more_examples.jsonl") for row in load_examples(desk / name)}
    further = load_examples(desk / "unlabelled.jsonl")
    assert len(further) == len({row.id for row in further}) == len({row.output for row in further} - known) == 600
    assert not any(row.human or row.comment or row.metadata for row in further)
