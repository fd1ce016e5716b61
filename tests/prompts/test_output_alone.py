"""A prompt that shows nothing of an example but the output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.examples import Example
from askance.prompts.prompt import Prompt, frame, prompt_showing
from askance.prompts.text import fence

EXAMPLE = Example(id="a", input="asked so", output="the output", context="a page", reference="a model answer")
BESIDE = ("asked so", "a page", "a model answer")


def left(text: str) -> str:
    return Prompt(text).of_output_alone.text


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Judge.\n\n{context}\n\n{output}\n\n{question}", "Judge.\n\n{output}\n\n{question}"),
        ("News: {context}\n\nSummary: {output}\n\n{question}", "Summary: {output}\n\n{question}"),
        ("{output}\n\nWritten for:\n{input}", "{output}\n\n"),
        ("{reference}\n\n{input}\n\n{context}\n\n{output}", "{output}"),
    ],
)
def test_paragraphs_that_show_other_texts_are_left_out(text: str, alone: str) -> None:
    assert left(text) == alone


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Asked: {input}\nKnown: {context}\n{output}\n\n{question}", "{output}\n\n{question}"),
        ("Judge.\nNews:\n{context}\nSummary:\n{output}\n{question}", "Judge.\nSummary:\n{output}\n{question}"),
        ("Strict.\n## News\n{context}\n## Reply\n{output}", "Strict.\n## Reply\n{output}"),
        ("{output}\nNews: {context}\n\n{question}", "{output}\n\n{question}"),
        ("News: {context}\nJudge {output}.\n{question} Now!", "Judge {output}.\n{question} Now!"),
    ],
)
def test_of_a_paragraph_that_shows_the_output_too_only_lines_are_left_out(text: str, alone: str) -> None:
    assert left(text) == alone


@pytest.mark.parametrize(
    "heading", ["# News", "### The news", "News:", "This is the news, as it was sent:", "**News**", "<news>"]
)
def test_a_heading_goes_with_what_it_stands_above(heading: str) -> None:
    assert left(f"Judge.\n\n{heading}\n\n{{context}}\n\n# Reply\n\n{{output}}") == "Judge.\n\n# Reply\n\n{output}"


def test_a_sentence_above_is_no_heading() -> None:
    text = "You judge replies. Be strict.\n\n{context}\n\n{output}"
    assert left(text) == "You judge replies. Be strict.\n\n{output}"


@pytest.mark.parametrize(
    "text",
    [
        "Judge.\n\n<news>\n{context}\n</news>\n\n<reply>\n{output}\n</reply>\n\n{question}",
        "Judge.\n\n<news>\n{context}\n</news>\n<reply>\n{output}\n</reply>\n\n{question}",
        "Judge.\n\n<reply>\n{output}\n</reply>\n<news>\n{context}\n{reference}\n</news>\n\n{question}",
    ],
)
def test_tags_go_with_what_stands_between_them(text: str) -> None:
    assert left(text) == "Judge.\n\n<reply>\n{output}\n</reply>\n\n{question}"


def test_tags_around_paragraphs_go_too_and_those_with_attributes_stay() -> None:
    assert "news" not in left("<news>\n\n{context}\n\n</news>\n\n{output}")
    text = '<doc kind="reply">\n\n{output}\n\n</doc>\n\n{context}'
    assert left(text) == '<doc kind="reply">\n\n{output}\n\n</doc>\n\n'


@pytest.mark.parametrize(
    "text",
    [
        "Does {output} go with {input}? {question}",
        "{context} {question}\n\n{output}",
        "News: {context}\n\nIs {output} about {input}?",
        "<!-- protect -->\nNews: {context}\n\nReply: {output}\n<!-- /protect -->\n\n{question}",
        "{output}",
        "Judge.",
        "Not {{context}}.\n\n{output}",
        "</odd>\n\n{output}",
    ],
)
def test_a_prompt_that_nothing_can_be_taken_out_of_stays_itself(text: str) -> None:
    prompt = Prompt(text)
    assert prompt.of_output_alone is prompt


def test_a_protected_part_goes_as_a_whole_or_not_at_all() -> None:
    whole = "<!-- protect -->News: {context}<!-- /protect -->\n\n<!-- protect -->{output}<!-- /protect -->"
    assert left(whole) == "<!-- protect -->{output}<!-- /protect -->"
    within = "<!-- protect -->\nReply: {output}\nNews: {context}\n<!-- /protect -->\n\n{question}"
    assert left(within) == "<!-- protect -->\nReply: {output}\n<!-- /protect -->\n\n{question}"


@pytest.mark.parametrize("heading", ["# The reply: {output}", "**{output}**", "Of {output}:"])
def test_a_heading_that_shows_the_output_stays(heading: str) -> None:
    assert left(f"{heading}\n{{input}}\n{{question}}") == f"{heading}\n{{question}}"
    assert left(f"{heading}\n\n{{input}}\n\n{{question}}") == f"{heading}\n\n{{question}}"


def test_whether_there_is_more_than_the_output_to_be_left_out() -> None:
    both, alone = [Example(id="1", input="a", output="b")], [Example(id="1", input="", output="b")]
    assert Prompt("Judge.").can_show_less_of(both), "the texts follow it"
    assert Prompt("{input}\n\n{output}").can_show_less_of(both)
    assert not Prompt("{input}\n\n{output}").can_show_less_of(alone)
    assert not Prompt("{output} {question}").can_show_less_of(both)
    assert not Prompt("Does {output} go with {input}?").can_show_less_of(both)


PIECES = st.sampled_from(
    [
        "Judge.",
        "News:",
        "# A",
        "<a>",
        "</a>",
        "{input}",
        "{context}",
        "{reference}",
        "{output}",
        "{question}",
        " ",
        "\n",
        "\n\n",
    ]
)


@given(st.lists(PIECES, max_size=14))
def test_output_and_question_are_never_lost_and_a_prompt_that_changes_shows_nothing_else(pieces: list[str]) -> None:
    text = "".join(pieces)
    alone = Prompt(text).of_output_alone
    assert [alone.text.count(each) for each in ("{output}", "{question}")] == [
        text.count(each) for each in ("{output}", "{question}")
    ]
    assert alone.text == text or not {"input", "context", "reference"} & set(alone.placeholders)


# --- framing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Judge.",
        "Asked: {input}\nKnown: {context}\n{output}\n\n{question}\nBe strict.",
        "{reference}\n\n{output}",
        "Does {output} go with {input} and {context}? {question}",
        prompt_showing(["context", "input", "reference"]).text,
    ],
)
def test_of_an_example_the_output_alone_is_there(text: str) -> None:
    prompt = Prompt(text)
    whole, alone = (frame(prompt, EXAMPLE, sees) for sees in ("all", "output"))
    said = f"{alone.prefix}{alone.after}"
    assert fence("the output") in said and not [each for each in BESIDE if each in said]
    assert any(each in f"{whole.prefix}{whole.after}" for each in BESIDE)


def test_without_placeholders_the_prompt_stays_the_system_message() -> None:
    framing = frame(Prompt("Judge."), EXAMPLE, "output")
    assert (framing.system, framing.before) == ("Judge.", f"Output:\n{fence('the output')}\n\n")


def test_what_comes_after_the_question_stays() -> None:
    framing = frame(Prompt("{input}\n\n{output}\n\n{question} Be strict."), EXAMPLE, "output")
    assert (framing.before, framing.after) == (f"{fence('the output')}\n\n", " Be strict.")


def test_what_cannot_be_taken_out_is_shown_empty() -> None:
    framing = frame(Prompt("Does {output} go with {input}?"), EXAMPLE, "output")
    assert framing.before == f"Does {fence('the output')} go with {fence('')}?\n\n"


def test_where_an_example_is_its_output_alone_both_ask_the_same() -> None:
    bare = Example(id="a", input="", output="the output")
    assert frame(Prompt("Judge."), bare, "output") == frame(Prompt("Judge."), bare)
