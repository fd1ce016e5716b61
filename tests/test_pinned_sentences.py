"""Tests assert facts: few of them repeat four words in a row of a sentence that askance says.

A sentence that tests repeat cannot be reworded without them. ``tests/said.py`` finds facts in a message; what a page or a command
says as a whole is a snapshot. List the assertions that repeat a sentence, of one folder or of all::

    .venv/bin/python -m tests.test_pinned_sentences tests/models
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {"tests", "build", "docs", "prompts/templates"}
PAGES = {".html", ".js", ".j2"}
WORDS_IN_A_ROW = 4
MOST = 50

Row = tuple[str, ...]


def rows(text: str) -> Iterator[Row]:
    """Yield every four words in a row of ``text``, in lower case; numbers and marks are no words."""
    words = [word.lower() for word in re.findall(r"[A-Za-z]+(?:'[a-z]+)?", text)]
    return zip(*(words[start:] for start in range(WORDS_IN_A_ROW)), strict=False)


def sources() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if not parts[0].startswith(".") and not {parts[0], "/".join(parts[:2])} & OUTSIDE and path.is_file():
            yield path


def said_by_askance() -> set[Row]:
    """Return every four words in a row of the strings in the code (docstrings apart) and of the pages' templates."""
    found: set[Row] = set()
    for path in sources():
        if path.suffix in PAGES:
            found.update(rows(path.read_text()))
        elif path.suffix == ".py":
            tree = ast.parse(path.read_text())
            alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else " " for part in node.values]
                    found.update(rows("".join(map(str, parts))))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                    found.update(rows(node.value))
    return found


def assertions(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what each ``assert`` tests, and each call of ``raises`` and ``warns``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("raises", "warns")
        ):
            yield node


def pinned(folder: Path) -> tuple[list[tuple[Path, int, str]], int]:
    """Return the assertions below ``folder`` that repeat a sentence (file, line, text), and the number of all assertions."""
    said, found, total = said_by_askance(), [], 0
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        for asserted in assertions(ast.parse(path.read_text())):
            total += 1
            for node in ast.walk(asserted):
                text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                if any(row in said for row in rows(text.replace("\\", ""))):
                    found.append((path, asserted.lineno, text))
                    break
    return found, total


def test_few_assertions_repeat_a_sentence_of_askance() -> None:
    found, total = pinned(ROOT / "tests")
    assert total > 9000 and len(found) <= MOST, "\n".join(f"{path}:{line}: {text}" for path, line, text in found)


if __name__ == "__main__":
    places, among = pinned(Path(sys.argv[1] if len(sys.argv) > 1 else "tests").resolve())
    for path, line, text in places:
        print(f"{path.relative_to(ROOT)}:{line}: {text[:160]!r}")
    print(f"{len(places)} of {among} assertions repeat a sentence")
