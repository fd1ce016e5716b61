"""Yes or no in a reply, read from its text, or from its tokens with their log-probabilities.

An exported judge contains a copy of this file, so that it reads replies like askance. So the file imports only the
standard library.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp
from typing import Any, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")
Alternatives = Sequence[tuple[str, float]]  # alternatives in a token's place, with log-probabilities
Tokens = Sequence[tuple[str, Alternatives]]

ENGLISH: dict[str, bool] = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}
ROOM = 16  # tokens to ask for if a reply begins with a mark, a blank, a label or JSON before its answer
LEAST_MASS = 0.1  # smallest probability of all valid answers together for which a token counts as an answer
UNTOLD = 0.01  # largest error of P(yes), or share of the numbers' mass, that an ambiguous token may cause
_UNSEEN = "▁ĠĊĉ\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202f\u2060\u3000\ufeff"
"""Blanks and invisible characters. Some are a tokenizer's way to write a blank."""
_STRIP = " \t\r\n\"'`*_.,:;!?()[]{}<>#-“”‘’„«»‹›「」『』（）【】《》。，、！；：…—–•·¿¡\\$" + _UNSEEN
_OPENING = frozenset("\"'“‘«")
_BEGUN = frozenset({"y", "ye"})  # beginnings of a yes of several tokens: there are vocabularies with NO and without YES
_SPECIAL = re.compile(
    r"<[|｜][^<>]{1,40}[|｜]>|</?s>|<0x[0-9a-f]{2}>|<(?:bos|eos|eod|eot|pad|unk|(?:start|end)_of_\w+)>|"
    r"\[/?(?:INST|BOS|EOS)\]",
    re.IGNORECASE,
)
"""Tokens of chat templates that a server lets through."""
_FIELDS = "answer|verdict|response|result|decision|judgement|judgment"  # the answer's field, if the reply is JSON
_LABELS = f"{_FIELDS}|conclusion|reply|output|assistant|a|antwort|respuesta|réponse|resposta|risposta|antwoord|svar|vastaus|odpowiedź|odpověď|ответ|відповідь|отговор|απάντηση|cevap|yanıt|válasz|răspuns|jawaban|回答|答案|答え|答|답변|답|उत्तर|الجواب|תשובה"
"""Labels that may come before an answer."""
_MARK = r"[\W_]"
_BEFORE = re.compile(
    rf"(?:(?<=```)(?:json|text|txt|plaintext|xml|markdown|md|yaml)(?=[\s{{])|\d{{1,2}}[.)](?!\d)|\\\w+(?={{)|{_MARK}|"
    rf"(?:(?:the|my|your|final|overall|short)\s+)*(?:{_LABELS})(?:\s+is)?(?={_MARK}*?[:：=>\]\n—–-]))*",
    re.IGNORECASE,
)
"""Marks, blanks and labels that may stand before the answer: "Answer:", "**Verdict** -", "<answer>", '{"answer":'."""
_ENDS = re.escape(_STRIP.replace("-", "") + "/|،۔।؟") + r"\s"
_WORD = re.compile(f"[^{_ENDS}]+")
_SIGNS = re.compile(r"[^\w\u0300-\u0eff]+$")
"""Hyphens and pictures at the end of a word. The range keeps vowel signs of India's scripts, which Python does not
count as letters."""
_STUCK = re.compile(r"[\"'`*_)\]}”’»]*(?:/(?!>)|[|\w])|[\"'`*_)\]}”’»]+\w")  # the word goes on: "yes/no", "no_answer"
_ALONE = re.compile(r"[^\w\n?？؟]*?(?:$|[.,;:!。，、！；：…—–\n،۔।<-])")  # the word is a clause by itself
_GOES_ON = re.compile(
    r"[ \t]+(?!(?:it|its|the|this|that|these|those|there|they|he|she|we|you|i|because|since|as|but|not)\b)[^\W\d_]",
    re.IGNORECASE,
)
"""Words after a "no" that make it part of a sentence. "No errors were found" does not answer "Is the text right?"."""
_OR = re.compile(
    r"\W*?(?:\b(?:and|or|und|oder|y|o|e|et|ou|en|of|och|eller|og|и|или|lub|veya|ve|yoki)\b|[/&|\\]|或|和|と|か)\W*"
    rf"([^{_ENDS}]+)",
    re.IGNORECASE,
)
_JSON_PART = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+')


