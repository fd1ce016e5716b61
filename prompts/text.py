"""Functions on texts: excerpts, quotes, copied words and names, fences, and placeholders.

A fence sets judged text apart by a delimiter that the text cannot contain. A rule or an edit that quotes an example
teaches that example, not the task; therefore copied words are searched for.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

BRACES = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
"""``{{name}}``, which stands for the text ``{name}``, or a placeholder ``{name}``. Other braces are only text."""
_NAME_IN_BRACES = re.compile(r"\{([A-Za-z_]\w*)\}")
_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?][\"'”’»)]*(?=\s|$)|(?=\n|$))")
RUN = 5
"""Number of equal words in a row that count as copied from an example."""
LEAST_NOUN_WORDS = 0.1
"""Share of German function words from which on a text counts as one with capital nouns; English news has below .03."""
LIST_MARK = re.compile(r"\s*(?:[-*+\u2022\u2013]|\(?\d{1,3}[.)])\s")
"""The beginning of a line that is an item of a list."""
_WORD = re.compile(r"\w+")
LONG_WORD = 6
"""Letters from which on a word is taken to say what a text is about."""
_TOKEN = re.compile(r"\d[\w.,]*\w|\w+")
_BREAK = re.compile(r"[.!?:;…\"“”„»«(\[\n•]")
_QUOTED = re.compile(r"[\"“„«`]([^\"“”„«»`]{2,}?)[\"”“»`]|(?<!\w)['‘]([^'‘’]{2,}?)['’](?!\w)")
_GERMAN_WORDS = (
    "aber auch auf aus bei das dass dem den der des die ein eine einem einen einer eines er es für hat ich im ist mit "
    "nach nicht oder sich sie sind und vom von war wenn werden wie wird wurde zu zum zur über"
)
"""German function words. German, like Luxembourgish, capitalises every noun."""
_GERMAN = frozenset(_GERMAN_WORDS.split())
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
"""A line as in ``patch``: only a newline ends it, not a form feed or another sign that ends lines elsewhere."""
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+"
)
"""Characters of Chinese, Japanese and Korean, and their punctuation."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")


def sendable(text: str) -> str:
    """Return the text if it can be written and sent. Raises ValueError if it holds half a surrogate pair, which an
    escape in JSON can produce."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half a surrogate pair at character {error.start + 1} is no text") from None
    return text


def letters(text: str) -> int:
    """Return the length of a text for a model, in quarters of a token: 4 for a Chinese, Japanese or Korean character, 1
    for any other."""
    if text.isascii():
        return len(text)
    return 4 * len(text) - 3 * len(_WIDE.sub("", text))


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, in order, without the space around them."""
    return [found for match in _SENTENCE.finditer(text) if (found := match[0].strip())]


def excerpt(document: str, about: str, most_chars: int) -> str:
    """Return the sentences of a document that share most words with ``about``, in their order, within ``most_chars``.

    Sentences that are left out become "…". A document that fits is returned whole.
    """
    if len(document) <= most_chars:
        return document
    parts = sentences(document)
    wanted = _content(about)
    shared = [len(wanted & _content(part)) for part in parts]
    best = sorted(range(len(parts)), key=lambda place: (-shared[place], place))
    chosen: set[int] = set()
    room = most_chars
    for place in best:
        if shared[place] and len(parts[place]) + 3 <= room:
            chosen.add(place)
            room -= len(parts[place]) + 3
    if not chosen:
        return shorten(parts[best[0]], most_chars) if parts else shorten(document, most_chars)
    return with_gaps(parts, chosen)


def with_gaps(parts: Sequence[str], chosen: Collection[int]) -> str:
    """Join the parts at the chosen places, in their order; "…" stands for those left out."""
    shown: list[str] = []
    for place, part in enumerate(parts):
        if place in chosen:
            shown.append(part)
        elif not shown or shown[-1] != "…":
            shown.append("…")
    return " ".join(shown)


def shorten(text: str, most_chars: int) -> str:
    """Return the text, or its beginning up to the end of a word, with "…"."""
    if len(text) <= most_chars:
        return text
    cut = text[: max(1, most_chars - 1)]
    within_word = not (cut[-1].isspace() or text[len(cut)].isspace()) and len(cut.split()) > 1
    return (cut.rsplit(None, 1)[0] if within_word else cut).rstrip() + "…"


def _content(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3 or word.isdigit()}


