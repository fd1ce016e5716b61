"""The wheel as its user gets it: built, installed in an empty environment, and used outside the checkout.

``make test-wheel`` runs it. ``askance init``, ``evaluate`` on a stand-in for a model and ``report`` must work there, and
every package and data file of the checkout must have come along::

    .venv/bin/python -m tests.installed_wheel
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from askance.testing import StandInServer

CHECKOUT = Path(__file__).resolve().parents[1]
NOT_IN_IT = {"tests", "build", "docs", "experiments"}
"""Folders of the checkout whose files need not be in the wheel."""
LEFT = {"build", "__pycache__", "askance.egg-info"}
PROBABILITY = 0.8
"""Probability of yes in every answer of the stand-in."""


def sources() -> list[str]:
    """Files of the checkout, without what builds, tests and runs leave there."""
    paths = (path.relative_to(CHECKOUT) for path in CHECKOUT.rglob("*") if path.is_file())
    return [str(path) for path in paths if not any(part.startswith(".") or part in LEFT for part in path.parts)]


def build(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, as an earlier build may have left more, and return its file."""
    for name in sources():
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    ran([*command, str(folder / "source")])
    [wheel] = folder.glob("*.whl")
    return wheel


def missing_from(wheel: Path) -> list[str]:
    """Source files of the packages that the wheel lacks."""
    inside = {name.removeprefix("askance/") for name in zipfile.ZipFile(wheel).namelist()}
    names = [name for name in sources() if "/" in name]
    packages = {Path(name).parts[0] for name in names if name.endswith(".py")} - NOT_IN_IT
    return [name for name in names if Path(name).parts[0] in packages and name not in inside]


def use(python: Path, folder: Path) -> None:
    """Do what a first user does with the installed program."""
    askance = str(python.parent / "askance")
    home = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "ASKANCE_CACHE": str(folder / "cache"),
        "OPENAI_API_KEY": "none",
    }
    ran([askance, "init", "project"], folder, home)
    with StandInServer(lambda body: PROBABILITY) as server:
        judge = ["--model", "openai/stand-in", "--api-base", server.url]
        judged = ["examples.jsonl", "--checklist", "checklist.yaml", *judge, "--limit", "5", "-o", "verdicts.jsonl"]
        ran([askance, "evaluate", *judged], folder / "project", home)
    ran([askance, "report", "verdicts.jsonl"], folder / "project", home)
    pages = list((folder / "project").glob("*.html"))
    assert pages and "askance" in pages[0].read_text(encoding="utf-8"), "report wrote no page"


def ran(command: list[str], where: Path = CHECKOUT, environment: dict[str, str] | None = None) -> str:
    """Run a command that must succeed, and return its standard output."""
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def main() -> None:
    """Build, look, install and use; an assertion says what failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        missing = missing_from(wheel)
        assert not missing, f"the wheel lacks {len(missing)} files: {', '.join(missing[:10])}"
        ran([sys.executable, "-m", "venv", str(folder / "venv")])
        python = folder / "venv" / "bin" / "python"
        ran([str(python), "-m", "pip", "install", "--quiet", "-c", str(CHECKOUT / "constraints.txt"), str(wheel)])
        use(python, folder)
        print(f"{wheel.name}: built, installed and used outside the checkout")


if __name__ == "__main__":
    main()
