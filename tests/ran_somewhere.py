"""Every test runs in at least one environment of CI, or is skipped for a reason that is on a short list.

With ``ASKANCE_RAN=FOLDER`` each call of pytest writes there which tests it ran and which it skipped, and why. A late step of
CI reads what all of them wrote, names the tests that took long and the warnings that ``pyproject.toml`` does not name, and
fails where a test ran nowhere::

    .venv/bin/python -m tests.ran_somewhere FOLDER
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

FOLDER = "ASKANCE_RAN"
LONG = 20.0
"""Seconds from which on a test is named: a repetition of what quicker ones hold is marked as slow."""
PERMITTED: dict[str, str] = {
    "promptfoo is not installed": "half a gigabyte from npm: make test-promptfoo, by hand before a release",
    "Node is not installed": "it comes with promptfoo: make test-promptfoo, by hand before a release",
    "data .*not beside this checkout|the data is not here|dialogues are not here|not part of this project": (
        "people's published scores, which are not ours to hand on"
    ),
    "smollm2_135m_instruct": "training a language model takes longer than CI has; such a block of a page is checked, not run",
    "the right to mount": "some containers of CI may not mount a file system; any machine's root may",
}
"""Reasons (patterns, searched for) for which a test may run nowhere in CI, and why CI cannot or need not mend each."""


class Recorder:
    """A plugin of pytest: a line for each test, or for each file that was skipped as a whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{os.getpid()}.jsonl"

    def _write(self, **row: object) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            print(json.dumps(row), file=file)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._write(test=report.nodeid, skipped=reason(report))
        elif report.when == "call":
            self._write(test=report.nodeid, skipped=None, seconds=report.duration)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._write(test=report.nodeid, skipped=reason(report))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, nodeid: str) -> None:
        said = str(warning_message.message).partition("\n")[0]
        self._write(warning=f"{warning_message.category.__name__}: {said}", at=nodeid or warning_message.filename)


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else str(report.longrepr)
    return str(said).removeprefix("Skipped: ")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def remarks(folder: Path) -> str:
    """Return a line for each test that took long, and one for each warning with its number and the first place."""
    rows = rows_of(folder)
    lines = [f"{row['seconds']:.0f} s: {row['test']}" for row in rows if row.get("seconds", 0) > LONG]
    places = defaultdict(list)
    for row in rows:
        if "warning" in row:
            places[row["warning"]].append(row["at"])
    return "\n".join([*lines, *(f"warned {len(each)} times ({each[0]}): {said}" for said, each in places.items())])


def ran_nowhere(folder: Path) -> dict[str, str]:
    """Return the tests, and files of tests, that every call skipped, each with the reason of the last one that did."""
    rows = [row for row in rows_of(folder) if "test" in row]
    ran = {row["test"] for row in rows if row["skipped"] is None}
    skipped = {row["test"]: row["skipped"] for row in rows if row["skipped"] is not None}
    if not ran:
        raise ValueError(f"no test ran of those that {folder} tells of")
    seen = ran | {test.partition("::")[0] for test in [*ran, *(each for each in skipped if "::" in each)]}
    return {test: why for test, why in skipped.items() if test not in seen}


def judged(skipped: dict[str, str], permitted: dict[str, str]) -> tuple[str, bool]:
    """Return what is to be said of tests that ran nowhere, by reason, and whether all of them are permitted."""
    tests = defaultdict(list)
    for test, why in sorted(skipped.items()):
        tests[why].append(test)
    lines, good = [], True
    for why, named in tests.items():
        excuse = next((excuse for pattern, excuse in permitted.items() if re.search(pattern, why)), None)
        good = good and excuse is not None
        lines.append(f"{len(named)} ran nowhere ({why}): {excuse or 'not permitted, in tests/ran_somewhere.py'}")
        lines += [f"  {test}" for test in named if excuse is None]
    return "\n".join(lines), good


if __name__ == "__main__":
    text, all_permitted = judged(ran_nowhere(Path(sys.argv[1])), PERMITTED)
    print(remarks(Path(sys.argv[1])), text, sep="\n")
    sys.exit(0 if all_permitted else 1)
