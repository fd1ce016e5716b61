"""Other wordings of a question, read from free text."""

from __future__ import annotations

import pytest

from askance.agents.question_writer import KINDS, MOST_WORDINGS, Rephraser, questions_in
from askance.models.base import Answer, ModelError
from askance.models.gateway import Gateway, RetryPolicy
from askance.prompts.checklist import Question
from askance.prompts.templates import template
from askance.testing import Reply, ScriptedModel

MONEY = "Does the reply give money back?"

ASKED = Question(id="refund", text="Does the reply avoid promising a refund?")


def gateway() -> Gateway:
    return Gateway(None, None, retry=RetryPolicy(attempts=1))


def writer(*replies: Reply) -> tuple[Rephraser, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return Rephraser(gateway(), model, seed=7), model


async def test_the_lines_of_both_replies_are_wordings_in_the_order_written_each_once() -> None:
    rephraser, _ = writer(
        "Does the reply give money back?\nIs a refund offered in it?\n",
        "1. Is a refund offered, in it?\n2) Does the reply say who pays?",
    )
    others = ["Is a refund offered in it?", "Does the reply say who pays?"]
    assert await rephraser.write(ASKED) == [MONEY, *others]


async def test_the_source_s_own_wording_is_no_other_wording() -> None:
    rephraser, _ = writer("Does the reply promise a refund?\nDOES the reply promise, a refund?", "Nothing to say.")
    question = Question(id="q", text="Does the reply promise a refund?")
    assert await rephraser.write(question) == []


async def test_no_more_of_a_kind_than_are_wanted() -> None:
    many = "\n".join(f"Does the reply say word {number}?" for number in range(9))
    other = "\n".join(f"Is thing {number} in the reply?" for number in range(9))
    rephraser, _ = writer(many, other)
    written = await rephraser.write(ASKED)
    assert len(written) == MOST_WORDINGS * len(KINDS)
    assert written[MOST_WORDINGS] == "Is thing 0 in the reply?"


@pytest.mark.parametrize(
    "line",
    [
        "Does the reply avoid money?",
        "Does the reply not give money back?",
        "Doesn't the reply give money back?",
        "Is the reply free of promises?",
        "Is the reply without a promise?",
        "Does the reply stay away from money?",
        "What does the reply promise?",
        "The reply promises money.",
        "Is it kind? Is it short?",
        "Is it ok?",
        "Does the reply " + "very " * 40 + "well?",
    ],
)
def test_a_line_that_negates_or_is_no_short_yes_no_question_is_left_out(line: str) -> None:
    assert questions_in([line]) == []
    assert questions_in([line, MONEY]) == [MONEY]


@pytest.mark.parametrize(
    "line", ['- "Is it a notable reply?"', "3) Is it a notable reply?", "Question: Is it a notable reply?"]
)
def test_bullets_numbers_and_quotes_are_taken_off(line: str) -> None:
    assert questions_in([line]) == ["Is it a notable reply?"]


async def test_a_line_that_was_cut_off_is_left_out() -> None:
    cut = Answer("Does the reply give money back?\nDoes the reply say so?", finish="length")
    rephraser, _ = writer(cut, "none")
    assert await rephraser.write(ASKED) == [MONEY]


async def test_it_is_asked_in_free_text_by_example_and_at_temperature_0() -> None:
    rephraser, model = writer("none", "none")
    await rephraser.write(ASKED)
    assert len(model.requests) == len(KINDS)
    for request in model.requests:
        roles = [role for role, _ in request.messages]
        assert roles[0] == "system" and roles[-1] == "user" and roles.count("assistant") >= 3
        assert request.messages[-1][1] == "Question: Does the reply avoid promising a refund?"
        assert (request.parameters.temperature, request.parameters.schema, request.parameters.seed) == (0.0, None, 7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_templates_examples_would_be_taken_themselves(kind: str) -> None:
    _, *examples = template(kind).split("\n\nQuestion: ")
    for example in examples:
        written = example.splitlines()[1:]
        assert questions_in(written) == written


async def test_a_failure_is_said_and_no_wording() -> None:
    rephraser, _ = writer(ModelError("down"), "Is it kind to everybody?")
    with pytest.raises(ModelError, match="down"):
        await rephraser.write(ASKED)
