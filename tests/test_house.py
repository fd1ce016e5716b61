"""The house stays one that a stranger finds his way in: small rooms, a map that is true, names that differ."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import askance

from .conftest import LONGEST

ROOT = Path(askance.__file__).resolve().parent
MOST_FILES = 20
"""Python files beside each other in one room, its ``__init__.py`` not counted."""
MAP = ROOT / "docs" / "contributing.md"


def sources() -> list[Path]:
    rooms = [each for each in ROOT.iterdir() if (each / "__init__.py").is_file() and each.name != "tests"]
    return [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]


def test_no_room_has_more_files_than_a_reader_takes_in() -> None:
    counts = Counter(path.parent for path in sources() if path.name != "__init__.py")
    assert sum(counts.values()) > 100
    assert {str(room): count for room, count in counts.items() if count > MOST_FILES} == {}


def test_every_room_is_on_the_map() -> None:
    text = MAP.read_text(encoding="utf-8")
    rooms = {path.parent.relative_to(ROOT) for path in sources() if path.name != "__init__.py"} - {Path()}
    unnamed = [str(room) for room in rooms if f"`{room.as_posix()}/`" not in text and f"`{room.name}/`" not in text]
    assert not unnamed


@pytest.mark.skipif(not MAP.is_file(), reason="the documentation is not installed")
def test_every_place_on_the_map_is_there() -> None:
    named = set(
        re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py|(?:[a-z_]+/)+)(?:: (\w+)(?:\.\w+)?)?`", MAP.read_text(encoding="utf-8"))
    )
    assert len(named) > 25
    files = {path.name for path in sources()} | {path.name for path in (ROOT / "tests").rglob("*.py")}
    assert not [place for place, _ in named if "/" not in place and place not in files]
    whole = [(place, name) for place, name in named if "/" in place]
    missing = [place for place, _ in whole if not (ROOT / place).exists() and not [*ROOT.glob(f"[a-z]*/{place}")]]
    assert not missing
    for place, name in whole:
        if name:
            assert re.search(rf"^(class |def |)?{name}\b", (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE), (
                f"{place} has no {name}"
            )


def test_no_two_public_classes_have_names_that_differ_only_in_number() -> None:
    names: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in names.items() if len(places) > 1}
    assert twice == {}
    assert {name for name in names if f"{name}s" in names} <= {"Model"}  # one, and those of a run: models/resolve.py


@pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the sources are not here")
def test_every_room_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = {"askance", *(".".join(["askance", *path.parent.relative_to(ROOT).parts]) for path in sources())}
    listed = set(project["tool"]["setuptools"]["packages"])
    assert rooms <= listed


def test_the_files_of_tests_that_begin_first_are_there() -> None:
    assert not [name for name in LONGEST if not (ROOT / name).is_file()]
