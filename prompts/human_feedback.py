"""People's labels of an output, and the comments that give their reasons.

A label is kept as ``True`` or ``False``, which count as 1 and 0, so that it stays different from a score on a scale.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from .checklist import Checklist
from .errors import InputError, did_you_mean
from .formatting import names_text
from .text import sendable, sentences, shorten

PAIRS = {"pass": "fail", "yes": "no", "good": "bad", "accept": "reject", "true": "false"}
"""Known words for labels, in upper or lower case: the word that speaks for an output, and its opposite."""
MEANINGS = dict.fromkeys(PAIRS, True) | dict.fromkeys(PAIRS.values(), False)
SIDES = {"good": True, "bad": False, "none": None}
"""Sides that ``--labels`` gives words for; ``none`` means no label."""
PAIR_SIDES = ("a", "b", "tie")
"""Sides of a pair: which output is preferred."""
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})
"""Words for a missing value, in upper or lower case."""
_COUNTED = re.compile(
    r"(?P<number>[-+]?\d+(?:\.\d+)?)\s*(?:(?:/|out of|of)\s*(?P<top>\d+(?:\.\d+)?)|stars?|points?|(?P<percent>%|percent))",
    re.IGNORECASE,
)
_STARS = re.compile("([★⭐]+)☆*")

Labels = Mapping[str, Sequence[str]]
"""Side, of ``SIDES``, to more words for it."""
Ratings = Mapping[str, Sequence[float | None]]
"""Dimension to ratings, one per rater."""


def parse_labels(given: Any) -> dict[str, tuple[str, ...]]:
    """Parse more words for labels, from ``good=WORD,bad=WORD``, several such texts, or a mapping from side to word or
    words. Raises InputError if the form is wrong, a word for good or bad is a number other than 0 and 1, or a word is
    on two sides."""
    found: dict[str, tuple[str, ...]] = {}
    for side, word in _pairs(given):
        if side not in (*SIDES, *PAIR_SIDES):
            raise InputError(
                f"labels: '{side}' is neither 'good' nor 'bad'.{did_you_mean(side, SIDES)} Write good=WORD,bad=WORD; "
                "none=WORD where nothing was given; of pairs a=WORD,b=WORD,tie=WORD."
            )
        if isinstance(word, bool):
            word = str(word)
        if not isinstance(word, str) or not word.strip():
            raise InputError(f"labels, {side}: a word is needed, not {word!r} (in YAML put it in quotes).")
        if is_number(word) and side in ("good", "bad") and word.strip() not in ("0", "1"):
            raise InputError(f"labels, {side}: a label is a word, and {word.strip()} is a number.")
        found[side] = tuple(dict.fromkeys([*found.get(side, ()), _plain(word)]))
    for sides in (SIDES, PAIR_SIDES):
        side_by_word: dict[str, str] = {}
        for one, word in [(side, word) for side in sides for word in found.get(side, ())]:
            if word in side_by_word:
                raise InputError(f"labels: '{word}' cannot be both {side_by_word[word]} and {one}.")
            side_by_word[word] = one
    return found


def parse_label_scale(given: Any) -> tuple[str, ...] | None:
    """Parse the words of a scale, from worst to best, from a list or a text with commas; None if none are given. Raises
    InputError if there are fewer than two words, or a word is there twice."""
    words = given.split(",") if isinstance(given, str) else given
    if words is None or words == ():
        return None
    if not isinstance(words, (list, tuple)) or not all(isinstance(each, str) and each.strip() for each in words):
        raise InputError(f'label_scale: write words from worst to best, as "Bad,Acceptable,Excellent", not {given!r}.')
    found = tuple(each.strip() for each in words)
    if len(found) < 2 or len({_plain(each) for each in found}) < len(found):
        raise InputError(f"label_scale: at least two words are needed, each once, not {', '.join(found)}.")
    return found


LabelWords = Annotated[dict[str, tuple[str, ...]], BeforeValidator(parse_labels)]
"""A setting that takes what :func:`parse_labels` takes."""
LabelScale = Annotated[tuple[str, ...] | None, BeforeValidator(parse_label_scale)]
"""A setting that takes what :func:`parse_label_scale` takes."""


def _pairs(given: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(given, Mapping):
        for side, words in given.items():
            yield from ((str(side), word) for word in (words if isinstance(words, (list, tuple)) else [words]))
        return
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"labels: write them as good=WORD,bad=WORD, not {given!r}.")
    for pair in (pair for text in texts for pair in text.split(",")):
        side, equals, word = pair.partition("=")
        if not equals:
            raise InputError(f"labels: '{pair.strip()}' is no pair; write good=WORD,bad=WORD.")
        yield side.strip(), word


def is_missing(value: Any) -> bool:
    """Whether a value is missing: null, NaN, an empty text or list, or a word of :data:`MISSING`."""
    if isinstance(value, str):
        return _plain(value) in MISSING
    return value is None or (isinstance(value, float) and value != value) or value in ([], ())


class HumanValues:
    """Reads people's values of one source: labels, words on a scale, shares such as 4/5, and missing values."""

    def __init__(self, labels: Labels | None = None, scale: Sequence[str] | None = None) -> None:
        """``labels`` are more words for labels; ``scale`` are words from worst to best, which count from 1."""
        given = {_plain(word): side for side, words in (labels or {}).items() for word in words}
        self._meanings: dict[str, float | None] = {_plain(word): at for at, word in enumerate(scale or (), 1)}
        self._meanings |= {word: SIDES[side] for word, side in given.items() if side in SIDES}
        self.of_numbers = {
            number: self._meanings[word]
            for number, words in ((0, ("false", "0")), (1, ("true", "1")))
            for word in words
            if word in self._meanings and self._meanings[word] is not None
        }
        """The labels that 0 and 1 stand for on a dimension of labels, if the user named them."""
        self.missing: Counter[str] = Counter()
        """How often each word or other sign of a missing value was found."""
        self.texts_in_json = False
        """Whether the texts of the source were encoded as JSON twice."""
        self._tops: dict[str, tuple[float, str]] = {}

    def read(self, human: Any, where: str) -> Any:
        """Replace the known values in a row's ``human`` by numbers and labels; the record checks all other values.

        A list of objects, one per rater, becomes an object of lists. Raises InputError if a dimension has shares of
        different wholes, such as 4/5 and 8/10.
        """
        if isinstance(human, (list, tuple)) and human and all(isinstance(each, Mapping) for each in human):
            names = dict.fromkeys(name for each in human for name in each)
            human = {name: [each.get(name) for each in human] for name in names}
        if not isinstance(human, Mapping):
            return None if is_missing(human) else human
        found: dict[str, Any] = {}
        for name, value in human.items():
            is_list = isinstance(value, (list, tuple)) and len(value) > 0
            self.missing["null"] += sum(each is None for each in value) if is_list else 0
            # a rater who gave nothing keeps a place in the list
            values = [self._value(each, str(name), where) for each in (value if is_list else [value])]
            if len(values) > values.count(None):
                found[name] = values if is_list else values[0]
        return found

    def _value(self, value: Any, name: str, where: str) -> Any:
        if value is None:
            return None
        word = str(value).casefold() if isinstance(value, bool) else value
        if isinstance(word, (int, float)) and f"{word:g}" in self._meanings:
            return None if self._meanings[f"{word:g}"] is None else value
        if isinstance(word, str) and _plain(word) in self._meanings:
            return self._meanings[_plain(word)]
        if is_missing(value):
            self.missing[value.strip() or '""' if isinstance(value, str) else "[]" if value in ([], ()) else "NaN"] += 1
            return None
        if not isinstance(value, str):
            return value
        if (given := number_with_whole(value)) is None:
            return value
        number, top = given
        if top is not None and self._tops.setdefault(name, (top, where))[0] != top:
            other, place = self._tops[name]
            raise InputError(
                f"{where}: field 'human.{name}': '{value}' is out of {top:g}, and {place} has one out of {other:g}. "
                "Bring them to one scale."
            )
        return number