_TAG_WORDS = (
    "amber apple arrow basin beach birch blade bloom brick brook cabin candle canyon cedar chalk cliff cloud "
    "clover coast copper coral cotton creek crown dawn delta dune eagle ember falcon fern field flint forest "
    "frost garden garnet glass grove harbor hazel hill honey island ivory jade lake lantern leaf linen maple "
    "marble meadow mist moss oak ocean olive opal orchard pearl pebble pine prairie quartz rain raven reed ridge "
    "river robin rose ruby sage sand shell silver snow spruce stone storm stream summit thorn tiger timber tulip "
    "valley velvet violet walnut wave willow winter wolf "
)
FENCE_WORDS = tuple(_TAG_WORDS.split())
"""Words for tags: one or two tokens for most models. Eight digits of a hash would be about ten tokens."""


def tag_for(text: str) -> str:
    """Return a word that does not occur in the text, chosen by the text's own hash.

    The same text always gets the same word, so prefix and answer caches still hit. The text never contains the word,
    whoever wrote it: if it does, the next hash in the chain chooses another, and after 20 words a hash itself is taken.
    """
    digest, lower = sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text.lower()
    for _ in range(20):
        word = FENCE_WORDS[int(digest[:8], 16) % len(FENCE_WORDS)]
        if word not in lower:
            return word
        digest = sha256(digest.encode()).hexdigest()
    while digest[:8] in lower:
        digest = sha256(digest.encode()).hexdigest()
    return digest[:8]


def visible(text: str) -> str:
    """Replace control characters, except line ends and tabs, by visible signs, so that none is an order to a terminal.
    Half a surrogate pair, which cannot be written, is replaced too."""
    return _CONTROL.sub(lambda match: _sign(ord(match[0])), text)


def _sign(code: int) -> str:
    return "\u2421" if code == 0x7F else chr(0x2400 + code) if code < 0x20 else "\ufffd"


