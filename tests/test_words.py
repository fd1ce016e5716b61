"""Words that a person reads in the code: docstrings that name their noun, in lines that fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .test_house import ROOT, sources

LEANING = re.compile(r"(?:What|Those|Of|That|Which|The same)\b")
"""Openings that lean on the line above in place of naming a noun."""
MOST_LEANING = 0.02
LONGEST_LINE = 120


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield every text that stands by itself: docstrings, and those under fields and constants."""
    for node in ast.walk(tree):
        for each in getattr(node, "body", None) or [] if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.value


def prose_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of docstrings and comments, with their numbers."""
    lines = source.splitlines()
    numbers = {
        line for text in docstrings(ast.parse(source)) for line in range(text.lineno, (text.end_lineno or 0) + 1)
    }
    for number, line in enumerate(lines, 1):
        if number in numbers or line.lstrip().startswith("#"):
            yield number, line


def test_few_docstrings_lean_on_the_line_above() -> None:
    texts = [
        (path.relative_to(ROOT).as_posix(), text.lineno, str(text.value).strip())
        for path in sources()
        for text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
    ]
    leaning = [each for each in texts if LEANING.match(each[2])]
    assert len(texts) > 1000
    assert len(leaning) <= MOST_LEANING * len(texts), leaning


def test_lines_of_prose_fit() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources()
        for number, line in prose_lines(path.read_text(encoding="utf-8"))
        if len(line) > LONGEST_LINE and "http" not in line
    ]
    assert found == []


def test_a_leaning_opening_is_found() -> None:
    (text,) = docstrings(ast.parse('def f():\n    """Those of the rows."""'))
    assert LEANING.match(str(text.value))
    assert not LEANING.match("Whatever the rows hold.")
