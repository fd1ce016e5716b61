"""Requirements as instructions: right by the first words of the question, or left to somebody else."""

from __future__ import annotations

import pytest

from askance.agents.generator import as_it_stands, instruction_of
from askance.prompts.checklist import Question
from tests.said import says


@pytest.mark.parametrize(
    ("question", "instruction"),
    [
        ("Does the reply thank the customer?", "Thank the customer."),
        ("Does the support reply  thank\nthe customer?", "Thank the customer."),
        ("Does it thank the customer?", "Thank the customer."),
        ("Is the letter signed?", "The letter must be signed."),
        ("Is the summary free of jargon?", "The summary must be free of jargon."),
        ("Does the letter greet?", "The letter must greet."),
        ("Does the reply have fewer than 40 words?", "The reply must have fewer than 40 words."),
        ("Does it end with its date?", "The output must end with its date."),
        ("Does the reply avoid naming a price?", "Avoid naming a price."),
        ("Does the reply not name a price?", "Do not name a price."),
        ("Is the reply not rude?", "The reply must not be rude."),
        (
            "If the customer complains, does the reply apologise?",
            "If the customer complains, the reply must apologise.",
        ),
        ("When a date is asked for, does the reply give one?", "When a date is asked for, give one."),
        ("Does the message give the date?", "The message must give the date."),
        ("Does the customer review get an answer?", "The customer review must get an answer."),
        ("Is there a greeting in the reply?", "There must be a greeting in the reply."),
        ("Has the reply named the writer?", "The reply must have named the writer."),
    ],
)
def test_a_merit_becomes_an_order(question: str, instruction: str) -> None:
    assert instruction_of(question, is_fault=False) == instruction


@pytest.mark.parametrize(
    ("question", "instruction"),
    [
        ("Does the reply name a price?", "Do not name a price."),
        ("Does the reply ever promise a refund?", "Do not promise a refund."),
        ("Does the reply fail to mention the fee?", "Mention the fee."),
        ("Does the reply contain an exclamation mark?", "The reply must not contain an exclamation mark."),
        ("Is the reply longer than 40 words?", "The reply must not be longer than 40 words."),
        ("Are there spelling mistakes in the reply?", "There must not be spelling mistakes in the reply."),
        ("Does the reply not thank the customer?", "Thank the customer."),
    ],
)
def test_a_fault_becomes_its_prohibition(question: str, instruction: str) -> None:
    assert instruction_of(question, is_fault=True) == instruction


@pytest.mark.parametrize(
    "question",
    [
        "Does the email subject line fit?",
        "Is the answer key given?",
        "Is the email address right?",
        "Has the message count changed?",
        "Does the message thread come to an end?",
        "Does the reply to the complaint apologise?",
        "Does the reply written by the model thank the customer?",
        "Does the reply in its last line thank the customer?",
        "Does the first sentence of the reply name the customer?",
        "Does the summary's tone fit?",
        "Is the summary of the article short?",
        "Is it clear from the reply what to do?",
        "Does the reply not only answer the question but also advertise?",
        "Is the reply not only short but also kind?",
        "Can a child follow the reply?",
        "Is every claim supported?",
        "Does the reply thank the customer? Does it apologise?",
        "Judge the tone. Does the reply thank the customer?",
        "Thank the customer",
        "not too short",
        "Enthält die Antwort einen Preis?",
    ],
)
@pytest.mark.parametrize("is_fault", [False, True])
def test_what_the_first_words_do_not_settle_is_left_alone(question: str, is_fault: bool) -> None:
    assert instruction_of(question, is_fault=is_fault) is None


def test_the_quotation_says_which_answer_is_wanted() -> None:
    question = Question(id="q", text="Can a child follow it?")
    assert says(as_it_stands(question), "yes", '"Can a child follow it?"') and not says(as_it_stands(question), "no")
    fault = question.model_copy(update={"good": "no"})
    assert says(as_it_stands(fault), "no", '"Can a child follow it?"') and not says(as_it_stands(fault), "yes")
    assert as_it_stands(question, "not too\nshort").endswith(": not too short.")


@pytest.mark.parametrize(
    "question",
    ["Does the reply name no price?", "Is the reply without a greeting?", "Is there nothing on the fee in the reply?"],
)
def test_a_fault_that_is_itself_a_negation_is_not_negated_again(question: str) -> None:
    assert instruction_of(question, is_fault=True) is None
    assert instruction_of(question, is_fault=False) is not None


def test_the_name_of_a_check_that_ends_with_a_full_stop_gets_no_second_one() -> None:
    question = Question(id="c", text="Thank the reader.")
    assert as_it_stands(question, "Thank the  reader.") == "What you write must pass this check: Thank the reader."


def test_a_requirement_with_a_clause_is_said_in_its_words() -> None:
    clause = '"summary": what the customer wants, in at most 10 words.'
    key = Question(id="key_summary", text='Is "summary" in the output as the prompt says?', clause=clause)
    assert clause in as_it_stands(key)
