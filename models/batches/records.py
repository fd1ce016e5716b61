"""What is written down of a batch before it is waited for, so that a command that was stopped goes on with it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from ...prompts.errors import AskanceError, InputError
from ..files import cache_directory


@dataclass(frozen=True)
class BatchRecord:
    """A batch that was paid for or may have been: no text of it, only what it takes to find and match its answers."""

    identity: str
    """Identity of the model: address and name."""
    input_file: str
    """Id of the uploaded requests at the endpoint; by it a batch is found whose own id was never heard."""
    requests: tuple[str, ...]
    """Keys of the requests whose answers nobody has taken yet, in hex, in the order in which they were sent."""
    sent: float
    """Seconds since 1970."""
    batch: str | None = None
    """Its id; None where it was being made when it was written down."""

    def only(self, keys: Collection[str]) -> BatchRecord:
        """This record with some of its requests."""
        return replace(self, requests=tuple(key for key in self.requests if key in keys))


class BatchJournal:
    """The records of one model's batches: a file each in the folder ``batches`` of the cache directory."""

    def __init__(self, identity: str) -> None:
        """``identity`` is the model's."""
        self._identity = identity
        self._folder = cache_directory() / "batches"
        self._beginning = sha256(identity.encode()).hexdigest()[:16]

    def write(self, record: BatchRecord) -> None:
        """Keep a record, also through a power failure; in place of the one of the same batch.

        Raises:
            AskanceError: It cannot be written.
        """
        path = self._path(record)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(asdict(record), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync(self._folder)
        except OSError as error:
            raise AskanceError(
                f"{path}: the batch cannot be written down ({error.strerror}), so nothing is sent that could not be "
                "found again."
            ) from None

    def drop(self, record: BatchRecord) -> None:
        """Forget a batch."""
        self._path(record).unlink(missing_ok=True)

    def read(self, known: Collection[str] = ()) -> list[BatchRecord]:
        """The records, oldest first, but for those of the input files ``known``. However old: the endpoint says what it
        no longer has.

        Raises:
            InputError: One is damaged.
        """
        passed_over = {self._name(file) for file in known}
        found = []
        for path in sorted(self._folder.glob(f"{self._beginning}-*.json")):
            if path.name in passed_over:
                continue
            record = _read(path)
            if record is not None and record.identity == self._identity:
                found.append(record)
        return sorted(found, key=lambda record: (record.sent, record.input_file))

    def _path(self, record: BatchRecord) -> Path:
        return self._folder / self._name(record.input_file)

    def _name(self, input_file: str) -> str:
        return f"{self._beginning}-{sha256(input_file.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> BatchRecord | None:
    """One record; None where it was dropped in the meantime."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        record = BatchRecord(**values | {"requests": tuple(values["requests"])})
        if not all(isinstance(each, str) for each in (record.identity, record.input_file, *record.requests)):
            raise TypeError("no text")
        float(record.sent)
        return record
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"{path}: this record of a batch cannot be read ({type(error).__name__}). What the batch has answered is "
            "still at the endpoint; move the file away to buy it again."
        ) from None


def _sync(folder: Path) -> None:
    """Have the folder's entries on disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