class AnswerWords(NamedTuple):
    """The words, in lower case, that are read as yes (True) and no (False)."""

    sure: Mapping[str, bool] = ENGLISH  # words that were asked for: one token that is such a word is an answer
    known: Mapping[str, bool] = ENGLISH  # the sure words, and the words of the prompt's language
    others: Mapping[str, bool] = {}  # words of other languages
    plain: Mapping[str, bool] = ENGLISH
    """Words that more words may follow. Any other word is an answer only if it is a clause by itself ("Da der Text …"
    is no answer)."""

    def beside(self, word: str) -> Mapping[str, bool]:
        """Return the words that count for P(yes) if ``word`` is said. Words of other languages count only if ``word``
        is none of :attr:`known`."""
        return self.known if word in self.known else {**self.known, **self.others}


PLAIN = AnswerWords()


class Memo(dict[str, Value], Generic[Value]):
    """Meanings of tokens, each worked out once. A dictionary, because every alternative is looked up."""

    def __init__(self, work: Callable[[str], Value]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, token: str) -> Value:
        value = self._work(token)
        if len(self) < 100_000:
            self[token] = value
        return value


def _bare(token: str) -> str:
    return unicodedata.normalize("NFC", _SPECIAL.sub("", token)).strip(_STRIP).lower()


BARE = Memo(_bare)  # a token without marks, blanks and tokens of the template, in lower case


def spelling(token: str) -> bool | None:
    """Return True for a spelling of yes, False for a spelling of no, None for anything else."""
    return ENGLISH.get(BARE[token])


def yes_no_mass(alternatives: Iterable[tuple[str, float]], words: Mapping[str, bool] = ENGLISH) -> tuple[float, float]:
    """Return the summed probabilities of the spellings of yes, and of no, among a token's alternatives."""
    mass = {True: 0.0, False: 0.0}
    for token, logprob in alternatives:
        kind = words.get(BARE[token])
        if kind is not None:
            mass[kind] += exp(logprob)
    return mass[True], mass[False]


def p_quoted(token: str, alternatives: Alternatives, text: str) -> float | None:
    """Return 1 - P(none) at the first token of an answer that quotes a text or says none; None if it does neither."""
    p_none = usable = 0.0
    for word, logprob in alternatives or ((token, 0.0),):
        if says_nothing_to_quote(word):
            p_none += exp(logprob)
            usable += exp(logprob)
        elif usable < LEAST_MASS and (spelling(word) or stands_in(word, text)):  # LEAST_MASS is enough
            usable += exp(logprob)
    return None if usable < LEAST_MASS else 1.0 - min(p_none, 1.0)


def says_nothing_to_quote(words: str) -> bool:
    """Whether an answer is "no" or "none"."""
    return spelling(words) is False or BARE[words] == "none"


def stands_in(words: str, text: str) -> bool:
    """Whether words, or the beginning of a word, are in a text. Marks around them, blanks and case do not matter. A
    single mark that opens a quotation counts as the beginning of a quote; blanks and other marks alone do not."""
    bare = " ".join(words.strip(_STRIP).lower().split())
    return bare in " ".join(text.lower().split()) if bare else not _OPENING.isdisjoint(words)


def first_of_quote(tokens: Tokens) -> tuple[str, Alternatives]:
    """Return the first token that is a word, or opens a quotation, with its alternatives."""
    return next((each for each in tokens if BARE[each[0]] or not _OPENING.isdisjoint(each[0])), ("", ()))


def p_yes_at(alternatives: Iterable[tuple[str, float]]) -> float | None:
    """Return P(yes) / (P(yes) + P(no)). None if both are 0, or a possible yes may add more than :data:`UNTOLD`."""
    alternatives = list(alternatives)
    return p_yes_of(*yes_no_mass(alternatives), alternatives)


def p_yes_of(yes: float, no: float, alternatives: Iterable[tuple[str, float]]) -> float | None:
    """Return P(yes) from the masses of yes and no among the alternatives; None as in :func:`p_yes_at`."""
    if not yes + no:
        return None
    begun = sum(exp(logprob) for token, logprob in alternatives if BARE[token] in _BEGUN)
    p_yes = yes / (yes + no)
    return p_yes if (yes + begun) / (yes + no + begun) - p_yes <= UNTOLD else None