def fence(text: str) -> str:
    """Wrap ``text`` between an opening and a closing line that carry its tag."""
    tag = tag_for(text)
    return f"<{tag}>\n{text}\n</{tag}>"


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace ``{name}`` by its value, and ``{{name}}`` by ``{name}``.

    One pass: braces in a value are never filled. Raises KeyError if a placeholder has no value.
    """
    return BRACES.sub(lambda match: "{" + match[1] + "}" if match[1] else values[match[2]], text)


def texts_end_at(text: str, values: Mapping[str, str]) -> list[int]:
    """Return the place in the filled text where the first value begins, and where each value ends; empty values do not
    count."""
    ends: list[int] = []
    grown = 0  # by how much the text is longer so far
    for match in BRACES.finditer(text):
        value = "" if match[1] else values[match[2]]
        if value and not ends:
            ends.append(match.start() + grown)
        grown += len(value) - len(match[0]) if match[2] else -2
        if value:
            ends.append(match.end() + grown)
    return ends


def placeholders_of(text: str) -> list[str]:
    """Return the names in single braces, in order, each as often as it occurs."""
    return [match[2] for match in BRACES.finditer(text) if match[2]]


def literal(text: str) -> str:
    """Escape a text for a prompt, so that no ``{name}`` in it is a placeholder."""
    return _NAME_IN_BRACES.sub(r"{{\1}}", text)


def literal_but(text: str, placeholders: Collection[str]) -> str:
    """Escape a text as :func:`literal`, but keep these names as placeholders; braces may be doubled already."""
    return BRACES.sub(lambda each: each[0] if each[1] or each[2] in placeholders else f"{{{each[0]}}}", text)


def copied_words(text: str, sources: Iterable[str], run: int = RUN, allowed: str = "") -> str | None:
    """Return the first ``run`` words in a row that ``text`` shares with a source; None if there are none.

    Words in a row that ``allowed`` also has do not count.
    """
    wanted = set(_runs(text, run)).difference(_runs(allowed, run))
    if not wanted:
        return None
    return next((" ".join(found) for source in sources for found in _runs(source, run) if found in wanted), None)


def borrowed_words(text: str, source: str, allowed: Iterable[str]) -> set[str]:
    """Return the long words that ``text`` shares with a source, in lower case, without those in one of ``allowed``."""
    known = {word for each in allowed for word in _long_words(each)}
    return (_long_words(text) & _long_words(source)) - known


def _long_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) >= LONG_WORD}


def _runs(text: str, run: int) -> Iterator[tuple[str, ...]]:
    words = [word.lower() for word in _WORD.findall(text)]
    return (tuple(words[start : start + run]) for start in range(len(words) - run + 1))


def copied_names(text: str, sources: Iterable[str], allowed: str = "") -> str | None:
    """Return the first number or name after the first word of ``text`` that a source also has; None without one.

    A name is a capitalised word. If the sources' capitals say nothing (:func:`capitals_tell`), a name is a word with a
    digit, with a capital after its first letter (McCoy, NATO), or one of two capitalised words in a row (Angela
    Merkel). Words of ``allowed`` do not count.
    """
    sources = list(sources)
    telling = capitals_tell("\n".join(sources))
    there = {word for source in sources for word in _names(source, telling)}
    known = set(_TOKEN.findall(allowed))
    return next((word for word in _names(text, telling, first=False) if word in there and word not in known), None)


def capitals_tell(text: str) -> bool:
    """Whether a capital letter within a sentence is the sign of a name.

    It is not in a language that capitalises its nouns, nor if most words are capitalised, as in a headline.
    """
    words = [word for word, initial in _tokens(text) if word[0].isalpha() and not initial]
    if not words:
        return True
    # the share of capitals alone does not tell: it is 27 % in German prose and up to 41 % in English news
    german = sum(word.lower() in _GERMAN for word in words)
    capitals = sum(word[0].isupper() for word in words)
    return not (german > 1 and german >= LEAST_NOUN_WORDS * len(words)) and capitals <= len(words) / 2


def capitalised(text: str) -> list[str]:
    """Return the names of a text, by their capitals, and its words with a digit; see :func:`copied_names`.

    The first word of a sentence is left out if it has a capital nowhere else in the text.
    """
    tokens = list(_tokens(text))
    inner = {word for word, initial in tokens if not initial}
    telling = capitals_tell(text)
    return [each for each in _names(text, telling) if each in inner or not each.isalpha()]


def copied_quote(text: str, sources: Iterable[str]) -> str | None:
    """Return the first passage in quotation marks in ``text`` that a source also has; None if there is none."""
    sources = [" ".join(source.lower().split()) for source in sources]
    for match in _QUOTED.finditer(text):
        passage = " ".join((match[1] or match[2]).lower().split()).strip(" .,;:!?")
        if passage and any(re.search(rf"(?<!\w){re.escape(passage)}(?!\w)", source) for source in sources):
            return passage
    return None


def topic_words(text: str, source: str, allowed: str) -> list[str]:
    """Return the words of ``text`` on the source's own topic: the source repeats them and ``allowed`` lacks them."""
    counts = Counter(_stem(word) for word in _WORD.findall(source.lower()))
    known = {_stem(word) for word in _WORD.findall(allowed.lower())}
    words = [word for word in _WORD.findall(text.lower()) if len(word) > 3]
    return [word for word in words if counts[_stem(word)] > 1 and _stem(word) not in known]


def _names(text: str, telling: bool, *, first: bool = True) -> Iterator[str]:
    """Yield the numbers and names of a text; if not ``first``, without its first word."""
    tokens = list(_tokens(text))
    for position, (word, _) in enumerate(tokens):
        if position == 0 and not first:
            continue
        capital = word[0].isupper() and len(word) > 1
        sure = any(letter.isdigit() or (place and letter.isupper()) for place, letter in enumerate(word))
        if sure or (capital and (telling or any(_is_capital(tokens, position + step) for step in (-1, 1)))):
            yield word


def _is_capital(tokens: list[tuple[str, bool]], place: int) -> bool:
    """Whether there is a word at this place, and it is capitalised although it does not begin a sentence."""
    if not 0 <= place < len(tokens):
        return False
    word, initial = tokens[place]
    return word[0].isupper() and len(word) > 1 and not initial


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words and numbers; True beside one that begins a sentence or follows a quotation mark, colon or
    bracket."""
    end = 0
    for match in _TOKEN.finditer(text):
        yield match[0], end == 0 or _BREAK.search(text, end, match.start()) is not None
        end = match.end()


def _stem(word: str) -> str:
    return word.removesuffix("'s").removesuffix("s")


def prompt_diff(before: str, after: str) -> str:
    """Return a unified diff of two prompts, as ``patch`` reads it; empty if they are equal."""
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), "before", "after")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
