"""Tests whether a text is a yes/no question, and whether its wording has a fault."""

from __future__ import annotations

import re

_MARKS = "?;\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}\N{GREEK QUESTION MARK}"
"""Question marks; the Greek one is often typed as a semicolon."""
_ENDS = re.compile(r"(?:\N{HIRAGANA LETTER KA}|\u5417|\u55ce)\W*$")
"""Endings of questions in Japanese and Chinese, which may have no question mark."""
_OPEN = re.compile(r"(?:how|what|which|who|whom|whose|why)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"[,:;]\s*(?:and\s+)?(?:am|is|are|was|were|do|does|did|has|have|had|can|could|may|must|shall|should|will|would)\b",
    re.IGNORECASE,
)
"""A yes/no question that follows a clause: "Whatever is asked, does the reply stay polite?"."""


def asks_yes_or_no(text: str) -> bool:
    """Whether a text is a question that yes or no answers.

    An order ("Rate it from 1 to 5.") or a statement has no question mark. A question with "how", "what" and the like
    asks for more than yes or no; these words are known in English only.
    """
    if not any(mark in text for mark in _MARKS) and not _ENDS.search(text):
        return False
    return not _OPEN.match(text.strip(" \t\n\"'*_-")) or _YES_NO.search(text) is not None


_AUXILIARIES = "am|is|are|was|were|does|do|did|has|have|had|can|could|may|must|should|will|would"
_OPENING = re.compile(rf"(?:{_AUXILIARIES})\b", re.IGNORECASE)
_ITSELF = re.compile(r"(?<!contradict )(?<!repeat )(?<!correct )\b(?:it|them|one)sel(?:f|ves)\W*$", re.IGNORECASE)
_ADJECTIVE = r"[a-z]{2,}(?:al|ic|ive|ous|ful|less|able|ible|ish)"
_DANGLING = re.compile(
    r"\b(?:mention|name|give|say|state|use|contain|include|have|show|tell|make|offer|speak of|refer to|talk about|sound like)"
    rf"\s+({_ADJECTIVE})\W*$",
    re.IGNORECASE,
)
"""A verb that needs a noun, with only an adjective: "mention internal"."""
_VERBLESS = re.compile(rf"(?:does|do|did)\s+(?:the|this)\s+[a-z]+\s+{_ADJECTIVE}\W*$", re.IGNORECASE)
_WITHOUT_CLAIM = re.compile(rf"(?:{_AUXILIARIES})\s+(?:(?:the|a|an)\s+)?[a-z]+\W*$", re.IGNORECASE)
"""A question with only a subject: "Is the reply?"."""
_WITHOUT_OBJECT = re.compile(
    r"(?:does|do|did)\s+(?:(?:the|this)\s+)?[a-z]+\s+(?:mention|name|give|state|use|contain|include|have|offer)\W*$",
    re.IGNORECASE,
)
_INFLECTED = re.compile(
    r"(?:does|do|did)\s+(?:the|this)\s+[a-z]+\s+"
    r"(mentions|gives|says|states|uses|contains|includes|has|is|shows|tells|makes|offers)\b",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"\b(the|a|an|and|or|very|its|their|our|your|than)\W*$", re.IGNORECASE)
_TWICE = re.compile(r"\b([a-z]{3,})\s+\1\b", re.IGNORECASE)
_THINGS = (
    "advice approval archive critic detective disposal fabric garlic goal hospital journal logic manual "
    "material meal metal music parcel portable proposal public referral refusal rental traffic trial "
    "withdrawal"
)
"""Nouns with the ending of an adjective that are used, or often written, without an article."""


def oddity(text: str) -> str | None:
    """Return the fault in the wording of an English yes/no question; None if none was found.

    Only the form is checked, so a good question may be suspected and a bad one may pass.
    """
    if not asks_yes_or_no(text) or not text.rstrip().endswith("?"):
        return "it is no question that ends with a question mark"
    if not _OPENING.match(text.strip()):
        return "it does not begin as a yes/no question does"
    if _ITSELF.search(text):
        return "it asks for something about itself"
    if (found := _DANGLING.search(text)) and found[1].lower() not in _THINGS.split():
        return f"'{found[1]}' describes nothing"
    if _VERBLESS.search(text):
        return "it has no verb"
    return _torn(text.strip())


def _torn(text: str) -> str | None:
    """Return a fault of grammar: a missing part, a repeated word, or a word in the wrong form; None without one."""
    if found := _UNFINISHED.search(text):
        return f"it breaks off at '{found[1]}'"
    if found := _TWICE.search(text):
        return f"'{found[1]}' stands there twice"
    if found := _INFLECTED.match(text):
        return f"'{found[1]}' has the wrong form"
    if _WITHOUT_OBJECT.match(text):
        return "its verb has no object"
    return "it claims nothing" if _WITHOUT_CLAIM.match(text) else None