def p_yes_where(token: str, alternatives: Alternatives, said: bool, words: Mapping[str, bool]) -> float | None:
    """Return P(yes) at the first token of an answer that was read as ``said``; None as in :func:`p_yes_at`. A word of
    several tokens counts by its first token, if that token begins only words for yes, or only words for no."""
    if words is ENGLISH and BARE[token] in ENGLISH:
        return p_yes_of(*yes_no_mass(alternatives), alternatives)
    of = {BARE[each]: _side(BARE[each], words) for each, _ in alternatives} | {BARE[token]: said}
    yes, no = (sum(exp(logprob) for each, logprob in alternatives if of[BARE[each]] is side) for side in (True, False))
    left = [each for each in alternatives if "yes" in words and of[BARE[each[0]]] is None]
    return p_yes_of(yes, no, left)


def _side(bare: str, words: Mapping[str, bool]) -> bool | None:
    if bare in words or len(bare) < 2 - (not bare.isascii()):
        return words.get(bare)
    sides = {side for word, side in words.items() if word not in ENGLISH and word.startswith(bare)}
    return sides.pop() if len(sides) == 1 else None


def read_tokens(tokens: Tokens, words: AnswerWords = PLAIN, *, ended: bool = True) -> tuple[bool, float | None] | None:
    """Read the answer in a reply, with P(yes) if the log-probabilities give it. None if the reply says neither yes nor
    no: another word is no answer, however likely yes and no were in its place. If the reply has not ``ended``, its last
    word may be half a word."""
    if not tokens:
        return None
    token, alternatives = tokens[0]
    if len(tokens) == 1 and (is_yes := words.sure.get(BARE[token])) is not None:
        return is_yes, p_yes_where(token, alternatives, is_yes, words.known)
    pieces = [unicodedata.normalize("NFC", piece) for piece, _ in tokens]
    statement = _said(_with_blanks("".join(pieces)), words, ended)
    if statement is None:
        return (True, None) if len(tokens) == 1 and BARE[token] in _BEGUN and "yes" in words.known else None
    place, word, is_yes = statement
    number = 0
    while place >= len(pieces[number]):
        place, number = place - len(pieces[number]), number + 1
    token, alternatives = tokens[number]
    return is_yes, p_yes_where(token, alternatives, is_yes, words.beside(word))


def read_yes_no(text: str, words: AnswerWords = PLAIN, *, ended: bool = True) -> bool | None:
    """Read the answer at the beginning of a short reply; None if it begins with neither yes nor no, or with both. A
    label, marks and a template's tokens may come first. Arguments as in :func:`read_tokens`."""
    found = _said(_with_blanks(unicodedata.normalize("NFC", text)), words, ended)
    return None if found is None else found[2]


def _with_blanks(text: str) -> str:
    """Replace invisible characters and tokens of the template by blanks. The text keeps its length."""
    text = text.translate(dict.fromkeys(map(ord, _UNSEEN), " "))
    return _SPECIAL.sub(lambda special: " " * len(special[0]), text)


def _said(text: str, words: AnswerWords, ended: bool) -> tuple[int, str, bool] | None:
    """Find the place of the answer's first letter, the word in lower case, and whether it is yes; or None."""
    before = _BEFORE.match(text)
    begins = before.end() if before else 0
    is_in_json = "{" in text[:begins]
    if is_in_json:
        places = (_value_place(text, field) for field in _FIELDS.split("|"))
        begins = next((place for place in places if place is not None), begins)
    match = _WORD.match(text, begins)
    if match is None:
        return None
    word = _SIGNS.sub("", match[0])
    word, tail = word.lower(), text[begins + len(word) :]
    is_yes = words.known.get(word, words.others.get(word))
    if is_yes is None or _STUCK.match(tail):
        return None
    other = _OR.match(tail)
    if other and (other[1].lower() in words.known or other[1].lower() in words.others):
        return None
    quoted = text[:begins].endswith('"') and (is_in_json or ":" in text[:begins])
    if quoted and not tail.startswith('"'):  # "no that may yet become "not sure"
        return None
    if word in words.plain:
        return None if word == "no" and _GOES_ON.match(tail) else (begins, word, is_yes)
    if not _ALONE.match(tail) or not (ended or tail.strip(" \t")):
        return None
    return begins, word, is_yes


def wants_room(text: str, tokens: Tokens, words: AnswerWords, *, most: int, ended: bool, quotes: bool = False) -> bool:
    """Whether a reply needs more tokens: a mark, a blank, a label or the beginning of a word used up the ``most``
    tokens that were asked for. With ``quotes``, words of a text are an answer too."""
    if most >= ROOM or (ended and len(tokens) < most):
        return False
    if quotes:
        return not (first_of_quote(tokens)[0] if tokens else BARE[text])
    if tokens:
        text, read = "".join(token for token, _ in tokens), read_tokens(tokens, words, ended=False)
        is_read = read not in (None, (True, None))  # (True, None) is only the beginning of a yes
    else:
        is_read = read_yes_no(text, words, ended=False) is not None
    return not is_read and is_opening(text, words)