def number_with_whole(text: str) -> tuple[float, float | None] | None:
    """Return the number in ``4/5``, ``80 %``, ``4 stars`` or ``★★★☆``, and the whole if the text names it; None for
    other texts."""
    if stars := _STARS.fullmatch(text.replace("\ufe0f", "").strip()):
        return float(len(stars[1])), None
    if (share := _COUNTED.fullmatch(text.strip())) is None:
        return None
    return float(share["number"]), 100.0 if share["percent"] else float(share["top"]) if share["top"] else None


def rating_of(value: Any, name: str) -> float:
    """Return one rater's number, or label as ``True`` or ``False``; ``name`` is the dimension or question. Raises
    ValueError if the value is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _label(value, name)
    if not isinstance(value, (int, float)):
        raise ValueError(f"'{name}' must be a number, a label or a list of these")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"'{name}' is too large a number") from None


def _label(word: str, name: str) -> bool:
    meaning = MEANINGS.get(_plain(word))
    if meaning is not None:
        return meaning
    if is_number(word):
        raise ValueError(f"'{name}' must be a number or a label, not the text '{word}'")
    if is_number(word.replace(",", ".", 1)):
        raise ValueError(f"'{name}': '{word}' is no number; write it with a point, or several raters as a list: [4, 5]")
    word = word.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair cannot be printed
    known = ", ".join(f"{good}/{bad}" for good, bad in PAIRS.items())
    raise ValueError(
        f"'{name}': '{shorten(word, 40)}' is no label that is known ({known}); say what your words mean with "
        "--labels good=WORD,bad=WORD, or list them from worst to best: --label-scale WORD,WORD,WORD"
    )


def _plain(word: str) -> str:
    return word.strip().casefold()


def is_number(text: str) -> bool:
    """Whether a text is a number in digits."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def known_ratings(ratings: Iterable[float | None]) -> list[float]:
    """Return the ratings without the empty places of raters who gave none."""
    return [each for each in ratings if each is not None]


