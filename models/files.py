"""Cache directory for data that can be fetched or computed again, and the identity of a weights file: its sha256.

Verdicts are stored under the identity of their model. A server's port changes with every run, and a path says nothing
about the content, so an embedded model's identity is its hash. Hashing a gigabyte takes seconds. So the hash is kept in
the cache directory under (path, size, modification time), and trusted as long as all three are unchanged.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import time

from ..prompts.errors import AskanceError, InputError
from ..prompts.text_files import write_whole

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
PART = ".part-"  # beginning of the name of a folder that is still being made
ABANDONED = 86_400.0  # seconds after which an unfinished folder counts as left behind by a killed process


def cache_directory() -> Path:
    """Return the user's cache directory, without creating it: ``ASKANCE_CACHE``, else ``askance`` in an absolute
    ``XDG_CACHE_HOME``, else ``~/.cache/askance``. Raises InputError if the user has no home directory."""
    folder = os.environ.get("ASKANCE_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    if not folder and shared and Path(shared).is_absolute():
        return Path(shared) / "askance"
    try:
        return Path(folder).expanduser().absolute() if folder else Path.home() / ".cache" / "askance"
    except RuntimeError:  # a user whom the system does not know, as in a container
        whose = f"of ASKANCE_CACHE ({folder})" if folder else "of this user, for which HOME is not set,"
        raise InputError(
            f"The home directory {whose} is not known, so there is no place for the cache. Set ASKANCE_CACHE to a "
            "folder."
        ) from None


def sha256_of_file(path: Path) -> str:
    """Return the sha256 of the file's content in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_identity(path: Path) -> str:
    """Return the sha256 of a file in hex; it is computed again only if the file changed. Raises OSError."""
    known = known_identity(path)
    if known is not None:
        return known
    stamp = _stamp(path)
    sha256 = sha256_of_file(path)
    if _stamp(path) == stamp:  # a file that changed under our hands is not remembered
        remember_identity(path, sha256)
    return sha256


def known_identity(path: Path) -> str | None:
    """Return the hash that was kept for a file, if the file has not changed since; else None. Raises OSError."""
    stamp = _stamp(path)
    try:
        known = json.loads(_memo_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # never written, or cut short
        return None
    if isinstance(known, dict) and {key: known.get(key) for key in stamp} == stamp and "sha256" in known:
        return str(known["sha256"])
    return None


def remember_identity(path: Path, sha256: str) -> None:
    """Keep a hash that was just computed for the file at ``path``, so that it is not computed again."""
    try:
        write_whole(_memo_path(path), json.dumps({**_stamp(path), "sha256": sha256}))
    except (AskanceError, OSError) as error:
        logger.info("The hash of %s could not be kept (%s); it will be computed again next time.", path, error)


def _stamp(path: Path) -> dict[str, object]:
    status = path.stat()
    return {"path": str(path.resolve()), "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}


def _memo_path(path: Path) -> Path:
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    return cache_directory() / "identities" / f"{key}.json"


def require_room(place: Path, needed: float) -> None:
    """Check that a disk has room for ``needed`` bytes. Raises OSError if it has not."""
    free = shutil.disk_usage(place).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free")


def made_whole(folder: Path, make: Callable[[Path], None], *, needed: float = 0) -> None:
    """Let ``make`` write files, of ``needed`` bytes, into a new folder. Whatever happens, the folder is complete or
    does not exist. Raises AskanceError if there is no room, or the folder cannot be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _drop_abandoned(folder.parent)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=PART) as work:
            part = Path(work) / "made"
            part.mkdir()
            require_room(part, needed)
            make(part)
            _put(part, folder)
    except OSError as error:
        raise AskanceError(
            f"{folder}: could not be made ({error.strerror or error}). Make room there, or set ASKANCE_CACHE to "
            "another folder."
        ) from error


def _drop_abandoned(place: Path) -> None:
    for part in place.glob(f"{PART}*"):
        with suppress(OSError):  # another process drops it
            if time() - part.stat().st_mtime > ABANDONED:
                shutil.rmtree(part)


def _put(part: Path, folder: Path) -> None:
    try:
        os.replace(part, folder)
    except OSError:  # another process was faster
        if not folder.is_dir():
            raise
        shutil.rmtree(part)
