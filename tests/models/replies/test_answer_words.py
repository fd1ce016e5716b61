"""Words for yes and no in the languages of prompts."""

from __future__ import annotations

from collections import defaultdict

import pytest

from askance.models.replies.answer_words import LANGUAGES, answer_words, languages_of
from askance.models.replies.yes_no import ENGLISH, read_yes_no
from askance.prompts.errors import InputError
from tests.said import naming

QUESTIONS = {
    "de": "Stimmen alle Namen und Zahlen mit der Eingabe überein?",
    "fr": "Est-ce que tous les noms de la réponse sont dans le texte ?",
    "es": "¿Es correcta la respuesta y están todos los nombres en el texto?",
    "it": "Tutti i nomi della risposta sono nel testo e con la data?",
    "pt": "Os nomes da resposta são todos iguais aos do texto?",
    "nl": "Kloppen alle namen in het antwoord met de tekst?",
    "pl": "Czy wszystkie nazwy w odpowiedzi są w tekście?",
    "cs": "Jsou všechna jména v odpovědi správná?",
    "hu": "Minden név egyezik a szöveg és a válasz között, és az egész helyes?",
    "tr": "Tüm adlar metin ile aynı mı ve yanıt doğru mu?",
    "ro": "Toate numele din răspunsul dat sunt în text și cu date?",
    "ru": "Все ли имена в ответе есть в тексте?",
    "uk": "Чи всі імена є у відповіді та в тексті?",
    "el": "Είναι όλα τα ονόματα στο κείμενο και η απάντηση σωστή;",
    "ar": "هل كل الأسماء في هذا النص؟",
    "hi": "क्या उत्तर में सभी नाम हैं और सही है?",
    "ja": "すべての名前が入力と一致していますか。",
    "zh": "输出的所有名称是否都在输入中？",
    "ko": "모든 이름은 입력과 같은가? 이 출력은 옳은가?",
}


@pytest.mark.parametrize("code", QUESTIONS)
def test_the_language_of_a_question_is_told(code: str) -> None:
    assert code in languages_of(QUESTIONS[code])


@pytest.mark.parametrize("code", QUESTIONS)
def test_its_words_are_read_in_an_english_prompt_and_english_is_read_too(code: str) -> None:
    words = answer_words(("You are a strict judge. Look at the output and answer the question.", QUESTIONS[code]))
    yes, no, _ = LANGUAGES[code]
    for text, said in [(each, True) for each in yes.split()] + [(each, False) for each in no.split()]:
        assert read_yes_no(text.capitalize(), words) is said
        assert read_yes_no(f"**{text}**.", words) is said
    assert read_yes_no("Yes.", words) is True
    assert read_yes_no("No.", words) is False


@pytest.mark.parametrize(
    "text",
    ["Is every name in the output right?", "Does it agree with the input?", "42?", "", "Judge {output}. {question}"],
)
def test_english_and_what_is_no_language_have_no_other_words(text: str) -> None:
    assert languages_of(text) == []
    assert answer_words((text,)).known == ENGLISH


def test_no_word_is_yes_and_no_where_its_language_is_not_known() -> None:
    sides: dict[str, set[bool]] = defaultdict(set)
    for yes, no, _ in LANGUAGES.values():
        for word in yes.split():
            sides[word].add(True)
        for word in no.split():
            sides[word].add(False)
    both = {word for word, found in sides.items() if len(found) > 1}
    assert both.isdisjoint(answer_words(("Is it so?",)).others)
    assert {"ne", "так", "no", "nu"}.isdisjoint(answer_words(("Is it so?",)).others)


def test_there_are_some_thirty_languages() -> None:
    assert len(LANGUAGES) >= 30
    assert all(yes.split() and no.split() for yes, no, _ in LANGUAGES.values())


def test_given_words_bring_along_those_of_their_language() -> None:
    words = answer_words(("Is it so?",), ("Sí", "No"))
    assert {word: words.known.get(word) for word in ("sí", "si", "no", "yes")} == {
        "sí": True,
        "si": True,
        "no": False,
        "yes": None,
    }
    assert answer_words(("Is it so?",), ("Yes", "no")) == answer_words(("Is it so?",))


def test_words_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(InputError, match=naming("'nein'", "no", "'ja'", "yes")):
        answer_words(("Is it so?",), ("nein", "ja"))
    with pytest.raises(InputError, match=naming("yes", "comes first")):
        answer_words(("Is it so?",), ("no", "yes"))
