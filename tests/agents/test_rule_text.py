from __future__ import annotations

import pytest

from askance.agents.rules import (
    DIRECTIONS,
    STRICTER,
    Direction,
    RuleMaker,
    beside_the_point,
    noun_phrase,
    rule_sentence,
    speaks_of,
    too_special,
)
from askance.prompts.checklist import Question

SUPPORTED = "Is every statement in the summary supported by the article?"

NO_IF = "Answer no if"

OPENING = "Answer no if the output"


@pytest.mark.parametrize(
    ("ending", "rule"),
    [
        ("gives a wrong day", "Answer no if the output gives a wrong day."),
        ("If the output gives a wrong day, then the answer is no.", "Answer no if the output gives a wrong day."),
        ("the summary gives a wrong day, answer no", "Answer no if the summary gives a wrong day."),
        ("there is a wrong day", "Answer no if there is a wrong day."),
        ("gives a wrong day,", "Answer no if the output gives a wrong day."),
        ("Gives a wrong day", "Answer no if the output gives a wrong day."),
        ("HTML tags are left in it", "Answer no if the output HTML tags are left in it."),
    ],
)
def test_a_model_s_ending_becomes_one_sentence(ending: str, rule: str) -> None:
    assert rule_sentence(OPENING, ending) == rule


def test_a_rule_may_use_the_names_and_topics_of_the_task_but_not_those_of_the_example() -> None:
    shown = ["On Monday the mayor opened the bridge. A bridge!"]
    assert too_special(f"{STRICTER.opening} says Monday.", shown, "", "") is not None
    assert too_special(f"{STRICTER.opening} says Monday.", shown, "", "Write about Monday.") is None
    assert too_special(f"{STRICTER.opening} names a bridge.", shown, "", "") is not None
    assert too_special(f"{STRICTER.opening} names a bridge.", shown, "", "Are bridges named?") is None
    assert too_special(f"{NO_IF} it rained all day long.", shown, "it rained all day", "") is not None


def test_a_rule_speaks_of_its_kind_where_it_has_a_word_of_it() -> None:
    assert speaks_of("a changed name", f"{NO_IF} a name differs.")
    assert not speaks_of("a changed name", f"{NO_IF} it does not match the input.")


@pytest.mark.parametrize(
    ("kind", "phrase"),
    [
        ("a name is incorrect", "a name that is incorrect"),
        ("a main clause does not fit", "a main clause that does not fit"),
        ("a sentence that is too long", "a sentence that is too long"),
        ("a name not given by the input", "a name not given by the input"),
    ],
)
def test_a_kind_that_is_a_sentence_becomes_something_an_output_can_have(kind: str, phrase: str) -> None:
    assert noun_phrase(kind) == phrase


@pytest.mark.parametrize(
    "rule",
    [
        "Answer no if the rule must help on other examples of the same kind.",
        "Answer no if the output does not mention the judge being asked the question.",
        "Answer no if the output does the summary say correctly who did what?.",
    ],
)
def test_a_rule_about_notes_or_a_question_is_beside_the_point(rule: str) -> None:
    assert beside_the_point(rule, "Summarise an article.")


def test_a_rule_may_speak_of_rules_judges_and_examples_where_the_task_does() -> None:
    rule = "Answer no if the output offers what the rules do not allow."
    assert beside_the_point(rule, "Answer a complaint under the shop's rules.") is None
    assert beside_the_point(rule, "Answer a complaint.") is not None
    assert beside_the_point(f"{STRICTER.opening} has a name that the input does not give.", "Summarise.") is None


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("ending", ["{opening}", "the output ...", "if the output,"])
def test_an_opening_that_a_model_only_repeats_is_no_rule(direction: Direction, ending: str) -> None:
    maker = RuleMaker(direction, Question(id="q", text="Is every claim supported?"), ["Anna ran."], "The task.")
    with pytest.raises(ValueError, match=f'"{direction.field}" says nothing'):
        maker.rule(ending.format(opening=direction.opening), "a claim")
