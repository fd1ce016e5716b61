"""The words for yes and no in the languages of prompts, and which of them an answer is read by."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from ...prompts.errors import InputError
from .yes_no import ENGLISH, AnswerWords

LANGUAGES: dict[str, tuple[str, str, str]] = {
    "af": ("ja", "nee", "die is het van en nie alle word met uitvoer"),
    "ar": ("نعم أجل", "لا كلا", "هل في من على النص هذا كل أن ما"),
    "az": ("bəli", "xeyr yox", "və bu mətn bütün cümlə düzgün"),
    "be": ("так", "не ні", "ці і ў усе тэкст адказ гэта"),
    "bg": ("да", "не", "ли и на са в всички се текстът отговорът"),
    "bn": ("হ্যাঁ", "না", "কি এই সব এবং উত্তর"),
    "bs": ("da", "ne", "da li je su i u sve tekst odgovor se"),
    "ca": ("sí si", "no", "és els amb i la el totes tots la del resposta"),
    "cs": ("ano", "ne", "je jsou v všechny a se na odpověď všechna text"),
    "da": ("ja", "nej", "er det og alle den i af med stemmer svaret"),
    "de": ("ja jawohl", "nein nö", "ist der die das und sind alle ein eine den im mit stimmen stimmt antwort text"),
    "el": ("ναι", "όχι οχι", "είναι το η και της όλα στο κείμενο απάντηση"),
    "es": ("sí si", "no", "es el la los las y en del con todos todas una texto respuesta"),
    "et": ("jah", "ei", "kas on ja kõik tekst vastus"),
    "eu": ("bai", "ez", "da al dira eta testua guztiak"),
    "fa": ("بله آری", "خیر نه", "آیا در از متن این همه است"),
    "fi": ("kyllä joo", "ei", "onko ovatko ja on kaikki teksti vastaus"),
    "fr": ("oui", "non", "est le la les et dans des du une tous toutes sont ce que réponse texte"),
    "he": ("כן", "לא", "האם של את כל הטקסט זה עם"),
    "hi": ("हाँ हां", "नहीं", "क्या है में और सभी का की उत्तर"),
    "hr": ("da", "ne", "je li su i u sve tekst odgovor svi se"),
    "hu": ("igen", "nem", "az egy és minden a van szöveg válasz"),
    "id": ("ya", "tidak bukan", "apakah yang dan di semua ini dengan teks jawaban"),
    "is": ("já", "nei", "er og að allt textinn í á svarið"),
    "it": ("sì sí si", "no", "è il la i le e in del tutti tutte sono con risposta testo"),
    "ja": ("はい ええ", "いいえ いえ", "は の を に か"),
    "ko": ("네 예", "아니요 아니오 아뇨", "모든 있는가 이 는 을"),
    "lt": ("taip", "ne", "ar ir visi tekstas yra atsakymas"),
    "lv": ("jā", "nē", "vai ir un visi teksts atbilde"),
    "mk": ("да", "не", "дали и на се сите текстот во"),
    "ms": ("ya", "tidak bukan", "adakah yang dan di semua ini dengan teks jawapan"),
    "nl": ("ja", "nee neen", "is de het een en van alle in met zijn antwoord tekst kloppen"),
    "no": ("ja", "nei", "er det og alle den i av med stemmer svaret"),
    "pl": ("tak", "nie", "czy jest są i w wszystkie z na się odpowiedź tekst"),
    "pt": ("sim", "não nao", "é o a os as e em do da com todos todas são uma resposta texto"),
    "ro": ("da", "nu", "este și în sunt toate cu din textul răspunsul"),
    "ru": ("да", "нет", "ли и в все на с это текст ответ есть"),
    "sk": ("áno", "nie", "je sú v všetky a sa na odpoveď text"),
    "sl": ("da", "ne", "ali je so in vsi besedilo odgovor se"),
    "sq": ("po", "jo", "është a dhe në të gjitha teksti"),
    "sr": ("da да", "ne не", "da li je su i u sve tekst odgovor да ли је су и у све текст"),
    "sv": ("ja", "nej", "är det och alla den i av med stämmer svaret"),
    "sw": ("ndiyo", "hapana", "je ni ya na wote maandishi jibu"),
    "th": ("ใช่", "ไม่ใช่ ไม่", "หรือ"),
    "tl": ("oo", "hindi", "ba ang ng sa mga lahat ay"),
    "tr": ("evet", "hayır hayir", "mi mı ve bu bir tüm metin yanıt doğru"),
    "uk": ("так", "ні", "чи і в всі це у та текст відповідь є"),
    "ur": ("ہاں", "نہیں", "کیا ہے میں اور تمام"),
    "vi": ("có đúng vâng", "không", "là các và trong tất cả văn bản câu trả lời"),
    "zh": ("是 是的 对 對 对的", "否 不是 不对 不對", "的 在 和 这 是否 吗 了"),
}
"""Words for yes, words for no, and words by which a question's language is known, by language."""
_ENGLISH_MARKS = (
    "is are does do the of in and to a with all it output input text answer question any or this that be for"
)
_ELSEWHERE = frozenset(
    ["tak", "так", "já", "jo", "po", "ya", "nu", "nie", "ne", "не", "ei", "oo", "hindi", "bai", "ez", "da", "si", "no"]
)
"""Words with another meaning in another language, or that begin a sentence there: "так", "ya", "nu"; "ne" is a no in
Serbian, and a yes in Greek and Korean in Latin letters. They are read only where the prompt is in their language."""
_OTHER_NO = frozenset(["cs", "pl", "pt", "sk"])
""""No" is "well, yes" there, or "in the": it is an English no only where nothing follows it."""


