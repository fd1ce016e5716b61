"""The words for yes and no in the languages of prompts, numbers in a reply, and alternatives worth keeping."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import exp

from ...prompts.errors import InputError
from ..base import TokenProbabilities
from .yes_no import BARE, ENGLISH, LEAST_MASS, UNTOLD, AnswerWords, Memo, token_of_field

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
"""By language: words for yes, words for no, and frequent words that show a question's language."""
_ENGLISH_MARKS = (
    "is are does do the of in and to a with all it output input text answer question any or this that be for"
)
_ELSEWHERE = frozenset(
    ["tak", "так", "já", "jo", "po", "ya", "nu", "nie", "ne", "не", "ei", "oo", "hindi", "bai", "ez", "da", "si", "no"]
)
"""Words that mean something else in another language, or begin a sentence there: "так", "ya", "nu"; "ne" is a no in
Serbian, and a yes in Greek and Korean in Latin letters. They are read only if the prompt is in their language."""
_OTHER_NO = frozenset(["cs", "pl", "pt", "sk"])
"""Languages in which "no" means "well, yes" or "in the". In these it is an English no only if no word follows."""


def _of_language(code: str) -> dict[str, bool]:
    yes, no, _ = LANGUAGES[code]
    return dict.fromkeys(yes.split(), True) | dict.fromkeys(no.split(), False)


_OTHERS = {
    word: side
    for code in LANGUAGES
    for word, side in _of_language(code).items()
    if word not in _ELSEWHERE | set(ENGLISH)
}
ANYWHERE = frozenset(word for code in LANGUAGES for word in _of_language(code)) | set(ENGLISH)
"""Every word for yes or no in any language."""


def languages_of(text: str) -> list[str]:
    """Return the likeliest languages of a text, several if they are equally likely; none for English, or if unknown."""
    counts = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    totals = {code: sum(counts[mark] for mark in {*marks.split()}) for code, (_, _, marks) in LANGUAGES.items()}
    # Chinese, Japanese, Korean and Thai have no blanks between words
    totals |= {code: sum(map(text.count, LANGUAGES[code][2].split())) for code in ("ja", "zh", "th", "ko")}
    if re.search("[\u3040-\u30ff]", text):  # kana: Japanese has Chinese characters too
        totals["zh"] = 0
    highest = max(totals.values())
    if highest <= sum(counts[mark] for mark in _ENGLISH_MARKS.split()):
        return []
    return [code for code, count in totals.items() if count == highest]


@lru_cache(1000)
def answer_words(texts: tuple[str, ...], given: tuple[str, str] | None = None) -> AnswerWords:
    """Return the words by which answers to a prompt are read: words in the languages of its texts, or the ``given``
    words for yes and no, with the other words of their language. Raises InputError if the given words are swapped."""
    if given is not None and _bare(given) != ("yes", "no"):
        words = _given(*_bare(given))
        known = {word: side for word, side in ENGLISH.items() if word in ("true", "false")} | words  # as JSON has them
        return AnswerWords(words, known, plain={word: side for word, side in words.items() if word in ENGLISH})
    codes = [] if given is not None else [code for text in texts for code in languages_of(text)]
    theirs = [item for code in codes for item in _of_language(code).items()]
    wrong = {word for word, side in theirs if (word, not side) in theirs}
    # English words are read with every language, because prompts ask for them unless words are given
    known = {word: side for word, side in theirs if word not in wrong} | ENGLISH if theirs else ENGLISH
    plain = {word: side for word, side in ENGLISH.items() if word != "no" or not _OTHER_NO.intersection(codes)}
    return AnswerWords(ENGLISH, known, {word: side for word, side in _OTHERS.items() if word not in wrong}, plain)


def _given(yes: str, no: str) -> dict[str, bool]:
    """Return the given words, with the other words of a language that has both; each word also without accents."""
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


_DIGIT = re.compile(r"""[\s"'`*_(\[{<:▁Ġ“‘]*(10|[0-9])[\s"'`*_.,;:!)\]}>”’。，]*""")
"""A token that is only one digit or 10: 4, " 4" and "**4**", but not -4, .4 or 42."""
_LIKELIEST = 5


def _is_answer(token: str) -> bool:
    bare = BARE[token]
    return bare in ANYWHERE or bare in ("none", "y", "ye") or _DIGITS[token] is not None


_DIGITS = Memo(lambda token: int(match[1]) if (match := _DIGIT.fullmatch(token)) else None)
_ANSWERS = Memo(_is_answer)


def digit(token: str) -> int | None:
    """Return the number from 0 to 10 that a token spells, with or without marks; None for any other token."""
    return _DIGITS[token]


