"""Clauses of a prompt as checks: each keeps what the clause permits and refuses what it forbids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.evaluation.contract.clauses import stated_rules
from askance.evaluation.contract.schemas import passes
from askance.evaluation.contract.wording import KeyClause, clauses_of, key_clauses
from askance.prompts.checklist import ComputedCheck

REPLY = "Dear citizen,\n**Yes, you may.**\n- Fill in the form.\n- Send it.\nYour help desk"


@pytest.mark.parametrize(
    ("clause", "kept", "broken"),
    [
        ("No more than 5 words in all.", "one two three four five", "one two three four five six"),
        ("Keep it under 5 words.", "one two three four", "one two three four five"),
        ("Write two sentences or fewer.", "One. Two.", "One. Two. Three."),
        ("Use between 2 and 3 sentences.", "One. Two.", "One."),
        ("Answer in one sentence.", "One.", "One. Two."),
        ("Write a two-sentence answer: exactly two sentences.", "One. Two.", "One."),
        ("Do not write more than 3 words.", "one two three", "one two three four"),
        ("The answer must not exceed 8 characters.", "12345678", "123456789"),
        ("Höchstens 3 Wörter.", "eins zwei drei", "eins zwei drei vier"),
        ("Schreibe nicht mehr als 2 Sätze.", "Ja. Nein.", "Ja. Nein. Doch."),
        ('The first line is "Dear citizen,".', REPLY, "Dear citizen, yes.\n" + REPLY),
        ('The second line is one sentence in bold (between ** and **) that answers.', REPLY, REPLY.replace("**", "")),
        ('The last line is "Your help desk".', REPLY, REPLY + "\nBye"),
        ('Begin with "Dear".', "Dear Ann", "Hello Ann"),
        ("Sign off with 'Team Lamp'.", "Bye\nTeam Lamp", "Bye"),
        ('Beginne mit "Hallo".', "Hallo Ann", "Guten Tag"),
        ("No web addresses.", "See the ministry.", "See ministry.gov for more."),
        ("Do not use headings or bullet points.", "Text", "# Title\nText"),
        ("Never use tables.", "Text", "| a | b |"),
        ("No exclamation marks.", "Fine.", "Fine!"),
        ("Do not use em dashes.", "a - b", "a — b"),
        ("Write in all lowercase.", "fine, é.", "Fine."),
        ("Never use the words \"unfortunately\" or 'please note'.", "You may please notebooks", "Please note: closed"),
        ('Speak to the reader as "you".', "Bring your card", "Bring a card"),
        ("Do not mention the passage.", "It says so.", "The passage says so."),
        ("Then two or three bullet points, each beginning with \"- \".", REPLY, REPLY.replace("- Send", "Send")),
        ("Give at most three bullet points.", "- a\n- b\n- c", "- a\n- b\n- c\n- d"),
        ('Use the sections "Summary", "Risks" and "Next steps".', "## Summary\na\n## Risks\nb\n## Next steps\nc",
         "## Summary\na\n## Next steps"),
        ("Don't start with \"This article\".", "Prices rise.", "This article says"),
        ('End with a line "Prepared automatically".', "a\nPrepared automatically", "a"),
        ("Beginne nicht mit \"Am\".", "Im Mai", "Am Montag"),
        ("Die letzte Zeile lautet \"(red)\".", "Text\n(red)", "Text"),
        ("No markdown.", "plain", "some **bold** word"),
        ("Always end with a question.", "Why?", "Because."),
        ("Answer with exactly one word: billing, account or other.", "billing", "sales"),
        ("Answer with one of the labels \"yes\", \"no\" or \"unclear\".", "unclear", "maybe"),
        ("Use the headings \"A\" and \"B\", in this order.", "# A\n# B", "# B\n# A"),
        ("Max. 2 lines.", "a\nb", "a\nb\nc"),
        ("Return only valid JSON.", "[1]", "```json\n[1]\n```"),
    ],
)  # fmt: skip
def test_a_check_keeps_what_its_clause_permits(clause: str, kept: str, broken: str) -> None:
    rules = stated_rules(f"You help people.\n- {clause}\n")
    assert rules
    assert all(passes(rule.check, kept) for rule in rules)
    assert not all(passes(rule.check, broken) for rule in rules)
    assert {(rule.check.clause, rule.check.origin) for rule in rules} == {(clause, "clause")}


@pytest.mark.parametrize(
    "clause",
    [
        "Each bullet point must have at most 10 words.",
        "Give every paragraph a title of at most 5 words.",
        "The subject line has at most 8 words.",
        "Write about 100 words.",
        "You need not limit yourself to 90 words.",
        "Write a title of at most 5 words and a text of up to 90 words.",
        "If the customer asks for a link, begin with \"Sorry\".",
        "No headings unless the user asks for them.",
        "Be kind and brief.",
        "Say what the passage says.",
        "Mention the price if the customer asks about links.",
        "Start every bullet point with \"a verb\".",
        "Do not mention competitors.",
        "Each section has 2 to 4 bullet points.",
        "Start each line with a bullet.",
        "Begin with \"Dear {name},\".",
        "When the student asks, don't tell; end with a question.",
    ],
)  # fmt: skip
def test_clauses_about_a_part_a_condition_or_content_make_no_check(clause: str) -> None:
    assert stated_rules(clause) == []


def test_a_clause_that_asks_for_more_than_code_can_see_is_not_done_with() -> None:
    rules = stated_rules("No headings.\nThe second line is one sentence in bold that answers the question directly.")
    assert [rule.is_all for rule in rules] == [True, False]
    [beside] = stated_rules("Avoid jargon and do not use tables.")
    assert not beside.is_all


def test_clauses_are_lines_and_sentences_without_marks_and_labels() -> None:
    prompt = "# Role\nRules:\n1. Be kind. Say it twice; no links\n- No links\n\nKeys:\nQuestion: {input}\n"
    assert clauses_of(prompt) == ["Be kind.", "Say it twice;", "no links", "No links"]


KEYS = {"headline": "Man wins prize", "tone": "good", "tags": ["a"], "place": "Leeds"}


def _about(clause: str) -> KeyClause:
    [found] = key_clauses(f"Keys:\n{clause}", list(KEYS))
    return found


@pytest.mark.parametrize(
    ("clause", "found", "kept", "broken"),
    [
        ('"headline": at most 3 words,', {"type": "string", "maxLength": 5}, "one two three", "one two three four"),
        ("- headline: 2 to 3 words", {"type": "string"}, "one two", "one"),
        ('"headline": "string, max 5 characters",', {"type": "string"}, "12345", "123456"),
        ('"tone": one of "good", "bad", "neutral",', {"type": "string"}, "bad", "sad"),
        ("- **tone** (positive|negative)", {"type": "string"}, "positive", "sad"),
        ('"tone": "good", "bad" or null', {"type": "string"}, None, "sad"),
        ("`tags`: 2 to 3 keywords", {"type": "array"}, ["a", "b"], ["a"]),
        ("The headline is at most 3 words;", {"type": "string"}, "one two three", "one two three four"),
        ("place is a number between 0 and 1", {"type": "number"}, 0.5, 2),
        ("tags - each at most 2 words", {"type": "array"}, ["one two three"], "a"),
        ('"place": a place named in the article, or null', {"type": "string"}, None, 3),
        ('"headline": one sentence of at most 4 words', {"type": "string"}, "A man wins.", "A man wins a"),
        ('"headline": a one-sentence summary', {"type": "string"}, 'He said "no."', "He said that"),
        ('"headline": two short sentences', {"type": "string"}, "He won. It rained!", "He won. It"),
        (
            '"headline": not a full sentence, at most 3 words',
            {"type": "string"},
            "Man wins prize",
            "one two three four",
        ),
        ('"tags": 2 short sentences', {"type": "array"}, ["He won.", "It rained."], ["He won.", "It"]),
    ],
)
def test_a_clause_about_a_key_limits_its_value(clause: str, found: dict[str, Any], kept: Any, broken: Any) -> None:
    check = ComputedCheck.model_validate({"id": "k", "kind": "schema", "value": _about(clause).part(found)})
    assert passes(check, json.dumps(kept))
    assert not passes(check, json.dumps(broken))


def test_a_clause_about_a_key_says_nothing_of_the_whole_output() -> None:
    prompt = 'Keys:\n"headline": at most 8 words,\n"summary": at most 25 words.'
    assert stated_rules(prompt) == []
    assert [each.key for each in key_clauses(prompt, list(KEYS))] == ["headline"]


def test_a_key_may_be_left_out_where_its_clause_says_so() -> None:
    assert not _about('"place": the place, if any').is_required
    assert _about('"place": the place, or null').is_required
