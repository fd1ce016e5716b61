from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from askance.prompts.text import RUN, capitals_tell, copied_names, copied_quote, copied_words, topic_words

GERMAN = (
    "Der Bürgermeister eröffnete am Montag eine neue Brücke über den Fluss. Die Arbeiten dauerten drei Jahre und "
    "kosteten 20 Millionen Euro, doppelt so viel wie geplant. Am Abend feierten viele Menschen auf dem Platz vor dem "
    "Rathaus mit Angela Merkel, und auch Leute von der NATO und vom eHandel waren da."
)
SPORT = (
    "Juventus have offered 23 million for Paulo Dybala of Palermo, while Patrick Bamford of Middlesbrough and Alexander "
    "Meier of Eintracht Frankfurt wait for offers from Manchester United and Real Madrid in the Premier League."
)
SOURCE = "On Monday, the mayor of Arles opened a new bridge; nobody came."


def test_words_in_a_row_are_copied_whatever_their_case_and_punctuation() -> None:
    rule = "Answer no if THE MAYOR of arles -- opened, a thing."
    assert copied_words(rule, ["other", SOURCE], run=5) == "the mayor of arles opened"


def test_fewer_words_in_a_row_are_not() -> None:
    assert copied_words("the mayor of Arles opened two bridges", [SOURCE], run=6) is None


def test_names_and_numbers_are_copied_but_not_the_first_word() -> None:
    source = "The mayor of Arles paid 3.5 million. Nobody came."
    assert copied_names("It is bad where the mayor of Arles is named.", [source]) == "Arles"
    assert copied_names("It is bad where it says 3.5 million.", ["", source]) == "3.5"
    assert copied_names("The output names 35 people.", [source]) is None


def test_a_name_of_the_task_is_no_leak() -> None:
    assert copied_names("Answer no if Arles is named.", ["In Arles it rained."], "Write about Arles.") is None


def test_a_name_in_another_alphabet_or_with_a_possessive_is_copied() -> None:
    assert copied_names("Answer no if Émile's bridge is named.", ["He saw Émile there."]) == "Émile"
    assert copied_names("Answer no if Иван is named.", ["Там был Иван."]) == "Иван"


def test_nouns_of_a_language_that_capitalises_them_are_no_names() -> None:
    assert not capitals_tell(GERMAN)
    assert (
        copied_names("Antworte nein, wenn die Ausgabe eine falsche Brücke oder einen falschen Fluss nennt.", [GERMAN])
        is None
    )


def test_there_numbers_and_sure_names_are_still_copied() -> None:
    assert copied_names("Antworte nein, wenn die Ausgabe 20 Dinge nennt.", [GERMAN]) == "20"
    assert copied_names("Antworte nein, wenn die Ausgabe die NATO nennt.", [GERMAN]) == "NATO"
    assert copied_names("Antworte nein, wenn die Ausgabe den eHandel nennt.", [GERMAN]) == "eHandel"
    assert copied_names("Antworte nein, wenn die Ausgabe Angela Merkel nennt.", [GERMAN]) == "Angela"


def test_english_full_of_names_is_still_read_for_names() -> None:
    assert capitals_tell(SPORT)
    assert copied_names("It is bad where the subject is Juventus.", [SPORT]) == "Juventus"


def test_capitals_of_a_headline_say_nothing() -> None:
    headline = "Mayor Opens Bridge After Three Long Years Of Work"
    assert not capitals_tell(headline)
    assert capitals_tell("") and capitals_tell("Mayor.")


def test_a_passage_in_quotation_marks_is_copied_where_the_source_has_it() -> None:
    source = "Include the keyword kaleidoscope in the third sentence."
    assert copied_quote('Use "Kaleidoscope" in the text.', [source]) == "kaleidoscope"
    assert copied_quote("Use 'kaleidoscope,' in the text.", ["", source]) == "kaleidoscope"
    assert copied_quote('Use "scope" in the text.', [source]) is None
    assert copied_quote("It isn't the keyword that's meant.", [source]) is None


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
