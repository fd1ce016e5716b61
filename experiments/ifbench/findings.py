"""Sentences on how an output fails an IFBench constraint, for roles that learn from failures.

The official checkers say only pass or fail. These findings are our own reading of what each of them looks at; they are
shown beside a failure and never decide one. Where nothing short can be said, nothing is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from string import punctuation
from typing import Any

from .official import sentences, stop_words, tokens

Finding = Callable[[str, Mapping[str, Any]], str | None]
"""Takes the output and the constraint's arguments."""

_CONJUNCTIONS = ("and", "but", "for", "nor", "or", "so", "yet")
_PRIMES = frozenset({2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47})
_PRONOUNS = re.compile(
    r"(?:i|me|my|mine|myself|we|us|ours?|ourselves|yours?|you|yourself|yourselves|he|him|his|himself|she|hers?|herself"
    r"|it|its|itself|they|them|theirs?|themselves)"
)
_LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
_WORD = re.compile(r"\w+")
_SHORT = 60


def finding(constraint: str, output: str, arguments: Mapping[str, Any]) -> str | None:
    """A sentence about what is wrong with an output that fails a constraint; None where nothing short can be said."""
    if not output.strip():
        return "The output is empty."
    find = _FINDINGS.get(constraint)
    return find(output, arguments) if find else None


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f'"{text[:_SHORT]}..."' if len(text) > _SHORT else f'"{text}"'


def _bare(text: str) -> list[str]:
    """Words without their punctuation, in lower case."""
    return [bare for word in text.lower().split() if (bare := word.strip(punctuation))]


