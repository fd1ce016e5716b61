"""The raters' labels, one per line, in a file that only grows; the labelled data are made of it.

Files of several raters may be joined end to end: only the order of each rater's own lines counts.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator

from ..prompts.errors import AskanceError, InputError
from ..prompts.examples import Example
from ..prompts.formatting import count
from ..prompts.rows import validate_row
from ..prompts.tables import read_rows
from ..prompts.text import sendable
from ..prompts.text_files import append_line
from .label_options import LabelSteps

logger = logging.getLogger(__name__)

Why = Literal["disagreement", "uncertain", "untested", "random", "spread", "file", "skipped"]
"""The reason why an output was shown to the rater."""
BEGINNING = b'{"example": "'
"""The beginning of every line that askance writes into the file."""
MOST_COMMENT = 100_000
"""Maximum number of characters of one comment."""


class Entry(BaseModel):
    """One rater's label, skip or draft of one output, or an undo of the last one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    example: str = Field(min_length=1)
    rater: str = Field(min_length=1)
    texts: str
    """Hash of the input, context and output that the rater saw (:func:`texts_of`); the label holds for these only."""
    time: str
    why: Why
    kind: Literal["label", "skip", "draft", "undo"] = "label"
    """A ``draft`` is unfinished and does not count yet; an ``undo`` takes back this rater's last label or skip."""
    human: dict[str, StrictBool | float | str] = {}
    """Dimension to pass (true) or fail (false), or to a step as a number or word; question id to yes (true) or no."""
    comment: str = Field("", max_length=MOST_COMMENT)

    @field_validator("comment")
    @classmethod
    def _is_text(cls, comment: str) -> str:
        return sendable(comment)


def texts_of(example: Example) -> str:
    """Hash the input, context and output of an example. Returns 16 hexadecimal digits; the reference does not count."""
    return sha256(json.dumps([example.input, example.context, example.output]).encode()).hexdigest()[:16]


@dataclass
class AllSaid:
    """All entries that were not taken back."""

    history: dict[str, list[Entry]] = field(default_factory=dict)
    """Rater to labels and skips, in order, without those that were taken back."""
    drafts: dict[tuple[str, str], Entry] = field(default_factory=dict)
    """(Rater, example) to the unfinished label."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> AllSaid:
        """Return the state after these entries."""
        said = cls()
        for each in entries:
            said.add(each)
        return said

    def add(self, entry: Entry) -> None:
        """Add an entry; an undo without a label or skip before it changes nothing."""
        entries, pair = self.history.setdefault(entry.rater, []), (entry.rater, entry.example)
        if entry.kind == "undo":
            if entries:
                last = entries.pop()
                was = (last.rater, last.example)
                self.drafts[was] = self.drafts.get(was, last) if last.kind == "skip" else last
        elif entry.kind == "draft":
            self.drafts[pair] = entry
        else:
            entries.append(entry)
            if entry.kind == "label":  # a skipped output keeps its draft until it is shown again
                self.drafts.pop(pair, None)

    def standing(self, rater: str) -> dict[str, Entry]:
        """Return a rater's last entry on each output, by example id, in the order of these entries."""
        found: dict[str, Entry] = {}
        for each in self.history.get(rater, ()):
            found.pop(each.example, None)
            found[each.example] = each
        return found

    @property
    def raters(self) -> list[str]:
        """Sorted names of the raters with a label or a skip."""
        return sorted(name for name, mine in self.history.items() if mine)


class LabelsFile:
    """The file of labels; one process holds it from :meth:`open` to :meth:`close`."""

    def __init__(self, path: Path) -> None:
        """Name the file; it need not exist yet."""
        self.path = path
        self._lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)

    def open(self) -> list[Entry]:
        """Lock the file for this process, and read it. A last line that a kill has torn is cut off, with a warning.
        Raises AskanceError if another process has the file, or it cannot be written. Raises InputError, which names the
        line, if a line is damaged."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout:
            raise AskanceError(
                f"{self.path}: another process is labelling into this file. End that one, or choose another -o."
            ) from None
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            if not self.path.exists():
                return []
            self._mend_end()
            return [validate_row(Entry, row, f"{self.path}, line {number}") for number, row in read_rows(self.path)]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock on the file."""
        self._lock.release()

    def append(self, entry: Entry) -> None:
        """Write one entry; when this returns, it is on the disk. Raises AskanceError if that fails; the file is then
        unchanged."""
        try:
            append_line(self.path, entry.model_dump(exclude_defaults=True))
        except OSError as error:
            raise self._unwritable(error) from None

    def _mend_end(self) -> None:
        """Make the file end with a whole line: cut off a torn line, or add a missing line end."""
        try:
            data = self.path.read_bytes()
            tail = data[data.rfind(b"\n") + 1 :]
            if not tail:
                return
            try:
                json.loads(tail)
            except (ValueError, RecursionError):
                if not BEGINNING.startswith(tail[: len(BEGINNING)]):
                    return  # not written by us: the reader reports it
                logger.warning("%s: the last line was torn when it was written, and is left out.", self.path)
                os.truncate(self.path, len(data) - len(tail))
            else:
                with self.path.open("ab") as file:
                    file.write(b"\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> AskanceError:
        return AskanceError(f"{self.path}: cannot be written ({error.strerror}). Labels given so far are kept.")


def with_numbers(path: Path, entries: Iterable[Entry], steps: LabelSteps | None) -> list[Entry]:
    """Replace the words of ordinal labels in the entries by numbers. Raises InputError if a word is not a step."""
    found = []
    for number, entry in enumerate(entries, 1):
        words = {name: said for name, said in entry.human.items() if isinstance(said, str)}
        values = {name: None if steps is None else steps.value(said) for name, said in words.items()}
        for name, value in values.items():
            if value is None:
                raise InputError(
                    f"{path}, entry {number}, field 'human.{name}': '{words[name]}' is no step of a label. List the words "
                    "from worst to best: --label-scale WORD,WORD,WORD"
                )
        found.append(entry.model_copy(update={"human": {**entry.human, **values}}) if words else entry)
    return found


def known_entries(path: Path, entries: Iterable[Entry], examples: Iterable[Example]) -> list[Entry]:
    """Return the entries on these examples with their present texts; a warning counts the others, which stay in the
    file. Raises InputError if there are entries, but none is about an example of the data."""
    texts = {each.id: texts_of(each) for each in examples}
    entries = list(entries)
    known = [each for each in entries if each.example in texts]
    if entries and not known:
        raise InputError(
            f"{path}: none of these labels is of an output in the data. Are they of other data? Choose another -o."
        )
    matches = [each for each in known if each.texts == texts[each.example]]
    gone = len({each.example for each in entries}) - len({each.example for each in known})
    changed = len({each.example for each in known if each.texts != texts[each.example]})
    if gone:
        logger.warning("%s: labels of %s are not used: not in the data any more.", path, count(gone, "output"))
    if changed:
        logger.warning("%s: labels of %s are not used: the texts changed since.", path, count(changed, "output"))
    return matches