def are_labels(ratings: Iterable[float]) -> bool:
    """Whether the ratings are labels: at least one is a label, and all others are 0 or 1."""
    ratings = list(ratings)
    return any(isinstance(each, bool) for each in ratings) and all(each in (0, 1) for each in ratings)


def refuse_mixed_labels(rated: Iterable[tuple[str, Ratings]], prefix: str = "human.") -> None:
    """Refuse a dimension that has labels in one place and scores on a scale in another.

    ``rated`` are the places of examples, with their ratings. ``prefix`` and the dimension make the name of the field.
    Raises InputError, which names both places.
    """
    labels: dict[str, str] = {}
    numbers: dict[str, tuple[str, float]] = {}
    for example_place, human in rated:
        for name, ratings in human.items():
            for rating in known_ratings(ratings):
                if isinstance(rating, bool):
                    labels.setdefault(name, example_place)
                elif rating not in (0, 1):
                    numbers.setdefault(name, (example_place, rating))
            if name in labels and name in numbers:
                place, number = numbers[name]
                raise InputError(
                    f"{place}: field '{prefix}{name}': {number:g} is a score on a scale, and {labels[name]} has a "
                    "label (such as pass or fail) there. Give either all labels (0 and 1 may stand for them) or all scores, "
                    "or call one of them otherwise."
                )


def labelled(rated: Iterable[Ratings]) -> set[str]:
    """Return the dimensions whose ratings are all labels, 0 or 1."""
    names: set[str] = set()
    scored: set[str] = set()
    for human in rated:
        for name, ratings in human.items():
            if name not in scored:
                (names if all(rating in (0, 1) for rating in known_ratings(ratings)) else scored).add(name)
    return names - scored


def contradictions(rated: Sequence[tuple[str, Hashable, Ratings]]) -> list[tuple[str, str, str]]:
    """Find labels that contradict each other: ``(dimension, id, id)`` for each output that is labelled both ways.

    ``rated`` holds, for each example, its id, a key of its texts, and its ratings. Only dimensions whose ratings are
    all labels, 0 or 1 are compared. The majority of an example's raters counts; a tie does not count.
    """
    labels = labelled(human for _, _, human in rated)
    found = []
    for name in dict.fromkeys(name for _, _, human in rated for name in human if name in labels):
        told = [(example, judged, human[name]) for example, judged, human in rated if human.get(name)]
        sides: dict[Hashable, dict[bool, str]] = {}
        for example, judged, ratings in told:
            known = known_ratings(ratings)
            mean = sum(known) / len(known)
            if mean != 0.5:
                sides.setdefault(judged, {}).setdefault(mean > 0.5, example)
        found += [(name, ids[True], ids[False]) for ids in sides.values() if len(ids) > 1]
    return found


def contradictions_said(rated: Sequence[tuple[str, Hashable, Ratings]]) -> str | None:
    """Return a sentence on labels that contradict each other; None if there are none."""
    found = contradictions(rated)
    if not found:
        return None
    few = names_text([f"'{good}' and '{bad}' on {name}" for name, good, bad in found])
    one = len(found) == 1
    return (
        f"{len(found)} {'output is' if one else 'outputs are'} labelled both ways by people ({few}). Nothing is "
        "left out, but no judge can agree with both labels."
    )


LONG = 4_000
"""Characters from which a comment is called long."""
MOST_TOLD = 600
"""Maximum number of characters of the comments on one question that a model is shown."""
WHOLE = "overall"
"""The name for the output as a whole, unless it is a dimension of the checklist."""