def _count(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _first(words: list[str], saying: str) -> str | None:
    return f"{saying} {', '.join(_quoted(word) for word in words[:3])}." if words else None


def _words(output: str, _: Mapping[str, Any]) -> str:
    return f"It has {_count(len(_WORD.findall(output)), 'word')}."


def _stop_words(output: str, _: Mapping[str, Any]) -> str | None:
    words = _WORD.findall(output.lower())
    known = stop_words()
    return f"{sum(word in known for word in words) / len(words):.0%} of its words are stop words." if words else None


def _endings(output: str, _: Mapping[str, Any]) -> str:
    ends = Counter(sentence[-1] for sentence in sentences(output) if sentence)
    return f"Its sentences end {ends['.']} times in '.', {ends['?']} times in '?' and {ends['!']} times in '!'."


def _conjunctions(output: str, _: Mapping[str, Any]) -> str:
    missing = [word for word in _CONJUNCTIONS if word not in set(_bare(output))]
    return f"It has {7 - len(missing)} of the seven; it lacks {', '.join(missing)}."


def _numbers(output: str, _: Mapping[str, Any]) -> str:
    found = re.findall(r"\d+", output.translate(str.maketrans("", "", punctuation)))
    return f"It has {_count(len(found), 'number')}."


def _pronouns(output: str, _: Mapping[str, Any]) -> str:
    found = sum(_PRONOUNS.fullmatch(word) is not None for word in _bare(output.replace("/", " ")))
    return f"It has {_count(found, 'pronoun')}."


def _keyword_counts(output: str, arguments: Mapping[str, Any]) -> str:
    words = [str(arguments[f"keyword{number}"]) for number in range(1, 6)]
    return f"It has {', '.join(f'{word} {output.lower().count(word.lower())}x' for word in words)}."


def _marks(output: str, _: Mapping[str, Any]) -> str:
    interrobang = re.search(r"\?!|!\?|‽", output)
    rest = output.replace(interrobang[0], "", 1) if interrobang else output
    missing = [mark for mark in (".", ",", "!", "?", ";", ":") if mark not in rest]
    return (
        f"It lacks {'  '.join(missing if interrobang else [*missing, '?!'])}, the interrobang's own marks not counted."
    )


def _vowels(output: str, _: Mapping[str, Any]) -> str:
    used = sorted(set("aeiou") & set(output.lower()))
    lines = len(output.strip().split("\n"))
    return f"It uses the vowels {', '.join(used)}" + (f" and has {lines} lines." if lines > 1 else ".")


def _no_cluster(output: str, _: Mapping[str, Any]) -> str | None:
    cluster = re.compile(r"[bcdfghjklmnpqrstvwxyz]{2}")
    return _first([word for word in output.lower().split() if not cluster.search(word)], "Words without a cluster:")


def _palindromes(output: str, _: Mapping[str, Any]) -> str:
    found = [word for word in _bare(output) if len(word) >= 5 and word == word[::-1]]
    return f"It has {_count(len(found), 'palindrome')} of five or more letters."


def _depth(output: str, _: Mapping[str, Any]) -> str:
    depth = deepest = 0
    for character in output:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return f"Its brackets are nested {_count(deepest, 'level')} deep."


def _not_prime(output: str, _: Mapping[str, Any]) -> str | None:
    words = output.translate(str.maketrans("", "", punctuation)).split()
    return _first([word for word in words if len(word) not in _PRIMES], "Words of another length:")


def _said(output: str, _: Mapping[str, Any]) -> str:
    return f"It says {_quoted(output)}."


def _too_often(output: str, arguments: Mapping[str, Any]) -> str | None:
    words = Counter(output.lower().translate(str.maketrans("", "", punctuation)).split())
    often = [f"{word} {count}x" for word, count in words.most_common(3) if count > arguments["small_n"]]
    return f"It has {', '.join(often)}." if often else None


def _nth_sentence(output: str, arguments: Mapping[str, Any]) -> str:
    found = sentences(output)
    if len(found) < arguments["N"]:
        return f"It has only {_count(len(found), 'sentence')}."
    return f"That sentence is {_quoted(found[arguments['N'] - 1])}."


def _nth_word(output: str, arguments: Mapping[str, Any]) -> str:
    found = sentences(output)
    if len(found) < arguments["n"]:
        return f"It has only {_count(len(found), 'sentence')}."
    words = tokens(found[arguments["n"] - 1])
    return f"That sentence has {_count(len(words), 'word')}: {_quoted(' '.join(words))}."


def _second_words(output: str, _: Mapping[str, Any]) -> str | None:
    words = tokens(output)
    if len(words) < 2:
        return None
    return f"The second word is {_quoted(words[1])}, the second to last, marks counted, {_quoted(words[-2])}."


def _paragraph_ends(output: str, _: Mapping[str, Any]) -> str | None:
    for paragraph in output.split("\n"):
        words = paragraph.strip().lower().strip(punctuation + " ").split()
        if paragraph.strip() and (not words or words[0] != words[-1]):
            return f"This paragraph begins and ends differently: {_quoted(paragraph)}."
    return None


def _alike(output: str, _: Mapping[str, Any]) -> str | None:
    words = output.lower().translate(str.maketrans("", "", punctuation)).split()
    pairs = [f"{one} {other}" for one, other in pairwise(words) if one[0] == other[0]]
    return _first(pairs, "Neighbours that begin alike:")


def _indents(output: str, _: Mapping[str, Any]) -> str:
    lines = [line for line in output.split("\n") if line.strip()]
    depths = [str(len(line) - len(line.lstrip(" "))) for line in lines[:10]]
    return f"Its lines are indented by {', '.join(depths)} spaces."


def _thesis(output: str, _: Mapping[str, Any]) -> str:
    if "<i>" in output or "<em>" in output:
        return "Its italics are not closed, are empty, or nothing follows them."
    return "It has no <i> or <em>."


def _bare_bullets(output: str, _: Mapping[str, Any]) -> str | None:
    if "**" in output:
        return "It has '**', of which each '*' counts as a bullet."
    return _first([part for part in output.split("*")[1:] if "-" not in part], "No '-' follows these '*':")


def _sentences_then_bullets(output: str, _: Mapping[str, Any]) -> str:
    lines = output.split("\n")
    is_bullet = [line.strip().startswith("*") for line in lines]
    first = is_bullet.index(True) if True in is_bullet else len(lines)
    before = sum(len(sentences(line.strip())) for line in lines[:first])
    others = sum(not each for each in is_bullet[first:])
    said = f"It has {_count(before, 'sentence')} and then {_count(sum(is_bullet), 'bullet')} with '*'"
    return f"{said}, but among or after them {_count(others, 'line')} without one." if others else f"{said}."


_FINDINGS: dict[str, Finding] = {
    "count:conjunctions": _conjunctions,
    "count:keywords_multiple": _keyword_counts,
    "count:numbers": _numbers,
    "count:pronouns": _pronouns,
    "count:punctuation": _marks,
    "count:unique_word_count": lambda output, _: f"It has {_count(len(set(_bare(output))), 'different word')}.",
    "count:word_count_range": _words,
    "custom:multiples": _said,
    "format:line_indent": _indents,
    "format:list": lambda output, arguments: (
        f"It has {arguments['sep']} {_count(output.count(arguments['sep']), 'time')}."
    ),
    "format:newline": lambda output, _: _first(
        [line for line in output.split("\n") if len(line.split()) > 1], "Lines of several words:"
    ),
    "format:no_bullets_bullets": _sentences_then_bullets,
    "format:no_whitespace": lambda output, _: (
        f"It has {_count(sum(character.isspace() for character in output), 'space or line break')}."
    ),
    "format:options": _said,
    "format:output_template": lambda output, _: (
        f"It lacks {', '.join(label for label in _LABELS if label not in output)}."
    ),
    "format:parentheses": _depth,
    "format:sub-bullets": _bare_bullets,
    "format:thesis": _thesis,
    "format:title_case": lambda output, _: _first(
        [word for word in tokens(output) if word[0].islower()], "Words in lower case:"
    ),
    "ratio:sentence_balance": _endings,
    "ratio:sentence_type": _endings,
    "ratio:sentence_words": lambda output, _: (
        f"Its sentences have {', '.join(str(len(each)) for each in sentences(output)[:10])} characters."
    ),
    "ratio:stop_words": _stop_words,
    "repeat:repeat_change": _said,
    "repeat:repeat_simple": _said,
    "repeat:repeat_span": _said,
    "sentence:increment": lambda output, _: (
        f"Its sentences have {', '.join(str(len(_bare(each))) for each in sentences(output)[:10])} words."
    ),
    "sentence:keyword": _nth_sentence,
    "words:consonants": _no_cluster,
    "words:keywords_specific_position": _nth_word,
    "words:no_consecutive": _alike,
    "words:palindrome": _palindromes,
    "words:paragraph_last_first": _paragraph_ends,
    "words:prime_lengths": _not_prime,
    "words:repeats": _too_often,
    "words:vowel": _vowels,
    "words:words_position": _second_words,
}
