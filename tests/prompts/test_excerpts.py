from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.text import excerpt, sentences, shorten

DOCUMENT = (
    "The mayor came. Nobody saw it. The bridge cost three million. Rain fell. It was a large sum, said the mayor."
)


def test_the_sentences_nearest_to_the_output_are_shown_in_their_order() -> None:
    shown = excerpt(DOCUMENT, "The bridge cost five million, the mayor said.", 95)
    assert shown == "The mayor came. … The bridge cost three million. … It was a large sum, said the mayor."


def test_a_document_that_fits_is_shown_whole() -> None:
    assert excerpt(DOCUMENT, "bridge", len(DOCUMENT)) == DOCUMENT


def test_a_document_that_shares_nothing_is_shown_from_its_beginning() -> None:
    assert excerpt(DOCUMENT, "zzz", 12) == "The mayor…"
    assert excerpt("x" * 50, "zzz", 10) == "x" * 9 + "…"


@given(st.text(alphabet="ab .\n", max_size=80), st.text(alphabet="ab ", max_size=20), st.integers(8, 60))
def test_an_excerpt_is_never_longer_than_allowed(document: str, about: str, most: int) -> None:
    assert len(excerpt(document, about, most)) <= most


def test_sentences_end_at_full_stops_and_lines() -> None:
    assert sentences('He said "No." Then he left\nA list') == ['He said "No."', "Then he left", "A list"]


def test_a_shortened_text_ends_with_a_whole_word() -> None:
    assert shorten("one two three", 9) == "one two…"
    assert shorten("one two", 9) == "one two"