@dataclass(frozen=True, slots=True)
class Comment:
    """One person's remark on an output."""

    text: str
    about: str | None = None
    """The dimension or the id of the question that the comment is about; None for the output as a whole."""
    rater: str | None = None
    """The name of the person who wrote the comment, if it is known."""


def read_comments(value: Any, about: str | None = None) -> tuple[Comment, ...]:
    """Read comments from a text, an object from dimension or question id to text (or texts), or a list of these.

    Empty comments and the space around a text are dropped. Raises ValueError for any other value.
    """
    if value is None:
        return ()
    if isinstance(value, Comment):
        found = read_comments(value.text, value.about if about is None else about)
        return tuple(replace(each, rater=value.rater) for each in found)
    if isinstance(value, str):
        return (Comment(sendable(value).strip(), about),) if value.strip() else ()
    if isinstance(value, (list, tuple)):
        return tuple(comment for each in value for comment in read_comments(each, about))
    if isinstance(value, Mapping) and about is None:
        return tuple(
            comment for name, each in value.items() for comment in read_comments(each, str(name).strip() or None)
        )
    raise ValueError(
        "a text, a list of texts, or an object from dimension or question id to text is needed, not "
        f"{type(value).__name__}"
    )


def dump_comments(comments: Sequence[Comment]) -> Any:
    """Return the simplest value from which :func:`read_comments` makes the same comments."""
    if not comments:
        return ()
    if len(comments) == 1 and comments[0].about is None:
        return comments[0].text
    names = [each.about for each in comments]
    if all(names) and len(set(names)) == len(names):
        return {each.about: each.text for each in comments}
    return [each.text if each.about is None else {each.about: each.text} for each in comments]


def comments_on(comments: Sequence[Comment], question: str, checklist: Checklist) -> list[str]:
    """Return an example's comments on one question: first on the question, then on its dimension, then on the whole.

    A name that is both a dimension of the checklist and a question's id means the dimension.
    """
    if not comments:
        return []
    names = checklist.dimensions
    dimension = checklist.question(question).dimension
    question_comments = [each.text for each in comments if each.about == question and question not in names]
    dimension_comments = [each.text for each in comments if each.about == dimension]
    overall_comments = [
        each.text
        for each in comments
        if each.about is None or (each.about == WHOLE and WHOLE not in names and question != WHOLE)
    ]
    return [*question_comments, *dimension_comments, *overall_comments]


def one_line(comment: str) -> str:
    """Return a comment with every run of white space as one space, to show it or compare it with others."""
    return " ".join(comment.split())


def told(comments: Iterable[str], most_chars: int = MOST_TOLD) -> str:
    """Join comments in one line for a model; a long line is cut after the last sentence or word that fits ("…")."""
    lines = [one_line(comment) for comment in comments]
    ended = [line if line.endswith((".", "!", "?", "…")) else f"{line}." for line in lines]
    text = " ".join([*ended[:-1], *lines[-1:]])
    if len(text) <= most_chars:
        return text
    kept = ""
    for sentence in sentences(text[: most_chars - 2])[:-1]:
        kept = f"{kept} {sentence}".strip()
    return f"{kept} …" if len(kept) > most_chars // 2 else shorten(text, most_chars)


def stray_comments_said(
    comments: Mapping[str, Sequence[Comment]], checklist: Checklist, rated: Sequence[str] = ()
) -> str | None:
    """Return a sentence on comments, given by example id, about names that are not known; None if all names are known.

    ``rated`` are names that are known beside those of the checklist.
    """
    known = {*checklist.dimensions, *(each.id for each in checklist.questions), WHOLE, *rated}
    stray = {each.about: example for example, given in comments.items() for each in given if each.about not in known}
    stray.pop(None, None)
    if not stray:
        return None
    few = ", ".join(f"'{name}' (as in example '{example}')" for name, example in list(stray.items())[:3])
    return (
        f"There are comments about {few}{' and others' if len(stray) > 3 else ''}: that is no dimension and no "
        "question of the checklist, so they are not used."
    )


def long_comments_said(comments: Mapping[str, Sequence[Comment]]) -> str | None:
    """Return a sentence on comments, given by example id, that are too long for a model; None if there are none."""
    found = [example for example, given in comments.items() if any(len(each.text) > LONG for each in given)]
    if not found:
        return None
    few = names_text([f"'{each}'" for each in found])
    return (
        f"the comments on {few} have more than {LONG:,} characters. They are kept whole, but a model is told their "
        "beginning only."
    )
