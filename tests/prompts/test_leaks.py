from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.leaks import RUN, copied_names, copied_words, topic_words

SOURCE = "On Monday, the mayor of Arles opened a new bridge; nobody came."


def test_words_in_a_row_are_copied_whatever_their_case_and_punctuation() -> None:
    rule = "Answer no if THE MAYOR of arles -- opened, a thing."
    assert copied_words(rule, ["other", SOURCE], run=5) == "the mayor of arles opened"


def test_fewer_words_in_a_row_are_not() -> None:
    assert copied_words("the mayor of Arles opened two bridges", [SOURCE], run=6) is None


def test_names_and_numbers_are_copied_but_not_the_first_word() -> None:
    source = "The mayor of Arles paid 3.5 million. Nobody came."
    assert copied_names("Answer no if the mayor of Arles is named.", [source]) == "Arles"
    assert copied_names("Answer no if it says 3.5 million.", ["", source]) == "3.5"
    assert copied_names("The output names 35 people.", [source]) is None


def test_words_that_recur_in_a_text_are_its_topic_unless_they_are_allowed() -> None:
    source = "The bridge is old. Bridges fall. A mayor came."
    assert topic_words("Answer no if a bridge or the mayor is named.", source, "") == ["bridge"]
    assert topic_words("Answer no if a bridge is named.", source, "Are all bridges named?") == []


def test_short_or_empty_texts_copy_nothing() -> None:
    assert copied_words("", [SOURCE]) is None
    assert copied_words("a new bridge", [SOURCE, ""]) is None


@given(st.lists(st.sampled_from("abc"), max_size=14), st.lists(st.sampled_from("abc"), max_size=14))
def test_it_agrees_with_a_plain_search(rule: list[str], source: list[str]) -> None:
    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}

    found = copied_words(" ".join(rule), [" ".join(source)])
    assert (found is not None) == bool(runs(rule) & runs(source))
