from __future__ import annotations

from pathlib import Path

import pytest

from askance.prompts.checklist import load_checklist
from askance.prompts.criteria.wording import asks_yes_or_no, oddity
from tests.said import says


@pytest.mark.parametrize(
    "text",
    [
        "Is the reply polite?",
        "Is it short? (At most three sentences.)",
        "Whatever the user asks, does the reply stay polite?",
        "Which city is asked for: is it named?",
        "回复是否礼貌？",
        "礼貌ですか。",
        "هل الرد مهذب؟",
    ],
)
def test_a_question_that_yes_or_no_answers_is_one(text: str) -> None:
    assert asks_yes_or_no(text)


@pytest.mark.parametrize(
    "text",
    [
        "Rate the helpfulness from 1 to 5.",
        "Bewerte die Hilfsbereitschaft von 1 bis 5.",
        "The reply is polite.",
        "How helpful is the reply?",
        '"What does the reply leave out?"',
    ],
)
def test_an_order_a_statement_and_an_open_question_are_none(text: str) -> None:
    assert not asks_yes_or_no(text)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Does the reply mention internal?", "internal"),
        ("Does the text say something about itself?", "itself"),
        ("Does the reply internal?", "verb"),
        ("Mention of a price?", "begin"),
        ("Does the reply name a price", "question mark"),
        ("Does the reply mention?", "object"),
        ("Does the text mention the?", "the"),
        ("Does the output contains a price?", "contains"),
        ("Does the reply mention refund refund?", "refund"),
        ("Is the reply?", "claims"),
    ],
)
def test_a_wording_that_nobody_would_sign_is_told(text: str, fact: str) -> None:
    assert says(oddity(text), fact)


@pytest.mark.parametrize(
    "text",
    [
        "Does the reply mention internal numbers?",
        "Does the reply give legal advice?",
        "Is the reply polite?",
        "Does the reply make a proposal?",
        "Does the reply contain music?",
        "Does the customer get an answer to every question?",
        "Does the summary contradict itself?",
        "Is this correct?",
        "Does it apologise?",
        "Does the reply say what it contains?",
        "Is there an offer that includes a price?",
    ],
)
def test_a_plain_sentence_is_not_odd(text: str) -> None:
    assert oddity(text) is None


def test_a_checklist_of_orders_is_read_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "questions:\n- {id: polite, text: 'Is it polite?'}\n- {id: helpful, text: Rate the helpfulness from 1 to 5.}\n"
        "- {id: short, text: 'How short is it?'}\n",
        encoding="utf-8",
    )
    assert len(load_checklist(file).questions) == 3
    (said,) = (each.getMessage() for each in caplog.records)
    assert says(said, "c.yaml", "entry 2", "helpful", "short", "yes/no question")
    caplog.clear()
    load_checklist(file, remarks=False)
    assert not caplog.records


def test_questions_and_checks_are_read_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("questions:\n- Is it polite?\nchecks:\n- {id: json, kind: json}\n", encoding="utf-8")
    load_checklist(file)
    assert not caplog.records