def _side(words: str, *, yes: bool) -> dict[str, bool]:
    return dict.fromkeys(words.split(), yes)


def _of_language(code: str) -> dict[str, bool]:
    yes, no, _ = LANGUAGES[code]
    return _side(yes, yes=True) | _side(no, yes=False)


_OTHERS = {
    word: side
    for code in LANGUAGES
    for word, side in _of_language(code).items()
    if word not in _ELSEWHERE | set(ENGLISH)
}
ANYWHERE = frozenset(word for code in LANGUAGES for word in _of_language(code)) | set(ENGLISH)
"""Every word for yes or no of any language."""


def languages_of(text: str) -> list[str]:
    """Languages that a text is likely in, several if they are as likely; none if it is English or cannot be told."""
    counts = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    by_language = {code: sum(counts[mark] for mark in {*marks.split()}) for code, (_, _, marks) in LANGUAGES.items()}
    # Chinese, Japanese, Korean and Thai have no blanks between words
    by_language |= {code: sum(map(text.count, LANGUAGES[code][2].split())) for code in ("ja", "zh", "th", "ko")}
    if re.search("[\u3040-\u30ff]", text):  # kana: Japanese has Chinese characters too
        by_language["zh"] = 0
    most = max(by_language.values())
    if most <= sum(counts[mark] for mark in _ENGLISH_MARKS.split()):
        return []
    return [code for code, count in by_language.items() if count == most]


@lru_cache(1000)
def answer_words(texts: tuple[str, ...], given: tuple[str, str] | None = None) -> AnswerWords:
    """The words by which answers to a prompt are read, in the languages of the prompt and its questions.

    Where words for yes and no are ``given``, only these, and others of their language, are read. Raises InputError
    where they are the wrong way round.
    """
    if given is not None and _bare(given) != ("yes", "no"):
        words = _given(*_bare(given))
        known = {word: side for word, side in ENGLISH.items() if word in ("true", "false")} | words  # as JSON has them
        return AnswerWords(words, known, plain={word: side for word, side in words.items() if word in ENGLISH})
    codes = [] if given is not None else [code for text in texts for code in languages_of(text)]
    theirs = [item for code in codes for item in _of_language(code).items()]
    wrong = {word for word, side in theirs if (word, not side) in theirs}
    # English is asked for wherever no words are given, so it is read in every language
    known = {word: side for word, side in theirs if word not in wrong} | ENGLISH if theirs else ENGLISH
    plain = {word: side for word, side in ENGLISH.items() if word != "no" or not _OTHER_NO.intersection(codes)}
    return AnswerWords(ENGLISH, known, {word: side for word, side in _OTHERS.items() if word not in wrong}, plain)


def _given(yes: str, no: str) -> dict[str, bool]:
    """The given words, and the others of a language that has both of them; each also without its accents."""
    words: dict[str, bool] = {}
    for table in (*map(_of_language, LANGUAGES), dict(ENGLISH)):
        if table.get(yes) is False or table.get(no) is True:
            if table.get(yes) is False and table.get(no) is True:
                raise InputError(
                    f"answers: '{yes}' is a word for no, and '{no}' one for yes; the word for yes comes first."
                )
        elif yes in table and no in table:
            words |= table
    words |= {yes: True, no: False}
    bare = {_without_accents(word): side for word, side in words.items()}
    return {word: side for word, side in bare.items() if words.get(word, side) is side} | words


def _bare(given: Collection[str]) -> tuple[str, str]:
    yes, no = (unicodedata.normalize("NFC", word).strip().lower() for word in given)
    return yes, no


def _without_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word)
    return "".join(each for each in letters if each not in "\u0300\u0301\u0302\u0303\u0308\u030c")