def is_opening(text: str, words: AnswerWords = PLAIN) -> bool:
    """Whether the answer may still follow in a reply that was cut off: so far it has only marks, blanks and labels, or
    the beginning of a label or of a word for yes or no."""
    text = _with_blanks(unicodedata.normalize("NFC", text))
    before = _BEFORE.match(text)
    rest = text[before.end() if before else 0 :].strip().lower()
    more = () if len(rest) == 1 and rest.isascii() else (*words.others, *_LABELS.split("|"), "final answer")
    return not rest or any(each.startswith(rest) for each in (*words.known, *more))


def p_yes_of_field(
    logprobs: Tokens, field: str, said: bool | None = None, words: Mapping[str, bool] = ENGLISH
) -> float | None:
    """Return P(yes) at the value of ``"field": "yes"`` in a JSON answer; None if it cannot be found. The value may also
    be an object with a field "answer". ``said`` is the answer in this place, if it is known."""
    token, alternatives = token_of_field(logprobs, field)
    return p_yes_at(alternatives) if said is None else p_yes_where(token, alternatives, said, words)


def token_of_field(logprobs: Tokens, field: str) -> tuple[str, Alternatives]:
    """Return the token that holds the first letter of a field's value in a JSON answer, with its alternatives; an empty
    token if the value cannot be found. The generated tokens are joined to find the value."""
    place = _value_place("".join(token for token, _ in logprobs), field)
    end = 0
    for token, alternatives in logprobs:
        end += len(token)
        if place is not None and place < end:
            return token, alternatives
    return "", ()


def _value_place(text: str, field: str) -> int | None:
    """Find the place of the first letter of a field's value in a JSON object. The last occurrence of the field counts,
    as in a parser. The object may be the only item of a list, or the value of the only field of another object."""
    path: list[str | None] = []
    key: str | None = None
    place, inner = None, None
    for match in _JSON_PART.finditer(text):
        part = match[0]
        if part in "{[":
            path.append(key)
            key = None
        elif part in "}]":
            path[-1:] = []
        elif match["key"]:
            key = _unquoted(match["key"])
        elif path:
            begins = match.start() + len(part) - len(part.lstrip(_STRIP))
            if [*path[1:], key] in ([field], [field, "answer"]):
                place = begins
            elif [*path[2:], key] in ([field], [field, "answer"]) and len(path) > 1:
                inner = begins
            key = None
    return inner if place is None else place


def _unquoted(string: str) -> str | None:
    try:
        return str(json.loads(string))
    except ValueError:
        return None


PROBABILITY = "probability"  # the field of a reply that holds the number
NUMBER = {"type": "integer", "minimum": 0, "maximum": 100}  # JSON schema of the number
FIRST, NEAR = 20, 0.01
"""To try whether the log-probabilities of a model that thinks are useful: number of first verdicts; and how near 0 or 1
all their P(yes) are if they are useless."""
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*")


def stated_p_yes(fields: Mapping[str, Any], answer: bool, words: tuple[str, str] = ("yes", "no")) -> float:
    """Return the P(yes) in [0, 1] that a reply states. A stated 50 fits both answers. ``words`` are for yes and no.
    Raises ValueError, with the problem, if there is no number from 0 to 100, or it contradicts the answer."""
    value = fields.get(PROBABILITY)
    if isinstance(value, str) and (match := _WRITTEN.fullmatch(value)):
        value = float(match[1])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 100:
        raise ValueError(f'"{PROBABILITY}" is no number from 0 to 100')
    if 0 < value < 1:  # ambiguous: a share of 1, or less than one percent
        raise ValueError(f'"{PROBABILITY}" is {value:g}, which is no whole number from 0 to 100')
    if (value < 50) if answer else (value > 50):
        said = words[0] if answer else words[1]
        raise ValueError(f'"answer" is "{said}", but the probability that the right answer is {words[0]} is {value:g}')
    return value / 100


def tell_apart(p_yes: Iterable[float]) -> bool:
    """Whether probabilities of yes tell more than the answers: at least one is further than .01 from 0 and from 1."""
    return any(NEAR < each < 1 - NEAR for each in p_yes)
