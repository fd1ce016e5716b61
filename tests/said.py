"""Assert the facts of a message, not its sentence: numbers, names, files and lines stay when a text is reworded."""

from __future__ import annotations

import re

FACT = r"(?<![\w.]){}(?![\w%]|\.\d)"


def says(text: object, *facts: object) -> bool:
    """Tell whether one line of ``text`` names every fact, each as a whole word and in any order.

    A fact is a number, a name, a flag, a file or a short phrase of at most three words; ``5`` is not found in ``15``, ``5.2``
    or ``5%``.
    """
    if not facts:
        raise ValueError("says() needs at least one fact")
    wanted = [re.compile(FACT.format(re.escape(str(fact)))) for fact in facts]
    return any(all(each.search(line) for each in wanted) for line in str(text).splitlines())


def naming(*facts: object) -> str:
    """Return a pattern for ``pytest.raises(match=...)``: the message names every fact, each as a whole word, in any order."""
    return "(?s)^" + "".join(f"(?=.*{FACT.format(re.escape(str(fact)))})" for fact in facts)