def number_said(text: str) -> int | None:
    """Return the number from 0 to 10 at the beginning of a reply, with or without marks; None for any other reply."""
    words = text.split(maxsplit=1)
    return _DIGITS[words[0]] if words else None


def worth_keeping(
    alternatives: Sequence[tuple[str, float]], *, short: bool = False, asked: Collection[str] = ()
) -> Sequence[tuple[str, float]]:
    """Select the alternatives of a token that a verdict is computed from: words for yes and no, "none", beginnings of
    yes, digits, and the five likeliest alternatives. Nothing is kept if only the last group is there. P(yes) and scores
    stay the same, with half of the stored bytes for one token and a tenth with an explanation. In a ``short`` reply
    each token may begin a word for yes or no, so the five likeliest are always kept. Beginnings of a word that was
    ``asked`` for are kept, too."""
    spelt = [_ANSWERS[token] for token, _ in alternatives]
    if asked:
        begins = [
            bool(BARE[token]) and any(word.startswith(BARE[token]) for word in asked) for token, _ in alternatives
        ]
        spelt = [known or begun for known, begun in zip(spelt, begins, strict=True)]
    if not any(spelt):
        return alternatives[:_LIKELIEST] if short else ()
    return [pair for place, pair in enumerate(alternatives) if spelt[place] or place < _LIKELIEST]


def score_masses(alternatives: Iterable[tuple[str, float]], low: int, high: int) -> list[float]:
    """Return the summed probability of each whole number from ``low`` (0 or more) to ``high`` (10 at most) among a
    token's alternatives. For 10, which may be two tokens, see :func:`number_masses`."""
    masses = [0.0] * (high - low + 1)
    for token, logprob in alternatives:
        number = _DIGITS[token]
        if number is not None and low <= number <= high:
            masses[number - low] += exp(logprob)
    return masses


def number_masses(logprobs: Sequence[TokenProbabilities], low: int, high: int) -> list[float]:
    """Return the probability of each whole number from ``low`` (0 or 1) to ``high`` (10 at most) as an answer's first
    word. If 10 is two tokens and the reply says 1, the mass of 1 is divided between 1 and 10 by the probability of 0 as
    the next token. Raises ValueError if the reply says another number, and the share of 1, which may belong to 10, is
    more than :data:`UNTOLD`."""
    place = next((place for place, (token, _) in enumerate(logprobs) if BARE[token]), len(logprobs))
    token, alternatives = logprobs[place] if place < len(logprobs) else ("", ())
    masses = score_masses(alternatives, low, high)
    if high < 10 or masses[10 - low]:
        return masses
    mass_of_one = masses[1 - low]
    if _DIGITS[token] == 1:
        after = logprobs[place + 1][1] if place + 1 < len(logprobs) else ()
        zero = sum(exp(logprob) for following, logprob in after if following[:1] == "0" and _DIGITS[following] == 0)
        masses[10 - low], masses[1 - low] = mass_of_one * zero, mass_of_one * (1 - min(zero, 1.0))
    elif mass_of_one > UNTOLD * sum(masses):
        raise ValueError(
            f"1 was likely too ({mass_of_one / sum(masses):.0%}), and whether it would have become 10 cannot be told; "
            "take a scale up to 9"
        )
    return masses


def scale_of(levels: int) -> tuple[int, int]:
    """Return the lowest and highest number of a scale with 2 to 10 levels: 1 to ``levels``, but 0 to 9 for ten
    levels."""
    # many tokenizers write 10 as two tokens, so its probability cannot be told from the probability of 1
    return (0, 9) if levels == 10 else (1, levels)


def expected_score(masses: Sequence[float]) -> float:
    """Return the expected number, Σ k·P(k) over the numbers of the scale, mapped to [0, 1] (LMUnit §3.3, eq. 2).
    ``masses`` are two or more, with a sum above 0. They are scaled to sum 1, so answers outside the scale do not count.
    """
    mean = sum(place * mass for place, mass in enumerate(masses)) / sum(masses)
    return min(mean / (len(masses) - 1), 1.0)  # rounding may go beyond 1


def expected_number(
    logprobs: Sequence[TokenProbabilities], low: int, high: int, field: str | None = None
) -> float | None:
    """Return the expected number of a scale, in [0, 1], at a reply's first word or a ``field``'s value, or None."""
    if field is None:
        masses = number_masses(logprobs, low, high)
    else:
        masses = score_masses(token_of_field(logprobs, field)[1], low, high)
    return None if sum(masses) < LEAST_MASS else expected_score(masses)
