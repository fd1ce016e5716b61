"""Measures from words, names and numbers: of an output alone, or of an output and another text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from ...prompts.text import LIST_MARK, capitalised, sentences

_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
"""Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_WORD = re.compile(rf"[{_NO_SPACES}]+|[^\W{_NO_SPACES}]+(?:['\u2019][^\W{_NO_SPACES}]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
LONG_WORD = 6
"""A word with more letters is long (Björnsson, "Läsbarhet", 1968)."""


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, in order.

    In a script without spaces, a run of characters becomes its overlapping pairs of characters, as in search engines.
    This needs no dictionary, and two texts that share a word share its pairs.
    """
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if re.match(f"[{_NO_SPACES}]", word) and len(word) > 1:
            found += (word[place : place + 2] for place in range(len(word) - 1))
        else:
            found.append(word.replace("\u2019", "'"))
    return tuple(found)


@lru_cache(maxsize=4096)
def numbers_of(text: str) -> tuple[str, ...]:
    """Return the numbers of a text, without commas that group digits: ``1,000`` is ``1000``."""
    return tuple(re.sub(r",(?=\d{3}\b)", "", each) for each in _NUMBER.findall(text))


@lru_cache(maxsize=4096)
def names_of(text: str) -> tuple[str, ...]:
    """Return the words of a text whose capitals mark them as names, in lower case, without repeats."""
    return tuple(dict.fromkeys(each.casefold() for each in capitalised(text) if not each[0].isdigit()))


def words_found(output: str, text: str) -> float | None:
    """Share of the output's words that the text has."""
    return _share(words_of(output), set(words_of(text)))


def word_pairs_found(output: str, text: str) -> float | None:
    """Share of the output's pairs of neighbouring words that the text has."""
    return _share(tuple(pairwise(words_of(output))), set(pairwise(words_of(text))))


def covered(output: str, text: str) -> float | None:
    """Share of the text's words that the output has."""
    return _share(words_of(text), set(words_of(output)))


def names_found(output: str, text: str) -> float | None:
    """Share of the output's names that the text has; 1 for an output without names."""
    return 1.0 if not (names := names_of(output)) else _share(names, set(words_of(text)))


def numbers_found(output: str, text: str) -> float | None:
    """Share of the output's numbers that the text has; 1 for an output without numbers."""
    return 1.0 if not (numbers := numbers_of(output)) else _share(numbers, set(numbers_of(text)))


def names_new(output: str, text: str) -> float:
    """Count of the output's names that the text lacks."""
    return float(len(set(names_of(output)) - set(words_of(text))))


def numbers_new(output: str, text: str) -> float:
    """Count of the output's numbers that the text lacks."""
    return float(len(set(numbers_of(output)) - set(numbers_of(text))))


def longest_copy(output: str, text: str) -> float | None:
    """Length of the longest run of words that the output has from the text, as a share of the output's words."""
    mine, theirs = words_of(output), words_of(text)
    if not mine:
        return None
    return SequenceMatcher(None, mine, theirs, autojunk=False).find_longest_match().size / len(mine)


def words(output: str) -> float:
    """Count of words."""
    return float(len(words_of(output)))


def sentence_count(output: str) -> float:
    """Count of sentences and lines."""
    return float(len(sentences(output)))


def list_marks(output: str) -> float:
    """Count of lines that begin with a bullet or a number."""
    return float(sum(bool(LIST_MARK.match(line)) for line in output.splitlines()))


def repetition(output: str) -> float | None:
    """Share of the pairs of neighbouring words that repeat an earlier pair; 0 for an output of one word."""
    pairs = Counter(pairwise(words_of(output)))
    if not words_of(output):
        return None
    return 1.0 - len(pairs) / pairs.total() if pairs else 0.0


def readability(output: str) -> float | None:
    """Björnsson's LIX: words per sentence plus the percentage of long words. 20 is easy, 60 is hard.

    It counts no syllables, so it works for all languages that write spaces.
    """
    found = words_of(output)
    if not found:
        return None
    return len(found) / len(sentences(output)) + 100 * sum(len(each) > LONG_WORD for each in found) / len(found)


def _share(parts: tuple[object, ...], there: set[object]) -> float | None:
    return sum(each in there for each in parts) / len(parts) if parts else None


def _first_new(parts: Callable[[str], tuple[str, ...]], known: Callable[[str], tuple[str, ...]]) -> Part:
    """Make a function that finds the first sentence of an output with a name or number that the text lacks."""

    def found(output: str, text: str) -> str | None:
        there = set(known(text))
        return next((each for each in sentences(output) if set(parts(each)) - there), None)

    return found


def _copied(output: str, text: str) -> str | None:
    """Return the longest run of words that output and text share, with the output's own punctuation."""
    output_words, text_words = _SPACED.findall(output), _SPACED.findall(text)
    match = SequenceMatcher(
        None, [each.casefold() for each in output_words], [each.casefold() for each in text_words], autojunk=False
    ).find_longest_match()
    words = [re.escape(each) for each in output_words[match.a : match.a + match.size]]
    found = re.search(r"\W+".join(words), output) if words else None
    return None if found is None else found[0]


Part = Callable[[str, str], str | None]
_SPACED = re.compile(r"\w+")
PARTS: dict[str, Part] = {
    "names_found": _first_new(names_of, words_of),
    "names_new": _first_new(names_of, words_of),
    "numbers_found": _first_new(numbers_of, numbers_of),
    "numbers_new": _first_new(numbers_of, numbers_of),
    "longest_copy": _copied,
}
"""Functions that find the part of the output that decides a measure's number, by measure."""
BETWEEN: dict[str, Callable[[str, str], float | None]] = {
    "words_found": words_found,
    "word_pairs_found": word_pairs_found,
    "names_found": names_found,
    "numbers_found": numbers_found,
    "names_new": names_new,
    "numbers_new": numbers_new,
    "covered": covered,
    "longest_copy": longest_copy,
}
"""Measures of an output beside another text, from words alone, by name."""
OF_FORM: dict[str, Callable[[str], float | None]] = {
    "words": words,
    "sentences": sentence_count,
    "list_marks": list_marks,
    "repetition": repetition,
    "readability": readability,
}
"""Measures of an output's form, by name."""
