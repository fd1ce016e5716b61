"""Fences: judged text is set apart by a delimiter that the text itself cannot contain."""

from __future__ import annotations

from hashlib import sha256


def tag_for(text: str) -> str:
    """A delimiter made from the text's own hash.

    It is the same every time for the same text, so prefix and answer caches hold, and it does not occur in the
    text: where somebody managed to write it there, the next hash in the chain is taken.
    """
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    while digest[:8] in text:
        digest = sha256(digest.encode()).hexdigest()
    return digest[:8]


def fence(text: str) -> str:
    """Wrap ``text`` between an opening and a closing line that carry its tag."""
    tag = tag_for(text)
    return f"<text-{tag}>\n{text}\n</text-{tag}>"
