from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.leaks import RUN, copied_words

SOURCE = "On Monday, the mayor of Arles opened a new bridge; nobody came."


def test_six_words_in_a_row_are_copied_whatever_their_case_and_punctuation() -> None:
    rule = "Answer no if THE MAYOR of arles -- opened, a new thing."
    assert copied_words(rule, ["other", SOURCE]) == "the mayor of arles opened a"


def test_five_words_in_a_row_are_not() -> None:
    assert copied_words("the mayor of Arles opened two bridges", [SOURCE]) is None


def test_short_or_empty_texts_copy_nothing() -> None:
    assert copied_words("", [SOURCE]) is None
    assert copied_words("a new bridge", [SOURCE, ""]) is None


@given(st.lists(st.sampled_from("abc"), max_size=14), st.lists(st.sampled_from("abc"), max_size=14))
def test_it_agrees_with_a_plain_search(rule: list[str], source: list[str]) -> None:
    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}

    found = copied_words(" ".join(rule), [" ".join(source)])
    assert (found is not None) == bool(runs(rule) & runs(source))
