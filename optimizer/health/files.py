"""Disk, folders, the store of answers, and the files of the embedded models."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path

from ...memory.verdict_store import SCHEMA_VERSION, store_path
from ...models.files import cache_directory, known_identity
from ...models.registry import MODELS, RegisteredModel
from .checked import Checked

LEAST_FREE = 200e6
"""Bytes below which a disk counts as full."""
CHECKED_WHOLE = 200e6
"""Bytes up to which the store is read whole to find damage."""


def check_files() -> list[Checked]:
    """Everything on disk."""
    cache = cache_directory()
    lines = [_folder("cache", cache, "set ASKANCE_CACHE to another folder")]
    lines.append(_folder("here", Path.cwd(), "change to a folder that can be written to"))
    lines.append(check_store(store_path()))
    return lines + [check_embedded(model, cache) for model in MODELS]


def check_store(path: Path) -> Checked:
    """Whether the answers that were bought before can be read; nothing is written."""
    if not path.exists():
        return Checked("files", "verdict cache", "ok", f"{path}: none yet, it is made with the first answer")
    try:
        size = path.stat().st_size
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            count = db.execute("SELECT count(*) FROM answers").fetchone()[0]
            whole = db.execute("PRAGMA quick_check(1)").fetchone()[0] if size <= CHECKED_WHOLE else "ok"
        finally:
            db.close()
    except (sqlite3.Error, OSError) as error:
        return _bad_store(f"{path}: cannot be read ({error})")
    if version > SCHEMA_VERSION:
        said = f"{path}: written by a newer askance (schema {version})"
        return Checked("files", "verdict cache", "broken", said, "update askance")
    if whole != "ok":
        return _bad_store(f"{path}: damaged ({whole})")
    return Checked("files", "verdict cache", "ok", f"{path}: {count:,} answers, {_size(size)}")


def check_embedded(model: RegisteredModel, cache: Path) -> Checked:
    """Whether an embedded model's file is there with the right size and, where it was hashed before, the right hash."""
    path = cache / "models" / model.file
    again = f"fetch it: askance models pull {model.name}"
    try:
        size = path.stat().st_size
    except OSError:
        return Checked(
            "embedded models", model.name, "missing", f"not here ({_size(model.bytes)})", again, needed=False
        )
    if size != model.bytes:
        said = f"{path} has {size:,} bytes and should have {model.bytes:,}"
        return Checked("embedded models", model.name, "broken", said, again, needed=False)
    known = known_identity(path, cache_dir=cache)
    if known is None:
        said = f"{path}: size is right, the hash is checked when it is used first"
        return Checked("embedded models", model.name, "ok", said, needed=False)
    if known != model.sha256:
        said = f"{path}: its hash is not that of the model"
        return Checked("embedded models", model.name, "broken", said, again, needed=False)
    return Checked("embedded models", model.name, "ok", f"{path}: size and hash are right", needed=False)


def _bad_store(said: str) -> Checked:
    return Checked("files", "verdict cache", "broken", said, "move it away; answers are then bought again")


def _folder(name: str, folder: Path, do: str) -> Checked:
    """Whether files can be made in a folder (or in the one it will be made in), and how much room there is."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"askance")
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Checked("files", name, "broken", f"{folder}: cannot be written ({error.strerror or error})", do)
    if free < LEAST_FREE:
        return Checked("files", name, "broken", f"{folder}: only {_size(free)} are free", f"make room, or {do}")
    return Checked("files", name, "ok", f"{folder}: can be written, {_size(free)} free")


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
